//! Goal: a core file reports what it has, and why it lacks the rest. Method: files made by the writer of this crate,
//! cut and changed.

use super::*;

fn image() -> CoreImage {
    let mapping = |start: u64, offset| CoreMapping {
        range: start..start + 0x1000,
        offset,
        path: "/bin/app".into(),
    };
    let thread = |tid, first| ImageThread {
        tid,
        signal: 0,
        registers: std::array::from_fn(|number| first + number as u64),
        floating: vec![7; 512],
    };
    CoreImage {
        pid: 40,
        parent: 1,
        name: "app".into(),
        arguments: "app --fast".into(),
        auxv: [9u64, 0x1040, 0, 0].map(u64::to_le_bytes).concat(),
        threads: vec![thread(41, 100), thread(40, 200)],
        mappings: vec![mapping(0x1000, 0), mapping(0x2000, 0x1000)],
        segments: vec![
            ImageSegment {
                range: 0x1000..0x2000,
                written: 0,
                flags: 5,
            },
            ImageSegment {
                range: 0x2000..0x3000,
                written: 0x800,
                flags: 6,
            },
            ImageSegment {
                range: 0x8000..0x9000,
                written: 0x1000,
                flags: 6,
            },
        ],
    }
}

fn file() -> Vec<u8> {
    let mut bytes = write_head(&image());
    bytes.extend([0x22; 0x800]);
    bytes.extend([0x88; 0x1000]);
    bytes
}

fn parsed(bytes: Vec<u8>) -> Result<CoreFile> {
    CoreFile::parse(Path::new("core"), Bytes::Owned(bytes))
}

#[test]
fn what_is_written_is_read() {
    let core = parsed(file()).unwrap();
    let image = image();
    assert_eq!(core.missing_bytes(), 0);
    assert_eq!(core.process().pid, Some(40));
    assert_eq!(core.process().name, "app");
    assert_eq!(core.process().arguments, "app --fast");
    assert!(!core.process().is_of_kernel);
    assert_eq!(core.mappings(), image.mappings);
    assert_eq!(core.auxiliary(9), Some(0x1040));
    assert_eq!(core.auxiliary(3), None);
    for (read, written) in core.threads().iter().zip(&image.threads) {
        assert_eq!(read.tid, written.tid);
        assert_eq!(read.registers, written.registers);
        assert_eq!(read.vectors(), Some([[7; 16]; 16]));
    }
    assert_eq!(core.threads().len(), 2);
}

#[test]
fn memory_is_read_or_said_to_be_missing() {
    let core = parsed(file()).unwrap();
    let mut bytes = [0; 4];
    assert_eq!(core.read(0x27fc, &mut bytes), Some(()));
    assert_eq!(bytes, [0x22; 4]);
    assert_eq!(core.read(0x27fd, &mut bytes), None);
    let pieces = core.pieces(0x1800..0x8010);
    let gaps: Vec<_> = pieces
        .iter()
        .map(|piece| (piece.range.start, piece.bytes.err()))
        .collect();
    let left_out = |is_writable| Some(CoreGap::LeftOut { is_writable });
    assert_eq!(
        gaps,
        [
            (0x1800, left_out(false)),
            (0x2000, None),
            (0x2800, left_out(true)),
            (0x3000, Some(CoreGap::NotMapped)),
            (0x8000, None),
        ]
    );
    assert_eq!(pieces.last().unwrap().range, 0x8000..0x8010);
    assert!(core.pieces(5..5).is_empty());
    assert_eq!(core.text(0x8ffe, 10), None, "it does not end");
    assert_eq!(core.read(u64::MAX, &mut bytes), None);
}

#[test]
fn a_cut_file_has_what_lies_before_the_cut() {
    let whole = file();
    let cut = whole[..whole.len() - 0x800].to_vec();
    let core = parsed(cut).unwrap();
    assert_eq!(core.missing_bytes(), 0x800);
    let pieces = core.pieces(0x8000..0x9000);
    assert_eq!(pieces[0].range, 0x8000..0x8800);
    assert_eq!(pieces[1].bytes, Err(CoreGap::Cut));
    let mut opened = 0;
    for len in (0..whole.len()).step_by(61) {
        match parsed(whole[..len].to_vec()) {
            Ok(core) => {
                assert!(core.missing_bytes() > 0, "{len}");
                opened += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(opened > 10, "{opened}");
}

#[test]
fn changed_bytes_never_make_it_panic() {
    let whole = file();
    let head = write_head(&image()).len();
    for at in 0..head {
        for value in [0, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            if let Ok(core) = parsed(bytes) {
                _ = core.pieces(0..u64::MAX).len();
                _ = core.build_id_at(0x1000);
            }
        }
    }
}

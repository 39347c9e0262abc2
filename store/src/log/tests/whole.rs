//! Undamaged logs.

use std::sync::Barrier;
use std::thread;

use proptest::prelude::*;

use super::support::{collect, owned, read, reader, small, write};
use crate::control::Control;
use crate::error::Error;
use crate::file_header::FileHeader;
use crate::format::{FILE_HEADER_LEN, FRAME_HEADER_LEN, FileKind, FrameKind, SEGMENT_ROLL_LEN};
use crate::log::frame_writer::FrameWriter;
use crate::log::{End, LogPosition, LogReader, LogWriter, Step, Tail, segment_path, segments};
use crate::storage::Disk;
use crate::synth::{RECORDING_ID, SynthFrame, append_frame};
use crate::wire::{self, EnterFields, EnterForm};

#[test]
fn what_was_appended_is_read_back() {
    for roll_len in [1, 200, 400, SEGMENT_ROLL_LEN] {
        let dir = tempfile::tempdir().unwrap();
        let frames = small().frames();
        write(dir.path(), &frames, roll_len);
        for tail in [Tail::MustBeClosed, Tail::MayBeTorn] {
            let found = read(dir.path(), tail).unwrap();
            assert_eq!(found, (frames.clone(), End::Closed), "{roll_len} {tail:?}");
        }
    }
}

#[test]
fn segments_stay_below_the_roll_length() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), 400);
    let numbers = segments(dir.path()).unwrap();
    assert!(numbers.len() > 2, "{numbers:?}");
    for number in numbers {
        let len = segment_path(dir.path(), number).metadata().unwrap().len();
        assert!(len <= 400, "segment {number} has {len} bytes");
    }
}

#[test]
fn a_block_in_two_parts_is_read_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = LogWriter::create(dir.path(), RECORDING_ID).unwrap();
    log.append_block(3, 4, [b"the end of", b" the ring, its start...."])
        .unwrap_err();
    log.append_block(3, 4, [b"the end ", b"and the start..."])
        .unwrap();
    log.close().unwrap();
    let (frames, _) = read(dir.path(), Tail::MustBeClosed).unwrap();
    let bytes = b"the end and the start...".to_vec();
    let (ring, tenancy) = (3, 4);
    assert_eq!(
        frames,
        [SynthFrame::Block {
            ring,
            tenancy,
            bytes
        }]
    );
}

#[test]
fn a_payload_that_fits_no_frame_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = LogWriter::create(dir.path(), RECORDING_ID).unwrap();
    let large = vec![0; crate::format::MAX_PAYLOAD_LEN];
    let refused = log.append_block(0, 0, [&large, &[0; 8]]);
    assert!(
        matches!(refused, Err(Error::BadPayload { .. })),
        "{refused:?}"
    );
    log.append_block(0, 0, [&large, &[]]).unwrap();
    log.close().unwrap();
    let (frames, end) = read(dir.path(), Tail::MustBeClosed).unwrap();
    assert_eq!((frames.len(), end), (1, End::Closed));
}

#[test]
fn reading_resumes_from_every_position() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), 400);
    let mut all = reader(dir.path(), Tail::MustBeClosed).unwrap();
    let mut starts = vec![all.position()];
    let mut frames = Vec::new();
    while let Step::Frame(frame) = all.next_frame().unwrap() {
        starts.push(frame.next);
        frames.push(owned(frame.body));
    }
    assert!(starts.is_sorted(), "{starts:?}");
    for (index, start) in starts.into_iter().enumerate() {
        let mut rest = LogReader::open_at(dir.path(), RECORDING_ID, Tail::MustBeClosed, start);
        let found = collect(&mut rest).unwrap();
        assert_eq!(
            found,
            (frames[index..].to_vec(), End::Closed),
            "from {start:?}"
        );
    }
}

#[test]
fn the_end_of_a_closed_log_stays_the_end() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), SEGMENT_ROLL_LEN);
    let mut reader = reader(dir.path(), Tail::MustBeClosed).unwrap();
    collect(&mut reader).unwrap();
    for _ in 0..3 {
        assert_eq!(reader.next_frame().unwrap(), Step::End(End::Closed));
    }
}

#[test]
fn a_growing_log_is_followed_frame_by_frame() {
    let dir = tempfile::tempdir().unwrap();
    let mut follower = reader(dir.path(), Tail::Grows).unwrap();
    let end = End::ForNow { torn_bytes: 0 };
    assert_eq!(follower.next_frame().unwrap(), Step::End(end));
    let mut log = LogWriter::create_on(Disk, dir.path(), RECORDING_ID, 400).unwrap();
    for frame in small().frames() {
        append_frame(&mut log, &frame).unwrap();
        assert_eq!(collect(&mut follower).unwrap(), (vec![frame], end));
    }
    log.close().unwrap();
    assert_eq!(collect(&mut follower).unwrap(), (vec![], End::Closed));
}

#[test]
fn a_log_is_followed_while_another_thread_writes_it() {
    const COUNT: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let start = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            let mut log = LogWriter::create_on(Disk, dir.path(), RECORDING_ID, 100_000).unwrap();
            for index in 0..COUNT {
                // No records: such a block is one frame.
                let payload = vec![index as u8 & 0xf0; (index % 50) as usize * 8];
                log.append_block(index as u32, 0, [&payload, &index.to_le_bytes()])
                    .unwrap();
            }
            log.close().unwrap();
        });
        start.wait();
        let mut follower = reader(dir.path(), Tail::Grows).unwrap();
        let mut next = 0;
        loop {
            let (frames, end) = collect(&mut follower).unwrap();
            for frame in frames {
                let SynthFrame::Block { bytes, .. } = frame else {
                    panic!("only blocks were appended");
                };
                assert!(bytes.ends_with(&u64::to_le_bytes(next)), "block {next}");
                next += 1;
            }
            if end == End::Closed {
                break;
            }
        }
        assert_eq!(next, COUNT);
    });
}

/// More than a piece in each part, then words that are not records: packed frames, then a raw one.
#[test]
fn a_long_block_is_read_back_from_less_than_half_of_its_bytes() {
    let mut records = Vec::new();
    for call in 0..5000 {
        let fields = EnterFields {
            form: EnterForm::Hooked,
            function_id: 1,
            slot: 0x7f00,
            return_addr: 0x1000,
            args: [call, 2, 3, 4, 5, 6],
            xmm: &[],
        };
        wire::push_enter(&mut records, call * 50, &fields);
    }
    let (first, rest) = records.split_at(4000 * 72);
    let second = [rest, &[0xff; 40]].concat();
    let dir = tempfile::tempdir().unwrap();
    let mut log = LogWriter::create(dir.path(), RECORDING_ID).unwrap();
    log.append_block(3, 4, [first, &second]).unwrap();
    assert!(log.position().offset < records.len() as u64 / 2);
    log.close().unwrap();
    let (frames, _) = read(dir.path(), Tail::MustBeClosed).unwrap();
    let mut found = Vec::new();
    for frame in &frames {
        let SynthFrame::Block {
            ring: 3,
            tenancy: 4,
            bytes,
        } = frame
        else {
            panic!("only blocks of one thread were appended: {frame:?}");
        };
        found.extend_from_slice(bytes);
    }
    assert!(frames.len() > 2, "{} frames", frames.len());
    assert!(found == [first, &second].concat());
}

/// A valid checksum does not make the content valid.
#[test]
fn a_packed_block_that_cannot_be_unpacked_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let header = FileHeader {
        kind: FileKind::Log,
        recording_id: RECORDING_ID,
        number: 0,
    };
    let path = segment_path(dir.path(), 0);
    let mut file = FrameWriter::create(&Disk, &path, header).unwrap();
    file.append(FrameKind::PackedBlock, 0, [&[0xff; 16], &[]])
        .unwrap();
    for tail in [Tail::MayBeTorn, Tail::MustBeClosed] {
        let refused = read(dir.path(), tail);
        let place = FILE_HEADER_LEN as u64;
        assert!(
            matches!(refused, Err(Error::Corrupt { offset, .. }) if offset == place),
            "{refused:?}"
        );
    }
}

#[test]
fn sealed_segments_may_be_dropped_from_the_front() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), 400);
    let mut all = reader(dir.path(), Tail::MustBeClosed).unwrap();
    let mut second_segment = Vec::new();
    while let Step::Frame(frame) = all.next_frame().unwrap() {
        if frame.position.segment > 0 {
            second_segment.push(owned(frame.body));
        }
    }
    std::fs::remove_file(segment_path(dir.path(), 0)).unwrap();
    let found = read(dir.path(), Tail::MustBeClosed).unwrap();
    assert_eq!(found, (second_segment, End::Closed));
    let zero = LogPosition::start_of(0);
    let mut gone = LogReader::open_at(dir.path(), RECORDING_ID, Tail::MustBeClosed, zero);
    let refused = gone.next_frame();
    assert!(
        matches!(refused, Err(Error::SegmentMissing { .. })),
        "{refused:?}"
    );
}

#[test]
fn frames_cost_their_header_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = LogWriter::create(dir.path(), RECORDING_ID).unwrap();
    log.append_block(0, 0, [&[1; 80], &[2; 16]]).unwrap();
    log.append_control(&Control::Detached { ticks: 0 }).unwrap();
    let used = log.position().offset as usize;
    let control = rmp_serde::to_vec(&Control::Detached { ticks: 0 }).unwrap();
    let padded = control.len().next_multiple_of(8);
    assert_eq!(used, FILE_HEADER_LEN + 2 * FRAME_HEADER_LEN + 96 + padded);
    log.close().unwrap();
}

fn any_frame() -> impl Strategy<Value = SynthFrame> {
    let words = prop::collection::vec(any::<u64>(), 0..60);
    prop_oneof![
        3 => (any::<u32>(), any::<u32>(), words).prop_map(|(ring, tenancy, words)| {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            SynthFrame::Block { ring, tenancy, bytes }
        }),
        1 => any::<u64>().prop_map(SynthFrame::Watermark),
        1 => (any::<u64>(), ".{0,40}").prop_map(|(ticks, text)| {
            SynthFrame::Control(Control::Note { ticks, text })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_frames_are_read_back(
        frames in prop::collection::vec(any_frame(), 0..40),
        roll_len in 64u64..3000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &frames, roll_len);
        let found = read(dir.path(), Tail::MustBeClosed).unwrap();
        prop_assert_eq!(found, (frames, End::Closed));
    }
}

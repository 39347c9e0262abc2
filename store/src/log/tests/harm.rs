//! Logs that were cut, changed, reordered or forged.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::support::{read, small, write};
use crate::error::Error;
use crate::file_header::FileHeader;
use crate::format::{FILE_HEADER_LEN, FRAME_HEADER_LEN, FileKind, SEGMENT_ROLL_LEN};
use crate::log::frame::LEN_AT;
use crate::log::{End, LogPosition, LogReader, Step, Tail, segment_path};
use crate::manifest::RecordingId;
use crate::synth::RECORDING_ID;

/// The start of each frame of the only segment, and the segment's end.
fn frame_starts(dir: &Path) -> Vec<usize> {
    let mut reader = LogReader::open(dir, RECORDING_ID, Tail::MayBeTorn).unwrap();
    let mut starts = Vec::new();
    while let Step::Frame(frame) = reader.next_frame().unwrap() {
        starts.push(frame.position.offset as usize);
    }
    starts.push(reader.position().offset as usize); // the closing frame
    starts.push(fs::metadata(segment_path(dir, 0)).unwrap().len() as usize);
    starts
}

#[test]
fn a_log_cut_at_any_byte_opens_up_to_its_last_whole_frame() {
    let dir = tempfile::tempdir().unwrap();
    let frames = small().frames();
    write(dir.path(), &frames, SEGMENT_ROLL_LEN);
    let starts = frame_starts(dir.path());
    let path = segment_path(dir.path(), 0);
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let kept = starts
            .iter()
            .filter(|start| **start <= cut)
            .count()
            .saturating_sub(1);
        let kept_end = if cut < FILE_HEADER_LEN {
            0
        } else {
            starts[kept]
        };
        let torn_bytes = (cut - kept_end) as u64;
        let end = End::ForNow { torn_bytes };
        let expected = (frames[..kept].to_vec(), end);
        let grows = read(dir.path(), Tail::Grows).unwrap();
        assert_eq!(grows, expected, "cut at {cut}");
        // A recorder that dies leaves at least a header.
        match read(dir.path(), Tail::MayBeTorn) {
            Ok(found) => assert_eq!(found, expected, "cut at {cut}"),
            Err(Error::Truncated { offset, .. }) => assert_eq!(offset as usize, cut),
            Err(other) => panic!("cut at {cut}: {other:?}"),
        }
        match read(dir.path(), Tail::MustBeClosed) {
            Err(Error::Truncated { offset, .. }) => {
                let expected = if cut < FILE_HEADER_LEN { cut } else { kept_end };
                assert_eq!(offset as usize, expected, "cut at {cut}");
            }
            other => panic!("cut at {cut}: {other:?}"),
        }
    }
}

#[test]
fn a_byte_changed_anywhere_is_found_in_its_frame() {
    let dir = tempfile::tempdir().unwrap();
    let frames = small().frames();
    write(dir.path(), &frames, SEGMENT_ROLL_LEN);
    let starts = frame_starts(dir.path());
    let path = segment_path(dir.path(), 0);
    let whole = fs::read(&path).unwrap();
    for at in FILE_HEADER_LEN..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x21;
        fs::write(&path, &changed).unwrap();
        let hit = starts.iter().filter(|start| **start <= at).count() - 1;
        match read(dir.path(), Tail::MustBeClosed) {
            Err(Error::Corrupt { offset, .. } | Error::Truncated { offset, .. }) => {
                assert_eq!(offset as usize, starts[hit], "changed at {at}");
            }
            other => panic!("changed at {at}: {other:?}"),
        }
        // Only a last frame that seems to extend past the end of the file can be torn.
        match read(dir.path(), Tail::MayBeTorn) {
            Ok((found, End::ForNow { .. })) => {
                assert_eq!(
                    (hit, found),
                    (frames.len(), frames.clone()),
                    "changed at {at}"
                );
                let len_at = starts[hit] + LEN_AT;
                assert!((len_at..len_at + 4).contains(&at), "changed at {at}");
            }
            Err(Error::Corrupt { offset, .. }) => {
                assert_eq!(offset as usize, starts[hit], "changed at {at}");
            }
            other => panic!("changed at {at}: {other:?}"),
        }
    }
}

#[test]
fn the_message_names_file_offset_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), SEGMENT_ROLL_LEN);
    let path = segment_path(dir.path(), 0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[FILE_HEADER_LEN + FRAME_HEADER_LEN] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let message = read(dir.path(), Tail::MayBeTorn).unwrap_err().to_string();
    let message = message.replace(&dir.path().display().to_string(), "log");
    expect_test::expect![[r#"log/000000.seg is damaged at offset 64: the frame's checksum differs, but another frame follows at offset 152"#]]
    .assert_eq(&message);
}

#[test]
fn zeros_after_the_last_frame_are_a_torn_tail_of_unfinished_logs_only() {
    let dir = tempfile::tempdir().unwrap();
    let frames = small().frames();
    write(dir.path(), &frames, SEGMENT_ROLL_LEN);
    let starts = frame_starts(dir.path());
    let path = segment_path(dir.path(), 0);
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(starts[frames.len()]);
    bytes.extend_from_slice(&[0; 5000]);
    fs::write(&path, &bytes).unwrap();
    let end = End::ForNow { torn_bytes: 5000 };
    assert_eq!(read(dir.path(), Tail::MayBeTorn).unwrap(), (frames, end));
    let closed = read(dir.path(), Tail::MustBeClosed);
    assert!(matches!(closed, Err(Error::Corrupt { .. })), "{closed:?}");
}

#[test]
fn bytes_after_the_closing_frame_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), SEGMENT_ROLL_LEN);
    let path = segment_path(dir.path(), 0);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, [&bytes[..], b"x"].concat()).unwrap();
    let closed = read(dir.path(), Tail::MustBeClosed);
    let at_end =
        matches!(closed, Err(Error::Corrupt { offset, .. }) if offset == bytes.len() as u64);
    assert!(at_end, "{closed:?}");
}

#[test]
fn damage_before_the_last_segment_is_never_a_torn_tail() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), 400);
    let path = segment_path(dir.path(), 0);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 30]).unwrap();
    for tail in [Tail::MayBeTorn, Tail::MustBeClosed] {
        let cut = read(dir.path(), tail);
        assert!(matches!(cut, Err(Error::Truncated { .. })), "{cut:?}");
    }
}

#[test]
fn a_missing_segment_in_between_is_named() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), 400);
    let second = segment_path(dir.path(), 1);
    fs::remove_file(&second).unwrap();
    for tail in [Tail::MayBeTorn, Tail::MustBeClosed] {
        match read(dir.path(), tail) {
            Err(Error::SegmentMissing { path }) => assert_eq!(path, second),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_closed_log_without_its_last_segment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), 400);
    let last = *crate::log::segments(dir.path()).unwrap().last().unwrap();
    fs::remove_file(segment_path(dir.path(), last)).unwrap();
    let closed = read(dir.path(), Tail::MustBeClosed);
    assert!(
        matches!(closed, Err(Error::SegmentMissing { .. })),
        "{closed:?}"
    );
    // The previous segment says that the log continues, so this one existed.
    let died = read(dir.path(), Tail::MayBeTorn);
    assert!(
        matches!(died, Err(Error::SegmentMissing { .. })),
        "{died:?}"
    );
    let (_, end) = read(dir.path(), Tail::Grows).unwrap();
    assert_eq!(end, End::ForNow { torn_bytes: 0 });
}

/// Duplicated, removed or inserted bytes move all that follows: no frame is at its place, and none is a torn tail.
#[test]
fn frames_behind_bytes_that_were_doubled_or_taken_out_are_no_torn_tail() {
    let dir = tempfile::tempdir().unwrap();
    let frames = small().frames();
    write(dir.path(), &frames, SEGMENT_ROLL_LEN);
    let starts = frame_starts(dir.path());
    let path = segment_path(dir.path(), 0);
    let bytes = fs::read(&path).unwrap();
    let unfinished = &bytes[..starts[frames.len()]];
    for at in (FILE_HEADER_LEN..starts[frames.len() - 1]).step_by(3) {
        for len in [1, 5, 8, 24, 64] {
            let end = (at + len).min(starts[frames.len() - 1]);
            let doubled = [&unfinished[..end], &unfinished[at..]].concat();
            let shortened = [&unfinished[..at], &unfinished[end..]].concat();
            for harmed in [doubled, shortened] {
                fs::write(&path, harmed).unwrap();
                let found = read(dir.path(), Tail::MayBeTorn);
                assert!(
                    matches!(found, Err(Error::Corrupt { .. })),
                    "{len} bytes at {at}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_frame_that_was_never_written_whole_is_torn_and_one_that_was_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let synth = {
        let mut synth = small();
        synth.raw(&[0x5a; 4096]).flush();
        synth
    };
    let frames = synth.frames();
    write(dir.path(), &frames, SEGMENT_ROLL_LEN);
    let starts = frame_starts(dir.path());
    let path = segment_path(dir.path(), 0);
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(starts[frames.len()]);
    let last = starts[frames.len() - 1];
    let sector = (last + 1000).next_multiple_of(512);
    let mut holed = bytes.clone();
    holed[sector..sector + 512].fill(0);
    fs::write(&path, &holed).unwrap();
    let torn_bytes = (bytes.len() - last) as u64;
    let end = End::ForNow { torn_bytes };
    let expected = (frames[..frames.len() - 1].to_vec(), end);
    assert_eq!(read(dir.path(), Tail::MayBeTorn).unwrap(), expected);
    bytes[sector] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let found = read(dir.path(), Tail::MayBeTorn);
    assert!(
        matches!(found, Err(Error::Corrupt { offset, .. }) if offset == last as u64),
        "{found:?}"
    );
}

#[test]
fn a_log_that_ends_before_the_place_to_go_on_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), SEGMENT_ROLL_LEN);
    let len = fs::metadata(segment_path(dir.path(), 0)).unwrap().len();
    let position = LogPosition {
        segment: 0,
        offset: len + 8,
    };
    for tail in [Tail::MustBeClosed, Tail::MayBeTorn, Tail::Grows] {
        let mut reader = LogReader::open_at(dir.path(), RECORDING_ID, tail, position);
        let found = reader.next_frame();
        assert!(
            matches!(found, Err(Error::Truncated { offset, .. }) if offset == len),
            "{found:?}"
        );
    }
}

#[test]
fn segments_of_another_recording_or_place_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &small().frames(), SEGMENT_ROLL_LEN);
    let other = LogReader::open(dir.path(), RecordingId([9; 16]), Tail::MayBeTorn);
    let refused = other.unwrap().next_frame().map(|_| ());
    assert!(
        matches!(refused, Err(Error::Foreign { offset: 16, .. })),
        "{refused:?}"
    );
    fs::rename(segment_path(dir.path(), 0), segment_path(dir.path(), 5)).unwrap();
    let moved = read(dir.path(), Tail::MayBeTorn);
    assert!(
        matches!(moved, Err(Error::Foreign { offset: 32, .. })),
        "{moved:?}"
    );
}

#[test]
fn two_frames_that_changed_places_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[small().frames(), small().frames()].concat(),
        SEGMENT_ROLL_LEN,
    );
    let starts = frame_starts(dir.path());
    let half = (starts.len() - 2) / 2;
    let (first, second) = (starts[0], starts[half]);
    let path = segment_path(dir.path(), 0);
    let mut bytes = fs::read(&path).unwrap();
    let len = starts[1] - starts[0];
    assert_eq!(starts[half + 1] - second, len, "the same frame twice");
    for at in 0..len {
        bytes.swap(first + at, second + at);
    }
    fs::write(&path, &bytes).unwrap();
    let swapped = read(dir.path(), Tail::MustBeClosed);
    assert!(
        matches!(swapped, Err(Error::Corrupt { offset: 64, .. })),
        "{swapped:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), headed in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let header = FileHeader { kind: FileKind::Log, recording_id: RECORDING_ID, number: 0 };
        let head = if headed { header.encode().to_vec() } else { Vec::new() };
        fs::write(segment_path(dir.path(), 0), [head, bytes].concat()).unwrap();
        for tail in [Tail::MayBeTorn, Tail::MustBeClosed] {
            match read(dir.path(), tail) {
                Ok((frames, end)) => prop_assert!(frames.is_empty() && end != End::Closed),
                Err(error) => prop_assert!(error.to_string().contains("000000.seg")),
            }
        }
    }
}

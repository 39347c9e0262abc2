//! Logs that were cut, changed, mixed up or made up.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::support::{read, small, write};
use crate::error::Error;
use crate::file_header::FileHeader;
use crate::format::{FILE_HEADER_LEN, FRAME_HEADER_LEN, FileKind, SEGMENT_ROLL_LEN};
use crate::log::{End, LogReader, Step, Tail, segment_path};
use crate::manifest::RecordingId;
use crate::synth::RECORDING_ID;

/// Where each frame of the only segment begins, and the segment's end.
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
        let found = read(dir.path(), Tail::MayBeTorn).unwrap();
        let end = End::ForNow { torn_bytes };
        assert_eq!(found, (frames[..kept].to_vec(), end), "cut at {cut}");
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
        // Only a bad last frame can be a torn one.
        match read(dir.path(), Tail::MayBeTorn) {
            Ok((found, End::ForNow { .. })) => {
                assert_eq!(
                    (hit, found),
                    (frames.len(), frames.clone()),
                    "changed at {at}"
                );
            }
            Err(Error::Corrupt { offset, .. }) => {
                assert_eq!(offset as usize, starts[hit], "changed at {at}");
                assert!(hit < frames.len());
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
    expect_test::expect![[r#"log/000000.seg is damaged at offset 64: the frame's checksum differs, but another frame follows at offset 152; run "hindsight check" for a full report and restore the file from a copy"#]]
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
    let (_, end) = read(dir.path(), Tail::MayBeTorn).unwrap();
    assert_eq!(end, End::ForNow { torn_bytes: 0 });
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

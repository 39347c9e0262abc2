//! Logs written to a disk that fills up or fails.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::support::{FaultyDisk, read, reader, small};
use crate::error::Error;
use crate::format::SYNC_INTERVAL_MS;
use crate::log::{End, LogWriter, Tail, segment_path};
use crate::synth::{RECORDING_ID, SynthFrame, append_frame};

const PLENTY: u64 = 1 << 30;
const ROLL_LEN: u64 = 400;

/// Appends until something fails; returns the frames that were accepted, and the failure.
fn append_until_error(
    log: &mut LogWriter<FaultyDisk>,
    frames: &[SynthFrame],
) -> (usize, Option<Error>) {
    for (index, frame) in frames.iter().enumerate() {
        if let Err(error) = append_frame(log, frame) {
            return (index, Some(error));
        }
    }
    (frames.len(), None)
}

#[test]
fn a_disk_that_fills_up_at_any_byte_keeps_all_accepted_frames() {
    let frames = small().frames();
    for space in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let disk = FaultyDisk::with_space(space);
        let log = LogWriter::create_on(disk.clone(), dir.path(), RECORDING_ID, ROLL_LEN);
        let Ok(mut log) = log else {
            assert!(space < 64, "the header fits into {space}");
            assert_eq!(
                dir.path().read_dir().unwrap().count(),
                0,
                "nothing stays behind"
            );
            continue;
        };
        let (accepted, error) = append_until_error(&mut log, &frames);
        let found = read(dir.path(), Tail::MayBeTorn).unwrap();
        let end = End::ForNow { torn_bytes: 0 };
        assert_eq!(found, (frames[..accepted].to_vec(), end), "space {space}");
        let Some(error) = error else {
            assert!(space > 800, "everything fits into {space}");
            return;
        };
        assert!(matches!(error, Error::Append { .. }), "{error}");
        disk.state.free_bytes.store(PLENTY, Ordering::Relaxed);
        let (rest, error) = append_until_error(&mut log, &frames[accepted..]);
        assert!(error.is_none(), "space was freed: {error:?}");
        assert_eq!(accepted + rest, frames.len());
        log.close().unwrap();
        let found = read(dir.path(), Tail::MustBeClosed).unwrap();
        assert_eq!(found, (frames.clone(), End::Closed), "space {space}");
    }
}

#[test]
fn partial_writes_are_continued() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::with_space(PLENTY);
    disk.state.write_limit.store(7, Ordering::Relaxed);
    let mut log = LogWriter::create_on(disk, dir.path(), RECORDING_ID, ROLL_LEN).unwrap();
    let frames = small().frames();
    assert!(append_until_error(&mut log, &frames).1.is_none());
    log.close().unwrap();
    assert_eq!(read(dir.path(), Tail::MustBeClosed).unwrap().0, frames);
}

#[test]
fn a_follower_never_sees_a_frame_that_was_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::with_space(PLENTY);
    let mut log = LogWriter::create_on(disk.clone(), dir.path(), RECORDING_ID, PLENTY).unwrap();
    let mut follower = reader(dir.path(), Tail::Grows).unwrap();
    let mut seen = Vec::new();
    let mut sent = Vec::new();
    for (index, frame) in small().frames().into_iter().enumerate() {
        disk.state
            .free_bytes
            .store(10 + index as u64, Ordering::Relaxed);
        assert!(append_frame(&mut log, &frame).is_err());
        seen.extend(super::support::collect(&mut follower).unwrap().0);
        disk.state.free_bytes.store(PLENTY, Ordering::Relaxed);
        append_frame(&mut log, &frame).unwrap();
        sent.push(frame);
        seen.extend(super::support::collect(&mut follower).unwrap().0);
        assert_eq!(seen, sent);
    }
}

#[test]
fn a_writer_that_cannot_take_back_stops() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::with_space(64 + 30);
    disk.state.truncate_fails.store(true, Ordering::Relaxed);
    let mut log = LogWriter::create_on(disk.clone(), dir.path(), RECORDING_ID, PLENTY).unwrap();
    let torn = log.append_block(0, 0, [&[1; 80], &[]]);
    assert!(matches!(torn, Err(Error::Append { .. })), "{torn:?}");
    disk.state.free_bytes.store(PLENTY, Ordering::Relaxed);
    let stopped = log.append_watermark(1);
    assert!(
        matches!(stopped, Err(Error::WriterStopped { .. })),
        "{stopped:?}"
    );
    assert!(log.close().is_err());
    let end = End::ForNow { torn_bytes: 30 };
    assert_eq!(read(dir.path(), Tail::MayBeTorn).unwrap(), (vec![], end));
}

#[test]
fn closing_brings_every_byte_to_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::with_space(PLENTY);
    let mut log = LogWriter::create_on(disk.clone(), dir.path(), RECORDING_ID, PLENTY).unwrap();
    assert!(append_until_error(&mut log, &small().frames()).1.is_none());
    let end = log.close().unwrap().end;
    assert_eq!(disk.state.synced_bytes.load(Ordering::Relaxed), end.offset);
}

#[test]
fn what_was_appended_is_synced_without_waiting_for_more_or_for_the_close() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::with_space(PLENTY);
    let mut log = LogWriter::create_on(disk.clone(), dir.path(), RECORDING_ID, PLENTY).unwrap();
    for round in 1..=3 {
        log.append_block(0, 0, [&vec![0; 1 << 20], &[]]).unwrap();
        let appended = std::fs::metadata(segment_path(dir.path(), 0))
            .unwrap()
            .len();
        assert!(appended > round << 20, "{appended} bytes in the file");
        let given_up = Instant::now() + Duration::from_secs(60);
        while disk.state.synced_bytes.load(Ordering::Relaxed) < appended {
            assert!(
                Instant::now() < given_up,
                "round {round} was never synced: the interval is {SYNC_INTERVAL_MS} ms"
            );
            std::thread::yield_now();
        }
    }
    assert!(disk.state.syncs.load(Ordering::Relaxed) >= 3);
}

#[test]
fn a_failed_sync_ends_the_recording_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::with_space(PLENTY);
    disk.state.sync_fails.store(true, Ordering::Relaxed);
    let mut log = LogWriter::create_on(disk, dir.path(), RECORDING_ID, PLENTY).unwrap();
    let frames = small().frames();
    let (accepted, early) = append_until_error(&mut log, &frames);
    let error = early.unwrap_or_else(|| log.close().unwrap_err());
    assert!(matches!(error, Error::Sync { .. }), "{error}");
    assert!(error.to_string().contains("the disk is gone"), "{error}");
    let (found, _) = read(dir.path(), Tail::MayBeTorn).unwrap();
    assert!(found.len() >= accepted && frames.starts_with(&found));
}

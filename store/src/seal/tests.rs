//! Goal: a crash at any moment of sealing loses nothing and duplicates nothing. Method: count the moments, crash at
//! each of them, damage what the state does not count yet, resume sealing, and compare with a run without a crash.
//! A run of all tests takes a third of the moments; `WHOLE=1` all.

use std::fs;
use std::path::Path;

use share::in_turn;

use super::{Ending, SealOptions, SealState, Sealer, crash};
use crate::columns::{ReadCall, ReadEvent, ReadState, read_calls, read_events, read_states};
use crate::control::{Control, LogFormat, LogKind, LogPart, LogValue, PauseReason};
use crate::definitions;
use crate::error::{Error, Result};
use crate::format::FileKind;
use crate::log::{LogWriter, segment_path, segments};
use crate::recording::{Created, OnTaken, OpenRecording, Recording};
use crate::seal::{Part, Sealed, SealedPart};
use crate::storage::Disk;
use crate::synth::{self, Synth};

// Which part of its samples a run of all tests takes.
#[allow(dead_code)]
#[path = "../../../tests/src/share.rs"]
mod share;

const TOP: u64 = 0x7f00_0010_0000;

/// Where the second thread makes its system calls.
const SYSCALL_STACK: u64 = TOP + 0x10_0000 - 1024;

/// Segments of the test's log, in bytes: small, so that many are removed.
const SEGMENT_LEN: u64 = 2000;

#[derive(Debug, Default, PartialEq)]
struct Everything {
    calls: Vec<ReadCall>,
    events: Vec<ReadEvent>,
    states: Vec<ReadState>,
    definitions: Vec<Control>,
}

/// Makes a closed recording whose log has many segments and some definitions late in it.
fn recording(dir: &Path) -> Recording {
    let mut synth = Synth::new();
    synth.live(|ticks| {
        Control::LogFormat(LogFormat {
            ticks,
            probe: 1,
            parts: vec![LogPart::Value(LogValue {
                expression: "round".into(),
                word: 0,
                kind: LogKind::Unsigned,
                bytes: 8,
            })],
        })
    });
    for round in 0..60u64 {
        if round > 0 {
            synth.thread(2).syscall_end(1, SYSCALL_STACK, &[]);
        }
        let function = match round % 10 {
            0 => synth.function(&format!("f{round}")),
            _ => 0,
        };
        for tid in 1..=2u32 {
            let top = TOP + u64::from(tid - 1) * 0x10_0000 - 8 - (round % 4) * 64;
            synth
                .thread(tid)
                .enter(function, top)
                .enter(function, top - 256);
            synth.leave_value(top - 256, round).output(1, b"x");
        }
        synth.logpoint(1, &[round]);
        synth.syscall(round, [round; 6], SYSCALL_STACK, &[]);
        if round % 7 == 0 {
            synth.live(|ticks| Control::Pause(Box::new(synth::pause(ticks, 2, PauseReason::Step))));
        }
        if round % 3 == 0 {
            synth.watermark();
        }
    }
    let Created { open, log } =
        OpenRecording::create(&dir.join("r"), OnTaken::Number, synth::manifest()).unwrap();
    drop(log);
    let log_dir = open.recording().log_dir();
    fs::remove_file(segment_path(&log_dir, 0)).unwrap();
    let id = open.recording().manifest().recording_id;
    let mut log = LogWriter::create_on(Disk, &log_dir, id, SEGMENT_LEN).unwrap();
    synth.append_to(&mut log).unwrap();
    let recording = open.close(log.close().unwrap()).unwrap();
    assert!(segments(&recording.log_dir()).unwrap().len() > 8);
    recording
}

const OPTIONS: SealOptions = SealOptions {
    part_calls: 25,
    part_events: 1000,
    part_log_bytes: 1 << 30,
    keep_log: false,
};

/// Seals as a recorder does, in steps, until the end or a crash.
fn seal(recording: &Recording) -> Result<Sealed> {
    let mut sealer = Sealer::own(recording, OPTIONS)?;
    while !sealer.step(13)?.caught_up {}
    sealer.finish(Ending::Close, |_| {})
}

fn everything(recording: &Recording, sealed: &Sealed) -> Everything {
    let mut all = Everything::default();
    for part in &sealed.parts {
        all.calls.extend(read_calls(&part.calls.path).unwrap());
        all.events.extend(read_events(&part.events.path).unwrap());
        all.states.extend(states_of(part));
        assert_sums_hold(&part.part, &recording.columns_dir());
    }
    let header = recording.file_header(FileKind::Definitions);
    for file in &sealed.definitions {
        definitions::read_file(&file.path, header, file.len, |d| all.definitions.push(d)).unwrap();
    }
    all
}

fn states_of(part: &SealedPart) -> Vec<ReadState> {
    match part.part.states {
        0 => Vec::new(),
        _ => read_states(&part.states.path).unwrap(),
    }
}

fn assert_sums_hold(part: &Part, dir: &Path) {
    for (path, sum) in [
        (Part::calls_path(dir, part.number), &part.calls_file),
        (Part::events_path(dir, part.number), &part.events_file),
    ]
    .into_iter()
    .chain(
        part.states_file
            .as_ref()
            .map(|sum| (Part::states_path(dir, part.number), sum)),
    ) {
        let bytes = fs::read(path).unwrap();
        assert_eq!(
            (bytes.len() as u64, crc32c::crc32c(&bytes)),
            (sum.len, sum.crc32c)
        );
    }
}

/// Seals with a crash at moment `at`. Returns whether there was one.
fn crash_at(recording: &Recording, at: u32) -> bool {
    crash::arm(Some(at));
    let crashed = match seal(recording) {
        Ok(_) => false,
        Err(Error::Io {
            action: "crash at", ..
        }) => true,
        Err(error) => panic!("at {at}: {error}"),
    };
    crash::arm(None);
    crashed
}

/// Changes uncounted files as a power failure may.
fn damage_what_is_not_counted(recording: &Recording) {
    let header = recording.file_header(FileKind::SealState);
    let state = SealState::read(&recording.seal_state_path(), header).unwrap();
    for entry in fs::read_dir(recording.columns_dir()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let counted = |part: &Part| Part::number_from_name(&name) == Some(part.number);
        if Part::number_from_name(&name).is_some() && !state.parts.iter().any(counted) {
            fs::write(&path, b"half").unwrap();
        }
    }
    let path = recording.definitions_path();
    if let Ok(mut bytes) = fs::read(&path) {
        bytes.truncate(state.definitions_len as usize);
        bytes.extend_from_slice(b"half a frame");
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_crash_at_any_moment_is_recoverable() {
    let dir = tempfile::tempdir().unwrap();
    let unharmed = recording(dir.path());
    crash::arm(None);
    let sealed = seal(&unharmed).unwrap();
    let moments = crash::passed();
    let expected = everything(&unharmed, &sealed);
    assert!(
        sealed.parts.len() > 3 && moments > 40,
        "{} parts, {moments} moments",
        sealed.parts.len()
    );
    assert_eq!(expected.definitions.len(), 6);
    let logged = expected.events.iter().filter(|e| e.kind == "logpoint");
    let messages: Vec<_> = logged.filter_map(|e| e.text.clone()).collect();
    let rounds: Vec<_> = (0..60).map(|round| round.to_string()).collect();
    assert_eq!(messages, rounds, "formats are carried from part to part");
    assert_eq!(expected.states.len(), 9);
    for at in in_turn(0..moments) {
        let recording = recording(dir.path());
        assert!(crash_at(&recording, at), "no moment {at}");
        damage_what_is_not_counted(&recording);
        let sealed = seal(&recording).unwrap();
        assert!(
            everything(&recording, &sealed) == expected,
            "after a crash at moment {at}"
        );
        let left = segments(&recording.log_dir()).unwrap();
        assert!(left.is_empty(), "after a crash at moment {at}: {left:?}");
    }
}

#[test]
fn crashes_while_recovering_are_recoverable_too() {
    let dir = tempfile::tempdir().unwrap();
    let unharmed = recording(dir.path());
    crash::arm(None);
    let expected = everything(&unharmed, &seal(&unharmed).unwrap());
    for first in (0..40).step_by(10) {
        let recording = recording(dir.path());
        crash_at(&recording, first);
        let mut crashes = 0;
        while crash_at(&recording, crashes) {
            damage_what_is_not_counted(&recording);
            crashes += 1;
        }
        let sealed = seal(&recording).unwrap();
        assert!(
            everything(&recording, &sealed) == expected,
            "first crash at moment {first}"
        );
    }
}

#[test]
fn a_reader_of_a_crashed_sealing_sees_everything_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let unharmed = recording(dir.path());
    crash::arm(None);
    let expected = everything(&unharmed, &seal(&unharmed).unwrap());
    for at in (0..40).step_by(3) {
        let recording = recording(dir.path());
        crash_at(&recording, at);
        let aside = tempfile::tempdir().unwrap();
        let sealer = Sealer::aside(&recording, aside.path(), OPTIONS).unwrap();
        let sealed = sealer.finish(Ending::Close, |_| {}).unwrap();
        let mut found = Everything::default();
        for part in &sealed.parts {
            found.calls.extend(read_calls(&part.calls.path).unwrap());
            found.events.extend(read_events(&part.events.path).unwrap());
            found.states.extend(states_of(part));
        }
        let header = recording.file_header(FileKind::Definitions);
        for file in &sealed.definitions {
            let read = definitions::read_file(&file.path, header, file.len, |d| {
                found.definitions.push(d);
            });
            read.unwrap();
        }
        assert!(found == expected, "after a crash at moment {at}");
    }
}

#[test]
fn a_deep_recursion_is_carried_from_part_to_part() {
    const DEPTH: u64 = 50_000;
    let dir = tempfile::tempdir().unwrap();
    crash::arm(None);
    let mut synth = Synth::new();
    synth.thread(1);
    for depth in 0..DEPTH {
        synth.enter(depth as u32 % 100, TOP - 8 - depth * 16);
    }
    let inner = TOP - 8 - DEPTH * 16;
    for _ in 0..3 {
        synth.enter(7, inner).leave(inner).watermark();
    }
    for depth in (0..DEPTH).rev() {
        synth.leave_value(TOP - 8 - depth * 16, depth);
    }
    let recording = synth.record(&dir.path().join("deep")).unwrap();
    let options = SealOptions {
        part_calls: 1,
        ..OPTIONS
    };
    let mut sealer = Sealer::own(&recording, options).unwrap();
    while sealer.state().parts.len() < 2 {
        sealer.step(1).unwrap();
    }
    drop(sealer);
    let state_len = fs::metadata(recording.seal_state_path()).unwrap().len();
    assert!(state_len < DEPTH * 20, "{state_len} bytes");
    let sealed = Sealer::own(&recording, options)
        .unwrap()
        .finish(Ending::Close, |_| {})
        .unwrap();
    let found = everything(&recording, &sealed);
    assert_eq!(found.calls.len() as u64, DEPTH + 3);
    let outermost = found.calls.last().unwrap();
    assert_eq!(
        (outermost.start_seq, outermost.depth, outermost.rax),
        (1, 0, Some(0))
    );
    assert!(
        found.calls[3..]
            .iter()
            .all(|call| call.rax == Some(u64::from(call.depth)))
    );
}

#[test]
fn sealing_a_sealed_recording_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(dir.path());
    crash::arm(None);
    let first = seal(&recording).unwrap();
    assert_eq!(seal(&recording).unwrap(), first);
}

#[test]
fn states_are_as_they_were_when_the_log_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    crash::arm(None);
    let recording = synth::debugged().record(&dir.path().join("run")).unwrap();
    let sealed = seal(&recording).unwrap();
    assert!(segments(&recording.log_dir()).unwrap().is_empty());
    let all = everything(&recording, &sealed);
    let reasons: Vec<_> = all.states.iter().map(|s| s.reason.as_str()).collect();
    assert_eq!(reasons, ["breakpoint", "step", "watch", "signal"]);
    let paused = all.events.iter().filter(|e| e.kind == "pause");
    let seqs: Vec<_> = paused.map(|e| e.seq).collect();
    let state_seqs: Vec<_> = all.states.iter().map(|s| s.seq).collect();
    assert_eq!(seqs, state_seqs);
    let made = synth::pause(0, 1, PauseReason::Step);
    for state in &all.states[..3] {
        assert_eq!(state.registers, made.registers);
        assert_eq!(state.stack_addr, Some(made.stack_addr));
        assert_eq!(state.stack.as_deref(), Some(made.stack.as_slice()));
    }
    let unknown = &all.states[3];
    assert_eq!(
        (&unknown.registers, unknown.stack_addr, &unknown.stack),
        (&None, None, &None)
    );
}

#[test]
fn a_part_without_pauses_has_no_file_of_states() {
    let dir = tempfile::tempdir().unwrap();
    crash::arm(None);
    let mut synth = Synth::new();
    synth.thread(1).logpoint(9, &[1]);
    let recording = synth.record(&dir.path().join("run")).unwrap();
    let sealed = seal(&recording).unwrap();
    let part = &sealed.parts[0];
    assert_eq!((part.part.states, &part.part.states_file), (0, &None));
    assert!(!part.states.path.exists());
    let events = read_events(&part.events.path).unwrap();
    let logged = events.iter().find(|e| e.kind == "logpoint").unwrap();
    assert_eq!((&logged.text, logged.probe), (&None, Some(9)), "no format");
    assert_eq!(logged.bytes.as_deref(), Some(&1u64.to_le_bytes()[..]));
}

#[test]
fn the_log_stays_when_it_is_to_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(dir.path());
    crash::arm(None);
    let before = segments(&recording.log_dir()).unwrap();
    let options = SealOptions {
        keep_log: true,
        ..OPTIONS
    };
    let sealer = Sealer::own(&recording, options).unwrap();
    sealer.finish(Ending::Close, |_| {}).unwrap();
    assert_eq!(segments(&recording.log_dir()).unwrap(), before);
}

#[test]
fn progress_ends_with_all_bytes_done() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(dir.path());
    crash::arm(None);
    let sealer = Sealer::own(&recording, OPTIONS).unwrap();
    let mut seen = Vec::new();
    sealer
        .finish(Ending::Close, |progress| seen.push(*progress))
        .unwrap();
    let last = seen.last().unwrap();
    assert!(last.bytes_done > 10_000 && last.events > 300, "{last:?}");
    // Bytes after the last frame of the last segment, and headers and last frames of segments, are not frames.
    assert!(last.bytes_total - last.bytes_done < 200, "{last:?}");
    assert!(seen.is_sorted_by_key(|progress| progress.bytes_done));
}

/// Interrupted sealing loses nothing: the next sealer continues.
#[test]
fn sealing_that_was_left_goes_on() {
    let whole = tempfile::tempdir().unwrap();
    let recording_of = recording(whole.path());
    let expected = everything(&recording_of, &seal(&recording_of).unwrap());
    let mut looks = 0;
    loop {
        let dir = tempfile::tempdir().unwrap();
        let recording = recording(dir.path());
        let mut left = looks;
        let sealer = Sealer::own(&recording, OPTIONS).unwrap();
        let sealed = sealer.finish_while(Ending::Close, |_| {
            left -= 1;
            left >= 0
        });
        let has_ended = match sealed {
            Ok(_) => true,
            Err(Error::SealingLeft) => false,
            Err(other) => panic!("{other}"),
        };
        if !has_ended {
            let aside = tempfile::tempdir().unwrap();
            let reader = crate::Reader::open(&dir.path().join("r"), aside.path()).unwrap();
            assert_eq!(
                reader.events(),
                seal(&recording).unwrap().events,
                "left after {looks}"
            );
            drop(reader);
            assert_eq!(fs::read_dir(aside.path()).unwrap().count(), 0);
            let aside = tempfile::tempdir().unwrap();
            let left = crate::Reader::open_while(&dir.path().join("r"), aside.path(), |_| false);
            // A completely sealed recording is not sealed again.
            assert!(matches!(left, Ok(_) | Err(Error::SealingLeft)), "{left:?}");
            drop(left);
            assert_eq!(
                fs::read_dir(aside.path()).unwrap().count(),
                0,
                "nothing stays"
            );
        }
        let sealed = seal(&recording).unwrap();
        assert_eq!(
            everything(&recording, &sealed),
            expected,
            "left after {looks}"
        );
        if has_ended {
            break;
        }
        looks += 1;
    }
    assert!(looks > 0);
}

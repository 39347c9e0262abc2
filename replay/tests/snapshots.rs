//! What a copy of memory shows is known only while the program is stopped: after a copy for a pause, until a thread is resumed;
//! after other copies, not at all, although no event marks that the program continues.

use replay::{Seen, State, Timeline};
use store::control::{Control, PauseReason, Snapshot, SnapshotReason};
use store::memory::{PAGE_LEN, Region, SnapshotWriter};
use store::storage::Disk;
use store::synth::{Synth, pause};

const THREAD: u32 = 100;
const PAGE: u64 = 0x7000_0000_0000;

/// A copy of memory for this reason.
fn copy(synth: &mut Synth, id: u32, reason: SnapshotReason) {
    synth.live(|ticks| {
        Control::Snapshot(Snapshot {
            ticks,
            id,
            reason,
            covered: PAGE_LEN,
            changed: PAGE_LEN,
        })
    });
}

fn note(synth: &mut Synth) {
    synth.live(|ticks| Control::Note {
        ticks,
        text: "look here".into(),
    });
}

fn stop(synth: &mut Synth) {
    synth.live(|ticks| Control::Pause(Box::new(pause(ticks, THREAD, PauseReason::Breakpoint))));
}

fn resume(synth: &mut Synth) {
    synth.live(|ticks| Control::Resume {
        ticks,
        tid: THREAD,
        action: "continue".into(),
    });
}

/// Returns for every event whether memory is known there, and which copy of it is seen: the number in the page.
fn told(synth: &Synth, copies: u32) -> Vec<(String, bool, u8)> {
    told_of("", synth, copies)
}

/// The same for memory that the kernel calls `name`.
fn told_of(name: &str, synth: &Synth, copies: u32) -> Vec<(String, bool, u8)> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let recording = synth.record(&path).unwrap();
    for id in 0..copies {
        let of = recording.manifest().recording_id;
        let mut writer = SnapshotWriter::create(&Disk, recording.dir(), of, id).unwrap();
        writer.append(PAGE, &[id as u8; PAGE_LEN as usize]).unwrap();
        let region = Region {
            addr: PAGE,
            len: PAGE_LEN,
            zeroed: true,
            name: name.to_owned(),
        };
        writer.finish(vec![region]).unwrap();
    }
    let timeline = Timeline::open(&path, dir.path()).unwrap();
    let mut told = Vec::new();
    for seq in 0..timeline.events() {
        let state = State::new(&timeline, seq, THREAD).unwrap();
        let runs = state.memory(PAGE + 8, 1).unwrap();
        let kind = timeline.event(seq).unwrap().kind().to_owned();
        match &runs[0].bytes {
            Seen::Known { value, .. } => told.push((kind, true, value[0])),
            Seen::Stale { value, .. } => told.push((kind, false, value[0])),
            Seen::Unknown(_) => {}
        }
    }
    told
}

fn list(told: &[(String, bool, u8)]) -> Vec<(&str, bool, u8)> {
    told.iter()
        .filter(|(kind, ..)| kind != "thread_start")
        .map(|(kind, is_known, value)| (kind.as_str(), *is_known, *value))
        .collect()
}

#[test]
fn behind_a_copy_for_a_pause_memory_is_known_until_a_thread_goes_on() {
    let mut synth = Synth::new();
    let function = synth.function("work");
    synth.thread(THREAD).enter(function, PAGE + 0x1000);
    copy(&mut synth, 0, SnapshotReason::Pause);
    stop(&mut synth);
    note(&mut synth);
    resume(&mut synth);
    note(&mut synth);
    let told = told(&synth, 1);
    assert_eq!(
        list(&told),
        [
            ("snapshot", true, 0),
            ("pause", true, 0),
            ("note", true, 0),
            ("resume", false, 0),
            ("note", false, 0),
        ]
    );
}

#[test]
fn behind_other_copies_the_program_goes_on_without_an_event() {
    let mut synth = Synth::new();
    let function = synth.function("work");
    copy(&mut synth, 0, SnapshotReason::Start);
    synth.thread(THREAD);
    note(&mut synth);
    synth.enter(function, PAGE + 0x1000);
    copy(&mut synth, 1, SnapshotReason::Interval);
    note(&mut synth);
    // A stop whose copy was not due.
    stop(&mut synth);
    let told = told(&synth, 2);
    assert_eq!(
        list(&told),
        [
            ("snapshot", true, 0),
            ("note", false, 0),
            ("enter", false, 0),
            ("snapshot", true, 1),
            ("note", false, 1),
            ("pause", false, 1),
        ]
    );
}

#[test]
fn a_copy_at_its_time_does_not_end_a_pause() {
    let mut synth = Synth::new();
    let function = synth.function("work");
    synth.thread(THREAD).enter(function, PAGE + 0x1000);
    copy(&mut synth, 0, SnapshotReason::Pause);
    stop(&mut synth);
    copy(&mut synth, 1, SnapshotReason::Interval);
    note(&mut synth);
    resume(&mut synth);
    copy(&mut synth, 2, SnapshotReason::Interval);
    note(&mut synth);
    let told = told(&synth, 3);
    assert_eq!(
        list(&told),
        [
            ("snapshot", true, 0),
            ("pause", true, 0),
            ("snapshot", true, 1),
            ("note", true, 1),
            ("resume", false, 1),
            ("snapshot", true, 2),
            ("note", false, 2),
        ]
    );
}

/// Heap blocks are newer than the copy that was made before the program ran.
#[test]
fn what_the_heap_held_before_the_program_ran_is_no_value_of_later() {
    for (reason, first) in [
        (SnapshotReason::Start, None),
        (SnapshotReason::Attached, Some(("note", false, 0))),
    ] {
        let mut synth = Synth::new();
        copy(&mut synth, 0, reason);
        synth.thread(THREAD);
        note(&mut synth);
        copy(&mut synth, 1, SnapshotReason::Interval);
        note(&mut synth);
        let told = told_of("[heap]", &synth, 2);
        let mut expected = vec![("snapshot", true, 0)];
        expected.extend(first);
        expected.extend([("snapshot", true, 1), ("note", false, 1)]);
        assert_eq!(list(&told), expected);
    }
}

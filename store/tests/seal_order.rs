//! Goal: the order of events is the stated one, the same log always gives the same rows, and what a reader sees of a
//! live recording stays true. Method: synthetic logs, sealed in different ways, and compared.

mod seal_support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use seal_support::{Rows, TOP, folder, parts_of, record, rows, seal, story};
use store::Recording;
use store::control::Control;
use store::log::{LogWriter, segment_path};
use store::recording::{Created, OnTaken, OpenRecording};
use store::seal::{Ending, SealOptions, Sealer, seal_tail};
use store::storage::Disk;
use store::synth::{self, Synth, SynthFrame};
use store::wire::{self, EnterFields, EnterForm, Leave};

/// Returns the frames of a program with three threads that call and return, `rounds` times, with watermarks.
fn busy_program(rounds: u64) -> Vec<SynthFrame> {
    let mut synth = Synth::new();
    let f = synth.function("f");
    let g = synth.function("g");
    for round in 0..rounds {
        for tid in 1..=3u32 {
            let top = TOP + u64::from(tid - 1) * 0x10_0000 - 8;
            synth.thread(tid).enter(f, top - 64 * (round % 3));
            synth.enter(g, top - 512).leave_value(top - 512, round);
            if round % 3 == 2 {
                synth.leave(top);
            }
        }
        if round % 2 == 1 {
            synth.watermark();
        }
        if round % 7 == 0 {
            synth.output(1, b"line\n");
        }
    }
    synth.frames()
}

/// Returns the bytes of all files in a recording's columns folder but the state.
fn column_files(recording: &Recording) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(recording.columns_dir()).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        (name, fs::read(path).unwrap())
    });
    files.filter(|(name, _)| name != "seal.state").collect()
}

#[test]
fn sealing_twice_gives_the_same_bytes_in_steps_of_any_size() {
    let dir = folder();
    let frames = busy_program(200);
    let sealed = [1, 7, 1000, u64::MAX].map(|step| {
        let recording = record(dir.path(), &frames);
        let rows = seal(&recording, parts_of(90), step);
        (rows, column_files(&recording))
    });
    assert!(
        sealed[0].1.len() > 8,
        "several parts: {:?}",
        sealed[0].1.keys()
    );
    for other in &sealed[1..] {
        assert_eq!(sealed[0].0, other.0);
        assert!(sealed[0].1 == other.1, "the files differ");
    }
}

#[test]
fn rows_do_not_depend_on_the_size_of_parts() {
    let dir = folder();
    let frames = busy_program(100);
    let of = |calls| seal(&record(dir.path(), &frames), parts_of(calls), 50);
    let whole = of(u64::MAX);
    for calls in [1, 10, 100] {
        assert_eq!(of(calls), whole, "parts of {calls} calls");
    }
}

#[test]
fn a_sealer_that_stops_anywhere_is_continued_by_the_next_one() {
    let dir = folder();
    let frames = busy_program(60);
    let expected = seal(&record(dir.path(), &frames), parts_of(20), u64::MAX);
    for steps in 0..40 {
        let recording = record(dir.path(), &frames);
        let mut sealer = Sealer::own(&recording, parts_of(20)).unwrap();
        for _ in 0..steps {
            sealer.step(10).unwrap();
        }
        drop(sealer);
        assert_eq!(
            seal(&recording, parts_of(20), 10),
            expected,
            "stopped after {steps} steps"
        );
    }
}

#[test]
fn a_growing_log_is_followed_frame_by_frame() {
    let dir = folder();
    let frames = busy_program(40);
    let expected = seal(&record(dir.path(), &frames), parts_of(20), u64::MAX);
    let path = dir.path().join("growing");
    let Created { open, mut log } =
        OpenRecording::create(&path, OnTaken::Refuse, synth::manifest()).unwrap();
    let mut sealer = Sealer::own(open.recording(), parts_of(20)).unwrap();
    for frame in &frames {
        assert!(sealer.step(1000).unwrap().caught_up);
        synth::append_frame(&mut log, frame).unwrap();
        log.settle().unwrap();
    }
    let recording = open.close(log.close().unwrap()).unwrap();
    let sealed = sealer.finish(Ending::Close, |_| {}).unwrap();
    assert_eq!(rows(&sealed), expected);
    assert_eq!(fs::read_dir(recording.log_dir()).unwrap().count(), 0);
}

#[test]
fn what_a_reader_sees_of_a_live_recording_stays_true() {
    let dir = folder();
    let frames = busy_program(40);
    let finished = seal(&record(dir.path(), &frames), parts_of(20), u64::MAX);
    let path = dir.path().join("live");
    let Created { open, mut log } =
        OpenRecording::create(&path, OnTaken::Refuse, synth::manifest()).unwrap();
    let mut sealer = Sealer::own(open.recording(), parts_of(20)).unwrap();
    let mut seen = 0;
    for (number, frame) in frames.iter().enumerate() {
        synth::append_frame(&mut log, frame).unwrap();
        log.settle().unwrap();
        if number % 3 == 0 {
            sealer.step(17).unwrap();
        }
        let live = Recording::open(&path).unwrap();
        let aside = folder();
        let before = listing(live.dir());
        let sealed = seal_tail(&live, aside.path(), SealOptions::default(), |_| true).unwrap();
        assert_eq!(listing(live.dir()), before, "a reader writes nothing");
        assert!(sealed.events >= seen, "seq never goes back");
        seen = sealed.events;
        assert_is_beginning(&rows(&sealed), &finished, sealed.events);
    }
    assert!(seen > 300, "{seen} events were seen before the end");
}

/// Asserts that `live` shows the first `events` events of `finished` and nothing else.
fn assert_is_beginning(live: &Rows, finished: &Rows, events: u64) {
    let begun = finished.calls.iter().filter(|call| call.start_seq < events);
    let mut expected: Vec<_> = begun.cloned().collect();
    for call in &mut expected {
        if call.end_seq.is_none_or(|seq| seq >= events) {
            call.end_seq = None;
            call.dur_ns = -1;
            (call.unwound, call.open_at_end) = (false, false);
            (call.rax, call.rdx) = (None, None);
            // Callees that ended later do not count yet.
            let callees = finished
                .calls
                .iter()
                .filter(|c| c.parent_seq == Some(call.start_seq));
            let ended = callees.filter(|c| c.end_seq.is_some_and(|seq| seq < events));
            call.child_ns = ended.map(|c| c.dur_ns).sum();
        }
    }
    expected.sort_by_key(|call| (call.end_seq.unwrap_or(u64::MAX), call.start_seq));
    assert_eq!(live.calls, expected);
    let expected: Vec<_> = finished
        .events
        .iter()
        .filter(|e| e.seq < events)
        .cloned()
        .collect();
    assert_eq!(live.events, expected);
}

fn listing(dir: &Path) -> BTreeMap<std::path::PathBuf, (u64, std::time::SystemTime)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            }
            files.insert(entry.path(), (meta.len(), meta.modified().unwrap()));
        }
    }
    files
}

#[test]
fn readers_stay_right_while_the_recorder_seals_and_drops_segments() {
    let dir = folder();
    let frames = busy_program(150);
    let finished = seal(&record(dir.path(), &frames), parts_of(20), u64::MAX);
    let Created { open, log } =
        OpenRecording::create(&dir.path().join("race"), OnTaken::Refuse, synth::manifest())
            .unwrap();
    drop(log);
    let recording = open.recording();
    fs::remove_file(segment_path(&recording.log_dir(), 0)).unwrap();
    let id = recording.manifest().recording_id;
    let mut log = LogWriter::create_on(Disk, &recording.log_dir(), id, 3000).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut snapshots = 0;
            while !done.load(Ordering::Acquire) || snapshots == 0 {
                let aside = folder();
                let live = Recording::open(recording.dir()).unwrap();
                let sealed = seal_tail(&live, aside.path(), parts_of(30), |_| true).unwrap();
                assert_is_beginning(&rows(&sealed), &finished, sealed.events);
                snapshots += 1;
            }
        });
        let mut sealer = Sealer::own(recording, parts_of(20)).unwrap();
        for frame in &frames {
            synth::append_frame(&mut log, frame).unwrap();
            log.settle().unwrap();
            sealer.step(40).unwrap();
        }
        log.close().unwrap();
        let sealed = sealer.finish(Ending::Close, |_| {}).unwrap();
        assert_eq!(rows(&sealed), finished);
        done.store(true, Ordering::Release);
        reader.join().unwrap();
    });
}

#[test]
fn an_interrupted_recording_ends_with_its_last_whole_frame() {
    let dir = folder();
    let mut synth = Synth::new();
    synth
        .thread(1)
        .enter(0, TOP - 8)
        .watermark()
        .enter(1, TOP - 64)
        .flush()
        .leave(TOP - 64);
    let recording = synth.record_interrupted(&dir.path().join("cut")).unwrap();
    let segment = store::log::segment_path(&recording.log_dir(), 0);
    let len = fs::metadata(&segment).unwrap().len();
    let file = fs::File::options().write(true).open(&segment).unwrap();
    file.set_len(len - 3).unwrap();
    let aside = folder();
    let sealed = seal_tail(&recording, aside.path(), SealOptions::default(), |_| true).unwrap();
    assert!(sealed.torn_bytes > 0);
    let rows = rows(&sealed);
    let unfinished: Vec<_> = rows
        .calls
        .iter()
        .map(|c| (c.function_id, c.end_seq))
        .collect();
    assert_eq!(unfinished, [(0, None), (1, None)]);
    let last = rows.events.last().unwrap();
    assert_eq!(
        (last.kind.as_str(), last.text.as_deref()),
        ("gap", Some("torn"))
    );
    assert_eq!(last.value, None, "how many records were lost is not known");
}

#[test]
fn a_live_reader_does_not_number_what_is_newer_than_the_watermark() {
    let dir = folder();
    let path = dir.path().join("live");
    let Created { open, mut log } =
        OpenRecording::create(&path, OnTaken::Refuse, synth::manifest()).unwrap();
    let mut synth = Synth::new();
    synth
        .thread(1)
        .enter(0, TOP - 8)
        .watermark()
        .leave(TOP - 8)
        .enter(1, TOP - 8);
    synth.append_to(&mut log).unwrap();
    log.settle().unwrap();
    let aside = folder();
    let sealed = seal_tail(
        open.recording(),
        aside.path(),
        SealOptions::default(),
        |_| true,
    )
    .unwrap();
    assert_eq!(sealed.events, 2, "the thread's start and the enter");
    assert_eq!(rows(&sealed).calls[0].end_seq, None);
}

#[test]
fn at_one_moment_control_events_come_first_and_then_the_lower_ring() {
    let story = story(|s| {
        s.thread(1).thread(2).thread(3).watermark();
        for tid in [3, 1, 2] {
            s.thread(tid)
                .at(100)
                .enter(tid, TOP + u64::from(tid - 1) * 0x10_0000 - 8);
        }
        s.flush().control(Control::Note {
            ticks: 100,
            text: "now".into(),
        });
    });
    expect_test::expect![[r#"
        0 t1 thread_start at 10 [synth-1]
        1 t2 thread_start at 20 [synth-2]
        2 t3 thread_start at 30 [synth-3]
        3 note at 100 [now]
        4 t1 f1 enters at 100 depth 0 unfinished
        5 t2 f2 enters at 100 depth 0 unfinished
        6 t3 f3 enters at 100 depth 0 unfinished
    "#]]
    .assert_eq(&story);
}

#[test]
fn a_clock_that_runs_backwards_stands_still_instead() {
    let story = story(|s| {
        s.thread(1)
            .at(50)
            .enter(0, TOP - 8)
            .at(30)
            .enter(1, TOP - 64)
            .at(40)
            .leave(TOP - 64);
        s.at(60).leave(TOP - 8);
    });
    expect_test::expect![[r#"
        0 t1 thread_start at 10 [synth-1]
        1 t1 f0 enters at 50 depth 0
        2 t1 f1 enters at 50 depth 1 in 1
        3   2 returns 0 after 0, callees 0
        4   1 returns 0 after 10, callees 0
    "#]]
    .assert_eq(&story);
}

#[test]
fn a_record_older_than_the_watermark_counts_as_of_the_watermark() {
    let story = story(|s| {
        s.thread(1).at(50).enter(0, TOP - 8).watermark_at(100);
        s.thread(2)
            .at(70)
            .enter(1, TOP + 0x10_0000 - 8)
            .watermark_at(90);
        s.thread(1).at(101).leave(TOP - 8);
    });
    expect_test::expect![[r#"
        0 t1 thread_start at 10 [synth-1]
        1 t1 f0 enters at 50 depth 0
        2 t2 thread_start at 100 [synth-2]
        3 t2 f1 enters at 100 depth 0 unfinished
        4   1 returns 0 after 51, callees 0
    "#]]
    .assert_eq(&story);
}

#[test]
fn the_next_tenant_of_a_ring_is_another_thread() {
    let story = story(|s| {
        s.thread_on(1, 0).enter(0, TOP - 8).flush();
        s.thread_on(2, 0)
            .enter(1, TOP - 8)
            .leave(TOP - 8)
            .watermark();
        let ticks = s.ticks() + 1;
        s.control(Control::ThreadEnd {
            ticks,
            ring: 0,
            tenancy: 0,
            tid: 1,
        });
    });
    expect_test::expect![[r#"
        0 t1 thread_start at 10 [synth-1]
        1 t1 f0 enters at 20 depth 0
        2 t2 thread_start at 30 [synth-2]
        3 t2 f1 enters at 40 depth 0
        4   3 returns 0 after 10, callees 0
        5   1 open at the end after 41, callees 0
        6 t1 thread_exit at 61
    "#]]
    .assert_eq(&story);
}

#[test]
fn ten_thousand_short_threads_on_few_rings_are_told_apart() {
    let dir = folder();
    let mut synth = Synth::new();
    for tid in 0..10_000u32 {
        let ring = tid % 4;
        synth.thread_on(tid + 1, ring);
        let slot = TOP + u64::from(ring) * 0x10_0000 - 8;
        synth
            .enter(0, slot)
            .leave_value(slot, u64::from(tid))
            .thread_exit();
        if tid % 50 == 0 {
            synth.watermark();
        }
    }
    let rows = seal(&record(dir.path(), &synth.frames()), parts_of(1000), 700);
    assert_eq!(rows.calls.len(), 10_000);
    for call in &rows.calls {
        assert_eq!(call.rax, call.tid.map(|tid| u64::from(tid) - 1));
    }
    let ends = rows
        .events
        .iter()
        .filter(|event| event.kind == "thread_exit");
    assert_eq!(ends.count(), 10_000);
}

#[test]
fn many_threads_merge_by_time() {
    let dir = folder();
    let mut frames = Vec::new();
    let threads = 64u64;
    for round in 0..20u64 {
        for thread in 0..threads {
            let mut bytes = Vec::new();
            let slot = 0x1000 + round * 8;
            for i in 0..10 {
                let ticks = round * 100_000 + i * 2_000 + (thread * 7919) % threads * 10;
                let fields = EnterFields {
                    form: EnterForm::Hooked,
                    function_id: thread as u32,
                    slot,
                    return_addr: 1,
                    args: [ticks; 6],
                    xmm: &[],
                };
                wire::push_enter(&mut bytes, ticks, &fields);
                let leave = Leave {
                    slot,
                    rax: ticks,
                    rdx: 0,
                    xmm: None,
                };
                wire::push_leave(&mut bytes, ticks + 5, &leave);
            }
            frames.push(SynthFrame::Block {
                ring: thread as u32,
                tenancy: 0,
                bytes,
            });
        }
        frames.push(SynthFrame::Watermark(round * 100_000));
    }
    let rows = seal(&record(dir.path(), &frames), parts_of(500), 999);
    assert_eq!(rows.calls.len() as u64, 20 * threads * 10);
    assert!(
        rows.calls
            .iter()
            .all(|call| call.ts_ns as u64 == call.args[0] && call.dur_ns == 5)
    );
    assert!(rows.calls.is_sorted_by_key(|call| call.ts_ns));
    assert!(rows.calls.is_sorted_by_key(|call| call.end_seq));
}

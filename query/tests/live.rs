//! Goal: a recording answers at any moment: sealed or not, closed, being written, or abandoned by a recorder that
//! died. Method: the same events in each of these states; and a recorder that seals and drops its log while others
//! open it.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Asked, SLOT, ask, shop};
use query::Session;
use store::Reader;
use store::recording::{Created, OnTaken, OpenRecording, Recording, RecordingState};
use store::seal::{Ending, SealOptions, Sealer};
use store::synth::{self, Synth};

const EVERYTHING: &str = "SELECT * FROM events ORDER BY seq";
const CALLS: &str = "SELECT * FROM calls ORDER BY start_seq";

/// Options under which every few events make a part.
fn small_parts() -> SealOptions {
    SealOptions {
        part_calls: 2,
        part_events: 2,
        ..SealOptions::default()
    }
}

#[test]
fn a_sealed_recording_answers_as_an_unsealed_one() {
    let unsealed = Asked::new(|path| shop().record(path));
    for options in [SealOptions::default(), small_parts()] {
        let sealed = Asked::new(|path| {
            let recording = shop().record(path)?;
            Sealer::own(&recording, options)?.finish(Ending::Close, |_| {})?;
            Ok(recording)
        });
        assert_eq!(sealed.ask(EVERYTHING), unsealed.ask(EVERYTHING));
        assert_eq!(sealed.ask(CALLS), unsealed.ask(CALLS));
        assert_eq!(sealed.session.extent(), unsealed.session.extent());
    }
}

#[test]
fn unfinished_calls_of_an_interrupted_recording_are_shown() {
    let mut synth = Synth::new();
    let (f, g) = (synth.function("f"), synth.function("g"));
    synth
        .thread(7)
        .enter(f, SLOT)
        .enter(g, SLOT - 64)
        .leave_value(SLOT - 64, 5);
    let asked = Asked::new(|path| synth.record_interrupted(path));
    assert_eq!(asked.session.extent().state, RecordingState::Interrupted);
    assert_eq!(
        asked.ask(
            "SELECT function, end_seq, dur_ns, self_ns, ret, unwound FROM calls ORDER BY start_seq"
        ),
        "f | NULL | -1 | -1 | NULL | false\ng | 3 | 10 | 10 | 5 | false\n"
    );
    assert_eq!(
        asked.ask("SELECT kind, function FROM events ORDER BY seq"),
        "thread_start | NULL\nenter | f\nenter | g\nleave | g\n"
    );
}

#[test]
fn an_empty_recording_has_empty_tables() {
    let asked = Asked::new(|path| Synth::new().record(path));
    // The table of runs has the recording itself.
    for table in query::TABLES.iter().filter(|table| table.name != "runs") {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        if query::runs_again(table.name) {
            let refused = asked.ask(&sql);
            assert!(
                refused.contains("needs a recording of every instruction"),
                "{refused}"
            );
            continue;
        }
        assert_eq!(asked.ask(&sql), "0\n", "{}", table.name);
        assert_eq!(asked.ask(&format!("SELECT * FROM {}", table.name)), "");
    }
    assert_eq!(
        asked.ask("SELECT function, sum(dur_ns) FROM calls GROUP BY function"),
        ""
    );
}

#[test]
fn a_live_recording_shows_what_is_older_than_the_watermark() {
    let dir = tempfile::tempdir().unwrap();
    let created =
        OpenRecording::create(&dir.path().join("live"), OnTaken::Refuse, synth::manifest());
    let Created { open, mut log } = created.unwrap();
    let path = open.recording().dir().to_path_buf();
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth
        .thread(7)
        .enter(f, SLOT)
        .leave(SLOT)
        .enter(f, SLOT)
        .watermark();
    synth.append_to(&mut log).unwrap();
    log.settle().unwrap();

    let before = Session::open(&path).unwrap();
    assert_eq!(before.extent().state, RecordingState::Live);
    assert_eq!(
        ask(&before, "SELECT count(*), count(end_seq) FROM calls"),
        "2 | 1\n"
    );

    let mut later = Synth::new();
    later.at(1000).thread(7);
    let mut frames = later.leave(SLOT).watermark().frames();
    frames.retain(|frame| !matches!(frame, synth::SynthFrame::Control(_)));
    for frame in &frames {
        synth::append_frame(&mut log, frame).unwrap();
        log.settle().unwrap();
    }
    let after = Session::open(&path).unwrap();
    assert_eq!(
        ask(&before, "SELECT count(end_seq) FROM calls"),
        "1\n",
        "a session does not change"
    );
    assert_eq!(ask(&after, "SELECT count(end_seq) FROM calls"), "2\n");
    open.close(log.close().unwrap()).unwrap();
}

/// SQL, replay and the functions of state, which look for a timeline at the first question, see the content at the opening of the
/// recording, and no part is sealed twice.
#[test]
fn one_opened_recording_is_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let temp_dir = tempfile::tempdir().unwrap();
    let created =
        OpenRecording::create(&dir.path().join("live"), OnTaken::Refuse, synth::manifest());
    let Created { open, mut log } = created.unwrap();
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth.thread(7).enter(f, SLOT).leave(SLOT).watermark();
    synth.append_to(&mut log).unwrap();
    log.settle().unwrap();
    let reader = Arc::new(Reader::open(open.recording().dir(), temp_dir.path()).unwrap());
    let session = Session::new(Arc::clone(&reader), query::Options::default()).unwrap();

    let mut later = Synth::new();
    later
        .at(1000)
        .thread(7)
        .enter(f, SLOT)
        .leave(SLOT)
        .watermark();
    for frame in &later.frames() {
        synth::append_frame(&mut log, frame).unwrap();
    }
    log.settle().unwrap();
    let events = reader.events();
    let grown = Reader::open(open.recording().dir(), temp_dir.path()).unwrap();
    assert!(grown.events() > events, "the recording has grown");
    drop(grown);

    let timeline = replay::Timeline::new(Arc::clone(&reader)).unwrap();
    let count = ask(&session, "SELECT count(*), max(seq) FROM events");
    assert_eq!(count, format!("{events} | {}\n", events - 1));
    assert_eq!(timeline.events(), events);
    assert_eq!(timeline.last_ts_ns(), session.extent().last_ts_ns);
    let refused = format!("there is no event {events}");
    let hint = format!("events are 0 to {}", events - 1);
    let state = ask(&session, &format!("SELECT * FROM backtrace({events})"));
    assert_eq!(state, format!("error: {refused}\nhelp: {hint}\n"));
    let error = timeline.event(events).unwrap_err();
    assert_eq!(error.to_string(), refused);
    assert_eq!(error.hint(), Some(hint));

    let tails = std::fs::read_dir(temp_dir.path()).unwrap().count();
    assert_eq!(tails, 1, "what is not sealed was sealed once");
    open.close(log.close().unwrap()).unwrap();
}

/// Each session that is opened while the recorder seals and drops segments sees a dense beginning of the events.
#[test]
fn opening_while_the_recorder_seals_sees_no_hole() {
    let dir = tempfile::tempdir().unwrap();
    let created =
        OpenRecording::create(&dir.path().join("busy"), OnTaken::Refuse, synth::manifest());
    let Created { open, mut log } = created.unwrap();
    let path = open.recording().dir().to_path_buf();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let recording = Recording::open(&path).unwrap();
            let mut synth = Synth::new();
            let f = synth.function("f");
            synth.thread(7);
            synth.append_to(&mut log).unwrap();
            log.settle().unwrap();
            let options = SealOptions {
                part_log_bytes: 1 << 12,
                ..small_parts()
            };
            let mut sealer = Sealer::own(&recording, options).unwrap();
            let mut ticks = 1000;
            for _ in 0..60 {
                let mut calls = Synth::new();
                calls.at(ticks).thread(7);
                for _ in 0..50 {
                    calls.enter(f, SLOT).leave(SLOT);
                }
                calls.watermark();
                ticks = calls.ticks() + 1000;
                for frame in calls.frames() {
                    synth::append_frame(&mut log, &frame).unwrap();
                    log.settle().unwrap();
                }
                sealer.step(1000).unwrap();
                sealer.checkpoint().unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let mut seen = 0;
        let mut last = false;
        while !last {
            last = done.load(Ordering::Acquire);
            let session = Session::open(&path).unwrap();
            let events = session.extent().events;
            let count = ask(
                &session,
                "SELECT count(*), count(DISTINCT seq), coalesce(max(seq) + 1, 0) FROM events",
            );
            assert_eq!(count, format!("{events} | {events} | {events}\n"));
            assert!(
                events >= seen,
                "events do not vanish: {events} after {seen}"
            );
            seen = events;
        }
        assert!(seen >= 60 * 100, "{seen}");
    });
    open.close(log.close().unwrap()).unwrap();
}

#[test]
fn a_session_leaves_nothing_behind_and_the_recording_as_it_was() {
    let temp = tempfile::tempdir().unwrap();
    let options = query::Options {
        temp_dir: temp.path().to_path_buf(),
        ..Default::default()
    };
    let asked = Asked::with(|path| shop().record(path), options);
    asked.ask(EVERYTHING);
    let columns = asked.recording.columns_dir();
    assert_eq!(
        std::fs::read_dir(columns).unwrap().count(),
        0,
        "columns stay unsealed"
    );
    drop(asked);
    let left: Vec<_> = std::fs::read_dir(temp.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_is_no_recording_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let Err(error) = Session::open(&dir.path().join("nothing")) else {
        panic!("opened nothing");
    };
    let message = error.to_string();
    assert!(message.contains("nothing is not a recording"), "{message}");
}

//! Goal: Rust programs get from a recording what the program `hindsight` shows of it. Method: the frozen recordings whose
//! transcripts are in `repl/tests/orders`, and made-up ones.

use std::fs;
use std::path::Path;

use hindsight::arrow::array::AsArray;
use hindsight::arrow::datatypes::Int64Type;
use hindsight::arrow::record_batch::RecordBatch;
use hindsight::arrow::util::display::{ArrayFormatter, FormatOptions};
use hindsight::{Certainty, End, Error, Moment, Options, Recording, Recordings, State};
use store::recording::{Created, OnTaken, OpenRecording};
use store::seal::{Ending, SealOptions, Sealer};
use store::synth::{Synth, manifest};
use tempfile::TempDir;

/// A folder with copies of frozen recordings: git does not store their empty folder of logs.
fn frozen(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../repl/tests/recordings");
    for name in names {
        let name = format!("{name}.hindsight");
        copy(&all.join(&name), &dir.path().join(&name));
        fs::create_dir_all(dir.path().join(&name).join("log")).unwrap();
    }
    dir
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

fn orders() -> (TempDir, Recording) {
    let dir = frozen(&["orders"]);
    let recording = Recording::open(dir.path().join("orders")).unwrap();
    (dir, recording)
}

/// Made-up events: so many calls of one function.
fn calls(count: usize) -> Synth {
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth.thread(1);
    for _ in 0..count {
        synth.enter(f, 0x7f00).leave(0x7f00);
    }
    // What is before it in a log that grows is complete.
    synth.watermark();
    synth
}

/// The rows of an answer, with a space between the cells.
fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        let options = FormatOptions::default();
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            rows.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    rows
}

fn value(moment: &Moment<'_>, expression: &str) -> (String, Certainty) {
    let value = moment.value(expression).unwrap();
    (value.text, value.certainty)
}

#[test]
fn sql_counts_calls() {
    let (_dir, recording) = orders();
    let sql = "SELECT function, count(*) AS n FROM calls WHERE function IN ('settle', 'price') \
               GROUP BY function ORDER BY function";
    let answer = recording.sql(sql).unwrap();
    assert_eq!(rows(&answer), ["price 3", "settle 4"]);
    let total: i64 = answer
        .iter()
        .flat_map(|batch| batch["n"].as_primitive::<Int64Type>().values())
        .sum();
    assert_eq!(total, 7);
    assert!(
        recording
            .sql("SELECT * FROM calls WHERE false")
            .unwrap()
            .is_empty()
    );
}

#[test]
fn rows_come_one_batch_after_the_other() {
    let (_dir, recording) = orders();
    let mut answer = recording
        .stream("SELECT seq, kind FROM events ORDER BY seq")
        .unwrap();
    assert_eq!(answer.schema().field(1).name(), "kind");
    let first = answer.next().unwrap().unwrap();
    assert_eq!(rows(&[first])[0], "0 process_start");
    let all = futures::executor::block_on(async {
        let mut answer = recording.ask("SELECT seq FROM events").await.unwrap();
        let mut rows = 0;
        while let Some(batch) = answer.next_batch().await {
            rows += batch.unwrap().num_rows();
        }
        rows
    });
    assert_eq!(all, 70);
}

#[test]
fn an_answer_outlives_its_recording() {
    let (_dir, recording) = orders();
    let answer = recording.stream("SELECT seq FROM events").unwrap();
    drop(recording);
    let batches: Vec<RecordBatch> = answer.collect::<Result<_, _>>().unwrap();
    assert_eq!(rows(&batches).len(), 70);
}

#[test]
fn info_is_what_the_program_shows() {
    let (dir, recording) = orders();
    let info = recording.info().unwrap();
    assert_eq!(recording.path(), dir.path().join("orders.hindsight"));
    assert_eq!(info.program, "/home/ada/orders/./orders");
    assert_eq!(
        (info.arguments, info.folder.as_str()),
        (vec![], "/home/ada/orders")
    );
    assert_eq!(info.pid, Some(28464));
    assert_eq!(info.end, End::Signal("SIGKILL".into()));
    assert_eq!((info.state, info.events), (State::Closed, 70));
    let calls = recording.sql("SELECT count(*) FROM calls").unwrap();
    assert_eq!(rows(&calls), [info.calls.to_string()]);
    assert!(info.start < info.last && !info.duration.is_zero());
}

#[test]
fn what_a_recorder_did_not_close_is_read_too() {
    let dir = tempfile::tempdir().unwrap();
    let made = calls(3)
        .record_interrupted(&dir.path().join("made"))
        .unwrap();
    let recording = Recording::open(made.dir()).unwrap();
    let info = recording.info().unwrap();
    assert_eq!(
        (info.state, info.calls, info.end),
        (State::Incomplete, 3, End::NotSeen)
    );
    assert_eq!(
        rows(&recording.sql("SELECT count(*) FROM calls").unwrap()),
        ["3"]
    );
}

#[test]
fn a_recording_that_grows_is_read_up_to_its_opening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("live");
    let Created { open, mut log } =
        OpenRecording::create(&path, OnTaken::Refuse, manifest()).unwrap();
    let count = |recording: &Recording| recording.info().unwrap().calls;
    let before = Recording::open(&path).unwrap();
    assert_eq!(
        (before.info().unwrap().state, count(&before)),
        (State::Live, 0)
    );
    calls(5).append_to(&mut log).unwrap();
    log.settle().unwrap();
    let after = Recording::open(&path).unwrap();
    assert_eq!((count(&before), count(&after)), (0, 5));
    open.close(log.close().unwrap()).unwrap();
    let closed = Recording::open(&path).unwrap();
    assert_eq!(
        (closed.info().unwrap().state, count(&closed)),
        (State::Closed, 5)
    );
}

#[test]
fn wrong_sql_is_refused_with_its_place() {
    let (_dir, recording) = orders();
    let error = recording.sql("SELECT functoin\nFROM calls").unwrap_err();
    assert_eq!(error.hint(), Some("did you mean function?"));
    let Error::Sql {
        message,
        position,
        excerpt,
        ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(*position, Some((1, 8)));
    assert!(
        excerpt.contains("SELECT functoin\n") && excerpt.contains('^'),
        "{excerpt}"
    );
    assert_eq!(&error.to_string(), message);
    let error = recording.sql("DROP TABLE calls").unwrap_err();
    assert!(
        matches!(&error, Error::Sql { position: None, .. }),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "DROP TABLE is refused: recordings are read-only"
    );
    assert_eq!(error.hint(), Some("ask with SELECT"));
}

#[test]
fn values_are_known_stale_or_unknown() {
    let (_dir, recording) = orders();
    let sold = |seq| value(&recording.at(seq).unwrap(), "sold");
    let why = "unknown: not captured".to_owned();
    assert_eq!(
        sold(3),
        ("<unknown: not captured>".into(), Certainty::Unknown { why })
    );
    assert_eq!(sold(5), ("0".into(), Certainty::Known));
    let stale = Certainty::Stale { as_of: 18 };
    assert_eq!(sold(28), ("0 <stale: as of event 18>".into(), stale));
    assert_eq!(sold(29), ("4".into(), Certainty::Known));
    let sold = recording.at(29).unwrap().value("sold").unwrap();
    assert_eq!(
        (sold.type_name.as_str(), sold.address.as_deref()),
        ("int", Some("0x55a578742070"))
    );
}

#[test]
fn a_doubtful_value_has_a_remark() {
    let (_dir, recording) = orders();
    let order = recording.at(17).unwrap().value("*order").unwrap();
    assert_eq!(order.certainty, Certainty::Stale { as_of: 5 });
    assert!(order.note.unwrap().contains("an earlier object"));
}

#[test]
fn long_values_are_shown_in_full_on_demand() {
    let (_dir, recording) = orders();
    let stop = recording.at(19).unwrap();
    let long = "((char *)$rsp)[0..400]";
    let (short, full) = (stop.value(long).unwrap(), stop.value_in_full(long).unwrap());
    assert!(short.left_out.is_some(), "{short:?}");
    assert_eq!(full.left_out, None);
    assert!(full.text.len() > short.text.len());
}

#[test]
fn wrong_expressions_are_refused_with_their_place() {
    let (_dir, recording) = orders();
    let error = recording
        .at(19)
        .unwrap()
        .value("order->peices")
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Expression {
                position: Some(_),
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.hint().unwrap().contains("pieces"), "{error:?}");
}

#[test]
fn a_backtrace_has_functions_lines_and_arguments() {
    let (_dir, recording) = orders();
    let moment = recording.at(23).unwrap();
    let trace = moment.backtrace().unwrap();
    let functions: Vec<_> = trace
        .frames
        .iter()
        .map(|frame| frame.function.as_deref())
        .collect();
    assert_eq!(
        functions,
        [
            Some("price"),
            Some("rounded"),
            Some("settle"),
            Some("main"),
            None
        ]
    );
    let lines: Vec<_> = trace.frames.iter().map(|frame| frame.line).collect();
    assert_eq!(lines, [Some(25), Some(32), None, Some(69), None]);
    assert!(trace.end.unwrap().contains("libc.so.6"));
    let [price, rounded, settle, ..] = &trace.frames[..] else {
        panic!("{:?}", trace.frames);
    };
    assert_eq!(price.file.as_deref(), Some("/home/ada/orders/orders.c"));
    assert_eq!(price.arguments[1].name, "discount");
    assert_eq!(price.arguments[1].value.text, "1");
    assert!(matches!(
        rounded.arguments[0].value.certainty,
        Certainty::Unknown { .. }
    ));
    assert!(settle.somewhere && settle.after_gap);
    assert_eq!(settle.arguments[0].value.certainty, Certainty::AtEntry);
    assert_eq!(settle.arguments[0].value.text, "0x55a5866573d0");
    let nearest = moment.backtrace_up_to(1).unwrap();
    assert_eq!((nearest.frames.len(), nearest.more), (1, true));
    assert_eq!(moment.backtrace_up_to(usize::MAX).unwrap().frames.len(), 5);
}

#[test]
fn variables_are_those_of_the_frame() {
    let (_dir, recording) = orders();
    let stop = recording.at(19).unwrap();
    let order = &stop.locals().unwrap();
    let order = order.iter().find(|variable| variable.is_parameter).unwrap();
    assert_eq!(
        (order.name.as_str(), order.value.text.as_str()),
        ("order", "0x55a5866573d0")
    );
    let main = stop.in_frame(1).unwrap();
    let locals = main.locals().unwrap();
    let counts = locals
        .iter()
        .find(|variable| variable.name == "counts")
        .unwrap();
    assert_eq!(
        (counts.line, counts.value.text.as_str()),
        (Some(66), "{2, 0, 1}")
    );
    assert_eq!(main.value("counts[0]").unwrap().text, "2");
    // Neither moment has moved the other.
    assert_eq!(stop.value("order->id").unwrap().text, "1");
    let error = stop.in_frame(7).unwrap_err();
    assert!(matches!(error, Error::NoMoment { .. }), "{error:?}");
    assert_eq!(error.to_string(), "there is no frame 7");
}

#[test]
fn moments_are_found_by_event_thread_and_word() {
    let (_dir, recording) = orders();
    let moment = recording.at(50).unwrap();
    assert_eq!((moment.seq(), moment.tid()), (50, 28553));
    let other = moment.in_thread(28464).unwrap();
    assert_eq!((other.seq(), other.tid()), (50, 28464));
    assert_eq!(
        moment.backtrace().unwrap().frames[0].function.as_deref(),
        Some("evening")
    );
    assert!(matches!(
        moment.in_thread(1).unwrap_err(),
        Error::NoMoment { .. }
    ));
    // Event 29 is about no thread: which one is asked does not depend on what was asked before.
    assert_eq!(
        recording.goto("29").unwrap().tid(),
        recording.at(29).unwrap().tid()
    );
    assert_eq!(recording.goto("last").unwrap().seq(), 69);
    let error = recording.at(70).unwrap_err();
    assert!(matches!(error, Error::NoMoment { .. }), "{error:?}");
    assert_eq!(error.to_string(), "there is no event 70");
    assert_eq!(error.hint(), Some("events are 0 to 69"));
    assert!(recording.goto("nowhere").is_err());
}

#[test]
fn several_recordings_have_the_column_run() {
    let dir = frozen(&["orders", "captured"]);
    let sql = "SELECT run, count(*) FROM calls WHERE function = 'settle' GROUP BY run ORDER BY run";
    for words in [vec!["orders", "captured", "gone"], vec!["*"], vec![""]] {
        let paths = words.iter().map(|word| dir.path().join(word));
        let runs = Recordings::open(paths).unwrap();
        assert_eq!(
            rows(&runs.sql(sql).unwrap()),
            ["captured 4", "orders 4"],
            "{words:?}"
        );
        let warnings = runs.warnings();
        let is_gone = warnings
            .iter()
            .any(|warning| warning.contains("gone is left out"));
        assert_eq!(is_gone, words.contains(&"gone"), "{warnings:?}");
        assert!(runs.warnings().is_empty());
        let mut names: Vec<_> = runs.names().collect();
        names.sort_unstable();
        assert_eq!(names, ["captured", "orders"]);
        let ended = "SELECT run, program FROM runs ORDER BY run";
        let mut answer = futures::executor::block_on(runs.ask(ended)).unwrap();
        let batch = answer.next().unwrap().unwrap();
        assert_eq!(
            rows(&[batch]),
            ["captured ./orders", "orders /home/ada/orders/./orders"]
        );
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "text").unwrap();
    for path in [dir.path().join("gone"), file.clone(), dir.path().to_owned()] {
        let error = Recording::open(&path).unwrap_err();
        assert!(
            matches!(&error, Error::NotARecording { path: told, .. } if *told == path),
            "{error:?}"
        );
        assert!(
            error.to_string().contains(" is not a recording: "),
            "{error}"
        );
        assert_eq!(
            error.hint(),
            Some("name a folder made by \"hindsight record\"")
        );
        let error = Recordings::open([&path]).unwrap_err();
        assert!(matches!(error, Error::NoRecordings { .. }), "{error:?}");
        assert_eq!(error.to_string(), "cannot find a recording");
    }
    let damaged = calls(1).record(&dir.path().join("damaged")).unwrap();
    fs::write(damaged.dir().join("manifest"), "text").unwrap();
    let error = Recording::open(damaged.dir()).unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error:?}");
    assert!(error.to_string().contains("manifest"), "{error}");
}

#[test]
fn a_recording_without_events_answers_sql() {
    let dir = tempfile::tempdir().unwrap();
    let made = Synth::new().record(&dir.path().join("empty")).unwrap();
    Sealer::own(&made, SealOptions::default())
        .unwrap()
        .finish(Ending::Close, |_| {})
        .unwrap();
    let recording = Recording::open(made.dir()).unwrap();
    assert_eq!(
        rows(&recording.sql("SELECT count(*) FROM calls").unwrap()),
        ["0"]
    );
    let error = recording.at(0).unwrap_err();
    assert_eq!(error.to_string(), "the recording has no events");
}

#[test]
fn too_little_memory_is_told() {
    let dir = frozen(&["orders"]);
    let options = Options {
        memory_bytes: 1,
        cores: 1,
        ..Options::default()
    };
    let recording = Recording::open_with(dir.path().join("orders"), options.clone()).unwrap();
    let sql = "SELECT function, count(DISTINCT args) FROM calls GROUP BY function ORDER BY 2";
    let error = recording.sql(sql).unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error:?}");
    let runs = Recordings::open_with([dir.path()], options).unwrap();
    let batches: Result<Vec<_>, _> = runs.stream(sql).unwrap().collect();
    assert!(matches!(batches, Err(Error::Memory { .. })), "{batches:?}");
}

#[test]
fn recordings_are_shared_among_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Recording>();
    shared::<Recordings>();
    shared::<Moment<'_>>();
    shared::<Error>();
    let (_dir, recording) = orders();
    std::thread::scope(|scope| {
        for seq in [5, 29] {
            let recording = &recording;
            scope.spawn(move || {
                let expected = if seq == 5 { "0" } else { "4" };
                for _ in 0..20 {
                    let moment = recording.at(seq).unwrap();
                    assert_eq!(moment.value("sold").unwrap().text, expected);
                }
            });
        }
    });
}

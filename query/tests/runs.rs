//! Goal: many recordings answer one query as each of them would, and only the ones that a query needs are opened.
//! Method: compare with the answers of single recordings; count what was opened; damage what must not be read.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::util::display::{ArrayFormatter, FormatOptions};
use common::shop;
use query::{Answer, Error, Options, Runs, Session, TABLES, runs_again};
use store::control::Control;
use store::manifest::{Lineage, RecordingId};
use store::recording::{Created, OnTaken, OpenRecording};
use store::seal::{Ending, SealOptions, Sealer};
use store::synth::{RECORDING_ID, Synth, debugged, manifest};
use store::{Manifest, Reader};
use tempfile::TempDir;

/// The rows of an answer as lines, sorted.
fn lines(answer: Answer) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in answer {
        let batch = batch.unwrap();
        let options = FormatOptions::default().with_null("NULL");
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            lines.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    lines.sort();
    lines
}

/// `count` sealed recordings r000, r001, ... of `n` + 1 calls each.
fn recordings(count: usize) -> (TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let folders = (0..count).map(|number| {
        let mut synth = Synth::new();
        let f = synth.function("f");
        synth.thread(1);
        for _ in 0..=number {
            synth.enter(f, 0x7f00).leave(0x7f00);
        }
        sealed(&synth, &dir.path().join(format!("r{number:03}")))
    });
    let folders = folders.collect();
    (dir, folders)
}

fn sealed(synth: &Synth, path: &Path) -> PathBuf {
    let recording = synth.record(path).unwrap();
    let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
    sealer.finish(Ending::Close, |_| {}).unwrap();
    recording.dir().to_owned()
}

fn open(folders: &[PathBuf]) -> Runs {
    Runs::open(folders, &Options::default()).unwrap()
}

/// Makes everything but the small files unreadable.
fn damage(folder: &Path) {
    for entry in fs::read_dir(folder.join("columns")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "parquet") {
            fs::write(path, "damaged").unwrap();
        }
    }
}

#[test]
fn every_table_has_the_rows_of_each_recording_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let folders = [
        sealed(&shop(), &dir.path().join("shop")),
        sealed(&debugged(), &dir.path().join("debugged")),
        shop()
            .record(&dir.path().join("open"))
            .unwrap()
            .dir()
            .to_owned(),
    ];
    let runs = open(&folders);
    for table in TABLES.iter().filter(|table| table.name != "runs") {
        let ask = format!("select * from {}", table.name);
        let mut single = Vec::new();
        for (folder, name) in folders.iter().zip(["shop", "debugged", "open"]) {
            if runs_again(table.name) {
                // These recordings have no such table, and no rows among others.
                continue;
            }
            let session = Session::open(folder).unwrap();
            let rows = lines(session.sql(&ask).unwrap());
            single.extend(rows.into_iter().map(|row| format!("{name}|{row}")));
        }
        single.sort();
        assert_eq!(lines(runs.sql(&ask).unwrap()), single, "{}", table.name);
        let answer = runs.sql(&ask).unwrap();
        let first = answer.schema().field(0).name().clone();
        assert_eq!(first, "run", "{}", table.name);
    }
    assert_eq!(runs.warnings(), Vec::<String>::new());
}

#[test]
fn a_process_has_no_row_in_its_parents_recording_if_its_own_is_read_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut synth = Synth::new();
    synth.control(Control::ProcessStart {
        ticks: 1,
        pid: 100,
        argv: vec!["synth".into()],
        exe: "/opt/synth".into(),
        cwd: "/".into(),
        attached: false,
    });
    synth.at(10).thread(100).fork(101).fork(102);
    let folder = sealed(&synth, &dir.path().join("parent"));
    let child_of = |name: &str, parent_run| {
        let lineage = Lineage {
            pid: 101,
            parent_pid: 100,
            parent_run: Some(parent_run),
        };
        let manifest = Manifest {
            lineage: Some(lineage),
            ..manifest()
        };
        let path = dir.path().join(name);
        let created = OpenRecording::create(&path, OnTaken::Refuse, manifest);
        let Created { open, log } = created.unwrap();
        open.close(log.close().unwrap()).unwrap()
    };
    let own = child_of("own", RECORDING_ID);
    let of_another = child_of("of-another", RecordingId([7; 16]));
    for (others, expected) in [
        (vec![], vec!["100", "101", "102"]),
        (vec![own], vec!["100", "102"]),
        (vec![of_another], vec!["100", "101", "102"]),
    ] {
        let options = Options::default();
        let reader = Arc::new(Reader::open(&folder, &options.temp_dir).unwrap());
        let session = Session::new_beside(reader, options, &others).unwrap();
        let rows = lines(session.sql("select pid from processes").unwrap());
        assert_eq!(rows, expected, "{others:?}");
    }
}

#[test]
fn one_recording_names_the_one_of_its_parent_in_the_same_folder() {
    let dir = tempfile::tempdir().unwrap();
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth.thread(1).enter(f, 0x7f00).leave(0x7f00);
    synth.record(&dir.path().join("parent")).unwrap();
    let unknown = RecordingId([9; 16]);
    let id = unknown.to_string();
    for (name, parent, expected) in [
        ("child", RECORDING_ID, "parent"),
        ("orphan", unknown, id.as_str()),
    ] {
        let lineage = Lineage {
            pid: 2,
            parent_pid: 1,
            parent_run: Some(parent),
        };
        let manifest = Manifest {
            recording_id: RecordingId([7; 16]),
            lineage: Some(lineage),
            ..manifest()
        };
        let path = dir.path().join(name);
        let created = OpenRecording::create(&path, OnTaken::Refuse, manifest);
        let Created { open, mut log } = created.unwrap();
        synth.append_to(&mut log).unwrap();
        open.close(log.close().unwrap()).unwrap();
        let session = Session::open(&path).unwrap();
        let rows = lines(session.sql("select parent_run from runs").unwrap());
        assert_eq!(rows, [expected], "{name}");
    }
}

#[test]
fn names_that_no_recording_has_are_told() {
    let (_dir, folders) = recordings(2);
    let runs = open(&folders);
    assert_eq!(
        runs.not_recorded("select count(*) from calls where run in ('r000', 'r0001')"),
        ["no recording 'r0001'; near: r000, r001"]
    );
}

#[test]
fn a_recording_that_is_not_among_those_compared_is_told_with_near_ones() {
    let (_dir, folders) = recordings(2);
    let runs = open(&folders);
    let sql = "select * from diff_calls('r000', 'r0001')";
    let error = runs.sql(sql).map(drop).unwrap_err();
    assert_eq!(
        error.hint().as_deref(),
        Some("did you mean r000 or r001?"),
        "{error}"
    );
}

#[test]
fn groups_filters_and_joins_are_those_of_each_recording() {
    let (_dir, folders) = recordings(5);
    let runs = open(&folders);
    let ask = |sql: &str| lines(runs.sql(sql).unwrap());
    let counts = ["r000|1", "r001|2", "r002|3", "r003|4", "r004|5"];
    assert_eq!(ask("select run, count(*) from calls group by run"), counts);
    assert_eq!(ask("select count(*) from calls"), ["15"]);
    assert_eq!(
        ask("select run, count(*) from calls where function = 'f' group by run"),
        counts
    );
    assert_eq!(
        ask("select function, count(*) from calls where function = 'g' group by function"),
        Vec::<String>::new()
    );
    assert_eq!(ask("select run from calls limit 1").len(), 1);
    assert_eq!(
        ask(
            "select r.calls, count(*) from runs r join calls c on c.run = r.run \
             where r.run like 'r00%' group by r.calls having count(*) > 3"
        ),
        ["4|4", "5|5"]
    );
    assert_eq!(
        ask(
            "select a.run, b.run from calls a join calls b on a.start_seq = b.start_seq \
             where a.run = 'r000' and b.run > 'r003'"
        ),
        ["r000|r004"]
    );
}

#[test]
fn a_filter_on_run_opens_no_other_recording() {
    let (_dir, folders) = recordings(20);
    for folder in folders
        .iter()
        .filter(|folder| !folder.ends_with("r007.hindsight"))
    {
        damage(folder);
    }
    let runs = open(&folders);
    let ask = |sql: &str| lines(runs.sql(sql).unwrap());
    assert_eq!(ask("select sum(calls), count(*) from runs"), ["210|20"]);
    assert_eq!(runs.opened(), 0, "runs is answered from small files");
    for filter in [
        "run = 'r007'",
        "run in ('r007')",
        "run like '%7' and run < 'r010'",
    ] {
        let sql = format!("select run, count(*) from calls where {filter} group by run");
        assert_eq!(ask(&sql), ["r007|8"], "{filter}");
    }
    let sql = "select count(*) from calls c where c.run = 'r007' and c.function = 'f'";
    assert_eq!(ask(sql), ["8"]);
    assert_eq!(runs.opened(), 1);
    assert_eq!(runs.warnings(), Vec::<String>::new());
    assert_eq!(
        ask("select count(*) from calls where run = 'nothing'"),
        ["0"]
    );
    assert_eq!(runs.opened(), 1);
}

#[test]
fn a_condition_through_runs_opens_no_other_recording() {
    let (_dir, folders) = recordings(20);
    for sql in [
        "select run, count(*) from calls where run in (select run from runs where calls = 4) group by run",
        "select c.run, count(*) from calls c join runs r on r.run = c.run where r.calls = 4 group by c.run",
        "select c.run, count(*) from runs r join calls c on r.run = c.run where r.calls = 4 group by c.run",
    ] {
        let runs = open(&folders);
        assert_eq!(lines(runs.sql(sql).unwrap()), ["r003|4"], "{sql}");
        assert_eq!(runs.opened(), 1, "{sql}");
    }
}

#[test]
fn damaged_recordings_are_named_and_the_others_answer() {
    let (_dir, folders) = recordings(4);
    damage(&folders[1]);
    fs::write(folders[2].join("manifest"), "damaged").unwrap();
    let runs = open(&folders);
    let unreadable = runs.warnings();
    assert_eq!(unreadable.len(), 1);
    assert!(
        unreadable[0].contains("r002.hindsight is left out"),
        "{unreadable:?}"
    );
    for _ in 0..2 {
        let answer = runs.sql("select run, count(*) from calls group by run");
        assert_eq!(lines(answer.unwrap()), ["r000|1", "r003|4"]);
    }
    let damaged = runs.warnings();
    assert_eq!(damaged.len(), 1, "once: {damaged:?}");
    assert!(damaged[0].starts_with("r001 is left out: "), "{damaged:?}");
    let none = Runs::open(&folders[2..3], &Options::default());
    assert!(matches!(none, Err(Error::Store(_))));
}

#[test]
fn a_page_that_differs_is_told_and_not_taken_for_the_end() {
    let (_dir, folders) = recordings(2);
    let calls = folders[1].join("columns/calls-000000.parquet");
    let mut bytes = fs::read(&calls).unwrap();
    bytes[8] ^= 1;
    fs::write(&calls, bytes).unwrap();
    let runs = open(&folders);
    let rows = lines(runs.sql("select run, start_seq from calls").unwrap());
    assert_eq!(rows, ["r000|1"]);
    let warnings = runs.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("r001 "), "{warnings:?}");
}

#[test]
fn functions_of_a_state_take_the_run_first() {
    let dir = tempfile::tempdir().unwrap();
    let folders = ["one", "two"].map(|name| sealed(&debugged(), &dir.path().join(name)));
    let runs = open(&folders);
    let session = Session::open(&folders[0]).unwrap();
    let single = lines(
        session
            .sql("select seq, reg(seq, 'rip') from events")
            .unwrap(),
    );
    let known = single.iter().filter(|row| !row.ends_with("NULL")).count();
    assert!(known > 0, "{single:?}");
    let mut expected: Vec<_> = ["one", "two"]
        .iter()
        .flat_map(|name| single.iter().map(move |row| format!("{name}|{row}")))
        .collect();
    expected.sort();
    let both = runs.sql("select run, seq, reg(run, seq, 'rip') from events");
    assert_eq!(lines(both.unwrap()), expected);
    let filtered = runs.sql("select run from events where reg(run, seq, 'rip') is not null");
    assert_eq!(lines(filtered.unwrap()).len(), 2 * known);
    for (sql, why) in [
        ("select reg(seq, 'rip') from events", "takes the run first"),
        ("select * from backtrace(3)", "takes the run first"),
        (
            "select * from backtrace('none', 3)",
            "there is no run called",
        ),
    ] {
        let error = runs.sql(sql).err().unwrap().to_string();
        assert!(error.contains(why), "{sql}: {error}");
    }
}

#[test]
fn labels_are_asked_by_key() {
    let (_dir, folders) = recordings(2);
    let recording = store::Recording::open(&folders[1]).unwrap();
    let wanted = [("ci".to_owned(), Some("42".to_owned()))].into();
    store::labels::change(&recording, &wanted).unwrap();
    let runs = open(&folders);
    let asked = runs
        .sql("select run, label(labels, 'ci'), labels from runs")
        .unwrap();
    assert_eq!(lines(asked), ["r000|NULL|{}", "r001|42|{\"ci\":\"42\"}"]);
    let session = Session::open(&folders[1]).unwrap();
    let one = session
        .sql("select run, calls, label(labels, 'ci') from runs")
        .unwrap();
    assert_eq!(lines(one), ["r001|2|42"]);
}

#[test]
fn a_thousand_recordings_open_within_two_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let model = sealed(&shop(), &dir.path().join("model"));
    let began = Instant::now();
    let folders: Vec<PathBuf> = (0..1000)
        .map(|number| {
            let folder = dir.path().join(format!("run{number:04}.hindsight"));
            copy(&model, &folder);
            folder
        })
        .collect();
    let copied = began.elapsed();
    let began = Instant::now();
    let runs = open(&folders);
    let mut told = vec![("open", began.elapsed())];
    let mut ask = |what, sql: &str| {
        let began = Instant::now();
        let rows = lines(runs.sql(sql).unwrap());
        told.push((what, began.elapsed()));
        rows
    };
    let one = ask(
        "filter",
        "select run, count(*) from calls where run = 'run0500' group by run",
    );
    assert_eq!(one.len(), 1);
    assert!(one[0].starts_with("run0500|"), "{one:?}");
    assert_eq!(
        ask("runs", "select count(*), min(calls) from runs").len(),
        1
    );
    assert_eq!(runs.opened(), 1);
    let first_three = told.iter().map(|(_, time)| *time).sum::<Duration>();
    let mut ask = |what, sql: &str| {
        let began = Instant::now();
        let rows = lines(runs.sql(sql).unwrap());
        told.push((what, began.elapsed()));
        rows
    };
    assert_eq!(
        ask("count", "select run, count(*) from calls group by run").len(),
        1000
    );
    assert_eq!(
        ask(
            "names",
            "select function, count(*) from calls group by function"
        )
        .len(),
        lines(
            Session::open(&model)
                .unwrap()
                .sql("select distinct function from calls")
                .unwrap()
        )
        .len()
    );
    println!("{told:?}");
    // On a busy machine it takes longer, and so did the copies.
    let limit = Duration::from_secs(2).max(copied * 10);
    assert!(first_three < limit, "{copied:?} {told:?}");
    let open_files = fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(open_files < 200, "{open_files} open files");
    assert_eq!(runs.warnings(), Vec::<String>::new());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => _ = fs::copy(&path, &target).unwrap(),
        }
    }
}

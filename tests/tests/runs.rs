//! Goal: runs of a program are kept apart, labelled, added to the catalog and queried together, and a query opens no
//! recording that it does not need. Method: programs are recorded as users do it; strace shows which files were opened.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use e2e::{Ended, Hindsight, Program, Scratch, fixture_artifact, make_older};

/// `hindsight ARGS` in the test's folder, with a data folder of its own.
fn hindsight(scratch: &Scratch, args: &[&str]) -> Ended {
    let ended = command(scratch, args).run();
    assert_eq!(
        ended.status.as_shell_code(),
        0,
        "{args:?}: {}",
        ended.errors()
    );
    ended
}

fn command(scratch: &Scratch, args: &[&str]) -> Program {
    Hindsight::command(scratch, args).env("XDG_DATA_HOME", scratch.join("data"))
}

/// Records `fib N` under its default name.
fn record(scratch: &Scratch, n: &str, options: &[&str]) {
    let program = scratch.join("fib");
    if !program.exists() {
        fs::copy(fixture_artifact("fib", "fib"), &program).expect("it is copied");
    }
    let mut args = vec!["record"];
    args.extend(options);
    args.extend(["--", "./fib", n]);
    let ended = command(scratch, &args).run();
    assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
}

fn rows(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let mut args = vec!["sql", "-f", "csv"];
    args.extend(words);
    let text = hindsight(scratch, &args).text();
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn the_newest_run_has_the_name_and_all_are_in_the_catalog() {
    let scratch = Scratch::new("runs-newest");
    record(
        &scratch,
        "3",
        &["--label", "branch=main", "--label", "size=small"],
    );
    record(&scratch, "6", &["--label", "branch=topic"]);
    record(&scratch, "5", &[]);
    let calls = "select count(*) from calls where function = 'fib'";
    assert_eq!(
        rows(&scratch, &["fib", calls]),
        ["15"],
        "fib 5 is the newest"
    );
    assert_eq!(rows(&scratch, &["fib.hindsight", calls]), ["5"]);
    assert_eq!(rows(&scratch, &["fib-2", calls]), ["25"]);
    let question = "select r.run, r.program, r.arguments, r.exit_code, r.state, count(*) \
                    from runs r join calls c on c.run = r.run where c.function = 'fib' \
                    group by r.run, r.program, r.arguments, r.exit_code, r.state order by r.run";
    assert_eq!(
        rows(&scratch, &["fib*", question]),
        [
            "fib,./fib,3,0,closed,5",
            "fib-2,./fib,6,0,closed,25",
            "fib-3,./fib,5,0,closed,15"
        ]
    );
    let same = "select count(distinct environment), count(environment), count(build_ids) from runs";
    assert_eq!(rows(&scratch, &["fib*", same]), ["1,3,3"]);
    let branches = "select label(r.labels, 'branch') as b, count(*) from runs r \
                    join calls c on c.run = r.run where c.function = 'fib' group by b order by b";
    let branches = rows(&scratch, &["fib*", branches]);
    assert_eq!(branches, ["main,5", "topic,25", ",15"]);
    let states = "select run, count(value(run, start_seq, 'n')) from calls \
                  where function = 'fib' group by run order by run";
    assert_eq!(
        rows(&scratch, &["fib*", states]),
        ["fib,5", "fib-2,25", "fib-3,15"]
    );
    let rerun = command(&scratch, &["rerun", "fib-2"]).run();
    assert_eq!(rerun.status.as_shell_code(), 0, "{}", rerun.errors());
    assert_eq!(
        rows(&scratch, &["fib", calls]),
        ["25"],
        "a rerun is the newest"
    );
    hindsight(&scratch, &["rm", "--yes", "fib-4"]);
    let runs = hindsight(&scratch, &["runs", "--label", "branch=main"]).text();
    assert!(
        runs.contains("fib.hindsight ") && runs.lines().count() == 3,
        "{runs}"
    );
    assert_eq!(hindsight(&scratch, &["runs"]).text().lines().count(), 5);
    let pruned = hindsight(
        &scratch,
        &["runs", "prune", "--older", "1ms", "--keep-failed", "--yes"],
    );
    assert!(
        pruned.text().ends_with("forgot 3 runs\n"),
        "{}",
        pruned.text()
    );
    assert!(!scratch.join("fib.hindsight").exists());
}

#[test]
fn recording_goes_on_without_a_catalog() {
    let scratch = Scratch::new("runs-no-catalog");
    fs::write(scratch.join("data"), "no folder").expect("the folder is ours");
    record(&scratch, "3", &[]);
    let calls = "select count(*) from calls where function = 'fib'";
    assert_eq!(rows(&scratch, &["fib", calls]), ["5"]);
    let refused = command(&scratch, &["runs"]).run();
    assert_eq!(refused.status.as_shell_code(), 1, "{}", refused.errors());
}

/// What is read of each recording to know the rows of `runs`, as docs/runs.md lists it.
const SMALL: [&str; 3] = ["columns/seal.state", "incomplete", "manifest"];

/// The run and the path in its folder of each file that was to be opened.
fn opened_files(trace: &str) -> BTreeSet<(String, String)> {
    let file = |line: &str| {
        let (path, _) = line.split_once("all/")?.1.split_once('"')?;
        let (run, file) = path.split_once(".hindsight/")?;
        Some((run.to_owned(), file.to_owned()))
    };
    trace.lines().filter_map(file).collect()
}

/// The runs of which columns were opened.
fn runs_with_columns(files: &BTreeSet<(String, String)>) -> Vec<&str> {
    let columns = files.iter().filter(|(_, file)| file.ends_with(".parquet"));
    let mut runs: Vec<&str> = columns.map(|(run, _)| &**run).collect();
    runs.dedup();
    runs
}

/// What was opened of all runs but one.
fn files_of_others<'f>(files: &'f BTreeSet<(String, String)>, run: &str) -> Vec<&'f str> {
    let others = files.iter().filter(|(own, _)| own != run);
    let others: BTreeSet<&str> = others.map(|(_, file)| &**file).collect();
    others.into_iter().collect()
}

#[test]
fn a_filter_on_run_opens_files_of_that_run_alone() {
    let scratch = Scratch::new("runs-opened");
    record(&scratch, "3", &["-o", "first"]);
    for number in 0..100 {
        copy(
            &scratch.join("first.hindsight"),
            &scratch.join(&format!("all/run{number:03}.hindsight")),
        );
    }
    let opened = |question: &str| {
        let trace = scratch.join("trace");
        let words = ["-f", "-e", "trace=openat", "-o"]
            .map(Into::into)
            .into_iter();
        let words: Vec<std::ffi::OsString> = words.chain([trace.clone().into()]).collect();
        let ended = command(&scratch, &["sql", "-f", "csv", "all", question])
            .wrapped(Path::new("strace"), words)
            .run();
        assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
        let trace = fs::read_to_string(trace).expect("strace wrote it");
        (ended.text(), opened_files(&trace))
    };
    let (answer, files) =
        opened("select run, count(*) n from calls where run = 'run042' group by run");
    assert!(answer.starts_with("run,n\nrun042,"), "{answer}");
    assert_eq!(runs_with_columns(&files), ["run042"]);
    assert_eq!(files_of_others(&files, "run042"), SMALL);
    let (_, files) = opened("select count(*), sum(calls) from runs");
    assert_eq!(files_of_others(&files, ""), SMALL);
    let began = Instant::now();
    let (answer, files) = opened("select run, count(*) n from calls group by run");
    let runs = runs_with_columns(&files).len();
    assert_eq!((answer.lines().count(), runs), (101, 100));
    println!("100 recordings under strace: {:?}", began.elapsed());
}

#[test]
fn an_older_recording_is_asked_together_with_a_new_one() {
    let scratch = Scratch::new("runs-older");
    record(&scratch, "3", &["-o", "new", "--label", "kind=fresh"]);
    record(&scratch, "4", &["-o", "old", "--label", "kind=stale"]);
    make_older(&scratch.join("old.hindsight"));
    let of_runs = "select run, environment is null, label(labels, 'kind'), pid is null, exit_code, calls is null \
                   from runs order by run";
    assert_eq!(
        rows(&scratch, &["new", "old", of_runs]),
        ["new,false,fresh,false,0,false", "old,true,,true,0,false"]
    );
    let of_calls = "select run, count(*), count(ret), sum(depth) from calls where function = 'fib' \
                    group by run order by run";
    assert_eq!(
        rows(&scratch, &["new", "old", of_calls]),
        ["new,5,5,11", "old,9,9,25"]
    );
    // Every table has rows of both, or none.
    let tables = [
        "calls",
        "events",
        "functions",
        "modules",
        "threads",
        "gaps",
        "output",
        "exceptions",
        "processes",
        "pauses",
        "notes",
        "files",
        "syscalls",
        "allocations",
        "locks",
    ];
    for table in tables {
        let count = format!("select count(distinct run) from \"{table}\"");
        let runs = rows(&scratch, &["new", "old", &count]);
        assert!(["0", "2"].contains(&&*runs[0]), "{table}: {runs:?}");
    }
}

#[test]
fn a_recording_in_a_session_is_not_deleted() {
    let scratch = Scratch::new("runs-session");
    record(&scratch, "3", &["-o", "first"]);
    let runtime = scratch.join("runtime");
    fs::create_dir(&runtime).expect("the folder is ours");
    let run = |args: &[&str]| {
        command(&scratch, args)
            .env("XDG_RUNTIME_DIR", &runtime)
            .run()
    };
    let opened = run(&["open", "first"]);
    assert_eq!(opened.status.as_shell_code(), 0, "{}", opened.errors());
    let refused = run(&["rm", "--yes", "first"]);
    assert_eq!(refused.status.as_shell_code(), 2);
    assert!(
        refused.errors().contains("is open in session 1"),
        "{}",
        refused.errors()
    );
    let closed = run(&["close"]);
    assert_eq!(closed.status.as_shell_code(), 0, "{}", closed.errors());
    let deleted = run(&["rm", "--yes", "first"]);
    assert_eq!(deleted.status.as_shell_code(), 0, "{}", deleted.errors());
    assert!(!scratch.join("first.hindsight").exists());
}

#[test]
fn build_ids_are_those_of_the_files() {
    let scratch = Scratch::new("runs-build-ids");
    record(&scratch, "3", &[]);
    assert!(!scratch.join("fib.hindsight/catalog").exists());
    let asked = |sql: &str| hindsight(&scratch, &["sql", "fib", sql, "--json"]).result();
    let told = asked("select build_ids from runs")[0]["build_ids"].clone();
    let told: Vec<&str> = told.as_str().expect("a text").split(", ").collect();
    assert!(told[0].starts_with("fib ") && told.len() > 1, "{told:?}");
    let modules = asked("select path from modules");
    let paths = modules.as_array().expect("rows").iter();
    let paths: Vec<&str> = paths.filter_map(|row| row["path"].as_str()).collect();
    for build in told {
        let (name, id) = build.split_once(' ').expect("a name and an id");
        let is_it = |path: &&&str| path.rsplit('/').next() == Some(name);
        let path = paths.iter().find(is_it).expect("a module");
        let notes = Program::new("readelf", scratch.path()).args(["-n", *path]);
        let notes = notes.run().text();
        let line = format!("Build ID: {id}\n");
        assert!(notes.contains(&line), "{build}: {notes}");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder is ours");
    for entry in fs::read_dir(from).expect("it is a folder") {
        let path = entry.expect("it can be read").path();
        let target = to.join(path.file_name().expect("it has a name"));
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(fs::copy(&path, &target).expect("it is copied")),
        }
    }
}

#[test]
fn the_catalog_is_made_again_from_the_recordings() {
    let scratch = Scratch::new("runs-lost");
    record(&scratch, "3", &["--label", "branch=main"]);
    record(&scratch, "4", &[]);
    let before = hindsight(&scratch, &["runs"]).text();
    assert_eq!(before.lines().count(), 4, "{before}");
    for damage in ["lost", "cut", "noise"] {
        let data = scratch.join("data");
        let files = Program::new("find", scratch.path())
            .args(["data", "-type", "f"])
            .run()
            .text();
        assert!(files.lines().count() > 0, "{files}");
        match damage {
            "lost" => fs::remove_dir_all(&data).expect("it is ours"),
            _ => files.lines().for_each(|file| {
                let path = scratch.join(file);
                let bytes = fs::read(&path).expect("it can be read");
                let changed = match damage {
                    "cut" => bytes[..bytes.len() / 2].to_vec(),
                    _ => bytes.iter().map(|byte| byte ^ 0x5a).collect(),
                };
                fs::write(&path, changed).expect("it is ours");
            }),
        }
        hindsight(&scratch, &["runs", "scan", "."]);
        assert_eq!(hindsight(&scratch, &["runs"]).text(), before, "{damage}");
    }
    let labelled = hindsight(&scratch, &["runs", "--label", "branch=main"]).text();
    assert_eq!(labelled.lines().count(), 3, "{labelled}");
}

#[test]
fn a_lost_database_of_the_catalog_is_made_again_unasked() {
    let scratch = Scratch::new("runs-unasked");
    record(&scratch, "3", &["--label", "branch=main"]);
    record(&scratch, "4", &[]);
    let before = hindsight(&scratch, &["runs"]).text();
    assert_eq!(before.lines().count(), 4, "{before}");
    let entries = scratch.join("data/hindsight/runs/entries");
    fs::remove_dir_all(&entries).expect("the database is there");
    assert_eq!(hindsight(&scratch, &["runs"]).text(), before);
    let labelled = hindsight(&scratch, &["runs", "--label", "branch=main"]).text();
    assert_eq!(labelled.lines().count(), 3, "{labelled}");
    // The next run finds its place, too.
    fs::remove_dir_all(&entries).expect("the database is there again");
    record(&scratch, "5", &[]);
    let after = hindsight(&scratch, &["runs"]).text();
    assert_eq!(after.lines().count(), 5, "{after}");
}

/// Exports a table of a recording, and returns the most memory that this took, in MiB.
fn memory_of_export(scratch: &Scratch, name: &str, table: &str) -> f64 {
    const MEASURE: &str = "import resource, subprocess, sys\n\
        subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr)\n\
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let hindsight = Hindsight::path().to_string_lossy().into_owned();
    let to = format!("lake-{name}-{table}");
    let export = ["export", name, "--to", &to, "--table", table];
    let measured = Program::new("python3", scratch.path())
        .args(["-c", MEASURE, &hindsight])
        .args(export)
        .env("XDG_DATA_HOME", scratch.join("data"))
        .run();
    let kib = measured.text().trim().parse::<f64>();
    kib.unwrap_or_else(|_| panic!("{}{}", measured.text(), measured.errors())) / 1024.0
}

#[test]
fn a_table_of_ten_times_the_calls_needs_hardly_more_memory_to_export() {
    let scratch = Scratch::new("runs-export-memory");
    record(&scratch, "25", &["-o", "short"]);
    record(&scratch, "30", &["-o", "long"]);
    let calls = "select count(*) from calls where function = 'fib'";
    assert_eq!(rows(&scratch, &["short", calls]), ["242785"]);
    assert_eq!(rows(&scratch, &["long", calls]), ["2692537"]);
    for table in ["calls", "events"] {
        let of = |name: &str| memory_of_export(&scratch, name, table);
        let (short, long) = (of("short"), of("long"));
        let what = format!("{table}: {short} MiB, and {long} MiB of ten times the calls");
        assert!(long < short * 1.5, "{what}");
    }
}

#[test]
fn pruning_keeps_what_failed() {
    let scratch = Scratch::new("runs-mixed");
    record(&scratch, "3", &[]);
    let failing = ["record", "-o", "bad", "--", "/bin/sh", "-c", "exit 5"];
    assert_eq!(command(&scratch, &failing).run().status.as_shell_code(), 5);
    let killed = [
        "record",
        "-o",
        "killed",
        "--",
        "/bin/sh",
        "-c",
        "kill -SEGV $$",
    ];
    assert_eq!(command(&scratch, &killed).run().status.as_shell_code(), 139);
    let failed = ["runs", "prune", "--older", "1ms", "--keep-failed", "--yes"];
    let told = hindsight(&scratch, &failed).text();
    assert!(told.ends_with("forgot 1 run\n"), "{told}");
    let left = |name: &str| {
        scratch
            .join(&format!("{name}.hindsight/manifest"))
            .is_file()
    };
    assert_eq!(
        (left("fib"), left("bad"), left("killed")),
        (false, true, true)
    );
    let all = hindsight(&scratch, &["runs", "prune", "--older", "1ms", "--yes"]).text();
    assert!(all.ends_with("forgot 2 runs\n"), "{all}");
    assert_eq!((left("bad"), left("killed")), (false, false));
}

/// The recordings and sets in the test's folder.
fn made(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path()).expect("the folder is ours");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let is_made = |name: &String| name.ends_with(".hindsight") || name.ends_with(".children");
    let mut made: Vec<String> = names.filter(is_made).collect();
    made.sort();
    made
}

/// Runs a command whose stdout is full. Returns its exit code and its errors.
fn into_full(scratch: &Scratch, args: &[&str]) -> (i32, String) {
    let shell = ["-c", "exec \"$0\" \"$@\" > /dev/full"];
    let ended = command(scratch, args)
        .wrapped(Path::new("/bin/sh"), shell)
        .run();
    (ended.status.as_shell_code(), ended.errors())
}

/// Runs a command whose reader has gone. Returns its exit code and its errors.
fn unread(scratch: &Scratch, args: &[&str]) -> (i32, String) {
    let script = "{ sleep 1; \"$0\" \"$@\"; echo $? > code; } | true";
    let ended = command(scratch, args)
        .wrapped(Path::new("/bin/sh"), ["-c", script])
        .run();
    let code = fs::read_to_string(scratch.join("code")).expect("it has ended");
    (code.trim().parse().expect("a number"), ended.errors())
}

#[test]
fn what_is_asked_is_deleted_even_if_nobody_can_read_about_it() {
    let scratch = Scratch::new("runs-unread");
    for _ in 0..4 {
        record(&scratch, "3", &[]);
    }
    let set = ["record", "--children", "-o", "set", "--"];
    let script = ["/bin/sh", "-c", "./fib 3; ./fib 4; exit 0"];
    hindsight(&scratch, &[&set[..], &script].concat());
    let full = "error: cannot write to stdout: No space left on device\n".to_owned();
    let rm = ["rm", "--yes", "fib-2", "fib-3", "set.children"];
    assert_eq!(into_full(&scratch, &rm), (1, full.clone()));
    assert_eq!(made(&scratch), ["fib-4.hindsight", "fib.hindsight"]);
    let forget = ["runs", "forget", "fib-4"];
    assert_eq!(into_full(&scratch, &forget), (1, full));
    hindsight(&scratch, &["runs", "scan", "."]);
    let prune = ["runs", "prune", "--older", "1ms"];
    let dry_run = [&prune[..], &["--dry-run"]].concat();
    let done = (0, String::new());
    assert_eq!(unread(&scratch, &dry_run), done);
    assert_eq!(made(&scratch), ["fib-4.hindsight", "fib.hindsight"]);
    let all = [&prune[..], &["--yes"]].concat();
    assert_eq!(unread(&scratch, &all), done);
    assert_eq!(made(&scratch), [""; 0]);
    // None is left in the catalog either.
    assert_eq!(hindsight(&scratch, &all).text(), "forgot 0 runs\n");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_comparison() {
    let scratch = Scratch::new("runs-reports");
    record(&scratch, "3", &["-o", "a"]);
    record(&scratch, "4", &["-o", "b"]);
    fs::create_dir(scratch.join("folder")).expect("the folder is ours");
    for option in ["--html", "--junit", "--sarif", "--accept"] {
        let args = ["compare", "a", "b", option, "no/such/file"];
        let refused = command(&scratch, &args).run();
        let why = "error: cannot write no/such/file: there is no folder no/such\n\
                   help: make it first: mkdir -p no/such\n";
        let told = (refused.text(), refused.errors());
        assert_eq!(told, (String::new(), why.to_owned()), "{option}");
        assert_eq!(refused.status.as_shell_code(), 2, "{option}");
    }
    let refused = command(&scratch, &["compare", "a", "b", "--html", "folder"]).run();
    let why = "error: cannot write folder: it is a folder\nhelp: name a file\n";
    assert_eq!(refused.errors(), why);
    assert_eq!(refused.status.as_shell_code(), 2);
    let refused = command(&scratch, &["compare", "a", "b", "--accept", "folder"]).run();
    assert_eq!(refused.status.as_shell_code(), 2, "{}", refused.errors());
    let written = command(&scratch, &["compare", "a", "b", "--html", "page.html"]).run();
    assert_eq!(written.status.as_shell_code(), 1, "{}", written.errors());
    assert!(scratch.join("page.html").is_file());
    // Nobody can read what differs; that is no difference.
    let why = "error: cannot write to stdout: No space left on device\n";
    for args in [&["compare", "a", "b"][..], &["compare", "a", "b", "--json"]] {
        assert_eq!(into_full(&scratch, args), (3, why.to_owned()), "{args:?}");
    }
    // A reader that has gone, such as `head`, does not make them the same.
    let different = (1, String::new());
    assert_eq!(unread(&scratch, &["compare", "a", "b"]), different);
}

#[test]
fn a_listing_tells_when_with_what_and_how_it_ended() {
    let scratch = Scratch::new("runs-listed");
    let began = Program::new("date", scratch.path())
        .args(["-u", "+%FT%T"])
        .run()
        .text();
    record(&scratch, "7", &["--label", "k=v"]);
    let ended = Program::new("date", scratch.path())
        .args(["-u", "+%FT%T"])
        .run()
        .text();
    let listed = hindsight(&scratch, &["ls"]).text();
    let mut lines = listed.lines();
    let heads: Vec<&str> = lines
        .next()
        .expect("a heading")
        .split('|')
        .map(str::trim)
        .collect();
    let cells: Vec<&str> = lines
        .nth(1)
        .expect("a row")
        .split('|')
        .map(str::trim)
        .collect();
    let cell = |head: &str| {
        let at = heads.iter().position(|own| *own == head);
        cells[at.unwrap_or_else(|| panic!("{head}: {listed}"))]
    };
    assert_eq!(cell("recording"), "fib.hindsight");
    let started = cell("started").trim_end_matches('Z');
    assert!(
        began.trim() <= started && started <= ended.trim(),
        "{listed}"
    );
    assert!(cell("ended").contains('0'), "{listed}");
    assert_eq!(cell("calls"), "42", "main and 41 calls of fib");
    assert!(
        listed.contains("./fib 7") && listed.contains("k=v"),
        "{listed}"
    );
    let files = Program::new("find", scratch.path())
        .args(["fib.hindsight", "-type", "f", "-printf", "%s\n"])
        .run()
        .text();
    let bytes: f64 = files
        .lines()
        .filter_map(|size| size.parse::<f64>().ok())
        .sum();
    let told: f64 = cell("size")
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a size");
    let unit = if cell("size").ends_with("kB") {
        1e3
    } else {
        1e6
    };
    // The folders themselves count for du.
    assert!(
        (told * unit - bytes).abs() < 0.25 * bytes,
        "{listed}: {bytes}"
    );

    let uname = Program::new("uname", scratch.path())
        .args(["-r"])
        .run()
        .text();
    let of_runs = "select host, host_name, start_unix_ns, arguments from runs";
    let row = hindsight(&scratch, &["sql", "fib", of_runs, "--json"]).result()[0].clone();
    assert!(
        row["host"]
            .as_str()
            .is_some_and(|host| host.contains(uname.trim())),
        "{row}"
    );
    let node = Program::new("uname", scratch.path()).args(["-n"]).run();
    assert_eq!(row["host_name"], node.text().trim());
    let start = row["start_unix_ns"].as_i64().expect("a time") / 1_000_000_000;
    let date = Program::new("date", scratch.path())
        .args(["-u", "-d", &format!("@{start}"), "+%FT%T"])
        .run();
    assert_eq!(date.text().trim(), started);
    assert_eq!(row["arguments"], "7");
}

/// What a recording was not asked to keep is NULL, or has no rows, beside one that has it.
#[test]
fn what_was_not_recorded_is_null() {
    let scratch = Scratch::new("runs-options");
    let run = |name: &str, options: &[&str]| {
        let args = [
            &["record", "-o", name],
            options,
            &["--", "/bin/sort", "/etc/passwd"],
        ]
        .concat();
        let ended = command(&scratch, &args).run();
        assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
    };
    run("plain", &["--no-syscalls"]);
    run(
        "rich",
        &[
            "--syscalls",
            "--memory",
            "--locks",
            "--strings",
            "--regs",
            "--stack",
            "64",
        ],
    );
    let counts = |table: &str| {
        let sql = format!("select count(*) from \"{table}\" where run = 'plain'");
        let other = format!("select count(*) from \"{table}\" where run = 'rich'");
        (
            rows(&scratch, &["plain", "rich", &sql])[0].clone(),
            rows(&scratch, &["plain", "rich", &other])[0].clone(),
        )
    };
    for table in ["syscalls", "files", "allocations"] {
        let (plain, rich) = counts(table);
        assert_eq!(plain, "0", "{table}");
        assert_ne!(rich, "0", "{table}");
    }
    let sql =
        "select run, count(*) = count(r.calls) as has_calls from runs r group by run order by run";
    assert_eq!(
        rows(&scratch, &["plain", "rich", sql]),
        ["plain,true", "rich,true"]
    );
    // Without --regs, no register that a call preserves is known, and then it is NULL.
    let kept = "select run, count(*) > 0, count(r12) = 0, count(r12) = count(*) \
                from (select run, reg(run, start_seq, 'r12') as r12 from calls) group by run order by run";
    assert_eq!(
        rows(&scratch, &["plain", "rich", kept]),
        ["plain,true,true,false", "rich,true,false,true"]
    );
    let both = "select count(distinct run) from calls c left join syscalls s using (run) where c.function is not null";
    assert_eq!(rows(&scratch, &["plain", "rich", both]), ["2"]);
}

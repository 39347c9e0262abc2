//! Goal: wrong input is refused with a message and the documented exit codes, and recordings are private. Method:
//! damage a recording in many ways; give wrong arguments.

use e2e::{Comparison, Ended, Hindsight, Program, Recording, Scratch, Status, fixture_artifact};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn small_recording() -> Comparison {
    Comparison::of("fib", "fib", &["10"])
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the recording") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(files_below(&path));
        }
        all.push(path);
    }
    all
}

/// Hindsight reported the error, without a panic.
fn assert_refused(ended: &Ended, code: i32) {
    assert_eq!(
        ended.status,
        Status::Code(code),
        "{}{}",
        ended.text(),
        ended.errors()
    );
    assert!(!ended.errors().is_empty(), "it says why");
    assert_no_panic(ended);
}

fn assert_no_panic(ended: &Ended) {
    assert!(!ended.errors().contains("panicked"), "{}", ended.errors());
    assert!(
        matches!(ended.status, Status::Code(0..=4)),
        "{:?} {}",
        ended.status,
        ended.errors()
    );
}

#[test]
fn only_the_owner_can_read_a_recording() {
    let both = small_recording();
    let mode = |p: &Path| fs::metadata(p).expect("it exists").permissions().mode() & 0o777;
    assert_eq!(mode(both.recording.path()), 0o700);
    for path in files_below(both.recording.path()) {
        assert_eq!(
            mode(&path),
            if path.is_dir() { 0o700 } else { 0o600 },
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_closed_recording_has_no_marker_and_passes_its_check() {
    let both = small_recording();
    assert!(!both.recording.path().join("incomplete").exists());
    assert_eq!(both.recording.command("check", &[]).status, Status::Code(0));
    assert_eq!(both.recording.command("info", &[]).status, Status::Code(0));
}

#[test]
fn things_that_are_no_recording_are_refused() {
    let scratch = Scratch::new("foreign");
    fs::create_dir(scratch.join("empty.hindsight")).expect("a folder");
    fs::create_dir(scratch.join("foreign.hindsight")).expect("a folder");
    fs::write(scratch.join("foreign.hindsight/manifest"), "not a manifest").expect("a file");
    fs::write(scratch.join("file.hindsight"), "not a folder").expect("a file");
    for name in ["empty", "foreign", "file", "missing"] {
        let recording = Recording::new(scratch.join(&format!("{name}.hindsight")));
        for (verb, more) in [
            ("sql", vec!["SELECT 1"]),
            ("info", vec![]),
            ("check", vec![]),
        ] {
            let ended = recording.command(verb, &more);
            assert_no_panic(&ended);
            assert_ne!(ended.status, Status::Code(0), "{verb} {name}");
            assert!(
                ended.errors().contains(name),
                "{verb} names the recording: {}",
                ended.errors()
            );
        }
    }
}

/// Flips one bit in the middle of each file in turn.
#[test]
fn damage_is_found_and_never_panics() {
    let both = small_recording();
    let copy = both.scratch.join("copy.hindsight");
    for file in files_below(both.recording.path())
        .iter()
        .filter(|f| f.is_file())
    {
        let bytes = fs::read(file).expect("a file of the recording");
        let relative = file
            .strip_prefix(both.recording.path())
            .expect("it lies in the recording");
        if bytes.is_empty() {
            continue;
        }
        copy_folder(both.recording.path(), &copy);
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 0x10;
        fs::write(copy.join(relative), damaged).expect("the copy is writable");
        let damaged = Recording::new(copy.clone());
        let check = damaged.command("check", &[]);
        assert_no_panic(&check);
        assert_ne!(
            check.status,
            Status::Code(0),
            "damage in {} was not found",
            relative.display()
        );
        assert_no_panic(&damaged.command("sql", &["SELECT count(*), sum(dur_ns) FROM calls"]));
        assert_no_panic(&damaged.command("info", &[]));
        fs::remove_dir_all(&copy).expect("the copy is ours");
    }
}

#[test]
fn cut_files_never_panic() {
    let both = small_recording();
    let copy = both.scratch.join("copy.hindsight");
    for file in files_below(both.recording.path())
        .iter()
        .filter(|f| f.is_file())
    {
        let bytes = fs::read(file).expect("a file of the recording");
        let relative = file
            .strip_prefix(both.recording.path())
            .expect("it lies in the recording");
        for keep in [0, bytes.len() / 3, bytes.len().saturating_sub(1)] {
            copy_folder(both.recording.path(), &copy);
            fs::write(copy.join(relative), &bytes[..keep]).expect("the copy is writable");
            assert_no_panic(
                &Recording::new(copy.clone()).command("sql", &["SELECT count(*) FROM calls"]),
            );
            fs::remove_dir_all(&copy).expect("the copy is ours");
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("entries have names"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a file can be copied");
        }
    }
}

#[test]
fn an_existing_recording_is_not_overwritten() {
    let both = small_recording();
    let before = both.recording.calls_of("fib");
    let program = Program::new(fixture_artifact("fib", "fib"), both.scratch.path()).args(["5"]);
    let again = Hindsight::record_command(&both.scratch, "rec", &[], &program).run();
    assert_no_panic(&again);
    assert_eq!(
        both.recording.calls_of("fib"),
        before,
        "the first recording is as it was"
    );
}

/// Nothing is started, and nothing is created.
#[test]
fn names_that_no_recording_can_have_are_refused() {
    for (options, ending) in [
        (&["record"][..], "hindsight"),
        (&["record", "--children"][..], "children"),
    ] {
        refuse_names(options, ending);
    }
}

/// `ending`: that of the folder that a command makes.
fn refuse_names(options: &[&str], ending: &str) {
    let scratch = Scratch::new(&format!("names-{ending}"));
    let (taken, bare) = (format!("taken.{ending}"), format!(".{ending}"));
    fs::write(scratch.join("file"), "no folder").expect("a file");
    fs::create_dir(scratch.join(&taken)).expect("a folder");
    fs::create_dir(scratch.join("folder")).expect("a folder");
    let in_taken = format!("{taken}/");
    let cases = [
        ("", "a value is required"),
        ("/", "there already"),
        (".", "there already"),
        ("..", "there already"),
        ("./", "there already"),
        ("../.", "there already"),
        ("folder/", "there already"),
        (bare.as_str(), "nothing before the ending"),
        ("file/rec", "not a directory"),
        ("nowhere/rec", "No such file"),
        ("/proc/rec", "cannot be created"),
        ("taken", "exists already"),
        (in_taken.as_str(), "exists already"),
    ];
    let mark = scratch.join("started");
    for (name, why) in cases {
        let args = [options, &["-o", name, "--", "/bin/touch"][..]].concat();
        let ended = Hindsight::command(&scratch, &args).args([&mark]).run();
        assert_refused(&ended, 2);
        let told = ended.errors();
        assert!(told.contains(why), "{args:?}: {told}");
        let has_next = told.contains("choose") || name.is_empty();
        assert!(has_next, "{args:?}: {told}");
        assert!(!mark.exists(), "{args:?} started the program");
    }
    for made in [format!("/.{ending}"), format!("/proc/rec.{ending}")] {
        assert!(!Path::new(&made).exists(), "{made}");
    }
}

#[test]
fn programs_that_cannot_be_started_are_errors_of_their_own() {
    let scratch = Scratch::new("unstartable");
    fs::write(scratch.join("text"), "no program").expect("a file");
    fs::write(scratch.join("garbage"), [0u8; 64]).expect("a file");
    fs::set_permissions(scratch.join("garbage"), fs::Permissions::from_mode(0o755))
        .expect("the file is ours");
    for name in ["missing", "text", "garbage"] {
        let path = scratch.join(name);
        let ended = Hindsight::command(
            &scratch,
            &["record", "-o", "rec", "--", path.to_str().expect("UTF-8")],
        )
        .run();
        assert_refused(&ended, 4);
        assert!(
            ended.errors().contains(name),
            "it names the program: {}",
            ended.errors()
        );
        assert!(
            !scratch.join("rec.hindsight").exists(),
            "no recording of nothing"
        );
    }
}

#[test]
fn a_program_is_found_on_the_path() {
    let scratch = Scratch::new("path");
    let ended = Hindsight::command(&scratch, &["record", "-o", "rec", "--", "true"]).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
}

#[test]
fn wrong_arguments_are_exit_code_2_and_say_what_is_right() {
    let scratch = Scratch::new("usage");
    for args in [
        &["no-such-verb"][..],
        &["record"],
        &["record", "--"],
        &["record", "--on-full", "sometimes", "--", "true"],
        &["record", "--attach", "not-a-number"],
        &["record", "--attach", "1", "--", "true"],
        &["record", "-f", "", "--", "true"],
        &["record", "-x", "file:", "--", "true"],
        &["sql"],
        &["sql", "rec"],
        &["info"],
    ] {
        let ended = Hindsight::command(&scratch, args).run();
        assert_eq!(
            ended.status,
            Status::Code(2),
            "{args:?}: {}{}",
            ended.text(),
            ended.errors()
        );
        assert!(
            !ended.errors().is_empty() && !ended.errors().contains("panicked"),
            "{args:?}: {}",
            ended.errors()
        );
    }
}

#[test]
fn wrong_sql_is_refused_in_words() {
    let both = small_recording();
    for sql in [
        "SELEC 1",
        "SELECT nonsense FROM calls",
        "SELECT * FROM no_table",
        "DROP TABLE calls",
        "",
    ] {
        let ended = both.recording.command("sql", &[sql]);
        assert_no_panic(&ended);
        assert_ne!(ended.status, Status::Code(0), "{sql}");
        assert!(!ended.errors().is_empty(), "{sql}");
    }
    assert_eq!(
        both.recording.command("check", &[]).status,
        Status::Code(0),
        "it is as it was"
    );
}

#[test]
fn every_format_of_answers_can_be_read_back() {
    let both = small_recording();
    let sql = "SELECT function, count(*) AS n FROM calls WHERE function = 'fib' GROUP BY function";
    let csv = both.recording.command("sql", &[sql, "--format", "csv"]);
    assert_eq!(csv.text().replace('\r', ""), "function,n\nfib,177\n");
    let json: serde_json::Value = serde_json::from_slice(
        &both
            .recording
            .command("sql", &[sql, "--format", "json"])
            .stdout,
    )
    .expect("JSON");
    assert_eq!(json, serde_json::json!([{"function": "fib", "n": 177}]));
    let table = both.recording.command("sql", &[sql, "--format", "table"]);
    assert!(
        table.text().contains("fib") && table.text().contains("177"),
        "{}",
        table.text()
    );
    let file = both.scratch.join("answer.parquet");
    let parquet = both.recording.command(
        "sql",
        &[
            sql,
            "--format",
            "parquet",
            "-o",
            file.to_str().expect("UTF-8"),
        ],
    );
    assert_eq!(parquet.status, Status::Code(0), "{}", parquet.errors());
    assert!(
        fs::read(file)
            .expect("the file was written")
            .starts_with(b"PAR1")
    );
}

#[test]
fn an_option_that_record_does_not_have_is_no_program() {
    let scratch = Scratch::new("unknown-option");
    let run = |args: &[&str]| Hindsight::command(&scratch, args).run();
    let ended = run(&["record", "--functions", "main", "--", "/bin/true"]);
    assert_refused(&ended, 2);
    assert!(
        ended.errors().contains("'--function'"),
        "{}",
        ended.errors()
    );
    // The program's own options are not ours.
    let ended = run(&["record", "-o", "own", "/bin/echo", "--functions", "-o"]);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert_eq!(ended.text(), "--functions -o\n");
}

#[test]
fn a_misspelt_variable_of_a_function_that_calls_nothing_is_named() {
    let scratch = Scratch::new("refusals-watch");
    let source = "int limit = 3;\nint look(int key) { int found = key + limit; return found; }\n\
         int main(void) { return look(-3); }\n";
    let program = e2e::compiled(&scratch, "program.c", source, &["-O0", "-g"]);
    let program = program.to_str().expect("its name is text");
    for (watch, told) in [
        (
            "look::fuond",
            "no variable \"fuond\" here\nhelp: did you mean \"found\"?",
        ),
        ("look::found", "the function calls no other"),
    ] {
        let ended = Hindsight::command(&scratch, &["record", "--watch", watch, program]).run();
        assert_ne!(ended.status, Status::Code(0), "{watch}");
        assert!(ended.errors().contains(told), "{watch}: {}", ended.errors());
    }
}

/// Only words that resemble what was written are suggested.
#[test]
fn wrong_options_have_near_suggestions_only() {
    let scratch = Scratch::new("refusals-tips");
    let refused = |words: &[&str]| {
        let ended = Hindsight::command(&scratch, words).run();
        assert_refused(&ended, 2);
        ended.errors()
    };
    let far = refused(&["record", "--nope", "/bin/true"]);
    assert!(
        !far.contains("similar") && !far.contains("--copies"),
        "{far}"
    );
    let near = refused(&["record", "--strngs", "/bin/true"]);
    assert!(near.contains("'--strings'"), "{near}");
    assert!(refused(&["rport", "rec"]).contains("did you mean report?"));
}

/// A name belongs to the newest recording that was to be called so, and it is said that there are several.
#[test]
fn the_recording_that_answers_for_several_is_named() {
    let scratch = Scratch::new("refusals-newest");
    let record = || {
        let program = fixture_artifact("fib", "fib");
        let program = program.to_str().expect("paths of tests are text");
        let ended = Hindsight::command(&scratch, &["record", program, "3"]).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    };
    record();
    let ask = |name: &str| {
        let query = "SELECT count(*) FROM calls WHERE function = 'main'";
        let ended = Hindsight::command(&scratch, &["sql", name, query]).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.errors()
    };
    assert_eq!(ask("fib"), "");
    record();
    let said = ask("fib");
    assert!(
        said.contains("fib-2.hindsight") && said.contains("newer than fib.hindsight"),
        "{said}"
    );
    assert_eq!(ask("fib-2"), "");
    assert_eq!(ask("fib.hindsight"), "");
}

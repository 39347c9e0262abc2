//! Goal: at every call, variables of inlined functions have the values that the program prints, or a reason why not. Method:
//! programs of three compilers that print the variables around each call; SQL over recordings with captures, and live sessions
//! next to gdb.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use std::process::Command;

use e2e::{
    Comparison, Hindsight, Live, Nesting, Program, Recording, Scratch, fixture_artifact, in_turn,
};

/// The programs, with their names of the function that is called.
const PROGRAMS: [(&str, &str); 3] = [
    ("copies_gcc", "probe"),
    ("copies_clang", "probe"),
    ("copies_rust", "copies::probe"),
];

fn recorded(artifact: &str, watches: &[&str]) -> Comparison {
    let options: Vec<&str> = watches.iter().flat_map(|w| ["--watch", w]).collect();
    let scratch = Scratch::new(artifact);
    let program = Program::new(fixture_artifact("copies", artifact), scratch.path());
    Comparison::of_program(scratch, &program, &options, Nesting::Proper)
}

fn started(artifact: &str, function: &str) -> Live {
    let path = fixture_artifact("copies", artifact);
    Live::started(artifact, &["--break", function], &path, &[])
}

fn texts(recording: &Recording, sql: &str) -> Vec<String> {
    let rows = recording.rows(sql);
    let text = |row: &e2e::Row| row["value"].as_str().unwrap_or("?").to_owned();
    rows.iter().map(text).collect()
}

/// A column of what the program printed, one value per call.
fn printed(comparison: &Comparison, column: usize) -> Vec<String> {
    let text = comparison.native.text();
    let notes = text.lines().filter(|line| !line.starts_with("calls"));
    let of_line = |line: &str| line.split(' ').nth(column).map(str::to_owned);
    notes.filter_map(of_line).collect()
}

/// Checks values against the expected ones of all calls, and that at least this many are known.
fn assert_known(what: &str, seen: &[String], expected: &[String], least: usize) {
    assert_eq!(seen.len(), expected.len(), "{what}");
    let both = seen.iter().zip(expected);
    let known: Vec<_> = both.filter(|(seen, _)| *seen != "?").collect();
    assert!(known.len() >= least, "{what}: {seen:?}");
    assert!(
        known.iter().all(|(a, b)| a == b),
        "{what}: {seen:?} {expected:?}"
    );
}

#[test]
fn watched_variables_of_inlined_functions_are_known_at_the_calls_in_them() {
    for (artifact, function) in in_turn(PROGRAMS) {
        let is_c = artifact != "copies_rust";
        let watches = ["cache_get::tries", "outer_sum::base", "cache_get::slot"];
        let comparison = recorded(artifact, if is_c { &watches } else { &watches[..1] });
        let asked = |expression: &str| {
            let sql = format!(
                "SELECT {expression} AS value FROM calls WHERE function = '{function}' \
                 ORDER BY start_seq"
            );
            texts(&comparison.recording, &sql)
        };
        let (tries, base) = (printed(&comparison, 0), printed(&comparison, 1));
        assert_eq!(tries.len(), 16, "{artifact}");
        let check = |expression: &str, expected: &[String], least: usize| {
            let what = format!("{artifact}: {expression}");
            assert_known(&what, &asked(expression), expected, least);
        };
        check("value(start_seq, 'cache_get::tries')", &tries, 16);
        check("frame_value(start_seq, 1, 'tries')", &tries, 16);
        check("value(end_seq, 'cache_get::tries')", &tries, 8);
        if is_c {
            // Compilers do not describe the pointer at all calls.
            let indexes = printed(&comparison, 2);
            check(
                "value(start_seq, 'cache_get::slot - &cache[0]')",
                &indexes,
                12,
            );
            check("value(start_seq, 'outer_sum::base')", &base, 16);
            check("frame_value(start_seq, 2, 'base')", &base, 16);
        }
        let mut changes = tries;
        changes.dedup();
        let history = "SELECT new AS value FROM history('cache_get::tries') ORDER BY seq";
        assert_eq!(texts(&comparison.recording, history), changes, "{artifact}");
    }
}

/// gdb's values of `tries` in the innermost `cache_get` and of `base` in `outer_sum` at each call.
fn of_gdb(artifact: &str, function: &str) -> Vec<String> {
    let scope = function.strip_suffix("probe").expect("the name ends so");
    let script = format!(
        "set pagination off\nset confirm off\nbreak {function}\ncommands\nsilent\n\
         frame function {scope}cache_get\necho seen\noutput tries\n\
         echo \\n\nframe function {scope}outer_sum\necho seen\noutput base\necho \\n\n\
         continue\nend\nrun\n"
    );
    let scratch = Scratch::new(&format!("gdb-{artifact}"));
    let file = scratch.path().join("script");
    std::fs::write(&file, script).expect("the folder is ours");
    let ran = Command::new("gdb")
        .args(["-q", "-nx", "-batch", "-x"])
        .arg(&file)
        .arg(fixture_artifact("copies", artifact))
        .output()
        .expect("gdb is installed");
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let seen = text.lines().filter_map(|line| line.strip_prefix("seen"));
    seen.map(str::to_owned).collect()
}

#[test]
fn variables_of_inlined_functions_are_printed_as_gdb_prints_them() {
    for (artifact, function) in in_turn(PROGRAMS) {
        let live = started(artifact, function);
        let mut seen = Vec::new();
        loop {
            for variable in ["cache_get::tries", "outer_sum::base"] {
                let value = live.ask(&["print", variable])["value"].take();
                seen.push(value.as_str().unwrap_or("?").to_owned());
            }
            if live.ask(&["continue"])["status"] != "stopped" {
                break;
            }
        }
        assert_eq!(seen.len(), 32, "{artifact}");
        // rustc does not keep `base` after the first call.
        let least = if artifact == "copies_rust" { 16 } else { 32 };
        assert_known(artifact, &seen, &of_gdb(artifact, function), least);
    }
}

#[test]
fn what_no_copy_here_has_is_refused_with_the_reason() {
    for (artifact, function) in &PROGRAMS[..2] {
        let live = started(artifact, "main");
        let refused = |expression: &str| {
            let refused = live.refused(&["print", expression]);
            refused["message"].as_str().expect("a text").to_owned()
        };
        assert_eq!(
            refused("cache_get::tries"),
            "tries is a variable of cache_get, which is inlined elsewhere and does not run here"
        );
        live.ask(&["break", function]);
        live.ask(&["continue"]);
        assert_eq!(live.print("cache_get::tries"), "3");
        assert_eq!(
            refused("mix::half"),
            "half is a variable of mix, which is inlined elsewhere and does not run here"
        );
        assert_eq!(
            refused("cache_get::trys"),
            "cache_get has no variable \"trys\""
        );
    }
}

#[test]
fn a_watched_variable_of_an_inlined_function_without_calls_is_refused() {
    let scratch = Scratch::new("watched-copies");
    let program = fixture_artifact("copies", "copies_gcc");
    let program = program.to_str().expect("paths of tests are text");
    for (watch, wanted) in [
        ("mix::half", "no call is made where mix is inlined"),
        ("cache_get::trys", "cache_get has no variable \"trys\""),
    ] {
        let args = ["record", "--watch", watch, "--", program];
        let ended = Hindsight::command(&scratch, &args).run();
        assert!(ended.errors().contains(wanted), "{}", ended.errors());
        assert!(ended.text().is_empty(), "the program ran");
    }
}

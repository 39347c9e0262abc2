//! Goal: `--log-writes` makes each write to a variable an event that names the line of the program's own code, and changes nothing
//! in the program. Method: fixtures whose writes are in marked lines, and gdb's watchpoints as the reference. Each run takes a third
//! of what is compared with gdb; `WHOLE=1` all.

use std::path::Path;
use std::time::{Duration, Instant};

use e2e::{
    Comparison, Hindsight, Live, Nesting, Program, Recording, Row, Running, Scratch, compiled,
    fixture_artifact, in_turn, marked_line, share,
};
use serde_json::Value;

/// A change: the line of the program's own code, and the new bytes in hexadecimal.
type Written = (u64, String);

fn program(artifact: &str, scratch: &Scratch) -> Program {
    let program = Program::new(fixture_artifact("logged", artifact), scratch.path());
    match artifact {
        "logged_O0" | "logged_O2" => program.ending(3),
        _ => program,
    }
}

/// Records a program of the fixture; it behaves as in a native run.
fn recorded(artifact: &str, options: &[&str]) -> Comparison {
    let scratch = Scratch::new(artifact);
    let program = program(artifact, &scratch);
    Comparison::of_program(scratch, &program, options, Nesting::Proper)
}

fn writes(recording: &Recording, target: &str) -> Vec<Row> {
    recording.rows(&format!(
        "SELECT * FROM writes WHERE by = 'program' AND target = '{target}' ORDER BY seq"
    ))
}

fn text<'r>(row: &'r Row, column: &str) -> &'r str {
    row[column].as_str().unwrap_or_default()
}

/// The writes that changed something, in gdb's form.
fn changes(recording: &Recording, target: &str) -> Vec<Written> {
    let rows = writes(recording, target);
    let changed = rows.iter().filter(|row| row["old"] != row["new"]);
    changed
        .map(|row| {
            let line = row["line"].as_u64().unwrap_or_default();
            (line, text(row, "new").to_owned())
        })
        .collect()
}

/// The output of gdb's watchpoint on `expression`, from the program's first own instruction on: for each change the line of
/// the innermost frame whose source is `file`, and the bytes. The line is 0 if an inlined function of another file wrote:
/// gdb's scripts do not show its call site.
fn gdb_changes(program: &Program, expression: &str, file: &str) -> Vec<Written> {
    let language = match file.ends_with(".rs") {
        true => "gdb.execute('set language rust')",
        false => "",
    };
    let script = format!(
        "
import gdb
gdb.execute('set pagination off')
gdb.execute('set confirm off')
gdb.execute('starti')
{language}
value = gdb.parse_and_eval('{expression}')
address, size = int(value.address), value.type.sizeof
def is_own(symtab):
    return symtab is not None and symtab.filename.endswith('{file}')
def own_line():
    frame = gdb.newest_frame()
    found = gdb.find_pc_line(frame.pc() - 1)
    if is_own(found.symtab):
        return found.line
    if gdb.block_for_pc(frame.pc() - 1) is not None and frame.type() == gdb.INLINE_FRAME:
        return 0
    physical = frame.function().symtab if frame.function() else None
    if is_own(physical):
        return 0
    while frame is not None and not is_own(frame.find_sal().symtab):
        frame = frame.older()
    return frame.find_sal().line if frame is not None else 0
class Seen(gdb.Breakpoint):
    def stop(self):
        memory = gdb.selected_inferior().read_memory(address, size).tobytes()
        print('WRITTEN', own_line(), memory.hex(), flush=True)
        return False
gdb.execute('set language c')
Seen('*(unsigned char (*)[%d]) %d' % (size, address), gdb.BP_WATCHPOINT, gdb.WP_WRITE)
gdb.execute('continue')
"
    );
    let path = program.dir().join("watch.py");
    std::fs::write(&path, script).expect("the folder can be written to");
    let path = path.to_str().expect("paths of tests are text");
    let options = ["-q", "-batch", "-nx", "-x", path, "--args"];
    let ended = program.wrapped(Path::new("/usr/bin/gdb"), options).run();
    let output = ended.text();
    let lines = output
        .lines()
        .filter_map(|line| line.split_once("WRITTEN ").map(|(_, told)| told));
    let written: Vec<Written> = lines
        .filter_map(|line| line.split_once(' '))
        .map(|(line, bytes)| (line.parse().expect("a line"), bytes.to_owned()))
        .collect();
    assert!(!written.is_empty(), "{output}\n{}", ended.errors());
    written
}

fn line(file: &str, mark: &str) -> u64 {
    marked_line("logged", file, mark)
}

#[test]
fn writes_and_lines_are_those_of_gdb() {
    for (artifact, file, place) in in_turn([
        ("logged_O0", "logged.c", "counter"),
        ("logged_O0", "logged.c", "other"),
        ("logged_O0", "logged.c", "cache"),
        ("logged_O0", "logged.c", "cache.tail"),
        ("logged_O2", "logged.c", "counter"),
        ("logged_O2", "logged.c", "other"),
        ("logged_O2", "logged.c", "cache"),
        ("logged_cxx", "logged.cc", "shop::stock.pieces"),
        ("logged_cxx_O2", "logged.cc", "shop::stock.pieces"),
        ("logged_rust", "logged.rs", "logged::PLAIN[1]"),
        ("logged_rust", "logged.rs", "logged::HITS"),
        ("logged_rust_O2", "logged.rs", "logged::HITS"),
    ]) {
        let comparison = recorded(artifact, &["--log-writes", place]);
        let mut seen = changes(&comparison.recording, place);
        let told = gdb_changes(&program(artifact, &comparison.scratch), place, file);
        for (seen, told) in seen.iter_mut().zip(&told).filter(|(_, told)| told.0 == 0) {
            assert_ne!(seen.0, 0, "{artifact}: {place}");
            seen.0 = told.0;
        }
        assert_eq!(seen, told, "{artifact}: {place}");
    }
}

#[test]
fn every_write_has_its_line_also_of_the_same_value() {
    let comparison = recorded("logged_O0", &["--log-writes", "counter"]);
    let rows = writes(&comparison.recording, "counter");
    let at = |mark| line("logged.c", mark);
    let expected: Vec<u64> = (0..3)
        .flat_map(|_| [at("set"), at("add")])
        .chain([at("last"), at("again")])
        .collect();
    let lines: Vec<u64> = rows.iter().filter_map(|row| row["line"].as_u64()).collect();
    assert_eq!(lines, expected);
    let last = rows.last().expect("there are some");
    assert_eq!(
        (text(last, "old"), text(last, "new")),
        ("21000000", "21000000")
    );
    assert_eq!(text(last, "function"), "main");
    assert_eq!(text(&rows[1], "function"), "add");
    assert!(
        rows.iter()
            .all(|row| row["via"].is_null() && row["shared"] == false)
    );
    // The instruction is in the function, and the old value of each write is the new one of the previous write.
    assert!(rows.iter().all(|row| row["pc"].as_i64().is_some()));
    assert!(rows.windows(2).all(|pair| pair[0]["new"] == pair[1]["old"]));
}

#[test]
fn a_write_by_the_c_library_names_the_programs_own_line() {
    for artifact in in_turn(["logged_O0", "logged_O2"]) {
        let comparison = recorded(artifact, &["--log-writes", "cache", "--log-writes", "word"]);
        let rows = writes(&comparison.recording, "cache");
        let copied: Vec<&Row> = rows.iter().filter(|row| !row["via"].is_null()).collect();
        assert!(!copied.is_empty(), "{artifact}: {rows:#?}");
        for row in copied {
            assert_eq!(
                row["line"].as_u64(),
                Some(line("logged.c", "copy")),
                "{artifact}"
            );
            assert!(text(row, "via").contains("mem"), "{artifact}: {row:#?}");
        }
        let filled = writes(&comparison.recording, "word");
        let last = filled.last().expect("it is filled");
        assert_eq!(
            last["line"].as_u64(),
            Some(line("logged.c", "fill")),
            "{artifact}"
        );
        assert_eq!(text(last, "new"), "7878787878000000", "{artifact}");
    }
}

#[test]
fn statics_of_functions_are_logged() {
    let comparison = recorded("logged_O0", &["--log-writes", "work::total"]);
    let lines: Vec<u64> = writes(&comparison.recording, "work::total")
        .iter()
        .filter_map(|row| row["line"].as_u64())
        .collect();
    assert_eq!(lines, [line("logged.c", "total"); 3]);
}

#[test]
fn objects_of_cxx_and_rust_have_the_programs_own_lines() {
    let comparison = recorded(
        "logged_cxx",
        &[
            "--log-writes",
            "shop::stock.pieces",
            "--log-writes",
            "shop::pair_of",
        ],
    );
    let lines = |target: &str| -> Vec<u64> {
        let rows = writes(&comparison.recording, target);
        rows.iter().filter_map(|row| row["line"].as_u64()).collect()
    };
    let at = |mark| line("logged.cc", mark);
    assert_eq!(
        lines("shop::stock.pieces"),
        [at("put"), at("take"), at("alias"), at("swap")]
    );
    let filled = lines("shop::pair_of");
    assert_eq!(filled, [at("filled"), at("filled"), at("swap")]);
    let comparison = recorded("logged_rust", &["--log-writes", "logged::HITS"]);
    let rows = writes(&comparison.recording, "logged::HITS");
    let lines: Vec<u64> = rows.iter().filter_map(|row| row["line"].as_u64()).collect();
    let each = [line("logged.rs", "store"), line("logged.rs", "fetch")];
    assert_eq!(lines, each.repeat(3), "{rows:#?}");
    assert!(
        rows.iter()
            .all(|row| text(row, "function").ends_with("hit"))
    );
}

#[test]
fn threads_lose_no_write() {
    let comparison = recorded(
        "logged_threads",
        &["--log-writes", "shared", "--log-writes", "lanes"],
    );
    let recording = &comparison.recording;
    let of_shared = "FROM writes WHERE by = 'program' AND target = 'shared'";
    assert_eq!(
        recording.number(&format!("SELECT count(*) {of_shared}")),
        800
    );
    let threads = recording.rows(&format!(
        "SELECT count(*) AS writes, min(line) AS first, max(line) AS last {of_shared} GROUP BY tid"
    ));
    assert_eq!(threads.len(), 4);
    for thread in &threads {
        let add = line("threads.c", "add");
        assert_eq!(thread["writes"], 200);
        assert_eq!(
            (&thread["first"], &thread["last"]),
            (&Value::from(add), &Value::from(add))
        );
    }
    let rows = writes(recording, "shared");
    assert_eq!(
        text(rows.last().expect("there are some"), "new"),
        "20030000"
    );
    // If the values may be those of several writes, the output says so.
    let step = |row: &Row| {
        let number =
            |column| u32::from_str_radix(&swapped(text(row, column)), 16).expect("a number");
        number("new").wrapping_sub(number("old"))
    };
    assert!(
        rows.iter()
            .all(|row| step(row) == 1 || row["shared"] == true)
    );
    let of_lanes = "SELECT count(*) FROM writes WHERE by = 'program' AND target = 'lanes'";
    assert_eq!(recording.number(of_lanes), 800);
}

/// The bytes in hexadecimal from the last to the first.
fn swapped(bytes: &str) -> String {
    let pairs: Vec<&str> = (0..bytes.len() / 2)
        .map(|at| &bytes[2 * at..2 * at + 2])
        .collect();
    pairs.into_iter().rev().collect()
}

#[test]
fn a_variable_of_a_library_is_logged_from_when_it_is_loaded() {
    let comparison = recorded(
        "logged_loads",
        &["--pending", "--log-writes", "library_count"],
    );
    let rows = writes(&comparison.recording, "library_count");
    let steps: Vec<&Row> = rows
        .iter()
        .filter(|row| row["line"].as_u64() == Some(line("library.c", "step")))
        .collect();
    let values: Vec<&str> = steps.iter().map(|row| text(row, "new")).collect();
    assert_eq!(values, ["08000000", "09000000", "11000000", "1b000000"]);
    assert!(
        steps
            .iter()
            .all(|row| text(row, "function") == "library_step")
    );
}

fn refused(options: &[&str]) -> String {
    let scratch = Scratch::new("refused");
    let path = fixture_artifact("logged", "logged_O0");
    let path = path.to_str().expect("paths of tests are text");
    let output = scratch.join("out");
    let output = output.to_str().expect("paths of tests are text");
    let words = [&["record", "-o", output], options, &["--", path]].concat();
    let ended = Hindsight::command(&scratch, &words).run();
    assert_eq!(ended.status.as_shell_code(), 2, "{}", ended.errors());
    assert_eq!(ended.text(), "", "the program has not run");
    assert!(!scratch.join("out.hindsight").exists());
    ended.errors()
}

#[test]
fn mistakes_are_refused_before_the_program_runs() {
    for (options, wanted) in [
        (
            &["--log-writes", "countr"][..],
            &["countr", "did you mean", "counter"][..],
        ),
        (&["--log-writes", "cache.had"], &["had", "head"]),
        (
            &["--log-writes", "wide"],
            &["40 bytes", "32", "member or an element"],
        ),
        (
            &[
                "--log-writes",
                "cache",
                "--log-writes",
                "word",
                "--log-writes",
                "counter",
                "--log-writes",
                "other",
            ],
            &["other", "none is left"],
        ),
        (
            &[
                "--log-writes",
                "wide[0]",
                "--log-writes",
                "word",
                "--log-writes",
                "counter",
                "--log-writes",
                "cache",
            ],
            &["cache", "one is left"],
        ),
        (
            &["--log-writes", "mine"],
            &[
                "mine is a variable of work",
                "--log-writes work::mine",
                "--logpoint work",
            ],
        ),
        (
            &["--log-writes", "work::nothing"],
            &["work has no variable \"nothing\""],
        ),
        (
            &["--log-writes", "qqqqqqqqqq"],
            &["check the name; or, if it is in a library that is loaded later: --pending"],
        ),
        (&["--log-writes", "flags.low"], &["bit field"]),
        (&["--log-writes", "own"], &["own", "thread"]),
        (
            &["--log-writes", "counter + 1"],
            &["does not lie in memory"],
        ),
        (&["--log-writes", "counter +"], &["counter +"]),
        (&["--log-writes", "0x10:4"], &["0x10"]),
        (&["--log-writes", "0xzz"], &["not an address"]),
        (&["--log-writes", ""], &["no place is named"]),
        (
            &["--logpoint", "wrk", "x"],
            &["no loaded module has a function wrk", "work"],
        ),
        (&["--logpoint", "logged.c:9999", "x"], &["9999"]),
        (&["--logpoint", "work", "{rounds"], &["{rounds"]),
    ] {
        let told = refused(options);
        for wanted in wanted {
            assert!(told.contains(wanted), "{options:?}: {told}");
        }
    }
}

#[test]
fn addresses_are_the_same_in_each_run_without_aslr() {
    let first = recorded("logged_O0", &["--no-aslr", "--log-writes", "counter"]);
    let at = "SELECT min(addr) FROM writes WHERE target = 'counter'";
    let address = first.recording.number(at);
    let place = format!("{address:#x}:4");
    let second = recorded("logged_O0", &["--no-aslr", "--log-writes", &place]);
    let count = format!("SELECT count(*) FROM writes WHERE target = '{place}'");
    assert_eq!(second.recording.number(&count), 8);
    let told = second.recording.command("info", &[]).text();
    assert!(told.contains("--no-aslr"), "{told}");
    assert!(
        told.contains(&format!("writes to {place} logged")),
        "{told}"
    );
}

#[test]
fn an_address_may_be_one_that_the_program_gets_later() {
    let scratches = ["mapped", "mapped-again"].map(Scratch::new);
    let run = |scratch: &Scratch, options: &[&str]| {
        Hindsight::record(scratch, options, &program("logged_mapped", scratch))
    };
    let (first, _) = run(&scratches[0], &["--no-aslr"]);
    let printed = first.text();
    let place = format!("{}:8", printed.trim());
    let (second, recording) = run(&scratches[1], &["--no-aslr", "--log-writes", &place]);
    assert_eq!(second.text(), printed);
    let rows = writes(&recording, &place);
    let told: Vec<(u64, Option<&str>, &str)> = rows
        .iter()
        .map(|row| {
            (
                row["line"].as_u64().unwrap_or_default(),
                row["old"].as_str(),
                text(row, "new"),
            )
        })
        .collect();
    let at = |mark| line("mapped.c", mark);
    // The contents before the memory existed are not known.
    assert_eq!(
        told,
        [
            (at("made"), None, "0700000000000000"),
            (at("raised"), Some("0700000000000000"), "0800000000000000"),
        ]
    );
}

#[test]
fn a_recording_of_a_second_ends_in_time_though_all_cores_are_busy() {
    let scratch = Scratch::new("busy");
    let endless = Program::new(fixture_artifact("logged", "logged_many"), scratch.path())
        .args(["1000000000000"]);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let _others: Vec<Running> = (0..cores).map(|_| endless.start()).collect();
    let target = endless.start();
    let pid = target.pid().to_string();
    for _ in 0..share(3) {
        let output = scratch.join("rec");
        let output = output.to_str().expect("paths of tests are text");
        let words = [
            "record", "--json", "-o", output, "--attach", &pid, "--for", "1",
        ];
        let begun = Instant::now();
        let ended = Hindsight::command(&scratch, &words)
            .args(["--log-writes", "counter"])
            .run();
        let took = begun.elapsed();
        assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
        let recording = Recording::new(scratch.join("rec.hindsight"));
        let written = "SELECT count(*) FROM writes WHERE line IS NOT NULL";
        assert!(recording.number(written) > 100, "{}", ended.errors());
        assert!(
            took < Duration::from_secs(60),
            "{took:?}: {}",
            ended.errors()
        );
        std::fs::remove_dir_all(recording.path()).expect("the recording can be removed");
    }
}

#[test]
fn logpoints_are_set_before_the_program_runs() {
    let at = format!("logged.c:{}", line("logged.c", "total"));
    let options = [
        "--logpoint",
        &at,
        "i={i}",
        "--condition",
        "i > 1",
        "--logpoint",
        "copy",
        "size={size}",
    ];
    let comparison = recorded("logged_O0", &options);
    let rows = comparison
        .recording
        .rows("SELECT message FROM logpoints ORDER BY seq");
    let messages: Vec<&str> = rows.iter().map(|row| text(row, "message")).collect();
    assert_eq!(messages, ["i=2", "i=3", "size=16", "size=16"]);
}

#[test]
fn a_live_session_logs_writes_too() {
    let program = fixture_artifact("logged", "logged_O0");
    let options = ["--log-writes", "counter", "--break", "copy"];
    let live = Live::started("log-writes", &options, &program, &[]);
    let told = live.ask(&["last-write", "counter"]);
    assert_eq!(told["after"]["value"], "33", "{told:#}");
    assert_eq!(told["after"]["is_write"], true, "{told:#}");
    assert_eq!(
        told["after"]["line"].as_u64(),
        Some(line("logged.c", "add")),
        "{told:#}"
    );
    let listed = live.ask(&["break", "list"]);
    let id = listed["probes"][0]["id"].to_string();
    live.ask(&["break", "remove", &id]);
    assert_eq!(live.run_to_end(), 3);
    assert_eq!(writes(&live.recording(), "counter").len(), 8);
}

#[test]
fn a_crash_is_told_as_without() {
    let scratch = Scratch::new("log-writes-crash");
    let program = Program::new(fixture_artifact("crashes", "crashes"), scratch.path());
    let program = program.args(["segv"]);
    let alone = program.run();
    let (ended, recording) = Hindsight::record(&scratch, &["--logpoint", "main", "here"], &program);
    assert_eq!(ended.status.as_shell_code(), alone.status.as_shell_code());
    let died = "SELECT count(*) FROM exceptions WHERE phase = 'unhandled'";
    assert_eq!(recording.number(died), 1);
    assert!(
        ended.errors().contains("ended the program in"),
        "{}",
        ended.errors()
    );
}

#[test]
fn a_logpoint_that_fails_is_told_at_the_end() {
    let scratch = Scratch::new("logpoints_at_the_end");
    let source = "#include <stdio.h>\nint g; int *p = &g;\n\
        __attribute__((noinline)) void inc(int k) { g += k; }\n\
        int main(void) { for (int i = 0; i < 5; i++) inc(i); printf(\"%d\\n\", g); return 0; }\n";
    let path = compiled(&scratch, "app.c", source, &["-O0", "-g"]);
    let program = Program::new(path, scratch.path());
    let told = |name: &str, message: &str, condition: &[&str]| {
        let mut options = vec!["--logpoint", "inc", message];
        options.extend(condition.iter().flat_map(|text| ["--condition", *text]));
        let ended = Hindsight::record_command(&scratch, name, &options, &program).run();
        ended.errors()
    };
    let message = told("message", "{nosuch} {k}", &[]);
    let failed = "a logpoint's message failed 5 times, first at event ";
    assert!(message.contains(failed), "{message}");
    let why = ": nosuch: no variable \"nosuch\" here";
    assert!(message.contains(why), "{message}");
    // It is foreseen, too.
    let foreseen = "hindsight: warning: --logpoint inc: no variable \"nosuch\" here";
    assert!(message.contains(foreseen), "{message}");
    let condition = told("condition", "{k}", &["*(int *)(long)k == 1"]);
    let failed = "the condition *(int *)(long)k == 1 failed 5 times, first at event ";
    assert!(condition.contains(failed), "{condition}");
    // A text may look like a failure.
    for message in ["{k}", "<error: none> {k}"] {
        let right = told(&format!("right{}", message.len()), message, &[]);
        assert!(!right.contains("failed"), "{right}");
        assert!(!right.contains("--logpoint"), "{right}");
    }
    // What can never be right is refused before the program runs.
    let refused = told("refused", "{k}", &["p->nope > 1"]);
    assert!(refused.contains("int * has no members"), "{refused}");
}

/// A global variable, and a parameter of the same name; structures that begin at an odd address.
const SAME_NAMES: &str = r#"
#include <string>
std::string s = "global";
struct __attribute__((packed)) { char before; char text[24]; char behind; } line __attribute__((aligned(8)));
static inline __attribute__((always_inline)) int sum(int n) { int all = n; for (int i = 0; i < n; i++) all += i; return all; }
struct K { std::string t; K(std::string s) : t(s) {} };
int main(int argc, char **) {
  K k("abc");
  s[0] = 'G';
  line.before = 1;
  line.text[0] = 2;
  line.text[23] = 3;
  line.behind = 4;
  return sum(argc) == 1 ? 0 : 1;
}
"#;

fn same_names(name: &str, flags: &[&str]) -> (Scratch, Program) {
    let scratch = Scratch::new(name);
    let app = compiled(&scratch, "app.cc", SAME_NAMES, flags);
    let program = Program::new(app, scratch.path());
    (scratch, program)
}

#[test]
fn a_place_at_an_odd_address_takes_the_aligned_words_around_it() {
    let (scratch, program) = same_names("log-odd", &["-O0", "-g"]);
    let options = ["--log-writes", "line.text"];
    let (_, recording) = Hindsight::record(&scratch, &options, &program);
    let rows = writes(&recording, "line.text");
    let lines: Vec<&str> = rows
        .iter()
        .filter_map(|row| SAME_NAMES.lines().nth(row["line"].as_u64()? as usize - 1))
        .map(str::trim)
        .collect();
    assert_eq!(lines, ["line.text[0] = 2;", "line.text[23] = 3;"]);
}

#[test]
fn what_cannot_be_logged_has_its_true_reason() {
    let (scratch, program) = same_names("log-reasons", &["-O0", "-g"]);
    let errors = |program: &Program, place: &str| {
        let options = ["--log-writes", place];
        let ended = Hindsight::record_command(&scratch, "rec", &options, program).run();
        ended.errors()
    };
    // A parameter of the same name is another variable.
    let told = errors(&program, "s[0]");
    assert!(!told.contains("is a variable of"), "{told}");
    let (_bare, bare) = same_names("log-bare", &["-O0"]);
    let told = errors(&bare, "line.text");
    let why = "the program has no debug information: compile it with -g";
    assert!(told.contains(why), "{told}");
    let (_optimised, optimised) = same_names("log-inlined", &["-O2", "-g"]);
    let told = errors(&optimised, "sum::all");
    assert!(!told.contains("--pending"), "{told}");
}

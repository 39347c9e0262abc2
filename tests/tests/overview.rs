//! Goal: an overview is true: how a program ended, what it printed and what failed, each with its event; it keeps within its lines
//! and columns; and the questions at its end work as printed. Method: programs in C, C++, Rust and Python that end in different ways
//! are recorded, and the overview is compared with their known behaviour.

use std::path::Path;

use e2e::{
    Ended, Hindsight, Live, Program, Recording, Scratch, Status, compiled, fixture_artifact,
    in_turn, marked_line, wait_until, workspace_dir,
};
use serde_json::Value;

/// The promised limits of an overview.
const LINES: usize = 40;
const COLUMNS: usize = 120;

/// A recording called `rec` in a folder of its own.
struct Recorded {
    scratch: Scratch,
    recording: Recording,
}

impl Recorded {
    fn of(fixture: &str, artifact: &str, args: &[&str], options: &[&str]) -> Recorded {
        let name = format!("overview-{artifact}-{}", args.first().unwrap_or(&""));
        let scratch = Scratch::new(&name);
        let program = fixture_artifact(fixture, artifact);
        Recorded::of_program(scratch, &program, args, options)
    }

    fn of_program(scratch: Scratch, program: &Path, args: &[&str], options: &[&str]) -> Recorded {
        let program = Program::new(program, scratch.path()).args(args);
        let (_, recording) = Hindsight::record(&scratch, options, &program);
        Recorded { scratch, recording }
    }

    fn run(&self, args: &[&str]) -> Ended {
        Hindsight::command(&self.scratch, args).run()
    }

    /// The text; checks that it keeps to its limits and that its questions work.
    fn text(&self) -> String {
        let ended = self.run(&["overview", "rec"]);
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let text = ended.text();
        assert!(text.lines().count() <= LINES, "{text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(COLUMNS), "{text}");
        self.questions_work(&text);
        for max_lines in in_turn(["1", "7", "15"]) {
            let short = self.run(&["overview", "rec", "--lines", max_lines]).text();
            let lines = short.lines().count();
            assert!(
                lines.to_string() == max_lines || lines < max_lines.parse().unwrap(),
                "{short}"
            );
            assert_eq!(short.lines().next(), text.lines().next());
        }
        text
    }

    fn json(&self) -> Value {
        let ended = self.run(&["overview", "rec", "--json"]);
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.result()
    }

    fn shell(&self, script: &str) -> Ended {
        let folder = Hindsight::path().parent().expect("it lies in a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        Program::new(Path::new("/bin/sh"), self.scratch.path())
            .env("PATH", format!("{}:{path}", folder.display()))
            .args(["-ec", script])
            .run()
    }

    /// There are three commands at the end, and each prints an answer, both in the text and in the data.
    fn questions_work(&self, text: &str) {
        let (_, pasted) = text.split_once("Ask next\n").expect("there are questions");
        let ended = self.shell(pasted);
        assert_eq!(
            ended.status,
            Status::Code(0),
            "{pasted}\n{}",
            ended.errors()
        );
        let json = self.json();
        let next = json["next"].as_array().expect("a list");
        assert_eq!(next.len(), 3, "{json:#}");
        for question in next {
            let command = question["command"].as_str().expect("text");
            let ended = self.shell(command);
            assert_eq!(
                ended.status,
                Status::Code(0),
                "{command}\n{}",
                ended.errors()
            );
            assert!(!ended.text().trim().is_empty(), "{command}");
        }
    }

    fn number(&self, sql: &str) -> u64 {
        u64::try_from(self.recording.number(sql)).expect("not negative")
    }
}

/// Every number of an event in the data is that of an event.
fn seqs<'v>(value: &'v Value, found: &mut Vec<(&'v str, u64)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_seq = name == "seq" || name.ends_with("_seq");
                match value.as_u64().filter(|_| is_seq) {
                    Some(seq) => found.push((name, seq)),
                    None => seqs(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| seqs(value, found)),
        _ => {}
    }
}

#[test]
fn an_error_is_told_with_the_events_that_show_it() {
    let recorded = Recorded::of("failing", "failing", &[], &[]);
    let text = recorded.text();
    let call = |function: &str, which: &str| {
        recorded.number(&format!(
            "select {which}(start_seq) from calls where function = '{function}'"
        ))
    };
    let first_line = text.lines().next().unwrap_or_default();
    assert!(first_line.contains("exited with code 3 after"), "{text}");
    let printed = recorded.number("select min(seq) from output where stream = 'stderr'");
    for expected in [
        format!(
            "order 7: Invalid argument  by load_all (seq {}), seq {printed}",
            call("load_all", "min")
        ),
        format!(
            "check_price returned -22 (as errno: EINVAL): 1 of 7 calls, first seq {}",
            call("check_price", "max")
        ),
        format!(
            "parse_order returned -22 (as errno: EINVAL): 1 of 7 calls, first seq {}",
            call("parse_order", "max")
        ),
        format!(
            "load returned -22 (as errno: EINVAL): 1 of 7 calls, first seq {}",
            call("load", "max")
        ),
        format!(
            "name_of returned null: 1 of 7 calls, first seq {}",
            call("name_of", "max")
        ),
        "a call of wait_for_orders took ".to_owned(),
        // Rare and late events come first in a program that failed.
        format!("  hindsight why rec {}\n", call("load", "max")),
    ] {
        assert!(text.contains(&expected), "{expected}\n{text}");
    }
    let slow = recorded.number(
        "select start_seq from calls where function = 'wait_for_orders' order by dur_ns desc limit 1",
    );
    let json = recorded.json();
    let unusual = json["unusual"].as_array().expect("a list");
    assert!(
        unusual
            .iter()
            .any(|one| one["what"] == "slow_call" && one["seq"] == slow),
        "{json:#}"
    );
    assert_eq!(json["time"]["functions"][0]["function"], "wait_for_orders");
    let mut found = Vec::new();
    seqs(&json, &mut found);
    assert!(found.len() > 30, "{found:?}");
    let events = recorded.number("select count(*) from events");
    for (name, seq) in found {
        assert!(seq < events, "{name} {seq}");
    }
}

#[test]
fn a_crash_is_told_with_its_stack() {
    let recorded = Recorded::of("failing", "failing", &["crash"], &[]);
    let text = recorded.text();
    let stop = recorded.number("select seq from pauses where reason = 'signal'");
    let count = recorded.number("select max(start_seq) from calls where function = 'count'");
    let main = recorded.number("select start_seq from calls where function = 'main'");
    assert!(
        text.contains(&format!(
            "Ended by SIGSEGV at address 0x18, seq {stop}, in thread "
        )),
        "{text}"
    );
    let line = |mark| marked_line("failing", "failing.c", mark);
    let (counted, crashes) = (line("counted"), line("crashes"));
    assert!(
        text.contains(&format!(
            "  count(order=0x10) at failing.c:{counted}, seq {count}\n"
        )),
        "{text}"
    );
    assert!(
        text.contains(&format!(" at failing.c:{crashes}, seq {main}\n")),
        "{text}"
    );
    assert!(text.contains(&format!("backtrace({stop})")), "{text}");
    let json = recorded.json();
    assert_eq!(json["ending"]["how"], "killed");
    assert_eq!(json["ending"]["crash"]["frames"][0]["line"], counted);
    assert_eq!(json["threads"]["told"][0]["end"], "died");
}

#[test]
fn threads_are_told_apart_and_recursion_counts_once() {
    let recorded = Recorded::of("crashes", "crashes", &["thread"], &[]);
    let text = recorded.text();
    assert!(text.contains("(worker)"), "{text}");
    // The recorder's work after a signal does not count as time of the interrupted call.
    assert!(!text.contains("waited or computed"), "{text}");
    // The signal ended the calls of the other thread, too: it was in them until then.
    let json = recorded.json();
    let told = json["threads"]["told"].as_array().expect("a list");
    let main = told.iter().find(|thread| thread["end"] == "in");
    let main = main.unwrap_or_else(|| panic!("{told:#?}"));
    assert_eq!(main["function"], "main", "{text}");
    let fib = Recorded::of("fib", "fib", &["20"], &[]);
    let text = fib.text();
    let json = fib.json();
    let functions = json["time"]["functions"].as_array().expect("a list");
    let own: u64 = functions.iter().filter_map(|f| f["self_ns"].as_u64()).sum();
    // A thread is never in recorded calls for longer than the recording lasts.
    let duration = json["program"]["duration_ns"].as_u64().expect("a number");
    assert!(own <= duration, "{own} {duration} {text}");
    let shares: f64 = functions.iter().filter_map(|f| f["share"].as_f64()).sum();
    assert!((0.99..=1.01).contains(&shares), "{text}");
}

#[test]
fn an_uncaught_exception_is_told_by_what_it_printed() {
    let recorded = Recorded::of("crashes", "crashes_cxx", &["throw"], &[]);
    let text = recorded.text();
    assert!(text.contains("Ended by SIGABRT"), "{text}");
    assert!(
        text.contains("terminate called after throwing an instance of 'std::out_of_range'"),
        "{text}"
    );
    assert!(text.contains("what():  no such order: tea"), "{text}");
}

/// Twelve functions, of which one is called once and late, and one waits for a lock in a thread of its own until the end.
const TWELVE: &str = r#"#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#define NOINLINE __attribute__ ((noinline))
volatile long sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define STEP(name) NOINLINE void name (int n) { for (int i = 0; i < n; i++) sum += i; }
STEP (one) STEP (two) STEP (three) STEP (four) STEP (five) STEP (six) STEP (seven) STEP (eight) STEP (nine)
NOINLINE void late (int n) { sum -= n; }
static void *waiting (void *unused) { pthread_mutex_lock (&lock); return unused; }
int main (void) {
  pthread_t thread;
  pthread_mutex_lock (&lock);
  pthread_create (&thread, 0, waiting, 0);
  for (int round = 0; round < 20; round++) {
    one (900); two (800); three (700); four (600); five (500); six (400); seven (300); eight (200); nine (100);
  }
  usleep (100000);
  late (7);
  exit (0);
}
"#;

#[test]
fn ten_of_the_functions_are_told_and_what_is_unusual() {
    let scratch = Scratch::new("overview-twelve");
    let program = compiled(&scratch, "twelve.c", TWELVE, &["-O1", "-g", "-pthread"]);
    let recorded = Recorded::of_program(scratch, &program, &[], &[]);
    let text = recorded.text();
    assert!(
        text.contains(", 183 calls of 12 functions, 2 threads"),
        "{text}"
    );
    let shares = text.lines().filter(|line| line.contains(" %  "));
    assert_eq!(shares.count(), 10, "{text}");
    let late = recorded.number("select start_seq from calls where function = 'late'");
    let late = format!("  late was called once, and late, seq {late}\n");
    assert!(text.contains(&late), "{text}");
    let waiting = recorded.number("select start_seq from calls where function = 'waiting'");
    let waiting = format!(", in waiting (seq {waiting}) at the end");
    assert!(text.contains(&waiting), "{text}");
}

#[test]
fn a_panic_is_told_by_what_it_printed() {
    let recorded = Recorded::of("crashes", "crashes_rust", &["panic"], &[]);
    let text = recorded.text();
    assert!(text.contains("panicked at"), "{text}");
}

/// A function that fails, and one that panics inside a library's code.
const PANICS: &str = r#"
#[inline(never)]
fn check(n: i64) -> Result<i64, String> {
    if n > 5 {
        return Err(format!("too big {n}"));
    }
    Ok(n)
}

#[inline(never)]
fn pick(values: &[i64], at: usize) -> i64 {
    *values.iter().nth(at).unwrap() // panics
}

fn main() {
    for n in 0..8 {
        if let Err(error) = check(n) {
            eprintln!("error: {error}");
        }
    }
    println!("{}", pick(&[1], std::hint::black_box(85)));
}
"#;

/// A program that catches a panic and goes on until it reports another failure.
const CAUGHT: &str = r#"
fn main() {
    eprintln!("starting");
    let caught = std::panic::catch_unwind(|| panic!("lost {}", std::hint::black_box(7)));
    eprintln!("a worker failed: {}", caught.is_err());
    for n in 0..20 {
        eprintln!("retry {n}");
    }
    eprintln!("error: gave up");
    std::process::exit(3);
}
"#;

/// The lines after a panic that was caught say why the program ended.
#[test]
fn what_is_printed_after_a_caught_panic_is_told() {
    for backtrace in in_turn(["0", "1"]) {
        let scratch = Scratch::new("overview-caught");
        let program = compiled(&scratch, "caught.rs", CAUGHT, &["-g"]);
        let program = Program::new(program, scratch.path()).env("RUST_BACKTRACE", backtrace);
        let (_, recording) = Hindsight::record(&scratch, &[], &program);
        let recorded = Recorded { scratch, recording };
        let json = recorded.json();
        let lines = json["errors"]["lines"].as_array().expect("a list");
        let lines: Vec<&str> = lines
            .iter()
            .filter_map(|line| line["text"].as_str())
            .collect();
        assert_eq!(lines[0], "starting", "{lines:?}");
        assert!(lines[1].contains("panicked at "), "{lines:?}");
        assert_eq!(lines[2], "lost 7", "{lines:?}");
        let last = ["retry 17", "retry 18", "retry 19", "error: gave up"];
        assert_eq!(lines[3..], last, "{backtrace}");
        assert!(recorded.text().contains("  error: gave up"), "{lines:?}");
    }
}

#[test]
fn a_panic_is_told_by_the_programs_own_call() {
    let scratch = Scratch::new("overview-panics");
    let flags = ["-g", "-C", "panic=unwind"];
    let program = compiled(&scratch, "panics.rs", PANICS, &flags);
    let program = Program::new(program, scratch.path()).env("RUST_BACKTRACE", "1");
    let (_, recording) = Hindsight::record(&scratch, &["--pointees"], &program);
    let recorded = Recorded { scratch, recording };
    let text = recorded.text();
    let call = |function: &str| {
        recorded.number(&format!(
            "select max(start_seq) from calls where function = 'panics::{function}'"
        ))
    };
    let (pick, main) = (call("pick"), call("main"));
    let (_, own) = text
        .split_once("The main thread panicked at seq ")
        .expect(&text);
    let mut own = own.lines().skip(1);
    for (function, seq) in [("panics::pick(", pick), ("panics::main(", main)] {
        let line = own.next().expect("there are lines");
        assert!(line.starts_with(&format!("  {function}")), "{text}");
        assert!(line.ends_with(&format!(", seq {seq}")), "{text}");
    }
    // Where it panicked and its message, although a backtrace follows.
    assert!(text.contains("panicked at panics.rs:"), "{text}");
    assert!(text.contains("on a `None` value"), "{text}");
    let printed = format!("  error: too big 6  by panics::main (seq {main}), seq ");
    assert!(text.contains(&printed), "{text}");
    assert!(text.contains("  panics::check returned Err"), "{text}");
    assert!(text.contains(": 2 of 8 calls, first seq "), "{text}");
    assert!(
        text.contains(&format!("hindsight why rec {pick}\n")),
        "{text}"
    );
    for plumbing in [
        "rust_start_panic",
        "panic_handler",
        "StderrRaw",
        "ARGV_INIT",
    ] {
        assert!(!text.contains(plumbing), "{plumbing}: {text}");
    }
}

#[test]
fn programs_without_debug_information_have_an_overview() {
    let recorded = Recorded::of("failing", "failing_stripped", &[], &[]);
    let text = recorded.text();
    assert!(text.contains("exited with code 3"), "{text}");
    assert!(text.contains("order 7: Invalid argument"), "{text}");
}

#[test]
fn python_has_an_overview() {
    let scratch = Scratch::new("overview-python");
    let script = "import sys; print('no such thing', file=sys.stderr); sys.exit(4)";
    let recorded =
        Recorded::of_program(scratch, Path::new("/usr/bin/python3"), &["-c", script], &[]);
    let text = recorded.text();
    assert!(text.contains("exited with code 4"), "{text}");
    assert!(text.contains("no such thing"), "{text}");
}

#[test]
fn a_filter_is_told_and_nothing_is_needed_of_what_it_left_out() {
    let recorded = Recorded::of("failing", "failing", &[], &["-f", "check_price"]);
    let text = recorded.text();
    assert!(text.contains("only functions that pass"), "{text}");
    assert!(text.contains("check_price returned -22"), "{text}");
    let none = Recorded::of("failing", "failing", &[], &["-f", "no_such_function"]);
    let text = none.text();
    assert!(text.contains("0 calls of 0 functions"), "{text}");
    assert!(text.contains("outside recorded calls"), "{text}");
}

#[test]
fn a_program_that_still_runs_has_an_overview() {
    let program = fixture_artifact("failing", "failing");
    let live = Live::started("overview-live", &["--break", "report"], &program, &[]);
    let recording = live.recording();
    let ended = recording.command("overview", &[]);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let text = ended.text();
    assert!(
        text.contains("has not ended: what was recorded of it so far"),
        "{text}"
    );
    assert!(text.contains("check_price returned -22"), "{text}");
    assert_eq!(live.run_to_end(), 3);
}

#[test]
fn instructions_that_are_not_counted_yet_have_no_number() {
    let scratch = Scratch::new("overview-full-live");
    let program = Program::new(Path::new("/bin/sleep"), scratch.path()).args(["1000"]);
    let (_recorder, recording) = Hindsight::start_recording(&scratch, &["--full"], &program);
    let text = wait_until("the recording to begin", || {
        let ended = recording.command("overview", &[]);
        let text = ended.text();
        text.contains("is being recorded").then_some(text)
    });
    let lines: Vec<&str> = text.lines().take(2).collect();
    let expected = [
        "/bin/sleep 1000: is being recorded; its instructions are counted when it has ended",
        "  its events and calls are found then, too; with every instruction",
    ];
    assert_eq!(lines, expected, "{text}");
    let json = recording.command("overview", &["--json"]).result();
    assert_eq!(json["program"]["duration_ns"], Value::Null, "{json:#}");
}

#[test]
fn a_recording_that_is_none_is_refused() {
    let scratch = Scratch::new("overview-none");
    let ended = Hindsight::command(&scratch, &["overview", "nothing"]).run();
    assert_eq!(ended.status, Status::Code(2));
    assert!(
        ended.errors().contains("there is no recording nothing"),
        "{}",
        ended.errors()
    );
}

/// A recording that is kept with the tests of the prompt, in a folder of its own.
fn kept(name: &str) -> Recorded {
    let scratch = Scratch::new(&format!("overview-{name}"));
    let kept = workspace_dir().join(format!("repl/tests/recordings/{name}.hindsight"));
    let copied = Program::new("/bin/cp", scratch.path())
        .args([Path::new("-r"), &kept, Path::new("rec.hindsight")])
        .run();
    assert_eq!(copied.status, Status::Code(0), "{}", copied.errors());
    // git keeps no empty folders.
    std::fs::create_dir_all(scratch.join("rec.hindsight/log")).expect("a folder can be made");
    let recording = Recording::new(scratch.join("rec.hindsight"));
    Recorded { scratch, recording }
}

#[test]
fn a_recording_reads_as_it_did() {
    let shop = kept("shop");
    assert_eq!(shop.text(), include_str!("overview_shop.txt"));
}

#[test]
fn the_function_that_called_exit_is_told() {
    let scratch = Scratch::new("overview-exits");
    let source = "#include <stdlib.h>\nint load(int n) { return n * 2; }\n\
         void check(int n) { if (n > 3) exit(n); }\nint main(void) { check(load(1)); check(load(2)); return 0; }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-g"]);
    let recorded = Recorded::of_program(scratch, &program, &[], &[]);
    let json = recorded.json();
    let calls = json["ending"]["last_calls"].as_array().expect("a list");
    let names: Vec<&str> = calls
        .iter()
        .filter_map(|call| call["function"].as_str())
        .collect();
    assert_eq!(&names[..2], ["check", "main"], "{json:#}");
    assert_eq!(calls[0]["args"], "n=4");
}

#[test]
fn threads_that_were_in_calls_at_the_exit_are_told_so() {
    let scratch = Scratch::new("overview-in-calls");
    let source = "#include <pthread.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n\
         static void *stuck(void *p) { pthread_mutex_lock(&lock); return p; }\nstatic void leave(int code) { exit(code); }\n\
         int main(void) { pthread_t t; pthread_mutex_lock(&lock); pthread_create(&t, 0, stuck, 0); usleep(1000000); leave(3); }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-g", "-pthread"]);
    let recorded = Recorded::of_program(scratch, &program, &[], &["--locks"]);
    let json = recorded.json();
    let told = json["threads"]["told"].as_array().expect("a list");
    let mut innermost: Vec<&str> = told
        .iter()
        .filter_map(|thread| thread["function"].as_str())
        .collect();
    innermost.sort_unstable();
    assert_eq!(innermost, ["leave", "pthread_mutex_lock"], "{json:#}");
    let waited = told
        .iter()
        .find(|thread| thread["function"] == "pthread_mutex_lock");
    let waited = waited.and_then(|thread| thread["for_ns"].as_u64());
    assert!(waited > Some(30_000_000), "{json:#}");
}

#[test]
fn the_time_of_the_end_is_a_moment_and_its_duration_is_that_of_the_program() {
    let scratch = Scratch::new("overview-when");
    let source = "#include <unistd.h>\nint load(int n) { return n * 2; }\n\
         int main(void) { usleep(50000); return load(2) - 4; }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-g"]);
    let live = Live::started("overview-when-live", &["--stop-on-entry"], &program, &[]);
    let recording = live.recording();
    assert_eq!(live.run_to_end(), 0);
    // At first the recording may still be written.
    let json = recording.command("overview", &["--json"]).result();
    let at =
        |kind: &str| recording.number(&format!("select ts_ns from events where kind = '{kind}'"));
    let (began_ns, ended_ns) = (at("process_start"), at("process_exit"));
    assert_eq!(json["ending"]["ts_ns"], ended_ns, "{json:#}");
    assert_eq!(
        json["program"]["duration_ns"],
        ended_ns - began_ns,
        "{json:#}"
    );
    // What `goto` takes.
    let text = recording.command("overview", &[]).text();
    let first = text.lines().next().unwrap_or_default();
    assert!(first.contains(" after "), "{first}");
    let (_, moment) = first.split_once(", at ").expect(first);
    assert!(moment.ends_with("ms)") || moment.ends_with("s)"), "{first}");
}

#[test]
fn a_program_that_a_live_session_holds_at_its_end_stands_there() {
    let scratch = Scratch::new("overview-stands");
    let source = "#include <stdlib.h>\n#include <unistd.h>\nint load(int n) { return n * 2; }\n\
         void fail(int n) { abort(); }\nint main(void) { fail(load(2)); return 0; }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-g"]);
    let live = Live::started("overview-stands-live", &["--stop-on-entry"], &program, &[]);
    let stop = live.moved(&["continue"]);
    assert_eq!(stop["signal"], 6, "{stop:#}");
    // The time in which it stands is nobody's.
    std::thread::sleep(std::time::Duration::from_millis(2000));
    let recording = live.recording();
    let json = recording.command("overview", &["--json"]).result();
    assert_eq!(json["ending"]["how"], "standing", "{json:#}");
    assert_eq!(json["ending"]["signal"], "SIGABRT", "{json:#}");
    let frames = json["ending"]["crash"]["frames"]
        .as_array()
        .expect("a list");
    assert!(
        frames.iter().any(|frame| frame["function"] == "fail"),
        "{json:#}"
    );
    for function in json["time"]["functions"].as_array().expect("a list") {
        assert!(
            function["self_ns"].as_u64() < Some(1_000_000_000),
            "{json:#}"
        );
    }
    let text = recording.command("overview", &[]).text();
    assert!(text.contains("is stopped at SIGABRT"), "{text}");
}

#[test]
fn the_end_of_a_program_that_runs_is_now() {
    let scratch = Scratch::new("overview-asleep");
    let source = "#include <unistd.h>\nint load(int n) { return n * 2; }\n\
         void wait_forever(void) { volatile int woken = 0; for (;;) { pause(); woken++; } }\nint main(void) { load(2); wait_forever(); return 0; }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-g"]);
    let live = Live::started("overview-asleep-live", &["--break", "load"], &program, &[]);
    live.ask(&["continue", "--no-wait"]);
    let recording = live.recording();
    // What is looked at is time that passes without an event. `wait_forever` is the newest call, and nothing is recorded
    // after it.
    let waited = |functions: &Value| {
        let mut all = functions.as_array().into_iter().flatten();
        let waiting = all.find(|f| f["function"] == "wait_forever");
        waiting.and_then(|f| f["self_ns"].as_u64()) > Some(800_000_000)
    };
    let first = wait_until("a second of waiting", || {
        let json = recording.command("overview", &["--json"]).result();
        let functions = &json["time"]["functions"];
        waited(functions).then(|| functions[0].clone())
    });
    assert_eq!(first["function"], "wait_forever", "{first:#}");
    // A stop ends the wait, and is not counted from itself on.
    live.ask(&["pause"]);
    let json = recording.command("overview", &["--json"]).result();
    let thread = &json["threads"]["told"][0];
    assert_eq!(thread["function"], "wait_forever", "{json:#}");
    assert!(thread["for_ns"].as_u64() > Some(800_000_000), "{json:#}");
    live.ask(&["continue", "--no-wait"]);
    let json = recording.command("report", &["--json"]).result();
    assert!(waited(&json["functions"]), "{json:#}");
}

#[test]
fn functions_that_fail_often_and_the_errors_of_the_kernel_are_told() {
    let scratch = Scratch::new("overview-often");
    let source = "#include <fcntl.h>\n#include <stdlib.h>\n\
         int read_block(int i) { return i % 3 == 0 ? i + 1 : -1; }\n\
         int order(const void *a, const void *b) { int x = *(const int *)a, y = *(const int *)b; return x < y ? -1 : x > y; }\n\
         int op(const char *path) { if (open(path, O_RDONLY) < 0) return -1; return 0; }\n\
         int main(void) { int a[40]; for (int i = 0; i < 100; i++) read_block(i);\n\
         for (int i = 0; i < 40; i++) a[i] = i * 7 % 41;\n\
         qsort(a, 40, sizeof *a, order); op(\"/no/such\"); return 0; }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-g"]);
    let recorded = Recorded::of_program(scratch, &program, &[], &["--syscalls"]);
    let text = recorded.text();
    assert!(
        text.contains("read_block returned -1: 66 of 100 calls"),
        "{text}"
    );
    assert!(
        text.contains("op returned -1 (openat failed with ENOENT): its only call"),
        "{text}"
    );
    assert!(!text.contains("order returned"), "{text}");
    let json = recorded.json();
    let told = json["failures"]["told"].as_array().expect("a list");
    let named: Vec<&str> = told.iter().filter_map(|f| f["function"].as_str()).collect();
    assert_eq!(named, ["op", "read_block"], "{json:#}");
    let inside = &told[0]["values"][0]["failed_syscall"];
    let seq =
        recorded.number("select seq from syscalls where errno = 'ENOENT' and call is not null");
    assert_eq!(
        (&inside["errno"], &inside["seq"]),
        (&"ENOENT".into(), &seq.into())
    );
}

#[test]
fn system_calls_that_failed_are_told_though_no_function_returned_an_error() {
    let scratch = Scratch::new("overview-syscalls");
    let source = "#include <fcntl.h>\n#include <unistd.h>\n\
         void load(const char *path) { int fd = open(path, O_RDONLY); if (fd >= 0) close(fd); }\n\
         void ask(void) { int ends[2]; char byte; if (pipe(ends)) return; isatty(ends[0]);\n\
         fcntl(ends[0], F_SETFL, O_NONBLOCK); if (read(ends[0], &byte, 1) < 0) close(ends[0]); close(ends[1]); }\n\
         int main(void) { for (int i = 0; i < 3; i++) load(\"/no/such\"); load(\"/no/other\"); ask(); close(99);\n\
         return 0; }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-g"]);
    let recorded = Recorded::of_program(scratch, &program, &[], &["--syscalls"]);
    let seq = |what: &str| recorded.number(&format!("select min(seq) from syscalls where {what}"));
    let text = recorded.text();
    for line in [
        format!(
            "  close failed with EBADF: 1 call, seq {}\n",
            seq("errno = 'EBADF'")
        ),
        format!(
            "  openat(\"/no/other\") failed with ENOENT: 1 call, seq {}\n",
            seq("args like '%/no/other%'")
        ),
        format!(
            "  openat(\"/no/such\") failed with ENOENT: 3 calls, first seq {}\n",
            seq("args like '%/no/such%'")
        ),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
    for usual in ["EAGAIN", "ENOTTY"] {
        seq(&format!("errno = '{usual}'"));
        assert!(!text.contains(&format!("failed with {usual}")), "{text}");
    }
    let json = recorded.json();
    let told = json["failed_syscalls"]["told"].as_array().expect("a list");
    let such = told
        .iter()
        .find(|group| group["first"]["path"] == "\"/no/such\"");
    let such = such.expect("it is told");
    assert_eq!(
        (&such["name"], &such["errno"], &such["calls"]),
        (&"openat".into(), &"ENOENT".into(), &3.into()),
        "{json:#}"
    );
    let scratch = Scratch::new("overview-no-syscalls");
    let without = Recorded::of_program(scratch, &program, &[], &[]);
    assert!(without.json()["failed_syscalls"].is_null());
}

#[test]
fn an_error_is_told_though_other_calls_fail_with_it_many_times() {
    let scratch = Scratch::new("overview-many-errors");
    let source = "#include <stdio.h>\n#include <sys/mman.h>\n#include <fcntl.h>\n#include <unistd.h>\n\
         int main(void) { char b[64]; for (int i = 0; i < 600; i++) readlink(\"/etc/passwd\", b, 64);\n\
         for (int i = 0; i < 600; i++) { sprintf(b, \"/no/%d\", i); open(b, O_RDONLY); }\n\
         unlink(\"/no/late\");\n\
         return mmap(0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? 0 : 3; }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-w"]);
    let recorded = Recorded::of_program(scratch, &program, &[], &["--syscalls"]);
    let text = recorded.text();
    for line in [
        "  mmap failed with EINVAL: 1 call, ",
        "  unlink(\"/no/late\") failed with ENOENT: 1 call, ",
        " failed with ENOENT: at least 500 calls",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("\n  readlink("), "{text}");
}

#[test]
fn the_last_calls_are_told_with_the_lines_that_made_them() {
    let scratch = Scratch::new("overview-lasts");
    let source = "int last(int fd, const char *name) { if (fd == 4) *(volatile int *)8 = fd; return fd; }\n\
         int main(int argc, char **argv) {\n\
         last(1, \"a\");\n\
         last(2, \"b\");\n\
         last(3, \"c\");\n\
         return argc > 1 ? 101 : last(4, \"d\"); }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-g"]);
    let died = Recorded::of_program(scratch, &program, &[], &[]);
    let text = died.text();
    assert!(text.contains("  last(fd=4"), "{text}");
    let before: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  before that: "))
        .collect();
    assert_eq!(before.len(), 3, "{text}");
    for (line, number) in before.iter().zip([3, 2, 1]) {
        assert!(line.starts_with(&format!("last(fd={number}, ")), "{text}");
        let result = format!(
            " returned {number}, called at program.c:{}, seq ",
            number + 2
        );
        assert!(line.contains(&result), "{text}");
    }
    let scratch = Scratch::new("overview-lasts-101");
    let failed = Recorded::of_program(scratch, &program, &["x"], &[]);
    let text = failed.text();
    assert!(text.contains("Last calls of the main thread"), "{text}");
    assert!(text.contains(", defined at program.c:2, seq "), "{text}");
    for (number, line) in [(3, 5), (2, 4)] {
        let made = format!(" returned {number}, called at program.c:{line}, seq ");
        assert!(text.contains(&made), "{text}");
    }
}

#[test]
fn a_crash_names_the_freed_block_that_was_still_used() {
    let scratch = Scratch::new("overview-freed");
    let source = "#include <stdlib.h>\n\
         struct order { long id; long *pieces; };\n\
         struct order *taken(void) { return malloc(40); }\n\
         void dropped(struct order *order) { free(order); }\n\
         long counted(struct order *order, struct order *kept) { return *order->pieces + kept->id; }\n\
         int main(int argc, char **argv) {\n\
         struct order *order = taken(), *kept = taken();\n\
         kept->id = 1;\n\
         order->pieces = (long *)8;\n\
         dropped(order);\n\
         if (argc > 1) dropped(order);\n\
         order->pieces = (long *)8;\n\
         return counted(order, kept); }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-g", "-w"]);
    let died = Recorded::of_program(scratch, &program, &[], &["--memory"]);
    let text = died.text();
    let address = |of: &str| died.number(&format!("select a0 from calls where function = '{of}'"));
    let freed = address("counted");
    let lines: Vec<&str> = text.lines().collect();
    let said = format!("  order of counted ({freed:#x}) is a freed block of 40 bytes");
    let at = lines.iter().position(|line| *line == said);
    let at = at.unwrap_or_else(|| panic!("{said}\n{text}"));
    let freeing =
        died.number("select freed_seq from allocations where state = 'freed' and size = 40");
    assert!(
        lines[at + 1].starts_with(&format!("    freed by free (seq {freeing})")),
        "{text}"
    );
    assert!(lines[at + 1].contains("dropped (program.c:4)"), "{text}");
    assert!(lines[at + 2].contains("taken (program.c:3)"), "{text}");
    assert!(!text.contains("kept of counted"), "{text}");
    let blocks = &died.json()["ending"]["crash"]["freed"];
    assert_eq!(blocks.as_array().map(Vec::len), Some(1), "{blocks}");
    assert_eq!(blocks[0]["freed"]["seq"], freeing);
    let twice = Recorded::of_program(
        Scratch::new("overview-twice"),
        &program,
        &["x"],
        &["--memory"],
    );
    let text = twice.text();
    let said = format!(
        "  ptr of free ({:#x}) is a freed block of 40 bytes\n",
        twice.number("select max(a0) from calls where function = 'dropped'")
    );
    assert!(text.contains(&said), "{said}\n{text}");
}

#[test]
fn a_deadlock_is_told_with_the_locks() {
    let locked = Recorded::of("locked", "locked_c", &["deadlock"], &["--locks"]);
    let text = locked.text();
    assert!(
        text.contains("\nDeadlock: each of these threads waited"),
        "{text}"
    );
    // A long line is two.
    let text = text.replace("\n    ", " ");
    let json = locked.json();
    let circle = json["deadlocks"][0].as_array().expect("a circle");
    assert_eq!(circle.len(), 2, "{json}");
    for waiter in circle {
        let lock = waiter["name"].as_str().expect("a global variable");
        let line = format!("  {} ", waiter["who"]["tid"]);
        let told = text.lines().find(|told| told.starts_with(&line));
        let told = told.unwrap_or_else(|| panic!("{line}\n{text}"));
        assert!(told.contains(&format!(" waits for {lock} in ")), "{told}");
        assert!(
            told.contains(&format!("; {} took it in ", waiter["who"]["owner"])),
            "{told}"
        );
    }
}

#[test]
fn what_a_debugger_had_the_program_call_is_not_the_programs() {
    let scratch = Scratch::new("overview-made");
    let source = "int take(int n) { return n > 100 ? -1 : 0; }\nint sum(int n) { return n; }\n\
         int main(void) { int all = 0; for (int i = 0; i < 20; i++) all += take(i); return sum(all); }\n";
    let program = compiled(&scratch, "program.c", source, &["-O0", "-g"]);
    let live = Live::started("overview-made-live", &["--break", "sum"], &program, &[]);
    for _ in 0..2 {
        live.ask(&["eval", "take(1000)"]);
        // The time in which it stands is nobody's, also behind such a call.
        std::thread::sleep(std::time::Duration::from_millis(700));
    }
    let recording = live.recording();
    let check = || {
        let json = recording.command("overview", &["--json"]).result();
        assert_eq!(json["failures"]["told"], serde_json::json!([]), "{json:#}");
        let functions = json["time"]["functions"].as_array().expect("a list");
        for function in functions {
            assert!(function["self_ns"].as_u64() < Some(500_000_000), "{json:#}");
        }
        let taken = functions.iter().find(|f| f["function"] == "take");
        assert_eq!(taken.map(|f| &f["calls"]), Some(&20.into()), "{json:#}");
        // A report leaves them out, too.
        let report = recording.command("report", &["--json"]).result();
        let functions = report["functions"].as_array().expect("a list");
        for function in functions {
            assert!(
                function["self_ns"].as_u64() < Some(500_000_000),
                "{report:#}"
            );
        }
        let taken = functions.iter().find(|f| f["function"] == "take");
        assert_eq!(taken.map(|f| &f["calls"]), Some(&20.into()), "{report:#}");
    };
    check();
    assert_eq!(live.run_to_end(), 0);
    check();
}

/// Leaves as many blocks of 40 bytes as it is told, one of 12 bytes, and the buffer of its output.
const LEAVES: &str = r#"#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; char text[32]; };
static struct node *list;
__attribute__((noinline)) static void keep(void) {
  struct node *made = malloc(sizeof *made);
  made->next = list;
  list = made;
}
int main(int argc, char **argv) {
  int count = atoi(argv[1]);
  for (int i = 0; i < count; i++) keep();
  void *other = malloc(500);
  free(other);
  if (count > 0) list->next = malloc(12);
  puts("done");
  return 0;
}
"#;

#[test]
fn blocks_that_were_never_freed_are_told_without_those_of_the_c_library() {
    let scratch = Scratch::new("overview-leaves");
    let program = compiled(&scratch, "leaves.c", LEAVES, &["-O0", "-g"]);
    let recorded = Recorded::of_program(scratch, &program, &["7"], &["--memory"]);
    let text = recorded.text();
    let first = recorded.number("select min(seq) from allocations where size = 40");
    let told = format!(
        "  8 blocks, 292 bytes, still allocated at exit; most from keep (leaves.c:6) < main (leaves.c:12), seq {first}\n"
    );
    assert!(text.contains(&format!("\nUnusual\n{told}")), "{told}{text}");
    assert!(text.contains("hindsight report rec --memory"), "{text}");
    let json = recorded.json();
    let left = &json["unusual"][0];
    assert_eq!(left["what"], "still_allocated", "{json:#}");
    assert_eq!((&left["blocks"], &left["bytes"]), (&8.into(), &292.into()));
}

#[test]
fn a_program_that_frees_all_its_blocks_is_told_nothing_of_them() {
    let scratch = Scratch::new("overview-leaves-none");
    let program = compiled(&scratch, "leaves.c", LEAVES, &["-O0", "-g"]);
    let recorded = Recorded::of_program(scratch, &program, &["0"], &["--memory"]);
    let text = recorded.text();
    assert!(!text.contains("allocated at exit"), "{text}");
}

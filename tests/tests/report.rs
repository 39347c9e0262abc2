//! Goal: a report counts what another tracer counts, its forms agree with each other, and its corrected times are below the
//! measured ones. Method: SQLite and a doubly recursive function, recorded; uftrace's counts; the table `calls`.

#[path = "report/waits.rs"]
mod waits;

use e2e::{
    Ended, Hindsight, Program, Recording, Scratch, Signal, Status, Steady, compiled,
    fixture_artifact, wait_until,
};
use serde_json::Value;

/// A recording called `rec` in a folder of its own.
struct Recorded {
    scratch: Scratch,
    recording: Recording,
    ended: Ended,
}

impl Recorded {
    fn of(name: &str, artifact: &str, args: &[&str], options: &[&str]) -> Recorded {
        let scratch = Scratch::new(name);
        let program = fixture_artifact(artifact, artifact);
        let program = Program::new(program, scratch.path()).args(args);
        let (ended, recording) = Hindsight::record(&scratch, options, &program);
        Recorded {
            scratch,
            recording,
            ended,
        }
    }

    fn report(&self, args: &[&str]) -> String {
        let args = [&["report", "rec"], args].concat();
        let ended = Hindsight::command(&self.scratch, &args).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.text()
    }

    fn json(&self, args: &[&str]) -> Value {
        let args = [args, &["--json", "--limit", "100000"]].concat();
        let answer: Value = serde_json::from_str(&self.report(&args)).expect("it is JSON");
        answer["result"].clone()
    }
}

fn number(value: &Value, field: &str) -> i64 {
    let found = value[field].as_i64();
    found.unwrap_or_else(|| panic!("{field} is a number: {value}"))
}

#[test]
fn sqlite_is_reported_as_uftrace_counts_it() {
    let scratch = Scratch::new("report_uftrace");
    let program = Program::new(fixture_artifact("sqlite", "sqlite_pg"), scratch.path());
    let oracle = e2e::uftrace_counts(&scratch, &program.args(["200"]));
    let recorded = Recorded::of("report_sqlite", "sqlite", &["200"], &[]);
    let report = recorded.json(&[]);
    let functions = report["functions"].as_array().expect("functions");
    let mut compared = 0;
    for function in functions {
        let name = function["function"].as_str().expect("a name");
        if let Some(count) = oracle.get(name) {
            assert_eq!(number(function, "calls"), *count, "{name}");
            compared += 1;
        }
        assert!(
            number(function, "self_ns") <= number(function, "raw_self_ns"),
            "{function}"
        );
        assert!(
            number(function, "self_ns") <= number(function, "inclusive_ns"),
            "{function}"
        );
        takes_time(function, waited_ns(&report));
    }
    assert!(compared >= 400, "only {compared} functions were compared");
    let raw_ns: i64 = functions.iter().map(|f| number(f, "raw_self_ns")).sum();
    let of_calls = recorded
        .recording
        .number("SELECT sum(self_ns) FROM calls WHERE dur_ns >= 0");
    assert!(raw_ns >= of_calls, "{raw_ns} {of_calls}");
    let cost = &report["cost"];
    for part in ["inside_ns", "outside_ns"] {
        let ns = cost[part].as_f64().expect("a number");
        assert!((1.0..1000.0).contains(&ns), "{cost}");
    }
}

#[test]
fn the_forms_of_a_report_agree() {
    let recorded = Recorded::of("report_fib", "fib", &["15"], &["--report"]);
    let errors = recorded.ended.errors();
    assert!(
        errors.contains("inclusive") && errors.contains("subtracted as the cost of recording:"),
        "{errors}"
    );
    let report = recorded.json(&["--raw"]);
    let functions = report["functions"].as_array().expect("functions");
    let fib = functions
        .iter()
        .find(|f| f["function"] == "fib")
        .expect("fib was called");
    let told = recorded.ended.text();
    let calls = format!("calls fib {}\n", number(fib, "calls"));
    assert!(told.contains(&calls), "{told}");
    // Recursion counts once.
    let main = functions
        .iter()
        .find(|f| f["function"] == "main")
        .expect("main was called");
    assert!(
        number(fib, "raw_inclusive_ns") <= number(main, "raw_inclusive_ns"),
        "{report}"
    );
    assert_eq!(number(fib, "raw_inclusive_ns"), number(fib, "raw_self_ns"));
    let folded = recorded.report(&["--folded", "--raw"]);
    let folded_ns: i64 = folded
        .lines()
        .map(|line| {
            line.rsplit_once(' ')
                .expect("a number")
                .1
                .parse::<i64>()
                .expect("ns")
        })
        .sum();
    let all_ns: i64 = functions.iter().map(|f| number(f, "raw_self_ns")).sum();
    assert_eq!(folded_ns, all_ns);
    let around = recorded.json(&["fib"]);
    let callers = around["functions"][0]["callers"]
        .as_array()
        .expect("callers");
    let calls: i64 = callers.iter().map(|caller| number(caller, "calls")).sum();
    assert_eq!(calls, number(fib, "calls"));
    let tree = recorded.report(&["--tree", "--depth", "3"]);
    assert!(
        tree.contains(" main\n") && tree.contains("   fib\n"),
        "{tree}"
    );
    recorded.report(&["--flamegraph", "fib.svg", "--speedscope", "fib.json"]);
    let svg = std::fs::read_to_string(recorded.scratch.join("fib.svg")).expect("it was written");
    assert!(
        svg.starts_with("<?xml") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    let profile = std::fs::read(recorded.scratch.join("fib.json")).expect("it was written");
    let profile: Value = serde_json::from_slice(&profile).expect("it is JSON");
    assert_eq!(profile["profiles"][0]["type"], "evented");
}

/// Two threads that each call a function of their own, through one whose name is long.
const NAMED: &str = r#"
#include <pthread.h>
template <class First, class Second> struct a_pair_of_types_with_a_long_name { First first; Second second; };
typedef a_pair_of_types_with_a_long_name<unsigned long long, unsigned long long> Inner;
typedef a_pair_of_types_with_a_long_name<Inner, Inner> Outer;
template <class T> __attribute__((noinline)) int size_of_what_is_in(const T *) { return sizeof(T); }
extern "C" __attribute__((noinline)) int once(int n) { return n + 1; }
extern "C" __attribute__((noinline)) int twice(int n) { return once(n) + once(n); }
static void *other(void *) { return twice(3) == 8 ? nullptr : (void *)1; }
int main()
{
  pthread_t thread;
  pthread_create(&thread, nullptr, other, nullptr);
  pthread_join(thread, nullptr);
  Outer *nothing = nullptr;
  return size_of_what_is_in(nothing) + once(3) - 36;
}
"#;

fn named(scratch: &Scratch) -> Recording {
    let program = compiled(scratch, "named.cc", NAMED, &["-g", "-O0", "-pthread"]);
    let program = Program::new(program, scratch.path());
    Hindsight::recorded(scratch, "rec", &[], &program)
}

/// The calls and the name in each row of a table, by the heading above it.
fn calls_by_heading(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut all: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
        match (cells.as_slice(), all.last_mut()) {
            ([heading], _) if heading.ends_with(" in recorded calls") => {
                all.push(((*heading).to_owned(), Vec::new()));
            }
            ([.., calls, name], Some((_, rows))) if *calls != "calls" => {
                let name = name.split(" (").next().unwrap_or_default();
                rows.push(((*calls).to_owned(), name.to_owned()));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn each_thread_has_a_table_of_its_own() {
    let scratch = Scratch::new("report_threads");
    let recording = named(&scratch);
    let ended = recording.command("report", &["--threads"]);
    let text = ended.text();
    let tables = calls_by_heading(&text);
    assert_eq!(tables.len(), 2, "{text}");
    let is_of_main = |rows: &[(String, String)]| rows.iter().any(|(_, name)| name == "main");
    let (of_main, of_other): (Vec<_>, Vec<_>) =
        tables.iter().partition(|(_, rows)| is_of_main(rows));
    let calls = |tables: &[&(String, Vec<(String, String)>)], name: &str| {
        let mut rows = tables.iter().flat_map(|(_, rows)| rows);
        let row = rows.find(|(_, named)| named == name);
        row.map(|(calls, _)| calls.clone())
    };
    let (one, two) = (Some("1".to_owned()), Some("2".to_owned()));
    assert_eq!(calls(&of_main, "once"), one, "{text}");
    assert_eq!(calls(&of_main, "twice"), None, "{text}");
    assert_eq!(calls(&of_other, "once"), two, "{text}");
    assert_eq!(calls(&of_other, "twice"), one, "{text}");
    for (heading, rows) in &tables {
        let sum: u64 = rows
            .iter()
            .map(|(calls, _)| calls.parse::<u64>().expect("a number"))
            .sum();
        assert!(heading.contains(&format!(": {sum} call")), "{text}");
    }
}

/// JSON has the whole name.
#[test]
fn long_names_of_templates_are_short_in_the_table() {
    let scratch = Scratch::new("report_templates");
    let recording = named(&scratch);
    let text = recording.command("report", &[]).text();
    let row = text
        .lines()
        .find(|line| line.contains("size_of_what_is_in"));
    let row = row.expect("it was called");
    assert!(row.contains(" size_of_what_is_in<..> (named.cc:"), "{row}");
    let whole = recording.command("report", &["--json"]).result();
    let functions = whole["functions"].as_array().expect("functions");
    let mut names = functions.iter().filter_map(|f| f["function"].as_str());
    let name = names.find(|name| name.starts_with("size_of"));
    let name = name.expect("it was called");
    assert_eq!(name.matches("a_pair_of_types").count(), 3, "{name}");
}

/// The calls of one call, and no others: in order, with what each took.
#[test]
fn the_tree_below_one_call_has_its_calls_alone() {
    let scratch = Scratch::new("report_call");
    let recording = named(&scratch);
    let seq = |function: &str| {
        recording.number(&format!(
            "SELECT start_seq FROM calls WHERE function = '{function}' ORDER BY start_seq LIMIT 1"
        ))
    };
    let twice = seq("twice").to_string();
    let text = recording
        .command("report", &["--tree", "--call", &twice])
        .text();
    let calls: Vec<&str> = text
        .lines()
        .skip(2)
        .filter_map(|line| line.rsplit_once("| ").map(|(_, call)| call))
        .collect();
    assert_eq!(
        calls,
        ["twice(n=3)", "  once(n=3)", "  once(n=3)"],
        "{text}"
    );
    assert!(
        text.ends_with("times are as measured, with what recording cost\n"),
        "{text}"
    );
    let json = ["--tree", "--call", &twice, "--json"];
    let found = recording.command("report", &json).result();
    assert_eq!(found["call_count"], 3, "{found:#}");
    let rows = recording.rows(&format!(
        "SELECT start_seq, parent, dur_ns, self_ns FROM calls \
         WHERE start_seq = {twice} OR parent = {twice} ORDER BY start_seq"
    ));
    let calls = found["calls"].as_array().expect("calls");
    assert_eq!(calls.len(), rows.len());
    for (call, row) in calls.iter().zip(&rows) {
        for column in ["start_seq", "parent", "dur_ns", "self_ns"] {
            assert_eq!(call[column], row[column], "{column}: {call}");
        }
    }
    let cut = ["--tree", "--call", &twice, "--depth", "1"];
    let text = recording.command("report", &cut).text();
    let told = "1 of 3 calls shown: the longest, at most 1 deep; --limit and --depth show more\n";
    assert!(text.contains(told) && !text.contains("once("), "{text}");
    let ended = recording.command("report", &["--tree", "--call", "0"]);
    assert_eq!(ended.status, Status::Code(2), "{}", ended.errors());
    let told = "no recorded call begins at event 0";
    assert!(ended.errors().contains(told), "{}", ended.errors());
}

/// What was nobody's time, or spent waiting for a processor.
fn waited_ns(report: &Value) -> i64 {
    number(&report["cost"], "held_ns") + number(&report["cost"], "processor_wait_ns")
}

/// A call takes 1 ns at least, if that much was measured and not a wait, of which there were `held_ns`.
fn takes_time(function: &Value, held_ns: i64) {
    let (own_ns, most_ns) = (
        number(function, "self_ns"),
        number(function, "self_most_ns"),
    );
    let raw_ns = number(function, "raw_self_ns");
    assert!(own_ns <= most_ns && most_ns <= raw_ns, "{function}");
    let least_ns = number(function, "calls").min(raw_ns - held_ns);
    assert!(own_ns >= least_ns, "{function}");
}

/// Of a small function little more than chance is left, which must not say that it took no time.
#[test]
fn a_function_of_many_short_calls_has_a_time_and_its_bound() {
    let recorded = Recorded::of("report_short", "fib", &["24"], &[]);
    let report = recorded.json(&[]);
    let functions = report["functions"].as_array().expect("functions");
    let held_ns = waited_ns(&report);
    let text = recorded.report(&["--limit", "0"]);
    for function in functions {
        takes_time(function, held_ns);
        let name = function["function"].as_str().expect("a name");
        let row = format!(" {name} (");
        let row = text.lines().find(|line| line.contains(&row));
        let is_rough = 2 * number(function, "self_most_ns") > 3 * number(function, "self_ns");
        let is_marked = row.expect("a row").matches('~').count() == 2;
        assert_eq!(is_marked, is_rough, "{function} {text}");
    }
    let named = |name: &str| functions.iter().find(|f| f["function"] == name);
    let (fib, main) = (named("fib").expect("fib"), named("main").expect("main"));
    assert!(
        number(main, "inclusive_ns") >= number(fib, "inclusive_ns"),
        "{report}"
    );
    let raw = recorded.report(&["--raw"]);
    assert!(!raw.contains('~'), "{raw}");
    let row = "SELECT self_ns, self_most_ns FROM report WHERE function = 'fib'";
    let row = &recorded.recording.rows(row)[0];
    for column in ["self_ns", "self_most_ns"] {
        assert_eq!(row[column], fib[column], "{column}");
    }
}

/// The host loads two libraries in turn, and each time waits until their functions are armed. The compiler evaluates the last argument first.
#[test]
fn the_wait_for_functions_to_be_armed_is_in_nobodys_time() {
    let scratch = Scratch::new("report_arming");
    let program = Program::new(fixture_artifact("plugin", "plugin_host"), scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    let recorded = Recorded {
        scratch,
        recording,
        ended,
    };
    let waits = recorded.recording.rows(
        "SELECT value, text FROM events JOIN threads USING (tid) WHERE kind = 'arming' ORDER BY seq",
    );
    assert_eq!(waits.len(), 20, "{waits:?}");
    let mut waited_ns = 0;
    for (nth, wait) in waits.iter().enumerate() {
        let library = ["blue.so", "red.so"][nth % 2];
        let modules = wait["text"].as_str().expect("paths");
        assert!(modules.ends_with(library), "{waits:?}");
        let each_ns = wait["value"].as_i64().expect("a number");
        assert!(each_ns > 0, "{waits:?}");
        waited_ns += each_ns;
    }
    let report = recorded.json(&[]);
    let functions = report["functions"].as_array().expect("functions");
    let using = functions.iter().find(|f| f["function"] == "use");
    let using = using.expect("it is in the report");
    let taken_out_ns = number(using, "raw_self_ns") - number(using, "self_ns");
    assert!(taken_out_ns >= waited_ns, "{waited_ns} {using}");
    let overview = recorded.recording.command("overview", &["--json"]).result();
    let told = overview["time"]["functions"].as_array().expect("a list");
    let told = told.iter().find(|f| f["function"] == "use");
    let told = number(told.expect("it is in the overview"), "self_ns");
    assert!(told <= number(using, "raw_self_ns") - waited_ns, "{told}");
    let held_ns = report["cost"]["held_ns"].as_i64().expect("a number");
    assert!(held_ns >= waited_ns, "{waited_ns} {held_ns}");
}

/// Shares one processor with a child that computes, and prints how long the kernel says that it waited: in the last
/// calls, and in all. The first calls are more than a ring holds, so the recorder has looked at the thread before the others.
const SHARED: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) long step(long x) { return x * 3 + 1; }
static unsigned long long waited(void) {
  unsigned long long ran = 0, waited = 0;
  FILE *file = fopen("/proc/self/schedstat", "r");
  if (fscanf(file, "%llu %llu", &ran, &waited) != 2)
    abort();
  fclose(file);
  return waited;
}
int main(void)
{
  cpu_set_t all, one;
  int first = 0;
  sched_getaffinity(0, sizeof all, &all);
  while (!CPU_ISSET(first, &all))
    first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  sched_setaffinity(0, sizeof one, &one);
  pid_t parent = getpid(), child = fork();
  while (child == 0)
    if (getppid() != parent)
      return 0;
  long x = 1;
  for (long n = 0; n < 1000000; n++)
    x = step(x);
  unsigned long long before = waited();
  for (long n = 0; n < 16000000; n++)
    x = step(x);
  unsigned long long after = waited();
  printf("%llu %llu %ld\n", after - before, after, x & 1);
  kill(child, SIGKILL);
  return 0;
}
"#;

#[test]
fn the_wait_for_a_processor_is_in_no_functions_time() {
    let scratch = Scratch::new("report_processor");
    let program = Program::new(
        compiled(&scratch, "shared.c", SHARED, &["-O1"]),
        scratch.path(),
    );
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    let told: Vec<i64> = ended
        .text()
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    let (told_ns, in_all_ns) = (told[0], told[1]);
    let recorded = Recorded {
        scratch,
        recording,
        ended,
    };
    let report = recorded.json(&[]);
    let wait_ns = number(&report["cost"], "processor_wait_ns");
    // On a busy machine the thread also waits for room in its ring; what it waits then is in nobody's time already.
    let held_ns = number(&report["cost"], "held_ns");
    assert!(
        wait_ns > 0 && wait_ns + held_ns > told_ns / 2 && wait_ns < in_all_ns * 2,
        "{wait_ns} and {held_ns} of {told_ns} and {in_all_ns}"
    );
    let functions = report["functions"].as_array().expect("functions");
    let sum = |field| functions.iter().map(|f| number(f, field)).sum::<i64>();
    let taken_out_ns = sum("raw_self_ns") - sum("self_ns");
    assert!(taken_out_ns >= wait_ns, "{taken_out_ns} {wait_ns}");
    // The graph and the table say the same.
    let folded = recorded.report(&["--folded"]);
    let step = folded.lines().find(|line| line.contains("main;step "));
    let step = step.and_then(|line| line.rsplit_once(' ')).expect(&folded);
    let in_table = functions.iter().find(|f| f["function"] == "step");
    let in_table = number(in_table.expect("it was called"), "self_ns");
    assert_eq!(step.1.parse::<i64>().ok(), Some(in_table), "{folded}");
    let text = recorded.report(&[]);
    assert!(text.contains("waited for a processor"), "{text}");
}

/// A lambda whose type is longer than a line holds a lock until another thread waits for it.
const LOCKING: &str = r#"
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
std::mutex ledger_of_all_orders_of_the_shop;
int main()
{
  auto work = [](std::map<std::string, std::vector<long>> all) {
    std::lock_guard<std::mutex> held(ledger_of_all_orders_of_the_shop);
    usleep(5000 + all.size());
  };
  std::thread one(work, std::map<std::string, std::vector<long>>{});
  std::thread two(work, std::map<std::string, std::vector<long>>{});
  one.join();
  two.join();
}
"#;

#[test]
fn locks_fit_in_a_terminal() {
    let scratch = Scratch::new("report_locks");
    let flags = ["-g", "-O0", "-pthread"];
    let program = compiled(&scratch, "locking.cc", LOCKING, &flags);
    let program = Program::new(program, scratch.path());
    let _recording = Hindsight::recorded(&scratch, "rec", &["--locks"], &program);
    let report = Hindsight::command(&scratch, &["report", "rec", "--locks"]);
    // A terminal of unknown size is taken to have 80 columns.
    let in_terminal = report.clone().env("NO_COLOR", "1").in_terminal();
    let shown = in_terminal.run().text();
    let shown = shown.replace('\r', "");
    let reasons = |line: &&str| !line.contains("recorded");
    for line in shown.lines().filter(reasons) {
        assert!(line.chars().count() <= 80, "{line}\n{shown}");
    }
    let heading = shown.lines().next().unwrap_or_default();
    let columns: Vec<&str> = heading.split('|').map(str::trim).collect();
    let all = ["lock", "kind", "taken", "contended", "waited", "held"];
    assert_eq!(columns, all, "{shown}");
    let row = shown.lines().find(|line| line.starts_with(" ledger_of"));
    let cells: Vec<&str> = row.expect(&shown).split('|').map(str::trim).collect();
    assert_eq!(cells[1..3], ["mutex", "2"], "{shown}");
    let waited = "waited longest for it, ";
    let at = shown.lines().position(|line| line.contains(waited));
    let place = shown.lines().nth(at.expect(&shown) + 1);
    let place = place.unwrap_or_default();
    assert!(place.starts_with("  in main::{lambda#1}"), "{shown}");
    assert!(place.contains("(locking.cc:"), "{shown}");
    let in_pipe = report.run().text();
    let line = in_pipe.lines().find(|line| line.contains(waited));
    let line = line.expect(&in_pipe);
    assert!(
        line.contains(" in main::{lambda") && line.contains(" (seq "),
        "{line}"
    );
}

/// A stopped recorder drains nothing: the rings fill, and the program's threads wait for room until it continues.
#[test]
fn the_wait_for_room_in_a_ring_is_in_nobodys_time() {
    let scratch = Scratch::new("report_full_ring");
    let steady = Steady::new(&scratch);
    let program = steady.program(&scratch, 400_000);
    let (running, recording) = Hindsight::start_recording(&scratch, &[], &program);
    wait_until("the program's work", || {
        (steady.rounds() >= 20_000).then_some(())
    });
    running.signal(Signal::STOP);
    let mut same = 0;
    let mut before = steady.rounds();
    wait_until("the rings to be full", || {
        let now = steady.rounds();
        same = if now == before { same + 1 } else { 0 };
        before = now;
        (same > 200).then_some(())
    });
    assert!(!steady.has_finished());
    running.signal(Signal::CONT);
    let ended = running.finish();
    assert_eq!((ended.status, steady.wrong()), (Status::Code(21), 0));
    let waits = "FROM events WHERE kind = 'ring_wait' AND tid IS NOT NULL";
    // While it was looked at 200 times, it stood still for 2 ms each time.
    let longest_ns = recording.number(&format!("SELECT max(value) {waits}"));
    assert!(longest_ns >= 100_000_000, "{longest_ns}");
    let waited_ns = recording.number(&format!("SELECT sum(value) {waits}"));
    let ended = Hindsight::command(&scratch, &["report", "rec", "--json"]).run();
    let report = ended.result();
    let held_ns = number(&report["cost"], "held_ns");
    assert!(
        held_ns >= longest_ns && held_ns <= waited_ns,
        "{held_ns} {waited_ns}"
    );
    let functions = report["functions"].as_array().expect("functions");
    let sum = |field| functions.iter().map(|f| number(f, field)).sum::<i64>();
    let taken_out_ns = sum("raw_self_ns") - sum("self_ns");
    assert!(taken_out_ns >= longest_ns, "{taken_out_ns} {longest_ns}");
    let text = Hindsight::command(&scratch, &["report", "rec"])
        .run()
        .text();
    assert!(
        text.contains("stopped or waited for the recorder"),
        "{text}"
    );
}

//! Goal: `record --memory` knows every block that a program allocates, who made it and who freed it. Method: programs in C, C++ and
//! Rust under valgrind and recorded; the blocks left at the end must be the same, and their places those in the sources.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use std::path::Path;

use e2e::{
    Hindsight, Program, Recording, Scratch, Status, compiled, fixture_artifact, in_turn,
    marked_line,
};
use serde_json::Value;

/// Blocks that valgrind sees and no recording does: those that libraries allocate before a program's entry point.
const NOT_RECORDED: [&str; 1] = ["call_init"];

/// Bytes and blocks in use at exit, as valgrind counts them.
fn counted_by_valgrind(program: &Path, args: &[&str], folder: &Path) -> (u64, u64) {
    let ended = Program::new("/usr/bin/valgrind", folder)
        .args(["--run-libc-freeres=no", "--run-cxx-freeres=no"])
        .args([
            "--leak-check=full",
            "--show-leak-kinds=all",
            "--num-callers=40",
        ])
        .args([program])
        .args(args)
        .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let text = ended.errors();
    let numbers = |text: &str| -> Vec<u64> {
        let words = text.split(' ').map(|word| word.replace(',', ""));
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let used = text.split("in use at exit: ").nth(1);
    let used = used.and_then(|used| used.lines().next());
    let used = numbers(used.expect("valgrind says what is in use at exit"));
    let (mut bytes, mut blocks) = (used[0], used[1]);
    // A paragraph per record: "72,704 bytes in 1 blocks are still reachable in loss record 9 of 9", then the stack.
    for record in text
        .split("== \n")
        .filter(|text| text.contains("in loss record"))
    {
        if NOT_RECORDED
            .iter()
            .any(|function| record.contains(function))
        {
            let head = record.lines().find(|line| line.contains("in loss record"));
            let head = head
                .and_then(|line| line.split_once("== "))
                .expect("it has a head")
                .1;
            let head = head.split(" (").next().unwrap_or(head);
            let found = numbers(head);
            bytes -= found[0];
            blocks -= found[1];
        }
    }
    (bytes, blocks)
}

fn recorded(scratch: &Scratch, program: &Path, args: &[&str], options: &[&str]) -> Recording {
    let program = Program::new(program, scratch.path()).args(args);
    let options = [&["--memory"], options].concat();
    let (_, recording) = Hindsight::record(scratch, &options, &program);
    recording
}

fn report(scratch: &Scratch, recording: &Recording) -> Value {
    let path = recording.path().to_str().expect("its name is text");
    let ended = Hindsight::command(scratch, &["report", path, "--memory", "--json"]).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    ended.result()
}

/// Compares the blocks that are left at the end with valgrind's, with all functions recorded and with a few.
fn agrees(name: &str, artifact: &str) {
    let scratch = Scratch::new(name);
    let program = fixture_artifact("leaks", artifact);
    let expected = counted_by_valgrind(&program, &[], scratch.path());
    for (part, options) in [("all", &[][..]), ("main", &["-f", "main"])] {
        let scratch = Scratch::new(&format!("{name}-{part}"));
        let recording = recorded(&scratch, &program, &[], options);
        let report = report(&scratch, &recording);
        let live = &report["live"];
        let found = (live["bytes"].as_u64(), live["blocks"].as_u64());
        assert_eq!(found, (Some(expected.0), Some(expected.1)), "{report:#}");
        assert_eq!(report["lost"]["blocks"], 0, "{report:#}");
        assert_eq!(report["unknown_blocks"], 0, "{report:#}");
        let rows = recording.row(
            "SELECT sum(size) AS bytes, count(*) AS blocks FROM allocations \
             WHERE state = 'live' AND function NOT LIKE 'm%map'",
        );
        assert_eq!(rows["bytes"], expected.0);
        assert_eq!(rows["blocks"], expected.1);
    }
}

#[test]
fn what_a_c_program_leaves_is_what_valgrind_counts() {
    agrees("memory-c", "leaks_c");
}

#[test]
fn what_a_cxx_program_leaves_is_what_valgrind_counts() {
    agrees("memory-cxx", "leaks_cxx");
}

#[test]
fn what_a_rust_program_leaves_is_what_valgrind_counts() {
    agrees("memory-rust", "leaks_rust");
}

/// Tools of the Rust toolchain that these tests were built with.
#[test]
fn what_rust_tools_leave_is_what_valgrind_counts() {
    for (tool, args) in [("cargo", &["--list"][..]), ("rustfmt", &["--version"])] {
        let scratch = Scratch::new(&format!("memory-{tool}"));
        let program = Path::new(env!("CARGO")).with_file_name(tool);
        let expected = counted_by_valgrind(&program, args, scratch.path());
        assert!(expected.1 > 0, "{tool}: {expected:?}");
        let recording = recorded(&scratch, &program, args, &["-f", "main"]);
        let live = report(&scratch, &recording)["live"].clone();
        let found = (live["bytes"].as_u64(), live["blocks"].as_u64());
        assert_eq!(found, (Some(expected.0), Some(expected.1)), "{tool}");
    }
}

#[test]
fn blocks_have_their_makers_and_freers() {
    makers_and_freers("memory-makers", &[]);
}

#[test]
fn blocks_have_their_makers_and_freers_where_every_instruction_is_recorded() {
    makers_and_freers("memory-full", &["--full"]);
}

fn makers_and_freers(name: &str, options: &[&str]) {
    let scratch = Scratch::new(name);
    let program = fixture_artifact("leaks", "leaks_c");
    let recording = recorded(&scratch, &program, &[], options);
    let line = |mark| marked_line("leaks", "leaks.c", mark);
    let kept = format!("keep_order (leaks.c:{})", line("kept"));
    let dropped = format!("drop_order (leaks.c:{})", line("dropped"));
    let rows = recording.rows(
        "SELECT size, function, place, frames, freed_by, freed_place, state FROM allocations \
         WHERE place LIKE 'keep_order%' ORDER BY seq",
    );
    assert_eq!(rows.len(), 10);
    for row in &rows {
        assert_eq!(row["size"], 16);
        assert_eq!(row["function"], "malloc");
        assert_eq!(row["place"], kept.as_str());
        let frames = row["frames"].as_str().expect("frames are known");
        assert!(
            frames.starts_with(&format!("{kept} < main (leaks.c:")),
            "{frames}"
        );
    }
    let freed = rows.iter().filter(|row| row["state"] == "freed");
    let freed: Vec<_> = freed.collect();
    assert_eq!(freed.len(), 4);
    for row in freed {
        assert_eq!(row["freed_by"], "free");
        assert_eq!(row["freed_place"], dropped.as_str());
    }
    // A function of the C library that allocates for its caller is listed before it.
    let copied = recording.row("SELECT frames, size FROM allocations WHERE place LIKE '%strdup%'");
    assert_eq!(copied["size"], 41);
    let frames = copied["frames"].as_str().expect("frames are known");
    assert!(frames.contains(" < copy < main (leaks.c:"), "{frames}");
    let pages = recording.rows(
        "SELECT size, live_bytes, state FROM allocations \
         WHERE function LIKE 'mmap%' AND place LIKE 'map %' ORDER BY seq",
    );
    assert_eq!(pages.len(), 2);
    assert_eq!(
        (&pages[0]["size"], &pages[0]["live_bytes"]),
        (&16384.into(), &12288.into())
    );
    assert_eq!(
        (&pages[1]["state"], &pages[1]["live_bytes"]),
        (&"freed".into(), &0.into())
    );
}

#[test]
fn the_report_says_what_is_left_and_the_most_there_was() {
    let scratch = Scratch::new("memory-report");
    let program = fixture_artifact("leaks", "leaks_c");
    let recording = recorded(&scratch, &program, &[], &[]);
    let path = recording.path().to_str().expect("its name is text");
    let ended = Hindsight::command(&scratch, &["report", path, "--memory"]).run();
    let text = ended.text();
    assert!(text.contains("malloc in keep_order (leaks.c:"), "{text}");
    assert!(text.contains("left at the end: "), "{text}");
    // The peak, computed by SQL from the starts and ends of all blocks.
    let peak = recording.number(
        "WITH changes AS (\
           SELECT c.end_seq AS seq, a.size AS bytes FROM allocations a JOIN calls c ON c.start_seq = a.seq \
             WHERE a.function NOT LIKE 'm%map' AND a.size IS NOT NULL \
           UNION ALL SELECT freed_seq, -size FROM allocations \
             WHERE freed_seq IS NOT NULL AND function NOT LIKE 'm%map' AND size IS NOT NULL), \
         running AS (SELECT sum(bytes) OVER (ORDER BY seq) AS held FROM changes) \
         SELECT max(held) FROM running",
    );
    let report = report(&scratch, &recording);
    assert_eq!(report["peak"]["held"]["bytes"], peak);
    // A moment, as `goto` takes it.
    let told = text.lines().find(|line| line.starts_with("peak: "));
    assert!(told.is_some_and(|line| line.contains(" at ")), "{text}");
}

#[test]
fn operator_new_is_told_by_its_name() {
    let scratch = Scratch::new("memory-new");
    let program = fixture_artifact("leaks", "leaks_cxx");
    let recording = recorded(&scratch, &program, &[], &[]);
    let rows = recording.rows(
        "SELECT function, size, freed_by, state FROM allocations \
         WHERE place LIKE 'forget%' ORDER BY seq",
    );
    let of = |n: usize| {
        let text = |column: &str| rows[n][column].as_str().unwrap_or("-").to_owned();
        (text("function"), rows[n]["size"].as_i64(), text("freed_by"))
    };
    let expected = [
        ("operator new[]", 100, "-"),
        ("operator new", 192, "-"),
        ("operator new[]", 500, "operator delete[]"),
        ("operator new", 192, "operator delete"),
    ];
    assert_eq!(rows.len(), expected.len(), "{rows:?}");
    for (n, (made, size, freed)) in expected.into_iter().enumerate() {
        assert_eq!(of(n), (made.to_owned(), Some(size), freed.to_owned()));
    }
}

#[test]
fn many_blocks_at_one_address_are_told_apart() {
    let scratch = Scratch::new("memory-many");
    let program = fixture_artifact("leaks", "many_blocks");
    let recording = recorded(&scratch, &program, &["20000"], &[]);
    let row = recording.row(
        "SELECT count(*) AS blocks, count(DISTINCT addr) AS places, count(freed_seq) AS freed, \
         count(*) FILTER (WHERE freed_seq < seq) AS wrong FROM allocations WHERE size = 32",
    );
    assert_eq!(row["blocks"], 20_000);
    assert_eq!(row["places"], 1);
    assert_eq!(row["freed"], 20_000);
    assert_eq!(row["wrong"], 0);
}

#[test]
fn without_the_option_the_report_says_what_records_it() {
    let scratch = Scratch::new("memory-none");
    let program = Program::new(fixture_artifact("leaks", "leaks_c"), scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let path = recording.path().to_str().expect("its name is text");
    let ended = Hindsight::command(&scratch, &["report", path, "--memory"]).run();
    assert!(ended.text().contains("record --memory"), "{}", ended.text());
    assert_eq!(recording.number("SELECT count(*) FROM allocations"), 0);
}

/// Code without names is shown as its file and the return address in it.
#[test]
fn blocks_of_a_stripped_program_have_places() {
    let scratch = Scratch::new("memory-stripped");
    let program = fixture_artifact("leaks", "leaks_stripped");
    let recording = recorded(&scratch, &program, &[], &[]);
    let rows = recording.rows(
        "SELECT DISTINCT place FROM allocations \
         WHERE function = 'calloc' AND place LIKE 'leaks_stripped+%'",
    );
    assert_eq!(rows.len(), 1, "{rows:?}");
    let place = rows[0]["place"].as_str().expect("it has a place");
    let offset = place.strip_prefix("leaks_stripped+0x");
    let offset = u64::from_str_radix(offset.expect(place), 16).expect("it is a number");
    // The file with names has the function at that address.
    let named = fixture_artifact("leaks", "leaks_c");
    let told = Program::new("/usr/bin/addr2line", scratch.path())
        .args(["-f", "-e", named.to_str().expect("its name is text")])
        .args([format!("{:#x}", offset - 1)])
        .run();
    assert_eq!(told.text().lines().next(), Some("lose"));
    let ended = report(&scratch, &recording);
    let sites = ended["sites"].as_array().expect("it has sites");
    let in_program = sites.iter().filter(|site| {
        let first = site["frames"][0]["function"].as_str().unwrap_or_default();
        first.starts_with("leaks_stripped+0x")
    });
    assert!(in_program.count() > 5, "{ended:#}");
}

const THREADS: &str = r"
#include <thread>
#include <vector>
#include <cstdio>
#include <string>
int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([i] { std::vector<int> *numbers = new std::vector<int>(50 + i); delete numbers; });
  for (auto &thread : threads)
    thread.join();
  std::puts(std::to_string(threads.size()).c_str());
}
";

/// At the end of a thread, glibc frees what is in the thread's cache: blocks that the program has freed before.
#[test]
fn what_threads_leave_in_their_caches_is_not_freed_twice() {
    let scratch = Scratch::new("memory-threads");
    let app = compiled(&scratch, "app.cc", THREADS, &["-O0", "-g", "-pthread"]);
    let recording = recorded(&scratch, &app, &[], &[]);
    let report = report(&scratch, &recording);
    assert_eq!(report["freed_twice"], serde_json::json!([]), "{report}");
    let sql = "SELECT count(*) FROM allocations WHERE seq IS NULL AND freed_seq IS NOT NULL";
    assert!(
        recording.number(sql) > 0,
        "the caches were emptied by calls of free"
    );
}

const DIES_IN_FREE: &str = r"
#include <stdlib.h>
int main(int count, char **words) {
  char *volatile kept = malloc(40);
  char *volatile twice = malloc(50);
  if (count > 1)
    free(twice);
  free(count > 1 ? twice : kept + 8);
  return 0;
}
";

#[test]
fn a_call_of_free_in_which_the_program_died_freed_nothing() {
    for (args, freed) in [(&[][..], 0), (&["twice"], 1)] {
        let scratch = Scratch::new("memory-dies");
        let app = compiled(&scratch, "app.c", DIES_IN_FREE, &["-O0", "-g", "-w"]);
        let recording = recorded(&scratch, &app, args, &[]);
        let report = report(&scratch, &recording);
        assert_eq!(report["freed"]["blocks"], freed, "{report:#}");
        assert_eq!(report["live"]["blocks"], 2 - freed, "{report:#}");
        assert_eq!(report["freed_unknown_blocks"], 0, "{report:#}");
        let twice = report["freed_twice"].as_array().expect("a list");
        assert_eq!(twice.len(), freed, "{report:#}");
        let sql = "SELECT count(*) FROM allocations WHERE seq IS NULL AND freed_seq IS NOT NULL";
        assert_eq!(recording.number(sql), 0);
    }
}

const CONTAINERS: &str = r#"
#include <mutex>
#include <string>
#include <vector>
static std::mutex lock;
__attribute__((noinline)) static void fill(std::vector<std::string> &all) {
  all.push_back(std::string(100, 'x')); // filled
}
int main() {
  auto *all = new std::vector<std::string>; // made
  {
    std::lock_guard<std::mutex> guard(lock); // locked
    fill(*all);
  }
  return all->size() == 1 ? 0 : 1;
}
"#;

/// Containers and locks of C++ are code of the library's headers, inlined or not: users look for their own lines.
#[test]
fn places_are_the_programs_own_lines() {
    let line = |mark: &str| {
        let is_it = |line: &str| line.ends_with(&format!("// {mark}"));
        1 + CONTAINERS.lines().position(is_it).expect("a marked line")
    };
    for level in in_turn(["-O0", "-O2"]) {
        let scratch = Scratch::new(&format!("memory-own{level}"));
        let program = compiled(&scratch, "app.cc", CONTAINERS, &[level, "-g"]);
        let recording = recorded(&scratch, &program, &[], &["--locks"]);
        let sql = "SELECT DISTINCT place FROM allocations WHERE state = 'live' AND frames LIKE '%main%' ORDER BY 1";
        let places = recording.rows(sql);
        let places: Vec<&str> = places
            .iter()
            .filter_map(|row| row["place"].as_str())
            .collect();
        for (function, mark) in [("fill", "filled"), ("main", "made")] {
            let end = format!("(app.cc:{})", line(mark));
            let is_there = |place: &&str| place.starts_with(function) && place.ends_with(&end);
            assert!(places.iter().any(is_there), "{level}: {places:?}");
        }
        // Which line of it called a function of the library that is in no header is not known.
        let is_own = |place: &&str| place.contains("app.cc:") || *place == "fill";
        assert!(places.iter().all(is_own), "{level}: {places:?}");
        let locked = recording.row("SELECT place FROM locks WHERE frames LIKE '%main%' LIMIT 1");
        let end = format!("main (app.cc:{})", line("locked"));
        assert_eq!(locked["place"], end, "{level}");
    }
}

/// The text of a string is allocated by the C++ library, where it is optimised.
const STRINGS: &str = r#"
#include <string>
static std::string *kept[3];
__attribute__((noinline)) void remember(int id) {
  kept[id] = new std::string(100 + id, 'x');
}
__attribute__((noinline)) void load() {
  for (int i = 0; i < 3; i++)
    remember(i);
}
int main() {
  load();
  return kept[0] == nullptr;
}
"#;

#[test]
fn what_a_library_allocates_for_a_function_is_that_functions() {
    for level in in_turn(["-O0", "-O1", "-O2"]) {
        let scratch = Scratch::new(&format!("memory-strings{level}"));
        let program = compiled(&scratch, "app.cc", STRINGS, &[level, "-g"]);
        let recording = recorded(&scratch, &program, &[], &[]);
        let sql = "SELECT place FROM allocations WHERE state = 'live' AND size BETWEEN 101 AND 103";
        let places = recording.rows(sql);
        assert_eq!(places.len(), 3, "{level}: {places:?}");
        let is_its = |row: &serde_json::Map<String, Value>| {
            row["place"]
                .as_str()
                .is_some_and(|place| place.starts_with("remember"))
        };
        assert!(places.iter().all(is_its), "{level}: {places:?}");
        let path = recording.path().to_str().expect("its name is text");
        let ended = Hindsight::command(&scratch, &["report", path, "--memory"]).run();
        assert!(
            !ended.text().contains(" in load"),
            "{level}: {}",
            ended.text()
        );
    }
}

/// Allocates below twenty calls.
const DEEP: &str = "
#include <stdlib.h>
static void *kept;
__attribute__((noinline)) void deep(int n)
{
  if (n > 1)
    deep(n - 1);
  else
    kept = malloc(40);
}
int main(void)
{
  deep(20);
  return kept == 0;
}
";

#[test]
fn a_place_has_sixteen_frames_of_twenty() {
    let scratch = Scratch::new("memory-deep");
    let program = compiled(&scratch, "deep.c", DEEP, &["-g", "-O0"]);
    let recording = recorded(&scratch, &program, &[], &[]);
    let report = report(&scratch, &recording);
    let sites = report["sites"].as_array().expect("places");
    let [site] = sites.as_slice() else {
        panic!("{report:#}");
    };
    let frames = site["frames"].as_array().expect("frames");
    let places = frames
        .iter()
        .map(|frame| (&frame["function"], &frame["line"]));
    let (deep, made, called) = (Value::from("deep"), Value::from(9), Value::from(7));
    let mut expected = vec![(&deep, &called); 16];
    expected[0] = (&deep, &made);
    assert_eq!(places.collect::<Vec<_>>(), expected);
}

//! Goal: `object` shows which calls allocated and freed the heap block at an address, and what was there before and after. Method:
//! programs that allocate in C, C++ and Rust, recorded with the C library's functions; and without them, when it must say so.

use e2e::{
    Ended, Hindsight, Live, Program, Recording, Row, Scratch, Status, compiled, fixture_artifact,
    marked_line,
};

/// Records the program's own functions and those that allocate.
const WITH_LIBRARY: [&str; 4] = ["-f", "*", "-f", "module:libc.so*"];

struct Recorded {
    scratch: Scratch,
    recording: Recording,
}

impl Recorded {
    fn of(name: &str, program: [&str; 2], args: &[&str], options: &[&str]) -> Recorded {
        let scratch = Scratch::new(name);
        let [fixture, artifact] = program;
        let program = fixture_artifact(fixture, artifact);
        let program = Program::new(program, scratch.path()).args(args);
        let (_, recording) = Hindsight::record(&scratch, options, &program);
        Recorded { scratch, recording }
    }

    fn run(&self, args: &[&str]) -> Ended {
        Hindsight::command(&self.scratch, args).run()
    }

    fn object(&self, words: &[&str]) -> String {
        let ended = self.run(&[&["object", "rec"], words].concat());
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.text()
    }
}

#[test]
fn a_block_is_told_with_those_who_made_and_freed_it() {
    let recorded = Recorded::of("object-c", ["failing", "failing"], &[], &WITH_LIBRARY);
    let of = |function: &str, which: &str, column: &str| {
        recorded.recording.number(&format!(
            "select {column} from calls where function = '{function}' order by start_seq {which} limit 1"
        ))
    };
    let address = format!("{:#x}", of("make_order", "desc", "rax"));
    let inside = format!("{:#x}", of("make_order", "desc", "rax") + 8);
    let make = of("make_order", "desc", "start_seq");
    let drop = of("drop_order", "desc", "start_seq");
    let parse = of("parse_order", "desc", "start_seq").to_string();
    let line = |mark| marked_line("failing", "failing.c", mark);
    let text = recorded.object(&[&inside, "--at", &parse]);
    let head = format!("At event {parse}, {inside} is byte 8 of a block of 24 bytes at {address}.");
    assert!(text.starts_with(&head), "{text}");
    let made = format!(
        "called in make_order (seq {make}) at failing.c:{}",
        line("allocated")
    );
    assert!(text.contains(&made), "{text}");
    let freed = format!(
        "called in drop_order (seq {drop}) at failing.c:{}",
        line("freed")
    );
    assert!(text.contains(&freed), "{text}");
    // Seven orders were at that address, one after the other.
    let earlier = text
        .lines()
        .filter(|line| line.starts_with("Before: 24 bytes at "));
    assert_eq!(earlier.count(), 5, "{text}");
    let end = of("drop_order", "desc", "end_seq").to_string();
    let text = recorded.object(&[&address, "--at", &end]);
    assert!(
        text.starts_with(&format!("At event {end}, no known block holds {address}.")),
        "{text}"
    );
    let first = of("parse_order", "asc", "start_seq").to_string();
    let text = recorded.object(&[&address, "--at", &first]);
    let later = text
        .lines()
        .filter(|line| line.starts_with("Afterwards: 24 bytes at "));
    assert_eq!(later.count(), 5, "{text}");
}

#[test]
fn a_block_of_operator_new_is_told_with_that_function() {
    let recorded = Recorded::of(
        "object-cxx",
        ["heap_blocks", "ways"],
        &["new"],
        &[
            "-f",
            "*",
            "-f",
            "module:libc.so*",
            "-f",
            "module:libstdc++*",
        ],
    );
    let sql = "select rax, end_seq from calls where function like 'operator new%' and rax <> 0 order by start_seq desc limit 1";
    let row = recorded.recording.row(sql);
    let address = row["rax"].as_i64().expect("a number");
    let at = row["end_seq"].as_i64().expect("a number").to_string();
    let text = recorded.object(&[&format!("{address:#x}"), "--at", &at]);
    assert!(text.contains("made by operator new"), "{text}");
}

/// Unoptimised code calls the operator that only returns its place, `new (place) T`, once for each element of a vector.
#[test]
fn an_object_that_is_made_in_a_block_is_no_block() {
    let scratch = Scratch::new("object-placed");
    let source = r#"
#include <vector>
struct Item { long id, count; };
int main() {
    std::vector<Item> items;
    items.push_back({1, 2});
    std::vector<Item>().swap(items);
}
"#;
    let program = compiled(&scratch, "placed.cc", source, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["--memory"], &program);
    let new = |linkage: &str, order: &str| {
        recording.row(&format!(
            "select c.rax, c.start_seq, c.end_seq from calls c join functions f on f.function_id = c.function_id \
             where f.linkage = '{linkage}' order by c.start_seq {order} limit 1"
        ))
    };
    let number = |row: &Row, column: &str| row[column].as_i64().expect("a number");
    let made = new("_Znwm", "desc");
    let placed = new("_ZnwmPv", "asc");
    assert_eq!(number(&made, "rax"), number(&placed, "rax"));
    let recorded = Recorded { scratch, recording };
    let address = format!("{:#x}", number(&made, "rax"));
    let at = number(&placed, "end_seq").to_string();
    let text = recorded.object(&[&address, "--at", &at]);
    let seq = number(&made, "start_seq");
    let head = format!(
        "At event {at}, {address} is the first byte of a block of 16 bytes at {address}.\n  made by operator new (seq {seq}), "
    );
    assert!(text.starts_with(&head), "{text}");
    assert!(text.contains("freed by operator delete (seq "), "{text}");
    assert!(!text.contains("Before: "), "{text}");
}

/// Frees a block and allocates another one, which the C library puts into the same place.
const TWICE: &str = "
#include <stdlib.h>
static void *kept;
__attribute__((noinline)) int look(void *at) { return at != 0; }
__attribute__((noinline)) void first(void) { kept = malloc(40); }
__attribute__((noinline)) void again(void) { free(kept); kept = malloc(40); }
int main(void)
{
  first();
  look(kept);
  again();
  return !look(kept);
}
";

#[test]
fn what_was_there_before_and_afterwards_is_told_with_memory_alone() {
    let scratch = Scratch::new("object-twice");
    let program = compiled(&scratch, "twice.c", TWICE, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["--memory"], &program);
    let recorded = Recorded { scratch, recording };
    let seqs = |function: &str| -> Vec<i64> {
        let sql =
            format!("select start_seq from calls where function = '{function}' order by start_seq");
        let rows = recorded.recording.rows(&sql);
        let seqs = rows.iter().map(|row| row["start_seq"].as_i64());
        seqs.map(|seq| seq.expect("a number")).collect()
    };
    let (looks, first, again) = (seqs("look"), seqs("first")[0], seqs("again")[0]);
    let address = recorded.recording.number(&format!(
        "select a0 from calls where start_seq = {}",
        looks[0]
    ));
    let address = format!("{address:#x}");
    let number = |sql: &str| recorded.recording.number(sql);
    let within = |call: &str, outer: i64| {
        let parent = format!("function = '{call}' and parent = {outer}");
        number(&format!("select start_seq from calls where {parent}"))
    };
    let (made, freed, later) = (
        within("malloc", first),
        within("free", again),
        within("malloc", again),
    );
    let old = format!(
        "  made by malloc (seq {made}), called in first (seq {first}) at twice.c:5\n  freed by free (seq {freed}), \
         called in again (seq {again}) at twice.c:6\n"
    );
    let new = format!(
        "  made by malloc (seq {later}), called in again (seq {again}) at twice.c:6\n  freed by no recorded call\n"
    );
    for (at, own, other, which) in [
        (looks[0], &old, &new, "Afterwards"),
        (looks[1], &new, &old, "Before"),
    ] {
        let text = recorded.object(&[&address, "--at", &at.to_string()]);
        let head = format!(
            "At event {at}, {address} is the first byte of a block of 40 bytes at {address}.\n"
        );
        let expected = format!("{head}{own}{which}: 40 bytes at {address}\n{other}");
        assert_eq!(text, expected);
    }
}

#[test]
fn without_allocation_functions_it_says_what_would_record_them() {
    let recorded = Recorded::of("object-none", ["failing", "failing"], &[], &[]);
    let text = recorded.object(&["0x1000"]);
    assert!(
        text.contains("no call of a function that allocates was recorded"),
        "{text}"
    );
    assert!(text.contains("hindsight record --memory PROGRAM"), "{text}");
    let ended = recorded.run(&["object", "nothing", "0x10"]);
    assert_eq!(ended.status, Status::Code(2));
}

#[test]
fn an_expression_is_that_of_the_selected_frame() {
    let scratch = Scratch::new("object-frame");
    let source = "#include <stdlib.h>\nint leaf(int n) { return n; }\n\
         int hold(int *own) { *own = 1; return leaf(*own) + *own; }\n\
         int main(void) { int *block = malloc(24); int told = hold(block); free(block); return told - 2; }\n";
    let program = compiled(&scratch, "held.c", source, &["-O0", "-g"]);
    let options = ["--memory", "--break", "leaf"];
    let live = Live::started("object-frame-live", &options, &program, &[]);
    let failure = live.refused(&["object", "own"]);
    assert_eq!(failure["code"], "EVAL_FAILED", "{failure:#}");
    live.ask(&["frame", "1"]);
    let held = live.ask(&["object", "own"]);
    assert_eq!(held["block"]["size"], 24, "{held:#}");
    // An address is the same in each frame.
    let address = held["address"].as_str().expect("a text");
    let same = live.ask(&["object", address]);
    assert_eq!(same["block"], held["block"], "{same:#}");
    assert_eq!(live.run_to_end(), 0);
}

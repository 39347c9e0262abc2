//! Goal: the table `memory_writes` has each write with its address, size, and bytes before and after; `history` and `last-write` say
//! which writes they tell. Method: a program of known stores copies its memory around each of them and prints what has changed; another
//! one writes bit fields.

use e2e::{Hindsight, Program, Recording, Scratch, Status, compiled};

/// Stores of several sizes, aligned and not, by instructions of several kinds and by the kernel.
const SOURCE: &str = r#"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
enum { SIZE = 256 };
static unsigned char area[SIZE] __attribute__((aligned(64))), before[SIZE], from[64] __attribute__((aligned(64)));
static void hex(const unsigned char *bytes, int size) {
  for (int i = 0; i < size; i++)
    printf("%02x", bytes[i]);
}
static void told(const char *what, int at, int size) {
  printf("%s %lu %d ", what, (unsigned long)(area + at), size);
  hex(before + at, size);
  printf(" ");
  hex(area + at, size);
  printf("\n");
  memcpy(before, area, SIZE);
}
int main(void) {
  unsigned char *a = area, *s = from, *d;
  unsigned long n, value = 0x1122334455667788;
  int pipes[2];
  for (int i = 0; i < 64; i++)
    from[i] = i * 7 + 1;
  __asm__ volatile("movb $0x5a, (%0)" ::"r"(a) : "memory");
  told("byte", 0, 1);
  __asm__ volatile("movw $0x1234, 2(%0)" ::"r"(a) : "memory");
  told("word", 2, 2);
  __asm__ volatile("movl $0x89abcdef, 4(%0)" ::"r"(a) : "memory");
  told("double", 4, 4);
  __asm__ volatile("movq %1, 8(%0)" ::"r"(a), "r"(value) : "memory");
  told("quad", 8, 8);
  __asm__ volatile("addl $0x01010101, 6(%0)" ::"r"(a) : "memory", "cc");
  told("unaligned", 6, 4);
  d = a + 33, s = from, n = 19;
  __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n)::"memory");
  told("movs", 33, 19);
  d = a + 64, n = 3;
  __asm__ volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(value) : "memory");
  told("stos", 64, 24);
  __asm__ volatile("movups (%1), %%xmm3; movups %%xmm3, 101(%0)" ::"r"(a), "r"(from) : "memory", "xmm3");
  told("xmm", 101, 16);
  __asm__ volatile("vmovups (%1), %%ymm3; vmovups %%ymm3, 130(%0)" ::"r"(a), "r"(from) : "memory", "xmm3");
  told("ymm", 130, 32);
  n = 3;
  __asm__ volatile("lock xaddq %1, 8(%0)" : "+r"(a), "+r"(n)::"memory", "cc");
  told("xadd", 8, 8);
  n = 0xbeef;
  __asm__ volatile("xchgw %w1, 2(%0)" : "+r"(a), "+r"(n)::"memory");
  told("xchg", 2, 2);
  if (pipe(pipes) || write(pipes[1], "by the kernel", 13) != 13 || read(pipes[0], area + 170, 13) != 13)
    return 1;
  told("read", 170, 13);
  return 0;
}
"#;

/// A write: what made it, address, size, bytes before and after in hexadecimal.
type Write = (String, u64, u64, String, String);

/// What the program says.
fn printed(text: &str) -> Vec<Write> {
    let write = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse().expect("a number");
        (
            words[0].to_owned(),
            number(1),
            number(2),
            words[3].to_owned(),
            words[4].to_owned(),
        )
    };
    text.lines().map(write).collect()
}

/// The writes to some memory, without what made them, and whether the kernel did.
fn found(recording: &Recording, start: u64, end: u64) -> Vec<(u64, u64, String, String, bool)> {
    let rows = recording.rows(&format!(
        "SELECT addr, size, encode(old, 'hex') AS old, encode(new, 'hex') AS new, pc IS NULL AS kernel FROM memory_writes \
         WHERE addr < {end} AND addr + size > {start} ORDER BY position"
    ));
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let text = |value: &serde_json::Value| value.as_str().expect("bytes").to_owned();
    rows.iter()
        .map(|row| {
            (
                number(&row["addr"]),
                number(&row["size"]),
                text(&row["old"]),
                text(&row["new"]),
                row["kernel"] == true,
            )
        })
        .collect()
}

#[test]
fn each_write_has_its_bytes_before_and_after() {
    let scratch = Scratch::new("full-writes");
    let program = compiled(&scratch, "app.c", SOURCE, &["-O1", "-g", "-mavx"]);
    let program = Program::new(program, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &["--full"], &program);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let printed = printed(&ended.text());
    assert_eq!(printed.len(), 12);
    let expected = |start: u64, end: u64| -> Vec<(u64, u64, String, String, bool)> {
        let touching = printed
            .iter()
            .filter(|(_, addr, size, ..)| *addr < end && addr + size > start);
        let of = |(what, addr, size, old, new): &Write| {
            (*addr, *size, old.clone(), new.clone(), what == "read")
        };
        touching.map(of).collect()
    };
    let area = printed[0].1;
    // All of it is too long for the processor's watchpoints; those of each store are not, unless it is long.
    assert_eq!(
        found(&recording, area, area + 256),
        expected(area, area + 256)
    );
    for (what, addr, size, ..) in &printed {
        let (start, end) = (*addr, addr + size);
        assert_eq!(
            found(&recording, start, end),
            expected(start, end),
            "{what}"
        );
        assert_eq!(
            found(&recording, end - 1, end),
            expected(end - 1, end),
            "the last byte of {what}"
        );
    }
    let plan = recording.command(
        "sql",
        &[&format!(
            "EXPLAIN SELECT * FROM memory_writes WHERE addr < {} AND addr + size > {area}",
            area + 8
        )],
    );
    assert!(plan.text().contains("watch 8 bytes"), "{}", plan.text());
    // Nothing else is in the table where nothing was written.
    assert_eq!(found(&recording, area + 200, area + 256), []);
}

const FIELDS: &str = r#"struct fields { unsigned a : 3, b : 5; int c : 9; } fields;
struct pair { unsigned kept : 3, moved : 5; } pair;
int plain;
int main(void) {
  fields.a = 2; /* first */
  fields.b = 9;
  fields.a = 2;
  fields.c = -1;
  fields.c = -1;
  fields.b = 9;
  fields.a = 5; /* second */
  fields.a = 5;
  pair.kept = 0;
  pair.moved = 1;
  plain = 3; /* plain */
  plain = 3; /* again */
  return 0;
}
"#;

/// Why writes that leave a bit field as it was are not told.
const SHARED: &str =
    "a write that left a bit field as it was is not told apart from those of its neighbours";

fn of_fields(name: &str) -> (Scratch, Recording) {
    let scratch = Scratch::new(name);
    let app = compiled(&scratch, "fields.c", FIELDS, &["-g", "-O0"]);
    let app = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "recorded", &["--full"], &app);
    (scratch, recording)
}

/// The end of a row: the place of the line with a mark.
fn place(mark: &str) -> String {
    let mark = format!("/* {mark} */");
    let at = FIELDS.lines().position(|line| line.contains(&mark));
    format!("fields.c:{}", at.expect("a line of the program") + 1)
}

/// Values and places of a table.
fn told(text: &str) -> Vec<(&str, &str)> {
    let rows = text.lines().filter(|line| line.contains(" at /"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split(" | ").map(str::trim).collect();
        (cells[2], cells[3].rsplit('/').next().expect("a file"))
    })
    .collect()
}

#[test]
fn of_a_bit_field_the_changes_are_told_and_said_to_be_those() {
    let (_scratch, recording) = of_fields("full-writes-fields");
    let text = recording.prompt(&["history fields.a"]).text();
    let (first, second) = (place("first"), place("second"));
    assert_eq!(told(&text), [("2", &*first), ("5", &*second)], "{text}");
    let end = "and what the kernel mapped there or dropped.";
    let footer = format!("All changes in the whole run (changes only: {SHARED}), {end}");
    assert_eq!(text.lines().last(), Some(&*footer), "{text}");
    let text = recording.prompt(&["last-write fields.a"]).text();
    let changed = "fields.a last changed to 5, from 2 at event ";
    assert!(text.starts_with(changed), "{text}");
    assert!(text.contains(&format!("/{second}) ")), "{text}");
    // Whatever else has bytes of its own has all its writes.
    let text = recording.prompt(&["history plain"]).text();
    let (plain, again) = (place("plain"), place("again"));
    assert_eq!(told(&text), [("3", &*plain), ("3", &*again)], "{text}");
    let footer = format!("All writes in the whole run, {end}");
    assert_eq!(text.lines().last(), Some(&*footer), "{text}");
    let text = recording.prompt(&["history fields"]).text();
    assert_eq!(told(&text).len(), 8, "{text}");
}

#[test]
fn answers_for_programs_say_that_they_are_changes() {
    let (_scratch, recording) = of_fields("full-writes-fields-json");
    let answer = |line: &str| {
        recording
            .command("repl", &["--json", "--cmd", line])
            .result()
    };
    let fields = answer("history fields.a");
    let changes = fields["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), 2, "{fields}");
    assert!(
        changes.iter().all(|change| change["only_changes"] == true),
        "{fields}"
    );
    let searched = format!("the whole run (changes only: {SHARED})");
    assert_eq!(fields["searched"], *searched);
    assert_eq!(answer("last-write fields.a")["after"]["only_changes"], true);
    let plain = answer("history plain");
    assert_eq!(plain["searched"], "the whole run");
    assert!(plain["changes"][0].get("only_changes").is_none(), "{plain}");
}

#[test]
fn that_nothing_wrote_a_bit_field_is_said_only_if_its_bytes_were_not_written() {
    let (_scratch, recording) = of_fields("full-writes-fields-kept");
    let ended = recording.prompt(&["goto last", "last-write pair.kept"]);
    let message = format!(
        "error: no write has changed pair.kept up to here; whether one left it as it was is not known: {SHARED}"
    );
    let errors = ended.errors();
    assert_eq!(errors.lines().next(), Some(&*message), "{}", ended.text());
    let help = "help: ask for the structure around it: its history has all writes to these bytes";
    assert_eq!(errors.lines().nth(1), Some(help), "{errors}");
    let text = recording.prompt(&["history pair.kept"]).text();
    let nothing = format!("Nothing wrote pair.kept in the whole run (changes only: {SHARED}).");
    assert_eq!(text.trim_end(), nothing);
    let lines = ["goto first", "last-write pair.kept"];
    let text = recording.prompt(&lines).text();
    let last = text.lines().last();
    let untouched = "No instruction has written pair.kept since the program began.";
    assert_eq!(last, Some(untouched), "{text}");
}

/// Two calls in the same place of the stack.
const AGAIN: &str = r#"
volatile int seen;
__attribute__((noinline)) int twice(int k) { int a = k * 2; seen = a; return a; }
int main(void) { return twice(3) + twice(4) == 14 ? 0 : 1; }
"#;

#[test]
fn what_an_earlier_call_left_is_no_write_to_a_variable_of_this_call() {
    let scratch = Scratch::new("full-writes-again");
    let program = compiled(&scratch, "app.c", AGAIN, &["-O0", "-g"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["--full"], &program);
    let second = "select max(start_seq) from calls where function = 'twice'";
    let second = recording.number(second);
    let lines = [
        format!("goto {second}"),
        "last-write a".to_owned(),
        "why a".to_owned(),
    ];
    let told = recording.prompt(&lines.each_ref().map(String::as_str));
    let text = told.text();
    let since =
        "o instruction has written a since this call of twice began: what is there is from before";
    assert_eq!(text.matches(since).count(), 2, "{text}{}", told.errors());
    let back = "step-back --instruction";
    let lines = [lines[0].as_str(), "finish", back, "last-write a"];
    let text = recording.prompt(&lines).text();
    assert!(text.contains("a became 8"), "{text}");
}

/// A fault ends the program in the middle of the instruction that writes too far.
const OVERLONG: &str = r#"
#include <sys/mman.h>
struct { char name[64]; long victim; } *box;
__attribute__((noinline)) void fill(char *to, long count) {
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0x41) : "memory");
}
int main(void) {
  box = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect((char *)box + 4096, 4096, PROT_NONE);
  box->victim = 1234;
  fill(box->name, 50000);
  return 0;
}
"#;

#[test]
fn what_was_written_before_a_fault_in_the_middle_has_a_writer() {
    let scratch = Scratch::new("full-writes-overlong");
    let program = compiled(&scratch, "app.c", OVERLONG, &["-O1", "-g"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["--full"], &program);
    let last = "SELECT function, size FROM memory_writes ORDER BY position DESC LIMIT 1";
    let last = recording.row(last);
    assert_eq!(last["function"], "fill", "{last:?}");
    assert_eq!(last["size"].as_i64(), Some(4096), "{last:?}");
    let told = recording.prompt(&["last-write box->victim"]);
    let text = told.text();
    let became = "box->victim became 4702111234474983745, after 1234 at event ";
    assert!(text.contains(became), "{text}{}", told.errors());
    assert!(text.contains("(fill at "), "{text}");
    let told = recording.prompt(&["goto crash", "watch box->victim", "reverse-continue"]);
    let text = told.text();
    let changed = "was 1234, is 4702111234474983745";
    assert!(text.contains(changed), "{text}{}", told.errors());
}

//! Goal: where a program died, or where an exception left its calls, backtraces of earlier events have every frame, with its line
//! and the arguments of its entry. Method: a recursion whose depth, lines and arguments follow from its source.

use e2e::{Hindsight, Program, Recording, Scratch, Status, compiled};

const SOURCE: &str = r#"
#include <cstdlib>
#include <cstdio>
static int *nothing;
__attribute__((noinline)) int leaf(int n) { return n == 7 ? *nothing : n; }
__attribute__((noinline)) int descend(int n, int left) {
  int sum = leaf(n);
  if (left > 0)
    sum += descend(n + 1, left - 1); // deeper
  if (n == 3 && left == 0)
    throw 5;
  return sum + left;
}
static int compare(const void *a, const void *b) { return descend(*(const int *)a, 1) - *(const int *)b; }
int main() {
  try { descend(0, 3); } catch (int) { std::puts("caught"); }
  int numbers[] = {1, 2};
  std::qsort(numbers, 2, sizeof *numbers, compare);
  return descend(4, 9);
}
"#;

struct Frames(Vec<String>);

impl Frames {
    fn at(recording: &Recording, seq: i64) -> Frames {
        let ended = recording.prompt(&[&format!("goto {seq}"), "backtrace"]);
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let text = ended.text();
        // Nothing is recorded of `qsort`, which lies between `compare` and `main`.
        if !text.contains(" compare (") {
            assert!(!text.contains("may lie between"), "at {seq}: {text}");
            assert!(!text.contains("somewhere in"), "at {seq}: {text}");
        }
        Frames(
            text.lines()
                .filter(|line| line.contains('#'))
                .map(str::to_owned)
                .collect(),
        )
    }

    /// The frames of a function, innermost first.
    fn of(&self, function: &str) -> Vec<&String> {
        let is_it = |line: &&String| line.contains(&format!(" {function} "));
        self.0.iter().filter(is_it).collect()
    }
}

fn check(level: &str) {
    let scratch = Scratch::new(&format!("open-calls{level}"));
    let flags = [level, "-g", "-fno-inline", "-fno-optimize-sibling-calls"];
    let program = compiled(&scratch, "app.cc", SOURCE, &flags);
    let program = Program::new(program, scratch.path());
    let ended = Hindsight::record_command(&scratch, "app", &[], &program).run();
    assert_eq!(ended.status, Status::Code(139), "{}", ended.errors());
    let recording = Recording::new(scratch.join("app.hindsight"));
    let deeper = 1 + SOURCE
        .lines()
        .position(|line| line.contains("// deeper"))
        .expect("a line");
    let sql = "select start_seq, a0 & 255 as n from calls where function like 'leaf%' order by 1";
    let rows = recording.rows(sql);
    // Until the exception, in `compare`, and until the crash.
    assert_eq!(rows.len(), 4 + 2 + 4, "{rows:?}");
    for row in rows {
        let number = |column: &str| row[column].as_i64().expect("a number");
        let (seq, n) = (number("start_seq"), number("n"));
        let frames = Frames::at(&recording, seq);
        assert!(
            frames.0[0].contains(&format!("leaf (n={n})")),
            "{}",
            frames.0[0]
        );
        let descents = frames.of("descend");
        assert!(!descents.is_empty());
        for (above, frame) in descents.iter().enumerate() {
            let passed = n - above as i64;
            let is_right = ["n", "n@entry"]
                .iter()
                .any(|name| frame.contains(&format!("({name}={passed},")));
            assert!(is_right, "at {seq}, {passed} in {frame}");
            assert!(
                above == 0 || frame.ends_with(&format!("app.cc:{deeper}")),
                "{frame}"
            );
        }
        assert_eq!(frames.of("main").len(), 1, "{:?}", frames.0);
    }
}

#[test]
fn frames_of_calls_that_never_returned_are_whole_without_optimisation() {
    check("-O0");
}

#[test]
fn frames_of_calls_that_never_returned_are_whole_with_optimisation() {
    check("-O2");
}

const LEFT: &str = r#"
#include <csetjmp>
#include <cstdio>
struct Guard { int n; ~Guard() { std::printf("left %d\n", n); } }; // guard
static std::jmp_buf back;
__attribute__((noinline)) int sink(int n) {
  Guard guard{n};
  if (n == 0)
    throw 5;
  return sink(n - 1) + 1;
}
__attribute__((noinline)) void jump(int n) {
  if (n == 0)
    std::longjmp(back, 1);
  jump(n - 1); // jumps
  std::puts("never");
}
int main() {
  try {
    sink(2);
  } catch (int) {
    std::puts("caught"); // caught
  }
  if (setjmp(back) == 0)
    jump(2);
  std::puts("back"); // back
  return 0;
}
"#;

/// Line of [`LEFT`] with a mark.
fn line_of(mark: &str) -> usize {
    let is_it = |line: &str| line.ends_with(&format!("// {mark}"));
    1 + LEFT.lines().position(is_it).expect("a marked line")
}

#[test]
fn calls_that_were_left_have_no_result_and_steps_end_where_they_were_caught() {
    let scratch = Scratch::new("calls-left");
    let program = compiled(&scratch, "app.cc", LEFT, &["-O0", "-g"]);
    let program = Program::new(program, scratch.path());
    let calls = |name: &str, options: &[&str]| {
        let recording = Hindsight::recorded(&scratch, name, options, &program);
        let sql = "select function, case when args like 'this=%' then '' else args end as args, ret, unwound from calls where file like '%app.cc' order by start_seq";
        let shown = recording.command("sql", &[sql]);
        assert_eq!(shown.status, Status::Code(0), "{}", shown.errors());
        (recording, shown.text())
    };
    let (_, plain) = calls("plain", &[]);
    let (full, every) = calls("every", &["--full"]);
    assert_eq!(every, plain);
    assert_eq!(every.matches("true").count(), 6, "{every}");

    let walk = |at: &str, verbs: &[&str]| {
        let at = format!("break {at}");
        let ended = full.prompt(&[&["goto first", &at, "continue"], verbs].concat());
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.text()
    };
    let stops = |text: &str, mark: &str| text.matches(&format!(":{}\n", line_of(mark))).count();
    let deep = "sink if n == 0";
    let stepped = walk(deep, &["step", "step", "step", "step"]);
    assert!(stops(&stepped, "guard") > 0, "{stepped}");
    let next = walk(deep, &["next", "next", "next", "next"]);
    assert_eq!(stops(&next, "caught"), 1, "{next}");
    let jumped = walk("jump if n == 0", &["next", "next", "next", "next"]);
    assert_eq!(stops(&jumped, "back"), 1, "{jumped}");
    let finished = walk("jump if n == 0", &["finish"]);
    assert!(finished.contains(" main at "), "{finished}");
}

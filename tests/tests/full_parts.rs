//! Goal: parts of a run are recorded, the program does not notice, and nothing is said of what lies between them. Method: programs of which
//! it is known what they call and write are recorded in parts; events, moves and who wrote what are compared with that.

use e2e::{
    Ended, Hindsight, Program, Recording, Scratch, Status, compiled, fixture_artifact, marked_line,
};

struct Parts {
    /// Holds the folder.
    _scratch: Scratch,
    recording: Recording,
}

/// Records a fixture in parts: what it prints and how it ends are as without recording.
fn recorded(scratch: &str, program: (&str, &str), args: &[&str], parts: &[&str]) -> Parts {
    let scratch = Scratch::new(scratch);
    let program = fixture_artifact(program.0, program.1);
    let program = Program::new(program, scratch.path()).args(args);
    let native = program.run();
    let (ended, recording) = Hindsight::record(&scratch, parts, &program);
    let of = |ended: &Ended| (ended.text(), ended.status);
    assert_eq!(of(&ended), of(&native), "{}", ended.errors());
    let checked = recording.command("check", &["--replay"]);
    assert_eq!(checked.status, Status::Code(0), "{}", checked.text());
    Parts {
        _scratch: scratch,
        recording,
    }
}

impl Parts {
    fn calls(&self, function: &str) -> i64 {
        let count = format!("SELECT count(*) FROM calls WHERE function = '{function}'");
        self.recording.number(&count)
    }

    /// What verbs at the prompt print.
    fn prompt(&self, lines: &[&str]) -> String {
        let ended = self.recording.prompt(lines);
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.text()
    }
}

#[test]
fn calls_of_a_function_are_recorded_and_nothing_else() {
    let parts = recorded("parts_calls", ("fib", "fib"), &["10"], &["--full=fib"]);
    assert_eq!((parts.calls("fib"), parts.calls("main")), (177, 0));
    // Where a part begins, modules have long been there.
    let first = parts.prompt(&["goto first", "where"]);
    assert!(first.contains("fib.c:"), "{first}");
}

/// They are loaded and unloaded 20 times, one in the place of the other.
#[test]
fn functions_of_libraries_that_are_loaded_later_are_found() {
    let parts = recorded(
        "parts_plugin",
        ("plugin", "plugin_host"),
        &[],
        &["--full=red_work"],
    );
    assert_eq!(
        (parts.calls("red_work"), parts.calls("blue_work")),
        (200, 0)
    );
    assert_eq!(parts.calls("inner_step"), 200);
}

/// A name and a pattern together: the calls of each, and no others.
#[test]
fn several_functions_are_given_by_names_and_patterns() {
    let parts = recorded(
        "parts_several",
        ("plugin", "plugin_host"),
        &[],
        &["--full=red_w*", "--full=blue_work"],
    );
    let calls = ["red_work", "blue_work", "inner_step", "main"].map(|name| parts.calls(name));
    assert_eq!(calls, [200, 100, 300, 0]);
}

const LATER: &str = r#"#include <stdio.h>
#include <time.h>
int total;
__attribute__((noinline)) void early(void) { total += 1; }
__attribute__((noinline)) void late(void) { total += 10; }
int main(void) {
  early();
  struct timespec second = {1, 0};
  nanosleep(&second, NULL);
  late();
  printf("%d\n", total);
  return 0;
}
"#;

#[test]
fn what_comes_after_some_time_is_recorded() {
    let scratch = Scratch::new("parts_after");
    let program = compiled(&scratch, "later.c", LATER, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    let recording = Hindsight::recorded(&scratch, "rec", &["--full=after:500ms"], &program);
    let ends = "SELECT count(*) FROM events WHERE kind = 'process_exit'";
    assert_eq!(recording.number(ends), 1);
    // What came before is not there: neither calls, nor writes, nor the loading of the libraries.
    let calls = ["early", "late"].map(|name| recording.calls_of(name));
    assert_eq!(calls, [0, 1]);
    let writes = "SELECT count(*) FROM memory_writes WHERE function IN ('early', 'late') AND new = X'0B000000'";
    assert_eq!(recording.number(writes), 1);
    let executed = "SELECT count(*) FROM instructions WHERE function = 'early'";
    assert_eq!(recording.number(executed), 0);
    let loading = "SELECT count(*) FROM syscalls WHERE name IN ('execve', 'openat', 'mmap')";
    assert_eq!(recording.number(loading), 0);
    let first = recording.prompt(&["goto first", "print total"]);
    assert!(first.text().contains("$1 = 1\n"), "{}", first.text());
    // The call of `main` began before recording did.
    let late = recording.number("SELECT start_seq FROM calls WHERE function = 'late'");
    let late = format!("goto {late}");
    let told = recording.prompt(&[&late, "up", "history second.tv_sec"]);
    let nothing = "Nothing wrote second.tv_sec in what was recorded, up to here (when this call of main began is not known).";
    assert_eq!(
        told.text().lines().last(),
        Some(nothing),
        "{}",
        told.errors()
    );
    let scratch = Scratch::new("parts_early");
    let early = Hindsight::command(&scratch, &["record", "--full=after:60s", "--", "/bin/true"]);
    let early = early.run();
    assert_ne!(early.status, Status::Code(0));
    let errors = early.errors();
    assert!(
        errors.contains("before recording began") && errors.contains("shorter time"),
        "{errors}"
    );
}

#[test]
fn who_wrote_in_a_gap_is_not_known_and_moves_say_what_they_go_over() {
    let parts = recorded("parts_gaps", ("gaps", "gaps"), &[], &["--full=chosen"]);
    assert_eq!((parts.calls("chosen"), parts.calls("hidden")), (5, 0));
    let starts =
        "SELECT start_seq FROM calls WHERE function = 'chosen' ORDER BY start_seq LIMIT 1 OFFSET 2";
    let third = format!("goto {}", parts.recording.number(starts));
    let text = parts.prompt(&[
        &third,
        "last-write secret",
        "last-write total",
        "last-write untouched",
    ]);
    assert!(
        text.contains("secret became 20, after 10 while the program was not recorded: event ")
            && text.contains("Which instruction wrote it is not known."),
        "{text}"
    );
    let adds = marked_line("gaps", "gaps.c", "adds");
    assert!(text.contains("total became 3, after 1 at event "), "{text}");
    assert!(text.contains(&format!("gaps.c:{adds}")), "{text}");
    assert!(
        text.contains("where nothing is known: not recorded: event "),
        "{text}"
    );
    assert!(
        text.contains("No instruction has written untouched since recording began."),
        "{text}"
    );
    // A part begins at the entry of the function: what comes before it is the end of another part.
    let over = ["step-back", "step-back -i", "next-back"];
    for back in over {
        let text = parts.prompt(&[&third, back]);
        let said = text
            .lines()
            .filter(|line| line.starts_with("not recorded: event "))
            .count();
        assert_eq!(said, 1, "{back}: {text}");
        let text = parts.prompt(&[&third, back, "step -i"]);
        let said = text
            .lines()
            .filter(|line| line.starts_with("not recorded: event "))
            .count();
        assert_eq!(said, 2, "{back}: {text}");
    }
    // A move by lines ends where the program is not recorded any more; and it says so.
    let text = parts.prompt(&[&third, "finish", "next"]);
    assert!(text.contains("not recorded: event "), "{text}");
    assert!(text.contains("chosen"), "{text}");
    let text = parts.prompt(&["break chosen", "goto first", "continue", "continue"]);
    assert!(text.contains("not recorded: event "), "{text}");
}

const TWO: &str = r#"#include <stdio.h>
#include <unistd.h>
int total;
__attribute__((noinline)) int part(int x) {
  total += x; /* first */
  total *= 2;
  return total; /* last */
}
__attribute__((noinline)) void other(int x) { total += 100 + x; usleep(1000); }
int main(void) {
  for (int i = 0; i < 3; i++) {
    part(i);
    other(0);
  }
  printf("%d\n", total);
  return 0;
}
"#;

/// The last call, too, is told as it ended; and lines are gone back over from where a part has ended.
#[test]
fn the_last_part_ends_as_the_others() {
    let scratch = Scratch::new("parts_last");
    let app = compiled(&scratch, "app.c", TWO, &["-g", "-O0"]);
    let app = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "rec", &["--full=part"], &app);
    let calls = recording.rows("SELECT ret, unwound FROM calls WHERE function = 'part'");
    let shown: Vec<String> = calls.iter().map(|row| format!("{row:?}")).collect();
    assert_eq!(calls.len(), 3, "{shown:?}");
    assert_eq!(
        recording.number("SELECT sum(ret) FROM calls WHERE NOT unwound"),
        202 + 608,
        "{shown:?}"
    );
    let line = |comment: &str| {
        let comment = format!("/* {comment} */");
        let found = TWO.lines().position(|line| line.contains(&comment));
        found.expect("the line is there") + 1
    };
    let back = |from: &str, steps: usize| {
        let moves = [from].into_iter().chain(vec!["step-back"; steps]);
        recording
            .prompt(&moves.chain(["where"]).collect::<Vec<_>>())
            .text()
    };
    // To where it was recorded last, into the function that has returned, then over its lines.
    for steps in 2..5 {
        let told = back("goto last", steps);
        assert!(told.contains("part at "), "{steps}: {told}");
    }
    let told = back("goto last", 2);
    assert!(
        told.contains(&format!("->    {}", line("last") + 1))
            || told.contains(&format!("->     {}", line("last") + 1)),
        "{told}"
    );
    // Over the gap, into the part before.
    let told = back("goto last", 7);
    assert!(told.contains("part at "), "{told}");
}

const UNSEEN: &str = r#"#include <stdio.h>
int total;
__attribute__((noinline)) void part(void) { total++; }
int main(void) {
  part();
  total = 500;
  printf("%d\n", total);
  return 0;
}
"#;

/// What the program does after the last part is a gap like any other: no value is known behind it.
#[test]
fn nothing_is_known_after_the_last_part() {
    let scratch = Scratch::new("parts_unseen");
    let app = compiled(&scratch, "app.c", UNSEEN, &["-g", "-O0"]);
    let app = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "rec", &["--full=part"], &app);
    let end = recording.row(
        "SELECT value(seq, 'total') AS total, explain_value(seq, 'total') AS why FROM events \
         WHERE kind = 'process_exit'",
    );
    assert!(end["total"].is_null(), "{end:?}");
    let why = end["why"].as_str().unwrap_or_default();
    assert!(why.contains("was not recorded"), "{why}");
    let now = recording.prompt(&["goto last", "print total"]);
    let said = now.text() + &now.errors();
    assert!(!said.contains("= 1\n"), "{said}");
    assert!(said.contains("was not recorded"), "{said}");
    let wrote = recording.prompt(&["goto last", "last-write total"]).text();
    assert!(
        wrote.contains("total became 1, after 0 at event "),
        "{wrote}"
    );
    assert!(
        wrote.contains("where nothing is known: not recorded: event "),
        "{wrote}"
    );
    let back = recording.prompt(&["goto last", "step-back", "print total"]);
    let back = back.text();
    assert!(back.contains("not recorded: event "), "{back}");
    assert!(back.contains("$1 = 1\n"), "{back}");
}

/// A function that is not called is something else than a name that nothing has.
#[test]
fn a_part_without_a_beginning_says_why() {
    let source = "namespace rs { __attribute__((noinline)) int apply(int x) { return x + 1; }\n\
                  __attribute__((noinline)) int idle(int x) { return x - 1; } }\n\
                  int main(int count, char **) { return count > 9 ? rs::idle(count) : rs::apply(count); }\n";
    let scratch = Scratch::new("full-parts-none");
    let program = compiled(&scratch, "app.cc", source, &["-g", "-O1"]);
    let program = program.to_str().expect("its name is text");
    for (parts, message, hint) in [
        (
            ["--full=apply"].as_slice(),
            "the program ended with exit code 2, and no function matches: apply",
            "write the scope too: --full=rs::apply",
        ),
        (
            ["--full=nosuch"].as_slice(),
            "no function matches: nosuch",
            "nm -C PROGRAM lists its functions",
        ),
        (
            ["--full=rs::idle", "--full=nosuch"].as_slice(),
            "and called none of: rs::idle; no function matches nosuch",
            "inlined everywhere",
        ),
    ] {
        let words = [&["record"], parts, &["--", program]].concat();
        let ended = Hindsight::command(&scratch, &words).ending(1).run();
        let said = ended.errors();
        assert!(said.contains(message) && said.contains(hint), "{said}");
    }
}

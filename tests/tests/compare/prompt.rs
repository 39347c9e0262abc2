//! Two recordings side by side at the prompt.

use std::fs;

use e2e::{Ended, Hindsight, Program, Scratch};

use crate::verdicts::{with_a_bug, with_a_worse_one};
use crate::{build, record};

/// Runs lines at the prompt of a recording.
fn prompt(scratch: &Scratch, recording: &str, lines: &[&str]) -> Ended {
    let mut args = vec!["repl", recording];
    for line in lines {
        args.extend(["--cmd", line]);
    }
    Hindsight::command(scratch, &args).run()
}

/// The number after a word of a line.
fn number(text: &str, before: &str) -> u64 {
    let at = text
        .find(before)
        .unwrap_or_else(|| panic!("{before}\n{text}"));
    let rest = &text[at + before.len()..];
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().expect("a number")
}

#[test]
fn differences_are_gone_through_in_both() {
    let scratch = Scratch::new("prompt");
    with_a_bug(&scratch);
    let ended = prompt(
        &scratch,
        "good",
        &[
            "goto first",
            "compare bad",
            "next difference",
            "next difference",
            "previous difference",
            "other where",
        ],
    );
    let text = ended.text();
    assert_eq!(ended.status.as_shell_code(), 0, "{text}{}", ended.errors());
    let mut at = 0;
    for part in [
        "A good and B bad: different",
        "1. tax_of at invoices.c:",
        "next difference goes to the first one",
        "Difference 1 of ",
        ": tax_of: another result\n  A result = 967\n  B result = 1074\nA good\n",
        "return from tax_of",
        "B bad\n",
        "return from tax_of",
        "Difference 2 of ",
        ": total_of: another result\n",
        "Difference 1 of ",
        // `other where` is about the second recording.
        "bad/invoices.c:66",
    ] {
        let found = text[at..].find(part);
        at += found.unwrap_or_else(|| panic!("{part}\n{text}")) + part.len();
    }
}

const LATER: &str = r#"#include <stdio.h>
int prepare(int n) { return n - n; }
int step(int n) { return n * 3; }
int main(void) {
  int sum = FIRST;
  for (int i = 0; i < 20; i++) sum += step(i);
  printf("%d\n", sum);
}
"#;

/// The event at which the call `step(n)` begins.
fn event_of_step(scratch: &Scratch, recording: &str, n: u32) -> u64 {
    let sql = format!("SELECT start_seq FROM calls WHERE function = 'step' AND args = 'n={n}'");
    let asked = Hindsight::command(scratch, &["sql", recording, &sql, "--json"]).run();
    asked.result()[0]["start_seq"].as_u64().expect("a number")
}

#[test]
fn goto_moves_both_to_what_belongs_together() {
    let scratch = Scratch::new("prompt-goto");
    fs::write(scratch.join("app.c"), LATER).expect("the test's folder is writable");
    // The second build makes one more call before.
    for (name, first) in [("good", "0"), ("bad", "prepare(1)")] {
        fs::create_dir(scratch.join(name)).expect("the test's folder is writable");
        let gcc = format!("gcc -O0 -g '-DFIRST={first}' -o {name}/app app.c");
        build(scratch.path(), &gcc);
        let app = Program::new(scratch.join(name).join("app"), scratch.path());
        record(&scratch, name, &[], &app);
    }
    let [in_a, in_b] = ["good", "bad"].map(|name| event_of_step(&scratch, name, 7));
    assert_eq!(in_b, in_a + 2);
    let place = format!("goto {in_a}");
    let text = prompt(&scratch, "good", &["goto first", "compare bad", &place]).text();
    let (a, b) = text.rsplit_once("B bad\n").expect("both sides");
    let a = a.rsplit_once("next difference").expect("a summary").1;
    assert_eq!(number(a, "at event "), in_a, "{text}");
    assert_eq!(number(b, "at event "), in_b, "{text}");
    let last = prompt(&scratch, "good", &["compare bad", "goto last"]);
    let text = last.text();
    assert_eq!(
        text.matches("has ended with exit code 0").count(),
        2,
        "{text}"
    );
}

#[test]
fn what_cannot_be_compared_is_refused_at_the_prompt() {
    let scratch = Scratch::new("prompt-refused");
    with_a_bug(&scratch);
    with_a_worse_one(&scratch);
    for (lines, says) in [
        (&["next difference"][..], "nothing is compared"),
        (&["goto 5", "other where"], "nothing is compared"),
        (&["compare"], "nothing is compared"),
        (&["compare good"], "same recording"),
        (&["compare nothing-here"], "nothing-here"),
        (&["compare bad worse"], "takes one recording"),
        (
            &["compare bad", "compare --off", "next difference"],
            "nothing is compared",
        ),
        (
            &["compare bad", "goto first", "previous difference"],
            "no previous difference",
        ),
        (
            &["compare bad", "goto last", "next difference"],
            "no next difference",
        ),
        (&["compare bad", "other"], "other takes a verb"),
        (&["compare bad", "other fly"], "there is no verb \"fly\""),
    ] {
        let ended = prompt(&scratch, "good", lines);
        assert_ne!(ended.status.as_shell_code(), 0, "{lines:?}");
        let errors = ended.errors();
        assert!(errors.contains(says), "{lines:?}: {errors}");
    }
}

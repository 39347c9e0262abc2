//! Goal: what a recording shows at an address is no more certain than the address. Method: a program that changes its pointers between
//! two recorded calls, which no event shows; every verb that takes an address, at the second call.

use e2e::{Ended, Hindsight, Program, Recording, Scratch, compiled};

const SOURCE: &str = r#"
#include <stdio.h>
const int table[4] = {10, 20, 30, 40};
const char *name = "alpha";
const int *ptr = table;
int number = 1;
int first(void) { return 1; }
int second(void) { return 2; }
int (*chosen)(void) = first;
__attribute__((noinline)) int seen(int x) { return x + 1; }
int main(void)
{
  seen(1);
  name = "beta";
  number = 3;
  ptr = table + 2;
  chosen = second;
  seen(2);
  puts(name);
  return 0;
}
"#;

fn recording(scratch: &Scratch) -> Recording {
    let program = compiled(scratch, "pointers.c", SOURCE, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    Hindsight::record(scratch, &[], &program).1
}

/// What a verb says at the second call.
fn at_second_call(recording: &Recording, lines: &[&str]) -> Ended {
    let lines = [&["break seen", "continue", "continue"], lines].concat();
    recording.prompt(&lines)
}

#[test]
fn what_lies_at_an_address_is_as_old_as_the_address() {
    let scratch = Scratch::new("stale-addresses");
    let recording = recording(&scratch);
    for (line, shown) in [
        ("x/s name", ":  \"alpha\"\n(stale: as of event "),
        ("x/dw ptr", " <table>:  10\n(stale: as of event "),
        (
            "x/dw &table[number]",
            " <table+4>:  20\n(stale: as of event ",
        ),
        ("x/i chosen", " <first>:  push rbp\n(stale: as of event "),
        ("memory read ptr --count 4", "0a 00 00 00 "),
        (
            "printf \"%d %s\\n\", number, name",
            "1 alpha\n(stale: as of event ",
        ),
        (
            "printf \"%d\\n\", table[number]",
            "20\n(stale: as of event ",
        ),
        ("display/2xb name", ": 0x61  0x6c <stale: as of event "),
        ("display/i chosen", ": push rbp <stale: as of event "),
        ("info symbol chosen", "first of "),
        ("disassemble chosen", "<first+0>  push rbp"),
        ("object ptr", "ptr was 0x"),
    ] {
        let said = at_second_call(&recording, &[line]);
        let (text, errors) = (said.text(), said.errors());
        assert!(text.contains(shown), "{line}: {text}{errors}");
        let is_old =
            text.contains("stale: as of event ") || text.contains("may have changed since");
        assert!(is_old, "{line}: {text}");
    }
    // What is known stays so.
    for line in [
        "x/dw &table[1]",
        "printf \"%d\\n\", x",
        "info symbol seen",
        "x/i $pc",
    ] {
        let text = at_second_call(&recording, &[line]).text();
        assert!(!text.contains("stale: as of"), "{line}: {text}");
    }
}

/// `x` alone goes on where it stopped, and `$_` is what it showed.
#[test]
fn what_follows_a_stale_address_is_stale_too() {
    let scratch = Scratch::new("stale-next");
    let recording = recording(&scratch);
    let text = at_second_call(&recording, &["x/dw ptr", "x", "print $_"]).text();
    assert!(
        text.contains(" <table+4>:  20\n(stale: as of event "),
        "{text}"
    );
    assert_eq!(text.matches("stale: as of event ").count(), 3, "{text}");
}

/// A line or a breakpoint at another function than the one that is meant would mislead.
#[test]
fn no_place_is_taken_from_a_stale_address() {
    let scratch = Scratch::new("stale-places");
    let recording = recording(&scratch);
    for line in ["list *chosen", "info line *chosen", "break *chosen"] {
        let said = at_second_call(&recording, &[line]);
        let errors = said.errors();
        assert!(
            errors.contains("chosen was 0x") && errors.contains(", and may have changed since"),
            "{line}: {}{errors}",
            said.text()
        );
        assert!(
            errors.contains("if you mean that address, write it: *0x"),
            "{errors}"
        );
    }
}

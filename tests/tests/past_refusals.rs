//! Goal: what a recording of calls cannot do is refused with a way that works. Method: the same lines in a recording of calls and in one
//! of every instruction of a program whose lines are known.

use e2e::{Hindsight, Program, Recording, Scratch, compiled};

const SOURCE: &str = r#"static int sum;
__attribute__((noinline)) int add(int n) {
  sum += n;
  return sum;
}
int main(void) {
  for (int i = 0; i < 3; i++)
    add(i);
  return sum - 3;
}
"#;

fn recorded(name: &str, options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new(name);
    let app = compiled(&scratch, "app.c", SOURCE, &["-g", "-O0"]);
    let app = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "recorded", options, &app);
    (scratch, recording)
}

/// What the prompt says, answers and errors.
fn said(recording: &Recording, lines: &[&str]) -> String {
    let ended = recording.prompt(lines);
    ended.text() + &ended.errors()
}

#[test]
fn a_line_is_no_place_where_only_calls_are_recorded() {
    let (_calls, calls) = recorded("line-of-calls", &[]);
    for line in ["4", "+1", "-1"] {
        let said = said(&calls, &["goto 2", &format!("break {line}")]);
        let refusal = format!("{line} is a line, and here only calls are recorded");
        assert!(said.contains(&refusal), "{said}");
        let hint =
            "break FUNCTION; or record every instruction: hindsight record --full -- PROGRAM";
        assert!(said.contains(hint), "{said}");
    }
    let (_full, full) = recorded("line-of-full", &["--full"]);
    let said = said(&full, &["break add", "continue", "break 4", "continue"]);
    assert!(said.contains("app.c:4"), "{said}");
}

#[test]
fn a_function_has_no_cause_but_its_calls_have() {
    let (_scratch, recording) = recorded("why-function", &[]);
    let said = |lines: &[&str]| said(&recording, lines);
    let refused = said(&["why add"]);
    let refusal = "add is a function: only each of its calls has a cause";
    assert!(refused.contains(refusal), "{refused}");
    let list = "SELECT start_seq, args, ret FROM calls WHERE function = 'add'";
    let hint = format!("find its calls: {list}; then ask of one: why START_SEQ");
    assert!(refused.contains(&hint), "{refused}");
    // The way that it tells.
    let first = recording.number("select min(start_seq) from calls where function = 'add'");
    let listed = said(&[list]);
    assert!(listed.contains(&format!("{first}")), "{listed}");
    let why = said(&[&format!("why {first}")]);
    assert!(why.contains("add(n=0) returned 0"), "{why}");
}

const METHOD: &str = r#"struct Foo {
  int held;
  __attribute__((noinline)) int count(int n);
};
int Foo::count(int n) {
  held += n;
  return held;
}
__attribute__((noinline)) int run(int n) {
  int count = n;
  Foo foo{count};
  return foo.count(count);
}
int main() { return run(2) - 4; }
"#;

/// A variable and a function of one name: where the variable is not in scope, that is the reason.
#[test]
fn a_variable_that_is_not_in_scope_is_not_taken_for_a_function() {
    let scratch = Scratch::new("why-scope");
    let app = compiled(&scratch, "foo.cc", METHOD, &["-g", "-O0"]);
    let app = Program::new(app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "recorded", &[], &app);
    let refused = said(&recording, &["goto last", "why count"]);
    let reason =
        "no variable \"count\" here; Foo::count is a function: only each of its calls has a cause";
    assert!(refused.contains(reason), "{refused}");
    let hint = "if a variable is meant, go to where it is in scope; else find its calls: SELECT";
    assert!(refused.contains(hint), "{refused}");
}

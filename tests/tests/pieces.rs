//! Goal: a structure whose pieces are in registers has the members that are shown one by one, in a caller too, live and in a recording:
//! registers that calls do not preserve are unknown there, and a register that was last seen before a function was called is no
//! value of the function's variables. Method: programs whose functions leave the right and a wrong number in the same register.

use e2e::{Hindsight, Live, Program, Recording, Scratch, compiled};
use serde_json::Value;

/// `half` returns 50 in xmm0, in which the other functions keep a member.
const MIXED: &str = r#"#include <stdio.h>
#define NI __attribute__((noinline))
struct mix { int i; double d; };
struct pair { double a, b; };
volatile int sink;
NI void stop(void) { sink++; }
NI double half(double x) { stop(); return x * 0.5; }
NI struct mix make(int x) { struct mix r = {x, x * 1.5}; stop(); return r; }
NI struct mix both(int x, double y) { struct mix r = {x, y * 5}; stop(); return r; }
NI struct pair three(int x) { struct pair r = {x * 1.5, 3.0}; stop(); return r; }
int main(void) {
  half(100.0);
  struct mix m = make(4);
  half(100.0);
  struct mix n = both(4, 2.0);
  half(100.0);
  struct pair p = three(4);
  printf("%d %g %d %g %g %g\n", m.i, m.d, n.i, n.d, p.a, p.b);
}
"#;

/// `kept` is in xmm0 at the line of the logpoint.
const KEPT: &str = r#"#include <stdio.h>
#define NI __attribute__((noinline))
volatile int sink;
NI double half(double x) { sink++; return x * 0.5; }
NI double keep(int x) {
  double kept = x * 1.5;
  __asm__ volatile("" : "+x"(kept));
  sink = 1;
  sink = 2;
  return kept;
}
int main(void) {
  half(100.0);
  printf("%g\n", keep(4));
}
"#;

const RDI: &str = "rdi is not saved by the functions that were called";
const XMM0: &str = "xmm0 is not saved by the functions that were called";
const FLAGS: [&str; 2] = ["-g", "-O2"];

/// The event at which call `number` of `stop` begins, counted from 0.
fn stop_of(recording: &Recording, number: usize) -> i64 {
    recording.number(&format!(
        "SELECT start_seq FROM calls WHERE function = 'stop' ORDER BY start_seq LIMIT 1 OFFSET {number}"
    ))
}

#[test]
fn a_structure_in_a_caller_is_as_unknown_as_its_members() {
    let scratch = Scratch::new("pieces");
    let app = compiled(&scratch, "app.c", MIXED, &FLAGS);
    let program = Program::new(&app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "calls", &[], &program);
    for (call, members) in [(1, ["r.i", "r.d"]), (3, ["r.i", "r.d"]), (5, ["r.a", "r"])] {
        let seq = stop_of(&recording, call);
        let asked = members.map(|member| format!("frame_value({seq}, 1, '{member}')"));
        let row = recording.row(&format!(
            "SELECT frame_value({seq}, 1, 'r') AS whole, {} AS one, {} AS other",
            asked[0], asked[1]
        ));
        for (name, value) in &row {
            assert_eq!(*value, Value::Null, "{name} at event {seq}");
        }
    }
    let make = stop_of(&recording, 1);
    let why = recording.row(&format!(
        "SELECT explain_value({make}, 'make::r') AS why, explain_value({make}, 'make::r.d') AS of_d"
    ));
    assert_eq!(why["why"], format!("unknown: {RDI}"));
    assert_eq!(why["of_d"], format!("unknown: {XMM0}"));
}

#[test]
fn the_prompt_shows_what_is_known_of_a_structure_in_a_caller() {
    let scratch = Scratch::new("pieces-prompt");
    let app = compiled(&scratch, "app.c", MIXED, &FLAGS);
    let program = Program::new(&app, scratch.path());
    let recording = Hindsight::recorded(&scratch, "calls", &[], &program);
    let make = format!("goto {}", stop_of(&recording, 1));
    let shown = recording.prompt(&[&make, "up", "print r", "print r.i", "print r.d"]);
    let shown = shown.text();
    for line in [
        format!("r = <{RDI}>"),
        format!("r.i = <{RDI}>"),
        format!("r.d = <{XMM0}>"),
    ] {
        assert!(shown.lines().any(|own| own == line), "{line}: {shown}");
    }
    // The compiler states the second member itself.
    let three = format!("goto {}", stop_of(&recording, 5));
    let shown = recording.prompt(&[&three, "up", "print r", "print r.a", "print r.b"]);
    let shown = shown.text();
    let known = shown.lines().find(|line| line.contains("b = 3}"));
    let known = known.unwrap_or_else(|| panic!("{shown}"));
    assert!(
        known.contains(&format!("{{a = <unknown: {XMM0}>, b = 3}}")),
        "{shown}"
    );
    assert!(shown.contains(&format!("r.a = <{XMM0}>")), "{shown}");
    assert!(shown.contains("= 3\n"), "{shown}");
}

#[test]
fn a_structure_in_a_caller_of_a_stopped_program_is_as_unknown_as_its_members() {
    let scratch = Scratch::new("pieces-live");
    let app = compiled(&scratch, "app.c", MIXED, &FLAGS);
    let live = Live::started("pieces-live", &["--break", "stop"], &app, &[]);
    live.moved(&["continue"]);
    live.ask(&["up"]);
    for (expression, why) in [("r", RDI), ("r.i", RDI), ("r.d", XMM0)] {
        let reply = live.ask(&["print", expression]);
        assert_eq!(reply["unknown"], why, "{reply:#}");
        assert_eq!(reply["value"], Value::Null, "{reply:#}");
    }
}

#[test]
fn what_a_register_held_before_a_call_is_no_value_of_its_variables() {
    let scratch = Scratch::new("pieces-kept");
    let app = compiled(&scratch, "app.c", KEPT, &FLAGS);
    let program = Program::new(&app, scratch.path());
    let options = ["--logpoint", "app.c:9", "{x}"];
    let recording = Hindsight::recorded(&scratch, "logged", &options, &program);
    let seq = recording.number("SELECT seq FROM events WHERE kind = 'logpoint'");
    let goto = format!("goto {seq}");
    let shown = recording.prompt(&[&goto, "print kept", "print x"]);
    let shown = shown.text();
    let unknown = "kept = <unknown: not seen since its function was called>";
    assert!(shown.lines().any(|line| line == unknown), "{shown}");
    // The call itself showed its argument.
    assert!(shown.contains("= 4 <stale: as of event "), "{shown}");
}

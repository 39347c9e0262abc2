//! Goal: `debug_query` finds calls of a recording of every instruction by what they returned, also where no register holds that, and
//! shows what nested calls returned. Method: a program of more calls than a batch of rows has, whose results are known, and the Python SDK
//! of the protocol (`mcp/returns.py`).

use e2e::{Hindsight, Live, Program, compiled, mcp_script};

/// Results that are in a register (`odd`), in none (`tick`), on the stack (`deep`), in the x87 unit (`wide`), and too large for a signed
/// number (`top`).
const RETURNS: &str = r#"
struct box { long a, b, c; };

volatile long sum;

__attribute__((noipa)) int odd(int i) { return i % 3 == 0 ? -1 : i; }
__attribute__((noipa)) void tick(int i) { sum += i; }
__attribute__((noipa)) struct box big(int i) { return (struct box) { i, 2 * i, 3 * i }; }
__attribute__((noipa)) long double wide(int i) { return i; }
__attribute__((noipa)) unsigned long top(int i) { return -i; }

__attribute__((noipa)) struct box deep(int n) {
  struct box own = { n, 0, 0 };
  if (n > 0) own.b = deep(n - 1).a;
  return own;
}

int main(void) {
  for (int i = 0; i < 2000; i++) {
    tick(odd(i));
    sum += big(i).b + (long) wide(i) + (long) top(i);
  }
  sum += deep(30).b;
  return 0;
}
"#;

#[test]
fn calls_are_found_by_what_they_returned_to_a_recording_of_every_instruction() {
    let live = Live::new("mcp-returns");
    let program = compiled(&live.scratch, "returns.c", RETURNS, &["-O1", "-g"]);
    let program = Program::new(program, live.scratch.path());
    let (_, recording) = Hindsight::record(&live.scratch, &["--full"], &program);
    let recording = recording.path().to_str().expect("paths of tests are text");
    let said = mcp_script(&live, "returns.py", &[recording]);
    assert_eq!(said, "returns: 9 calls\n");
}

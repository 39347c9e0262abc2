//! Goal: a prompt that ends with its terminal, or by SIGTERM, ends the program that it started, as `quit` does. Method: a
//! prompt on a terminal runs a program that never ends; the terminal is closed, or the prompt is terminated.

use e2e::{Hindsight, Scratch, Status, compiled};

const SOURCE: &str = r#"
#include <stdio.h>
#include <unistd.h>
static int passes;
int pass(void) { return ++passes; }
int main(void) {
  FILE *told = fopen("pid.new", "w");
  fprintf(told, "%d", getpid());
  fclose(told);
  rename("pid.new", "pid");
  for (;;) { pass(); usleep(1000); }
}
"#;

/// Runs the command `sys.argv[2:]` on a terminal, until its program runs; then ends it by `sys.argv[1]`.
const ON_A_TERMINAL: &str = r#"
import os, pty, signal, sys, time
prompt, terminal = pty.fork()
if prompt == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown = b""
while b"_start>" not in shown:
    shown += os.read(terminal, 4096)
os.write(terminal, b"continue\n")
while not os.path.exists("pid"):
    time.sleep(0.05)
program = open("pid").read()
if sys.argv[1] == "SIGTERM":
    os.kill(prompt, signal.SIGTERM)
else:
    os.close(terminal)
for _ in range(1200):
    if not os.path.exists(f"/proc/{program}"):
        print("ended")
        break
    time.sleep(0.05)
else:
    os.kill(int(program), signal.SIGKILL)
    print("runs on")
os.waitpid(prompt, 0)
"#;

fn ends_by(how: &str) {
    let scratch = Scratch::new(&format!("hangup-{how}"));
    let program = compiled(&scratch, "app.c", SOURCE, &["-g"]);
    let program = program.to_str().expect("UTF-8");
    let ended = Hindsight::command(&scratch, &["repl", program])
        .env("TERM", "xterm")
        .wrapped("/usr/bin/python3".as_ref(), ["-c", ON_A_TERMINAL, how])
        .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert_eq!(ended.text().trim(), "ended", "{}", ended.errors());
}

#[test]
fn the_program_ends_when_the_terminal_goes_away() {
    ends_by("SIGHUP");
}

#[test]
fn the_program_ends_when_the_prompt_is_terminated() {
    ends_by("SIGTERM");
}

//! Goal: what a program does often takes little memory when a recording of every instruction ends, and when it is run again. Method: the
//! most memory that Hindsight takes for a program that handles 20,000 signals is compared with that for one that handles ten.

use std::path::Path;

use e2e::{Hindsight, Program, Scratch, compiled};

const SOURCE: &str = r#"#include <signal.h>
#include <stdlib.h>
static volatile long handled;
static void handler(int number) { handled += number == SIGUSR1; }
int main(int count, char **words) {
  signal(SIGUSR1, handler);
  long signals = atol(words[count - 1]);
  for (long i = 0; i < signals; i++) raise(SIGUSR1);
  return handled != signals;
}
"#;

/// Runs a command, and returns the most memory that a process of it had, in MiB.
fn most_memory(program: &Program) -> f64 {
    const MEASURE: &str = "import resource, subprocess, sys\n\
        subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr)\n\
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let measured = program.wrapped(Path::new("python3"), ["-c", MEASURE]).run();
    let kib = measured.text().trim().parse::<f64>();
    kib.unwrap_or_else(|_| panic!("{}{}", measured.text(), measured.errors())) / 1024.0
}

/// What it takes to record a program that handles so many signals, and to run that recording again.
fn recorded_and_replayed(scratch: &Scratch, app: &Path, signals: &str) -> (f64, f64) {
    let program = Program::new(app, scratch.path()).args([signals]);
    let recorder = Hindsight::record_command(scratch, signals, &["--full"], &program);
    let recorded = most_memory(&recorder);
    let folder = format!("{signals}.hindsight");
    let check = Hindsight::command(scratch, &["check", "--replay", &folder]);
    (recorded, most_memory(&check))
}

#[test]
fn signals_that_were_handled_take_little_memory() {
    let scratch = Scratch::new("full-memory");
    let app = compiled(&scratch, "app.c", SOURCE, &["-g", "-O1"]);
    let (recorded, replayed) = recorded_and_replayed(&scratch, &app, "10");
    let (more, again) = recorded_and_replayed(&scratch, &app, "20000");
    // The registers that are saved for each of them have more than 8 KB, several times.
    assert!(more < recorded + 64.0, "recording: {recorded}, {more} MiB");
    assert!(again < replayed + 32.0, "running: {replayed}, {again} MiB");
}

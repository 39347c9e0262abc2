//! Goal: how a program ended to which the recorder was attached is in the recording, and what it does with signals stays its own.
//! Method: a program that ends in each way once it is recorded. The test is its parent, and collects its status only afterwards.

use std::{
    fs,
    process::{Child, Command, Stdio},
};

use e2e::{Ended, Hindsight, Program, Recording, Running, Scratch, Signal, Status, wait_until};

/// Waits for the file `go`, then ends as its argument says.
const ENDS: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
static int *nowhere;
__attribute__((noinline)) int work(int n) { usleep(1000); return n + 1; }
__attribute__((noinline)) void fall(void) { *nowhere = 1; }
static void own(int signal) { _exit(signal == SIGSEGV ? 9 : 8); }
int main(int argc, char **argv) {
  const char *how = argv[argc - 1];
  struct sigaction usual = { .sa_handler = SIG_DFL, .sa_flags = SA_RESTART }, found;
  int n = 0;
  sigaddset(&usual.sa_mask, SIGUSR1);
  sigaction(SIGTERM, &usual, NULL);
  signal(SIGHUP, SIG_IGN);
  if (!strcmp(how, "own")) signal(SIGSEGV, own);
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  while (access("go", F_OK) != 0) n = work(n);
  if (!strcmp(how, "ask")) {
    sigaction(SIGTERM, NULL, &found);
    return found.sa_handler == SIG_DFL && (found.sa_flags & SA_RESTART)
        && sigismember(&found.sa_mask, SIGUSR1) == 1 ? 5 : 6;
  }
  if (!strcmp(how, "term")) raise(SIGTERM);
  if (!strcmp(how, "kill")) raise(SIGKILL);
  if (!strcmp(how, "exit")) return 3;
  fall();
  return 0;
}
"#;

/// Linked with the dynamic linker, and without.
const LINKED: [&[&str]; 2] = [&[], &["-static"]];

/// Signals that the C library does not use for itself.
const USUAL: u64 = 0x7fff_ffff;

struct Target {
    scratch: Scratch,
    child: Child,
}

impl Target {
    fn start(how: &str, options: &[&str]) -> Self {
        let scratch = Scratch::new(&format!("attach-ends-{how}{}", options.concat()));
        fs::write(scratch.join("ends.c"), ENDS).expect("the test's folder is writable");
        let words = [options, &["-g", "-O0", "-o", "ends", "ends.c"]].concat();
        let built = Program::new("/usr/bin/gcc", scratch.path())
            .args(words)
            .run();
        assert_eq!(built.status, Status::Code(0), "{}", built.errors());
        let child = Command::new(scratch.join("ends"))
            .arg(how)
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .spawn()
            .expect("it was built");
        wait_until("its own code", || {
            scratch.join("ready").exists().then_some(())
        });
        Self { scratch, child }
    }

    fn attach(&self) -> (Running, Recording) {
        let pid = self.child.id().to_string();
        let words = ["record", "-o", "rec", "--attach", &pid];
        let recorder = Hindsight::command(&self.scratch, &words).start();
        let recording = Recording::new(self.scratch.join("rec.hindsight"));
        wait_until("calls in the recording", || {
            let rows = recording.try_rows("SELECT count(*) AS n FROM calls").ok()?;
            (rows.first()?["n"].as_i64()? > 20).then_some(())
        });
        (recorder, recording)
    }

    fn go(&self) {
        fs::write(self.scratch.join("go"), "").expect("the test's folder is writable");
    }

    /// The masks of signals that it ignores and handles.
    fn dispositions(&self) -> [u64; 2] {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it runs");
        ["SigIgn:", "SigCgt:"].map(|name| {
            let mut lines = status.lines();
            let mask = lines.find_map(|line| line.strip_prefix(name));
            let mask = mask.expect("the kernel shows it").trim();
            u64::from_str_radix(mask, 16).expect("a number in hex") & USUAL
        })
    }

    fn handles(&self, signal: i32) -> bool {
        let [_, handled] = self.dispositions();
        handled & (1 << (signal - 1)) != 0
    }

    fn status(&mut self) -> Status {
        Status::from(self.child.wait().expect("it is our child"))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Attaches to a program and lets it end in this way.
fn recorded(how: &str, options: &[&str]) -> (Target, Ended, Recording) {
    let target = Target::start(how, options);
    let (recorder, recording) = target.attach();
    target.go();
    let ended = recorder.finish();
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
    (target, ended, recording)
}

/// The recorder and the recording say that this signal ended the program, whose own status is the same.
fn ended_by(signal: i32, name: &str, how: &str, options: &[&str]) -> (Target, Recording) {
    let (mut target, ended, recording) = recorded(how, options);
    let code = Status::Code(128 + signal);
    assert_eq!(ended.status, code, "{}", ended.errors());
    let told = format!("{name} ended the program");
    assert!(ended.errors().contains(&told), "{}", ended.errors());
    let info = recording.command("info", &["--json"]).result();
    assert_eq!(info["exit_signal"], name, "{info:#}");
    let exit = recording.row("SELECT aux FROM events WHERE kind = 'process_exit'");
    assert_eq!(exit["aux"], name);
    let exception = recording.row("SELECT signal, type, phase FROM exceptions");
    assert_eq!(exception["signal"], signal);
    assert_eq!(exception["type"], name);
    assert_eq!(exception["phase"], "unhandled");
    assert_eq!(target.status(), Status::Signal(signal));
    (target, recording)
}

fn opens_at_its_end(recording: &Recording, name: &str, function: &str) {
    let pauses = "SELECT count(*) FROM pauses WHERE reason = 'signal'";
    assert_eq!(recording.number(pauses), 1);
    let told = recording.prompt(&["goto first", "goto crash", "bt"]).text();
    assert!(told.contains(name), "{told}");
    assert!(told.contains(function), "{told}");
}

#[test]
fn a_fault_is_recorded_where_it_happened() {
    for options in LINKED {
        let (_target, recording) = ended_by(11, "SIGSEGV", "fall", options);
        let addr = "SELECT count(*) FROM exceptions WHERE addr = 0 AND tid IS NOT NULL";
        assert_eq!(recording.number(addr), 1);
        opens_at_its_end(&recording, "SIGSEGV", "fall");
    }
}

#[test]
fn a_default_action_is_recorded_where_the_signal_came() {
    let (_target, recording) = ended_by(15, "SIGTERM", "term", &[]);
    opens_at_its_end(&recording, "SIGTERM", "main");
}

/// Nothing in the program sees it.
#[test]
fn a_kill_is_told_by_the_kernel() {
    let (_target, recording) = ended_by(9, "SIGKILL", "kill", &[]);
    assert_eq!(recording.number("SELECT count(*) FROM pauses"), 0);
}

#[test]
fn an_exit_code_is_recorded() {
    // The program handles SIGSEGV itself, and has its own default action.
    for (how, code) in [("exit", 3), ("own", 9), ("ask", 5)] {
        let (mut target, ended, recording) = recorded(how, &[]);
        assert_eq!(
            ended.status,
            Status::Code(code),
            "{how}: {}",
            ended.errors()
        );
        let info = recording.command("info", &["--json"]).result();
        assert_eq!(info["exit_code"], code, "{info:#}");
        let exit = recording.row("SELECT value, aux FROM events WHERE kind = 'process_exit'");
        assert_eq!(exit["value"], code, "{how}");
        assert_eq!(
            recording.number("SELECT count(*) FROM exceptions"),
            0,
            "{how}"
        );
        assert_eq!(target.status(), Status::Code(code), "{how}");
    }
}

#[test]
fn a_program_that_is_left_running_does_with_signals_what_it_did() {
    const SIGSEGV: i32 = 11;
    const SIGTERM: i32 = 15;
    for options in LINKED {
        let mut target = Target::start("own", options);
        let before = target.dispositions();
        assert!(target.handles(SIGSEGV) && !target.handles(SIGTERM));
        for _ in 0..2 {
            let (recorder, recording) = target.attach();
            assert!(target.handles(SIGTERM), "the last moment is to be recorded");
            recorder.signal(Signal::INT);
            let ended = recorder.finish();
            assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
            assert_eq!(target.dispositions(), before);
            fs::remove_dir_all(recording.path()).expect("the recording is closed");
        }
        target.go();
        assert_eq!(target.status(), Status::Code(9));
    }
}

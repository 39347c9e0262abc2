//! Goal: a recorded program behaves exactly as it does natively, for any program and any options; and the recorder never
//! kills it. Method: programs of the system natively and recorded (tests/transparency), and fixtures that forbid or
//! block what a recorder needs.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use e2e::{
    Comparison, Ended, Hindsight, Live, Nesting, Program, Scratch, Signal, Status,
    fixture_artifact, in_turn, turn_among, wait_until, workspace_dir,
};

/// The quick programs, or a sixth of them, each with the default filters and with every function of every library. Each run has
/// its own deadline there.
#[test]
fn programs_of_the_system_run_the_same_with_every_function_recorded() {
    let turn = turn_among(6);
    let sixth = turn.map(|turn| format!("--sixth={turn}"));
    let ended = Command::new(workspace_dir().join("tests/transparency"))
        .arg("--quick")
        .args(&sixth)
        .env("HINDSIGHT_BIN", Hindsight::path())
        .output()
        .expect("python3 is there");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    // Of 35 programs.
    let runs = match turn {
        None => 70,
        Some(0..5) => 12,
        Some(_) => 10,
    };
    let total = format!("{runs} runs, 0 differ, 0 unsteady");
    assert_eq!(said.lines().last(), Some(&*total), "{said}");
}

/// The program's output, except for handlers of the signals that end a program.
fn lines_of(ended: &Ended) -> Vec<String> {
    // Signal n is bit n - 1: HUP, INT, QUIT, ILL, TRAP, ABRT, BUS, FPE, SEGV, TERM, SYS.
    const FATAL: u64 = 0x4000_44ff;
    let text = ended.text();
    let theirs = text.lines().filter(|line| !line.starts_with("hindsight: "));
    let shown = theirs.map(|line| match line.trim_end().split_once(":\t") {
        Some((name @ ("SigIgn" | "SigCgt"), mask)) => {
            let mask = u64::from_str_radix(mask, 16).expect("a mask");
            let ours = if name == "SigCgt" { FATAL } else { 0 };
            format!("{name} {:x}", mask & !ours)
        }
        _ => line.trim_end().to_owned(),
    });
    shown.collect()
}

/// Natively and recorded, from a script, without and with a terminal. docs/transparency.md lists the difference: the runtime
/// has a handler for each signal that would end the program.
#[test]
fn a_program_sees_what_it_would_see() {
    let scratch = Scratch::new("seen");
    let seen = fixture_artifact("seen", "seen");
    let binary = Hindsight::path().display();
    let script = |name: &str, line: String| {
        let path = scratch.join(name);
        fs::write(&path, format!("{line}\nexit $?\n")).expect("the folder is ours");
        Program::new("/bin/sh", scratch.path()).args([path])
    };
    let native = script("native.sh", seen.display().to_string());
    let recorded = script(
        "recorded.sh",
        format!("{binary} record -o \"$(mktemp -d)/rec\" {}", seen.display()),
    )
    .env("TMPDIR", scratch.path());
    for in_terminal in [false, true] {
        let run = |program: &Program| match in_terminal {
            true => program.in_terminal().run(),
            false => program.run(),
        };
        let (native, recorded) = (run(&native), run(&recorded));
        assert_eq!(native.status.as_shell_code(), 26, "{}", native.text());
        let told = recorded.text() + &recorded.errors();
        assert_eq!(recorded.status.as_shell_code(), 26, "{told}");
        let (wanted, theirs) = (lines_of(&native), lines_of(&recorded));
        assert_eq!(wanted, theirs, "in a terminal: {in_terminal}: {told}");
        let group = "group of the parent 1, session of the parent 1";
        assert!(
            wanted.iter().any(|line| line.starts_with(group)),
            "{wanted:?}"
        );
    }
}

/// The text after a word at the beginning of a line.
fn after<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let lines = text.lines();
    lines.filter_map(|line| line.strip_prefix(word)).collect()
}

fn mask(text: &str, name: &str) -> u64 {
    let shown = after(text, name);
    u64::from_str_radix(shown[0].trim(), 16).expect("a mask")
}

/// The lists of docs/transparency.md, for a program under control: all differences from a start by its shell, if another
/// shell has started the daemon.
#[test]
fn a_program_under_control_sees_what_the_page_says() {
    const TRAP: u64 = 1 << (5 - 1);
    // Of a process with threads: the daemon's are no longer ignored, if they were.
    const OF_THE_C_LIBRARY: u64 = 3 << (32 - 1);
    let seen = fixture_artifact("seen", "seen");
    let path = seen.to_str().expect("paths of tests are text");
    let live = Live::started("seen-live", &["--stop-on-entry"], &seen, &[]);
    let words = live.command(&["start", "--stop-on-entry", path, "more"]);
    let shell = |changes: &str| {
        words
            .wrapped(Path::new("/bin/sh"), ["-c", changes])
            .env("ONLY_HERE", "1")
    };
    let changes = "umask 077; ulimit -n 100; exec 7</dev/null";
    let native = shell(&format!("{changes}; shift 2; exec \"$@\""))
        .run()
        .text();
    let plain = shell("shift 2; exec \"$@\"").run().text();
    let started = shell(&format!("{changes}; exec \"$0\" \"$@\"")).run();
    assert_eq!(started.status.as_shell_code(), 0, "{}", started.errors());

    let status = live.ask(&["status"]);
    let sessions = status["sessions"].as_array().expect("sessions");
    let session = sessions.iter().find(|session| session["session"] == 2);
    let session = session.expect("a second session");
    live.keep(session);
    let daemon = live.daemon().expect("a daemon");
    let status = fs::read_to_string(format!("/proc/{}/status", session["pid"]));
    let status = status.expect("the program is stopped");
    let tracer = after(&status, "TracerPid:")[0].trim();
    let is_thread = Path::new(&format!("/proc/{daemon}/task/{tracer}")).exists();
    assert!(is_thread, "{tracer} is no thread of the daemon {daemon}");
    let ended = live.ask(&["continue", "--session", "2"]);
    assert_eq!(ended["exit"]["code"], 26, "{ended:#}");
    let theirs = live.command(&["output", "--session", "2"]).run().text();

    // As it would be.
    for same in [
        "Name:",
        "SigPnd:",
        "ShdPnd:",
        "SigBlk:",
        "Threads:",
        "NoNewPrivs:",
    ] {
        assert_eq!(after(&theirs, same), after(&native, same), "{same}");
    }
    let handled = mask(&theirs, "SigCgt:");
    assert_eq!(handled, mask(&native, "SigCgt:") | TRAP, "{theirs}");
    let [ignored, alone] = [&theirs, &native].map(|text| mask(text, "SigIgn:") & !OF_THE_C_LIBRARY);
    assert_eq!(ignored, alone, "SigIgn");
    let variables = |text: &str| {
        let mut all: Vec<String> = after(text, "env ").into_iter().map(str::to_owned).collect();
        all.sort();
        all
    };
    assert_eq!(variables(&theirs), variables(&native));
    assert!(variables(&theirs).contains(&"ONLY_HERE=1".to_owned()));
    // Its own.
    assert_eq!(after(&theirs, "TracerPid:")[0].trim(), tracer);
    assert_eq!(after(&theirs, "leads its group "), ["1"]);
    assert_eq!(after(&theirs, "in "), ["/dev/null"]);
    assert_eq!(after(&theirs, "out "), ["pipe"]);
    assert_eq!(after(&theirs, "errors "), ["pipe"]);
    // The daemon's.
    for inherited in ["descriptor ", "limit ", "Umask:"] {
        assert_eq!(
            after(&theirs, inherited),
            after(&plain, inherited),
            "{inherited}"
        );
        assert_ne!(
            after(&theirs, inherited),
            after(&native, inherited),
            "{inherited}"
        );
    }
}

/// Compares a fixture that ends with its own exit code.
fn ending(fixture: &str, artifact: &str, args: &[&str], code: i32) -> Comparison {
    Comparison::of_with(fixture, artifact, args, Nesting::Proper, |program| {
        program.ending(code)
    })
}

/// Each has a reason why it is not recorded; the function to which they belong is recorded.
#[test]
fn parts_of_functions_are_not_recorded() {
    let both = ending("fragments", "fragments", &[], 27);
    for (function, reason) in [
        ("work.warm", None),
        ("work.cold", None),
        ("aside", Some("not come there by an ordinary call")),
        ("entered", Some("inside the patched bytes")),
        ("split.part.1", Some("nothing calls it")),
    ] {
        assert_eq!(both.recording.calls_of(function), 0, "{function}");
        let Some(reason) = reason else {
            continue;
        };
        let said = format!(
            "SELECT count(*) FROM probes WHERE function = '{function}' AND reason LIKE '%{reason}%'"
        );
        assert_eq!(both.recording.number(&said), 1, "{function}");
    }
    // A part that is called is a function.
    assert_eq!(both.recording.calls_of("split.part.0"), 1000);
}

/// A user without permission to raise limits gets an error with the next step.
#[test]
fn a_hard_limit_on_address_space_is_refused() {
    let live = Live::new("hard-limit");
    let path = fixture_artifact("memory_limits", "memory_limits");
    let path = path.to_str().expect("paths of tests are text");
    let line = "ulimit -v 4000000; exec \"$0\" \"$@\"";
    let words = ["--bounding-set", "-sys_resource", "/bin/sh", "-c", line];
    for verb in ["record", "start"] {
        let command = live.command(&[verb, path, "show"]);
        let ended = command.wrapped(Path::new("/usr/bin/setpriv"), words).run();
        assert_eq!(ended.status.as_shell_code(), 4, "{}", ended.errors());
        for told in ["limited to 4000000 kB", "ulimit -S"] {
            assert!(ended.errors().contains(told), "{}", ended.errors());
        }
        assert_eq!(ended.text(), "", "{verb}");
        let is_daemon = ended.errors().contains("the daemon's address space");
        assert_eq!(is_daemon, verb == "start", "{}", ended.errors());
    }
}

/// Beyond the limit the kernel would end Hindsight by a signal.
#[test]
fn a_hard_limit_on_files_is_refused() {
    let scratch = Scratch::new("hard-files");
    let line = "ulimit -f 100000; exec \"$0\" \"$@\"";
    let words = ["--bounding-set", "-sys_resource", "/bin/sh", "-c", line];
    let command = Hindsight::command(&scratch, &["record", "/bin/true"]);
    let ended = command.wrapped(Path::new("/usr/bin/setpriv"), words).run();
    assert_eq!(ended.status.as_shell_code(), 4, "{}", ended.errors());
    for told in ["its files are limited to 50000 kB", "ulimit -S -f"] {
        assert!(ended.errors().contains(told), "{}", ended.errors());
    }
}

/// Functions that are both recorded and replaced are recorded, and output is still recorded.
#[test]
fn output_is_an_event_also_when_write_is_recorded() {
    let scratch = Scratch::new("recorded-write");
    let program = Program::new("/bin/echo", scratch.path()).args(["seen"]);
    let (ended, recording) = Hindsight::record(&scratch, &["-f", "module:libc.so*"], &program);
    assert_eq!(ended.text(), "seen\n");
    // Its name depends on whether there are debug files.
    let writes =
        "SELECT count(*) FROM calls WHERE function IN ('write', '__write', '__libc_write')";
    assert_eq!(recording.number(writes), 1);
    let output =
        recording.row("SELECT count(*) AS n, max(text) AS text FROM events WHERE kind = 'stdout'");
    assert_eq!(output["n"], 1);
    assert_eq!(output["text"], "seen\n");
}

/// Without a limit, and for a user whose limit is compared with what the program has mapped.
#[test]
fn a_program_that_locks_its_memory_goes_on() {
    for args in [&[][..], &["8000000"], &["4096"]] {
        let both = ending("locks_memory", "locks_memory", args, 21);
        let wanted = if args == ["4096"] {
            "both: -1"
        } else {
            "both: 0 some"
        };
        assert!(
            both.native.text().contains(wanted),
            "{}",
            both.native.text()
        );
    }
}

#[test]
fn threads_that_begin_in_a_sandbox_are_recorded() {
    for artifact in in_turn(["sandbox_threads", "sandbox_threads_static"]) {
        for how in ["option", "number", "itself"] {
            let both = ending("sandbox_threads", artifact, &[how], 23);
            // The program enters it unseen before the runtime would make a system call: at the fork.
            let is_told = both.own_lines.join("\n").contains("is in a sandbox");
            assert_eq!(is_told, how == "itself", "{artifact} {how}");
            let threads = "SELECT count(*) FROM threads";
            assert_eq!(both.recording.number(threads), 5, "{artifact} {how}");
        }
    }
}

const SANDBOX_FIRST: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) {
  char *p = malloc(n);
  memset(p, 1, n);
  int sum = 0;
  for (int i = 0; i < n; i++)
    sum += p[i];
  free(p);
  return sum;
}
int main(void) {
  // Its allocator may ask for memory, but not for random numbers.
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_brk, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    return 9;
  int sum = 0;
  for (int i = 1; i < 100; i++)
    sum += work(i);
  char text[32];
  (void)!write(1, text, snprintf(text, sizeof text, "%d\n", sum));
  _exit(3);
}
"#;

/// docs/transparency.md: only where Frida loads the runtime, the C library's allocator is prepared before the program begins.
#[test]
fn a_sandbox_before_the_first_malloc_ends_a_program_as_without_recording() {
    let dynamic = &["-g", "-O1"][..];
    for (name, flags, frida, natively, recorded) in [
        ("first", dynamic, "0", Status::Signal(31), 128 + 31),
        ("first-by-frida", dynamic, "1", Status::Signal(31), 3),
        (
            "first-static",
            &["-g", "-O1", "-static"],
            "0",
            Status::Code(3),
            3,
        ),
    ] {
        let scratch = Scratch::new(&format!("sandbox-{name}"));
        let program = e2e::compiled(&scratch, "app.c", SANDBOX_FIRST, flags);
        let program = Program::new(program, scratch.path()).env("HINDSIGHT_FRIDA", frida);
        let native = program.run();
        assert_eq!(native.status, natively, "{name}");
        let ended = Hindsight::record_command(&scratch, "app", &[], &program).run();
        assert_eq!(
            ended.status,
            Status::Code(recorded),
            "{name}: {}",
            ended.errors()
        );
        let recording = e2e::Recording::new(scratch.join("app.hindsight"));
        if recorded == 3 {
            assert_eq!(ended.text(), "4950\n", "{name}");
            let calls = "SELECT count(*) FROM calls WHERE function = 'work' AND NOT unwound";
            assert_eq!(recording.number(calls), 99, "{name}");
        } else {
            assert_eq!(ended.text(), native.text(), "{name}");
        }
        assert_eq!(recording.command("check", &[]).status, Status::Code(0));
    }
}

#[test]
fn a_thread_in_strict_mode_is_recorded_until_then() {
    for how in ["option", "number", "itself", "unknown"] {
        let scratch = Scratch::new(&format!("strict-{how}"));
        let path = fixture_artifact("strict_thread", "strict_thread");
        let program = Program::new(path, scratch.path()).args([how]);
        let native = program.run();
        let (recorded, recording) = Hindsight::record(&scratch, &[], &program);
        assert_eq!(native.text(), recorded.text(), "{how}");
        assert_eq!(native.status.as_shell_code(), 24, "{how}");
        assert_eq!(recorded.status.as_shell_code(), 24, "{how}");
        let calls = |name: &str| recording.calls_of(name);
        assert_eq!(calls("after"), 100, "{how}");
        let before = if how == "unknown" { 0 } else { 100 };
        assert_eq!(calls("before"), before, "{how}");
        // At the first call it is noticed.
        assert!(calls("meanwhile") <= 1, "{how}");
        let missing = "SELECT count(*) FROM events WHERE kind IN ('gap', 'warning')";
        assert!(recording.number(missing) > 0, "{how}");
        let check = recording.command("check", &[]);
        assert_eq!(check.status.as_shell_code(), 0, "{how}: {}", check.text());
    }
}

/// By a function of the C library, which the runtime sees, and by a direct system call, which it does not: also in a program that
/// handles SIGSEGV itself.
#[test]
fn a_program_that_forbids_the_time_is_recorded_until_then_and_from_when_it_may_be_read() {
    for args in [&[][..], &["itself"], &["itself", "handled"]] {
        assert_no_time("no_time", args);
        assert_no_time("no_time_static", args);
    }
}

fn assert_no_time(artifact: &str, args: &[&str]) {
    let scratch = Scratch::new(&format!("{artifact}-{}", args.concat()));
    let path = fixture_artifact("no_time", artifact);
    let program = Program::new(path, scratch.path()).args(args);
    let native = program.run();
    let (recorded, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(native.text(), recorded.text());
    assert_eq!(native.status.as_shell_code(), 22);
    assert_eq!(recorded.status.as_shell_code(), 22);
    assert!(
        recorded.errors().contains("PR_SET_TSC"),
        "{}",
        recorded.errors()
    );
    let calls = |name: &str| recording.calls_of(name);
    assert_eq!(
        (calls("before"), calls("meanwhile"), calls("after")),
        (100, 0, 100)
    );
    let gaps = recording.rows("SELECT lost, reason FROM gaps");
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert_eq!(gaps[0]["reason"], "time stamp counter forbidden");
    assert!(gaps[0]["lost"].is_null(), "{gaps:?}");
    let warnings = recording
        .number("SELECT count(*) FROM events WHERE kind = 'warning' AND text LIKE '%PR_SET_TSC%'");
    assert_eq!(warnings, 1);
    assert_eq!(recording.command("check", &[]).status.as_shell_code(), 0);
}

/// The C code is recorded; for the Go code the recording says why it is not.
#[test]
fn go_that_c_calls_runs_the_same() {
    for artifact in in_turn(["linked", "archive", "stripped/linked"]) {
        let both = ending("go_library", artifact, &[], 19);
        let refused =
            "SELECT count(*) FROM probes WHERE function = 'main.deep' AND reason LIKE '%it is Go%'";
        let wanted = i64::from(!artifact.starts_with("stripped"));
        assert_eq!(both.recording.number(refused), wanted, "{artifact}");
    }
    // Without symbols nothing of it is recorded.
    let scratch = Scratch::new("stripped-archive");
    let archive = fixture_artifact("go_library", "stripped/archive");
    let program = Program::new(archive, scratch.path()).ending(19);
    let native = program.run();
    let (recorded, _) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(recorded.status, native.status, "{}", recorded.errors());
    assert_eq!(recorded.text(), native.text());
}

#[test]
fn go_that_c_loads_runs_the_same() {
    for library in in_turn(["libsum.so", "stripped/libsum.so"]) {
        let library = fixture_artifact("go_library", library);
        let library = library.to_str().expect("paths of tests are text");
        let _ = ending("go_library", "loads", &[library], 19);
    }
}

/// It may use as much as its own limit; the same applies to its children and after exec.
#[test]
fn a_program_that_limits_its_memory_goes_on() {
    for artifact in in_turn(["memory_limits", "memory_limits_static"]) {
        for resource in ["data", "space"] {
            let both = ending("memory_limits", artifact, &[resource], 30);
            let text = both.native.text();
            assert!(text.contains("small 1, large 0"), "{text}");
        }
    }
}

/// The shell's limits apply to the program, but not to the recorder's reservations in it. A limit that may not be raised is
/// refused.
#[test]
fn a_program_whose_memory_is_limited_is_recorded() {
    for artifact in in_turn(["memory_limits", "memory_limits_static"]) {
        for limit in ["-S -v 4000000", "-S -d 300000", "-d 300000"] {
            assert_limited(artifact, limit);
        }
    }
}

/// The same program natively, recorded, and under control of a daemon that has the limit too.
fn assert_limited(artifact: &str, limit: &str) {
    let path = fixture_artifact("memory_limits", artifact);
    let path = path.to_str().expect("paths of tests are text");
    let live = Live::new(&format!("{artifact}{}", limit.replace(' ', "")));
    let line = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    let limited = |program: Program| program.wrapped(Path::new("/bin/sh"), ["-c", &line]).run();
    let native = limited(Program::new(path, live.scratch.path()).args(["show"]));
    assert_eq!(native.status.as_shell_code(), 30, "{}", native.errors());
    let target = live.scratch.join("rec");
    let target = target.to_str().expect("paths of tests are text");
    let words = ["record", "-o", target, path, "show"];
    let recorded = limited(Hindsight::command(&live.scratch, &words));
    let errors = recorded.errors();
    assert_eq!(recorded.text(), native.text(), "{limit}: {errors}");
    assert_eq!(recorded.status.as_shell_code(), 30, "{limit}");
    let words = ["start", "--json", "--stop-on-entry", path, "show"];
    let started = limited(live.command(&words));
    let report: serde_json::Value = serde_json::from_str(&started.text()).expect("JSON");
    live.keep(&report["result"]);
    assert_eq!(live.run_to_end(), 30, "{limit}");
    let output = live.command(&["output"]).run();
    assert_eq!(output.text(), native.text(), "{limit}: under control");
}

/// Recorded and under control: refused with a reason, before any code of the program has run.
fn assert_refused(name: &str, program: &Path, why: &str, next: &str) {
    let live = Live::new(name);
    let path = program.to_str().expect("paths of tests are text");
    for verb in ["record", "start"] {
        let ended = live.command(&[verb, path]).run();
        assert_eq!(
            ended.status.as_shell_code(),
            4,
            "{verb}: {}",
            ended.errors()
        );
        assert!(ended.errors().contains(why), "{verb}: {}", ended.errors());
        assert!(ended.errors().contains(next), "{verb}: {}", ended.errors());
        assert_eq!(ended.text(), "", "{verb}");
        let left = fs::read_dir(live.scratch.path()).expect("the test's folder");
        let names: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
        let is_recording =
            |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".hindsight");
        assert!(!names.iter().any(is_recording), "{verb}: {names:?}");
    }
    let (_, status) = live.response(&["status"]);
    let sessions = status["result"]["sessions"].as_array().map_or(0, Vec::len);
    assert_eq!(sessions, 0, "{status:#}");
}

/// ThreadSanitizer keeps its own memory where return addresses would go.
#[test]
fn thread_sanitizer_is_refused_before_anything_runs() {
    let scratch = Scratch::new("thread-sanitizer-native");
    let program = fixture_artifact("sanitized", "thread");
    let native = Program::new(&program, scratch.path()).run();
    assert_eq!(native.status.as_shell_code(), 25);
    assert_refused(
        "thread-sanitizer",
        &program,
        "ThreadSanitizer",
        "build it without",
    );
}

/// If only a library of the program has it, if its symbols were stripped, and with clang's.
#[test]
fn sanitizers_are_found_wherever_they_are() {
    for (artifact, sanitizer) in [
        ("thread_library", "ThreadSanitizer"),
        ("thread_stripped", "ThreadSanitizer"),
        ("memory", "MemorySanitizer"),
        ("memory_stripped", "MemorySanitizer"),
        ("flow", "DataFlowSanitizer"),
        ("flow_stripped", "DataFlowSanitizer"),
    ] {
        let program = fixture_artifact("sanitized", artifact);
        assert_refused(artifact, &program, sanitizer, "build it without");
    }
}

/// They are refused in a process that runs already, which goes on.
#[test]
fn sanitizers_are_refused_in_running_processes() {
    for (artifact, sanitizer) in [
        ("thread_waits", "ThreadSanitizer"),
        ("memory_waits", "MemorySanitizer"),
    ] {
        let live = Live::new(artifact);
        let program = fixture_artifact("sanitized", artifact);
        let running = Program::new(&program, live.scratch.path()).start();
        let pid = running.pid().to_string();
        wait_until("the program", || {
            let exe = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
            (exe == program.canonicalize().ok()?).then_some(())
        });
        for words in [&["record", "--attach", &pid][..], &["attach", &pid]] {
            let ended = live.command(words).run();
            assert_eq!(ended.status, Status::Code(4), "{}", ended.errors());
            assert!(ended.errors().contains(sanitizer), "{}", ended.errors());
        }
        running.signal(Signal::TERM);
        assert_eq!(running.finish().status, Status::Signal(15), "{artifact}");
    }
}

/// It knows the sanitizers by their texts, so it has these too.
#[test]
fn hindsight_itself_is_recorded() {
    let scratch = Scratch::new("itself");
    let program = Program::new(Hindsight::path(), scratch.path()).args(["--version"]);
    let _ = Comparison::of_program(scratch, &program, &["--snapshot", "never"], Nesting::Proper);
}

/// It would print a line.
#[test]
fn a_32_bit_program_is_refused_before_anything_runs() {
    let program = fixture_artifact("narrow", "narrow");
    let header = fs::read(&program).expect("a program");
    assert_eq!(header[..5], *b"\x7fELF\x01", "a 32-bit ELF file");
    assert_refused(
        "narrow",
        &program,
        "32-bit ELF file",
        "only 64-bit little-endian programs can be used",
    );
}

/// The C library would have the shell run what the kernel cannot execute.
#[test]
fn an_elf_file_that_is_no_program_for_this_machine_is_refused() {
    let fib = fs::read(fixture_artifact("fib", "fib")).expect("a program");
    let with = |at: usize, byte: u8| {
        let mut bytes = fib.clone();
        bytes[at] = byte;
        bytes
    };
    for (name, bytes, why) in [
        ("machine", with(18, 183), "it is an ELF file for AArch64"),
        ("narrow", with(4, 1), "32-bit ELF file"),
        ("object", with(16, 1), "it is an object file"),
        ("headers", with(56, 0), "its ELF header is damaged"),
        ("short", fib[..30].to_vec(), "its ELF header is damaged"),
    ] {
        let scratch = Scratch::new(&format!("no-program-{name}"));
        let program = scratch.join("app");
        fs::write(&program, bytes).expect("it is written");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
        assert_refused(&format!("no-program-{name}-live"), &program, why, "");
        let full = Hindsight::command(&scratch, &["record", "--full", "./app"]).run();
        assert_eq!(full.status, Status::Code(4), "{}", full.errors());
        assert!(full.errors().contains(why), "{}", full.errors());
        let left = fs::read_dir(scratch.path()).expect("the test's folder");
        assert_eq!(left.count(), 1, "{name}");
    }
}

#[test]
fn a_program_with_address_sanitizer_runs_the_same() {
    let scratch = Scratch::new("address-sanitizer");
    let program = Program::new(fixture_artifact("sanitized", "address"), scratch.path()).ending(25);
    let _ = Comparison::of_program(scratch, &program, &["--snapshot", "never"], Nesting::Proper);
}

/// Its C code is recorded. For its own functions the recording says why they are not.
#[test]
fn go_with_c_in_it_runs_the_same() {
    for artifact in in_turn(["go_cgo", "go_cgo_pie"]) {
        let both = ending("go_cgo", artifact, &[], 24);
        let refused =
            "SELECT count(*) FROM probes WHERE function = 'main.deep' AND reason LIKE '%it is Go%'";
        assert_eq!(both.recording.number(refused), 1, "{artifact}");
    }
}

/// Everything in it, with unchanged output and status.
#[test]
fn nesting_is_kept_where_the_c_library_is_recorded_too() {
    let scratch = Scratch::new("whole-fib");
    let program = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["10"]);
    let _ = Comparison::of_program(scratch, &program, &["-f", "module:*"], Nesting::Proper);
}

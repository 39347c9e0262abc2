//! Goal: recording needs nothing that is fetched, and Frida loads the runtime where it is asked for, with the same results.
//! Method: a recording with an empty cache and without python3; fixtures as in `behaviour`, and an attach, with
//! `HINDSIGHT_FRIDA=1`.

use std::fs;

use e2e::{
    Comparison, Hindsight, Nesting, Program, Recording, Scratch, Status, Steady, compiled,
    fixture_artifact, wait_until,
};

#[test]
fn recording_needs_no_python_and_fetches_nothing() {
    let scratch = Scratch::new("bare");
    let cache = scratch.join("cache");
    fs::create_dir(&cache).expect("the folder is writable");
    let program = Program::new(fixture_artifact("fib", "fib"), scratch.path())
        .env("PATH", scratch.path())
        .env("XDG_CACHE_HOME", &cache);
    let recording = Hindsight::recorded(&scratch, "fib", &[], &program);
    assert!(recording.number("SELECT count(*) FROM calls WHERE function = 'fib'") > 100);
    let kept: Vec<String> = fs::read_dir(cache.join("hindsight"))
        .expect("the runtime is there")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.contains("frida"))
        .collect();
    assert_eq!(kept, Vec::<String>::new());
    assert_eq!(frida_of(&recording), None);
}

/// Its own functions have names of the C library's, and do something else.
const NAMESAKES: &str = r#"
#include <stdio.h>
#define OWN __attribute__((noinline, noclone)) static
OWN int prctl(int n) { volatile int kept = n; return kept * 3; }
OWN int syscall(int n) { volatile int kept = n; return kept - 7; }
OWN int mlockall(const char *text) { volatile int kept = text[0]; return kept; }
int main(void) {
  int sum = 0;
  for (int i = 0; i < 10; i++) sum += prctl(i) + syscall(i) + mlockall("a");
  printf("%d\n", sum);
  return 0;
}
"#;

#[test]
fn functions_with_names_of_the_c_library_are_the_programs_own() {
    let scratch = Scratch::new("namesakes");
    let path = compiled(&scratch, "app.c", NAMESAKES, &["-g", "-O1"]);
    let program = Program::new(path, scratch.path());
    let (recorded, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(recorded.text(), program.run().text());
    let sql = "SELECT count(*) FROM calls WHERE function IN ('prctl', 'syscall', 'mlockall') AND ret IS NOT NULL";
    assert_eq!(recording.number(sql), 30);
}

#[test]
fn with_frida_programs_run_the_same() {
    let with_frida = |program: Program| program.env("HINDSIGHT_FRIDA", "1");
    for (fixture, artifact, args) in [
        ("fib", "fib", &[][..]),
        ("cpp_exceptions", "cpp_exceptions_O2", &[]),
        ("longjmp", "longjmp_O2", &[]),
        ("thread_ends", "thread_ends_cpp", &[]),
        ("many_threads", "many_threads", &["2000", "1"]),
        ("spawn", "spawn", &[]),
        ("plugin", "plugin_host", &[]),
    ] {
        let both = Comparison::of_with(fixture, artifact, args, Nesting::Proper, with_frida);
        assert!(frida_of(&both.recording).is_some(), "{artifact}");
    }
}

#[test]
fn frida_enters_a_running_program_and_leaves_it() {
    let scratch = Scratch::new("frida-attach");
    let steady = Steady::new(&scratch);
    let running = steady.unhurried(&scratch).start();
    wait_until("the program's work", || (steady.rounds() > 0).then_some(()));
    let pid = running.pid().to_string();
    let ended = Hindsight::command(
        &scratch,
        &["record", "-o", "rec", "--attach", &pid, "--for", "1s"],
    )
    .env("HINDSIGHT_FRIDA", "1")
    .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let recording = Recording::new(scratch.join("rec.hindsight"));
    assert!(recording.number("SELECT count(*) FROM calls WHERE function = 'churn'") > 1_000);
    assert!(frida_of(&recording).is_some());
    steady.stop();
    assert_eq!(running.finish().text(), "rounds done, wrong 0\n");
}

/// The version of Frida that a recording says it was made with.
fn frida_of(recording: &Recording) -> Option<String> {
    let info = recording.command("info", &["--json"]).result();
    info["frida_version"].as_str().map(str::to_owned)
}

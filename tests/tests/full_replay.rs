//! Goal: `check --replay` finds a recording of every instruction as it was recorded, and says so; it refuses others. Method: programs of
//! the system and small ones, with timers and threads, are recorded several times and run again; `WHOLE=1` does it
//! three times as often.

use std::fs;

use e2e::{
    Ended, Hindsight, Program, Recording, Scratch, Status, compiled, fixture_artifact, share,
};
use serde_json::Value;

/// Runs a recording again; returns what `check` says of that.
fn replayed(recording: &Recording) -> Value {
    let checked = recording.command("check", &["--replay", "--json"]);
    assert_eq!(checked.status, Status::Code(0), "{}", checked.text());
    let said = checked.result();
    let replay = &said["replay"];
    assert_eq!(
        (&replay["whole"], &replay["contradiction"]),
        (&Value::Bool(true), &Value::Null),
        "{replay:#}"
    );
    replay.clone()
}

/// Records a program so many times, or a third as often, and runs each recording again.
fn as_recorded(name: &str, program: &str, args: &[&str], times: usize) {
    for _ in 0..share(times) {
        once_as_recorded(name, &["--full"], program, args);
    }
}

/// The same once; returns how it ended, and what `check` says.
fn once_as_recorded(name: &str, options: &[&str], program: &str, args: &[&str]) -> (Ended, Value) {
    let scratch = Scratch::new(name);
    let program = Program::new(program, scratch.path()).args(args);
    let native = program.run();
    let (ended, recording) = Hindsight::record(&scratch, options, &program);
    assert_eq!(same(&ended), same(&native), "{name}: {}", ended.errors());
    let replay = replayed(&recording);
    let compared = |what: &str| replay[what].as_u64().unwrap_or(0);
    assert!(compared("instructions") > 10_000, "{name}: {replay:#}");
    assert!(compared("registers_compared") > 10, "{name}: {replay:#}");
    (ended, replay)
}

fn same(ended: &Ended) -> (String, Status) {
    (ended.text(), ended.status)
}

fn of_source(name: &str, source: &str, times: usize) {
    let folder = Scratch::new(&format!("{name}_program"));
    let flags = ["-O1", "-g", "-pthread"];
    let program = compiled(&folder, "program.c", source, &flags);
    as_recorded(name, program.to_str().expect("a path in text"), &[], times);
}

#[test]
fn a_program_is_as_recorded_and_others_are_refused() {
    as_recorded(
        "replay_fib",
        fixture_artifact("fib", "fib").to_str().expect("text"),
        &["10"],
        1,
    );
    let scratch = Scratch::new("replay_refused");
    let program = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["10"]);
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let refused = recording.command("check", &["--replay"]);
    assert_eq!(refused.status, Status::Code(2), "{}", refused.text());
    let errors = refused.errors();
    assert!(errors.contains("record --full"), "{errors}");
}

#[test]
fn interpreters_and_databases_are_as_recorded() {
    let sql = "CREATE TABLE t(a,b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<3000) \
               INSERT INTO t SELECT i, i*7919%1000 FROM n; CREATE INDEX x ON t(b); SELECT b, count(*) FROM t GROUP BY b LIMIT 5;";
    as_recorded("replay_sqlite", "/usr/bin/sqlite3", &[":memory:", sql], 3);
    let lua = "local t={} for i=1,20000 do t[#t+1]=(i*7919)%10007 end table.sort(t) print(t[1],t[#t],string.format('%.3f',math.sin(1)))";
    as_recorded("replay_lua", "/usr/bin/lua5.4", &["-e", lua], 3);
    let python = "import json,re; print(len(json.dumps([{'a':i} for i in range(500)])), re.sub('a+','b','caaat'))";
    as_recorded(
        "replay_python",
        "/usr/bin/python3",
        &["-S", "-c", python],
        2,
    );
}

#[test]
fn tools_are_as_recorded() {
    let scratch = Scratch::new("replay_lines");
    let file = scratch.path().join("lines");
    let lines: Vec<String> = (0..20_000u64)
        .map(|i| (i * 7919 % 10_007).to_string())
        .collect();
    fs::write(&file, lines.join("\n")).expect("the folder can be written");
    let file = file.to_str().expect("a path in text");
    as_recorded("replay_gzip", "/bin/gzip", &["-9", "-c", "-n", file], 3);
    as_recorded("replay_sort", "/usr/bin/sort", &["-n", file], 3);
}

/// The last signals come while the program is about to end.
#[test]
fn a_timer_that_never_stops_is_as_recorded() {
    let source = "#include <signal.h>\n#include <stdio.h>\n#include <sys/time.h>\n#include <unistd.h>\n\
        static volatile long ticks; static void tick(int s) { (void)s; ticks++; }\n\
        int main(void) { struct sigaction a = {.sa_handler = tick, .sa_flags = SA_RESTART}; sigaction(SIGALRM, &a, 0);\n\
        struct itimerval often = {{0, 2000}, {0, 2000}}; setitimer(ITIMER_REAL, &often, 0); volatile long sum = 0;\n\
        for (int i = 0; i < 300000; i++) sum += i; printf(\"%ld %d\\n\", sum, ticks >= 0); fflush(stdout); _exit(3); }\n";
    of_source("replay_timer", source, 20);
}

#[test]
fn four_threads_are_as_recorded() {
    let source = "#include <pthread.h>\n#include <stdio.h>\n#include <time.h>\n\
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; static long sum;\n\
        static void *work(void *n) { for (long i = 0; i < 3000; i++) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);\n\
        pthread_mutex_lock(&lock); sum += i * (long)n; pthread_mutex_unlock(&lock); } return 0; }\n\
        int main(void) { pthread_t t[4]; for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)(i + 1));\n\
        for (int i = 0; i < 4; i++) pthread_join(t[i], 0); printf(\"%ld\\n\", sum); return 0; }\n";
    of_source("replay_threads", source, 8);
}

/// What unwinds, and what only some threads do.
#[test]
fn panics_of_rust_in_four_threads_are_as_recorded() {
    let source = "use std::{panic, process, thread};\n\
        fn work(n: u64) -> u64 { let _own = vec![n; 100]; if n % 2 == 1 { panic!(\"odd {}\", n); } (0..10_000).map(|i| i ^ n).sum() }\n\
        fn main() {\n\
        let all: Vec<_> = (0..4).map(|n| thread::spawn(move || work(n))).collect();\n\
        let mut odd = 0;\n\
        for one in all { match one.join() { Ok(sum) => println!(\"{sum}\"), Err(why) => { odd += 1; println!(\"{}\", why.downcast_ref::<String>().unwrap()); } } }\n\
        let caught = panic::catch_unwind(|| work(7)).is_err();\n\
        process::exit(odd + 3 * i32::from(caught)); }\n";
    let folder = Scratch::new("replay_panics_program");
    let program = compiled(&folder, "panics.rs", source, &["-g", "-O"]);
    let program = program.to_str().expect("a path in text");
    for _ in 0..share(4) {
        let (ended, _) = once_as_recorded("replay_panics", &["--full"], program, &[]);
        assert_eq!(ended.status, Status::Code(5), "{}", ended.errors());
        assert!(ended.text().contains("odd 1\n"), "{}", ended.text());
    }
}

/// A thread is cancelled in a call, at a point of its own, and in the middle of a loop.
#[test]
fn cancelled_threads_are_as_recorded() {
    let source = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <semaphore.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        static int left; static sem_t ready;\n\
        static void leave(void *n) { left += (int)(long)n; }\n\
        static void *waits(void *n) { pthread_cleanup_push(leave, n); sem_post(&ready); for (;;) pause(); pthread_cleanup_pop(0); return 0; }\n\
        static void *tests(void *n) { pthread_cleanup_push(leave, n); sem_post(&ready); for (;;) pthread_testcancel(); pthread_cleanup_pop(0); return 0; }\n\
        static void *spins(void *n) { int old; pthread_cleanup_push(leave, n); pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);\n\
        sem_post(&ready); for (volatile long i = 0;; i++) {} pthread_cleanup_pop(0); return 0; }\n\
        int main(void) { void *(*all[])(void *) = {waits, tests, spins}; int cancelled = 0; sem_init(&ready, 0, 0);\n\
        for (long i = 0; i < 30; i++) { pthread_t t; void *how; pthread_create(&t, 0, all[i % 3], (void *)(i + 1)); sem_wait(&ready);\n\
        pthread_cancel(t); pthread_join(t, &how); cancelled += how == PTHREAD_CANCELED; }\n\
        printf(\"%d %d\\n\", cancelled, left); return cancelled; }\n";
    let folder = Scratch::new("replay_cancelled_program");
    let program = compiled(&folder, "cancelled.c", source, &["-O1", "-g", "-pthread"]);
    let program = program.to_str().expect("a path in text");
    for _ in 0..share(4) {
        let (ended, _) = once_as_recorded("replay_cancelled", &["--full"], program, &[]);
        assert_eq!(ended.text(), "30 465\n", "{}", ended.errors());
    }
}

/// Node compiles this loop while it runs; some of its threads compile. Its own calls are not looked for: there are tens of millions.
#[test]
fn code_that_a_compiler_makes_meanwhile_is_as_recorded() {
    let script = "function mix(a, b) { return (a * 31 + b) | 0; } let sum = 0; \
        for (let i = 0; i < 300000; i++) sum = mix(sum, i % 7); \
        const lines = Array.from({length: 2000}, (_, i) => String(i * 7919 % 1009)).sort(); console.log(sum, lines[5], /9+/.exec(lines[1999])?.[0]);";
    let options = ["--full", "-x", "*"];
    let (_, replay) = once_as_recorded("replay_node", &options, "/usr/bin/node", &["-e", script]);
    assert!(
        replay["instructions"].as_u64() > Some(100_000_000),
        "{replay:#}"
    );
}

/// All of it is compared at the end, and any byte is known at any moment.
#[test]
fn a_gigabyte_is_as_recorded() {
    let source = "#include <stdio.h>\n#include <sys/mman.h>\nstatic const long many = 1000000000L / 4096; unsigned char *all;\n\
        __attribute__((noinline)) void half(void) { __asm__ volatile(\"\"); }\n\
        int main(void) { all = mmap(0, many * 4096, 3, 34, -1, 0); for (long i = 0; i < many; i++) { all[i * 4096] = i % 251;\n\
        if (i == many / 2) half(); } long sum = 0; for (long i = 0; i < many; i++) sum += all[i * 4096]; printf(\"%ld\\n\", sum); return 0; }\n";
    let scratch = Scratch::new("replay_big");
    let program = compiled(&scratch, "big.c", source, &["-O1", "-g"]);
    let program = Program::new(program, scratch.path());
    let native = program.run();
    let (ended, recording) = Hindsight::record(&scratch, &["--full"], &program);
    assert_eq!(same(&ended), same(&native), "{}", ended.errors());
    let compared = replayed(&recording)["memory_bytes_compared"].as_u64();
    assert!(compared >= Some(999_997_440), "{compared:?}");
    // 122,070 % 251 = 84, and the page behind it is still empty there.
    let seq = recording.number("SELECT start_seq FROM calls WHERE function = 'half'");
    let known = recording.row(&format!(
        "SELECT value({seq}, 'all[499998720]') AS last, value({seq}, 'all[500002816]') AS next"
    ));
    let text = |name: &str| known[name].as_str().unwrap_or_default().to_owned();
    assert!(text("last").starts_with("84"), "{known:?}");
    assert!(text("next").starts_with('0'), "{known:?}");
}

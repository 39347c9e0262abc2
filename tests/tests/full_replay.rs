//! Goal: `check --replay` finds a recording of every instruction as it was recorded, and says so; it refuses others. Method: programs of
//! the system and small ones, with timers and threads, are recorded several times and run again.

use std::fs;

use e2e::{Ended, Hindsight, Program, Recording, Scratch, Status, compiled, fixture_artifact};
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

/// Records a program so many times, and runs each recording again.
fn as_recorded(name: &str, program: &str, args: &[&str], times: usize) {
    for _ in 0..times {
        let scratch = Scratch::new(name);
        let program = Program::new(program, scratch.path()).args(args);
        let native = program.run();
        let (ended, recording) = Hindsight::record(&scratch, &["--full"], &program);
        assert_eq!(same(&ended), same(&native), "{name}: {}", ended.errors());
        let replay = replayed(&recording);
        let compared = |what: &str| replay[what].as_u64().unwrap_or(0);
        assert!(compared("instructions") > 10_000, "{name}: {replay:#}");
        assert!(compared("registers_compared") > 10, "{name}: {replay:#}");
    }
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

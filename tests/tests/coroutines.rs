//! Goal: calls of coroutines have the callers that they had, even if their stacks are neighbours. Method: two tasks with
//! adjacent stacks take turns by swapcontext; the caller of each call is known from the source.

use std::path::Path;

use e2e::{Hindsight, Program, Scratch, Status, compiled, fixture_artifact, fixture_source};

const CALLERS: &str = "SELECT c.function || ' < ' || p.function AS pair, count(*) AS n, \
                       count(*) FILTER (WHERE c.unwound) AS unwound, count(*) FILTER (WHERE c.open_at_end) AS open \
                       FROM calls c JOIN calls p ON c.parent = p.start_seq \
                       GROUP BY pair ORDER BY pair";

/// One row a caller: its calls, those that were left, those that were open at the end.
fn callers(scratch: &Scratch, program: &Path, options: &[&str]) -> Vec<String> {
    let program = Program::new(program, scratch.path());
    let (ended, recording) = Hindsight::record(scratch, options, &program);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert_eq!(ended.text(), "102\n");
    let rows = recording.rows(CALLERS);
    let text = |row: &e2e::Row| {
        let count = |name: &str| row[name].as_i64().expect("a number");
        let pair = row["pair"].as_str().expect("a text");
        format!(
            "{pair}: {} {} {}",
            count("n"),
            count("unwound"),
            count("open")
        )
    };
    rows.iter().map(text).collect()
}

/// The main function calls nothing before it resumes the first task, nor the first before it resumes the second. The
/// second's last turn never ends.
const EXPECTED: [&str; 8] = [
    "add < turn_first: 6 0 0",
    "add < turn_second: 5 0 0",
    "make < run_both: 2 0 0",
    "run_both < main: 1 0 0",
    "run_first < run_both: 1 0 0",
    "run_second < turn_first: 1 0 1",
    "turn_first < run_first: 3 0 0",
    "turn_second < run_second: 3 0 1",
];

#[test]
fn tasks_on_adjacent_stacks_have_their_own_callers() {
    let scratch = Scratch::new("coroutines");
    let program = fixture_artifact("coroutines", "neighbours");
    assert_eq!(callers(&scratch, &program, &[]), EXPECTED);
}

#[test]
fn so_they_have_with_every_instruction() {
    let scratch = Scratch::new("coroutines-full");
    let program = fixture_artifact("coroutines", "neighbours");
    assert_eq!(callers(&scratch, &program, &["--full"]), EXPECTED);
}

#[test]
fn so_have_those_of_a_static_program() {
    let scratch = Scratch::new("coroutines-static");
    let source = std::fs::read_to_string(fixture_source("coroutines").join("neighbours.c"));
    let flags = ["-g", "-O1", "-fno-inline", "-static"];
    let program = compiled(&scratch, "neighbours.c", &source.unwrap(), &flags);
    assert_eq!(callers(&scratch, &program, &[]), EXPECTED);
}

/// Two threads take turns with one coroutine, in an order that semaphores fix.
const MOVED: &str = r#"
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <ucontext.h>
#define NOINLINE __attribute__((noinline))
static char stack[65536];
static ucontext_t task, back;
static sem_t turns[2];
NOINLINE int rest(int n) { swapcontext(&task, &back); return n * 2; }
NOINLINE int work(void) {
  int sum = 0;
  for (int n = 1; n <= 5; n++) sum += rest(n);
  return sum;
}
static void body(void) { printf("%d\n", work()); }
NOINLINE int resume(int n) { swapcontext(&back, &task); return n; }
static void *thread(void *own) {
  long n = (long)own;
  for (int turn = 0; turn < 3; turn++) {
    sem_wait(&turns[n]);
    resume(turn);
    sem_post(&turns[!n]);
  }
  return NULL;
}
int main(void) {
  sem_init(&turns[0], 0, 1);
  sem_init(&turns[1], 0, 0);
  getcontext(&task);
  task.uc_stack.ss_sp = stack;
  task.uc_stack.ss_size = sizeof stack;
  task.uc_link = &back;
  makecontext(&task, body, 0);
  pthread_t threads[2];
  for (long n = 0; n < 2; n++) pthread_create(&threads[n], NULL, thread, (void *)n);
  for (int n = 0; n < 2; n++) pthread_join(threads[n], NULL);
  return 0;
}
"#;

#[test]
fn a_coroutine_that_moves_between_threads_keeps_its_calls() {
    for (name, options) in [("moved", &[][..]), ("moved-full", &["--full"])] {
        let scratch = Scratch::new(name);
        let path = compiled(&scratch, "moved.c", MOVED, &["-g", "-O1", "-pthread"]);
        let program = Program::new(path, scratch.path());
        let (ended, recording) = Hindsight::record(&scratch, options, &program);
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        assert_eq!(ended.text(), "30\n");
        let rows = recording.rows(
            "SELECT c.args, c.ret, p.function AS caller FROM calls c JOIN calls p ON c.parent = p.start_seq \
             WHERE c.function = 'rest' AND NOT c.unwound AND NOT c.open_at_end ORDER BY c.start_seq",
        );
        let text = |row: &e2e::Row| {
            let column = |name: &str| row[name].to_string().replace('"', "");
            [column("args"), column("ret"), column("caller")].join(" ")
        };
        let expected: Vec<String> = (1..=5).map(|n| format!("n={n} {} work", n * 2)).collect();
        assert_eq!(
            rows.iter().map(text).collect::<Vec<_>>(),
            expected,
            "{name}"
        );
        let ret = recording.rows("SELECT ret FROM calls WHERE function = 'work'");
        assert_eq!(ret[0]["ret"].to_string().replace('"', ""), "30", "{name}");
    }
}

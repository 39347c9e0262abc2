//! Goal: a function that was called for the user and does not return can be abandoned at once; the thread is then where it was,
//! and the program goes on as if nothing had been called. Method: functions that never return, called in threads that
//! stand at a breakpoint and in a system call; the program's results say whether it was disturbed.

use e2e::{Live, Scratch, Signal, Status, compiled, wait_until};
use serde_json::{Value, json};

const PROGRAM: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
volatile int entered, may_write;
static int ends[2];
int spin(int by) { entered += by; write(1, "in\n", 3); for (;;); return by; }
int doze(int by) { entered += by; write(1, "in\n", 3); for (;;) pause(); return by; }
static int inner(int n) {
  int twice = n * 2;
  return twice + 1; /* inner */
}
static void *writes(void *of) {
  while (!may_write) usleep(1000);
  write(ends[1], "x", 1);
  return of;
}
int main(void) {
  int sum = inner(20) + 1;
  pthread_t thread;
  char byte = 0;
  pipe(ends);
  pthread_create(&thread, NULL, writes, NULL);
  long got = read(ends[0], &byte, 1);
  pthread_join(thread, NULL);
  printf("sum %d got %ld %c entered %d\n", sum, got, byte, entered);
  return 0;
}
"#;

fn started(name: &str) -> (Live, Scratch) {
    let scratch = Scratch::new(name);
    let app = compiled(&scratch, "app.c", PROGRAM, &["-O0", "-g", "-pthread"]);
    let at = PROGRAM
        .lines()
        .position(|line| line.contains("/* inner */"));
    let at = format!("app.c:{}", at.expect("a line of the program") + 1);
    (Live::started(name, &["--break", &at], &app, &[]), scratch)
}

/// How a message tells where a function stood: each of them is on one line.
fn stood(function: &str) -> String {
    let defined = format!("int {function}(");
    let line = PROGRAM.lines().position(|line| line.starts_with(&defined));
    let line = line.expect("a line of the program") + 1;
    format!("/app.c:{line} (0x")
}

fn assert_told_where(message: &str, function: &str) {
    assert!(message.contains("abandoned after"), "{message}");
    let place = message.split(';').next().unwrap_or_default();
    let (_, place) = place.split_once(" ms, in ").expect("the place");
    // A function of the C library has no lines: then its caller follows.
    let place = place
        .split_once(", called by ")
        .map_or(place, |(_, caller)| caller);
    assert!(place.starts_with(&format!("{function} at /")), "{message}");
    assert!(place.contains(&stood(function)), "{message}");
}

/// Calls a function that does not return, and pauses the program while it runs. Returns the error of the call.
fn interrupted(live: &Live, function: &str) -> Value {
    let before = live.output().matches("in\n").count();
    let call = format!("{function}(2)");
    let client = live.command(&["call", "--json", &call]).start();
    wait_until("the function to run", || {
        (live.output().matches("in\n").count() > before).then_some(())
    });
    live.ask(&["pause"]);
    let ended = client.finish();
    assert_ne!(ended.status, Status::Code(0), "{}", ended.text());
    let response: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert_eq!(response["success"], false, "{response:#}");
    response["error"].clone()
}

#[test]
fn an_interrupt_ends_a_call_at_once_and_the_thread_is_where_it_was() {
    let (live, _scratch) = started("call-interrupted");
    let before = live.session()["stop"].clone();
    for (round, function) in ["spin", "doze"].into_iter().enumerate() {
        let error = interrupted(&live, function);
        assert_eq!(error["code"], "EVAL_FAILED", "{error:#}");
        let message = error["message"].as_str().expect("text");
        assert!(message.contains("interrupted"), "{message}");
        assert_told_where(message, function);
        assert_eq!(live.session()["stop"], before, "{function}");
        assert_eq!(live.print("twice"), "40", "{function}");
        let entered = ((round + 1) * 2).to_string();
        assert_eq!(live.print("entered"), entered, "what it has changed stays");
    }
    // The caller is known again.
    let finished = live.moved(&["finish"]);
    assert_eq!(finished["function"], "main", "{finished:#}");
    live.ask(&["set", "may_write", "1"]);
    assert_eq!(live.run_to_end(), 0);
    let told = live.output();
    assert!(told.ends_with("sum 42 got 1 x entered 4\n"), "{told}");
}

/// As at the prompt, Ctrl-C in a shell leaves no function running.
#[test]
fn a_client_that_is_interrupted_takes_its_call_with_it() {
    let (live, _scratch) = started("call-client-gone");
    let before = live.session()["stop"].clone();
    let client = live.command(&["call", "spin(2)"]).start();
    wait_until("the function to run", || {
        live.output().contains("in\n").then_some(())
    });
    client.signal(Signal::INT);
    let ended = client.finish();
    assert_eq!(ended.status, Status::Code(130), "{}", ended.text());
    let errors = ended.errors();
    assert!(
        errors.contains("A function that was called is abandoned"),
        "{errors}"
    );
    let stop = wait_until("the thread to be back", || {
        Some(live.session()["stop"].clone()).filter(|stop| !stop.is_null())
    });
    assert_eq!(stop, before);
    assert_eq!(live.print("twice"), "40");
    // The client has left before the call ended: the session keeps where it stood.
    let warning = wait_until("the warning", || {
        let warnings = live.session()["warnings"].clone();
        let warnings = warnings.as_array()?.iter();
        let mut texts = warnings.filter_map(|warning| warning.as_str().map(str::to_owned));
        texts.find(|text| text.starts_with("eval spin(2): "))
    });
    assert_told_where(&warning, "spin");
    live.ask(&["set", "may_write", "1"]);
    assert_eq!(live.run_to_end(), 0);
}

/// The system call that the first stop has interrupted goes on afterwards, as if there had been no call.
#[test]
fn an_interrupted_call_leaves_the_system_call_of_its_thread() {
    let (live, _scratch) = started("call-in-read");
    live.ask(&["continue", "--no-wait"]);
    // It waits in read(2) then: nothing lets the other thread write.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let paused = live.moved(&["pause"]);
    let first = json!(live.session()["pid"].as_i64().expect("a process"));
    assert_eq!(paused["thread"], first, "{paused:#}");
    let error = interrupted(&live, "doze");
    let message = error["message"].as_str().expect("text");
    assert_told_where(message, "doze");
    live.ask(&["set", "may_write", "1"]);
    assert_eq!(live.run_to_end(), 0);
    let told = live.output();
    assert!(told.ends_with("sum 42 got 1 x entered 2\n"), "{told}");
}

const WITHOUT_PROTOTYPE: &str = "volatile int sink;
__attribute__((noinline)) float half(x, n) float x; int n; { sink = n; return x / 2; }
__attribute__((noinline)) float known(float x) { sink = 1; return x / 2; }
int main(void) { return half(5.0f, 3) + known(5.0f) > 4 ? 0 : 1; }
";

#[test]
fn a_function_without_a_prototype_gets_a_double_for_its_float() {
    let scratch = Scratch::new("calls-old-style");
    let options = ["-std=gnu89", "-O2", "-g"];
    let app = compiled(&scratch, "app.c", WITHOUT_PROTOTYPE, &options);
    let live = Live::started("calls-old-style", &["--break", "*half"], &app, &[]);
    assert_eq!(live.print("x"), "5");
    for (call, result) in [
        ("half(9.0, 3)", "4.5"),
        ("half(9.0f, 3)", "4.5"),
        ("half(9, 3)", "4.5"),
        ("known(9.0)", "4.5"),
    ] {
        assert_eq!(live.ask(&["eval", call])["value"], result, "{call}");
    }
    live.moved(&["step", "--instruction"]);
    let unknown = live.ask(&["print", "x"]);
    assert!(
        unknown.to_string().contains("callers pass a double"),
        "{unknown:#}"
    );
    assert_eq!(live.run_to_end(), 0);
}

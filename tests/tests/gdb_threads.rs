//! Goal: `thread apply` says of each thread what a verb says when the thread is selected, and selects none. Method: a program whose
//! three threads stand at known places, live beside gdb and in its recording.

use std::path::PathBuf;

use e2e::{Live, Program, Scratch, compiled};
use serde_json::Value;

/// The workers wait for a lock that main holds.
const SOURCE: &str = r#"
#include <pthread.h>
#include <stdio.h>

int meeting_total = 7;
static pthread_barrier_t all;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

__attribute__ ((noinline)) void
meet (int how_often)
{
  printf ("met %d\n", how_often);
}

static void *
work (void * unused)
{
  pthread_barrier_wait (&all);
  pthread_mutex_lock (&held);
  pthread_mutex_unlock (&held);
  return unused;
}

int
main (void)
{
  pthread_t workers[2];
  pthread_barrier_init (&all, NULL, 3);
  pthread_mutex_lock (&held);
  for (int i = 0; i < 2; i++)
    pthread_create (&workers[i], NULL, work, NULL);
  pthread_barrier_wait (&all);
  meet (meeting_total);
  pthread_mutex_unlock (&held);
  for (int i = 0; i < 2; i++)
    pthread_join (workers[i], NULL);
  return 0;
}
"#;

fn program(scratch: &Scratch) -> PathBuf {
    compiled(scratch, "meeting.c", SOURCE, &["-g", "-O0", "-pthread"])
}

fn at_the_meeting(name: &str, program: &std::path::Path) -> Live {
    let live = Live::started(name, &["--stop-on-entry"], program, &[]);
    live.ask(&["break", "meet", "--all-threads"]);
    live.moved(&["continue"]);
    live
}

/// The values of a reply, one for each thread.
fn values(reply: &Value) -> Vec<String> {
    let threads = reply["threads"].as_array().expect("a list");
    let value = |of: &Value| of["result"]["value"].as_str().map(str::to_owned);
    let values = threads.iter().map(value);
    values
        .collect::<Option<_>>()
        .unwrap_or_else(|| panic!("{reply:#}"))
}

/// What gdb says of each thread at the same place.
fn of_gdb(scratch: &Scratch, program: &std::path::Path, command: &str) -> Vec<String> {
    let words = ["break meet", "run > /dev/null", command];
    let words = words.iter().flat_map(|word| ["-ex", *word]);
    let said = Program::new("/usr/bin/gdb", scratch.path())
        .args(["-batch", "-nx", "-q"])
        .args(words)
        .args([program.to_str().expect("text")])
        .run()
        .text();
    let values = said.lines().filter(|line| line.starts_with('$'));
    let values = values.filter_map(|line| line.split_once(" = "));
    values.map(|(_, value)| value.to_owned()).collect()
}

#[test]
fn a_verb_looks_at_each_thread() {
    let scratch = Scratch::new("gdb-threads-program");
    let program = program(&scratch);
    let live = at_the_meeting("gdb-threads", &program);
    let all = live.ask(&["thread-apply", "all", "print", "meeting_total"]);
    let theirs = of_gdb(&scratch, &program, "thread apply all print meeting_total");
    assert_eq!(values(&all), theirs, "{all:#}");
    assert_eq!(theirs.len(), 3);
    let pointers = values(&live.ask(&["thread-apply", "all", "print", "$sp"]));
    assert_ne!(pointers[0], pointers[1]);
    assert_ne!(pointers[1], pointers[2]);
    // Each is that of the thread when it is selected, and none of these was.
    let selected = live.ask(&["thread"])["thread"].clone();
    for (of, pointer) in all["threads"]
        .as_array()
        .expect("a list")
        .iter()
        .zip(&pointers)
    {
        let thread = of["thread"].to_string();
        let one = live.ask(&["thread-apply", &thread, "print", "$sp"]);
        assert_eq!(values(&one), std::slice::from_ref(pointer), "{one:#}");
        live.ask(&["thread", &thread]);
        assert_eq!(&live.print("$sp"), pointer, "{thread}");
        live.ask(&["thread", &selected.to_string()]);
    }
    let said = live.command(&["thread", "apply", "all", "bt", "1"]).run();
    assert_eq!(said.text().matches("Thread ").count(), 3, "{}", said.text());
    let said = live
        .command(&["thread", "apply", "all", "p/x", "meeting_total"])
        .run();
    assert_eq!(
        said.text().matches(" = 0x7\n").count(),
        3,
        "{}",
        said.text()
    );
    let said = live
        .command(&["thread", "apply", "all", "frame"])
        .run()
        .text();
    assert!(
        said.contains("meet at ") && said.matches("#0 ").count() == 3,
        "{said}"
    );
}

#[test]
fn what_is_about_no_thread_is_refused_and_a_mistake_is_told_once() {
    let scratch = Scratch::new("gdb-threads-refused-program");
    let live = at_the_meeting("gdb-threads-refused", &program(&scratch));
    let said = |words: &[&str]| live.command(words).run().errors();
    for verb in ["status", "set meeting_total 3", "step", "threads"] {
        let words: Vec<&str> = ["thread", "apply", "all"]
            .into_iter()
            .chain(verb.split(' '))
            .collect();
        let said = said(&words);
        assert!(
            said.contains("thread apply does not take"),
            "{verb}: {said}"
        );
    }
    let said = said(&["thread", "apply", "all", "print", "nobody"]);
    assert_eq!(said.matches("nobody").count(), 1, "{said}");
    // Where the name means something in one thread, the others say why not.
    let said = live
        .command(&["thread", "apply", "all", "print", "how_often"])
        .run()
        .text();
    assert!(said.contains(" = 7\n"), "{said}");
    assert_eq!(
        said.matches("error: no variable \"how_often\" here")
            .count(),
        2,
        "{said}"
    );
}

#[test]
fn the_same_in_a_recording() {
    let scratch = Scratch::new("gdb-threads-past-program");
    let live = at_the_meeting("gdb-threads-past", &program(&scratch));
    let recording = live.recording();
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 0);
    let lines = [
        "break meet",
        "continue",
        "continue",
        "thread apply all print meeting_total",
        "print meeting_total",
    ];
    let said = recording.prompt(&lines);
    let (text, errors) = (said.text(), said.errors());
    let headings = text.lines().filter(|line| line.ends_with(" (meeting)"));
    assert_eq!(headings.count(), 3, "{text}{errors}");
    assert_eq!(text.matches(" = 7").count(), 4, "{text}{errors}");
}

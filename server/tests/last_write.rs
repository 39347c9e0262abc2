//! Goal: the last change of a value, which is searched backwards, is the last one of all changes up to there. Calls whose
//! entries cannot show a variable are not looked at one by one. Method: a program of two threads is recorded in several
//! ways, and at moments of all parts of the run the answer is compared with a walk from the beginning.

use std::cell::Cell;

use e2e::{Hindsight, Program, Scratch, Status, compiled};
use replay::history::{Change, Changes, LastChange, Progress};
use replay::{Timeline, Tracked};

const C: &str = r#"
#include <pthread.h>
#include <stdio.h>
static volatile long sink;
volatile int level;
__attribute__((noinline)) long leaf(long n, double half, const char *text) {
  long twice = n * 2;
  sink = twice + (long)half + text[0];
  return twice;
}
__attribute__((noinline)) long mid(long n) {
  long s = 0;
  for (int i = 0; i < 9; i++)
    s += leaf(n / 3 + i / 4, n / 2.0, i % 2 ? "odd" : "even");
  return s;
}
static void *work(void *rounds) {
  for (long i = 0; i < (long)rounds; i++) {
    mid(i);
    if (i % 64 == 0)
      level++;
  }
  return 0;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, work, (void *)700);
  work((void *)800);
  pthread_join(other, 0);
  return 0;
}
"#;

fn recorded(name: &str, flags: &[&str], options: &[&str]) -> (Scratch, Timeline) {
    let scratch = Scratch::new(&format!("last-write-{name}"));
    let program = compiled(&scratch, "app.c", C, flags);
    let program = Program::new(program, scratch.path());
    let ended = Hindsight::record_command(&scratch, "app", options, &program).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let timeline = Timeline::open(&scratch.join("app.hindsight"), scratch.path());
    let timeline = timeline.expect("it is a recording");
    assert!(timeline.events() > 20_000);
    (scratch, timeline)
}

/// All changes, from the beginning.
fn all_changes(timeline: &Timeline, expression: &str) -> Vec<Change> {
    let mut tracked = Tracked::everywhere(timeline, expression).expect("it means something");
    let (mut changes, mut found) = (Changes::of(timeline), Vec::new());
    loop {
        match changes
            .next(timeline, &mut tracked, 64)
            .expect("it is readable")
        {
            Progress::Change(change) => found.push(change),
            Progress::More => {}
            Progress::End => return found,
        }
    }
}

/// The last change up to an event, and how often the search could have been ended.
fn last(timeline: &Timeline, expression: &str, until: (u64, u32)) -> (Option<LastChange>, usize) {
    let mut tracked = Tracked::everywhere(timeline, expression).expect("it means something");
    let polls = Cell::new(0);
    let stop = || {
        polls.set(polls.get() + 1);
        false
    };
    let found = tracked.last_change_up_to(timeline, until, &stop);
    (found.expect("it is readable"), polls.get())
}

/// Compares at moments of the whole run; returns how many had a change before them.
fn compared(timeline: &Timeline, expression: &str) -> usize {
    let all = all_changes(timeline, expression);
    let mut with_one = 0;
    for seq in (0..timeline.events()).step_by(911) {
        let tid = timeline.thread_at(seq).expect("a thread");
        let is_it = |change: &&Change| change.seq <= seq && change.own.is_none_or(|own| own == tid);
        let wanted = all.iter().rfind(is_it);
        let found = last(timeline, expression, (seq, tid)).0;
        let found = found.map(|found| found.change);
        assert_eq!(
            found.as_ref(),
            wanted,
            "{expression} at event {seq} in {tid}"
        );
        with_one += usize::from(wanted.is_some());
    }
    with_one
}

#[test]
fn the_last_change_is_the_last_of_all() {
    for (name, options) in [
        ("plain", &[][..]),
        ("watched", &["--watch", "leaf::twice"]),
        ("texts", &["--strings"]),
        ("copies", &["--snapshot", "every=500events"]),
        ("writes", &["--log-writes", "level"]),
    ] {
        for level in ["-O0", "-O2"] {
            let (_scratch, timeline) = recorded(
                &format!("{name}{level}"),
                &["-g", level, "-pthread"],
                options,
            );
            for (expression, is_seen) in [
                ("leaf::n", true),
                ("leaf::half", true),
                ("level", name == "copies" || name == "writes"),
            ] {
                let count = compared(&timeline, expression);
                assert!(
                    !is_seen || count > 20,
                    "{name} {level}: {expression}, {count}"
                );
            }
            let count = compared(&timeline, "leaf::twice");
            assert!(
                level != "-O0" || (name == "watched") == (count > 20),
                "{name} {level}: {count}"
            );
        }
    }
}

#[test]
fn entries_that_cannot_show_a_variable_are_passed() {
    for (compiler, flags) in [("gcc", &["-g", "-O0", "-pthread"])] {
        let (_scratch, timeline) = recorded(compiler, flags, &[]);
        let end = timeline.last();
        let tid = timeline.thread_at(end).expect("a thread");
        for expression in ["leaf::twice", "mid::s"] {
            let (found, polls) = last(&timeline, expression, (end, tid));
            assert_eq!(found, None, "{expression}");
            // At least one for each window of events; there are 13,000 calls.
            assert!(polls < 100, "{expression}: {polls}");
        }
        let (found, polls) = last(&timeline, "leaf::n", (end, tid));
        assert!(found.is_some());
        assert!(polls < 100, "{polls}");
    }
}

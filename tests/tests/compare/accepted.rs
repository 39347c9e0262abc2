//! What `--accept` does not accept: it says so, and the exit code is not 0.

use std::fs;

use e2e::{Ended, Program, Scratch};

use crate::{build, compare, ends_with, record};

/// Builds a program with other flags, and records it.
fn made(scratch: &Scratch, source: &str, name: &str, flags: &str, options: &[&str]) {
    let folder = scratch.join(name);
    fs::create_dir(&folder).expect("the test's folder is writable");
    fs::write(folder.join("app.c"), source).expect("the test's folder is writable");
    build(
        &folder,
        &format!("gcc -O0 -g -pthread {flags} -o app app.c"),
    );
    let app = Program::new(folder.join("app"), scratch.path());
    record(scratch, name, options, &app);
}

fn accept(scratch: &Scratch, a: &str, b: &str) -> Ended {
    compare(scratch, &[a, b, "--accept", "known.json"])
}

const THREADS: &str = r#"#include <pthread.h>
int step(int n) { return n + ODD; }
void *work(void *of) {
  int got = step((int)(long)of);
  return (void *)(long)(got > 0); /* the logpoint */
}
int main(void) {
  pthread_t threads[COUNT];
  for (long i = 0; i < COUNT; i++) {
    pthread_create(&threads[i], 0, work, (void *)i);
    pthread_join(threads[i], 0);
  }
}
"#;

#[test]
fn a_thread_of_one_side_is_never_accepted() {
    let scratch = Scratch::new("accept-thread");
    made(&scratch, THREADS, "two", "-DODD=1 -DCOUNT=2", &[]);
    made(&scratch, THREADS, "three", "-DODD=1 -DCOUNT=3", &[]);
    let first = accept(&scratch, "two", "three");
    ends_with(&first, 1);
    let said = "a thread that only one side has cannot be accepted";
    assert!(first.errors().contains(said), "{}", first.errors());
    assert!(
        first.text().contains("Only B has the thread "),
        "{}",
        first.text()
    );
    let later = accept(&scratch, "two", "three");
    ends_with(&later, 1);
    assert!(
        later.text().contains("Only B has the thread "),
        "{}",
        later.text()
    );
}

#[test]
fn of_64_threads_that_differ_it_is_told_how() {
    let scratch = Scratch::new("accept-threads");
    let logged = ["-f", "step", "--logpoint", "app.c:5", "got {got}"];
    for (name, odd) in [("good", "1"), ("bad", "2"), ("again", "2")] {
        let flags = format!("-DODD={odd} -DCOUNT=70");
        made(&scratch, THREADS, name, &flags, &logged);
    }
    let found = compare(&scratch, &["good", "bad", "--json"]).result();
    let threads = found["threads"].as_array().expect("threads");
    let count = |is_untold: bool| {
        let of = threads.iter().filter(|one| one["is_untold"] == is_untold);
        of.filter(|one| is_untold || one["differing"] != 0).count()
    };
    assert_eq!((threads.len(), count(false), count(true)), (70, 64, 6));
    let first = accept(&scratch, "good", "bad");
    ends_with(&first, 1);
    let said = "they are accepted, but not those of the threads that were not gone through";
    assert!(first.errors().contains(said), "{}", first.errors());
    ends_with(&accept(&scratch, "good", "bad"), 1);

    // All of their messages are accepted, each of 64 threads or all of a thread together.
    let rules = "[compare.ignore]\nfunctions = [\"step\"]\n";
    fs::write(scratch.join("hindsight.toml"), rules).expect("the test's folder is writable");
    fs::remove_file(scratch.join("known.json")).expect("it was written");
    let text = compare(&scratch, &["good", "bad"]).text();
    assert!(
        text.contains("logpoint differs: A got 1 (seq ") && text.contains("B got 2 (seq "),
        "{text}"
    );
    ends_with(&accept(&scratch, "good", "bad"), 0);
    ends_with(&accept(&scratch, "good", "again"), 0);
}

const MANY: &str = r#"#include <stdio.h>
int step(int n) { return n + ODD; }
int main(void) {
  long sum = 0;
  for (int i = 0; i < 100500; i++) WHAT;
  return sum < 0;
}
"#;

#[test]
fn more_than_100_000_differences_are_not_accepted() {
    for (name, what, options) in [
        (
            "lines",
            "printf(\"%d\\n\", i * 10 + ODD)",
            &["-f", "main"][..],
        ),
        ("calls", "sum += step(i)", &[]),
    ] {
        let scratch = Scratch::new(&format!("accept-many-{name}"));
        let source = MANY.replace("WHAT", what);
        made(&scratch, &source, "good", "-DODD=1", options);
        made(&scratch, &source, "bad", "-DODD=2", options);
        let ended = accept(&scratch, "good", "bad");
        ends_with(&ended, 2);
        let said = "more than 100,000 differences";
        assert!(ended.errors().contains(said), "{name}: {}", ended.errors());
        assert!(ended.errors().contains("hindsight.toml"), "{name}");
        assert!(!scratch.join("known.json").exists(), "{name}");
    }
}

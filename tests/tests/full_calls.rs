//! Goal: functions of the program can be called at every moment of a recording of every instruction, and nothing of a call stays.
//! Method: a program that knows its answers; the same calls at the same line of the running program; the moves afterwards.

use e2e::{Hindsight, Program, Scratch, compiled};

const PROGRAM: &str = r#"#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { int v; struct node *next; };
static struct node *head;
int counter;
static char name[32] = "before";
int length(struct node *n) { int k = 0; for (; n; n = n->next) k++; return k; }
double mean(struct node *n, double bias) { double s = 0; int k = 0; for (; n; n = n->next) s += n->v, k++; return s / k + bias; }
char *describe(struct node *n) { snprintf(name, sizeof name, "node %d", n->v); return name; }
int copied(const char *text) { char *all = malloc(1 << 20); strcpy(all, text); int found = (int)strlen(all); free(all); return found; }
void dump(struct node *n) { for (; n; n = n->next) printf("%d -> ", n->v); printf("end\n"); fflush(stdout); }
int opens(void) { return open("/etc/passwd", O_RDONLY); }
void spins(void) { for (;;) counter++; }
int crashes(int *p) { return *p; }
int deep(int n) { volatile char big[2048]; big[n % 2048] = 1; return n ? deep(n - 1) + big[n % 2048] : 0; }
int bump(void) { return ++counter; }
static void *work(void *text) { strcpy(name, text); /* in a thread */ return text; }
int main(void) {
  for (int i = 1; i <= 3; i++) {
    struct node *n = malloc(sizeof *n);
    *n = (struct node){i * 10, head};
    head = n;
    counter += bump();
  }
  printf("%d\n", counter); /* built */
  pthread_t t;
  pthread_create(&t, 0, work, "thread");
  pthread_join(t, 0);
  printf("%s\n", name); /* last */
  return 0;
}
"#;

/// The number of the line with a comment.
fn line(comment: &str) -> usize {
    let comment = format!("/* {comment} */");
    let found = PROGRAM.lines().position(|line| line.contains(&comment));
    found.expect("the line is there") + 1
}

fn built(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    compiled(&scratch, "app.c", PROGRAM, &["-g", "-O1", "-lpthread"]);
    scratch
}

fn recorded(name: &str) -> Scratch {
    let scratch = built(name);
    let app = Program::new(scratch.join("app"), scratch.path());
    Hindsight::recorded(&scratch, "recorded", &["--full"], &app);
    scratch
}

/// What verbs at the prompt of a recording, or of a program, print: answers and errors.
fn prompt(scratch: &Scratch, of: &str, verbs: &[&str]) -> String {
    let mut args = vec!["repl", of];
    args.extend(verbs.iter().flat_map(|verb| ["--cmd", verb]));
    let ended = Hindsight::command(scratch, &args)
        .env("HOME", scratch.path())
        .run();
    ended.text() + &ended.errors()
}

/// The values that were numbered.
fn values(text: &str) -> Vec<&str> {
    let numbered = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(" = ")?;
        let number = name.strip_prefix('$')?;
        number.parse::<u32>().ok()?;
        Some(value)
    });
    numbered.collect()
}

#[test]
fn the_past_answers_as_the_program_does() {
    let scratch = recorded("full-calls");
    let stop = format!("break app.c:{}", line("built"));
    let calls = [
        "eval length(head)",
        "eval head->v + length(head->next)",
        "eval mean(head, 0.5)",
        "eval copied(\"hello\")",
        "eval deep(400)",
        "eval crashes(&counter)",
        "call strlen(name)",
        "eval $kept = length(head)",
    ];
    let then: Vec<&str> = [&*stop, "continue"].into_iter().chain(calls).collect();
    let past = prompt(&scratch, "recorded", &then);
    let live = prompt(&scratch, "./app", &then);
    assert_eq!(
        values(&past),
        ["3", "32", "20.5", "5", "400", "14", "6"],
        "{past}"
    );
    assert_eq!(values(&live), values(&past), "{live}");
    for text in [&past, &live] {
        assert!(text.contains("$kept = 3"), "{text}");
    }
}

#[test]
fn nothing_of_a_call_stays() {
    let scratch = recorded("full-calls-gone");
    let stop = format!("break app.c:{}", line("built"));
    let last = format!("break app.c:{}", line("last"));
    let told = prompt(
        &scratch,
        "recorded",
        &[
            &stop,
            "continue",
            "eval bump()",
            "eval bump()",
            "print counter",
            "eval describe(head)",
            "print name",
            "eval dump(head)",
            "print counter",
            &last,
            "continue",
            "print name",
            "print counter",
            "reverse-continue",
            "eval bump()",
        ],
    );
    let shown = values(&told);
    assert_eq!(shown[..3], ["15", "15", "14"], "{told}");
    assert!(shown[3].ends_with("\"before\""), "{told}");
    assert_eq!(
        shown[4..],
        ["\"before\"", "14", "\"thread\"", "14", "15"],
        "{told}"
    );
    for part in [
        "describe wrote \"node 30\" where its result points to",
        "dump printed: 30 -> 20 -> 10 -> end",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[test]
fn what_cannot_be_called_says_why() {
    let scratch = recorded("full-calls-errors");
    let stop = format!("break app.c:{}", line("built"));
    let told = prompt(
        &scratch,
        "recorded",
        &[
            &stop,
            "continue",
            "eval opens()",
            "eval crashes(0)",
            "eval deep(100000)",
            "eval counter = 3",
            "eval length(head, 1, 2, 3, 4, 5, 6)",
            "eval no_such(1)",
            "print length(head)",
            "print counter",
        ],
    );
    for part in [
        "opens makes the system call openat: what the kernel would have answered then is not known",
        "crashes did not return: it received SIGSEGV",
        "deep did not return: it received SIGSEGV",
        "assigning to counter needs a program that runs",
        "no_such",
        "eval calls functions",
        "$1 = 14",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let app = Program::new(scratch.join("app"), scratch.path());
    Hindsight::recorded(&scratch, "calls", &[], &app);
    let told = prompt(&scratch, "calls", &["goto last", "eval length(head)"]);
    assert!(
        told.contains("length cannot be called: this recording has calls, not every instruction"),
        "{told}"
    );
}

#[test]
fn another_thread_calls_with_its_own_stack() {
    let scratch = recorded("full-calls-threads");
    let settings = scratch.join(".config/hindsight");
    std::fs::create_dir_all(&settings).expect("the test's folder is writable");
    let written = std::fs::write(
        settings.join("config.toml"),
        "[timeouts]\nrequest_secs = 5\n",
    );
    written.expect("the test's folder is writable");
    let stop = format!("break app.c:{}", line("in a thread"));
    let told = prompt(
        &scratch,
        "recorded",
        &[
            &stop,
            "continue",
            "eval length(head)",
            "thread 1",
            "eval mean(head, 1.0)",
            "eval spins()",
            "eval length(head->next)",
        ],
    );
    assert_eq!(values(&told), ["3", "21", "2"], "{told}");
    assert!(told.contains("spins did not return in time"), "{told}");
}

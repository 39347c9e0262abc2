//! Goal: `why` shows the recorded chain that led to a call or a value, claims nothing else, and says where knowledge ends. Method: a
//! program in which an error goes up through three functions and pointers through others.

use e2e::{Ended, Hindsight, Program, Recording, Scratch, Status, compiled, fixture_artifact};
use serde_json::Value;

struct Recorded {
    scratch: Scratch,
    recording: Recording,
}

impl Recorded {
    fn of(name: &str, options: &[&str]) -> Recorded {
        let scratch = Scratch::new(name);
        let program = Program::new(fixture_artifact("failing", "failing"), scratch.path());
        let (_, recording) = Hindsight::record(&scratch, options, &program);
        Recorded { scratch, recording }
    }

    fn run(&self, args: &[&str]) -> Ended {
        Hindsight::command(&self.scratch, args).run()
    }

    fn why(&self, words: &[&str]) -> String {
        let ended = self.run(&[&["why", "rec"], words].concat());
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let text = ended.text();
        assert!(text.lines().count() <= 30, "{text}");
        text
    }

    fn last(&self, function: &str) -> i64 {
        self.recording.number(&format!(
            "select max(start_seq) from calls where function = '{function}'"
        ))
    }
}

/// An error that its function makes of another number.
#[test]
fn where_an_error_came_from_is_not_claimed() {
    let scratch = Scratch::new("why-made");
    let source = "int inner(int n) { return n + 1; }\n\
                  int outer(int n) { return inner(n) - 27; }\n\
                  int main(void) { return outer(4) == -22 ? 0 : 1; }\n";
    let app = compiled(&scratch, "app.c", source, &["-O0", "-g"]);
    let program = Program::new(&app, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let recorded = Recorded { scratch, recording };
    let outer = recorded.last("outer");
    let text = recorded.why(&[&outer.to_string()]);
    let told = format!(
        "Not known: no recorded call inside outer (seq {outer}) returned -22: outer made it or read it from memory, or a function \
         that was not recorded returned it."
    );
    says(&text, &["outer(n=4) returned -22", &told]);
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("not there, or not in this order: {part}\n{text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn an_error_is_followed_down_to_where_it_came_up_and_up_to_where_it_changed() {
    let recorded = Recorded::of("why-error", &[]);
    let [load, parse, check] = ["load", "parse_order", "check_price"].map(|f| recorded.last(f));
    let text = recorded.why(&[&load.to_string()]);
    says(
        &text,
        &[
            "load(id=7) returned -22, called at failing.c:",
            &format!(", seq {load}\n"),
            "same value inside it: parse_order(",
            " returned -22",
            &format!(", seq {parse}\n"),
            "same value inside it: check_price(price=-1) returned -22",
            &format!(", seq {check}\n"),
            "same value further up: load_all returned -22",
            "its caller main returned another value, 3",
            "called by load_all(orders=20)",
            "called by main(argc=1, ",
            "no call inside check_price",
            "hindsight rerun rec --full, then in that recording: next through the lines of check_price",
        ],
    );
}

#[test]
fn the_same_value_is_found_with_callers_and_as_an_earlier_result() {
    let recorded = Recorded::of("why-pointer", &[]);
    let drop = recorded.last("drop_order");
    let made = recorded.last("make_order");
    let text = recorded.why(&[&drop.to_string()]);
    says(
        &text,
        &[
            "drop_order(order=0x",
            "same value as what make_order(id=7) returned 0x",
            &format!(", seq {made}\n"),
            "called by load(id=7)",
        ],
    );
    let ended = recorded.run(&["why", "rec", &drop.to_string(), "--json"]);
    let json: Value = serde_json::from_str(&ended.text()).expect("it is JSON");
    let steps = json["result"]["steps"].as_array().expect("a list");
    let same = steps.iter().find(|step| step["kind"] == "same_value");
    assert_eq!(
        same.map(|step| step["seq"].as_i64()),
        Some(Some(made)),
        "{json:#}"
    );
}

#[test]
fn a_value_is_followed_to_the_calls_that_were_open() {
    let recorded = Recorded::of("why-value", &["--watch", "total"]);
    let report = recorded.last("report");
    let counted = recorded.last("count");
    let text = recorded.why(&["total", "--at", &report.to_string()]);
    says(
        &text,
        &[
            "total is 105000",
            "total became 105000 between event ",
            &format!("seq {counted}\n"),
            "which statement wrote it between event",
            "hindsight rerun ",
            "--log-writes 'total'",
        ],
    );
    // Without it, only the copy of memory at the start shows the value, and the output claims nothing about later.
    let bare = Recorded::of("why-bare", &[]);
    let report = bare.last("report");
    let text = bare.why(&["total", "--at", &report.to_string()]);
    says(
        &text,
        &[
            "total was seen at event ",
            &format!("and may have changed up to event {report}"),
            "total was 0 when it was first seen",
            "whether it changed between event ",
            "record with --watch 'total'",
        ],
    );
}

/// A list at the same addresses in each run. What `head->next->next` is at the end was written when `head` was still null.
const LIST: &str = "
#include <sys/mman.h>
struct node { long key; struct node *next; };
struct node *head;
static __attribute__((noinline)) void push(struct node *n, long key) {
  n->key = key;
  n->next = head; /* linked */
  head = n;
}
static __attribute__((noinline)) void drop(void) { head = head->next; }
static __attribute__((noinline)) long look(struct node *first) { return first->next->next->key / (first->key - 3); }
int main(void) {
  struct node *nodes = mmap((void *)0x100000000, 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  for (long i = 0; i < 4; i++) push(&nodes[i], i + 1);
  drop();
  return look(head);
}
";

#[test]
fn a_logged_write_is_found_though_the_pointers_led_elsewhere_then() {
    let scratch = Scratch::new("why-led");
    let app = compiled(&scratch, "list.c", LIST, &["-O0", "-g"]);
    let program = Program::new(&app, scratch.path());
    let options = ["--no-aslr", "--log-writes", "0x100000018:8"];
    let (_, recording) = Hindsight::record(&scratch, &options, &program);
    let recorded = Recorded { scratch, recording };
    let wrote = "select max(seq) from writes where function = 'push'";
    let wrote = recorded.recording.number(wrote);
    let linked = LIST.lines().position(|line| line.contains("linked"));
    let linked = linked.expect("the line is there") + 1;
    let lies = "is at 0x100000018: these are the writes to there, whatever was there before";
    for expression in ["head->next->next", "first->next->next"] {
        let text = recorded.why(&[expression]);
        let lies = format!("{expression} {lies}, seq ");
        let became = format!("{expression} became 0x100000000, by push at ");
        let place = format!("list.c:{linked}, seq {wrote}\n");
        says(&text, &[&lies, &became, &place]);
        for absent in ["there was no", "was not recorded", "--full"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        let last = recorded.run(&["last-write", "rec", expression]).text();
        let became = format!("{expression} became 0x100000000 at event {wrote} (push at ");
        says(&last, &[&became, &format!("list.c:{linked})")]);
    }
    // No other bytes were logged.
    let text = recorded.why(&["head->next->key"]);
    assert!(!text.contains("0x100000018"), "{text}");
}

#[test]
fn other_events_are_told_with_the_calls_around_them() {
    let recorded = Recorded::of("why-event", &[]);
    let printed = recorded
        .recording
        .number("select min(seq) from output where stream = 'stderr'");
    let text = recorded.why(&[&printed.to_string()]);
    says(
        &text,
        &[
            "stderr: order 7: Invalid argument",
            "load_all(orders=20) returned -22",
            "called by main",
        ],
    );
}

#[test]
fn it_is_a_verb_of_the_prompt_and_of_sessions_too() {
    let recorded = Recorded::of("why-verb", &[]);
    let check = recorded.last("check_price");
    let line = format!("why {check}");
    let ended = recorded.run(&["repl", "rec", "--cmd", &line]);
    says(&ended.text(), &["check_price(price=-1) returned -22"]);
    for (words, expected) in [
        (["why", "nothing", "5"], "there is no recording nothing"),
        (["why", "rec", "99999999"], "there is no event 99999999"),
    ] {
        let ended = recorded.run(&words);
        assert_eq!(ended.status, Status::Code(2), "{words:?}");
        assert!(ended.errors().contains(expected), "{}", ended.errors());
    }
}

#[test]
fn functions_have_their_short_names() {
    let scratch = Scratch::new("why-short");
    let source = "#include <map>\n#include <string>\nstd::map<std::string, int> ages;\n\
                  int main() { ages[\"ada\"] = 36; return (int)ages.count(\"bob\"); }\n";
    let app = compiled(&scratch, "app.cc", source, &["-O0", "-g"]);
    let program = Program::new(&app, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["--memory"], &program);
    let recorded = Recorded { scratch, recording };
    let number = |sql: &str| recorded.recording.number(sql);
    let inner = number(
        "select max(c.start_seq) from calls c join calls p on c.parent = p.start_seq where p.function like '%::count'",
    );
    let text = recorded.why(&[&inner.to_string()]);
    says(&text, &["called by std::map<std::string, int>::count("]);
    assert!(!text.contains("char_traits"), "{text}");
    let block = number("select max(addr) from allocations where size > 60");
    let ended = recorded.run(&["object", "rec", &format!("{block:#x}")]);
    let text = ended.text();
    says(&text, &["made by operator new", ", called in "]);
    assert!(!text.contains("char_traits"), "{text}");
}

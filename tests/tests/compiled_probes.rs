//! Goal: probes that the program evaluates itself give the tracer's results, and do no harm when a process dies. Method: the
//! same messages, conditions and errors both ways on a program with values of all kinds; the daemon is killed while its code
//! is in the program. Of the messages and of what holds a place each run takes a part; `WHOLE=1` all.

use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::{Live, Recording, Signal, Status, in_turn, in_turn_among, is_alive, kill, wait_until};
use serde_json::Value;

const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum color { RED, GREEN = 5, BLUE = 9, WEIRD = -1 };
struct item
{
  int id;
  unsigned char byte;
  char letter;
  short level;
  unsigned short port;
  long weight;
  unsigned long mask;
  double price;
  float ratio;
  const char * name;
  struct item * next;
  unsigned low : 5;
  int flags : 3;
  enum color color;
  _Bool ok;
  int list[3];
};
static char longer[400], accents[400];
static struct item items[32];
volatile long sink;

__attribute__ ((noipa)) void
visit (struct item * p, int n, double d)
{
  long local = n * 3L;
  sink += local + p->id + (long) d;
  sink ^= p->weight;
}

int
main (int argc, char ** argv)
{
  long rounds = argc > 1 ? atol (argv[1]) : 2;
  const char * names[] = { "plain", "", "with \"quotes\"\n", longer, accents, "h\xc3\xa9", "\xff\xfe", NULL, (char *) 24 };
  for (int i = 0; i < 399; i++)
  {
    longer[i] = 'a' + i % 26;
    accents[i] = i % 2 ? '\xa9' : '\xc3';
  }
  /* Outside of all modules, and at the same place every time. */
  struct item * others = mmap ((void *) 0x10000000, 65536, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  for (int i = 0; i < 32; i++)
  {
    struct item * p = &items[i];
    p->id = i - 9;
    p->byte = i * 37;
    p->letter = i * 11;
    p->level = -i * 100;
    p->port = 65535 - i;
    p->weight = -(1L << i);
    p->mask = 1UL << (63 - i);
    p->price = i % 4 == 0 ? i : i / 8.0 - 1e-5;
    p->ratio = i * 0.1f;
    p->name = names[i % 9];
    p->next = i % 5 ? &others[i] : i % 2 ? NULL : (struct item *) longer;
    if (i % 5)
      memcpy (p->next, &items[0], sizeof *p);
    p->low = i;
    p->flags = i;
    p->color = i % 4 == 0 ? RED : i % 4 == 1 ? GREEN : i % 4 == 2 ? BLUE : (enum color) 77;
    p->ok = i & 1;
    p->list[i % 3] = i;
  }
  items[31].price = 0.0 / 0.0;
  items[30].price = -1.0 / 0.0;
  for (long round = 0; round < rounds; round++)
    for (int i = 0; i < 32; i++)
      visit (&items[i], i, items[i].price);
  printf ("%ld\n", sink);
  if (argc > 2)
  {
    FILE * file = fopen (argv[2], "w");
    fprintf (file, "%ld\n", sink);
    fclose (file);
  }
  return 0;
}
"#;

const TEMPLATES: &[&str] = &[
    "n={n} d={d}",
    "{p->id} {p->byte} {p->letter} {p->level} {p->port}",
    "{p->weight} {p->mask} {p->mask:x} {p->weight:u} {p->byte:d}",
    "{p->price} {p->ratio} {p->ok} {p->color}",
    "name={p->name}!",
    "{p->name:x} {p->next:x} {p->low} {p->flags} {p->list[1]}",
    "{p->next->id} {p->next->name}",
    "{n + 1} {n > 5} {n * 2u} {n - 3l} {p->id == n} plain {{text}}",
    "{p} {p->next}",
    "{n} {sink}",
];

fn program(live: &Live, name: &str, level: &str) -> PathBuf {
    let folder = live.scratch.path();
    let source = folder.join("visit.c");
    std::fs::write(&source, SOURCE).expect("the folder is ours");
    let path = folder.join(name);
    let done = Command::new("gcc")
        .args(["-g", level, "-no-pie", "-o"])
        .arg(&path)
        .arg(&source)
        .output()
        .expect("gcc can be started");
    assert!(done.status.success(), "{done:?}");
    path
}

fn start(live: &Live, program: &Path, args: &[&str], compiled: bool) -> Value {
    let path = program.to_str().expect("text");
    let options = [
        "start",
        "--json",
        "--stop-on-entry",
        "--exclude",
        "visit",
        path,
    ];
    let words = [&options[..], args].concat();
    let mut command = live.command(&words);
    if !compiled {
        command = command.env("HINDSIGHT_TRACER_JUDGES", "1");
    }
    let ended = command.run();
    let value: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert_eq!(value["success"], true, "{value:#}");
    live.keep(&value["result"]);
    value["result"].clone()
}

/// Every message that is left, with its values, and every error of a condition.
fn left(
    template: &str,
    condition: Option<&str>,
    level: &str,
    compiled: bool,
) -> (Vec<serde_json::Map<String, Value>>, i64) {
    let live = Live::new("compiled");
    let program = program(&live, "visit", level);
    start(&live, &program, &[], compiled);
    let mut words = vec!["logpoint", "visit", template];
    words.extend(condition.iter().flat_map(|text| ["--condition", text]));
    let added = live.ask(&words);
    let place = &added["probes"][0]["places"][0];
    if compiled && level == "-O0" {
        assert_eq!(place["compiled"], true, "{template}: {place:#}");
        assert_eq!(place["not_compiled"], Value::Null, "{template}");
    }
    if !compiled {
        assert_eq!(place["compiled"], false, "{template}");
    }
    assert_eq!(live.run_to_end(), 0);
    let recording = live.recording();
    let mut rows = recording.rows(
        "SELECT kind, text, aux FROM events WHERE kind IN ('logpoint', 'condition_error') ORDER BY seq",
    );
    rows.extend(recording.rows("SELECT message, captured FROM logpoints ORDER BY seq"));
    let words = recording
        .number("SELECT count(*) FROM events WHERE kind = 'logpoint' AND bytes IS NOT NULL");
    (rows, words)
}

#[test]
fn messages_are_the_same_whoever_makes_them() {
    for (number, template) in in_turn_among(4, TEMPLATES.iter().enumerate()) {
        let level = if number % 3 == 2 { "-O2" } else { "-O0" };
        let (ours, by_program) = left(template, None, level, true);
        let (theirs, by_tracer) = left(template, None, level, false);
        assert_eq!(ours, theirs, "{template}");
        assert_eq!(theirs.len(), 128, "{template}");
        assert_eq!(by_tracer, 0);
        if level == "-O0" {
            assert!(by_program > 0, "{template}: the program left none itself");
        }
    }
}

#[test]
fn conditions_that_fail_are_told_the_same() {
    let condition = Some("p->next->id < 100 && 12 / (n - 4) >= 0");
    let (ours, by_program) = left("n={n}", condition, "-O0", true);
    let (theirs, _) = left("n={n}", condition, "-O0", false);
    assert_eq!(ours, theirs);
    assert!(by_program > 10, "only {by_program}");
    let is_error = |row: &&serde_json::Map<String, Value>| {
        row.get("kind")
            .is_some_and(|kind| kind == "condition_error")
    };
    let errors = ours.iter().filter(is_error);
    assert!(errors.count() >= 8, "null pointers and a division by zero");
}

/// The processor time of a process, in the kernel's ticks of 10 ms.
fn ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let numbers = fields.split_whitespace().skip(11).take(2);
    numbers.filter_map(|text| text.parse::<u64>().ok()).sum()
}

/// The number of stops and waits of a process.
fn halts(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The probe that is set when the daemon dies, and the evaluator of its condition.
struct Held {
    probe: &'static [&'static str],
    compiled: Option<bool>,
    /// A thread is stopped there when the daemon dies.
    stands: bool,
}

const HELD: [Held; 7] = [
    Held {
        probe: &[
            "break",
            "visit",
            "--condition",
            "n == -1 || p->next->id == 1234567",
        ],
        compiled: Some(true),
        stands: false,
    },
    Held {
        probe: &["break", "visit", "--hit-count", "1000000000000"],
        compiled: Some(true),
        stands: false,
    },
    Held {
        probe: &["logpoint", "visit", "{n} {p->next->id}"],
        compiled: Some(true),
        stands: false,
    },
    Held {
        probe: &["break", "visit"],
        compiled: None,
        stands: true,
    },
    // Only the engine has the state that is kept from hit to hit.
    Held {
        probe: &[
            "break",
            "visit",
            "--condition",
            "state.n = (state.n ?? 0) + 1, state.n < 0",
        ],
        compiled: Some(false),
        stands: false,
    },
    Held {
        probe: &["watch", "sink"],
        compiled: None,
        stands: true,
    },
    Held {
        probe: &["watch", "sink", "--condition", "sink == 1234567"],
        compiled: None,
        stands: false,
    },
];

#[test]
fn a_killed_daemon_leaves_the_program_running_and_unchanged() {
    // Half a second of work; if each write caused a signal, as with a watchpoint that is never removed, it would be
    // minutes.
    const ROUNDS: &str = "4000000";
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .unwrap_or_else(|e| panic!("the program has not ended well: {}: {e}", path.display()))
    };
    let alone = Live::new("alone");
    let natively = alone.scratch.join("native");
    let run = Command::new(program(&alone, "visit", "-O1"))
        .arg(ROUNDS)
        .arg(&natively)
        .output();
    assert!(run.expect("it runs").status.success());
    for held in in_turn(HELD) {
        let probe = held.probe;
        let live = Live::new("killed");
        let program = program(&live, "visit", "-O1");
        let live_file = live.scratch.join("live");
        let file = live_file.to_str().expect("text");
        let report = start(&live, &program, &[ROUNDS, file], true);
        let pid = report["pid"].as_i64().expect("a number") as i32;
        let added = live.ask(probe);
        if let Some(compiled) = held.compiled {
            let place = &added["probes"][0]["places"][0];
            assert_eq!(place["compiled"], compiled, "{added:#}");
        }
        if held.stands {
            live.moved(&["continue"]);
        } else {
            let before = (ticks(pid), halts(pid));
            live.ask(&["continue", "--no-wait"]);
            // It has run for 100 ms, or the tracer has evaluated it this often.
            wait_until("the program to work", || {
                (ticks(pid) > before.0 + 10 || halts(pid) > before.1 + 300).then_some(())
            });
        }
        assert!(is_alive(pid), "it runs for longer than this");
        kill(live.daemon().expect("a daemon"), Signal::KILL);
        live.wait_for_end_of(pid);
        assert_eq!(read(&live_file), read(&natively), "{probe:?}");
        let refused = live.refused(&["where"]);
        assert_eq!(refused["code"], "NO_SESSION", "{probe:?}: {refused:#}");
        let message = refused["message"].as_str().expect("text");
        let fate = format!("(process {pid}) has ended since; its recording is ");
        assert!(
            message.starts_with("the daemon was killed: ") && message.contains(&fate),
            "{message}"
        );
        let recording = Recording::new(
            refused["details"]["recording"]
                .as_str()
                .expect("a path")
                .into(),
        );
        let check = recording.command("check", &[]);
        assert_eq!(
            check.status,
            Status::Code(3),
            "{probe:?}: {}{}",
            check.text(),
            check.errors()
        );
        assert!(
            check.text().contains("what is there is whole"),
            "{probe:?}: {}",
            check.text()
        );
    }
}

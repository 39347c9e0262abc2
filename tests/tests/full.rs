//! Goal: of a program that is recorded with every instruction, all registers and all memory are known at any moment, and every move
//! is exact. Method: a program with a planted wrong write, which prints what it knows of itself and crashes; what the recording says is
//! compared with that.

use e2e::{Ended, Hindsight, Program, Recording, Scratch, Status, fixture_artifact, marked_line};
use serde_json::Value;

/// What the crashing program wrote to registers before it crashed.
const MARK: &str = "0x1122334455667788";
/// How often it calls `deposit`: 100 times in each of two threads.
const DEPOSITS: i64 = 200;

struct Full {
    /// Holds the folder.
    _scratch: Scratch,
    recording: Recording,
    ended: Ended,
    /// Where the accounts are.
    accounts: u64,
    /// The frame of main.
    frame: u64,
}

impl Full {
    fn of(name: &str, args: &[&str]) -> Full {
        let scratch = Scratch::new(name);
        let program = fixture_artifact("planted", "planted");
        let program = Program::new(program, scratch.path()).args(args);
        let (ended, recording) = Hindsight::record(&scratch, &["--full"], &program);
        let text = ended.text();
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |name: &str| {
            let at = words.iter().position(|word| *word == name);
            let word = at.and_then(|at| words.get(at + 1)?.strip_prefix("0x"));
            let word = word.unwrap_or_else(|| panic!("no {name}: {text} {}", ended.errors()));
            u64::from_str_radix(word, 16).expect("an address")
        };
        Full {
            accounts: number("accounts"),
            frame: number("frame"),
            _scratch: scratch,
            recording,
            ended,
        }
    }

    /// What verbs at the prompt print.
    fn prompt(&self, lines: &[&str]) -> String {
        let words: Vec<&str> = lines.iter().flat_map(|line| ["--cmd", line]).collect();
        let ended = self.recording.command("repl", &words);
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.text()
    }

    fn info(&self) -> Value {
        let ended = self.recording.command("info", &["--json"]);
        serde_json::from_str(&ended.text()).expect("JSON")
    }
}

fn line(mark: &str) -> u64 {
    marked_line("planted", "planted.c", mark)
}

/// Says whether a text has a line, as in `$1 = 5`.
fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|found| found.trim() == line)
}

#[test]
fn a_crash_is_recorded_with_all_registers_and_memory() {
    let full = Full::of("full-crash", &[]);
    assert_eq!(
        full.ended.status,
        Status::Code(128 + 11),
        "{}",
        full.ended.errors()
    );
    let errors = full.ended.errors();
    assert!(
        errors.contains(" instructions, ") && errors.contains(" 2 threads, "),
        "{errors}"
    );
    let place = format!(
        "SIGSEGV ended the program in sum (planted.c:{})",
        line("crash")
    );
    assert!(errors.contains(&place), "{errors}");
    let text = full.prompt(&[
        "where",
        "print/x $r14",
        "print/x $xmm7",
        "print first == accounts",
        "print accounts[0].name",
        "frame 1",
        "print/x $rbp",
    ]);
    assert!(
        text.contains(&format!("planted.c:{}", line("crash"))),
        "{text}"
    );
    assert!(has_line(&text, &format!("$1 = {MARK}")), "{text}");
    assert!(has_line(&text, &format!("$2 = {MARK}")), "{text}");
    assert!(text.contains(&format!("{:#x}", full.frame)), "{text}");
    assert!(text.contains("\"ann\""), "{text}");
    let sql = format!(
        "SELECT value(max(seq), '(long)&accounts') = '{}' AS same FROM events",
        full.accounts
    );
    assert_eq!(full.recording.row(&sql)["same"], Value::Bool(true));
}

#[test]
fn the_planted_write_is_found_from_the_crash() {
    let full = Full::of("full-write", &[]);
    let text = full.prompt(&["last-write accounts[2].next"]);
    let place = format!("planted.c:{}", line("planted"));
    assert!(text.contains("call_it") && text.contains(&place), "{text}");
    // The third letter that does not fit.
    let moment = text
        .split("at event ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let moment = moment.unwrap_or_else(|| panic!("no moment: {text}"));
    let goto = format!("goto {moment}");
    let text = full.prompt(&[&goto, "print i", "print it == &accounts[2]", "backtrace"]);
    assert!(has_line(&text, "$1 = 10"), "{text}");
    assert!(has_line(&text, "$2 = true"), "{text}");
    assert!(text.contains("main"), "{text}");
}

#[test]
fn values_are_known_at_every_event() {
    let full = Full::of("full-values", &["short"]);
    assert_eq!(
        full.ended.status,
        Status::Code(7),
        "{}",
        full.ended.errors()
    );
    let sql = "SELECT seq, ts_ns, kind, value(seq, 'total') AS total FROM events \
               WHERE kind IN ('module_load', 'process_exit') ORDER BY seq";
    let rows = full.recording.rows(sql);
    let last = rows.last().expect("events");
    assert_eq!(last["kind"], "process_exit", "{rows:?}");
    assert_eq!(last["total"], "10100", "{rows:?}");
    assert_eq!(rows[0]["total"], "0", "{rows:?}");
    let facts = full.info();
    assert_eq!(
        facts["settings"]["captures"][0], "every instruction",
        "{facts}"
    );
    assert_eq!(facts["duration_ns"], last["ts_ns"], "{facts}");
    let checked = full.recording.command("check", &[]);
    assert_eq!(checked.status, Status::Code(0), "{}", checked.text());
}

#[test]
fn calls_are_found_by_running_it_again() {
    let full = Full::of("full-calls", &["short"]);
    let recording = &full.recording;
    assert_eq!(recording.calls_of("deposit"), DEPOSITS);
    assert_eq!(recording.calls_of("call_it"), 4);
    let sum = recording
        .row("SELECT ret, value(end_seq, 'total') AS before FROM calls WHERE function = 'sum'");
    assert_eq!(sum["ret"], 10100, "{sum:?}");
    assert_eq!(sum["before"], "0", "{sum:?}");
    // Each call sees its own arguments.
    let sql = "SELECT count(*) FROM calls WHERE function = 'deposit' AND value(start_seq, 'amount') = '100'";
    assert_eq!(recording.number(sql), 2);
    let threads =
        recording.number("SELECT count(DISTINCT tid) FROM calls WHERE function = 'deposit'");
    assert_eq!(threads, 2);
    let printed = String::from_utf8_lossy(&recording.output("stdout")).into_owned();
    assert_eq!(printed, full.ended.text());
}

#[test]
fn moves_go_by_lines_and_instructions_and_back() {
    let full = Full::of("full-moves", &["short"]);
    let deposit = format!("break planted.c:{}", line("deposit"));
    let sum = format!("break planted.c:{}", line("sum"));
    let text = full.prompt(&[&deposit, "goto first", "continue", "print amount", "finish"]);
    assert!(has_line(&text, "$1 = 1"), "{text}");
    assert!(text.contains("earn"), "{text}");
    // Into the function, a line back, out of it again.
    let text = full.prompt(&[
        &sum,
        "goto first",
        "continue",
        "step",
        "where",
        "step-back",
        "where",
    ]);
    let place = format!("planted.c:{}", line("sum"));
    assert!(
        text.contains("sum") && text.matches(&place).count() >= 2,
        "{text}"
    );
    // There and back is nowhere else.
    let there = [
        "print/x $rip",
        "step-back -i 5",
        "step -i 5",
        "print/x $rip",
    ];
    let text = full.prompt(&[&[sum.as_str(), "goto first", "continue"][..], &there].concat());
    let seen: Vec<&str> = text.lines().filter(|line| line.starts_with('$')).collect();
    assert!(seen.len() == 2 && seen[0][2..] == seen[1][2..], "{text}");
    // The last call of the loop, from the end.
    let text = full.prompt(&[&deposit, "goto last", "reverse-continue", "print amount"]);
    assert!(has_line(&text, "$1 = 100"), "{text}");
}

#[test]
fn all_writes_of_a_value_are_its_history() {
    let full = Full::of("full-history", &["short"]);
    let ended = full.recording.command(
        "repl",
        &[
            "--cmd",
            "goto last",
            "--cmd",
            "history --skip 50 accounts[1].balance",
        ],
    );
    let text = ended.text();
    assert!(text.contains("5050"), "{text} {}", ended.errors());
    assert!(text.contains("deposit"), "{text}");
    let text = full.prompt(&["goto last", "watch total", "reverse-continue"]);
    assert!(text.contains("total was 0, is 10100"), "{text}");
}

#[test]
fn it_is_recorded_once_more() {
    let full = Full::of("full-rerun", &["short"]);
    let again = full.recording.command("rerun", &[]);
    assert_eq!(again.status, Status::Code(7), "{}", again.errors());
    assert!(
        again.errors().contains(" instructions, "),
        "{}",
        again.errors()
    );
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let scratch = Scratch::new("full-refused");
    let program = Program::new("/bin/true", scratch.path());
    for options in [
        &["--full", "--memory"][..],
        &["--full", "--regs"],
        &["--full", "--children"],
        &["--full", "--log-writes", "x"],
    ] {
        let ended = Hindsight::record_command(&scratch, "rec", options, &program).run();
        assert_eq!(
            ended.status,
            Status::Code(2),
            "{options:?}: {}",
            ended.errors()
        );
        assert!(
            ended.errors().contains("--full does not go with --"),
            "{}",
            ended.errors()
        );
    }
    let program = Program::new("/nowhere/program", scratch.path());
    let ended = Hindsight::record_command(&scratch, "rec", &["--full"], &program).run();
    assert_eq!(ended.status, Status::Code(4), "{}", ended.errors());
    assert!(!scratch.join("rec.hindsight").exists());
}

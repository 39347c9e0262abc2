//! Goal: in a recording of every instruction, all registers and all memory are known at any moment, and every move is exact. Method: a
//! program with a planted wrong write, which prints its own state and crashes; the recording is compared with that output.

use e2e::{
    Ended, Hindsight, Program, Recording, Scratch, Status, compiled, fixture_artifact,
    fixture_source, marked_line,
};
use serde_json::{Value, json};

/// What the crashing program wrote to registers before it crashed.
const MARK: &str = "0x1122334455667788";
/// The number of calls of `deposit`: 100 in each of two threads.
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
        let ended = self.recording.prompt(lines);
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.text()
    }

    fn info(&self) -> Value {
        self.recording.command("info", &["--json"]).result()
    }
}

fn line(mark: &str) -> u64 {
    marked_line("planted", "planted.c", mark)
}

/// Returns whether a text has a line, as in `$1 = 5`.
fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|found| found.trim() == line)
}

/// The values that were printed: those of `$1 = 5`, `$2 = 7`.
fn printed(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| line.starts_with('$'));
    lines
        .filter_map(|line| Some(line.split_once(" = ")?.1))
        .collect()
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
    // The third character that does not fit.
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
    let text = full.prompt(&["goto last", "history --skip 50 accounts[1].balance"]);
    let rows = text
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let shown: Vec<(&str, &str)> = rows
        .filter(|row| row.len() == 4 && row[3].starts_with("deposit at "))
        .map(|row| (row[2], row[3]))
        .collect();
    let balances: Vec<String> = (51..=100).map(|n| (n * (n + 1) / 2).to_string()).collect();
    let values: Vec<&str> = shown.iter().map(|(value, _)| *value).collect();
    assert_eq!(values, balances, "{text}");
    let place = format!("planted.c:{}", line("deposit"));
    assert!(
        shown.iter().all(|(_, found)| found.ends_with(&place)),
        "{text}"
    );
    let text = full.prompt(&["goto last", "watch total", "reverse-continue"]);
    assert!(text.contains("total was 0, is 10100"), "{text}");
}

/// The variables of a function that calls nothing lie below the stack pointer without optimisation.
#[test]
fn the_history_of_a_variable_begins_with_its_call() {
    let source = "#include <stdio.h>
__attribute__((noinline)) int sum(int n) { int all = 0; for (int i = 1; i <= n; i++) all += i; return all; }
int main(void) { int t = 0; for (int i = 2; i < 5; i++) t += sum(i); printf(\"%d\\n\", t); return 0; }
";
    let scratch = Scratch::new("full-red-zone");
    let program = compiled(&scratch, "app.c", source, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["--full"], &program);
    let last = recording.row("select max(start_seq) as seq from calls where function = 'sum'");
    let last = last["seq"].as_i64().expect("an event");
    let call = format!("goto {last}");
    let ended = recording.prompt(&[&call, "finish", "step-back -i", "history all"]);
    let text = ended.text();
    let rows = text.lines().filter(|line| line.contains(" | sum at "));
    let values = rows.filter_map(|row| row.split('|').nth(2));
    let values: Vec<&str> = values.map(str::trim).collect();
    // `all = 0`, and four times `all += i`.
    assert_eq!(values, ["0", "1", "3", "6", "10"], "{text}");
    assert!(!text.contains("_dl_"), "{text}");
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
        &["--full", "--regs"][..],
        &["--full", "--pointees"],
        &["--full", "--children"],
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

#[test]
fn a_logpoint_prints_what_it_would_have_printed() {
    let full = Full::of("full-logpoints", &["short"]);
    let at = format!("planted.c:{}", line("deposit"));
    let text = full.prompt(&[&format!("logpoint {at} amount={{amount}}")]);
    let printed: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("amount="))
        .collect();
    assert_eq!(printed.len(), 50, "{text}");
    assert!(printed[0].ends_with("amount=1"), "{text}");
    assert!(text.contains("more follow: --skip 50"), "{text}");
    // All of them, in two threads, each with its own values.
    let all = format!("logpoint {at} amount={{amount}} --limit 0 --json");
    let asked = full.recording.prompt(&[&all]);
    let reply: Value = serde_json::from_str(&asked.text()).expect("JSON");
    let lines = reply["result"]["lines"].as_array().expect("lines");
    assert_eq!(lines.len() as i64, DEPOSITS);
    assert_eq!(reply["result"]["more"], false);
    for thread in [&lines[0]["thread"], &lines[lines.len() - 1]["thread"]] {
        let own = lines.iter().filter(|line| line["thread"] == *thread);
        let messages: Vec<&str> = own.filter_map(|line| line["message"].as_str()).collect();
        let expected: Vec<String> = (1..=100).map(|n| format!("amount={n}")).collect();
        assert_eq!(messages, expected);
    }
    // A condition, a count, and a condition without a meaning.
    let text = full.prompt(&[
        &format!("logpoint {at} 'n={{amount}}' --where 'amount > 98'"),
        &format!("logpoint {at} 'hit={{hitCount}}' --hit-count 7"),
        &format!("logpoint {at} 'no={{nobody}}' --limit 1"),
    ]);
    let printed = |what: &str| text.lines().filter(|line| line.ends_with(what)).count();
    assert_eq!(
        (printed("n=99"), printed("n=100"), printed("n=98")),
        (2, 2, 0),
        "{text}"
    );
    assert_eq!((printed("hit=7"), printed("hit=8")), (1, 0), "{text}");
    assert!(text.contains("<error: "), "{text}");
}

#[test]
fn conditions_and_counts_stop_both_ways() {
    let full = Full::of("full-conditions", &["short"]);
    let at = format!("planted.c:{}", line("deposit"));
    let text = full.prompt(&[
        &format!("break {at} if amount == 70"),
        "goto first",
        "continue",
        "print amount",
        "continue",
        "print amount",
        "reverse-continue",
        "print amount",
    ]);
    for number in 1..=3 {
        assert!(has_line(&text, &format!("${number} = 70")), "{text}");
    }
    assert!(
        text.contains("at breakpoint 1, at event") || text.contains("at breakpoint 1, "),
        "{text}"
    );
    // Another condition, ignored hits, and the Nth hit of the whole run.
    let text = full.prompt(&[
        &format!("break {at}"),
        "condition 1 amount > 40",
        "ignore 1 3",
        "goto first",
        "continue",
        "print amount",
        "disable 1",
        &format!("break {at} --hit-count 5"),
        "goto last",
        "reverse-continue",
        "print amount",
    ]);
    assert!(has_line(&text, "$1 = 44"), "{text}");
    assert!(has_line(&text, "$2 = 5"), "{text}");
    // From the end, two are passed.
    let text = full.prompt(&[
        &format!("break {at}"),
        "ignore 1 2",
        "goto last",
        "reverse-continue",
        "print amount",
    ]);
    assert!(has_line(&text, "$1 = 98"), "{text}");
    // What cannot be evaluated is told.
    let unknown = format!("break {at} if *(int *)16 == 1");
    let ended = full.recording.prompt(&[&unknown, "goto first", "continue"]);
    assert!(
        ended.errors().contains("could not be evaluated"),
        "{}",
        ended.errors()
    );
}

#[test]
fn until_stays_in_the_frame() {
    let full = Full::of("full-until", &["short"]);
    let text = full.prompt(&[
        "break earn",
        "goto first",
        "continue",
        "break remove 1",
        "frame 1",
        "print/x $rbp",
        "frame 0",
        &format!("until planted.c:{}", line("deposit")),
        "print/x $rbp",
    ]);
    // The line is in a function that earn calls: earn returns to its caller, which has its own frame.
    let [caller, now] = printed(&text)[..] else {
        panic!("two values: {text}");
    };
    assert_eq!(now, caller, "{text}");
    let mut moments = text.lines().filter(|line| line.contains(" at event "));
    let last = moments.next_back().expect("a moment");
    assert!(
        last.contains(": main at ") || last.contains(": start_thread"),
        "{text}"
    );
    let text = full.prompt(&[
        "break main",
        "goto first",
        "continue",
        &format!("advance planted.c:{}", line("sum")),
        "where",
    ]);
    assert!(
        text.contains(&format!("planted.c:{}", line("sum"))),
        "{text}"
    );
    // Without a place, out of the loop.
    let text = full.prompt(&[
        "break earn",
        "goto first",
        "continue",
        "print/x $rbp",
        "until",
        "print/x $rbp",
        "where",
    ]);
    let earned = format!("planted.c:{}", line("earned"));
    assert!(text.contains(&earned), "{text}");
    let frames = printed(&text);
    assert!(frames.len() == 2 && frames[0] == frames[1], "{text}");
}

#[test]
fn a_line_that_runs_long_is_left_at_once() {
    let full = Full::of("full-long-line", &["short"]);
    // A hundred calls in one line, which next steps over.
    let text = full.prompt(&[
        "break earn",
        "goto first",
        "continue",
        "next",
        "where",
        "next-back",
        "where",
    ]);
    let source = std::fs::read_to_string(fixture_source("planted").join("planted.c"));
    let source = source.expect("the source is there");
    let place = |code: &str| {
        let mut lines = source.lines();
        let at = lines
            .position(|line| line.contains(code))
            .expect("the line is there");
        format!("planted.c:{}", at + 1)
    };
    let (after, before) = (place("return NULL;"), place("n <= 100"));
    let (left, back) = (text.find(&after), text.rfind(&before));
    assert!(left.is_some() && left < back, "{text}");
}

#[test]
fn sql_tells_who_wrote_read_and_executed_what() {
    let full = Full::of("full-sql", &[]);
    let recording = &full.recording;
    // The pointer that a name has overwritten: three characters too many, each a write of one byte.
    let next = full.accounts + 2 * 24 + 8;
    let sql = format!(
        "SELECT seq || '+' || step AS moment, size, old, new, function, line FROM memory_writes \
         WHERE addr < {} AND addr + size > {next} ORDER BY position",
        next + 8
    );
    let rows = recording.rows(&sql);
    let last = rows.last().expect("somebody wrote it");
    assert_eq!(last["function"], "call_it", "{rows:?}");
    assert_eq!(last["line"], line("planted"), "{rows:?}");
    assert_eq!(last["size"], 1, "{rows:?}");
    assert!(rows.iter().any(|row| row["function"] == "main"), "{rows:?}");
    let moment = last["moment"].as_str().expect("a moment");
    let letter = recording.row(&format!(
        "SELECT value('{moment}', 'i') AS i, value('{moment}', 'name[i]') AS letter, reg('{moment}', 'rip') AS rip"
    ));
    assert_eq!(letter["i"], "10", "{letter:?}");
    assert_eq!(letter["letter"], "114 'r'", "{letter:?}");
    // The processor's watchpoint and the code report the same.
    let noted = format!(
        "SELECT count(*) FROM memory_writes WHERE function = 'call_it' AND addr >= {next} AND addr < {}",
        next + 8
    );
    let watched = rows
        .iter()
        .filter(|row| row["function"] == "call_it")
        .count();
    assert_eq!(recording.number(&noted), watched as i64);
    // Each line and each instruction of a function, as often as it was executed.
    let begun = |function: &str, line: u64| {
        recording.number(&format!(
            "SELECT count(*) FROM lines WHERE function = '{function}' AND line = {line}"
        ))
    };
    assert_eq!(begun("deposit", line("deposit")), DEPOSITS);
    // The loop's line is begun once more than its body in each of the four calls.
    let letters = "annbertachristopherdora".len() as i64;
    assert_eq!(begun("call_it", line("planted")), letters);
    assert_eq!(begun("call_it", line("planted") - 1), letters + 4);
    let returns =
        "SELECT count(*) FROM instructions WHERE function = 'deposit' AND text LIKE 'ret%'";
    assert_eq!(recording.number(returns), DEPOSITS);
    let reads = format!(
        "SELECT count(*) FROM memory_reads WHERE function = 'sum' AND addr >= {} AND addr < {}",
        full.accounts,
        full.accounts + 4 * 24
    );
    // The balance and the pointer of three accounts; the third pointer leads elsewhere.
    assert_eq!(recording.number(&reads), 6);
}

/// Tells whether the processor has the registers zmm0 to zmm31 and k0 to k7.
fn has_avx512() -> bool {
    let processors = std::fs::read_to_string("/proc/cpuinfo").expect("the kernel tells");
    processors.split_whitespace().any(|flag| flag == "avx512f")
}

#[test]
fn sql_shows_registers_of_all_kinds() {
    let scratch = Scratch::new("full-wide");
    let source = "unsigned char pattern[32], seen[32]; static unsigned long mask = 0x5a;\n\
        __attribute__((noinline)) void spot(void) { __asm__ volatile(\"nop\"); }\n\
        int main(void) { for (int i = 0; i < 32; i++) pattern[i] = i + 1;\n\
        __asm__ volatile(\"vmovups %0, %%ymm5; vmovups %%ymm5, %1\" : : \"m\"(pattern), \"m\"(seen) : \"memory\", \"xmm5\");\n\
        if (__builtin_cpu_supports(\"avx512f\")) __asm__ volatile(\"kmovw %k0, %%k1\" : : \"r\"(mask));\n\
        __asm__ volatile(\"fldpi\"); spot(); __asm__ volatile(\"fstp %st(0)\");\n\
        return seen[31] - 32; }\n";
    let program = compiled(&scratch, "wide.c", source, &["-O1", "-g", "-mavx"]);
    let program = Program::new(program, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &["--full"], &program);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let first = "SELECT seq || '+' || step AS moment, value(seq || '+' || step, '&seen') AS seen \
        FROM instructions WHERE function = 'spot' ORDER BY position LIMIT 1";
    let found = recording.row(first);
    let moment = found["moment"].as_str().expect("a moment");
    let seen = found["seen"].as_str().expect("an address");
    let digits = seen.trim_start_matches("0x");
    let digits: String = digits.chars().take_while(char::is_ascii_hexdigit).collect();
    let seen = i64::from_str_radix(&digits, 16).expect("an address");
    let known = recording.row(&format!(
        "SELECT reg('{moment}', 'ymm5') = mem('{moment}', {seen}, 32) AS ymm, reg('{moment}', 'xmm5') = mem('{moment}', {seen}, 16) AS xmm, \
         mem('{moment}', {seen}, 1) = X'01' AS first, reg('{moment}', 'mxcsr') = X'801F0000' AS control, \
         reg('{moment}', 'st0') = X'35C26821A2DA0FC90040' AS pi"
    ));
    for name in ["ymm", "xmm", "first", "control", "pi"] {
        assert_eq!(known[name], true, "{name}: {known:?}");
    }
    let wide = recording.row(&format!(
        "SELECT encode(reg('{moment}', 'zmm5'), 'hex') AS zmm5, encode(reg('{moment}', 'k1'), 'hex') AS k1"
    ));
    match has_avx512() {
        true => {
            let mut expected: String = (1..=32).map(|byte| format!("{byte:02x}")).collect();
            expected.push_str(&"0".repeat(64));
            assert_eq!(wide["zmm5"], expected, "{wide:?}");
            assert_eq!(wide["k1"], "5a00000000000000", "{wide:?}");
        }
        // Without them a value is NULL.
        false => assert!(wide["zmm5"].is_null() && wide["k1"].is_null(), "{wide:?}"),
    }
    // Where not every instruction is recorded, stops have xmm registers alone.
    let plain = Hindsight::recorded(&scratch, "plain", &[], &program);
    let rows = plain.rows("SELECT reg(start_seq, 'ymm5') AS ymm FROM calls LIMIT 3");
    assert!(rows.iter().all(|row| row["ymm"].is_null()), "{rows:?}");
    let wrong = recording.command("sql", &[&format!("SELECT reg('{moment}', 'ymm32')")]);
    assert!(
        wrong.errors().contains("zmm0 to zmm31"),
        "{}",
        wrong.errors()
    );
}

#[test]
fn questions_about_stretches_run_only_these() {
    let full = Full::of("full-stretch", &["short"]);
    let recording = &full.recording;
    let rows = recording.rows(
        "SELECT position, tid, addr, text FROM instructions WHERE position BETWEEN 1000 AND 1009 \
         ORDER BY position",
    );
    let positions: Vec<i64> = rows
        .iter()
        .filter_map(|row| row["position"].as_i64())
        .collect();
    assert_eq!(positions, (1000..1010).collect::<Vec<i64>>());
    // An event and the instructions up to the next one.
    let seq = recording.number("SELECT min(start_seq) FROM calls WHERE function = 'deposit'");
    let span = recording.number(&format!(
        "SELECT max(ts_ns) - min(ts_ns) FROM events WHERE seq IN ({seq}, {})",
        seq + 1
    ));
    let count = format!("SELECT count(*) FROM instructions WHERE seq = {seq}");
    assert_eq!(recording.number(&count), span);
    // The limit is respected: the whole run is not read.
    let few = recording.rows("SELECT position, step FROM instructions LIMIT 5");
    assert_eq!(few.len(), 5);
    let plan = recording.command(
        "sql",
        &["EXPLAIN SELECT * FROM memory_writes WHERE addr = 4096 AND position < 5000 AND function = 'main'"],
    );
    let plan = plan.text();
    for part in [
        "RunAgain: table=memory_writes",
        "position <= 4999",
        "addr = 4096",
        "watch 1 byte",
    ] {
        assert!(plan.contains(part), "no {part}: {plan}");
    }
    let end = recording.number("SELECT max(ts_ns) FROM events");
    let all = recording.number("SELECT count(*) FROM instructions");
    assert_eq!(all, end, "every instruction once");
}

#[test]
fn two_recordings_are_asked_together_with_a_column_run() {
    let scratch = Scratch::new("full-runs");
    let source = "int step(int n) {\n  return n * 3;\n}\n\
        int main(int count, char **words) {\n  int sum = 0;\n  for (int i = 0; i < 5 * count; i++) sum += step(i);\n  return sum < 0;\n}\n";
    let steps = compiled(&scratch, "steps.c", source, &["-O0", "-g"]);
    for (name, args) in [("two", &["more"][..]), ("one", &[])] {
        let program = Program::new(&steps, scratch.path()).args(args);
        Hindsight::recorded(&scratch, name, &["--full"], &program);
    }
    for (table, rest) in [("lines", "line = 2"), ("instructions", "text LIKE 'ret%'")] {
        let sql = format!(
            "SELECT run, count(*) AS n FROM {table} WHERE function = 'step' AND {rest} GROUP BY run ORDER BY run"
        );
        let asked = Hindsight::command(&scratch, &["sql", "one", "two", &sql, "--json"]).run();
        let expected = json!([{"run": "one", "n": 5}, {"run": "two", "n": 10}]);
        assert_eq!(asked.result(), expected, "{table}: {}", asked.errors());
    }
}

#[test]
fn tables_of_instructions_need_a_recording_that_has_them() {
    let scratch = Scratch::new("full-none");
    let program =
        Program::new(fixture_artifact("planted", "planted"), scratch.path()).args(["short"]);
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    for table in ["instructions", "lines", "memory_writes", "memory_reads"] {
        let ended = recording.command("sql", &[&format!("SELECT * FROM {table} LIMIT 1")]);
        assert_ne!(ended.status, Status::Code(0), "{table}");
        let errors = ended.errors();
        assert!(
            errors.contains("every instruction") && errors.contains("record --full"),
            "{errors}"
        );
    }
}

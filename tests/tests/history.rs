//! Goal: what a recording says about values over time is what the program itself wrote down. Method: a fixture that writes
//! every new value, recorded as a whole and live; queried by SQL and through lines of `hindsight repl`.

use std::sync::Arc;

use e2e::{
    Comparison, Hindsight, Live, Program, Recording, Scratch, Shared, compiled, fixture_artifact,
    in_turn, marked_line,
};

/// The program's output after `word`, in order.
fn written<'t>(output: &'t str, word: &str) -> Vec<&'t str> {
    let lines = output.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(first, _)| *first == word)
        .map(|(_, value)| value)
        .collect()
}

/// The changes that SQL reports: old and new.
fn changes(recording: &Recording, sql: &str) -> Vec<(Option<String>, String)> {
    let rows = recording.rows(sql);
    let text = |row: &e2e::Row, column: &str| row[column].as_str().map(str::to_owned);
    rows.iter()
        .map(|row| (text(row, "old"), text(row, "new").expect("never null")))
        .collect()
}

/// Each value with the one before it; the first has none.
fn pairs(values: &[&str]) -> Vec<(Option<String>, String)> {
    let before = std::iter::once(None).chain(values.iter().map(|value| Some((*value).to_owned())));
    before
        .zip(values.iter().map(|value| (*value).to_owned()))
        .collect()
}

fn recorded() -> Arc<Comparison> {
    static SHARED: Shared<Comparison> = Shared::new();
    SHARED.get(|| Comparison::of("changes", "changes", &[]))
}

/// A recording of a million events.
fn million() -> Arc<(Scratch, Recording)> {
    static SHARED: Shared<(Scratch, Recording)> = Shared::new();
    SHARED.get(|| {
        let scratch = Scratch::new("history-million");
        let program = Program::new(fixture_artifact("changes", "changes"), scratch.path());
        let (_, recording) = Hindsight::record(&scratch, &[], &program.args(["500000"]));
        (scratch, recording)
    })
}

/// A live session that has stopped at each raise, as a closed recording.
fn raised_live(name: &str) -> (Live, Recording, String) {
    let program = fixture_artifact("changes", "changes");
    let at = format!(
        "changes.c:{}",
        marked_line("changes", "changes.c", "raised")
    );
    let live = Live::started(name, &["--break", &at], &program, &[]);
    let recording = live.recording();
    for _ in 0..2 {
        live.moved(&["continue"]);
    }
    assert_eq!(live.run_to_end(), 0);
    let output = live.output();
    (live, recording, output)
}

#[test]
fn a_parameter_s_history_is_what_the_program_wrote() {
    let comparison = recorded();
    let output = comparison.native.text();
    let wanted = written(&output, "n");
    assert_eq!(wanted, ["0", "1", "2"]);
    let sql = "SELECT * FROM history('n', 'step') ORDER BY seq";
    assert_eq!(changes(&comparison.recording, sql), pairs(&wanted));
    // Each row is at the entry that passed the value, with its time and place.
    let wrong = comparison.recording.number(
        "SELECT count(*) FROM history('n', 'step') h LEFT JOIN calls c ON c.start_seq = h.seq \
         WHERE (c.function IS DISTINCT FROM 'step') OR h.function <> 'step' OR c.tid <> h.tid \
         OR c.ts_ns <> h.ts_ns OR h.file NOT LIKE '%changes.c' OR h.line <> c.line",
    );
    assert_eq!(wrong, 0);
    let lines = ["break step", "continue", "history n"];
    let told = comparison.recording.prompt(&lines);
    for value in &wanted {
        assert!(
            told.text().contains(&format!("| {value} ")),
            "{}",
            told.text()
        );
    }
}

#[test]
fn threads_do_not_change_each_other_s_variables() {
    let comparison = recorded();
    let sql = "SELECT * FROM history('number', 'lane') ORDER BY new";
    let first = |value: &str| (None, value.to_owned());
    assert_eq!(
        changes(&comparison.recording, sql),
        [first("1"), first("2")]
    );
}

#[test]
fn a_global_s_history_is_what_the_program_wrote() {
    let (_live, recording, output) = raised_live("history-global");
    let wanted = written(&output, "level");
    assert_eq!(wanted, ["1", "6", "13"]);
    let sql = "SELECT * FROM history('level') ORDER BY seq";
    assert_eq!(changes(&recording, sql), pairs(&wanted));
    // Shared variables are followed from anywhere, at the prompt too.
    let told = recording.prompt(&["goto last", "last-write level"]);
    assert!(
        told.text().contains("level became 13 between"),
        "{}",
        told.text()
    );
}

#[test]
fn watches_stop_where_values_change_forwards_and_back() {
    let comparison = recorded();
    let output = comparison.native.text();
    let ended = comparison.recording.prompt(&[
        "break step",
        "continue",
        "delete",
        "watch n",
        "continue",
        "print n",
        "continue",
        "continue",
        "reverse-continue",
        "reverse-continue",
        "goto last",
        "reverse-continue",
    ]);
    let told = ended.text();
    let said: Vec<&str> = told.lines().filter(|l| l.starts_with("Watch ")).collect();
    assert_eq!(
        said,
        [
            "Watch 2: n (in step)",
            "Watch 2: n was 0, is 1",
            "Watch 2: n was 1, is 2",
            "Watch 2: n was 0, is 1",
            "Watch 2: n was 1, is 2",
        ],
        "{told}{output}"
    );
    assert!(told.contains("$1 = 1\n"), "{told}");
    let errors = ended.errors();
    assert_eq!(
        errors
            .matches("no change of a watched expression after")
            .count(),
        1,
        "{errors}"
    );
    assert_eq!(
        errors
            .matches("no change of a watched expression before")
            .count(),
        1,
        "{errors}"
    );
}

#[test]
fn a_watch_of_what_is_nowhere_is_refused() {
    let comparison = recorded();
    let recording = &comparison.recording;
    let inside = recording.number("SELECT min(start_seq) FROM calls WHERE function = 'raised'");
    let lines = [&format!("goto {inside}"), "watch nobody + level", "watch"];
    let ended = recording.prompt(&lines);
    let wrong = ended.errors();
    assert!(wrong.contains("no variable \"nobody\""), "{wrong}");
    assert!(
        ended.text().contains("Nothing is watched."),
        "{}",
        ended.text()
    );
}

#[test]
fn a_watched_global_stops_everywhere_and_recorded_stops_are_passed() {
    let (_live, recording, _) = raised_live("watch-global");
    let ended = recording.prompt(&[
        "watch level",
        "watch",
        "continue",
        "print level",
        "continue",
        "reverse-continue",
        "unwatch 1",
        "watch",
    ]);
    let told = ended.text();
    for text in [
        "Watch 1: level (everywhere)",
        "level was 1, is 6",
        "$1 = 6\n",
        "level was 6, is 13",
        "Watch 1 removed: level",
        "Nothing is watched.",
    ] {
        assert!(told.contains(text), "{text}: {told}{}", ended.errors());
    }
    // The second raise changes nothing, so the watch does not stop there.
    assert_eq!(told.matches("level was").count(), 3, "{told}");
}

#[test]
fn a_watch_finds_changes_among_a_million_events() {
    let million = million();
    let (_, recording) = &*million;
    assert!(recording.number("SELECT count(*) FROM events") > 1_000_000);
    let mut lines = vec!["break step", "continue", "delete", "watch n"];
    lines.extend(["continue"; 9]);
    lines.extend(["goto last", "reverse-continue"]);
    let ended = recording.prompt(&lines);
    let told = ended.text();
    assert_eq!(
        told.matches("n was ").count(),
        10,
        "{told}{}",
        ended.errors()
    );
    assert!(told.contains("n was 8, is 9"), "{told}");
    let sql = "SELECT * FROM history('n', 'step') ORDER BY seq";
    assert_eq!(changes(recording, sql).len(), 10);
}

#[test]
fn ctrl_c_ends_a_search_and_not_the_prompt() {
    let million = million();
    let (scratch, recording) = &*million;
    let driver = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../repl/tests/common/terminal.py"
    );
    let path = recording.path().to_str().expect("paths of tests are text");
    let hindsight = Hindsight::path().to_str().expect("paths of tests are text");
    let steps = [
        ("help lists the verbs", ""),
        ("> ", "goto output:1\r"),
        ("main> ", "break step\r"),
        ("main> ", "continue\r"),
        ("step> ", "delete\r"),
        // Its value never changes, so that all entries are read.
        ("step> ", "watch n * 0\r"),
        ("step> ", "continue\r"),
        ("until:interrupted", "\u{3}"),
        ("step> ", "print n\r"),
        ("$1 = 0", ""),
        ("step> ", "select count(*) from history('n * 0', 'step')\r"),
        ("until:interrupted", "\u{3}"),
        ("step> ", "quit\r"),
    ];
    let mut args = vec![driver, "100"];
    for (wait, send) in &steps {
        args.extend(["--step", wait, send]);
    }
    args.extend([
        "--",
        "env",
        "TERM=xterm",
        "NO_COLOR=1",
        hindsight,
        "repl",
        path,
    ]);
    let ended = Program::new("python3", scratch.path()).args(&args).run();
    assert_eq!(
        ended.status.as_shell_code(),
        0,
        "{}{}",
        ended.text(),
        ended.errors()
    );
    assert!(!ended.text().contains("n * 0 was"), "{}", ended.text());
}

#[test]
fn places_in_time_are_found_in_a_real_recording() {
    let comparison = recorded();
    let recording = &comparison.recording;
    let output = comparison.native.text();
    let last = recording.number("SELECT max(seq) FROM events");
    let third =
        recording.row("SELECT seq, ts_ns FROM output WHERE text LIKE 'n 2%' ORDER BY seq LIMIT 1");
    let (seq, ts_ns) = (&third["seq"], &third["ts_ns"]);
    assert_eq!(output.lines().nth(2), Some("n 2"));
    let at = |place: &str| {
        let line = format!("goto {place}");
        recording.prompt(&[&line]).text()
    };
    let is_at = |text: &str, seq: &str| text.contains(&format!("at event {seq},"));
    let wanted = seq.to_string();
    assert!(is_at(&at("output:3"), &wanted), "{}", at("output:3"));
    assert!(is_at(&at(&format!("{ts_ns}ns")), &wanted), "{ts_ns}");
    let half = (last as f64 / 2.0).round().to_string();
    assert!(is_at(&at("50%"), &half), "{}", at("50%"));
    assert!(is_at(&at("100%"), &last.to_string()), "{}", at("100%"));
    // The verb output names the event of each line.
    let shown = recording.prompt(&["goto last", "output"]);
    let row = shown.text();
    let row = row.lines().find(|line| line.ends_with("| n 2"));
    let cells: Vec<&str> = row
        .expect("the line is shown")
        .split('|')
        .map(str::trim)
        .collect();
    assert_eq!(cells[..2], ["3", &wanted]);
}

#[test]
fn a_line_of_output_that_is_not_there_is_refused() {
    let comparison = recorded();
    let lines = comparison.native.text().lines().count();
    let place = format!("goto output:{}", lines + 1);
    let ended = comparison.recording.prompt(&[&place]);
    let wanted = format!("there is no line {} of output", lines + 1);
    assert!(ended.errors().contains(&wanted), "{}", ended.errors());
    assert!(
        ended
            .errors()
            .contains(&format!("the program wrote {lines}"))
    );
}

#[test]
fn notes_are_kept_in_the_recording() {
    let comparison = Comparison::of("changes", "changes", &[]);
    let recording = &comparison.recording;
    let ended = recording.prompt(&["goto 7", "note here it begins", "goto 3", "note earlier"]);
    assert_eq!(ended.errors(), "");
    let ended = recording.prompt(&["goto @here", "notes"]);
    let told = ended.text();
    assert!(told.contains("at event 7,"), "{told}");
    assert!(told.find("earlier") < told.find("here it begins"), "{told}");
    let check = recording.command("check", &[]);
    assert_eq!(check.status.as_shell_code(), 0, "{}", check.text());
    let rows = recording.rows("SELECT seq, text FROM notes ORDER BY seq");
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["text"], "here it begins");
}

const COUNTED: &str = r#"int total, unchanged = 7;
struct pair { int a, b; } both;
static void add(int n) {
  int own = n;
  own *= 10;
  total += n;
  both.b = own;
}
int main(void) {
  for (int i = 1; i <= 3; i++) add(i);
  return 0;
}
"#;

#[test]
fn writes_of_a_recording_of_every_instruction_are_its_history_in_sql() {
    let scratch = Scratch::new("history-full");
    let program = compiled(&scratch, "counted.c", COUNTED, &["-O0", "-g"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["--full"], &program);
    let texts = |all: &[(&str, &str)]| -> Vec<(Option<String>, String)> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        all.iter()
            .map(|(old, new)| (some(old), (*new).to_owned()))
            .collect()
    };
    assert_eq!(
        changes(&recording, "select old, new from history('total')"),
        texts(&[("0", "1"), ("1", "3"), ("3", "6")])
    );
    assert_eq!(
        changes(&recording, "select old, new from history('both.b')"),
        texts(&[("0", "10"), ("10", "20"), ("20", "30")])
    );
    assert!(changes(&recording, "select old, new from history('unchanged')").is_empty());
    // In each call anew: what lay there before is no value of the variable.
    for expression in ["history('own', 'add')", "history('add::own')"] {
        assert_eq!(
            changes(&recording, &format!("select old, new from {expression}")),
            texts(&[
                ("", "1"),
                ("1", "10"),
                ("", "2"),
                ("2", "20"),
                ("", "3"),
                ("3", "30")
            ])
        );
    }
    let rows = recording.rows("select function, file, line, tid from history('total')");
    for row in &rows {
        assert_eq!(
            (row["function"].as_str(), row["line"].as_i64()),
            (Some("add"), Some(6))
        );
    }
    let refused = recording.command("sql", &["select * from history('$rbx')"]);
    assert!(
        refused.errors().contains("does not lie in memory"),
        "{}",
        refused.errors()
    );
}

const MANY_CALLS: &str = r#"
static volatile long sink;
__attribute__((noinline)) long leaf(long n, double half) {
  long twice = n * 2;
  sink = twice + (long)half;
  return twice;
}
__attribute__((noinline)) long mid(long n) {
  long s = 0;
  for (int i = 0; i < 9; i++)
    s += leaf(n / 3 + i / 4, (n / 5) / 2.0);
  return s;
}
int main(void) {
  for (long i = 0; i < 4000; i++)
    mid(i);
  return 0;
}
"#;

/// `last-write` searches backwards, and passes entries that cannot show a variable; `history` in SQL goes through all
/// changes from the beginning.
#[test]
fn the_last_change_is_the_last_of_all_up_to_there() {
    for (name, options, level) in in_turn([
        ("plain", &[][..], "-O0"),
        ("watched", &["--watch", "mid::s"], "-O2"),
        ("copies", &["--snapshot", "every=9000events"], "-O0"),
        ("watched", &["--watch", "mid::s"], "-O0"),
        ("copies", &["--snapshot", "every=9000events"], "-O2"),
        ("plain", &[], "-O2"),
    ]) {
        let scratch = Scratch::new(&format!("last-of-all-{name}{level}"));
        let program = compiled(&scratch, "app.c", MANY_CALLS, &["-g", level]);
        let program = Program::new(program, scratch.path());
        let ended = Hindsight::record_command(&scratch, "app", options, &program).run();
        assert_eq!(ended.status, e2e::Status::Code(0), "{}", ended.errors());
        let recording = Recording::new(scratch.join("app.hindsight"));
        for (variable, function) in [("n", "leaf"), ("half", "leaf"), ("s", "mid")] {
            let all = format!("SELECT * FROM history('{variable}', '{function}') ORDER BY seq");
            let all = recording.rows(&all);
            let is_seen = variable != "s" || name == "watched" && level == "-O0";
            assert!(!is_seen || all.len() > 500, "{name}{level}: {variable}");
            for seq in [9, 500, 30_003, 60_001, 79_998] {
                let mut upto = all.iter().filter(|row| row["seq"].as_u64() <= Some(seq));
                let last = upto.next_back();
                let lines = [
                    format!("goto {seq}"),
                    format!("last-write {function}::{variable}"),
                ];
                let told = recording
                    .prompt(&lines.each_ref().map(String::as_str))
                    .text();
                let place = format!("{name}{level}: {variable} at {seq}: {last:?}\n{told}");
                let Some(last) = last else {
                    assert!(told.contains("shows no value of"), "{place}");
                    continue;
                };
                let new = last["new"].as_str().expect("never null");
                let at = last["seq"].as_u64().expect("a number");
                let said = match last["old"].as_str() {
                    Some(_) => told.contains(&format!(" became {new} between event ")),
                    None => told.contains(&format!(" {new} ")),
                };
                assert!(said && told.contains(&format!("event {at} ")), "{place}");
            }
        }
    }
}

/// A member and a global variable of the same name, and a variable of a recursive function.
const SHADOWED: &str = r#"
int total = -4;
volatile int sink;
__attribute__((noinline)) void mark(int n) { sink = n; }
struct Cart {
  int total;
  __attribute__((noinline)) int add(int n) {
    int own = n * 2;
    total += n;
    mark(n);
    return own;
  }
};
__attribute__((noinline)) int down(int n) {
  int own = n * 10;
  if (n > 0)
    own += down(n - 1);
  else
    mark(n);
  return own;
}
int main() {
  Cart cart = {10};
  int sum = cart.add(5);
  sum += down(2);
  return sum - 40;
}
"#;

fn last_written(live: &Live, expression: &str) -> String {
    let reply = live.ask(&["last-write", expression]);
    let value = reply["after"]["value"].as_str();
    value
        .unwrap_or_else(|| panic!("{expression}: {reply:#}"))
        .to_owned()
}

#[test]
fn what_wrote_a_variable_of_the_selected_frame_is_told_live() {
    let live = Live::new("history-frame");
    let program = compiled(&live.scratch, "cart.cc", SHADOWED, &["-g", "-O0"]);
    live.start(&["--break", "mark"], &program, &[]);
    assert_eq!(last_written(&live, "total"), "-4");
    live.ask(&["up"]);
    assert_eq!(live.print("total"), "15");
    assert_eq!(last_written(&live, "total"), "15");
    assert_eq!(last_written(&live, "own"), "10");
    let history = live.ask(&["history", "total"]);
    assert_eq!(history["changes"][0]["value"], "15", "{history:#}");
    let why = live.ask(&["why", "total"]);
    assert_eq!(why["steps"][0]["text"], "total is 15", "{why:#}");
    live.ask(&["frame", "0"]);
    assert_eq!(last_written(&live, "total"), "-4");
}

#[test]
fn what_the_user_sets_at_a_stop_is_its_last_write() {
    let live = Live::new("history-set");
    let program = compiled(&live.scratch, "cart.cc", SHADOWED, &["-g", "-O0"]);
    live.start(&["--break", "mark"], &program, &[]);
    live.ask(&["set", "total", "7"]);
    assert_eq!(last_written(&live, "total"), "7");
    let text = live.command(&["last-write", "total"]).run().text();
    assert!(!text.contains("goto last"), "{text}");
    let why = live.ask(&["why", "total"]);
    assert_eq!(why["steps"][0]["text"], "total is 7", "{why:#}");
    let set = "total was set to 7 by the user";
    assert_eq!(why["steps"][1]["text"], set, "{why:#}");
    live.ask(&["up"]);
    assert_eq!(last_written(&live, "total"), "15");
}

#[test]
fn the_last_write_in_an_outer_call_of_a_recursion_is_refused() {
    let live = Live::new("history-recursion");
    let program = compiled(&live.scratch, "cart.cc", SHADOWED, &["-g", "-O0"]);
    live.start(&["--break", "mark"], &program, &[]);
    live.moved(&["continue"]);
    live.ask(&["frame", "1"]);
    assert_eq!(last_written(&live, "n"), "0");
    live.ask(&["frame", "2"]);
    assert_eq!(live.print("n"), "1");
    for verb in ["last-write", "why"] {
        let refused = live.refused(&[verb, "n"]).to_string();
        assert!(refused.contains("n of frame 2 cannot be"), "{refused}");
        assert!(refused.contains("frame 0"), "{refused}");
    }
    // A global variable is the same in each call.
    assert_eq!(last_written(&live, "total"), "-4");
}

/// A function that is never called, one that is, and names that nothing has.
const NAMES: &str = r#"
#include <stdio.h>
int total;
__attribute__ ((noinline)) int never (int step) { return 2 * step; }
__attribute__ ((noinline)) int stride (int step) { total += step; return total; }
int main (int argc, char ** argv)
{
  if (argc > 5)
    return never (argc);
  printf ("%d %s\n", stride (3), argv[0]);
  return 0;
}
"#;

#[test]
fn what_can_never_be_known_is_refused_with_the_reason() {
    let scratch = Scratch::new("never-known");
    let program = compiled(&scratch, "names.c", NAMES, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    for (name, why, hint) in [
        ("main::step", "main has no variable \"step\"", ""),
        (
            "stride::stepp",
            "stride has no variable \"stepp\"",
            "stride::step",
        ),
        (
            "never::step",
            "no call of never is recorded",
            "SELECT function",
        ),
        ("totl", "no variable \"totl\" here", ""),
    ] {
        for moment in ["goto first", "goto last"] {
            for verb in ["history", "last-write"] {
                let told = recording.prompt(&[moment, &format!("{verb} {name}")]);
                let errors = told.errors();
                assert!(
                    errors.contains(why) && errors.contains(hint),
                    "{moment}, {verb} {name}: {}{errors}",
                    told.text()
                );
            }
        }
    }
    let known = recording.prompt(&["history stride::step"]).text();
    assert!(known.contains("| 3 "), "{known}");
}

#[test]
fn a_variable_that_its_function_does_not_have_is_no_value_in_sql() {
    let scratch = Scratch::new("never-known-sql");
    let program = compiled(&scratch, "names.c", NAMES, &["-g", "-O0"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    for function in ["value(seq, ", "explain_value(seq, ", "frame_value(seq, 0, "] {
        for (name, why) in [
            ("main::step", "main has no variable \"step\""),
            ("1 + main::step", "main has no variable \"step\""),
            ("never::total", "never has no variable \"total\""),
        ] {
            let sql = format!("SELECT {function}'{name}') FROM events");
            let refused = recording.try_rows(&sql);
            let ended = refused.err().unwrap_or_else(|| panic!("{sql} has rows"));
            assert!(ended.errors().contains(why), "{sql}: {}", ended.errors());
        }
    }
    // It may be known at some events, and is not where it was not called.
    let rows = recording.rows("SELECT value(seq, 'never::step') AS v FROM events");
    assert!(rows.iter().all(|row| row["v"].is_null()));
    let rows = recording.rows("SELECT DISTINCT value(seq, 'stride::step') AS v FROM events");
    assert!(rows.iter().any(|row| row["v"] == "3"), "{rows:?}");
}

/// Optimised loops: the sum and the product are constants where the function begins, and in registers later.
const IN_REGISTERS: &str = r#"
volatile int factor = 5;
__attribute__((noipa)) int work(int n) {
  int sum = 0, mul = 1;
  for (int i = 0; i < n; i++)
    sum += i * factor;
  for (int i = 1; i < n; i++)
    mul *= i;
  return sum + mul;
}
int main(void) { return work(6) == 195 ? 0 : 1; }
"#;

#[test]
fn a_variable_in_a_register_is_not_known_where_its_call_has_returned() {
    let scratch = Scratch::new("history-returned");
    let program = compiled(&scratch, "app.c", IN_REGISTERS, &["-O1", "-g"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let row = recording.row(
        "select value(end_seq, 'work::sum') as sum, frame_value(end_seq, -1, 'mul') as mul,
         frame_value(end_seq, -1, 'n') as n, explain_value(end_seq, 'work::sum') as why
         from calls where function = 'work'",
    );
    assert!(row["sum"].is_null() && row["mul"].is_null(), "{row:?}");
    assert_eq!(row["n"], "6", "{row:?}");
    let why = row["why"].as_str().unwrap_or_default();
    assert!(why.contains("the call has returned"), "{row:?}");
    let told = recording.prompt(&["last-write work::sum"]).text();
    let later = "what it was afterwards is not known.";
    assert!(
        !told.contains(" is 0 since") && told.contains(later),
        "{told}"
    );
}

#[test]
fn a_variable_in_a_register_is_shown_line_by_line() {
    let scratch = Scratch::new("history-register");
    let program = compiled(&scratch, "app.c", IN_REGISTERS, &["-O1", "-g"]);
    let program = Program::new(program, scratch.path());
    let options = ["--log-writes", "work::sum"];
    let refused = Hindsight::record_command(&scratch, "logged", &options, &program).run();
    let next = "see it line by line: record --full, then break work, continue, and at each next: print sum";
    assert!(refused.errors().contains(next), "{}", refused.errors());
    let (_, recording) = Hindsight::record(&scratch, &["--full"], &program);
    let begun = recording.number("select start_seq from calls where function = 'work'");
    let told = recording.prompt(&["goto last", "last-write work::sum"]);
    let next = format!("goto {begun}, and at each next: print sum");
    assert!(told.errors().contains(&next), "{}", told.errors());
}

/// A pointer that is null where the recording's only copy of memory is taken.
const SET_LATER: &str = r#"
struct item { long id; } items[3];
struct item *current;
__attribute__((noinline)) void visit(int i) { current = &items[i]; current->id += 10; }
int main(void) {
  for (int i = 0; i < 3; i++) visit(i);
  return 0;
}
"#;

#[test]
fn what_is_behind_a_pointer_that_was_null_once_can_be_found_in_a_second_run() {
    let scratch = Scratch::new("history-null");
    let program = compiled(&scratch, "app.c", SET_LATER, &["-O0", "-g"]);
    let program = Program::new(program, scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    for verb in ["last-write", "history", "why"] {
        let refused = recording.prompt(&[&format!("{verb} current->id")]);
        let errors = refused.errors();
        for part in [
            "the pointer is null <stale: as of event ",
            "; what it was later is not recorded",
            "find its writes in a second run: hindsight rerun ",
            " --log-writes 'current->id'",
        ] {
            assert!(errors.contains(part), "{verb}: {part}: {errors}");
        }
    }
}

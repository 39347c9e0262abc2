//! Goal: `--log-writes` logs the writes to local variables, in each call of their function and in no other, and to what
//! pointers lead to, wherever they lead. What is missing is said. Method: fixtures whose writes are in marked lines, and gdb's
//! watchpoints as the reference: set in each call, and set anew whenever a pointer changes. Each run takes a part of the builds and
//! variables; `WHOLE=1` all.

use std::collections::BTreeSet;
use std::path::Path;

use e2e::{
    Comparison, Hindsight, Nesting, Program, Recording, Row, Scratch, fixture_artifact, in_turn,
    marked_line,
};

/// A change: the line, and the new bytes in hexadecimal.
type Written = (u64, String);

const BOTH: [&str; 2] = ["logged_calls", "logged_calls_O2"];

fn program(artifact: &str, arguments: &[&str], scratch: &Scratch) -> Program {
    let program = Program::new(fixture_artifact("logged", artifact), scratch.path());
    program.args(arguments)
}

/// Records a program of the fixture; it behaves as in a native run.
fn recorded(artifact: &str, arguments: &[&str], place: &str) -> Comparison {
    let scratch = Scratch::new(artifact);
    let program = program(artifact, arguments, &scratch);
    let options = ["--log-writes", place];
    Comparison::of_program(scratch, &program, &options, Nesting::Jumps)
}

fn writes(recording: &Recording, target: &str) -> Vec<Row> {
    recording.rows(&format!(
        "SELECT * FROM writes WHERE by = 'program' AND target = '{target}' ORDER BY seq"
    ))
}

fn text<'r>(row: &'r Row, column: &str) -> &'r str {
    row[column].as_str().unwrap_or_default()
}

fn lines(rows: &[Row]) -> Vec<u64> {
    rows.iter().filter_map(|row| row["line"].as_u64()).collect()
}

/// The writes that changed something, in gdb's form.
fn changes(recording: &Recording, target: &str) -> Vec<Written> {
    let rows = writes(recording, target);
    let changed = rows.iter().filter(|row| row["old"] != row["new"]);
    let written = |row: &Row| {
        let line = row["line"].as_u64().unwrap_or_default();
        (line, text(row, "new").to_owned())
    };
    changed.map(written).collect()
}

fn line(file: &str, mark: &str) -> u64 {
    marked_line("logged", file, mark)
}

/// The beginning of gdb's scripts: a watchpoint that prints each change and goes on, and a loop over the other stops.
const SCRIPT: &str = "
import gdb
gdb.execute('set pagination off')
gdb.execute('set confirm off')
gdb.execute('set print thread-events off')
class Seen(gdb.Breakpoint):
    def __init__(self, address, size):
        super().__init__('*(unsigned char (*)[%d]) %d' % (size, address), gdb.BP_WATCHPOINT, gdb.WP_WRITE)
        self.place = (address, size)
    def stop(self):
        line = gdb.find_pc_line(gdb.newest_frame().pc() - 1).line
        memory = gdb.selected_inferior().read_memory(*self.place).tobytes()
        print('WRITTEN', line, memory.hex(), flush=True)
        return False
def place_of(expression):
    value = gdb.parse_and_eval(expression)
    return int(value.address), value.type.sizeof
hit = []
gdb.events.stop.connect(lambda event: hit.extend(getattr(event, 'breakpoints', [])))
def stops():
    while True:
        hit.clear()
        gdb.execute('continue')
        if gdb.selected_inferior().pid == 0:
            return
        yield list(hit)
";

/// What gdb's script prints of changes.
fn gdb_changes(program: &Program, script: &str) -> Vec<Written> {
    let path = program.dir().join("watch.py");
    std::fs::write(&path, format!("{SCRIPT}{script}")).expect("the folder can be written to");
    let path = path.to_str().expect("paths of tests are text");
    let options = ["-q", "-batch", "-nx", "-x", path, "--args"];
    let ended = program.wrapped(Path::new("/usr/bin/gdb"), options).run();
    let output = ended.text();
    let told = output
        .lines()
        .filter_map(|line| line.split_once("WRITTEN ")?.1.split_once(' '));
    let written: Vec<Written> = told
        .map(|(line, bytes)| (line.parse().expect("a line"), bytes.to_owned()))
        .collect();
    assert!(!written.is_empty(), "{output}\n{}", ended.errors());
    written
}

/// gdb's watchpoint on a variable in each call of a function, from its beginning to its return.
fn gdb_in_calls(program: &Program, function: &str, variable: &str) -> Vec<Written> {
    let script = format!(
        "
gdb.execute('starti')
entry = gdb.Breakpoint('{function}')
returns, calls = {{}}, []
for found in stops():
    sp = int(gdb.parse_and_eval('(unsigned long) $sp'))
    if entry in found:
        older = gdb.newest_frame().older()
        to = older.pc()
        if to not in returns:
            returns[to] = gdb.Breakpoint('*%d' % to)
        calls.append((to, int(older.read_register('rsp')), Seen(*place_of('{variable}'))))
    else:
        pc = gdb.newest_frame().pc()
        for call in [call for call in calls if call[:2] == (pc, sp)]:
            calls.remove(call)
            call[2].delete()
"
    );
    gdb_changes(program, &script)
}

/// gdb's watchpoint on what a pointer leads to, set anew whenever the pointer changes.
fn gdb_behind(program: &Program, pointer: &str, target: &str) -> Vec<Written> {
    let script = format!(
        "
gdb.execute('starti')
class Moved(gdb.Breakpoint):
    def stop(self):
        return True
moved = Moved('*(unsigned long *) %d' % place_of('{pointer}')[0], gdb.BP_WATCHPOINT, gdb.WP_WRITE)
seen = None
for found in stops():
    if moved not in found:
        continue
    if seen is not None:
        seen.delete()
    seen = None
    if int(gdb.parse_and_eval('{pointer}')) != 0:
        seen = Seen(*place_of('{target}'))
"
    );
    gdb_changes(program, &script)
}

#[test]
fn writes_to_local_variables_are_those_of_gdb() {
    let variables = [
        ("sum", "total", 3),
        ("product", "out", 3),
        ("comes_after", "other", 3),
        ("on_thread", "own", 8),
    ];
    let all = BOTH.map(|artifact| variables.map(|variable| (artifact, variable)));
    for (artifact, (function, variable, calls)) in in_turn(all.concat()) {
        let place = format!("{function}::{variable}");
        let comparison = recorded(artifact, &[], &place);
        let mut seen = changes(&comparison.recording, &place);
        let program = program(artifact, &[], &comparison.scratch);
        let mut told = gdb_in_calls(&program, function, variable);
        // The first write of a call may find the same value in what earlier calls left on the stack.
        let first = line("calls.c", variable);
        seen.retain(|(line, _)| *line != first);
        told.retain(|(line, _)| *line != first);
        let of_first = lines(&writes(&comparison.recording, &place));
        let of_first = of_first.iter().filter(|line| **line == first);
        assert_eq!(of_first.count(), calls, "{artifact}: {place}");
        if function == "on_thread" {
            // Two threads at once: the order is another one in each run.
            seen.sort();
            told.sort();
        }
        assert_eq!(seen, told, "{artifact}: {place}");
    }
}

#[test]
fn each_live_call_has_its_own_variable() {
    for artifact in in_turn(BOTH) {
        let comparison = recorded(artifact, &[], "product::out");
        let rows = writes(&comparison.recording, "product::out");
        let at = |mark| line("calls.c", mark);
        let expected = [
            vec![at("out"); 3],
            [at("inner"), at("add"), at("inner"), at("add")].to_vec(),
        ];
        assert_eq!(lines(&rows), expected.concat(), "{artifact}: {rows:#?}");
        let places: BTreeSet<i64> = rows.iter().filter_map(|row| row["addr"].as_i64()).collect();
        assert_eq!(places.len(), 3, "{artifact}");
        assert!(
            !comparison
                .own_lines
                .iter()
                .any(|line| line.contains("not logged")),
            "{:?}",
            comparison.own_lines
        );
    }
}

#[test]
fn calls_without_a_watchpoint_are_told() {
    for artifact in in_turn(BOTH) {
        let comparison = recorded(artifact, &["7"], "product::out");
        let rows = writes(&comparison.recording, "product::out");
        let places: BTreeSet<i64> = rows.iter().filter_map(|row| row["addr"].as_i64()).collect();
        assert_eq!(places.len(), 4, "{artifact}: the processor has four");
        let told: Vec<&String> = comparison
            .own_lines
            .iter()
            .filter(|line| line.contains("product::out are not logged in every call"))
            .collect();
        assert_eq!(told.len(), 1, "{artifact}: {:?}", comparison.own_lines);
        let kept =
            "SELECT count(*) FROM events WHERE kind = 'warning' AND text LIKE '%four watchpoints%'";
        assert_eq!(comparison.recording.number(kept), 1, "{artifact}");
    }
}

#[test]
fn memory_that_a_call_has_no_longer_is_not_its_variable() {
    let at = |mark| line("calls.c", mark);
    for artifact in in_turn(BOTH) {
        // longjmp has left the call, and another one has its memory.
        let comparison = recorded(artifact, &[], "leaves::left");
        let rows = writes(&comparison.recording, "leaves::left");
        let each = [at("left"), at("left again")];
        assert_eq!(lines(&rows), each.repeat(3), "{artifact}: {rows:#?}");
        assert!(rows.iter().all(|row| text(row, "function") == "leaves"));
        // Two variables of one function share memory, one after the other.
        for (name, mark, last) in [
            ("first", "first", "06000000"),
            ("second", "second", "08000000"),
        ] {
            let place = format!("shared_slot::{name}.tail");
            let comparison = recorded(artifact, &[], &place);
            let rows = writes(&comparison.recording, &place);
            assert_eq!(lines(&rows), [at(mark), at("add")], "{artifact}: {rows:#?}");
            assert_eq!(text(&rows[1], "new"), last, "{artifact}");
        }
    }
}

#[test]
fn variables_of_inner_blocks_are_logged_in_their_block() {
    let at = |mark| line("calls.c", mark);
    for artifact in in_turn(BOTH) {
        let comparison = recorded(artifact, &[], "sum::step");
        let rows = writes(&comparison.recording, "sum::step");
        // sum(3), sum(0) and sum(2), in any order.
        assert_eq!(
            lines(&rows),
            [at("step"), at("add")].repeat(5),
            "{artifact}: {rows:#?}"
        );
    }
}

#[test]
fn threads_have_their_own_variables_and_write_those_of_others() {
    for artifact in in_turn(BOTH) {
        let comparison = recorded(artifact, &[], "on_thread::own");
        let of_threads =
            "SELECT count(*) AS n FROM writes WHERE target = 'on_thread::own' GROUP BY tid";
        let counts: Vec<i64> = comparison
            .recording
            .rows(of_threads)
            .iter()
            .filter_map(|row| row["n"].as_i64())
            .collect();
        assert_eq!(counts, [4 * 51; 2], "{artifact}");
    }
    let comparison = recorded("logged_calls", &[], "main::numbers");
    let rows = writes(&comparison.recording, "main::numbers");
    let by_threads = rows.iter().filter(|row| text(row, "function") == "run");
    assert_eq!(by_threads.count(), 8, "{rows:#?}");
    assert_eq!(
        text(rows.last().expect("there are some"), "new"),
        "c8000000b0040000"
    );
}

#[test]
fn what_pointers_lead_to_is_logged_as_by_gdb() {
    let at = |mark| line("pointed.c", mark);
    let comparison = recorded("logged_pointed", &[], "current->value");
    let seen = changes(&comparison.recording, "current->value");
    let before: Vec<u64> = seen.iter().map(|(line, _)| *line).collect();
    let set = at("set");
    let expected = [
        set,
        at("direct"),
        set,
        at("add"),
        set,
        set,
        set,
        at("the last one"),
    ];
    assert_eq!(before, expected, "{seen:#?}");
    // The pointer that the kernel has written is not followed at once, and the output says so.
    let values: Vec<&str> = seen.iter().map(|(_, bytes)| &bytes[..2]).collect();
    assert_eq!(values, ["02", "03", "05", "06", "08", "0b", "0d", "0e"]);
    assert!(
        comparison.own_lines.iter().any(|line| {
            line.contains(
                "the writes of current->value are not logged from where a pointer changed",
            )
        }),
        "{:?}",
        comparison.own_lines
    );
    for artifact in in_turn(["logged_pointed", "logged_pointed_O2"]) {
        let comparison = recorded(artifact, &[], "current->value");
        let seen = changes(&comparison.recording, "current->value");
        let told = gdb_behind(
            &program(artifact, &[], &comparison.scratch),
            "current",
            "current->value",
        );
        // From where the kernel writes the pointer gdb stays at the old place, and we do not.
        let until = told.iter().position(|(_, bytes)| bytes == "0c000000");
        let until = until.expect("gdb sees it");
        assert_eq!(seen[..until], told[..until], "{artifact}");
        assert_eq!(told.len(), until + 1, "{artifact}: {told:#?}");
        assert_eq!(seen.len(), until + 2, "{artifact}: {seen:#?}");
    }
}

#[test]
fn each_pointer_of_a_chain_is_followed() {
    let comparison = recorded("logged_pointed", &[], "list->next->value");
    let seen = changes(&comparison.recording, "list->next->value");
    let set = line("pointed.c", "set");
    let expected = ["09000000", "0b000000", "0c000000"];
    let expected: Vec<Written> = expected
        .iter()
        .map(|new| (set, (*new).to_owned()))
        .collect();
    assert_eq!(seen, expected);
    let moves = writes(&comparison.recording, "pointer of list->next->value");
    assert_eq!(
        lines(&moves)[..],
        [
            line("pointed.c", "chain"),
            line("pointed.c", "chain"),
            line("pointed.c", "moved")
        ],
        "{moves:#?}"
    );
    let comparison = recorded("logged_pointed_O2", &[], "elements[at]");
    let values: Vec<String> = changes(&comparison.recording, "elements[at]")
        .into_iter()
        .map(|(_, new)| new)
        .collect();
    assert_eq!(values, ["01000000", "02000000", "03000000", "04000000"]);
}

#[test]
fn history_and_last_write_use_the_writes_of_local_variables() {
    let comparison = recorded("logged_calls", &[], "sum::total");
    let told = comparison
        .recording
        .prompt(&["goto last", "last-write sum::total", "history sum::total"])
        .text();
    let at = |mark: &str| {
        let path = e2e::fixture_source("logged").join("calls.c");
        format!("{}:{}", path.display(), line("calls.c", mark))
    };
    assert!(told.contains("sum::total became "), "{told}");
    assert!(
        told.contains(&format!("(sum at {})", at("twice"))),
        "{told}"
    );
    assert!(told.contains(&at("add")), "{told}");
    assert!(!told.contains("--log-writes"), "{told}");
    let values = comparison
        .recording
        .rows("SELECT new FROM history('sum::total') ORDER BY seq");
    let values: Vec<&str> = values.iter().map(|row| text(row, "new")).collect();
    let logged = changes(&comparison.recording, "sum::total");
    let logged: Vec<String> = logged
        .iter()
        .map(|(_, bytes)| {
            u32::from_str_radix(&bytes[..2], 16)
                .expect("a number")
                .to_string()
        })
        .collect();
    for value in &logged {
        assert!(values.contains(&value.as_str()), "{value}: {values:?}");
    }
    // The function's calls need not be recorded.
    let scratch = Scratch::new("history-alone");
    let program = program("logged_calls", &[], &scratch);
    let options = ["-f", "add", "--log-writes", "sum::total"];
    let (_, recording) = Hindsight::record(&scratch, &options, &program);
    let alone = recording.rows("SELECT new FROM history('sum::total') ORDER BY seq");
    let alone: Vec<&str> = alone.iter().map(|row| text(row, "new")).collect();
    assert_eq!(alone, values);
}

#[test]
fn history_and_last_write_use_the_writes_behind_pointers() {
    let comparison = recorded("logged_pointed", &[], "current->value");
    let values = comparison
        .recording
        .rows("SELECT new FROM history('current->value') ORDER BY seq");
    let values: Vec<&str> = values.iter().map(|row| text(row, "new")).collect();
    for value in ["2", "3", "5", "6", "8", "11", "13", "14"] {
        assert!(values.contains(&value), "{value}: {values:?}");
    }
    let told = comparison
        .recording
        .prompt(&["goto last", "last-write current->value"])
        .text();
    assert!(told.contains("current->value became 14"), "{told}");
}

#[test]
fn a_second_run_logs_the_same_expressions() {
    let scratch = Scratch::new("rerun-places");
    let program = program("logged_calls", &[], &scratch);
    let (_, recording) = Hindsight::record(&scratch, &["-f", "sum"], &program);
    let path = recording.path().to_str().expect("paths of tests are text");
    let words = [
        "rerun",
        path,
        "--log-writes",
        "product::out",
        "-o",
        "second",
    ];
    let rerun = Hindsight::command(&scratch, &words).run();
    assert_eq!(rerun.status.as_shell_code(), 0, "{}", rerun.errors());
    let told = rerun.errors();
    assert!(told.contains("7 writes to product::out:"), "{told}");
    let path = e2e::fixture_source("logged").join("calls.c");
    let wrote = format!("{}:{}", path.display(), line("calls.c", "inner"));
    assert!(told.contains(&wrote), "{told}");
    // Numbers, and not bytes.
    assert!(told.contains("| 6 "), "{told}");
}

#[test]
fn the_command_of_a_second_run_logs_a_local_variable_as_printed() {
    let scratch = Scratch::new("rerun-printed");
    let program = program("logged_calls", &[], &scratch);
    let (_, recording) = Hindsight::record(&scratch, &["-f", "sum"], &program);
    for asked in [["last-write sum::total"], ["why sum::total"]] {
        let lines = [&["goto last"][..], &asked[..]].concat();
        let told = recording.prompt(&lines).text();
        let command = told
            .lines()
            .find_map(|line| Some(line.split_once("hindsight rerun ")?.1));
        let command = command.unwrap_or_else(|| panic!("{asked:?}: {told}"));
        let words: Vec<&str> = command
            .split_whitespace()
            .map(|word| word.trim_matches('\''))
            .collect();
        let words = [&["rerun"][..], &words[..]].concat();
        let rerun = Hindsight::command(&scratch, &words).run();
        assert_eq!(
            rerun.status.as_shell_code(),
            0,
            "{words:?}: {}",
            rerun.errors()
        );
        let told = rerun.errors();
        assert!(
            told.contains("11 writes to sum::total:"),
            "{words:?}: {told}"
        );
    }
}

#[test]
fn variables_that_no_watchpoint_can_follow_are_refused() {
    for (artifact, place, wanted) in [
        (
            "logged_calls_O2",
            "sum::i",
            "a register, or nowhere, at times",
        ),
        (
            "logged_calls_O2",
            "sum::n",
            "a register, or nowhere, at times",
        ),
        ("logged_calls", "main::argv[0]", "through a pointer"),
        ("logged_calls", "product::nothing", "nothing"),
        ("logged_calls", "numbers", "--log-writes main::numbers"),
    ] {
        let scratch = Scratch::new("refused-place");
        let path = fixture_artifact("logged", artifact);
        let path = path.to_str().expect("paths of tests are text");
        let words = ["record", "-o", "out", "--log-writes", place, "--", path];
        let ended = Hindsight::command(&scratch, &words).run();
        assert_eq!(
            ended.status.as_shell_code(),
            2,
            "{place}: {}",
            ended.errors()
        );
        assert_eq!(ended.text(), "", "{place}: the program has not run");
        assert!(
            ended.errors().contains(wanted),
            "{place}: {}",
            ended.errors()
        );
    }
}

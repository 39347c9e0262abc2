//! Breakpoints, watches and lines that run at them.

use std::collections::BTreeSet;

use e2e::{Live, Status, compiled};

use super::{gdb, program, prompt};

#[test]
fn hits_of_a_conditional_breakpoint_are_passed_as_in_gdb() {
    let live = Live::started("gdb-ignore", &["--stop-on-entry"], &program(), &[]);
    let words = ["break factorial if n < 4", "ignore 1 2"];
    let said = prompt(&live, &[words[0], words[1], "c", "p n", "info b"]);
    let theirs = gdb(&live, &[words[0], words[1], "run > /dev/null", "p n"]);
    assert!(said.contains("$1 = 1\n"), "{said}");
    assert!(theirs.ends_with(" = 1\n"), "{theirs}");
    let (_, listed) = said.rsplit_once("$1 = 1\n").expect("the list follows");
    assert!(!listed.contains("skips"), "none is left: {said}");
    let said = prompt(&live, &["ignore 1 0", "info b"]);
    assert!(said.contains("Breakpoint 1 skips no hits"), "{said}");
}

/// A condition that the user wrote stays, also one that looks like a count. So do the hits that are left to skip, when the program
/// starts again.
#[test]
fn skipped_hits_change_no_condition() {
    let live = Live::started("gdb-skips", &["--stop-on-entry"], &program(), &[]);
    let said = prompt(
        &live,
        &[
            "break factorial if hitCount > 1",
            "ignore 1 2",
            "info b",
            "c",
            "p n",
        ],
    );
    assert!(said.contains("hitCount > 1"), "{said}");
    assert!(!said.contains("hitCount > 2"), "{said}");
    assert!(
        said.contains("Breakpoint 1 skips its next 2 hits\n"),
        "{said}"
    );
    let theirs = gdb(
        &live,
        &["break factorial", "ignore 1 3", "run > /dev/null", "p n"],
    );
    let (_, theirs) = theirs.rsplit_once(" = ").expect("a value");
    assert!(
        said.ends_with(&format!("$1 = {}\n", theirs.trim())),
        "{said} {theirs}"
    );
    // Three of the seven come before its end.
    let said = prompt(&live, &["ignore 1 7", "restart", "info b"]);
    assert!(said.contains("skips its next 4 hits"), "{said}");
    assert!(said.contains("hitCount > 1"), "{said}");
}

#[test]
fn skipped_hits_of_a_logpoint_write_nothing() {
    let live = Live::started("gdb-skips-log", &["--stop-on-entry"], &program(), &[]);
    let said = prompt(
        &live,
        &[
            "logpoint factorial \"n is {n}\" --condition \"n < 4\"",
            "ignore 1 1",
            "c",
            "select message from logpoints order by seq",
        ],
    );
    assert!(said.contains("Logpoint 1 skips its next hit\n"), "{said}");
    let theirs = gdb(
        &live,
        &[
            "break factorial if n < 4",
            "ignore 1 1",
            "run > /dev/null",
            "p n",
            "c",
            "p n",
        ],
    );
    let values = theirs
        .split(" = ")
        .skip(1)
        .filter_map(|rest| rest.lines().next());
    let theirs: Vec<String> = values.map(|value| format!("n is {value}")).collect();
    let ours: Vec<&str> = said
        .split('|')
        .flat_map(|cell| cell.lines())
        .map(str::trim)
        .filter(|text| text.starts_with("n is ") && !text.contains('{'))
        .collect();
    assert_eq!(theirs, ours, "{said}");
}

#[test]
fn breakpoints_are_set_as_in_gdb() {
    let live = Live::started("gdb-breaks", &["--stop-on-entry"], &program(), &[]);
    let said = prompt(&live, &["tbreak leaf", "c", "info b"]);
    assert!(said.contains("There are none."), "{said}");
    let said = prompt(&live, &["break factorial if n == 3", "c", "p n"]);
    assert!(said.ends_with("$1 = 3\n"), "{said}");
    let theirs = gdb(
        &live,
        &[
            "break factorial if n == 3",
            "run > /dev/null",
            "condition 1",
            "ignore 1 1",
            "continue",
            "p n",
        ],
    );
    let said = prompt(&live, &["condition 2", "ignore 2 1", "c", "p n"]);
    assert_eq!(said.lines().last(), Some("$2 = 1"), "{said}");
    assert!(theirs.ends_with(" = 1\n"), "{theirs}");
    let said = prompt(&live, &["condition 2 n > 100", "ignore 2 5", "info b"]);
    assert!(said.contains("skips its next 5 hits"), "{said}");
    let said = prompt(
        &live,
        &[
            "handle SIGUSR1 stop print",
            "info b",
            "handle SIGUSR1 nostop noprint pass",
            "handle SIGUSR1 nopass",
        ],
    );
    assert!(
        said.contains("Catchpoints") && said.contains("signals are always passed on"),
        "{said}"
    );
    let said = prompt(&live, &["rbreak ^(middle|bump)$", "d", "info b"]);
    assert!(
        said.contains(": bump at ")
            && said.contains(": middle at ")
            && said.ends_with("There are none.\n"),
        "{said}"
    );
    let said = prompt(
        &live,
        &[
            "catch fork",
            "catch syscall write",
            "catch load libm*",
            "catch rain",
            "set detach-on-fork off",
            "set follow-fork-mode both",
        ],
    );
    assert!(
        said.contains("Catchpoint") && said.contains("syscall write"),
        "{said}"
    );
    assert!(
        said.contains("\"rain\" cannot be caught") && said.contains("load libm*"),
        "{said}"
    );
    assert!(
        said.contains("a session has one process") && said.contains("write parent or child"),
        "{said}"
    );
}

#[test]
fn ranges_of_numbers_and_watched_addresses_are_written_as_in_gdb() {
    let live = Live::started("gdb-ranges", &["--stop-on-entry"], &program(), &[]);
    let words = [
        "break leaf",
        "break factorial",
        "break middle",
        "break bump",
    ];
    prompt(&live, &words);
    let said = prompt(&live, &["delete 2-3"]);
    let removed = "Breakpoint 2 removed: factorial\nBreakpoint 3 removed: middle\n";
    assert!(said.ends_with(removed), "{said}");
    let said = prompt(&live, &["watch -l tempo", "awatch -location chosen"]);
    for shown in ["Watchpoint 5: tempo", "Watchpoint 6: chosen"] {
        assert!(said.contains(shown), "{shown}: {said}");
    }
}

#[test]
fn lines_run_at_stops_and_breakpoints_are_saved() {
    let live = Live::started("gdb-commands", &["--stop-on-entry"], &program(), &[]);
    let lines = [
        "break factorial if n < 4",
        "commands",
        "silent",
        "p n * 10",
        "end",
        "c",
        "c",
        "save breakpoints saved",
        "save breakpoints saved",
    ];
    let said = prompt(&live, &lines);
    for shown in ["$1 = 30\n", "$2 = 20\n", "saved: 1 breakpoint"] {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    assert!(!said.contains("stopped at breakpoint"), "silent: {said}");
    assert!(said.contains("cannot write"), "it is there already: {said}");
    let saved = std::fs::read_to_string(live.scratch.join("saved")).expect("a file");
    assert_eq!(
        saved,
        "break factorial if n < 4\ncommands\n  silent\n  p n * 10\nend\n"
    );
    let ended = live.command(&["repl", "--script", "saved"]).run();
    assert!(
        ended.text().contains("Breakpoint 1: factorial"),
        "{}{}",
        ended.text(),
        ended.errors()
    );
    let said = prompt(&live, &["commands 7", "p 1", "end"]);
    assert!(said.contains("there are: 1"), "{said}");
    assert!(
        !said.contains("$3"),
        "the lines of none are not run: {said}"
    );
}

#[test]
fn lines_of_a_breakpoint_run_at_each_stop_in_the_shell_and_in_a_recording() {
    let live = Live::started("shell-commands", &["--break", "factorial"], &program(), &[]);
    let shell = |words: &[&str]| {
        let ended = live.command(words).run();
        assert_eq!(
            ended.status,
            Status::Code(0),
            "{words:?}: {}",
            ended.errors()
        );
        ended.text()
    };
    shell(&["commands", "1", "silent", "print n", "continue", "print 7"]);
    let said = shell(&["continue"]);
    let hits = said.lines().filter(|line| line.starts_with('$')).count();
    assert!(hits > 2, "each arrival prints: {said}");
    assert!(!said.contains("stopped at breakpoint 1"), "silent: {said}");
    assert!(!said.contains("= 7"), "nothing after continue: {said}");
    assert!(said.contains("has ended"), "{said}");

    let program = program();
    let program = program.to_str().expect("text");
    let recorded = live
        .command(&["record", "-o", "plain", "--", program])
        .run();
    assert!(recorded.errors().contains("plain"), "{}", recorded.errors());
    shell(&["open", "plain.hindsight"]);
    let shell = |words: &[&str]| shell(&[words, &["--session", "2"]].concat());
    shell(&["break", "factorial"]);
    shell(&["commands", "1", "silent", "print n", "continue"]);
    let past = live.command(&["continue", "--session", "2"]).run();
    let shown = past.text();
    let shown = shown.lines().filter(|line| line.starts_with('$')).count();
    assert_eq!(shown, hits + 1, "{}", past.text());
    assert!(past.errors().contains("nothing after"), "{}", past.errors());
    let saved = shell(&["save", "breakpoints", "of-past"]);
    assert!(saved.contains("1 breakpoint"), "{saved}");
    let gone = shell(&["commands", "1", "--remove"]);
    assert_eq!(gone, "1: no lines any more\n");
}

#[test]
fn lines_of_a_temporary_breakpoint_run_and_those_of_a_deleted_one_do_not() {
    let live = Live::started("gdb-once-commands", &["--stop-on-entry"], &program(), &[]);
    let listed = || live.command(&["commands"]).run().text();
    let said = prompt(
        &live,
        &["tbreak factorial", "commands 1", "echo once\\n", "end", "c"],
    );
    assert_eq!(said.matches("once\n").count(), 1, "{said}");
    assert_eq!(listed(), "No breakpoint has lines.\n");
    let lines = [
        "break factorial",
        "commands 2",
        "echo old\\n",
        "end",
        "delete",
        "break factorial",
        "c",
    ];
    let said = prompt(&live, &lines);
    assert!(!said.contains("old\n"), "{said}");
    assert!(said.contains("Breakpoint 3: factorial"), "{said}");
    assert_eq!(listed(), "No breakpoint has lines.\n");
}

#[test]
fn watches_have_conditions_and_addresses_are_expressions() {
    let live = Live::started("gdb-watches", &["--stop-on-entry"], &program(), &[]);
    let text = |words: &[&str]| {
        let ended = live.command(words).run();
        ended.text() + &ended.errors()
    };
    let said = text(&["break", "*leaf"]);
    assert!(!said.contains("error"), "{said}");
    let address = text(&["p/x", "&leaf"]);
    let address = address.split("0x").nth(1).expect("an address").trim();
    text(&["c"]);
    let pc = text(&["p/x", "$pc"]);
    assert!(pc.trim().ends_with(address), "{pc}, not {address}");
    text(&["delete"]);
    let said = text(&["watch", "tempo", "if", "tempo > 3"]);
    assert!(!said.contains("error"), "{said}");
    let said = text(&["info", "watchpoints"]);
    assert!(said.contains("tempo > 3"), "{said}");
}

/// Between two runs, code and breakpoints are there; what needs the program says how to get it.
#[test]
fn code_and_breakpoints_are_there_between_runs() {
    let live = Live::started("gdb-between", &["--break", "leaf"], &program(), &[]);
    let text = |words: &[&str]| {
        let ended = live.command(words).run();
        ended.text() + &ended.errors()
    };
    text(&["disable", "1"]);
    assert_eq!(live.ask(&["continue"])["status"], "ended");
    for refused in [
        &["print", "tempo"][..],
        &["p", "&tempo"],
        &["list"],
        &["bt"],
        &["x", "&tempo"],
        &["watch", "tempo"],
    ] {
        let said = text(refused);
        assert!(
            said.starts_with("error: ") && said.contains("hindsight restart"),
            "{refused:?}: {said}"
        );
    }
    let said = text(&["list", "leaf"]);
    assert!(said.contains("leaf (int x)"), "{said}");
    let said = text(&["list", "control.c:10,14"]);
    assert!(said.lines().count() == 5 && !said.contains("->"), "{said}");
    let said = text(&["info", "line", "leaf"]);
    assert!(said.starts_with("Line "), "{said}");
    let said = text(&["list", "no_such_function"]);
    assert!(said.contains("no_such_function"), "{said}");
    assert_eq!(text(&["p", "7/2"]).lines().count(), 1);
    let said = text(&["break", "sum_to"]);
    assert!(said.contains("restart sets it"), "{said}");
    let known = live.ask(&["info", "breakpoints"]);
    let numbers = |known: &serde_json::Value| -> Vec<serde_json::Value> {
        let all = known["probes"].as_array().expect("a list");
        all.iter().map(|one| one["id"].clone()).collect()
    };
    assert_eq!(numbers(&known), [1, 2], "{known}");
    text(&["delete", "1"]);
    let known = live.ask(&["info", "breakpoints"]);
    assert_eq!(numbers(&known), [2], "{known}");
    let said = text(&["delete", "1"]);
    assert!(said.contains("there is no"), "{said}");
    let begun = live.ask(&["restart"]);
    live.keep(&begun);
    let place = live.ask(&["where"]);
    assert_eq!(place["frame"]["function"], "sum_to", "{place}");
}

/// A breakpoint of one thread is a condition.
#[test]
fn a_breakpoint_of_one_thread_is_refused_with_the_way() {
    let live = Live::started("gdb-of-thread", &["--break", "leaf"], &program(), &[]);
    for line in [
        "break middle thread 1",
        "tbreak middle thread 1",
        "break middle thread 1 if x > 0",
    ] {
        let said = prompt(&live, &[line]);
        let refusal = "a breakpoint stops every thread that comes there, not only thread 1";
        assert!(said.contains(refusal), "{line}: {said}");
        assert!(
            said.contains("break LOCATION if $fs_base == VALUE"),
            "{line}: {said}"
        );
    }
    // The way that it tells: the thread has the value, and no other.
    let base = live.print("$fs_base");
    prompt(&live, &["delete"]);
    let other = format!("break leaf if $fs_base == {base} + 1");
    let own = format!("break middle if $fs_base == {base}");
    prompt(&live, &[&other, &own]);
    live.moved(&["continue"]);
    let said = prompt(&live, &["info symbol $pc"]);
    assert!(said.starts_with("middle"), "{said}");
}

/// A list tells temporary breakpoints, and overloads by their parameters.
#[test]
fn temporary_breakpoints_and_overloads_are_told_from_others() {
    const OVERLOADS: &str = "namespace app {
int over(int x) { return x + 1; } int over(double x) { return (int)x + 2; }
struct Box { int get() { return 1; } int get(int k) { return k; } };
}
int main() { app::Box box; return app::over(1) + app::over(2.0) + box.get() + box.get(2); }
";
    let live = Live::new("gdb-overloads");
    let program = compiled(&live.scratch, "over.cc", OVERLOADS, &["-g", "-O0"]);
    live.start(&["--stop-on-entry"], &program, &[]);
    let text = |words: &[&str]| live.command(words).run().text();
    let file = live.scratch.join("over.cc");
    let file = file.display();
    let places = |said: &str| -> BTreeSet<String> {
        let places = said.lines().filter_map(|line| line.strip_prefix("  "));
        places.map(str::to_owned).collect()
    };
    let two = |name: &str, first: &str, second: &str, line: u32| -> BTreeSet<String> {
        [first, second]
            .map(|parameters| format!("{name}({parameters}) at {file}:{line}"))
            .into()
    };
    let said = text(&["break", "app::over"]);
    assert_eq!(
        places(&said),
        two("app::over", "int", "double", 2),
        "{said}"
    );
    let said = text(&["break", "app::Box::get"]);
    assert_eq!(places(&said), two("app::Box::get", "", "int", 3), "{said}");
    assert!(!text(&["tbreak", "main"]).contains("main("));
    let said = text(&["info", "breakpoints"]);
    let row = |id: &str| {
        let cells = said.lines().map(|line| line.split('|').map(str::trim));
        let mut rows = cells.map(Iterator::collect::<Vec<_>>);
        let row = rows.find(|row| row[0] == id);
        row.unwrap_or_else(|| panic!("no {id}: {said}"))
    };
    assert_eq!(row("3")[1..3], ["main", "set, once"]);
    assert_eq!(row("1")[1..3], ["app::over", "set"]);
}

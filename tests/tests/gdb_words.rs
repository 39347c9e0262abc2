//! Goal: gdb's familiar commands work, and print what gdb prints. Method: gdb and a live session at the same place of the same
//! program, whose addresses are fixed; the same commands at the prompt in its past.

use std::path::PathBuf;

use e2e::{Hindsight, Live, Program, Scratch, Status, compiled, fixture_artifact, marked_line};

fn program() -> PathBuf {
    fixture_artifact("control", "control_O0_fixed")
}

fn gdb(live: &Live, commands: &[&str]) -> String {
    let mut words = vec![
        "-batch",
        "-nx",
        "-q",
        "-ex",
        "set width 0",
        "-ex",
        "set confirm off",
    ];
    for command in commands {
        words.extend(["-ex", command]);
    }
    let program = program();
    words.push(program.to_str().expect("text"));
    Program::new("/usr/bin/gdb", live.scratch.path())
        .args(words)
        .run()
        .text()
}

/// The output of a gdb command at the entry of `leaf`.
fn of_gdb(live: &Live, command: &str) -> String {
    let said = gdb(
        live,
        &["break leaf", "run > /dev/null", "echo ~~~\\n", command],
    );
    let (_, said) = said.split_once("~~~\n").unwrap_or_else(|| panic!("{said}"));
    plain(said)
}

/// Without gdb's numbers of values, with one space between words, and names of files without folders.
fn plain(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let name = word.trim_start_matches('"');
        match name.starts_with('/') {
            true => format!("\"{}", name.rsplit('/').next().unwrap_or_default()),
            false => word.to_owned(),
        }
    });
    let mut words: Vec<String> = words.collect();
    if words.first().is_some_and(|word| word.starts_with('$')) {
        words.drain(..2.min(words.len()));
    }
    words.join(" ")
}

/// The text from the value on, if it is a kept value.
fn unnumbered(text: &str) -> String {
    text.rsplit_once("$")
        .map_or(text, |(_, rest)| rest)
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .to_owned()
}

fn prompt(live: &Live, lines: &[&str]) -> String {
    let mut words = vec!["repl"];
    for line in lines {
        words.extend(["--cmd", line]);
    }
    let ended = live.command(&words).run();
    let errors = ended.errors();
    let errors = errors
        .lines()
        .filter(|line| !line.starts_with("hindsight: session"));
    ended.text() + &errors.map(|line| format!("{line}\n")).collect::<String>()
}

/// Answers that have no value on the stack.
const SAME: [&str; 16] = [
    "x/4xw &tempo",
    "x/8xb leaf",
    "x/2dw &tempo",
    "x/3uh &tempo",
    "x/2og &tempo",
    "x/2tb &tempo",
    "x/3c &tempo",
    "x/a &chosen",
    "x/xg &tempo",
    "whatis tempo",
    "whatis chosen",
    "info line leaf",
    "info line control.c:27",
    "printf \"%d %5x|%-6s|%c %5.2f %%\\n\", tempo, tempo, \"ab\", 65, 1.5",
    "printf \"%lu %08.3f %+d %#o\\n\", sizeof(int), 3.14159, tempo, tempo",
    "print -7/2",
];

#[test]
fn answers_are_those_of_gdb() {
    let live = Live::started("gdb-words", &["--break", "leaf"], &program(), &[]);
    for command in SAME {
        let ours = prompt(&live, &[command]);
        let ours = plain(&ours);
        assert_eq!(ours, of_gdb(&live, command), "{command}");
    }
    for command in ["p/x x", "p/d x", "p/o x", "p/c x", "p/u x", "p -x"] {
        let ours = prompt(&live, &[command]);
        assert_eq!(plain(&ours), of_gdb(&live, command), "{command}");
    }
    // gdb names the section, Hindsight the module.
    for command in [
        "info symbol leaf",
        "info symbol &tempo",
        "info symbol leaf + 3",
    ] {
        let theirs = of_gdb(&live, command);
        let (theirs, _) = theirs.split_once(" in section").expect("a section");
        let ours = prompt(&live, &[command]);
        let (ours, module) = ours.trim().split_once(" of ").expect("a module");
        // In gdb a function plus a number is an address, here a mistake; both take an address.
        assert_eq!(plain(ours).replace(" + 0", ""), theirs, "{command}");
        assert!(module.ends_with("control_O0_fixed"), "{module}");
    }
    let theirs = of_gdb(&live, "list 10,14");
    let ours = prompt(&live, &["list 10,14"]);
    let code = |text: &str| -> Vec<String> {
        let kept = text
            .split_whitespace()
            .filter(|word| !matches!(*word, "|" | ":" | "->"));
        kept.map(str::to_owned).collect()
    };
    assert_eq!(code(&ours), code(&theirs));
    let names = prompt(&live, &["info functions ^sum_"]);
    assert!(
        names.contains("sum_to") && !names.contains("leaf"),
        "{names}"
    );
    let names = prompt(&live, &["info variables ^te"]);
    assert!(
        names.contains("tempo    | int") && !names.contains("counter"),
        "{names}"
    );
}

/// The bits of a number as a floating-point number of its size.
#[test]
fn numbers_are_read_as_floating_point_numbers_as_in_gdb() {
    let live = Live::started("gdb-floats", &["--break", "leaf"], &program(), &[]);
    for command in [
        "p/f 1065353216",
        "p/f 4609434218613702656",
        "p/f -1069547520",
        "p/f (char)97",
        "p/f (short)7",
        "p/f 2.5",
        "p/f &*(char*)0",
    ] {
        let ours = prompt(&live, &[command]);
        assert_eq!(plain(&ours), of_gdb(&live, command), "{command}");
    }
}

#[test]
fn the_outermost_frames_are_the_last_ones() {
    let live = Live::started("gdb-outermost", &["--break", "leaf"], &program(), &[]);
    let all = prompt(&live, &["bt"]);
    let all: Vec<&str> = all.lines().collect();
    for (command, most) in [("bt -1", 1), ("bt -3", 3), ("bt -1000", all.len())] {
        let said = prompt(&live, &[command]);
        let said: Vec<&str> = said.lines().collect();
        assert_eq!(said, all[all.len() - most..], "{command}");
    }
    let said = prompt(&live, &["bt --limit 1 --outermost 1"]);
    assert!(said.contains("outermost for others"), "{said}");
}

/// What goes wrong is told, and nothing else.
#[test]
fn mistakes_have_their_own_hints() {
    let live = Live::started("gdb-mistakes", &["--break", "leaf"], &program(), &[]);
    let said = prompt(&live, &["print tempoo", "ptype tempoo", "print $_siginfo"]);
    assert_eq!(said.matches("did you mean \"tempo\"?").count(), 2, "{said}");
    assert!(
        said.contains("there is no $_siginfo here") && !said.contains("set $_siginfo"),
        "{said}"
    );
    for place in ["goto live", "goto 0"] {
        let said = prompt(&live, &[place, "p 5/0"]);
        assert!(
            said.contains("error: division by zero\n") && !said.contains("help:"),
            "{said}"
        );
    }
}

/// Types do not depend on time: they are known before the program's modules are.
#[test]
fn types_are_known_at_the_first_event() {
    let scratch = Scratch::new("first-types");
    let source =
        "struct tag { int a; double d; } one = { 1, 2.5 };\nint main(void) { return one.a - 1; }\n";
    let program = compiled(&scratch, "tagged.c", source, &["-g"]);
    Hindsight::recorded(&scratch, "rec", &[], &Program::new(program, scratch.path()));
    let answer = |line: &str| {
        let words = ["repl", "rec", "--cmd", "goto 0", "--cmd", line];
        let ended = Hindsight::command(&scratch, &words).run();
        ended.text() + &ended.errors()
    };
    for line in ["ptype struct tag", "ptype one"] {
        let said = answer(line);
        let shown = "type = struct tag {\n    int a;\n    double d;\n}\n";
        assert!(said.contains(shown), "{line}: {said}");
    }
    assert!(answer("whatis int (*)(struct tag *)").contains("type = int (*)(struct tag *)"));
    let said = answer("ptype struct nosuch");
    assert!(
        said.contains("there is no type struct nosuch here"),
        "{said}"
    );
    assert!(
        said.contains("help: no module of the recording has it"),
        "{said}"
    );
    // Values do.
    let said = answer("print one");
    assert!(said.contains("no variable \"one\" here"), "{said}");
}

#[test]
fn words_work_in_the_shell_and_in_the_past() {
    let live = Live::started("gdb-shell", &["--break", "leaf"], &program(), &[]);
    let text = |words: &[&str]| {
        let ended = live.command(words).run();
        ended.text() + &ended.errors()
    };
    assert!(
        text(&["x/2dw", "&tempo"]).contains("<tempo>:  120"),
        "{}",
        text(&["x/2dw", "&tempo"])
    );
    assert_eq!(text(&["p/x", "x"]), "$1 = 0x14\n");
    assert_eq!(text(&["printf", "x is %d\\n, x"]), "x is 20\n");
    assert!(
        text(&["info", "line"]).starts_with("Line 26 of "),
        "{}",
        text(&["info", "line"])
    );
    assert!(text(&["bt", "1"]).starts_with("*#0   leaf (x=20)"));
    assert!(text(&["thread", "apply", "all", "bt", "1"]).contains("leaf (x=20)"));
    assert!(text(&["info", "sharedlibrary"]).contains("/libc.so.6"));
    // The values in code and on the stack are known where the thread stopped.
    let past = [
        "x/8xb leaf",
        "x/2i leaf",
        "info line leaf",
        "info symbol leaf",
        "whatis x",
        "p/x x",
        "list 10,14",
        "info sharedlibrary",
        "bt 1",
    ];
    for line in past {
        let now = prompt(&live, &[line]);
        let then = prompt(&live, &["goto last", line]);
        let (now, then) = (unnumbered(&now), unnumbered(&then));
        assert!(
            then.ends_with(&now) || now.contains("leaf"),
            "{line}: {then}, not {now}"
        );
        assert!(!then.contains("error"), "{line}: {then}");
    }
    let refused = prompt(
        &live,
        &[
            "goto last",
            "return",
            "jump 27",
            "handle SIGUSR1 stop",
            "gcore",
        ],
    );
    assert_eq!(
        refused.matches("works only in the present").count(),
        4,
        "{refused}"
    );
}

/// Values have the numbers that gdb gives them, and its variables. gdb runs all lines in one process.
#[test]
fn values_are_kept_as_in_gdb() {
    let live = Live::started("gdb-values", &["--break", "leaf"], &program(), &[]);
    let lines = [
        "print x",
        "print $ + 1",
        "print $$",
        "print $1 * 2 + $$2",
        "set $n = x + 3",
        "print $n",
        "print $n = $n + 1",
        "p/x $n",
        "x/2dw &tempo",
        "print *$_",
        "print $__",
        "x/2xb leaf",
        "x",
        "print $sp == $rsp && $pc == $rip",
    ];
    let mut words = vec!["break leaf", "run > /dev/null", "echo ~~~\\n"];
    words.extend(lines);
    let theirs = gdb(&live, &words);
    let (_, theirs) = theirs.split_once("~~~\n").expect("its own words end");
    let shown = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| {
            // The names of the contents of an address are written differently.
            let (name, value) = line.split_once(':').unwrap_or(("", line));
            let name = name.rsplit(" <").next().unwrap_or_default();
            let words: Vec<&str> = value.split_whitespace().collect();
            format!("{name} {}", words.join(" "))
        });
        let values = lines.filter(|line| !line.contains(" -> "));
        values.map(|line| line.replace("= true", "= 1")).collect()
    };
    let said = prompt(&live, &lines);
    assert!(said.contains("$n: not set -> 23\n"), "{said}");
    let said = said.replace("$n: not set -> 23\n", "");
    assert_eq!(shown(&said), shown(theirs), "{said}");
    // The same session in the shell, in its past, and again live.
    let text = |words: &[&str]| {
        let ended = live.command(words).run();
        ended.text() + &ended.errors()
    };
    assert_eq!(text(&["print", "$1"]), "$11 = 20\n");
    assert!(text(&["print", "--json", "$1"]).contains("\"number\": 12"));
    let said = prompt(
        &live,
        &[
            "goto last",
            "print $n",
            "set $m = $n + 1",
            "goto live",
            "print $m",
        ],
    );
    assert!(
        said.contains("$13 = 24\n") && said.ends_with("$14 = 25\n"),
        "{said}"
    );
    let said = prompt(&live, &["print $nothing", "break leaf if $nothing > 1"]);
    assert_eq!(
        said.matches("$nothing is no register, and has not been set")
            .count(),
        2,
        "{said}"
    );
    // A condition reads the value that is set when a thread reaches it.
    let said = prompt(
        &live,
        &[
            "delete",
            "set $least = 3",
            "break factorial if n < $least",
            "c",
            "print n",
            "set $least 2",
            "c",
            "print n",
        ],
    );
    assert!(
        said.contains("$15 = 2\n") && said.ends_with("$16 = 1\n"),
        "{said}"
    );
    assert_eq!(text(&["set", "$n", "$1 + 1"]), "$n: 24 -> 21\n");
    assert_eq!(text(&["eval", "tempo = $n"]), "tempo = 21\n");
    assert_eq!(text(&["call", "sum_to(4)"]), "$17 = 6\n");
    assert!(text(&["restart"]).contains("stopped"), "it stops again");
    assert_eq!(text(&["print", "$n"]), "$18 = 21\n");
}

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
fn return_and_jump_do_what_they_do_in_gdb() {
    let live = Live::started("gdb-return", &["--break", "leaf"], &program(), &[]);
    let theirs = gdb(
        &live,
        &[
            "break leaf",
            "run > /dev/null",
            "return 5",
            "next",
            "p called",
        ],
    );
    let said = prompt(&live, &["return 5", "next", "p called"]);
    assert!(theirs.ends_with(" = 5\n"), "{theirs}");
    assert_eq!(said.lines().last(), Some("$1 = 5"), "{said}");
    let first = marked_line("control", "control.c", "leaf: first");
    let last = marked_line("control", "control.c", "leaf: last");
    let said = prompt(
        &live,
        &[
            "c",
            &format!("tbreak {last}"),
            "c",
            "set var x = 50",
            &format!("tbreak {last}"),
            // The breakpoint there stops again.
            &format!("jump {first}"),
            "c",
            "p twice",
        ],
    );
    assert_eq!(said.lines().last(), Some("$2 = 100"), "{said}");
    let said = prompt(&live, &["jump bump"]);
    assert!(said.contains("bump is not in leaf"), "{said}");
    // The call that `return` ended is recorded as one that returned.
    live.ask(&["break", "remove", "--all"]);
    let _ = live.ask(&["continue"]);
    let rows = live
        .recording()
        .number("SELECT count(*) FROM calls WHERE function = 'leaf' AND dur_ns IS NULL");
    assert_eq!(rows, 0);
}

#[test]
fn a_jump_stops_at_what_is_at_its_target() {
    let live = Live::started("gdb-jump", &["--break", "leaf"], &program(), &[]);
    let first = marked_line("control", "control.c", "leaf: first");
    let last = marked_line("control", "control.c", "leaf: last");
    let (tbreak, jump) = (format!("tbreak {last}"), format!("jump {last}"));
    let theirs = gdb(&live, &["break leaf", "run > /dev/null", &tbreak, &jump]);
    assert!(theirs.contains("Temporary breakpoint 2, leaf"), "{theirs}");
    let said = prompt(&live, &[&tbreak, &jump]);
    assert!(
        said.contains("stopped at breakpoint 2 (hit 1): leaf"),
        "{said}"
    );
    let said = prompt(
        &live,
        &[
            "delete 1",
            &format!("logpoint {first} 'here'"),
            &format!("break {last}"),
            &format!("jump {first}"),
            &jump,
            "info breakpoints",
        ],
    );
    assert!(said.contains("breakpoint 4 (hit 2): leaf"), "{said}");
    let logged = said
        .lines()
        .find(|line| line.trim_start().starts_with("3 |"));
    let hits = logged.and_then(|line| line.split('|').nth(3));
    assert_eq!(hits.map(str::trim), Some("1"), "{said}");
}

#[test]
fn parts_of_registers_are_those_of_gdb() {
    let live = Live::started("gdb-parts", &["--break", "leaf"], &program(), &[]);
    let lines = [
        "set $rax = 0x1122334455667788",
        "print $eax",
        "print $ax",
        "print $al",
        "print $ah",
        "set $eax = 5",
        "print/x $rax",
        "set $ah = -2",
        "print/x $rax",
        "print $ah",
        "set $r9 = 0xffffffffffffffff",
        "print $r9d",
        "print $r9w",
        "print $r9l",
        "print $cs",
    ];
    let theirs = gdb(
        &live,
        &[&["break leaf", "run > /dev/null"], &lines[..]].concat(),
    );
    let numbered = |text: &str| {
        let has_number = |line: &&str| {
            let rest = line.strip_prefix('$');
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let lines = text.lines().filter(has_number).map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    let said = prompt(&live, &lines);
    assert_eq!(numbered(&theirs).len(), 11, "{theirs}");
    assert_eq!(numbered(&said), numbered(&theirs), "{said}");
    let said = prompt(
        &live,
        &["set $eip = 5", "set $ds = 5", "info registers ah cs"],
    );
    assert!(said.contains("$eip cannot be read"), "{said}");
    assert!(
        said.contains("error: there is no register ds that can be written"),
        "{said}"
    );
    assert!(said.contains(" ah       | 0xfe"), "{said}");
}

#[test]
fn displays_have_formats_and_finish_numbers_its_value() {
    let live = Live::started("gdb-display", &["--break", "leaf"], &program(), &[]);
    let said = prompt(
        &live,
        &[
            "print 100",
            "display/x twice",
            "display/i $pc",
            "display/q twice",
            "finish",
            "print $ == $2",
        ],
    );
    assert!(said.contains("1: /x twice = 0x"), "{said}");
    assert!(
        said.contains("2: /i $pc = 0x") && said.contains("<leaf+"),
        "{said}"
    );
    assert!(said.contains("display has no format /q"), "{said}");
    assert!(said.contains(" ($2)\n"), "{said}");
    assert!(said.contains("$3 = true"), "{said}");
}

#[test]
fn options_may_stand_before_a_subject_and_help_knows_gdbs_words() {
    let live = Live::started("gdb-options", &["--break", "leaf"], &program(), &[]);
    let text = |words: &[&str]| {
        let ended = live.command(words).run();
        ended.text() + &ended.errors()
    };
    let arguments = text(&["args"]);
    assert!(arguments.contains("| int  | 20"), "{arguments}");
    assert_eq!(text(&["info", "--session", "1", "args"]), arguments);
    let json: serde_json::Value =
        serde_json::from_str(&text(&["info", "--json", "args"])).expect("it is JSON");
    assert_eq!(json["success"], true, "{json:#}");
    for (theirs, ours) in [
        (&["info", "b"][..], &["info-breakpoints"][..]),
        (&["i", "b"], &["info-breakpoints"]),
        (&["info", "sh"], &["info-shared"]),
        (&["info", "func", "^leaf$"], &["info-functions", "^leaf$"]),
        (&["info", "r", "rip"], &["registers", "rip"]),
    ] {
        assert_eq!(text(theirs), text(ours), "{theirs:?}");
    }
    let signals = text(&["info", "signals"]);
    assert!(
        signals.contains("SIGSEGV") && signals.contains("Passed on"),
        "{signals}"
    );
    text(&["handle", "SIGUSR1", "stop"]);
    let signals = text(&["info", "signals", "SIGUSR1"]);
    assert!(signals.contains("yes (catchpoint"), "{signals}");
    for (theirs, ours) in [
        (&["help", "tbreak"][..], "break"),
        (&["help", "info", "locals"], "locals"),
        (&["help", "delete"], "break"),
    ] {
        assert_eq!(text(theirs), text(&["help", ours]), "{theirs:?}");
    }
    text(&["handle", "SIGUSR1", "nostop"]);
    text(&["delete"]);
    assert_eq!(text(&["info", "b"]), "There are none.\n");
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

/// A range is around no line of its own: the arrow is at the current one.
#[test]
fn the_arrow_in_a_range_is_at_the_current_line() {
    let live = Live::started("gdb-range", &["--break", "leaf"], &program(), &[]);
    let place = live.ask(&["where"])["frame"]["line"].clone();
    let line = place.as_u64().expect("a line");
    let marked = |range: &str| -> Vec<String> {
        let said = live.command(&["list", range]).run().text();
        let marked = said.lines().filter_map(|line| line.strip_prefix("->"));
        marked
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            .collect()
    };
    let around = format!("{},{}", line - 2, line + 2);
    assert_eq!(marked(&around), [line.to_string()]);
    let after = format!("{},{}", line + 1, line + 3);
    assert!(marked(&after).is_empty());
}

/// What gdb calls kill ends the session, in the shell and at the prompt.
#[test]
fn kill_ends_the_program() {
    for at_prompt in [false, true] {
        let live = Live::started("gdb-kill", &["--break", "leaf"], &program(), &[]);
        let said = match at_prompt {
            true => prompt(&live, &["kill"]),
            false => live.command(&["kill"]).run().text(),
        };
        assert!(said.contains("killed by SIGKILL"), "{said}");
        let known = live.command(&["status"]).run();
        assert_ne!(known.status, Status::Code(0), "{}", known.text());
    }
}

/// In a recording nothing is displayed, and what needs the program is called as people write it.
#[test]
fn refusals_use_the_words_of_people() {
    let scratch = Scratch::new("gdb-recorded");
    let program = Program::new(program(), scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let said = recording.prompt(&["info display"]).text();
    assert!(said.contains("Nothing is displayed."), "{said}");
    let ended = recording.prompt(&["info signals"]);
    let said = ended.text() + &ended.errors();
    assert!(said.contains("info signals needs a program"), "{said}");
}

/// The program calls none of these functions.
#[test]
fn functions_of_other_modules_are_called() {
    let live = Live::started("gdb-calls", &["--break", "leaf"], &program(), &[]);
    let text = |words: &[&str]| {
        let ended = live.command(words).run();
        ended.text() + &ended.errors()
    };
    let said = text(&["call", "atoi(\"4711\")"]);
    assert!(said.contains(" = 4711"), "{said}");
    assert!(said.contains("atoi is a function of libc.so.6"), "{said}");
    // Debug information of the C library names it, and describes nothing, as it is written in assembler.
    let said = text(&["call", "getpid()"]);
    let pid = said
        .lines()
        .find_map(|line| line.strip_prefix('$')?.split_once(" = "));
    let (_, pid) = pid.unwrap_or_else(|| panic!("{said}"));
    assert!(text(&["threads"]).contains(&format!(" {pid} |")), "{said}");
    let said = text(&["call", "puts(\"from the prompt\")"]);
    assert!(!said.contains("error"), "{said}");
    text(&["call", "fflush(0)"]);
    assert!(
        text(&["output"]).contains("from the prompt"),
        "{}",
        text(&["output"])
    );
}

/// The compiler holds the offsets true.
#[test]
fn declarations_have_offsets_sizes_and_holes() {
    let source = r#"
#include <stddef.h>
struct inner { short a; };
struct all {
  char c; struct inner in; double d;
  union { int i; float f; struct { char low, high; }; };
  struct { int x[3]; unsigned u : 5; unsigned v : 9; } named[2];
  unsigned flags : 3; unsigned more : 7; long last; char tail;
};
_Static_assert(offsetof(struct all, in) == 2 && offsetof(struct all, d) == 8, "");
_Static_assert(offsetof(struct all, i) == 16 && offsetof(struct all, high) == 17, "");
_Static_assert(offsetof(struct all, named) == 20 && offsetof(struct all, last) == 56, "");
_Static_assert(offsetof(struct all, tail) == 64 && sizeof(struct all) == 72, "");
struct odd { int (*(*fpp)(void))(int, int); int (*(*tab[2])(int))(void); char name[16]; const char *const text; int (*call)(int); } odd;
struct all whole;
int main(void) { return whole.c; }
"#;
    let scratch = Scratch::new("gdb-ptype");
    let program = compiled(&scratch, "app.c", source, &["-g"]);
    let program = Program::new(program, scratch.path());
    let recording = Hindsight::recorded(&scratch, "app", &[], &program);
    let said = |line: &str| {
        let text = recording.prompt(&["goto last", line]).text();
        text.split_once('\n')
            .map_or(text.clone(), |(_, said)| said.to_owned())
    };
    let shown = "\
/* offset | size */      struct all {
/*      0 |    1 */          char c;
                             /* 1-byte hole */
/*      2 |    2 */          struct inner in;
                             /* 4-byte hole */
/*      8 |    8 */          double d;
/*     16 |    4 */          union {
/*     16 |    4 */              int i;
/*     16 |    4 */              float f;
/*     16 |    2 */              struct {
/*     16 |    1 */                  char low;
/*     17 |    1 */                  char high;
                                 };
                             };
/*     20 |   32 */          struct {
/*     20 |   12 */              int x[3];
/*   32: 0 |  5 bits */          unsigned int u : 5;
/*   32: 5 |  9 bits */          unsigned int v : 9;
                                 /* 2-byte 2-bit padding */
                             } named[2];
/*   52: 0 |  3 bits */      unsigned int flags : 3;
/*   52: 3 |  7 bits */      unsigned int more : 7;
                             /* 2-byte 6-bit hole */
/*     56 |    8 */          long int last;
/*     64 |    1 */          char tail;
                             /* 7-byte padding */
                             /* total size: 72 bytes */
                         }
";
    assert_eq!(said("ptype/o struct all"), shown);
    assert_eq!(said("ptype --offsets whole"), shown);
    let unfolded = said("ptype &whole");
    assert!(
        unfolded.contains("    union {\n        int i;\n"),
        "{unfolded}"
    );
    assert!(unfolded.contains("\n    } named[2];\n"), "{unfolded}");
    assert!(unfolded.ends_with("\n} *\n"), "{unfolded}");
    let odd = "    int (*(*fpp)(void))(int, int);\n    int (*(*tab[2])(int))(void);\n    char name[16];\n    const char * const text;\n    int (*call)(int);\n";
    let said = said("ptype odd");
    assert!(said.contains(odd), "{said}");
}

/// gdb says the same.
#[test]
fn references_have_the_size_of_their_targets_and_classes_their_own_names() {
    let source = r#"
struct Big { int a[100]; Big() { a[0] = 1; } int sum(int n) const { return a[0] + n; } };
__attribute__((noinline)) int look(const Big &big, double &factor) { return big.sum((int)factor); }
int main() { Big big; double factor = 2; return look(big, factor) & 1; }
"#;
    let live = Live::new("gdb-references");
    let program = compiled(&live.scratch, "app.cc", source, &["-g", "-O0"]);
    live.start(&["--break", "look"], &program, &[]);
    assert_eq!(live.print("sizeof(big)"), "400");
    assert_eq!(live.print("sizeof factor"), "8");
    assert_eq!(live.print("sizeof(big.a)"), "400");
    live.ask(&["break", "Big::sum"]);
    live.moved(&["continue"]);
    let said = live.command(&["ptype", "Big"]).run().text();
    assert!(said.starts_with("type = struct Big {"), "{said}");
}

/// The line of each place that `said` names with `before` it.
fn lines_named(said: &str, before: &str) -> Vec<u32> {
    let digits = |text: &str| -> String { text.chars().take_while(char::is_ascii_digit).collect() };
    let found = said.split(before).skip(1);
    found.filter_map(|rest| digits(rest).parse().ok()).collect()
}

#[test]
fn offsets_count_from_the_current_line() {
    let live = Live::started("gdb-offsets", &["--break", "leaf"], &program(), &[]);
    let places = ["tbreak +1", "tbreak -2", "tbreak 22"];
    let script = [&["break leaf", "run > /dev/null"][..], &places].concat();
    let theirs = lines_named(&gdb(&live, &script), ", line ");
    let said = prompt(&live, &places);
    let ours = lines_named(&said, "control.c:");
    assert_eq!(theirs.len(), 4, "{theirs:?}");
    assert_eq!(ours, theirs[1..], "{said}");
    let said = prompt(&live, &["break -1000"]);
    assert!(said.contains("lines are counted from 1"), "{said}");
}

const REORDERED: &str = "__attribute__((noinline)) int total(const int *v, int n)
{
  int sum = 0;
  for (int i = 0; i <= n; i++)
    sum += v[i];
  return sum;
}
int main(void) { int v[4] = {1, 2, 3, 4}; return total(v, 3) != 10; }
";

/// The last line of a function need not be that of its last instruction.
#[test]
fn the_whole_function_is_shown_in_optimised_code() {
    for level in ["-O1", "-O2", "-O3"] {
        let scratch = Scratch::new("whole-function");
        let path = compiled(&scratch, "app.c", REORDERED, &["-g", level]);
        let live = Live::started("whole-function-live", &["--break", "total"], &path, &[]);
        let shown = live.command(&["source", "--function"]).run().text();
        assert!(shown.contains("return sum"), "{level}: {shown}");
    }
}

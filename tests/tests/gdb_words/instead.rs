//! What gdb knows and Hindsight does not is answered with what to write instead, and gdb's other ways to write a command are understood.

use e2e::{Hindsight, Live, Program, Scratch, compiled};

use super::{of_gdb, plain, program, prompt};

/// Neither a slip of the pen nor an argument too many: each has the way to do it here.
#[test]
fn what_is_not_there_says_what_to_write_instead() {
    let live = Live::started("gdb-instead", &["--break", "leaf"], &program(), &[]);
    for (line, instead) in [
        ("clear leaf", "break list, then break remove N"),
        ("run", "continue, or restart to begin again"),
        ("run", "in a recording, goto first, then continue"),
        ("show width", "help VERB tells the options of a verb"),
        ("show args", "info proc shows the program's command line"),
        ("show version", "hindsight --version"),
        ("tty /dev/null", "output shows what it has printed"),
        ("interrupt", "pause"),
        ("init-if-undefined $n = 1", "set $NAME VALUE"),
        ("record goto begin", "goto first"),
        ("record function-call-history", "calls lists"),
        ("frame address 0x1", "info frame N shows the address"),
        ("info record", "status names the recording"),
        ("info skip", "finish leaves a function"),
        ("info sources", "info functions REGEX"),
        ("info tracepoints", "info breakpoints"),
        ("tstatus", "logpoint list"),
        ("restart 1", "goto @TEXT"),
        ("define both", "hindsight repl --script FILE"),
        ("python print(1)", "a Python package drives sessions"),
        ("!ls", "every verb is a command of the shell"),
        ("signal 0", "continue passes on the signal"),
        ("record", "full on"),
        ("tui enable", "where shows source and variables"),
        ("skip function leaf", "finish"),
        ("find &tempo, +8, 1", "memory read ADDRESS"),
        ("thread name main", "threads lists all threads"),
        ("thread find main", "threads lists all threads"),
        ("frame apply all p 1", "bt full"),
        ("info macro NULL", "macros are not known"),
        ("info float", "print $st0"),
        ("info proc mappings", "info sharedlibrary"),
        ("enable once 1", "tbreak LOCATION"),
        ("enable delete 1", "tbreak LOCATION"),
        ("enable count 2 1", "ignore N COUNT"),
        ("disable display 1", "undisplay N"),
        ("set print pretty on", "print is a setting of gdb"),
        ("set args 1 2", "restart keeps the arguments"),
        (
            "set environment A b",
            "the environment in which it is started",
        ),
        ("set disassemble-next-line on", "display/i $pc"),
        ("print tempo = 3", "to change a value: set x = 3"),
        ("print tempo++", "to change a value: set x = x + 1"),
    ] {
        let said = prompt(&live, &[line]);
        assert!(
            said.contains("error: ") && said.contains(instead),
            "{line}: {said}"
        );
    }
    // In the shell, too.
    for (words, instead) in [
        (&["clear", "leaf"][..], "hindsight break list"),
        (&["show", "width"], "help VERB"),
        (&["show", "args"], "info proc shows"),
        (&["thread", "name", "main"], "threads lists"),
        (&["info", "macro", "NULL"], "macros are not known"),
    ] {
        let errors = live.command(words).run().errors();
        assert!(errors.contains(instead), "{words:?}: {errors}");
    }
    // After the program's end, a setting of gdb is none still.
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    let said = prompt(&live, &["set pagination off"]);
    assert!(
        said.contains("a setting of gdb, which is not needed"),
        "{said}"
    );
}

/// In a recording, what is proposed works there.
#[test]
fn a_recording_says_what_it_has_instead() {
    let scratch = Scratch::new("gdb-instead-recorded");
    let program = Program::new(program(), scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    for (line, instead) in [
        ("run", "in a recording, goto first, then continue"),
        ("info program", "help: where tells the moment"),
        ("info inferiors", "info proc the process"),
        ("attach 1", "help: in a shell: hindsight attach PID"),
        ("info signals", "help: catch signal stops at signals"),
        ("up 2", "error: no frame of thread"),
        ("down", "error: no frame of thread"),
        ("x/2xw $sp", "$sp is not an address"),
    ] {
        let said = recording.prompt(&["goto last", line]).errors();
        assert!(said.contains(instead), "{line}: {said}");
        assert!(!said.contains("write &$sp"), "a register has none: {said}");
    }
}

#[test]
fn other_ways_to_write_a_command_are_understood() {
    let live = Live::started("gdb-spelt", &["--break", "leaf"], &program(), &[]);
    let commands = [
        "print -pretty -- tempo",
        "print -elements 4 -- tempo",
        "print -array on -- /x tempo",
        "whatis/x tempo",
    ];
    for (command, theirs) in commands.into_iter().zip(of_gdb(&live, commands)) {
        let ours = prompt(&live, &[command]);
        assert_eq!(plain(&ours), theirs, "{command}");
    }
    // The last value again.
    let said = prompt(&live, &["p 6 * 7", "p", "p/x"]);
    assert_eq!(said.matches(" = 42\n").count(), 2, "{said}");
    assert!(said.ends_with(" = 0x2a\n"), "{said}");
    let said = prompt(&live, &["up", "down -1", "up -1", "up -1", "frame"]);
    assert!(said.contains("*#2 ") && said.contains("*#0 "), "{said}");
    for (theirs, ours) in [("where 2", "bt 2"), ("where -1", "bt -1")] {
        assert_eq!(prompt(&live, &[theirs]), prompt(&live, &[ours]));
    }
    let said = prompt(&live, &["info"]);
    assert!(said.contains("\n  info locals "), "{said}");
    let listed = prompt(&live, &["list 20,+3"]);
    assert_eq!(listed, prompt(&live, &["list 20,23"]));
    assert_eq!(listed.lines().count(), 4, "{listed}");
    // Only watchpoints.
    let said = prompt(&live, &["watch tempo", "info watchpoints"]);
    assert!(said.contains("tempo") && !said.contains("leaf"), "{said}");
    let said = prompt(&live, &["info handle 10"]);
    assert!(said.contains("SIGUSR1"), "{said}");
    let said = prompt(
        &live,
        &["display tempo", "delete display 1", "info display"],
    );
    assert!(said.ends_with("Nothing is displayed.\n"), "{said}");
    prompt(&live, &["delete breakpoints"]);
    let said = prompt(&live, &["info breakpoints"]);
    assert!(!said.contains("leaf"), "{said}");
}

/// A prompt splits a line at its spaces, but a function with its parameters is one place.
#[test]
fn a_function_is_named_with_its_parameters() {
    let scratch = Scratch::new("gdb-parameters");
    let source = "template <class T, int N> struct Ring { T of[N]; void push(T t) { of[0] = t; } };\n\
                  int area(int a) { return a; }\n\
                  int area(int a, int b) { return a * b; }\n\
                  int main() { Ring<int, 4> r; r.push(1); return area(2) + area(2, 3); }\n";
    let program = compiled(&scratch, "places.cc", source, &["-g", "-O0"]);
    let live = Live::started("gdb-parameters-live", &["--stop-on-entry"], &program, &[]);
    let said = prompt(
        &live,
        &[
            "break area(int, int) if a == 2",
            "tbreak Ring<int, 4>::push(int)",
            "break area(int)",
            "info breakpoints",
        ],
    );
    assert!(!said.contains("error"), "{said}");
    for place in ["area(int, int)", "Ring<int, 4>::push(int)", "area(int)"] {
        assert!(said.contains(&format!(" {place} ")), "{place}: {said}");
    }
    assert!(!said.contains("(2 places)"), "{said}");
}

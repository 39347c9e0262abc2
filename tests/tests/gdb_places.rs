//! Goal: places are written, found and shown as in gdb: ranges of functions, addresses, scopes, frames by name. Method: gdb and a live
//! session at the same place of the same program, whose addresses are fixed; the same in recordings of it.

use std::path::PathBuf;

use e2e::{Hindsight, Live, Program, Scratch, Status, fixture_artifact, marked_line};

fn program() -> PathBuf {
    fixture_artifact("control", "control_O0_fixed")
}

/// What gdb says at the entry of `leaf`.
fn of_gdb(live: &Live, command: &str) -> String {
    let commands = ["break leaf", "run > /dev/null", "echo ~~~\\n", command];
    let said = Program::new("/usr/bin/gdb", live.scratch.path())
        .args(["-batch", "-nx", "-q", "-ex", "set width 0"])
        .args(commands.iter().flat_map(|command| ["-ex", *command]))
        .args([program().to_str().expect("text")])
        .run()
        .text();
    let (_, said) = said.split_once("~~~\n").unwrap_or_else(|| panic!("{said}"));
    said.to_owned()
}

fn said(live: &Live, words: &[&str]) -> String {
    let ended = live.command(words).run();
    ended.text() + &ended.errors()
}

/// The numbers of the lines of a list of source.
fn numbers(listed: &str) -> Vec<u32> {
    let words = |line: &str| {
        let mut words = line.split_whitespace().filter(|word| *word != "->");
        words.next().and_then(|word| word.parse().ok())
    };
    listed.lines().filter_map(words).collect()
}

/// Without the folders of files.
fn plain(text: &str) -> String {
    let word = |word: &str| match word.strip_prefix("\"/") {
        Some(path) => format!("\"{}", path.rsplit('/').next().unwrap_or_default()),
        None => word.to_owned(),
    };
    let words: Vec<String> = text.split_whitespace().map(word).collect();
    words.join(" ")
}

#[test]
fn lines_are_listed_between_functions() {
    let live = Live::started("gdb-listing", &["--break", "leaf"], &program(), &[]);
    for range in [
        "leaf,middle",
        "leaf,+3",
        "10,20",
        "10,+2",
        "10,",
        ",20",
        "leaf,",
        ",middle",
    ] {
        let (ours, theirs) = (
            said(&live, &["list", range]),
            of_gdb(&live, &format!("list {range}")),
        );
        assert_eq!(numbers(&ours), numbers(&theirs), "{range}: {ours}");
    }
    let ours = said(&live, &["list", "leaf,", "control.c:30"]);
    assert_eq!(numbers(&ours), (25..=30).collect::<Vec<_>>(), "{ours}");
    let wrong = said(&live, &["list", "middle,leaf"]);
    assert!(wrong.contains("are no lines"), "{wrong}");
    let wrong = said(&live, &["list", "leaf,nobody"]);
    assert!(wrong.contains("nobody"), "{wrong}");
}

#[test]
fn addresses_and_lines_without_code_are_those_of_gdb() {
    let live = Live::started("gdb-addresses", &["--break", "leaf"], &program(), &[]);
    for command in [
        "info address tempo",
        "info address leaf",
        "info line control.c:22",
        "info line control.c:29",
        "info line control.c:27",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let ours = said(&live, &words);
        assert_eq!(plain(&ours), plain(&of_gdb(&live, command)), "{command}");
    }
    let here = said(&live, &["info", "line"]);
    assert_eq!(said(&live, &["info", "line", "*$pc"]), here);
    assert_eq!(said(&live, &["list", "*$pc"]), said(&live, &["list"]));
    let middle = said(&live, &["list", "*middle"]);
    assert_eq!(said(&live, &["list", "*&middle"]), middle);
    assert!(middle.contains("middle (int x)"), "{middle}");
    let place = live.ask(&["info-address", "x"]);
    let address = live.print("&x");
    assert_eq!(place["address"], address.as_str(), "{place}");
    let text = said(&live, &["info", "address", "x"]);
    assert!(text.contains("in frame 0 (leaf)"), "{text}");
}

#[test]
fn a_scope_has_the_variables_that_gdb_lists() {
    let live = Live::started("gdb-scopes", &["--break", "leaf"], &program(), &[]);
    let names = |text: &str| -> Vec<(String, String)> {
        let found = text.lines().filter_map(|line| {
            let name = line.trim().strip_prefix("Symbol ")?.split(' ').next()?;
            Some(name.to_owned())
        });
        let lengths = text.split(", length ").skip(1);
        let lengths = lengths.filter_map(|rest| rest.split('.').next());
        found.zip(lengths.map(str::to_owned)).collect()
    };
    for place in ["leaf", "sum_to", "control.c:43", "main"] {
        let mut ours = names(&said(&live, &["info", "scope", place]));
        let mut theirs = names(&of_gdb(&live, &format!("info scope {place}")));
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "{place}");
        assert!(!ours.is_empty(), "{place}");
    }
    let refused = said(&live, &["info", "scope", "nobody"]);
    assert!(refused.contains("nobody"), "{refused}");
}

#[test]
fn a_frame_is_selected_by_its_function() {
    let live = Live::started("gdb-frames", &["--break", "factorial"], &program(), &[]);
    live.moved(&["continue"]);
    let text = said(&live, &["frame", "function", "main"]);
    let line = marked_line("control", "control.c", "main: factorial");
    assert!(
        text.contains("*#2") && text.contains(&format!("control.c:{line}")),
        "{text}"
    );
    assert_eq!(live.ask(&["frame"])["frame"]["index"], 2);
    // The innermost of several.
    assert_eq!(
        live.ask(&["frame", "--function", "factorial"])["frame"]["index"],
        0
    );
    let refused = said(&live, &["frame", "function", "nobody"]);
    assert!(
        refused.contains("no frame of this thread is one of nobody"),
        "{refused}"
    );
    assert!(said(&live, &["frame", "level", "1"]).contains("*#1"));
}

#[test]
fn a_breakpoint_without_a_place_is_here() {
    let live = Live::started("gdb-here", &["--break", "sum_to"], &program(), &[]);
    live.moved(&["next"]);
    let here = live.ask(&["frame"])["frame"]["line"].clone();
    let set = said(&live, &["tbreak"]);
    assert!(
        set.contains("Breakpoint 2: sum_to at ") && set.contains(&here.to_string()),
        "{set}"
    );
    let set = said(&live, &["break", "if", "total", "==", "3"]);
    assert!(set.contains("sum_to at "), "{set}");
    live.ask(&["break", "remove", "--all"]);
    // In a caller, where it goes on.
    live.ask(&["frame", "1"]);
    live.ask(&["tbreak"]);
    let stop = live.moved(&["continue"]);
    assert_eq!(stop["function"], "main", "{stop:#}");
}

#[test]
fn an_address_is_an_expression_wherever_one_is_set() {
    let live = Live::started("gdb-starred", &["--break", "*leaf"], &program(), &[]);
    assert_eq!(live.print("$pc == (long)leaf"), "true");
    let stop = live.moved(&["advance", "*leaf+4"]);
    assert_eq!(stop["function"], "leaf", "{stop:#}");
    assert_eq!(live.print("$pc == (long)leaf + 4"), "true");
    let ended = live.command(&["start", "--break", "*(", "/bin/true"]).run();
    assert_ne!(ended.status, Status::Code(0), "{}", ended.text());
    assert!(ended.errors().contains("expression"), "{}", ended.errors());
}

#[test]
fn a_recording_stops_at_addresses_too() {
    let scratch = Scratch::new("gdb-recorded-places");
    let program = Program::new(program(), scratch.path());
    let (_, traced) = Hindsight::record(&scratch, &[], &program);
    let lines = [
        "break *leaf",
        "continue",
        "where",
        "break *leaf+4",
        "info address tempo",
    ];
    let ended = traced.prompt(&lines);
    let (text, errors) = (ended.text(), ended.errors());
    assert!(text.contains("entry of leaf"), "{text}{errors}");
    assert!(
        errors.contains("no recorded function begins at 0x"),
        "{errors}"
    );
    assert!(
        text.contains("\"tempo\" is static storage at address 0x"),
        "{text}"
    );
    let scratch = Scratch::new("gdb-recorded-places-full");
    let program = Program::new(self::program(), scratch.path());
    let (_, full) = Hindsight::record(&scratch, &["--full"], &program);
    let lines = [
        "advance *leaf+4",
        "print $pc == (long)leaf + 4",
        "break *middle",
        "continue",
        "print $pc == (long)middle",
        "tbreak",
        "info scope middle",
        "list leaf,middle",
    ];
    let ended = full.prompt(&lines);
    let (text, errors) = (ended.text(), ended.errors());
    assert_eq!(text.matches(" = true\n").count(), 2, "{text}{errors}");
    assert!(text.contains("Breakpoint 1: *0x"), "{text}{errors}");
    assert!(
        text.contains("Symbol a is a variable of type int, length 4."),
        "{text}{errors}"
    );
    assert!(text.contains("leaf: first"), "{text}{errors}");
}

#[test]
fn the_process_is_that_of_gdb() {
    let live = Live::started("gdb-process", &["--break", "leaf"], &program(), &["all"]);
    let session = live.session();
    let proc = live.ask(&["info-proc"]);
    assert_eq!(proc["pid"], session["pid"], "{proc}");
    let text = said(&live, &["info", "proc"]);
    let path = program();
    let path = path.to_str().expect("text");
    assert!(
        text.starts_with(&format!("process {}\ncmdline = '", proc["pid"])),
        "{text}"
    );
    assert!(text.contains(&format!("exe = '{path}'\n")), "{text}");
    assert!(text.contains("cwd = '/"), "{text}");
    let recording = live.recording();
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    let text = recording.prompt(&["info proc"]).text();
    assert!(
        text.contains(&format!("process {}\n", proc["pid"])),
        "{text}"
    );
    assert!(
        text.contains("cmdline = '") && !text.contains("exe = "),
        "{text}"
    );
}

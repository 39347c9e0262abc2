//! Goal: a core file is a recording, and shows what gdb shows. Method: programs in C, C++ and Rust that end by SIGSEGV, also
//! with a hundred threads; their core files, whole and cut; gdb on the same files.

mod dumped;
mod registers;

use std::collections::BTreeSet;
use std::path::Path;

use e2e::{Live, Scratch, Status, compiled, fixture_artifact, marked_line};
use serde_json::Value;

use dumped::{Dumped, command, gdb};

/// The function and the line of each frame of gdb's backtrace whose file is the fixture's.
fn frames_of_gdb(text: &str) -> Vec<(String, i64)> {
    // The innermost one is shown when the file is opened, too.
    let from = text.rfind("\n#0 ").map_or(0, |at| at + 1);
    let frames = text[from..].lines().filter(|line| line.starts_with('#'));
    let own = frames.filter_map(|line| {
        let (head, place) = line.rsplit_once(" at ")?;
        let (file, line) = place.rsplit_once(':')?;
        let name = head.split_once(" in ").map_or_else(
            || head.split_once(char::is_whitespace).map(|(_, rest)| rest),
            |(_, rest)| Some(rest),
        )?;
        let name = name.trim().split(" (").next()?;
        let is_own = file.rsplit('/').next()?.starts_with("crash.");
        is_own.then(|| (name.to_owned(), line.parse().expect("a line")))
    });
    own.collect()
}

/// What follows ` = ` in the last line.
fn value(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default();
    last.rsplit_once(" = ")
        .map_or(last, |(_, value)| value)
        .to_owned()
}

fn marks(file: &str, names: &[&str]) -> Vec<i64> {
    let line = |mark: &&str| marked_line("core_files", file, mark) as i64;
    names.iter().map(line).collect()
}

#[test]
fn backtraces_are_those_of_gdb() {
    for (artifact, file) in [
        ("crash_c", "crash.c"),
        ("crash_cxx", "crash.cc"),
        ("crash_rust", "crash.rs"),
        ("crash_c_O2", "crash.c"),
    ] {
        let dumped = Dumped::of(artifact, &[]);
        let theirs = frames_of_gdb(&dumped.gdb(&["bt"]));
        let sql = format!(
            "SELECT function, line FROM backtrace({}) WHERE file LIKE '%/crash.%' ORDER BY frame",
            dumped.stop()
        );
        let ours: Vec<(String, i64)> = dumped
            .rows(&sql)
            .iter()
            .map(|row| {
                (
                    row["function"].as_str().expect("text").to_owned(),
                    row["line"].as_i64().expect("a line"),
                )
            })
            .collect();
        assert_eq!(ours, theirs, "{artifact}");
        let lines: Vec<i64> = ours.iter().map(|(_, line)| *line).collect();
        assert_eq!(
            lines[..3],
            marks(file, &["fall: write", "middle: call", "outer: call"]),
            "{artifact}"
        );
    }
}

#[test]
fn values_registers_and_memory_are_those_of_gdb() {
    let asked: [(&str, &[(usize, &[&str])]); 3] = [
        (
            "crash_c",
            &[
                (0, &["local", "depth", "table[2]", "last.id", "last.price"]),
                (1, &["before", "order->id", "order->price"]),
                (2, &["own.id", "own.price"]),
            ],
        ),
        (
            "crash_cxx",
            &[
                (0, &["found", "this->count"]),
                (1, &["before", "item.pieces", "stock.count"]),
                (2, &["pieces", "item.pieces"]),
            ],
        ),
        (
            "crash_rust",
            &[(2, &["found"]), (3, &["before"]), (4, &["pieces"])],
        ),
    ];
    for (artifact, frames) in asked {
        let dumped = Dumped::of(artifact, &[]);
        let mut lines = Vec::new();
        for (frame, expressions) in frames {
            lines.push(format!("frame {frame}"));
            lines.extend(expressions.iter().map(|text| format!("p {text}")));
            let registers = ["rip", "rsp", "rbp", "rbx", "r12"];
            lines.extend(registers.iter().map(|name| format!("p/x ${name}")));
            lines.push("x/8xg $rsp".to_owned());
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let theirs = answers(&dumped.gdb(&lines), &|line| line.starts_with('$'));
        let (ours, errors) = dumped.prompt(&dumped.core, &lines);
        let ours = answers(&ours, &|line| line.starts_with('$'));
        assert_eq!(ours, theirs, "{artifact}: {errors}");
        let wanted: usize = frames.iter().map(|(_, list)| list.len() + 5 + 4).sum();
        assert_eq!(theirs.len(), wanted, "{artifact}");
    }
}

/// The values that were printed, and lines of memory without symbols.
fn answers(text: &str, is_printed: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        if is_printed(line) {
            found.push(value(line));
        } else if line.starts_with("0x") {
            let words = line.split_whitespace().filter(|word| word.len() == 18);
            found.push(words.collect::<Vec<_>>().join(" "));
        }
    }
    found
}

#[test]
fn containers_and_texts_are_shown_by_what_they_hold() {
    let cxx = Dumped::of("crash_cxx", &[]);
    let (text, errors) = cxx.prompt(
        &cxx.core,
        &["frame 1", "p names", "p item.name", "p shop::totals"],
    );
    for shown in [
        "{[1] = \"one\", [2] = \"two\"}",
        "\"a rather long name of an item\"",
        "{5, 6, 7, 1}",
    ] {
        assert!(text.contains(shown), "{shown}: {text}{errors}");
    }
    let c = Dumped::of("crash_c", &[]);
    // Constants are not in the core file: the program's file has them.
    let (text, errors) = c.prompt(&c.core, &["p greeting", "p last", "x/s greeting"]);
    for shown in [
        "$1 = \"good morning\"",
        "customer = 0x",
        "\"Ada\"",
        ":  \"good morning\"",
    ] {
        assert!(text.contains(shown), "{shown}: {text}{errors}");
    }
    let rows = c.rows(&format!("SELECT name, value FROM locals({})", c.stop()));
    let local = rows.iter().find(|row| row["name"] == "local");
    assert_eq!(local.expect("a variable")["value"], "129");
}

#[test]
fn a_hundred_threads_are_told_apart() {
    let dumped = Dumped::of("crash_c", &["threads"]);
    let theirs = dumped.gdb(&["thread apply all bt"]);
    let held: BTreeSet<String> = theirs
        .lines()
        .filter_map(|line| line.split_once("hold (number="))
        .map(|(_, rest)| rest.split(')').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(held.len(), 100, "{theirs}");
    let text = dumped.text(&["repl", dumped.core(), "--json", "--cmd", "backtrace --all"]);
    let reply: Value = serde_json::from_str(&text).expect("JSON");
    let threads = reply["result"]["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), 101);
    let frames = |thread: &Value| thread["frames"].as_array().cloned().unwrap_or_default();
    let ours: BTreeSet<String> = threads
        .iter()
        .flat_map(frames)
        .filter(|frame| frame["function"] == "hold")
        .map(|frame| {
            frame["args"][0]["value"]
                .as_str()
                .expect("a number")
                .to_owned()
        })
        .collect();
    assert_eq!(ours, held);
    let crashed = threads
        .iter()
        .filter(|thread| frames(thread)[0]["function"] == "fall");
    assert_eq!(crashed.count(), 1);
    let rows = dumped.rows("SELECT count(*) AS n FROM threads");
    assert_eq!(rows[0]["n"], 101);
}

/// The values in a truncated file equal those in the whole one, and the rest is unknown.
#[test]
fn cut_files_say_nothing_wrong() {
    let dumped = Dumped::of("crash_c", &[]);
    let whole = std::fs::read(&dumped.core).expect("the core file");
    let asked = [
        "p table",
        "p local",
        "p last.id",
        "p/x $rsp",
        "p *order",
        "x/2xg $rsp",
    ];
    let seen = |core: &Path| -> Vec<String> {
        asked
            .iter()
            .map(|line| dumped.prompt(core, &[line]).0.trim().to_owned())
            .collect()
    };
    let all = seen(&dumped.core);
    assert_eq!(all[0], "$1 = {11, 22, 300, 44}");
    let (mut opened, mut unknown) = (0, 0);
    for part in [1, 3, 5, 7, 9, 10] {
        let len = whole.len() * part / 11;
        let cut = dumped.scratch.join(&format!("cut-{part}"));
        std::fs::write(&cut, &whole[..len]).expect("the test's folder");
        for (line, (now, then)) in asked.iter().zip(seen(&cut).iter().zip(&all)) {
            let is_unknown =
                now.is_empty() || now.contains("the core file was cut") || now.contains("<unknown");
            assert!(
                now == then || is_unknown,
                "{line}, cut at {len}: {now}, not {then}"
            );
            unknown += usize::from(is_unknown);
        }
        let path = cut.to_str().expect("text");
        let said = dumped.text(&[
            "sql",
            path,
            "-f",
            "csv",
            "SELECT text FROM events WHERE kind = 'warning'",
        ]);
        assert_eq!(
            said.matches("the core file was cut: its last ").count(),
            1,
            "{said}"
        );
        let check = dumped.command(&["check", path, "--json"]).run();
        assert_eq!(check.status, Status::Code(3), "{}", check.text());
        let check = check.result();
        assert_eq!(check["verdict"], "cut", "{check}");
        assert_eq!(check["missing_bytes"], whole.len() - len, "{check}");
        assert_eq!(check["findings"], serde_json::json!([]), "{check}");
        let check = dumped.command(&["check", path]).run().text();
        assert!(
            check.contains(": cut: the core file lacks its last "),
            "{check}"
        );
        opened += 1;
    }
    let path = dumped.core.to_str().expect("text");
    let check = dumped.command(&["check", path]).run();
    assert_eq!(check.status, Status::Code(0), "{}", check.text());
    assert!(check.text().contains(": whole\n"), "{}", check.text());
    assert!(!check.text().contains("note:"), "{}", check.text());
    assert!(opened == 6 && unknown > 3, "{opened} {unknown}");
    let check = dumped.command(&["check", path, "--json"]).run().result();
    let recording = check["recording"].as_str().expect("text");
    std::fs::remove_file(&dumped.core).expect("it is there");
    let check = dumped.command(&["check", recording, "--json"]).run();
    assert_eq!(check.status, Status::Code(3), "{}", check.text());
    let check = check.result();
    assert_eq!(check["verdict"], "no_core", "{check}");
    assert_eq!(check["findings"][0]["severity"], "odd", "{check}");
    let check = dumped.command(&["check", recording]).run().text();
    assert!(
        check.contains(": incomplete: its core file is gone"),
        "{check}"
    );
    let head = dumped.scratch.join("head");
    std::fs::write(&head, &whole[..100]).expect("the test's folder");
    let ended = dumped
        .command(&["overview", head.to_str().expect("text")])
        .run();
    assert_ne!(ended.status, Status::Code(0));
    assert!(ended.errors().contains("cut"), "{}", ended.errors());
}

#[test]
fn the_program_may_have_moved_and_another_one_is_refused() {
    let scratch = Scratch::new("core-moved");
    let program = scratch.join("program");
    std::fs::copy(fixture_artifact("core_files", "crash_c"), &program).expect("a copy");
    let dumped = Dumped::running(scratch, program, &[]);
    let moved = dumped.scratch.join("elsewhere");
    std::fs::rename(&dumped.program, &moved).expect("the test's folder");
    let (text, _) = dumped.prompt(&dumped.core, &["bt"]);
    assert!(
        text.contains("cannot be read") && !text.contains("middle"),
        "{text}"
    );
    let with =
        |program: &str| dumped.text(&["repl", dumped.core(), "--program", program, "--cmd", "bt"]);
    let text = with(moved.to_str().expect("text"));
    assert!(text.contains("middle (order=0x"), "{text}");
    let refused = dumped.command(&["repl", dumped.core(), "--program", "/bin/sh", "--cmd", "bt"]);
    let refused = refused.run();
    assert_ne!(refused.status.as_shell_code(), 0, "{}", refused.text());
    let errors = refused.errors();
    assert!(
        errors.contains("with build id") && errors.contains(" has "),
        "{errors}"
    );
}

#[test]
fn a_file_that_is_no_program_or_no_core_file_is_named() {
    let dumped = Dumped::of("crash_c", &[]);
    let empty = dumped.scratch.join("empty");
    std::fs::write(&empty, "").expect("the test's folder");
    let gone = dumped.scratch.join("gone");
    let refused = |words: &[&str]| {
        let ended = dumped.command(words).run();
        assert_eq!(ended.status, Status::Code(2), "{}", ended.text());
        ended.errors()
    };
    let program = "help: --program FILE names the file of the program that crashed; without it, the one that the core \
        file names is used";
    for (file, why) in [
        (&gone, "No such file or directory"),
        (&empty, "not an ELF file"),
    ] {
        let file = file.to_str().expect("text");
        assert_eq!(
            refused(&["overview", dumped.core(), "--program", file]),
            format!(
                "error: the program of the core file cannot be read: open {file}: {why}\n{program}\n"
            )
        );
    }
    let empty = empty.to_str().expect("text");
    assert_eq!(
        refused(&["overview", empty]),
        format!(
            "error: {empty} is empty: it is neither a recording nor a core file\nhelp: a core file stays empty if the \
             disk is full or `ulimit -c` is too small: allow more, and run the program again\n"
        )
    );
}

/// Without a build id, the sizes of the segments tell that a program was built again: its names would be at other addresses.
#[test]
fn a_program_that_was_built_again_is_not_used() {
    let source = |more: &str| {
        format!(
            "#include <signal.h>\nint before = 1;\n{more}\nint asked = 42;\n\
             int main(void) {{ asked += before; raise(SIGSEGV); return 0; }}\n"
        )
    };
    let flags = ["-g", "-O0", "-Wl,--build-id=none"];
    let scratch = Scratch::new("core-rebuilt");
    let program = compiled(&scratch, "app.c", &source(""), &flags);
    let kept = scratch.join("kept");
    std::fs::copy(&program, &kept).expect("a copy");
    let dumped = Dumped::running(scratch, program, &[]);
    let asked = |program: &[&str]| {
        let words = [&["repl", dumped.core(), "--cmd", "p asked"], program].concat();
        let ended = dumped.command(&words).run();
        (ended.text(), ended.errors())
    };
    assert_eq!(asked(&[]).0, "$1 = 43\n");
    compiled(
        &dumped.scratch,
        "app.c",
        &source("int more[900] = {7};"),
        &flags,
    );
    let (text, errors) = asked(&[]);
    assert!(
        text.is_empty() && errors.contains("no variable \"asked\""),
        "{text}{errors}"
    );
    let overview = dumped.text(&["overview", dumped.core()]);
    for told in [
        "\n  another file is at /",
        "the program's own file is missing: --program FILE names it",
    ] {
        assert!(overview.contains(told), "{told}: {overview}");
    }
    let (text, errors) = asked(&["--program", kept.to_str().expect("text")]);
    assert_eq!(text, "$1 = 43\n", "{errors}");
    let built = dumped.program.to_str().expect("text");
    let (text, errors) = asked(&["--program", built]);
    assert!(
        text.is_empty()
            && errors.contains("a program whose segments have other sizes than those of "),
        "{text}{errors}"
    );
    // The file is there again.
    std::fs::copy(&kept, &dumped.program).expect("a copy");
    assert_eq!(asked(&[]).0, "$1 = 43\n");
}

/// Who opens a core file learns what is missing before the first answer.
#[test]
fn what_is_missing_is_told_first() {
    let scratch = Scratch::new("core-remarks");
    let program = scratch.join("program");
    std::fs::copy(fixture_artifact("core_files", "crash_c"), &program).expect("a copy");
    let dumped = Dumped::running(scratch, program, &[]);
    let whole = dumped.text(&["overview", dumped.core()]);
    assert!(!whole.contains("--program FILE"), "{whole}");
    let bytes = std::fs::read(&dumped.core).expect("the core file");
    let cut = dumped.scratch.join("cut");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("the test's folder");
    let told = dumped.text(&["overview", cut.to_str().expect("text")]);
    assert!(
        told.contains("\n  the core file was cut: its last "),
        "{told}"
    );
    std::fs::remove_file(&dumped.program).expect("it is there");
    let told = dumped.text(&["overview", dumped.core()]);
    assert!(
        told.contains("\n  the module /")
            && told.contains("the program's own file is missing: --program FILE names it"),
        "{told}"
    );
    let live = Live::new("core-remarks-session");
    let opened = live
        .command(&["open", dumped.core()])
        .env("XDG_CACHE_HOME", live.scratch.path())
        .run();
    assert!(
        opened.errors().contains("--program FILE names it"),
        "{}{}",
        opened.text(),
        opened.errors()
    );
}

#[test]
fn it_is_a_recording_for_every_command() {
    let dumped = Dumped::of("crash_c", &[]);
    let overview = dumped.text(&["overview", dumped.core()]);
    assert!(
        overview.contains("Ended by SIGSEGV at address 0x0")
            && overview.contains("fall at crash.c:"),
        "{overview}"
    );
    assert!(dumped.text(&["check", dumped.core()]).contains("whole"));
    assert!(dumped.text(&["info", dumped.core()]).contains("by SIGSEGV"));
    let (_, errors) = dumped.prompt(&dumped.core, &["call fall(0, 1)", "next"]);
    assert!(
        errors.contains("fall cannot be called: this is a core file"),
        "{errors}"
    );
    assert!(errors.contains("no later event"), "{errors}");
    for verb in [
        "step",
        "step-back",
        "next-back",
        "finish",
        "reverse-finish",
        "continue",
        "reverse-continue",
    ] {
        let (_, errors) = dumped.prompt(&dumped.core, &[verb]);
        assert!(
            errors.contains("a core file shows one moment"),
            "{verb}: {errors}"
        );
    }
    // It is created again if the core file has changed.
    let mut bytes = std::fs::read(&dumped.core).expect("the core file");
    bytes.push(0);
    std::fs::write(&dumped.core, bytes).expect("the core file");
    let (text, errors) = dumped.prompt(&dumped.core, &["p table"]);
    assert_eq!(text.trim(), "$1 = {11, 22, 300, 44}", "{errors}");
}

/// A debugger can write a core file at a signal and then let the program go on: the file does not say that the signal ended it.
#[test]
fn a_core_file_of_a_debugger_does_not_say_that_the_program_ended() {
    let scratch = Scratch::new("core-of-gdb");
    let program = fixture_artifact("core_files", "crash_c");
    let path = program.to_str().expect("text");
    let said = gdb(scratch.path(), &[path], &["run", "generate-core-file made"]);
    let made = scratch.join("made");
    assert!(made.is_file(), "{said}");
    let asked = |words: &[&str]| {
        let words = [&["overview", made.to_str().expect("text")], words].concat();
        let ended = command(&scratch, &words).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.text()
    };
    let text = asked(&[]);
    let head = "was stopped by SIGSEGV when a tool wrote this core file; it may have gone on";
    assert!(text.contains(head), "{text}");
    assert!(
        text.contains("\nStopped by SIGSEGV at address 0x0"),
        "{text}"
    );
    assert!(!text.to_lowercase().contains("ended by"), "{text}");
    let json: Value = serde_json::from_str(&asked(&["--json"])).expect("JSON");
    let ending = &json["result"]["ending"];
    assert_eq!(ending["signal"], "SIGSEGV", "{ending:#}");
    assert_eq!(ending["has_ended"], false, "{ending:#}");
}

/// The session of a core file is where the program died, and so is SQL that names no event.
#[test]
fn a_session_of_a_core_file_is_at_its_end() {
    let dumped = Dumped::of("crash_c", &[]);
    let live = Live::new("core-session");
    let text = |words: &[&str]| {
        let command = live.command(words);
        let ended = command.env("XDG_CACHE_HOME", live.scratch.path()).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.text()
    };
    let line = marks("crash.c", &["fall: write"])[0];
    let head = "pause: SIGSEGV at address 0x0: fall at ";
    let place = format!("crash.c:{line}");
    for words in [&["open", dumped.core()][..], &["where"]] {
        let told = text(words);
        let is_there = |line: &str| line.contains(head) && line.ends_with(&place);
        assert!(told.lines().any(is_there), "{words:?}: {told}");
    }
    let sql = "SELECT function FROM backtrace() ORDER BY frame LIMIT 4";
    let frames = dumped.rows(sql);
    let frames: Vec<&str> = frames
        .iter()
        .map(|row| row["function"].as_str().expect("text"))
        .collect();
    assert_eq!(frames, ["fall", "middle", "outer", "main"]);
}

/// The live program contains traps, patches and hooked return addresses; its core file does not.
#[test]
fn a_core_file_of_a_live_program_is_read_by_gdb() {
    let program = fixture_artifact("control", "control_O0_fixed");
    let live = Live::started("core-live", &["--break", "leaf"], &program, &[]);
    live.moved(&["continue"]);
    let reply = live.ask(&["gcore", "made"]);
    assert_eq!(reply["threads"], 1, "{reply:#}");
    assert_eq!(reply["unreadable"], 0, "{reply:#}");
    assert!(
        live.refused(&["gcore", "made"])["message"]
            .as_str()
            .is_some_and(|m| m.contains("made"))
    );
    let core = live.scratch.join("made");
    let files = [
        program.to_str().expect("text"),
        core.to_str().expect("text"),
    ];
    let text = gdb(
        live.scratch.path(),
        &files,
        &["bt", "p x", "p counter", "x/16xb leaf", "x/16xb middle"],
    );
    for function in ["leaf (x=41)", "middle (x=41)", "main ("] {
        assert!(text.contains(function), "{function}: {text}");
    }
    assert!(
        text.contains(&format!(" = {}\n", live.print("counter"))),
        "{text}"
    );
    let plain = gdb(
        live.scratch.path(),
        &files[..1],
        &["x/16xb leaf", "x/16xb middle"],
    );
    let code = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with("0x"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(code(&plain).len(), 4, "{plain}");
    assert_eq!(code(&text), code(&plain));
    let ended = command(
        &live.scratch,
        &["repl", files[1], "--cmd", "bt 2", "--cmd", "p twice + x"],
    )
    .run();
    assert!(
        ended.text().contains("middle (x=41)"),
        "{}{}",
        ended.text(),
        ended.errors()
    );
}

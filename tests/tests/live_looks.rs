//! Goal: the verbs that inspect show everything that exists and no more. Method: a program whose lines, frames and values
//! are known; the text is compared with the JSON reply.

use std::{fs::File, process::Command};

use e2e::{Live, Program, Status, fixture_artifact, fixture_source, marked_line, wait_until};
use serde_json::{Value, json};

fn line(mark: &str) -> u64 {
    marked_line("control", "control.c", mark)
}

fn source() -> String {
    let file = fixture_source("control").join("control.c");
    file.to_str().expect("text").to_owned()
}

fn stopped_at(place: &str, args: &[&str]) -> Live {
    let program = fixture_artifact("control", "control_O0");
    Live::started("looks", &["--break", place], &program, args)
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value:#}"))
}

#[test]
fn where_shows_so_many_lines_around_and_the_locals() {
    let live = stopped_at(&format!("control.c:{}", line("middle: last")), &[]);
    let text = std::fs::read_to_string(source()).expect("the source");
    let text: Vec<&str> = text.lines().collect();
    let here = line("middle: last") as usize;
    for context in [0, 1, 2, 10] {
        let reply = live.ask(&["where", "--context", &context.to_string()]);
        let lines = list(&reply["source"]["lines"]);
        assert_eq!(lines.len(), 2 * context + 1, "{reply:#}");
        assert_eq!(reply["source"]["first"], here - context);
        assert_eq!(reply["source"]["line"], here);
        assert_eq!(lines, &text[here - context - 1..here + context]);
        let locals: Vec<_> = list(&reply["locals"])
            .iter()
            .map(|local| (local["name"].clone(), local["value"].clone()))
            .collect();
        let wanted = [("x", "41"), ("a", "83"), ("b", "124")];
        assert_eq!(
            locals,
            wanted.map(|(name, value)| (json!(name), json!(value))),
            "{reply:#}"
        );
    }
    let shown = live.command(&["where", "--context", "1"]).run().text();
    let wanted = format!(
        "   {:>5} | {}\n-> {:>5} | {}\n   {:>5} | }}\n\nLocals:\n",
        here - 1,
        text[here - 2],
        here,
        text[here - 1],
        here + 1
    );
    assert!(shown.contains(&wanted), "{shown}");
    assert!(shown.contains("\n b    | int  | 124\n"), "{shown}");
    let usual = live.ask(&["where"]);
    assert_eq!(list(&usual["source"]["lines"]).len(), 11, "{usual:#}");
}

#[test]
fn a_backtrace_shows_the_variables_of_each_frame() {
    let live = stopped_at("leaf", &[]);
    live.moved(&["continue"]);
    let reply = live.ask(&["backtrace", "--locals", "--limit", "2"]);
    let frames = list(&reply["threads"][0]["frames"]);
    assert_eq!(frames.len(), 2, "{reply:#}");
    let middle = &frames[1];
    assert_eq!(middle["function"], "middle", "{reply:#}");
    assert_eq!(middle["line"], line("middle: call"), "{reply:#}");
    assert_eq!(middle["args"][0]["name"], "x", "{reply:#}");
    assert_eq!(middle["args"][0]["value"], "41", "{reply:#}");
    let names = list(&middle["locals"]).iter().map(|v| v["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b"], "{reply:#}");
    let shown = live
        .command(&["backtrace", "--locals", "--limit", "2"])
        .run()
        .text();
    let frames: Vec<&str> = shown.lines().collect();
    assert_eq!(
        frames[0],
        format!("*#0   leaf (x=41) at {}:{}", source(), line("leaf: first"))
    );
    assert!(frames[1].starts_with("        twice = "), "{shown}");
    assert_eq!(
        frames[2],
        format!(
            " #1   middle (x=41) at {}:{}",
            source(),
            line("middle: call")
        )
    );
    assert!(frames[3].starts_with("        a = "), "{shown}");
    assert!(frames[4].starts_with("        b = "), "{shown}");
}

#[test]
fn all_stopped_threads_are_shown_with_their_frames() {
    let live = stopped_at("worker_step", &["threads"]);
    wait_until("the second thread", || {
        (live.session()["stopped_threads"] == 2).then_some(())
    });
    let some = live.ask(&["backtrace", "--all"]);
    assert_eq!(list(&some["threads"]).len(), 2, "the first one runs");
    live.ask(&["pause"]);
    let reply = live.ask(&["backtrace", "--all"]);
    let threads = list(&reply["threads"]);
    assert_eq!(threads.len(), 3, "{reply:#}");
    let at_work = threads.iter().filter(|thread| {
        let frames = list(&thread["frames"]);
        frames[0]["function"] == "worker_step" && frames[1]["function"] == "worker"
    });
    assert_eq!(at_work.count(), 2, "{reply:#}");
    let main = threads
        .iter()
        .find(|thread| thread["thread"] == live.session()["pid"])
        .expect("the first one");
    let waits = list(&main["frames"]).iter();
    let mut waits = waits.filter(|frame| frame["function"] == "threads");
    assert!(waits.next().is_some(), "{reply:#}");
    let shown = live.command(&["backtrace", "--all"]).run().text();
    for thread in threads {
        let heading = format!("Thread {}\n", thread["thread"]);
        assert!(shown.contains(&heading), "{shown}");
    }
    // One by its number, with its name and place in the table.
    let worker = threads
        .iter()
        .find(|thread| list(&thread["frames"])[0]["function"] == "worker_step");
    let worker = worker.expect("one")["thread"].to_string();
    let one = live.ask(&["backtrace", "--thread", &worker]);
    assert_eq!(list(&one["threads"]).len(), 1, "{one:#}");
    assert_eq!(one["threads"][0]["thread"].to_string(), worker);
    let table = live.ask(&["threads"]);
    for thread in list(&table["threads"]) {
        assert_eq!(thread["name"], "control_O0", "{table:#}");
        assert_eq!(thread["state"], "stopped", "{table:#}");
    }
    let shown = live.command(&["threads"]).run().text();
    let place = format!("worker_step at {}:{}", source(), line("worker: step"));
    let rows = shown.lines().filter(|row| row.ends_with(&place));
    assert_eq!(rows.count(), 2, "{shown}");
    // No verb has shown the second thread's stop yet.
    assert_eq!(live.moved(&["continue"])["function"], "worker_step");
    assert_eq!(live.ask(&["continue"])["exit"]["code"], 0);
}

#[test]
fn addresses_are_shown_with_their_symbols() {
    let live = stopped_at("leaf", &[]);
    let leaf = live.ask(&["print", "--format", "address", "leaf"]);
    let leaf = leaf["value"].as_str().expect("text");
    assert!(
        leaf.starts_with("0x") && leaf.ends_with(" <leaf>"),
        "{leaf}"
    );
    let inside = live.ask(&["print", "--format", "address", "$rip"]);
    let inside = inside["value"].as_str().expect("text").to_owned();
    let place = live.session()["stop"]["address"].clone();
    let wanted = format!("{} <leaf+", place.as_str().expect("text"));
    assert!(inside.starts_with(&wanted), "{inside}");
    let number = live.ask(&["print", "--format", "address", "x"]);
    assert_eq!(number["value"], "0x14");
    let short = live.command(&["print", "--format", "a", "x"]).run().text();
    assert_eq!(short, "$4 = 0x14\n");
    for (format, value) in [
        ("hex", "0x14"),
        ("octal", "024"),
        ("binary", "0b10100"),
        ("unsigned", "20"),
        ("char", "20 '\\024'"),
    ] {
        let reply = live.ask(&["print", "--format", format, "x"]);
        assert_eq!(reply["value"], value, "{format}");
    }
}

/// It is in write(2), called from the recorder's code, which no backtrace shows.
#[test]
fn a_program_that_waits_to_write_shows_who_writes() {
    let live = Live::new("looks-blocked");
    let fifo = live.scratch.join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo is there").success());
    let program = Program::new(fixture_artifact("blocked", "blocked"), live.scratch.path());
    let program = program.args([&fifo]).start();
    let pid = program.pid();
    live.ask(&["attach", &pid.to_string()]);
    // Opened for reading and writing it does not block; nothing is read.
    let reader = File::options().read(true).write(true).open(&fifo);
    let reader = reader.expect("a FIFO");
    const WRITE: &str = "1 0x1 ";
    wait_until("the FIFO to be full", || {
        let call = std::fs::read_to_string(format!("/proc/{pid}/syscall"));
        call.is_ok_and(|call| call.starts_with(WRITE)).then_some(())
    });
    // It is there briefly before.
    wait_until("it to write no more", || {
        let number = || {
            live.recording()
                .number("SELECT count(*) FROM calls WHERE function = 'put'")
        };
        (number() == 17).then_some(())
    });
    live.ask(&["pause"]);
    let shown = live.ask(&["backtrace"]);
    let frames = list(&shown["threads"][0]["frames"]);
    let functions: Vec<_> = frames
        .iter()
        .filter_map(|frame| frame["function"].as_str())
        .collect();
    let own = functions.iter().position(|name| *name == "put");
    let own = own.unwrap_or_else(|| panic!("{shown:#}"));
    assert_eq!(functions[own..own + 3], ["put", "fill", "main"]);
    assert!(
        functions[..own].iter().all(|name| name.contains("write")),
        "{shown:#}"
    );
    // A FIFO holds 64 KiB (pipe(7)): sixteen blocks. The number is in a register that the runtime has saved.
    live.ask(&["frame", &own.to_string()]);
    assert_eq!(live.print("number"), "16");
    live.ask(&["detach"]);
    drop(reader);
    assert_eq!(program.finish().status, Status::Signal(13), "SIGPIPE");
}

/// The names that a debugger shows are not aliases: those of Ada have their packages.
#[test]
fn functions_in_nested_packages_of_ada_are_found() {
    let program = fixture_artifact("ada_packages", "ada_packages");
    for (name, function, n) in [
        ("Outer_Pack.Stop_Here", "outer_pack__stop_here", "1"),
        (
            "Outer_Pack.Inner.Stop_Here",
            "outer_pack__inner__stop_here",
            "2",
        ),
        (
            "outer_pack.inner.innermost.stop_here",
            "outer_pack__inner__innermost__stop_here",
            "3",
        ),
    ] {
        let live = Live::started(&format!("ada-{n}"), &["--break", name], &program, &[]);
        let frame = &live.ask(&["backtrace"])["threads"][0]["frames"][0];
        assert_eq!(frame["function"], function, "{name}: {frame:#}");
        assert_eq!(live.print("n"), n, "{name}");
        live.ask(&["stop"]);
    }
}

/// Such frames are laid out differently, with their variables behind a pointer.
#[test]
fn frames_with_address_sanitizer_show_their_parameters() {
    let program = fixture_artifact("outer", "outer_asan");
    let live = Live::started("asan-frames", &["--break", "change"], &program, &[]);
    for (to, passed) in [("11", "11"), ("22", "11"), ("21", "21"), ("42", "21")] {
        let frames = live.ask(&["backtrace"])["threads"][0]["frames"].take();
        let argument = |frame: usize, name: &str| {
            let mut args = list(&frames[frame]["args"]).iter();
            let found = args.find(|arg| arg["name"] == name);
            found.expect("it has one")["value"].clone()
        };
        assert_eq!(argument(0, "to"), to, "{frames:#}");
        assert_eq!(argument(1, "to"), passed, "{frames:#}");
        assert_eq!(argument(2, "n"), "1", "{frames:#}");
        live.moved(&["continue"]);
    }
    let recording = live.recording();
    live.ask(&["stop"]);
    let sql = "SELECT frame_value(seq, 0, 'to') AS t0, frame_value(seq, 1, 'to') AS t1, frame_value(seq, 2, 'n') AS n \
               FROM events WHERE kind = 'pause' AND aux LIKE 'breakpoint%' ORDER BY seq LIMIT 4";
    let rows = recording.rows(sql);
    let shown = rows
        .iter()
        .map(|row| (row["t0"].clone(), row["t1"].clone(), row["n"].clone()));
    let text = |text: &str| serde_json::Value::from(text);
    let wanted = [("11", "11"), ("22", "11"), ("21", "21"), ("42", "21")];
    let wanted = wanted.map(|(to, passed)| (text(to), text(passed), text("1")));
    assert_eq!(shown.collect::<Vec<_>>(), wanted);
}

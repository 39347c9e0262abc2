//! Goal: when any process is killed, the others say what happened and nothing is lost. Method: clients, daemons and
//! programs are killed at the worst moments, and the rest is queried.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{
    Live, Signal, Status, fixture_artifact, in_turn, is_alive, kill, marked_line, wait_until,
};

fn line(mark: &str) -> u64 {
    marked_line("control", "control.c", mark)
}

fn stopped_at(name: &str, options: &[&str], args: &[&str]) -> Live {
    let program = fixture_artifact("control", name);
    Live::started(&format!("robust-{name}"), options, &program, args)
}

fn pid(live: &Live) -> i32 {
    live.session()["pid"].as_i64().expect("a number") as i32
}

#[test]
fn a_client_that_is_killed_leaves_the_program_running() {
    let live = stopped_at("control_O0", &["--stop-on-entry"], &["spinning"]);
    let client = live.command(&["continue"]).start();
    wait_until("the program to run", || {
        (live.session()["status"] == "running").then_some(())
    });
    client.signal(Signal::KILL);
    assert_eq!(client.finish().status, Status::Signal(9));
    live.ask(&["pause"]);
    assert_eq!(live.session()["status"], "stopped");
    live.ask(&["set", "tempo", "90"]);
    assert_eq!(live.run_to_end(), 7);
}

#[test]
fn a_program_that_is_killed_while_it_is_stopped_ends_its_session() {
    let live = stopped_at("control_O0", &["--break", "middle"], &[]);
    kill(pid(&live), Signal::KILL);
    let ended = wait_until("its end to be noticed", || {
        let session = live.session();
        (session["status"] == "ended").then_some(session)
    });
    assert_eq!(ended["exit"]["signal"], 9, "{ended:#}");
    assert_eq!(live.refused(&["next"])["code"], "NOT_RUNNING");
    let recording = live.recording();
    let exit = recording.row("SELECT aux FROM events WHERE kind = 'process_exit'");
    assert_eq!(exit["aux"], "SIGKILL");
    // Sealing goes on behind the end of the session.
    wait_until("the recording to be whole", || {
        let check = recording.command("check", &[]);
        (check.status == Status::Code(0)).then_some(())
    });
}

/// One thread is at a breakpoint when another one calls exit.
#[test]
fn a_program_that_exits_beside_a_stopped_thread_ends_its_session() {
    for name in in_turn(["ways_O0", "ways_O2"]) {
        let program = fixture_artifact("ways", name);
        let live = Live::started(
            "abandoned",
            &["--break", "worker"],
            &program,
            &["abandoned"],
        );
        let stop = live.session()["stop"].clone();
        assert_eq!(stop["function"], "worker", "{name}: {stop:#}");
        assert_ne!(stop["thread"], live.session()["pid"], "{name}");
        live.ask(&["set", "open_gate", "1"]);
        let ended = wait_until("its end to be noticed", || {
            let session = live.session();
            (session["status"] == "ended").then_some(session)
        });
        assert_eq!(ended["exit"]["code"], 3, "{name}: {ended:#}");
        for verb in ["next", "continue", "where", "locals"] {
            let refused = live.refused(&[verb]);
            assert_eq!(refused["code"], "NOT_RUNNING", "{name} {verb}: {refused:#}");
            let message = refused["message"].as_str().expect("text");
            assert!(message.contains("has ended with exit code 3"), "{message}");
        }
        let recording = live.recording();
        let exit = recording.row("SELECT value FROM events WHERE kind = 'process_exit'");
        assert_eq!(exit["value"], 3, "{name}: {exit:?}");
        // Sealing goes on behind the end of the session.
        wait_until("the recording to be whole", || {
            let check = recording.command("check", &[]);
            (check.status == Status::Code(0)).then_some(())
        });
    }
}

#[test]
fn a_restart_has_the_same_breakpoints_and_a_new_recording() {
    let live = stopped_at("control_O0", &["--break", "middle"], &[]);
    let first = live.session();
    let again = live.ask(&["restart"]);
    live.keep(&again);
    assert_ne!(again["pid"], first["pid"]);
    assert_ne!(again["recording"], first["recording"]);
    assert_eq!(again["stop"]["function"], "middle", "{again:#}");
    assert!(!is_alive(first["pid"].as_i64().expect("a number") as i32));
    assert_eq!(live.run_to_end(), 7);
}

/// Each step stays in the frame it began in, whatever the calls in between do.
#[test]
fn steps_stay_in_their_frame() {
    for name in in_turn(["control_O0", "control_O0_fixed", "control_stripped"]) {
        let live = stopped_at(name, &["--break", "sum_to"], &[]);
        for mark in [
            "sum: zero",
            "sum: loop",
            "sum: add",
            "sum: loop",
            "sum: add",
        ] {
            let stop = live.session()["stop"].clone();
            assert_eq!(stop["line"], line(mark), "{name}: {stop:#}");
            live.moved(&["next"]);
        }
        let at = format!("control.c:{}", line("factorial: call"));
        live.ask(&["break", &at, "--condition", "n == 3"]);
        live.moved(&["continue"]);
        let stop = live.moved(&["next"]);
        assert_eq!(stop["line"], line("factorial: last"), "{name}");
        assert_eq!(
            (live.print("n"), live.print("rest")),
            ("3".into(), "2".into()),
            "{name}"
        );
        // Back in the call of factorial (4), in the middle of its line.
        let stop = live.moved(&["finish"]);
        assert_eq!(stop["line"], line("factorial: call"), "{name}");
        assert_eq!(live.print("n"), "4", "{name}");
        assert_eq!(live.run_to_end(), 7, "{name}");
    }
}

#[test]
fn a_step_goes_through_pointers_and_not_into_code_without_lines() {
    for name in in_turn(["control_O0", "control_O0_fixed", "control_stripped"]) {
        let at = format!("control.c:{}", line("main: pointer"));
        let live = stopped_at(name, &["--break", &at], &[]);
        assert_eq!(live.moved(&["step"])["line"], line("leaf: first"), "{name}");
        live.moved(&["finish"]);
        assert_eq!(
            live.moved(&["next"])["line"],
            line("main: middle"),
            "{name}"
        );
        assert_eq!(live.print("called"), "41", "{name}");
        assert_eq!(live.moved(&["next"])["line"], line("main: sum"), "{name}");
        assert_eq!(live.run_to_end(), 7, "{name}");
    }
}

/// Empty texts, and longer ones than anybody would write.
fn hostile() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        " ",
        "(",
        ")",
        "((((((((((",
        "a[",
        "x]",
        "*",
        "&&",
        "x.",
        ".x",
        "->",
        "p->->q",
        "x +",
        "1 / 0",
        "1 % 0",
        "-9223372036854775808 / -1",
        "(long)1 << 64",
        "1 << -1",
        "0x",
        "0b2",
        "1e",
        "1e999999",
        "99999999999999999999999999999999999999999",
        "'",
        "\"",
        "'\\",
        "\"\\x",
        "\"\\u{110000}\"",
        "'\\777'",
        "/",
        "/[/",
        "/(?:/.test(x)",
        "`${`",
        "{",
        "}",
        "{{{",
        "{}",
        "{x",
        "{x:}",
        "{x:nope}",
        "{{}",
        "$",
        "$$",
        "$rip + $nothing",
        "$xmm99",
        "args[99999999999]",
        "args[-1]",
        "args.length.x",
        "*(int *)0",
        "*(int *)-1",
        "**(int ***)0x10",
        "(struct nothing *)x",
        "(int[4294967295])x",
        "sizeof",
        "sizeof(sizeof(x))",
        "x@99999999999",
        "*x@-1",
        "x[..]",
        "x[5..1]",
        "x[0..18446744073709551615]",
        "counter[counter[counter]]",
        "main(",
        "main.main",
        "leaf(1,2,3,4,5,6,7,8,9)",
        "nothing::nothing::<>",
        "a<b<c<d<e<f<g",
        "operator",
        "operator()",
        "~~~~~~~~x",
        "!!!!!x",
        "- - - - x",
        "x = ",
        "= x",
        "x == = x",
        "x === ",
        "x ? y",
        "x ?: y",
        "while (true) {}",
        "(() => { while (true) {} })()",
        "(function f() { return f() })()",
        "[].concat(Array(1e9))",
        "'x'.repeat(1e9)",
        "throw x",
        "new Proxy({}, {})",
        "eval('x')",
        "state.x.y.z",
        "import('x')",
        "__proto__",
        "this",
        "null.x",
        "undefined()",
        "\u{202e}counter",
        "\u{fffd}\u{0}",
        "grüße",
        "\u{1f600}",
        "x\ny",
        "\t\r\n",
        "// x",
        "/* x",
        "'; DROP TABLE calls; --",
        "%n%n%n%s",
        "../../etc/passwd:1",
        "control.c:",
        "control.c:0",
        "control.c:-1",
        "control.c:99999999999",
        "control.c:21:99999999999",
        ":21",
        "0xzz",
        "0xffffffffffffffffff",
        "0x0",
        "***",
        "[",
        "\\",
    ]
    .map(str::to_owned)
    .into();
    texts.push("(".repeat(5_000));
    texts.push("x+".repeat(5_000));
    texts.push("*".repeat(10_000));
    texts.push("a.".repeat(2_000) + "a");
    texts.push(format!("counter == {}", "9".repeat(3_000)));
    texts
}

/// Each goes directly to the daemon, because a shell's words would never reach it.
#[test]
fn hostile_texts_are_refused_or_answered_and_harm_nobody() {
    let native = {
        let program = fixture_artifact("control", "control_O0");
        let output = std::process::Command::new(program).output();
        String::from_utf8(output.expect("it runs").stdout).expect("it prints text")
    };
    let live = stopped_at("control_O0", &["--break", "bump"], &[]);
    let texts = hostile();
    assert!(texts.len() > 100, "{}", texts.len());
    let before = pid(&live);
    let mut id = 10;
    let mut ask = |command: &str, args: serde_json::Value| {
        id += 1;
        let request = serde_json::json!({"id": id, "command": command, "args": args});
        let answer = live.request(&request);
        let error = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(
            !error.contains("a mistake in Hindsight"),
            "{request}: {answer:#}"
        );
        assert_eq!(
            answer["success"] == true,
            answer["error"].is_null(),
            "{answer:#}"
        );
        answer
    };
    let leaf = serde_json::json!({"function": "leaf"});
    for text in &texts {
        ask("print", serde_json::json!({"expression": text}));
        ask("display", serde_json::json!({"expression": text}));
        ask(
            "eval",
            serde_json::json!({"expression": format!("({text}) + 0")}),
        );
        ask("set", serde_json::json!({"target": text, "value": "1"}));
        ask(
            "set",
            serde_json::json!({"target": "by", "value": format!("{text} + nothing")}),
        );
        ask(
            "watch",
            serde_json::json!({"action": "add", "expression": text}),
        );
        ask(
            "watch",
            serde_json::json!({"action": "remove", "all": true}),
        );
        ask("break", serde_json::json!({"action": "add", "at": text}));
        ask(
            "break",
            serde_json::json!({"action": "add", "at": leaf, "condition": text}),
        );
        ask(
            "logpoint",
            serde_json::json!({"action": "add", "at": leaf, "message": text}),
        );
        ask(
            "logpoint",
            serde_json::json!({"action": "add", "at": leaf, "message": "x", "condition": text}),
        );
    }
    let listed = ask("display", serde_json::json!({}));
    assert_eq!(listed["success"], true, "{listed:#}");
    // One that was not reached is still hit, with a condition and a message that cannot be evaluated.
    ask(
        "break",
        serde_json::json!({"action": "remove", "all": true}),
    );
    ask(
        "break",
        serde_json::json!({"action": "add", "at": "middle", "condition": "*(int*)8 > 2"}),
    );
    ask(
        "logpoint",
        serde_json::json!({"action": "add", "at": "factorial", "message": "{nothing} {n} {*(int*)n}"}),
    );
    assert_eq!(pid(&live), before);
    assert_eq!(live.run_to_end(), 7);
    assert_eq!(live.output(), native);
    let recording = live.recording();
    let errors = "SELECT count(*) FROM events WHERE kind = 'condition_error'";
    assert!(recording.number(errors) >= 1);
    let logged = "SELECT count(*) FROM logpoints WHERE message LIKE '<%> % <%>'";
    assert_eq!(recording.number(logged), 4);
}

/// Damaged debug information is read as far as it makes sense.
#[test]
fn a_program_with_damaged_debug_information_starts_and_runs() {
    let good = fixture_artifact("control", "control_O0");
    let scratch = e2e::Scratch::new("robust-damaged");
    let section = scratch.join("info");
    let run = |words: &[&std::ffi::OsStr]| {
        let status = std::process::Command::new("objcopy").args(words).status();
        assert!(status.expect("objcopy runs").success(), "{words:?}");
    };
    let dump = format!(".debug_info={}", section.display());
    run(&[
        "--dump-section".as_ref(),
        dump.as_ref(),
        good.as_ref(),
        scratch.join("copy").as_ref(),
    ]);
    let info = std::fs::read(&section).expect("it was just written");
    for (number, step) in [3, 7, 31, 257].into_iter().enumerate() {
        let mut bytes = info.clone();
        // Not the header of the unit: its contents are damaged.
        for at in (12..bytes.len()).step_by(step) {
            bytes[at] = bytes[at].wrapping_mul(31).wrapping_add(number as u8 + 1);
        }
        std::fs::write(&section, &bytes).expect("the folder is writable");
        let program = scratch.join(&format!("damaged{number}"));
        let update = format!(".debug_info={}", section.display());
        run(&[
            "--update-section".as_ref(),
            update.as_ref(),
            good.as_ref(),
            program.as_ref(),
        ]);
        let live = Live::new("robust-damaged-run");
        live.start(&["--break", "bump"], &program, &[]);
        for words in [
            &["where"][..],
            &["locals"],
            &["print", "counter"],
            &["backtrace"],
            &["break", "leaf"],
        ] {
            let (_, response) = live.response(words);
            let text = response.to_string();
            assert!(
                !text.contains("a mistake in Hindsight"),
                "{words:?}: {text}"
            );
        }
        live.ask(&["break", "remove", "--all"]);
        assert_eq!(live.run_to_end(), 7, "damaged{number}");
        assert!(live.output().starts_with("counter 55\n"), "damaged{number}");
    }
}

//! Goal: whatever is killed, the others say what happened and nothing is lost. Method: clients, daemons and programs are
//! killed at the worst moments, and what is left is asked.

use e2e::{Live, Signal, Status, fixture_artifact, is_alive, kill, marked_line, wait_until};

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

/// One thread stands at a breakpoint when another one calls exit.
#[test]
fn a_program_that_exits_beside_a_stopped_thread_ends_its_session() {
    for name in ["ways_O0", "ways_O2"] {
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
    for name in ["control_O0", "control_O0_fixed", "control_stripped"] {
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
    for name in ["control_O0", "control_O0_fixed", "control_stripped"] {
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

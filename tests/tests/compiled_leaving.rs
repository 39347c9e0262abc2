//! Goal: code that was compiled into a program is removed together with its session, library or probe. Method: false
//! conditions and logpoints at places that are passed all the time, while the session is detached, libraries are
//! unloaded and the program forks.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{
    Live, Program, Status, Steady, changed_text, fixture_artifact, fixture_source, in_turn,
    wait_until,
};
use serde_json::Value;

/// Whether the program itself evaluates every place of the probes that were just added.
fn all_compiled(added: &Value) -> bool {
    let probes = added["probes"].as_array().expect("probes");
    let mut places = probes
        .iter()
        .flat_map(|p| p["places"].as_array().expect("places"));
    places.all(|place| place["compiled"] == true)
}

#[test]
fn detaching_takes_compiled_code_out_of_a_busy_program() {
    let live = Live::new("detached");
    let steady = Steady::new(&live.scratch);
    let program = steady.program(&live.scratch, 0).start();
    let pid = program.pid();
    let main = format!(
        "steady.c:{}",
        line_with("steady", "steady.c", "shared[5]++")
    );
    for _ in 0..3 {
        wait_until("some rounds", || (steady.rounds() > 1000).then_some(()));
        live.ask(&["attach", &pid.to_string(), "--exclude", "*"]);
        for probe in [
            &["break", "churn", "--condition", "depth == 99"][..],
            &[
                "break",
                "leaf",
                "--condition",
                "n == -1",
                "--hit-count",
                "3",
            ],
            &[
                "logpoint",
                &main,
                "n={round}",
                "--condition",
                "round % 4096 == 0",
            ],
        ] {
            let added = live.ask(probe);
            assert!(all_compiled(&added), "{added:#}");
        }
        let begun = steady.rounds();
        wait_until("rounds with probes", || {
            (steady.rounds() > begun + 1000).then_some(())
        });
        assert!(
            !changed_text(pid, "/steady").is_empty(),
            "the probes are in the code"
        );
        let recording = live.recording();
        live.ask(&["detach"]);
        assert_eq!(changed_text(pid, "/steady"), Vec::<u64>::new());
        let left = steady.rounds();
        wait_until("rounds without probes", || {
            (steady.rounds() > left + 1000).then_some(())
        });
        assert!(recording.number("SELECT count(*) FROM logpoints") > 0);
        assert_eq!(
            recording.number("SELECT count(*) FROM logpoints WHERE message NOT LIKE 'n=%'"),
            0
        );
    }
    steady.stop();
    assert_eq!(program.finish().status, Status::Code(21));
    assert!(steady.has_finished());
    assert_eq!(steady.wrong(), 0);
}

/// Whether a listed probe has places, and the program evaluates it at all of them.
fn is_compiled(live: &Live, kind: &str, id: u64) -> bool {
    let list = live.ask(&[kind, "list"]);
    let probes = list["probes"].as_array().expect("probes");
    let probe = probes.iter().find(|probe| probe["id"] == id);
    let places = probe.and_then(|probe| probe["places"].as_array());
    places.is_some_and(|all| !all.is_empty() && all.iter().all(|place| place["compiled"] == true))
}

#[test]
fn compiled_probes_come_and_go_with_their_library() {
    let program = fixture_artifact("plugin", "plugin_host");
    let live = Live::started(
        "unloaded",
        &["--stop-on-entry", "--exclude", "*"],
        &program,
        &[],
    );
    for probe in [
        &["break", "red_work", "--condition", "x > 1000"][..],
        &["logpoint", "blue_work", "x={x}", "--condition", "x == 7"],
    ] {
        live.ask(&[probe, &["--pending"]].concat());
    }
    // While a library is loaded, the program evaluates its probes itself. Blue comes first, then red.
    let inside = line_with("plugin", "host.c", "sum += work(i)");
    live.ask(&["break", &format!("host.c:{inside}")]);
    live.ask(&["continue"]);
    assert!(is_compiled(&live, "logpoint", 2));
    live.ask(&["continue"]);
    assert!(is_compiled(&live, "break", 1));
    assert!(!is_compiled(&live, "logpoint", 2), "its library is gone");
    live.ask(&["break", "remove", "3"]);
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output().matches("red 6570 blue 5225\n").count(), 10);
    let recording = live.recording();
    let rows = recording.rows("SELECT message FROM logpoints");
    assert_eq!(rows.len(), 10, "once a round");
    assert!(rows.iter().all(|row| row["message"] == "x=7"), "{rows:?}");
}

/// Children have the code of their parent but not its recorder: they run as if it did not exist.
#[test]
fn children_run_through_compiled_probes_unharmed() {
    let program = fixture_artifact("fork", "fork");
    let natively = Program::new(&program, std::env::temp_dir()).run();
    let live = Live::started(
        "forked",
        &["--stop-on-entry", "--exclude", "*"],
        &program,
        &[],
    );
    let entry = format!("fork.c:{}", line_with("fork", "fork.c", "mine++;"));
    for probe in [
        &["break", "wait_for", "--condition", "pid == -5"][..],
        &["logpoint", &entry, "n={n}", "--condition", "n >= 10"],
    ] {
        let added = live.ask(probe);
        assert!(all_compiled(&added), "{added:#}");
    }
    assert_eq!(live.run_to_end(), 3);
    assert_eq!(live.output(), natively.text());
    let digests = natively.text();
    assert!(
        digests.contains("children right: 30 of 30, from a thread: 1"),
        "{digests}"
    );
    // The parent digests 10 + n for each child, and once more for the child of its thread; 10 + n goes down to 10.
    let expected = (0..30).map(|n| n + 1).sum::<i64>() + 5;
    assert_eq!(
        live.recording().number("SELECT count(*) FROM logpoints"),
        expected
    );
}

#[test]
fn values_of_rust_are_logged_as_the_program_prints_them() {
    for name in in_turn(["orders_O0", "orders_O2"]) {
        let program = fixture_artifact("statements", name);
        let live = Live::started(name, &["--stop-on-entry"], &program, &[]);
        let place = format!(
            "orders.rs:{}",
            line_with("statements", "orders.rs", "match self.size")
        );
        live.ask(&[
            "logpoint",
            &place,
            "{self.number}|{self.customer}|{self.price}",
        ]);
        assert_eq!(live.run_to_end(), 7);
        let output = live.output();
        let rows = live.recording().rows("SELECT message FROM logpoints");
        let mut logged: Vec<(u32, String)> = Vec::new();
        for row in rows {
            let message = row["message"].as_str().expect("text");
            let parts: Vec<&str> = message.split('|').collect();
            let [number, customer, price] = parts[..] else {
                panic!("{name}: {message}");
            };
            let number: u32 = number
                .parse()
                .unwrap_or_else(|_| panic!("{name}: {message}"));
            assert_eq!(
                price.parse(),
                Ok(f64::from(number) * 1.5),
                "{name}: {message}"
            );
            logged.push((number, customer.trim_matches('"').to_owned()));
        }
        logged.sort_by(|a, b| b.cmp(a));
        let numbers: Vec<String> = logged
            .iter()
            .map(|(number, _)| number.to_string())
            .collect();
        // The program's last line has all numbers, the highest first, and one more that is something else.
        let last = output.lines().last().expect("a line");
        assert_eq!(format!("{} 21", numbers.join(" ")), last, "{name}");
        for customer in ["bob", "cy"] {
            let count = logged.iter().filter(|(_, who)| who == customer).count();
            assert!(
                output.contains(&format!("{customer}: {count} orders")),
                "{name}: {output}"
            );
        }
    }
}

/// The line of a fixture's source that holds this text.
fn line_with(fixture: &str, file: &str, text: &str) -> usize {
    let source = std::fs::read_to_string(fixture_source(fixture).join(file)).expect("a source");
    let found = source.lines().position(|line| line.contains(text));
    1 + found.unwrap_or_else(|| panic!("{file} has no {text}"))
}

//! Goal: conditions in JavaScript see the values of C, C++ and Rust programs, remember what they should, and do no harm.
//! Method: logpoints whose conditions pick calls by number; which calls these are is known from the fixture.

use e2e::{Live, fixture_artifact};
use serde_json::Value;

/// Runs a program with one logpoint per condition and returns the calls that each selected.
fn picked(program: &str, function: &str, conditions: &[&str]) -> Vec<Vec<u32>> {
    let live = stopped(program, &[]);
    for (number, condition) in conditions.iter().enumerate() {
        let template = format!("{number}:{{id}}");
        let added = live.ask(&["logpoint", function, &template, "--condition", condition]);
        let place = &added["probes"][0]["places"][0];
        assert_eq!(place["compiled"], false, "{condition}: {added:#}");
    }
    assert_eq!(live.run_to_end(), 0);
    let recording = live.recording();
    let errors = recording.rows("SELECT text, aux FROM events WHERE kind = 'condition_error'");
    assert!(errors.is_empty(), "{conditions:?}: {errors:#?}");
    let mut calls = vec![Vec::new(); conditions.len()];
    for row in recording.rows("SELECT message FROM logpoints ORDER BY seq") {
        let message = row["message"].as_str().expect("text");
        let (number, id) = message.split_once(':').expect("as asked");
        calls[number.parse::<usize>().expect("ours")].push(id.parse().expect("a number"));
    }
    calls
}

fn stopped(program: &str, args: &[&str]) -> Live {
    let path = fixture_artifact("conditions", program);
    Live::started(
        &format!("script-{program}"),
        &["--stop-on-entry"],
        &path,
        args,
    )
}

fn check(program: &str, function: &str, wanted: &[(&str, &[u32])]) {
    let conditions: Vec<&str> = wanted.iter().map(|(condition, _)| *condition).collect();
    let calls = picked(program, function, &conditions);
    for ((condition, ids), calls) in wanted.iter().zip(calls) {
        assert_eq!(calls, *ids, "{program}: {condition}");
    }
}

const IN_C: &[(&str, &[u32])] = &[
    (r#"["req-0", "other-4"].includes(name)"#, &[0, 4]),
    (r#"js: name.startsWith("req-") && item.price > 3"#, &[6, 9]),
    ("/^o.*[57]$/.test(name)", &[5, 7]),
    (
        "(() => { let n = 0; for (let i = 0; i < 3; i++) n += item.numbers[i]; return n > 30 })()",
        &[10, 11],
    ),
    (r#"[item.color.name].includes("BLUE")"#, &[2, 6, 10]),
    (
        "[RED, GREEN].includes(color) && color === item.color",
        &[0, 1, 4, 5, 8, 9],
    ),
    ("(item.color.name ?? item.color.value) === 77", &[3, 7, 11]),
    (
        r#"typeof item.large === "bigint" && item.large % 4n === 3n"#,
        &[3, 7, 11],
    ),
    (r#"js: item.next === null && item.tag.endsWith("4")"#, &[4]),
    ("item.next?.price === 0 && id > 8", &[9, 11]),
    (r#"js: "bd".includes(item.letter)"#, &[1, 3]),
    ("js: item.bytes.indexOf(200 + id) === 0 && id < 2", &[0, 1]),
    ("js: Math.round(item.ratio * 8) === 5", &[5]),
    (
        "state.count = (state.count ?? 0) + 1, state.count % 5 == 0",
        &[4, 9],
    ),
    (
        "state[item.color] = (state[item.color] ?? 0) + 1, state[item.color] == 3",
        &[8, 9, 10, 11],
    ),
    (
        "js: args[0] === 7 && args.length === 4 && args[2].includes('7')",
        &[7],
    ),
    (
        "js: args.weight > 2.5 && args.name.length.toString() === '8'",
        &[11],
    ),
    (
        r#"js: $("item->price") === 5 && $("items[5].price") === 5"#,
        &[5],
    ),
    ("[$rip].every(at => at > 4096) && id === 1", &[1]),
    ("[total + 1].includes(3)", &[3]),
    (
        r#"JSON.stringify({id, t: item.tag}) === '{"id":6,"t":"t6"}'"#,
        &[6],
    ),
    (
        r#"js: Object.keys(item).includes("large") && String(item).includes("other-10")"#,
        &[10],
    ),
];

#[test]
fn conditions_see_what_c_has() {
    check("conditions_c_O0", "visit", IN_C);
    check("conditions_c_O2", "visit", IN_C);
}

#[test]
fn conditions_see_what_cxx_has() {
    check(
        "conditions_cxx",
        "Shop::visit",
        &[
            (
                "items.some(i => i.price === 3 && i.name.endsWith('3'))",
                &[4, 5, 6, 7, 8, 9, 10, 11],
            ),
            ("items.map(i => i.price).join() === '0,1,2'", &[3]),
            ("js: name.includes('7')", &[7]),
            (
                "items.at(-1)?.sizes.reduce((a, b) => a + b, 0) === 24",
                &[5],
            ),
            (
                "items.at(-1)?.tags.get('twice') === 8 && items.at(-1).codes.has(4)",
                &[5],
            ),
            (
                "items.at(-1)?.kind == 'Large' && items.length > 8 && [1].length",
                &[10],
            ),
            ("[0, 6].includes(items.at(-1)?.note)", &[1, 7]),
            ("items.at(-1)?.note === null && id < 4", &[2, 3]),
            ("items.at(-1)?.spare?.name === 'spare-8'", &[9]),
            ("items.at(-1)?.shared === 9", &[10]),
            (
                "js: this.count.toFixed() === '3' && this.town.length === 4",
                &[3],
            ),
            ("[town].includes('Oslo') && count === 2", &[2]),
            (
                "(() => { let n = 0; for (const item of items) n += item.price; return n === 10 })()",
                &[5],
            ),
            ("[...items].length === 2", &[2]),
        ],
    );
}

#[test]
fn conditions_see_what_rust_has() {
    check(
        "conditions_rust",
        "conditions::visit",
        &[
            ("js: name.endsWith('1')", &[1, 11]),
            ("items.filter(i => i.price % 2 === 0).length === 3", &[5, 6]),
            ("last?.note === 'note-4'", &[5]),
            ("[last].includes(null)", &[0]),
            (
                "last && last.note === null && id < 4 && [1].length",
                &[2, 3],
            ),
            (
                "last?.shape.$variant === 'Circle' && last.shape.radius > 4",
                &[8, 11],
            ),
            (
                "last?.shape.name === 'Pair' && last.shape[0] === 5 && last.shape['1'] === 1",
                &[6],
            ),
            ("last?.tags.get('n') === 3", &[4]),
            ("last?.sizes[1] === 8", &[5]),
            ("last?.boxed === -6", &[7]),
            ("last?.initial === 'c'", &[3]),
            (
                "last?.kind == 'Large' && last.kind.value === 1 && id > 9",
                &[10],
            ),
            ("last?.wide === 2n ** 64n - 3n", &[3]),
            ("items.at(-1)?.name === 'item-8'", &[9]),
        ],
    );
}

#[test]
fn a_breakpoint_stops_where_its_script_is_true() {
    let live = stopped("conditions_c_O0", &[]);
    live.ask(&[
        "break",
        "visit",
        "--condition",
        "['other-5', 'req-9'].includes(name)",
    ]);
    for id in ["5", "9"] {
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["reason"], "breakpoint", "{stop:#}");
        assert_eq!(live.print("id"), id);
    }
    // The same breakpoint takes another condition, in the other language and back.
    live.ask(&["break", "visit", "--condition", "id == 10"]);
    live.moved(&["continue"]);
    assert_eq!(live.print("id"), "10");
    live.ask(&["break", "visit", "--condition", "[11].includes(id)"]);
    live.moved(&["continue"]);
    assert_eq!(live.print("id"), "11");
    assert_eq!(live.run_to_end(), 0);
}

#[test]
fn a_watchpoint_asks_the_frames_around_for_names() {
    let live = stopped("conditions_c_O0", &[]);
    live.ask(&[
        "watch",
        "total",
        "--condition",
        "name.endsWith('-3') || [by].includes(7)",
    ]);
    for id in ["3", "7"] {
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["reason"], "watch", "{stop:#}");
        assert_eq!(live.print("total"), id);
    }
    live.ask(&["watch", "remove", "--all"]);
    live.ask(&[
        "watch",
        "total",
        "--condition",
        "[by, total].join() === '9,9'",
    ]);
    live.moved(&["continue"]);
    assert_eq!(live.print("total"), "9");
    assert_eq!(live.run_to_end(), 0);
}

#[test]
fn threads_share_the_state_of_a_probe() {
    let live = stopped("conditions_c_O2", &["25"]);
    let count = "state.n = (state.n ?? 0) + 1, state.n === 100";
    live.ask(&["logpoint", "visit", "once", "--condition", count]);
    assert_eq!(live.run_to_end(), 0);
    let recording = live.recording();
    assert_eq!(recording.number("SELECT count(*) FROM logpoints"), 1);
    assert_eq!(
        recording.number("SELECT count(*) FROM events WHERE kind = 'condition_error'"),
        0
    );
}

#[test]
fn what_fails_is_an_event_and_the_program_goes_on() {
    for (condition, why) in [
        (
            "[nope].length > 0",
            r#"ReferenceError: no variable "nope" here"#,
        ),
        (
            "(() => { for (;;); })()",
            "it was ended after 100 ms; a condition must not run for longer",
        ),
        ("[item.prise].length > 3", "has no member prise"),
        (
            "[item.next.price].length > 3",
            "TypeError: cannot read property 'price' of null",
        ),
        ("js: 'x'.repeat(1e9).length > 3", "it needs too much memory"),
        ("[item.price = 3].length > 3", "cannot change the program"),
        ("(() => { throw new Error('mine') })()", "mine"),
    ] {
        let live = stopped("conditions_c_O0", &[]);
        live.ask(&["break", "visit", "--condition", condition]);
        assert_eq!(live.run_to_end(), 0);
        let recording = live.recording();
        let errors =
            recording.rows("SELECT text, aux, probe FROM events WHERE kind = 'condition_error'");
        let wanted = if condition.contains("next") { 6 } else { 12 };
        assert_eq!(errors.len(), wanted, "{condition}: {errors:#?}");
        for error in &errors {
            assert!(
                error["text"]
                    .as_str()
                    .is_some_and(|text| text.contains(why)),
                "{error:#?}"
            );
            assert_eq!(error["aux"], condition);
            assert_eq!(error["probe"], 1);
        }
        assert_eq!(
            recording.number("SELECT count(*) FROM pauses WHERE reason = 'breakpoint'"),
            0
        );
        assert_eq!(live.output(), "done\n");
    }
}

#[test]
fn a_call_in_our_language_is_refused_and_may_be_javascript() {
    let live = stopped("conditions_c_O0", &[]);
    for (condition, called) in [
        ("name.startsWith('req-')", "name.startsWith"),
        ("id > 2 && Math.abs(id) > 3", "Math.abs"),
        ("parseInt(name) > 3", "parseInt"),
        ("visit(1) > 3", "visit"),
    ] {
        let refused = live.refused(&["break", "visit", "--condition", condition]);
        assert_eq!(refused["code"], "INVALID_CONDITION", "{refused:#}");
        let told = refused.to_string();
        assert!(
            told.contains(&format!("{called} cannot be called")),
            "{told}"
        );
        assert!(told.contains("js:"), "{told}");
    }
    for condition in ["strlen(name) > 3", "int(item.ratio) > 3"] {
        live.ask(&["break", "visit", "--condition", condition]);
    }
    let said = live.ask(&["logpoint", "visit", "{name.toUpperCase()}"]);
    let said = said["probes"][0]["message"].as_str().expect("text");
    assert!(said.contains("js:"), "{said}");
    live.ask(&["stop"]);
}

#[test]
fn mistakes_are_refused_with_their_place() {
    let live = stopped("conditions_c_O0", &[]);
    for (condition, position) in [
        ("items.some(i => i.price >)", 25),
        ("[1, 2].includes(id", 18),
        ("id >", 4),
        ("p->items.some(i => i > 1)", 16),
        ("js: p->items.some(i => i > 1)", 6),
    ] {
        for words in [
            &["break", "visit"][..],
            &["logpoint", "visit", "x"],
            &["watch", "total"],
        ] {
            let refused = live.refused(&[words, &["--condition", condition]].concat());
            assert_eq!(refused["code"], "INVALID_CONDITION", "{refused:#}");
            assert_eq!(
                refused["details"]["position"],
                Value::from(position),
                "{condition}: {refused:#}"
            );
        }
    }
    let listed = live.ask(&["break", "list"]);
    assert_eq!(
        listed["probes"].as_array().map(Vec::len),
        Some(0),
        "{listed:#}"
    );
    live.ask(&["stop"]);
}

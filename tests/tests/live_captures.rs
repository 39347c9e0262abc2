//! Goal: a session keeps with calls what `record` keeps when it is asked to, and with logpoints registers and stack: the past
//! shows there what the live program showed. Method: messages that say what the registers and variables are, against the recording.

use e2e::{Live, Recording, fixture_artifact};

fn texts(recording: &Recording, sql: &str) -> Vec<String> {
    let rows = recording.rows(sql);
    let text = |value: &serde_json::Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    rows.iter().map(|row| text(&row["value"])).collect()
}

fn started(artifact: &str, options: &[&str]) -> Live {
    let program = fixture_artifact("outer", artifact);
    Live::started(&format!("captures-{artifact}"), options, &program, &[])
}

#[test]
fn logpoints_keep_registers_and_stack() {
    for (artifact, path, outermost) in [
        ("outer_O0", "", "main"),
        ("outer_O2", "", "main"),
        ("outer_rust", "outer::", "outer::main"),
        ("outer_rust_O2", "outer::", "outer::main"),
    ] {
        let options = ["--stop-on-entry", "--regs", "--stack", "4096"];
        let live = started(artifact, &options);
        let message = "{to} {$rsp} {$rbp} {$r12} {$rip}";
        let place = format!("{path}change");
        live.ask(&["logpoint", &place, message]);
        // The program itself decides whether there is anything to tell.
        let more = format!("{message} more");
        live.ask(&["logpoint", &place, &more, "--condition", "to > 20"]);
        assert_eq!(live.run_to_end(), 0, "{artifact}");
        let recording = live.recording();
        let logged = "FROM logpoints ORDER BY seq";
        let messages = texts(&recording, &format!("SELECT message AS value {logged}"));
        assert_eq!(messages.len(), 12 + 9, "{artifact}: {messages:?}");
        let columns = [
            "value(seq, 'to')",
            "value(seq, '$rsp')",
            "value(seq, '$rbp')",
            "value(seq, '$r12')",
            "value(seq, '$rip')",
        ];
        for (at, column) in columns.into_iter().enumerate() {
            let seen = texts(&recording, &format!("SELECT {column} AS value {logged}"));
            let part = |message: &String| message.split(' ').nth(at).unwrap_or("?").to_owned();
            let told: Vec<String> = messages.iter().map(part).collect();
            assert_eq!(seen, told, "{artifact}: {column}");
        }
        // The way out of the statement is known too.
        let last = recording.number("SELECT max(seq) FROM logpoints");
        let frames = format!("SELECT function AS value FROM backtrace({last})");
        let frames = texts(&recording, &frames);
        let expected = ["change", "pass", "work"].map(|name| format!("{path}{name}"));
        assert_eq!(frames[..3], expected, "{artifact}");
        assert!(frames.iter().any(|name| name == outermost), "{frames:?}");
    }
}

#[test]
fn sessions_keep_watched_values() {
    for artifact in ["outer_O0", "outer_O2"] {
        let live = started(artifact, &["--watch", "work::total", "--break", "pass"]);
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.run_to_end(), 0, "{artifact}");
        let history = "SELECT new AS value FROM history('work::total') ORDER BY seq";
        let expected = ["1", "11", "22", "2", "12", "24", "3", "13", "26"];
        assert_eq!(texts(&live.recording(), history), expected, "{artifact}");
    }
}

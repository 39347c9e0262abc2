//! Goal: a model that knows only a symptom reaches the faulty line with the tools of `hindsight mcp`, in few calls and tokens.
//! Method: planted bugs (`fixtures/hunts`), two of them in SQLite and Lua, each with an investigation in `mcp/hunts.py`, which
//! counts what a model would read.

use e2e::{Live, fixture_artifact, fixture_source, mcp_script};

/// Runs the hunt in a program; the script compares the line that it reaches with the one that carries the mark.
fn hunt(name: &str) {
    let live = Live::new(&format!("hunt-{name}"));
    let program = fixture_artifact("hunts", name);
    let programs = program.parent().expect("an artifact lies in a folder");
    let sources = fixture_source("hunts");
    let paths =
        [programs, sources.as_path()].map(|path| path.to_str().expect("paths of tests are text"));
    let row = mcp_script(&live, "hunts.py", &[paths[0], paths[1], name]);
    println!("{row}");
    assert!(row.starts_with(&format!("| {name} |")), "{row}");
}

#[test]
fn a_wrong_value_far_from_its_cause() {
    hunt("invoices");
}

#[test]
fn off_by_one() {
    hunt("sensors");
}

#[test]
fn wrong_sign_extension() {
    hunt("packets");
}

#[test]
fn a_race() {
    hunt("bank");
}

#[test]
fn use_after_free() {
    hunt("timers");
}

#[test]
fn a_lost_wake_up() {
    hunt("mailbox");
}

#[test]
fn a_leak() {
    hunt("frames");
}

#[test]
fn a_stale_cache() {
    hunt("catalog");
}

#[test]
fn a_deadlock() {
    hunt("journal");
}

#[test]
fn wrong_error_handling() {
    hunt("settings");
}

#[test]
fn a_spoilt_page_in_sqlite() {
    hunt("orders");
}

#[test]
fn a_count_that_errors_leave_too_high_in_lua() {
    hunt("rules");
}

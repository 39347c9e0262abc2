//! Goal: nothing is unknown at any instruction, and a recording made in other namespaces is like any other. Method: at random instructions
//! of a program without optimisation, between the beginnings and the ends of its functions, the backtrace and all variables are shown;
//! the same program is recorded in namespaces of its own and run again outside.

use std::path::Path;

use e2e::{Hindsight, Program, Recording, Scratch, Status, fixture_artifact, fixture_source};

/// Instructions that are looked at.
const LOOKED_AT: usize = 50;

/// Where the words of an answer say that something is not known. Where a variable is optimised away there is nothing to know.
const UNKNOWN: &[&str] = &["unknown", "stale", "not known", "not stored"];

/// The fixture `planted`, which ends with 7.
fn planted(scratch: &Scratch) -> Program {
    let program = fixture_artifact("planted", "planted");
    Program::new(program, scratch.path()).args(["short"])
}

/// The lines at which functions begin or end: there, arguments are not stored yet, or the frame is gone.
fn edges() -> Vec<String> {
    let source = std::fs::read_to_string(fixture_source("planted").join("planted.c"));
    let source = source.expect("the source is there");
    let is_edge = |line: &str| line == "}" || line.ends_with(") {") && !line.starts_with(' ');
    let lines = source.lines().enumerate();
    lines
        .filter(|(_, line)| is_edge(line))
        .map(|(index, _)| (index + 1).to_string())
        .collect()
}

/// Moments of the program's own code, each instruction once.
fn moments(recording: &Recording) -> Vec<String> {
    let sql = format!(
        "SELECT seq || '+' || step AS moment FROM instructions \
         WHERE function IN ('main', 'earn', 'deposit', 'call_it', 'sum') AND line NOT IN ({}) ORDER BY position",
        edges().join(", ")
    );
    let rows = recording.rows(&sql);
    rows.iter()
        .filter_map(|row| row["moment"].as_str().map(str::to_owned))
        .collect()
}

/// Some of them, chosen by chance; `SEED` repeats a choice.
fn chosen(moments: &[String]) -> Vec<String> {
    let seed: u64 = std::env::var("SEED").map_or(1, |seed| seed.parse().expect("a number"));
    println!("SEED={seed}");
    let mut state = seed;
    let mut next = || {
        // Knuth's MMIX.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let one = |_| moments[next() % moments.len()].clone();
    (0..LOOKED_AT).map(one).collect()
}

#[test]
fn backtraces_and_variables_are_known_everywhere() {
    let scratch = Scratch::new("full-everywhere");
    let (_, recording) = Hindsight::record(&scratch, &["--full"], &planted(&scratch));
    let moments = moments(&recording);
    assert!(moments.len() > 3000, "{}", moments.len());
    let chosen = chosen(&moments);
    let gotos: Vec<String> = chosen.iter().map(|at| format!("goto {at}")).collect();
    let lines: Vec<&str> = gotos
        .iter()
        .flat_map(|goto| [goto.as_str(), "backtrace", "info locals"])
        .collect();
    let ended = recording.prompt(&lines);
    let text = ended.text();
    assert_eq!(ended.status, Status::Code(0), "{text}{}", ended.errors());
    let frames = text.lines().filter(|line| line.starts_with("*#0 "));
    assert_eq!(frames.count(), LOOKED_AT, "{text}");
    let unknown = text
        .lines()
        .find(|line| UNKNOWN.iter().any(|word| line.contains(word)));
    assert_eq!(unknown, None, "{text}");
}

/// `unshare`: new user, process and mount namespaces, with a /proc of their own.
const UNSHARE: &[&str] = &["-Urpf", "--mount-proc"];

#[test]
fn a_program_in_namespaces_of_its_own_is_recorded() {
    let scratch = Scratch::new("full-namespaces");
    let unshare = Path::new("/usr/bin/unshare");
    let allowed = Program::new("/bin/true", scratch.path()).wrapped(unshare, UNSHARE);
    if !unshare.exists() || allowed.run().status != Status::Code(0) {
        eprintln!("this machine allows no namespaces: nothing was tested");
        return;
    }
    let program = planted(&scratch);
    let record = Hindsight::record_command(&scratch, "rec", &["--full"], &program);
    let ended = record.wrapped(unshare, UNSHARE).run();
    assert_eq!(
        ended.status,
        Status::Code(7),
        "unshare works here, and a recording in it does not: {}",
        ended.errors()
    );
    let recording = Recording::new(scratch.join("rec.hindsight"));
    assert_eq!(recording.calls_of("deposit"), 200);
    let checked = recording.command("check", &["--replay"]);
    assert_eq!(checked.status, Status::Code(0), "{}", checked.text());
}

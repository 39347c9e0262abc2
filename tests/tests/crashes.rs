//! Goal: where a signal ends a recorded program, its last moment is in the recording as gdb shows it, and the program ends as it
//! would have. Method: programs that crash in every way, natively, under gdb, and recorded.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{
    Hindsight, Live, Program, Recording, Scratch, Status, fixture_artifact, gdb_places, in_turn,
    share, split_own_lines,
};

/// A program that was recorded to its end by a signal.
struct Crashed {
    program: Program,
    recording: Recording,
    /// What `record` said.
    own: Vec<String>,
    _scratch: Scratch,
}

/// Runs a program natively and recorded; both end by `signal` and print the same.
fn crashed(artifact: &str, how: &str, signal: i32, options: &[&str]) -> Crashed {
    let scratch = Scratch::new(&format!("{artifact}-{how}"));
    let program = Program::new(fixture_artifact("crashes", artifact), scratch.path()).args([how]);
    let native = program.run();
    assert_eq!(native.status, Status::Signal(signal));
    let (ended, recording) = Hindsight::record(&scratch, options, &program);
    let (errors, own) = split_own_lines(&ended.stderr);
    assert_eq!(ended.status, Status::Code(128 + signal), "{own:?}");
    assert_eq!(ended.text(), native.text());
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
    let without_ids = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        text.split(|c: char| c.is_ascii_digit())
            .collect::<Vec<_>>()
            .concat()
    };
    assert_eq!(without_ids(&errors), without_ids(&native.stderr));
    Crashed {
        program,
        recording,
        own,
        _scratch: scratch,
    }
}

impl Crashed {
    /// The event of the thread's stop.
    fn stop(&self) -> i64 {
        self.recording
            .number("SELECT seq FROM pauses WHERE reason = 'signal'")
    }

    /// Function and line of each frame in the program's own source: gdb shows none outside `main`.
    fn places(&self) -> Vec<(String, u64)> {
        let sql = format!(
            "SELECT function, line FROM backtrace({}) WHERE file LIKE '%/fixtures/%' ORDER BY frame",
            self.stop()
        );
        let place = |row: &e2e::Row| {
            let function = row["function"].as_str().unwrap_or_default();
            let name = function.split('(').next().unwrap_or_default().to_owned();
            (name, row["line"].as_u64().unwrap_or_default())
        };
        self.recording.rows(&sql).iter().map(place).collect()
    }

    /// The frames are those that gdb shows; `frames` is how many there are in all.
    fn is_as_in_gdb(&self, frames: usize) {
        let mut commands = vec!["run"];
        commands.resize(frames, "up");
        let shown = gdb_places(&self.program, &commands);
        let known = shown.into_iter().filter(|(_, line)| *line != 0);
        let mut known: Vec<_> = known.collect();
        // In the outermost frame, `up` stays.
        known.dedup();
        assert!(!known.is_empty());
        assert_eq!(self.places(), known);
    }

    /// The output of `repl` for these lines, from its initial position.
    fn repl(&self, lines: &[&str]) -> String {
        let ended = self.recording.prompt(lines);
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        ended.text()
    }

    fn value(&self, expression: &str) -> serde_json::Value {
        let sql = format!("SELECT value({}, '{expression}') AS v", self.stop());
        self.recording.row(&sql)["v"].clone()
    }

    fn said(&self, part: &str) {
        assert!(
            self.own.iter().any(|line| line.contains(part)),
            "{part}: {:?}",
            self.own
        );
    }
}

#[test]
fn a_null_pointer_is_found_where_it_was_used() {
    for artifact in in_turn(["crashes", "crashes_O2"]) {
        let crash = crashed(artifact, "segv", 11, &[]);
        crash.is_as_in_gdb(3);
        let row = crash
            .recording
            .row("SELECT signal, type, phase, addr FROM exceptions");
        assert_eq!(row["signal"], 11);
        assert_eq!(row["type"], "SIGSEGV");
        assert_eq!(row["phase"], "unhandled");
        assert_eq!(row["addr"], 4);
        crash.said("SIGSEGV ended the program in last (crashes.c:");
        crash.said("address 0x4");
        assert_eq!(crash.value("sold"), "42");
        if artifact == "crashes" {
            // The optimiser leaves it out.
            assert_eq!(crash.value("orders[1].pieces"), "20");
        }
        assert_eq!(crash.value("order"), "0x0");
    }
}

#[test]
fn a_crashed_recording_opens_at_the_crash() {
    let crash = crashed("crashes", "segv", 11, &[]);
    let opened = crash.repl(&["print before", "up", "print copy"]);
    assert!(opened.contains("56"), "{opened}");
    assert!(opened.contains("{id = 2, pieces = 21}"), "{opened}");
    let gone = crash.repl(&["goto first", "goto crash", "print by"]);
    assert!(gone.contains("SIGSEGV"), "{gone}");
    assert!(gone.trim_end().ends_with("28"), "{gone}");
}

/// The program counter is in no function.
#[test]
fn a_call_of_a_null_pointer_is_told_by_its_signal() {
    let scratch = Scratch::new("crashes-nowhere");
    std::fs::write(scratch.join("nowhere.c"), NOWHERE).expect("the test's folder is writable");
    let built = Program::new("gcc", scratch.path())
        .args(["-g", "-O0", "-o", "nowhere", "nowhere.c"])
        .run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
    let program = Program::new(scratch.join("nowhere"), scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(ended.status, Status::Code(128 + 11), "{}", ended.errors());
    let told = recording.prompt(&["goto first", "goto crash", "up"]).text();
    assert!(told.contains("pause: SIGSEGV at address 0x0"), "{told}");
    assert!(told.contains("middle at "), "{told}");
}

const NOWHERE: &str = r"
int middle(void (*function)(void)) { function(); return 1; }
int main(void) { return middle(0); }
";

#[test]
fn registers_are_those_of_the_crash() {
    let crash = crashed("crashes", "registers", 11, &[]);
    let stop = crash.stop();
    for (register, value) in [
        ("rbx", 0x1111),
        ("r12", 0x2222),
        ("r15", 0x3333),
        ("rax", 0x4444),
        ("rsi", 0x5555),
    ] {
        let sql = format!("SELECT reg({stop}, '{register}')");
        assert_eq!(crash.recording.number(&sql), value, "{register}");
    }
    let addr = "SELECT addr FROM exceptions";
    assert_eq!(crash.recording.number(addr), 0x10);
}

#[test]
fn every_signal_has_its_moment() {
    for (how, signal, name, frames) in [
        ("divide", 8, "SIGFPE", 3),
        ("illegal", 4, "SIGILL", 2),
        ("trap", 5, "SIGTRAP", 2),
        ("abort", 6, "SIGABRT", 5),
        ("term", 15, "SIGTERM", 3),
    ] {
        let crash = crashed("crashes", how, signal, &[]);
        let row = crash.recording.row("SELECT type, phase FROM exceptions");
        assert_eq!(row["type"], name);
        assert_eq!(row["phase"], "unhandled");
        crash.is_as_in_gdb(frames);
        crash.said(&format!("{name} ended the program in "));
    }
}

#[test]
fn a_signal_that_nothing_can_see_is_told_of_all_the_same() {
    let crash = crashed("crashes", "kill", 9, &[]);
    let row = crash.recording.row("SELECT type, tid FROM exceptions");
    assert_eq!(row["type"], "SIGKILL");
    assert!(row["tid"].is_null());
    crash.said("SIGKILL ended the program");
    let stops = "SELECT count(*) FROM pauses";
    assert_eq!(crash.recording.number(stops), 0);
}

#[test]
fn the_thread_that_died_is_named() {
    let crash = crashed("crashes", "thread", 11, &[]);
    let sql = "SELECT count(*) FROM exceptions e JOIN calls c ON c.tid = e.tid \
               WHERE c.function = 'in_thread'";
    assert_eq!(crash.recording.number(sql), 1);
    let places = crash.places();
    let names: Vec<&str> = places.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["last", "middle", "in_thread"]);
    let sql = "SELECT t.name FROM threads t JOIN exceptions e ON e.tid = t.tid";
    assert_eq!(crash.recording.row(sql)["name"], "worker");
}

#[test]
fn a_stack_that_is_used_up_is_seen() {
    for (artifact, how) in in_turn([
        ("crashes", "overflow"),
        ("crashes_O2", "overflow"),
        ("crashes", "thread_overflow"),
    ]) {
        let crash = crashed(artifact, how, 11, &["-x", "no_such_function"]);
        let places = crash.places();
        assert!(places.len() > 100, "{artifact} {how}: {}", places.len());
        assert_eq!(places[0].0, "bottomless", "{artifact} {how}");
        assert_eq!(places[20], places[21], "{artifact} {how}");
        crash.said("SIGSEGV ended the program in bottomless (crashes.c:");
    }
}

#[test]
fn what_a_program_asks_of_its_handlers_is_answered_as_ever() {
    let crash = crashed("crashes", "ask", 11, &[]);
    // Before that, gdb stops at the signals that the program handles.
    let places = crash.places();
    let names: Vec<&str> = places.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["last", "middle", "main"]);
}

#[test]
fn programs_in_a_sandbox_end_as_ever() {
    let crash = crashed("crashes", "sandbox", 11, &[]);
    crash.is_as_in_gdb(3);
    let crash = crashed("crashes", "sandbox_prctl", 11, &[]);
    crash.said("SIGSEGV ended the program");
}

#[test]
fn cxx_programs_crash_as_in_gdb() {
    let crash = crashed("crashes_cxx", "virtual", 11, &[]);
    crash.is_as_in_gdb(2);
    assert_eq!(crash.value("n"), "1");
    let crash = crashed("crashes_cxx", "throw", 6, &[]);
    let places = crash.places();
    let names: Vec<&str> = places.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["price", "main"]);
    assert_eq!(crash.value("1 + 1"), "2");
}

#[test]
fn rust_programs_crash_as_in_gdb() {
    let crash = crashed("crashes_rust", "null", 11, &[]);
    let places = crash.places();
    assert!(
        places
            .iter()
            .any(|(name, line)| name == "crashes::read" && *line == 17),
        "{places:?}"
    );
    let crash = crashed("crashes_rust", "panic", 6, &[]);
    let places = crash.places();
    assert!(
        places
            .iter()
            .any(|(name, line)| name == "crashes::price" && *line == 10),
        "{places:?}"
    );
    let crash = crashed("crashes_rust", "overflow", 6, &[]);
    let places = crash.places();
    let deep = places
        .iter()
        .filter(|(name, _)| name == "crashes::bottomless");
    assert!(deep.count() > 100);
}

/// The stack overflows in the function itself, or, about once in nine runs, where a hook saves registers.
#[test]
fn a_stack_that_ends_where_a_hook_saves_registers_is_that_of_the_function() {
    let artifact = fixture_artifact("crashes", "crashes_rust");
    for run in 0..share(16) {
        let scratch = Scratch::new(&format!("crashes_overflow-{run}"));
        let program = Program::new(artifact.clone(), scratch.path()).args(["overflow"]);
        let options = ["-f", "crashes::bottomless", "-f", "*black_box*"];
        let (ended, recording) = Hindsight::record(&scratch, &options, &program);
        assert_eq!(ended.status, Status::Code(128 + 6));
        let stop = recording.number("SELECT max(seq) FROM pauses");
        let sql =
            format!("SELECT count(*) FROM backtrace({stop}) WHERE function LIKE '%bottomless%'");
        assert!(recording.number(&sql) > 100, "run {run}");
    }
}

#[test]
fn memory_is_not_copied_where_that_is_refused() {
    let crash = crashed("crashes", "segv", 11, &["--snapshot", "never"]);
    let copies = "SELECT count(*) FROM events WHERE kind = 'snapshot'";
    assert_eq!(crash.recording.number(copies), 0);
    crash.is_as_in_gdb(3);
}

/// A crash of a live session is reported once, with its thread, and the recording opens there.
#[test]
fn a_crash_under_live_control_is_told_of_once() {
    let path = fixture_artifact("crashes", "crashes");
    let live = Live::started("live_crash", &["--stop-on-entry"], &path, &["segv"]);
    while live.ask(&["continue"])["status"] != "ended" {}
    let recording = live.recording();
    let told = recording.rows("SELECT tid, signal FROM exceptions WHERE phase = 'unhandled'");
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(!told[0]["tid"].is_null(), "{told:#?}");
    let lines = ["where", "goto first", "goto crash", "where"];
    let shown = recording.prompt(&lines).text();
    assert!(
        shown.matches("in last").count() + shown.matches(": last at").count() >= 2,
        "{shown}"
    );
}

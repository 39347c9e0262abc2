//! Goal: the runtime that is loaded into programs does what docs/wire.md says, in every corner. Method: a C program
//! (native/) loads the embedded library, plays the recorder's part or leaves it to [`Shared`], calls functions through
//! stubs like the recorder's, and compares registers and records word by word. Its constants come from the page.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Write as _},
    mem,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{Arc, LazyLock, mpsc::channel},
    thread,
    time::Duration,
};

use agent::{
    runtime,
    shared::{self, Shared},
};
use tempfile::TempDir;

/// Calls of the cases with a recorder: more than three laps of a ring.
const CALLS: u64 = 400_000;
/// Where the recorder asks the program for memory: no mapping of a program or of ours is near.
const RESERVED: u64 = 0x1000_0000_0000;
const PATIENCE: Duration = Duration::from_secs(60);

/// The program and the library it loads.
struct Built {
    folder: TempDir,
}

static BUILT: LazyLock<Built> = LazyLock::new(build);

impl Built {
    fn driver(&self) -> PathBuf {
        self.folder.path().join("driver")
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("runtime.so")
    }
}

/// Returns the rows of the page's tables that define constants, and those in its sentences: `NAME` = value.
fn wire_constants(page: &str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<&str> = row
            .split('|')
            .map(|cell| cell.trim().trim_matches('`'))
            .collect();
        let is_name = |cell: &str| !cell.is_empty() && cell.chars().all(is_of_name);
        if let (true, Ok(value)) = (is_name(cells[0]), cells[1].parse()) {
            found.push((cells[0].to_owned(), value));
        }
        if let (Ok(kind), Some(name)) = (cells[0].parse(), cells.get(3))
            && name.starts_with("KIND_")
        {
            found.push(((*name).to_owned(), kind));
        }
    }
    for (at, _) in page.match_indices("` = ") {
        let name = page[..at].rsplit('`').next().expect("a backquote before");
        let digits = page[at + "` = ".len()..].split(|c: char| !c.is_ascii_digit());
        if let (true, Some(Ok(value))) =
            (name.chars().all(is_of_name), digits.map(str::parse).next())
        {
            found.push((name.to_owned(), value));
        }
    }
    found
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_uppercase() || c == '_'
}

fn expected_header(root: &Path) -> String {
    let page = fs::read_to_string(root.join("../docs/wire.md")).unwrap();
    let mut text = String::new();
    let mut define = |name: &str, value: &str| writeln!(text, "#define {name} {value}").unwrap();
    for (name, value) in wire_constants(&page) {
        define(&format!("WIRE_{name}"), &value.to_string());
    }
    define(
        "EXPECTED_TOTAL_BYTES",
        &format!("{}UL", shared::TOTAL_BYTES),
    );
    define(
        "EXPECTED_EXPORTS_VERSION",
        &runtime::EXPORTS_VERSION.to_string(),
    );
    let shadows = shared::SHADOWS.map(|it| format!("ROW ({:#x}UL, {:#x}UL)", it.base, it.bytes));
    define("EXPECTED_CALLS", &format!("{CALLS}UL"));
    define("EXPECTED_RESERVED", &format!("{RESERVED:#x}UL"));
    define("EXPECTED_SHADOWS(ROW)", &shadows.join(" "));
    text
}

fn build() -> Built {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = root.join("tests/native");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("expected.h"), expected_header(root)).unwrap();
    fs::write(folder.path().join("runtime.so"), runtime::LIBRARY).unwrap();
    let of_kind = |kind: &str| {
        let entries = fs::read_dir(&sources).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut of_kind: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|found| found == kind))
            .collect();
        of_kind.sort();
        of_kind
    };
    // The driver for C: the one for C++ would compile everything as that.
    let output = Command::new(env::var("CC").unwrap_or_else(|_| "gcc".into()))
        .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .arg(folder.path())
        .arg("-I")
        .arg(root.join("runtime"))
        .args(["-x", "c"])
        .args(of_kind("c"))
        .args(["-x", "assembler-with-cpp"])
        .args(of_kind("S"))
        .args(["-x", "c++"])
        .args(of_kind("cc"))
        .args(["-x", "none", "-ldl", "-lstdc++", "-o"])
        .arg(folder.path().join("driver"))
        .output()
        .expect("gcc is needed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Built { folder }
}

/// Runs one case of the program in a process of its own; it reports errors itself.
fn run(case: &str) {
    let output = Command::new(BUILT.driver())
        .arg(case)
        .arg(BUILT.library())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
}

#[test]
fn every_case_has_a_test() {
    let table = include_str!("native/cases.h");
    let lines = table.lines().filter_map(|line| line.strip_prefix("CASE ("));
    let mut listed: Vec<&str> = lines.map(|line| line.trim_end_matches(')')).collect();
    let mut tested = [CASES, CASES_WITH_RECORDER].concat();
    listed.sort_unstable();
    tested.sort_unstable();
    assert_eq!(listed, tested);
}

/// Cases in which [`Shared`] reads the rings; each has a test below.
const CASES_WITH_RECORDER: &[&str] = &[
    "with_recorder_reads_every_record",
    "with_recorder_dies",
    "with_recorder_gives_rings_again",
    "with_recorder_answers_modules",
];

macro_rules! cases {
    ($($name:ident)*) => {
        const CASES: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { run(stringify!($name)); })*
    };
}

cases! {
    registers_are_kept
    records_hold_arguments_and_results
    a_tail_call_keeps_the_slot
    a_lap_ends_and_the_next_begins
    a_full_ring_drops_and_counts
    the_gap_precedes_the_next_record
    a_full_ring_blocks
    signals_find_a_thread_that_waits
    signals_find_any_instruction_of_a_call
    signals_find_any_instruction_of_a_call_with_vectors
    signals_find_any_instruction_of_a_tail_call
    signals_on_other_stacks_find_any_instruction_of_a_call
    a_signal_at_the_end_of_a_lap_loses_nothing
    a_signal_in_a_full_ring_is_counted
    jumping_out_of_any_instruction_is_survived
    jumping_out_is_survived_on_other_stacks
    unwinders_find_the_way_from_any_instruction
    a_signal_may_find_the_recording_ended
    the_red_zone_is_kept
    a_dead_recorder_stops_nobody
    threads_without_a_ring_are_counted
    a_thread_waits_for_a_ring
    a_thread_has_its_own_ring
    longjmp_leaves_calls_open
    a_hundred_thousand_frames
    a_forked_child_is_silent
    a_child_of_vfork_is_silent
    threads_may_end_inside_calls
    exceptions_pass_traced_frames
    exceptions_are_caught_between_traced_frames
    backtraces_show_no_frame_of_ours
    output_is_recorded_as_it_was_written
    exec_is_recorded_before
    returns_are_hooked_where_there_is_a_shadow
    return_addresses_are_found
}

/// The program running one case over the recorder's memory.
struct Recorded {
    shared: Arc<Shared>,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Recorded {
    fn start(case: &str, shared: Arc<Shared>) -> Self {
        let mut child = Command::new(BUILT.driver())
            .arg(case)
            .arg(BUILT.library())
            .arg(shared.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut recorded = Self {
            shared,
            child,
            lines,
        };
        let base = u64::from_str_radix(&recorded.line(), 16).unwrap();
        recorded.shared.set_target_base(base);
        recorded
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn say(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap(), "go on").unwrap();
    }

    /// Takes what waits in a ring.
    fn drain(&self, ring: usize, words: &mut Vec<u64>) {
        let pending = self.shared.pending(ring);
        for bytes in [pending.first, pending.second] {
            let (whole, rest) = bytes.as_chunks::<8>();
            assert!(rest.is_empty());
            words.extend(whole.iter().map(|word| u64::from_le_bytes(*word)));
        }
        self.shared.release(ring, pending.head);
    }

    fn expect_success(mut self) {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}; it says on stderr why");
    }
}

/// Checks a thread's records from its first to `calls` calls, and returns what follows.
fn check_calls<'w>(words: &'w [u64], calls: std::ops::Range<u64>) -> &'w [u64] {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/wire.md"));
    let constants = wire_constants(&page.unwrap());
    let constant = |name: &str| constants.iter().find(|(found, _)| found == name).unwrap().1;
    let kind = |words: &[u64]| words[1] & ((1 << constant("KIND_BITS")) - 1);
    let len = |name: &str| constant(name) as usize;
    let is_wait = |words: &[u64]| {
        let which = words[1] >> constant("XMM_SHIFT") & 15;
        kind(words) == constant("KIND_SYSCALL") && which == constant("RING_WAIT")
    };
    // Whether the thread waited for room depends on the reader.
    let past_wait = |words: &'w [u64]| match is_wait(words) {
        true => &words[len("RING_WAIT_WORDS")..],
        false => words,
    };
    let (thread, mut words) = words.split_at(len("THREAD_WORDS"));
    assert_eq!(kind(thread), constant("KIND_THREAD"));
    for n in calls {
        let (enter, rest) = past_wait(words).split_at(len("ENTER_WORDS"));
        let (leave, rest) = past_wait(rest).split_at(len("LEAVE_WORDS"));
        assert_eq!(kind(enter), constant("KIND_ENTER"));
        assert_eq!(enter[3..], [n, 1, 2, 3, 4, 5]);
        assert_eq!(kind(leave), constant("KIND_LEAVE"));
        assert_eq!(leave[2], n * 3 + 1);
        assert!(leave[0] >= enter[0], "time went back");
        words = rest;
    }
    words
}

#[test]
fn with_recorder_reads_every_record() {
    let shared = Arc::new(Shared::create(false, 0).unwrap());
    let owner = shared.own();
    let mut program = Recorded::start("with_recorder_reads_every_record", shared);
    let mut words = Vec::new();
    while program.child.try_wait().unwrap().is_none() {
        program.drain(0, &mut words);
    }
    program.drain(0, &mut words);
    assert!(check_calls(&words, 0..CALLS).is_empty());
    assert_eq!(program.shared.lost(0), 0);
    program.expect_success();
    drop(owner);
}

#[test]
fn with_recorder_dies() {
    let shared = Arc::new(Shared::create(false, 0).unwrap());
    let (die, told) = channel::<()>();
    let (owned, ready) = channel();
    let recorder = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            // As if killed: nothing is released, only the kernel reports that the thread is gone.
            mem::forget(shared.own());
            owned.send(()).unwrap();
            let _ = told.recv();
        }
    });
    ready.recv().unwrap();
    let mut program = Recorded::start("with_recorder_dies", shared);
    assert_eq!(program.line(), "recording");
    drop(die);
    recorder.join().unwrap();
    let mut words = Vec::new();
    program.drain(0, &mut words);
    program.expect_success();
}

#[test]
fn with_recorder_gives_rings_again() {
    let shared = Arc::new(Shared::create(false, 0).unwrap());
    let owner = shared.own();
    let mut program = Recorded::start("with_recorder_gives_rings_again", shared);
    for turn in 0..3 {
        assert_eq!(program.shared.taken().count(), 0);
        program.say();
        assert_eq!(program.line(), "called");
        assert_eq!(program.shared.taken().collect::<Vec<_>>(), [0]);
        let tenant = program.shared.tenant(0);
        assert!(tenant.exiting && tenant.tid != 0);
        assert_eq!(u64::from(tenant.tenancy), turn);
        let mut words = Vec::new();
        program.drain(0, &mut words);
        let exit = check_calls(&words, turn..turn + 1);
        assert_eq!(exit[1] >> 8, u64::from(tenant.tid));
        program.shared.free(0);
        assert!(program.shared.pending(0).is_empty());
    }
    program.expect_success();
    drop(owner);
}

#[test]
fn with_recorder_answers_modules() {
    let shared = Arc::new(Shared::create(false, 0).unwrap());
    let owner = shared.own();
    let mut program = Recorded::start("with_recorder_answers_modules", shared);
    for asked in 1..=2 {
        while program.shared.modules_asked() < asked {
            assert!(
                program.child.try_wait().unwrap().is_none(),
                "it did not ask"
            );
            thread::yield_now();
        }
        let reserved = program.shared.reserve(RESERVED, 4096, PATIENCE);
        // The second time the memory is taken.
        assert_eq!(reserved, Some(asked == 1));
        program.shared.answer_modules(asked);
        assert_eq!(program.shared.modules_answered(), asked);
        if asked == 1 {
            assert_eq!(program.line(), "changed");
        }
    }
    program.expect_success();
    drop(owner);
}

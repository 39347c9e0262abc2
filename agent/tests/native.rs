//! Goal: the runtime that is loaded into programs does what docs/wire.md says, in every corner. Method: a C program
//! (native/) loads the embedded library, plays the recorder's part or leaves it to [`Shared`], calls functions through
//! stubs like the recorder's, and compares registers and records word by word. Its constants come from the page.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use agent::{runtime, shared};
use tempfile::TempDir;

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

/// Runs one case of the program in a process of its own; it says itself what is wrong.
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
const CASES_WITH_RECORDER: &[&str] = &[];

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
    a_full_ring_blocks
    signals_find_any_instruction_of_a_call
    signals_find_any_instruction_of_a_call_with_vectors
    signals_find_any_instruction_of_a_tail_call
    a_signal_at_the_end_of_a_lap_loses_nothing
    a_signal_in_a_full_ring_is_counted
    jumping_out_of_any_instruction_is_survived
    unwinders_find_the_way_from_any_instruction
    the_red_zone_is_kept
}

//! Where lines and functions begin: the places of breakpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use debuginfo::{AddressSpace, LineError};

use super::addresses::statements;
use super::common::share::share;
use super::common::{Bench, hex, program, run};
use super::{Built, all, built, others_for_gdb, own_functions, space};

type Places = BTreeMap<String, Vec<(u64, u32)>>;

/// Returns where gdb sets breakpoints on lines and on functions, with the lines there.
pub(super) fn gdb_places(built: &Built, lines: u32, functions: &[String]) -> (Places, Places) {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"])
        .arg(program("places.py"))
        .arg(&built.path);
    gdb.env("LINES_OF", built.source)
        .env("LINES", lines.to_string());
    let output = run(gdb
        .env("FUNCTIONS", functions.join("\n"))
        .env("LC_ALL", "C"));
    let (mut by_line, mut by_function) = (Places::new(), Places::new());
    for line in output.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind @ ("LINE" | "FUNCTION"), what, places] = fields[..] else {
            continue;
        };
        let place = |text: &str| {
            let (address, line) = text.split_once(':').expect("address:line");
            (hex(address), line.parse().expect("a line"))
        };
        let mut places: Vec<(u64, u32)> = places.split_whitespace().map(place).collect();
        places.sort_unstable();
        let all = if kind == "LINE" {
            &mut by_line
        } else {
            &mut by_function
        };
        all.insert(what.to_owned(), places);
    }
    (by_line, by_function)
}

/// Returns whether two sets of places differ only in functions with a part before their entry. gdb takes that part for
/// the prologue and moves breakpoints from it to the end of the prologue.
fn cold(space: &AddressSpace, ours: &BTreeSet<u64>, theirs: &BTreeSet<u64>) -> bool {
    let split = |address: &u64| {
        let function = space.function_at(*address).expect("a function");
        let entry = function.entry;
        function
            .ranges
            .iter()
            .any(|r| r.start < entry)
            .then_some(function)
    };
    let moved = |address: &u64| split(address).is_some_and(|f| f.after_prologue == *address);
    ours.difference(theirs).all(|a| split(a).is_some()) && theirs.difference(ours).all(moved)
}

#[test]
fn breakpoints_on_lines_are_where_gdb_puts_them() {
    let (all, others) = (all(), others_for_gdb());
    for built in all.iter().chain(others.iter()) {
        let space = space(&built.path);
        let text = std::fs::read_to_string(program(built.source)).expect("the source");
        let count = text.lines().count() as u32;
        let (theirs, _) = gdb_places(built, count, &[]);
        let exact: BTreeSet<u32> = space
            .valid_lines(built.source)
            .expect("the file")
            .into_iter()
            .collect();
        let statements = statements(&built.path, built.source);
        let (mut different, mut apart) = (Vec::new(), 0);
        for line in 1..=count {
            let ours = space.resolve_line(built.source, line, None);
            let ours = ours.map(|all| all.iter().map(|p| p.address).collect::<BTreeSet<_>>());
            let theirs = theirs.get(&line.to_string());
            // gdb drops a statement if one of another file begins at its address, and selects the next remaining line.
            let is_forgotten = exact.contains(&line)
                && theirs.is_some_and(|all| all.iter().all(|(_, at)| *at != line));
            let theirs: Option<BTreeSet<u64>> = theirs
                .map(|all| all.iter().map(|(a, _)| *a).collect())
                .filter(|all: &BTreeSet<u64>| !all.is_empty());
            let same = match (&ours, &theirs) {
                (Ok(ours), Some(theirs)) => ours == theirs || cold(&space, ours, theirs),
                (ours, theirs) => ours.is_err() && theirs.is_none(),
            };
            // If a function begins with an inlined one, gdb selects the first line of the inlined function for its
            // opening line.
            let is_optimised = built.what.contains("-O2") || built.what.contains("level=2");
            if !same && !is_forgotten && is_optimised && exact.contains(&line) {
                let is_statement = |a: &u64| statements.contains(&(line, *a));
                let ours = ours.expect("it has code");
                assert!(ours.iter().all(is_statement), "{line}: {ours:x?}");
                apart += 1;
                continue;
            }
            if !same && !is_forgotten {
                different.push(format!("{line}: ours {ours:x?}, theirs {theirs:x?}"));
            }
        }
        assert!(
            different.is_empty(),
            "{}:\n{}",
            built.what,
            different.join("\n")
        );
        assert!(apart <= 1, "{}: {apart} lines", built.what);
    }
}

/// Returns the names of functions of the source file that exist only as inlined copies.
fn inlined_names(space: &AddressSpace, functions: &[debuginfo::Function]) -> BTreeSet<String> {
    let ranges = functions.iter().flat_map(|f| f.ranges.iter());
    let addresses = ranges.flat_map(|r| r.start.0..r.end.0);
    let calls = addresses.flat_map(|address| space.calls_at(address).into_iter().skip(1));
    let names = calls.filter_map(|call| Some(call.name?.to_string()));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    names
        .filter(|name| name.chars().all(is_plain))
        .filter(|name| functions.iter().all(|f| f.name != *name))
        .collect()
}

#[test]
fn functions_begin_where_gdb_puts_breakpoints_on_them_copies_included() {
    let mut different = Vec::new();
    let mut only_inlined = 0;
    let (all, others) = (all(), others_for_gdb());
    for built in all.iter().chain(others.iter()) {
        let space = space(&built.path);
        let functions = own_functions(built);
        let plain = |f: &&debuginfo::Function| {
            let name = &f.name;
            name.chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
        };
        let mut names: Vec<String> = functions
            .iter()
            .filter(plain)
            .map(|f| f.name.clone())
            .collect();
        let inlined = inlined_names(&space, &functions);
        only_inlined += inlined.len();
        names.extend(inlined);
        let (_, theirs) = gdb_places(built, 0, &names);
        assert!(theirs.len() > 2, "{}: {theirs:?}", built.what);
        for (name, theirs) in theirs {
            let found = space.functions_matching(&name);
            let own: BTreeSet<u64> = found.iter().map(|f| f.after_prologue).collect();
            let places = space.function_places(&name);
            let ours: BTreeSet<u64> = places.iter().map(|place| place.address).collect();
            // gdb 13 takes the first range of a copy for its start, even if DW_AT_entry_pc states another address.
            let entered = |address: u64| {
                let calls = space.calls_at(address);
                let mut own = calls.iter().skip(1).rev();
                let copy = own.find(|call| call.name.as_deref() == Some(&*name));
                copy.map_or(address, |copy| copy.entry)
            };
            let theirs: BTreeSet<u64> = theirs.iter().map(|(a, _)| entered(*a)).collect();
            assert!(own.is_subset(&ours), "{name} of {}", built.what);
            if ours != theirs {
                different.push(format!("{name} of {}: {ours:x?} {theirs:x?}", built.what));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(
        only_inlined > share(5),
        "{only_inlined} functions exist only inlined"
    );
}

/// Returns how often a program stops at the places of a line, counted by gdb. It has to be linked at a fixed address.
fn hits(path: &Path, file: &str, line: u32) -> u32 {
    let places = space(path).resolve_line(file, line, None).expect("code");
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch"]);
    for (place, number) in places.iter().zip(1..) {
        gdb.arg("-ex").arg(format!("break *{:#x}", place.address));
        gdb.arg("-ex").arg(format!("ignore {number} 1000"));
    }
    gdb.args(["-ex", "run", "-ex", "info breakpoints"]);
    let said = run(gdb.arg(path).env("LC_ALL", "C"));
    let counts = said.lines().filter_map(|line| {
        let (_, count) = line.split_once("already hit ")?;
        count.split(' ').next()?.parse::<u32>().ok()
    });
    counts.sum()
}

#[test]
fn a_line_that_begins_with_inlined_code_is_not_only_in_the_cold_part_of_its_function() {
    let bench = Bench::new();
    let step = "#include <stdexcept>
#include <string>
static volatile int n;
__attribute__((noinline)) static void step(const std::string &label, int i) {
  n += i;
  if (label == \"bad\" && i == 3) throw std::runtime_error(\"broke\");
  n ^= 1;
}
int main() {
  std::string l = \"ok\";
  for (int i = 0; i < 6; i++) step(l, i);
  try { for (int i = 0; i < 6; i++) step(\"bad\", i); } catch (std::exception &e) { n = 0; }
}
";
    let fibs = "#include <coroutine>
#include <stdexcept>
#include <string>
struct Numbers {
  struct promise_type {
    long current{};
    Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(long v) { current = v; return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> h;
};
static Numbers fibs(int n, std::string label) {
  long a = 0, b = 1;
  for (int i = 0; i < n; i++) {
    co_yield a;
    long c = a + b;
    a = b;
    b = c;
    if (label == \"bad\" && i == 3) throw std::runtime_error(\"broke\");
  }
}
int main(int argc, char **) {
  for (const char *label : {\"ok\", \"bad\"})
    for (auto g = fibs(9 + argc, label); !g.h.done();) g.h.resume();
}
";
    for (name, text, line, expected) in [("step", step, 6, 10), ("fibs", fibs, 23, 14)] {
        let file = format!("{name}.cpp");
        let source = bench.write(&file, text);
        let options = ["-std=c++20", "-g", "-O2", "-no-pie"];
        let path = bench.compile("g++", &source, name, &options);
        assert_eq!(hits(&path, &file, line), expected, "{name}");
    }
}

#[test]
fn a_line_without_code_moves_to_the_next_one_that_has_some() {
    let built = built("gcc", "frames.c", &["-g", "-O0", "-pthread"]);
    let space = space(&built.path);
    let text = std::fs::read_to_string(program("frames.c")).expect("the source");
    let line_of = |needle: &str| {
        text.lines()
            .position(|l| l.contains(needle))
            .expect("there") as u32
            + 1
    };
    let comment = line_of("no code here");
    let moved = space
        .resolve_line("frames.c", comment, None)
        .expect("it moves");
    assert_eq!(moved.len(), 1);
    assert_eq!(moved[0].line, comment + 1);
    assert_eq!(moved[0].function.as_deref(), Some("loops"));
    // Between two functions, this is a line of the next one.
    let moved = space.resolve_line("frames.c", 1, None).expect("it moves");
    let first = *space
        .valid_lines("frames.c")
        .expect("the file")
        .first()
        .expect("some");
    assert!(moved.iter().all(|place| place.line >= first), "{moved:?}");
    let last = text.lines().count() as u32 + 10;
    let error = space
        .resolve_line("frames.c", last, None)
        .expect_err("no such line");
    assert!(matches!(error, LineError::NoCode { valid, .. } if valid.len() == 1));
}

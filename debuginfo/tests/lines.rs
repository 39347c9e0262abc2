//! Goal: lines and addresses equal those of readelf, addr2line and gdb: the line of an address, with inlined calls; the
//! places where gdb sets breakpoints on lines and functions; the lines with code. Method: optimised and unoptimised
//! programs in three languages and two versions of DWARF are queried for every address of their functions and every
//! line of their sources, and so are the tools.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::{Bench, hex, open, program, run, tool};
use debuginfo::{
    AddressSpace, Certainty, LineError, Machine, Mapped, Register, SourceError, SourceText,
    Unknown, backtrace,
};

fn space(path: &Path) -> AddressSpace {
    AddressSpace::new(vec![Mapped {
        module: Arc::new(open(path)),
        number: 0,
        bias: 0,
        range: 0..u64::MAX,
        is_system: false,
    }])
}

/// A thread of which only the position is known.
struct At(u64);

impl Machine for At {
    fn memory(&self, address: u64, _: &mut [u8]) -> Result<Certainty, Unknown> {
        Err(Unknown::because(format!("no memory at {address:#x}")))
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        match register {
            Register::RIP => Ok((self.0, Certainty::Known)),
            _ => Err(Unknown::because("not captured")),
        }
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because("not captured"))
    }
}

struct Built {
    bench: Bench,
    path: PathBuf,
    source: &'static str,
    what: String,
}

fn built(compiler: &str, source: &'static str, options: &[&str]) -> Built {
    let bench = Bench::new();
    let path = bench.compile(compiler, &program(source), "lines", options);
    Built {
        path,
        source,
        what: format!("{compiler} {options:?} {source}"),
        bench,
    }
}

fn all() -> Vec<Built> {
    let mut all = Vec::new();
    for level in ["-O0", "-O2"] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            all.push(built(
                "gcc",
                "frames.c",
                &["-g", version, level, "-pthread"],
            ));
            all.push(built("g++", "frames.cpp", &["-g", version, level]));
        }
        all.push(built(
            "gcc",
            "frames.c",
            &["-g", "-gsplit-dwarf", level, "-pthread"],
        ));
        let rust = level.replace("-O", "opt-level=");
        all.push(built("rustc", "frames.rs", &["-g", "-C", &rust]));
    }
    all
}

/// All programs, and those of compilers whose output tools other than gdb read differently.
fn all_for_gdb() -> Vec<Built> {
    let mut all = all();
    for level in ["-O0", "-O1", "-O2"] {
        all.push(built("gcc", "places.c", &["-g", level]));
        all.push(built("clang", "places.c", &["-g", level]));
        all.push(built("clang++", "frames.cpp", &["-g", level]));
    }
    all
}

/// Returns the functions of the fixture's own source file.
fn own_functions(built: &Built) -> Vec<debuginfo::Function> {
    let module = open(&built.path);
    let list = module.functions().list.iter();
    let is_own =
        |f: &&debuginfo::Function| f.file.as_ref().is_some_and(|f| f.ends_with(built.source));
    list.filter(is_own).cloned().collect()
}

/// Returns addr2line's result for each address: file name and line, innermost first.
fn addr2line(path: &Path, addresses: &[u64]) -> Vec<Vec<(String, u32)>> {
    let mut command = Command::new("addr2line");
    command.args(["-a", "-i", "-e"]).arg(path);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("addr2line");
    let mut input = String::new();
    for address in addresses {
        writeln!(input, "{address:x}").expect("a string");
    }
    let mut stdin = child.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("addr2line ends");
    writer.join().expect("no panic").expect("it reads all");
    let mut answers: Vec<Vec<(String, u32)>> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if line.starts_with("0x") {
            answers.push(Vec::new());
            continue;
        }
        let (file, number) = line.rsplit_once(':').expect("file:line");
        let number = number.split(' ').next().unwrap_or_default();
        let place = match number.parse().unwrap_or(0) {
            0 => (String::from("??"), 0),
            number => (base(file), number),
        };
        answers.last_mut().expect("an address first").push(place);
    }
    answers
}

/// Returns gdb's line for each address. If several rows begin at one address, addr2line selects another one.
fn gdb_lines(built: &Built, addresses: &[u64]) -> Vec<(String, u32)> {
    let list: Vec<String> = addresses.iter().map(|a| format!("{a:x}")).collect();
    let file = built.bench.write("addresses", &list.join("\n"));
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"])
        .arg(program("where.py"))
        .arg(&built.path);
    let output = run(gdb.env("ADDRESSES", file).env("LC_ALL", "C"));
    let line = |text: &str| {
        let fields: Vec<&str> = text.split('\t').collect();
        let ["AT", _, name, line] = fields[..] else {
            return None;
        };
        Some((name.to_owned(), line.parse().expect("a line")))
    };
    output.lines().filter_map(line).collect()
}

fn base(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

#[test]
fn lines_of_all_addresses_are_those_of_gdb_and_addr2line_with_inlined_calls() {
    // addr2line does not read split files.
    for built in all().iter().filter(|b| !b.what.contains("split")) {
        let space = space(&built.path);
        let functions = own_functions(built);
        assert!(functions.len() > 5, "{}", built.what);
        let ranges = functions.iter().flat_map(|f| f.ranges.iter());
        let addresses: Vec<u64> = ranges.flat_map(|r| r.start.0..r.end.0).collect();
        let mut inlined = 0;
        let innermost = gdb_lines(built, &addresses);
        assert_eq!(innermost.len(), addresses.len());
        let around = addr2line(&built.path, &addresses);
        for ((address, innermost), mut theirs) in addresses.iter().zip(innermost).zip(around) {
            // gdb assigns code without a line to the preceding line.
            if theirs[0].1 != 0 {
                theirs[0] = innermost;
            }
            let trace = backtrace(&space, &At(*address), 100);
            let own = trace.frames.iter().take_while(|f| f.inlined).count() + 1;
            let ours: Vec<(String, u32)> = trace.frames[..own]
                .iter()
                .map(|f| {
                    f.source
                        .as_ref()
                        .map_or((String::from("??"), 0), |s| (base(&s.file), s.line))
                })
                .collect();
            inlined += own - 1;
            assert_eq!(ours, theirs, "{address:#x} of {}", built.what);
        }
        assert!(inlined > 0 || built.what.contains("-O0") || built.what.contains("level=0"));
    }
}

/// Returns the statements according to readelf: line and address.
fn statements(path: &Path, source: &str) -> BTreeSet<(u32, u64)> {
    let output = tool("readelf", &["--debug-dump=decodedline"], path);
    let line = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_statement = words.last() == Some(&"x");
        let [name, line, address, ..] = words[..] else {
            return None;
        };
        let is_it = name == source && is_statement && address.starts_with("0x");
        is_it.then(|| Some((line.parse().ok()?, hex(address.trim_start_matches("0x")))))?
    };
    output.lines().filter_map(line).collect()
}

/// Returns the lines with statements according to readelf.
fn statement_lines(path: &Path, source: &str) -> BTreeSet<u32> {
    let all = statements(path, source);
    all.into_iter().map(|(line, _)| line).collect()
}

#[test]
fn lines_with_code_are_those_of_readelf() {
    for built in all() {
        let ours = space(&built.path)
            .valid_lines(built.source)
            .expect("the file");
        let ours: BTreeSet<u32> = ours.into_iter().collect();
        assert_eq!(
            ours,
            statement_lines(&built.path, built.source),
            "{}",
            built.what
        );
    }
}

type Places = BTreeMap<String, Vec<(u64, u32)>>;

/// Returns where gdb sets breakpoints on lines and on functions, with the lines there.
fn gdb_places(built: &Built, lines: u32, functions: &[String]) -> (Places, Places) {
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
    for built in all_for_gdb() {
        let space = space(&built.path);
        let text = std::fs::read_to_string(program(built.source)).expect("the source");
        let count = text.lines().count() as u32;
        let (theirs, _) = gdb_places(&built, count, &[]);
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
    for built in all_for_gdb() {
        let space = space(&built.path);
        let functions = own_functions(&built);
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
        let (_, theirs) = gdb_places(&built, 0, &names);
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
        only_inlined > 5,
        "{only_inlined} functions exist only inlined"
    );
}

/// Returns ways to name a function: its name with the types of its parameters, then with more and more omitted.
fn ways_to_name(function: &debuginfo::Function, demangled: &str, source: &str) -> Vec<String> {
    let bare = |name: &str| {
        let (mut depth, mut bare) = (0, String::new());
        for c in name.chars() {
            depth += i32::from(c == '<');
            if depth == 0 {
                bare.push(c);
            }
            depth -= i32::from(c == '>');
        }
        bare
    };
    let name = &function.name;
    // gdb cannot parse the names of lambdas.
    if name.contains("{lambda") {
        return Vec::new();
    }
    let mut ways = vec![name.clone(), format!("{source}:{name}")];
    // The names of operators, lambdas and conversions contain brackets themselves.
    if !name.contains(['{', '(']) && !name.contains("operator") {
        let bare = bare(name);
        let parts: Vec<&str> = bare.rsplit("::").collect();
        // The name of a class alone does not select its constructors.
        if parts.get(1).is_none_or(|class| !parts[0].ends_with(class)) {
            ways.push(parts[0].to_owned());
        }
        if let Some(at) = demangled.find('(') {
            ways.push(format!("{bare}{}", &demangled[at..]));
        }
        ways.push(bare);
    }
    ways
}

#[test]
fn whatever_is_left_out_of_a_name_gdb_finds_the_same_functions() {
    let mut compared = 0;
    for (compiler, level) in [("g++", "-O0"), ("clang++", "-O0"), ("g++", "-O1")] {
        let built = built(compiler, "overloads.cpp", &["-g", level]);
        let space = space(&built.path);
        let mut ways = BTreeSet::new();
        for function in own_functions(&built) {
            let demangled = run(Command::new("c++filt").arg(&function.linkage));
            ways.extend(ways_to_name(&function, demangled.trim(), built.source));
        }
        ways.extend(
            [
                "show(char const *,unsigned long)",
                "show(const std::string &)",
            ]
            .map(str::to_owned),
        );
        ways.extend(["Stack<int>::push", "show(short)", "Queue::push"].map(str::to_owned));
        let ways: Vec<String> = ways.into_iter().collect();
        let (_, exact) = gdb_places(&built, 0, &as_specs("-qualified ", &ways));
        let (_, wild) = gdb_places(&built, 0, &as_specs("", &ways));
        for way in &ways {
            let ours: BTreeSet<u64> = space
                .function_places(way)
                .iter()
                .map(|p| p.address)
                .collect();
            let found = exact.get(&format!("spec:-qualified {way}"));
            let found = found.filter(|all| !all.is_empty());
            let found = found.or_else(|| wild.get(&format!("spec:{way}")));
            // gdb takes stubs of imported functions for these functions.
            let is_stub = |at: &u64| {
                let symbol = space.symbol_at(*at);
                symbol.is_some_and(|(name, _)| name.ends_with("@plt"))
            };
            let theirs = found.into_iter().flatten().map(|(a, _)| *a);
            let theirs: BTreeSet<u64> = theirs.filter(|at| !is_stub(at)).collect();
            assert_eq!(ours, theirs, "{way} of {}", built.what);
            compared += usize::from(!ours.is_empty());
        }
    }
    assert!(compared > 100, "{compared} names");
}

/// Returns locations in gdb's syntax, preceded by options.
fn as_specs(options: &str, ways: &[String]) -> Vec<String> {
    ways.iter()
        .map(|way| format!("spec:{options}{way}"))
        .collect()
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

#[test]
fn unknown_files_are_refused_with_similar_names() {
    let built = built("gcc", "frames.c", &["-g", "-O0", "-pthread"]);
    let space = space(&built.path);
    let error = space
        .resolve_line("frame.c", 1, None)
        .expect_err("no such file");
    let LineError::UnknownFile { nearest, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(nearest.iter().any(|f| f.ends_with("/frames.c")), "{error}");
    assert!(
        space
            .source_files()
            .iter()
            .any(|f| f.ends_with("tests/programs/frames.c"))
    );
    for name in [
        "programs/frames.c",
        program("frames.c").to_str().expect("UTF-8"),
    ] {
        assert!(space.resolve_line(name, 18, None).is_ok(), "{name}");
    }
    assert!(space.resolve_line("other/frames.c", 18, None).is_err());
}

#[test]
fn columns_choose_statements() {
    let built = built("gcc", "frames.c", &["-g", "-O0", "-pthread"]);
    let known = space(&built.path);
    let text = std::fs::read_to_string(program("frames.c")).expect("the source");
    let at = text
        .lines()
        .position(|l| l.contains("sum += square"))
        .expect("there");
    let line = at as u32 + 1;
    let source = text.lines().nth(at).expect("there");
    let second = source.find("sum -= i").expect("two statements") as u32 + 1;
    let first = known.resolve_line("frames.c", line, None).expect("code");
    let behind = known
        .resolve_line("frames.c", line, Some(second + 6))
        .expect("code");
    assert_eq!(first.len(), 1);
    assert!(behind[0].address > first[0].address, "{first:?} {behind:?}");
    // Outside the statements, the nearest one is selected.
    let begin = source.find("sum += square").expect("the first statement") as u32 + 1;
    let end = source.len() as u32;
    for (column, nearest) in [(1, begin), (end + 2, end)] {
        let found = known.resolve_line("frames.c", line, Some(column));
        let nearest = known.resolve_line("frames.c", line, Some(nearest));
        assert_eq!(found, nearest, "column {column}");
        assert!(found.is_ok(), "{found:?}");
    }
    let options = ["-g", "-O0", "-pthread", "-gno-column-info"];
    let path = built
        .bench
        .compile("gcc", &program("frames.c"), "without", &options);
    let error = space(&path).resolve_line("frames.c", line, Some(second));
    let error = error.expect_err("no columns");
    assert!(matches!(error, LineError::NoColumns { .. }), "{error:?}");
    assert_eq!(error.hint(), Some("leave the column out"));
}

#[test]
fn the_code_of_a_step_belongs_to_one_line() {
    for built in all() {
        let space = space(&built.path);
        for function in own_functions(&built) {
            let (from, to) = (function.ranges[0].start.0, function.ranges[0].end.0);
            for address in from..to {
                let Some(line) = space.line_at(address) else {
                    continue;
                };
                let step = space.step_line(address).expect("it has a line");
                let what = &built.what;
                assert_eq!((step.line, &step.file), (line.line, &line.file), "{what}");
                assert!(step.range.contains(&address), "{address:#x} of {what}");
                let ends = [step.range.start, step.range.end - 1];
                for inside in ends.into_iter().filter_map(|at| space.line_at(at)) {
                    assert_eq!((inside.line, inside.file), (line.line, line.file.clone()));
                }
                let calls = space.calls_at(address);
                let trace = backtrace(&space, &At(address), 100);
                let inlined = trace.frames.iter().take_while(|f| f.inlined).count();
                assert_eq!(calls.len(), inlined + 1, "{address:#x} of {what}");
                assert!(space.calls_beginning(address) <= inlined);
            }
        }
    }
}

/// As in packages built by distributions, whose sources are elsewhere.
#[test]
fn a_directory_that_is_relative_stands_in_a_path_once() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let bench = Bench::new();
        bench.write("here.c", "int main(void) { return 0; }\n");
        let map = format!("-fdebug-prefix-map={}=./sub", bench.dir().display());
        let path = bench.compile("gcc", Path::new("here.c"), "here", &["-g", version, &map]);
        let space = space(&path);
        let at = space.function_places("main")[0].address;
        let line = space.line_at(at).expect("it has lines");
        assert_eq!(&*line.file, "./sub/here.c", "{version}");
    }
}

#[test]
fn source_text_is_read_with_its_context() {
    let path = program("frames.c");
    let name = path.to_str().expect("UTF-8");
    let text = SourceText::around(name, None, 2, 3).expect("readable");
    assert_eq!((text.first, text.lines.len()), (1, 5));
    assert_eq!(text.lines[1], "#define _GNU_SOURCE");
    let below = SourceText::around("frames.c", path.parent(), 1, 0).expect("readable");
    assert_eq!(below.lines.len(), 1);
    let total = text.total;
    let error = SourceText::around(name, None, total + 1, 3).expect_err("too far");
    assert!(matches!(error, SourceError::NoSuchLine { total: t, .. } if t == total));
    let error = SourceText::around("/nowhere/x.c", None, 1, 3).expect_err("missing");
    assert!(
        error.to_string().contains("/nowhere/x.c cannot be read"),
        "{error}"
    );
}

//! Other tools that count calls; the tests take their counts as the truth.

use crate::process::{Ended, Program, Status};
use crate::scratch::Scratch;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Calls by function name.
pub type Counts = BTreeMap<String, i64>;

/// Counts the calls of a program built with `-pg` with uftrace.
///
/// # Panics
/// If uftrace is not installed, fails, or lost records.
#[must_use]
pub fn uftrace_counts(scratch: &Scratch, program: &Program) -> Counts {
    counted_by_uftrace(scratch, program, &["--no-libcall"])
}

/// Counts the calls of a program built with `-pg` with uftrace, those of libraries' functions too. uftrace decodes their
/// arguments (`--auto-args`) as it knows their prototypes.
///
/// # Panics
/// If uftrace is not installed, fails, or lost records.
#[must_use]
pub fn uftrace_library_counts(scratch: &Scratch, program: &Program) -> Counts {
    counted_by_uftrace(scratch, program, &["--auto-args"])
}

fn counted_by_uftrace(scratch: &Scratch, program: &Program, options: &[&str]) -> Counts {
    let data = scratch.join("uftrace.data");
    let data = data.to_str().expect("scratch paths are UTF-8");
    let rest = ["--no-sched", "--max-stack=65535", "-b", "64m", "-d", data];
    let options = [&["record"], options, &rest].concat();
    let recorded = succeeded(
        program
            .wrapped(Path::new("/usr/bin/uftrace"), options)
            .run(),
    );
    assert!(
        !recorded.errors().contains("LOST"),
        "uftrace lost records: {}",
        recorded.errors()
    );
    let report = Program::new("/usr/bin/uftrace", scratch.path())
        .args(["report", "-f", "call", "-d", data])
        .run();
    let mut counts = Counts::new();
    for line in succeeded(report).text().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [count, name] = words[..]
            && let Ok(count) = count.parse::<i64>()
            && !name.starts_with("linux:")
        {
            *counts.entry(name.to_owned()).or_default() += count;
        }
    }
    counts
}

/// Counts the calls of an unchanged binary with callgrind, which runs it on a simulated processor.
///
/// # Panics
/// If valgrind is not installed or fails.
#[must_use]
pub fn callgrind_counts(scratch: &Scratch, program: &Program) -> Counts {
    let file = scratch.join("callgrind.out");
    let option = format!("--callgrind-out-file={}", file.display());
    let _ = succeeded(
        program
            .wrapped(
                Path::new("/usr/bin/valgrind"),
                ["-q", "--tool=callgrind", option.as_str()],
            )
            .run(),
    );
    let text = fs::read_to_string(file).expect("callgrind wrote its counts");
    parse_callgrind(
        &text,
        program.path.to_str().expect("fixtures have UTF-8 paths"),
    )
}

/// Sums the calls of functions of one object file. `ob=`, `fn=` name the caller, `cob=`, `cfn=` the
/// callee; without `cob=` both are in the same object.
fn parse_callgrind(text: &str, wanted_object: &str) -> Counts {
    let (mut objects, mut functions) = (Names::new(), Names::new());
    let (mut object, mut callee_object, mut callee) = (String::new(), None, String::new());
    let mut counts = Counts::new();
    for line in text.lines() {
        match line.split_once('=') {
            Some(("ob", rest)) => object = resolve(&mut objects, rest),
            Some(("cob", rest)) => callee_object = Some(resolve(&mut objects, rest)),
            Some(("fn", rest)) => drop(resolve(&mut functions, rest)),
            Some(("cfn", rest)) => callee = resolve(&mut functions, rest),
            Some(("calls", rest)) => {
                let count = rest.split(' ').next().and_then(|c| c.parse::<i64>().ok());
                if callee_object.take().as_ref().unwrap_or(&object) == wanted_object {
                    // `name'2` is the same function, called recursively.
                    let name = callee
                        .split('\'')
                        .next()
                        .expect("split gives at least one part");
                    *counts.entry(name.to_owned()).or_default() += count.expect("a count of calls");
                }
            }
            _ => {}
        }
    }
    counts
}

type Names = BTreeMap<String, String>;

/// `(12) name` gives number 12 its name, `(12)` alone uses it.
fn resolve(names: &mut Names, text: &str) -> String {
    let (number, name) = text.split_once(' ').unwrap_or((text, ""));
    if !name.is_empty() {
        names.insert(number.to_owned(), name.to_owned());
    }
    names[number].clone()
}

/// Counts the hits of gdb's breakpoint on `function`.
///
/// # Panics
/// If gdb is not installed or gives no count.
#[must_use]
pub fn gdb_count(program: &Program, function: &str) -> i64 {
    let place = format!("break {function}");
    hits_of(program, &[&place, "ignore 1 1000000000", "run"])
}

/// Counts the same for code at an address in the file of a position-independent program, which needs no symbols: the
/// entry point of the process shows where the file was mapped.
///
/// # Panics If gdb is not installed or gives no count, or the program is not a 64-bit ELF file.
#[must_use]
pub fn gdb_count_at(program: &Program, svma: u64) -> i64 {
    let file = fs::read(&program.path).expect("the program can be read");
    let entry = file.get(24..32).and_then(|bytes| bytes.try_into().ok());
    let entry = u64::from_le_bytes(entry.expect("an ELF file is longer"));
    let find = "python import re; began = int(re.search('AT_ENTRY.*(0x[0-9a-f]+)', gdb.execute('info auxv', to_string=True))[1], 16)";
    let place = format!("python gdb.Breakpoint('*%d' % (began - {entry} + {svma}))");
    let commands = ["starti", find, &place, "ignore 1 1000000000", "continue"];
    hits_of(program, &commands)
}

/// Runs the commands in gdb, then reads the hit count of its only breakpoint.
fn hits_of(program: &Program, commands: &[&str]) -> i64 {
    let mut options = vec!["-q", "-batch", "-nx"];
    for command in commands.iter().chain(&["info breakpoints"]) {
        options.extend(["-ex", command]);
    }
    options.push("--args");
    let ended = program.wrapped(Path::new("/usr/bin/gdb"), options).run();
    let text = ended.text();
    let line = text
        .lines()
        .find(|l| l.contains("breakpoint already hit"))
        .unwrap_or_else(|| panic!("gdb said {text}"));
    line.split_whitespace()
        .find_map(|w| w.parse().ok())
        .expect("gdb counts in digits")
}

/// gdb's place after each command that moves the program: function, without its parameters, and line.
///
/// # Panics If gdb is not installed, or the program ends early.
#[must_use]
pub fn gdb_places(program: &Program, commands: &[&str]) -> Vec<(String, u64)> {
    const TELL: &str = "python f = gdb.selected_frame(); print('at', f.find_sal().line, f.name())";
    let mut options = vec!["-q", "-batch", "-nx", "-ex", "set debuginfod enabled off"];
    // Lines of the program only, whether the C library's debug information is installed or not.
    options.extend(["-ex", "set debug-file-directory /nonexistent"]);
    for command in commands {
        options.extend(["-ex", *command]);
        if !command.starts_with("break ") {
            options.extend(["-ex", TELL]);
        }
    }
    options.push("--args");
    let ended = program.wrapped(Path::new("/usr/bin/gdb"), options).run();
    let text = ended.text();
    let place = |line: &str| {
        let (number, name) = line.strip_prefix("at ")?.split_once(' ')?;
        let name = name.split('(').next()?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    let places: Vec<_> = text.lines().filter_map(place).collect();
    let moves = commands.iter().filter(|word| !word.starts_with("break "));
    assert_eq!(
        places.len(),
        moves.count(),
        "gdb said {text}{}",
        ended.errors()
    );
    places
}

fn succeeded(ended: Ended) -> Ended {
    assert_eq!(
        ended.status,
        Status::Code(0),
        "{}{}",
        ended.text(),
        ended.errors()
    );
    ended
}

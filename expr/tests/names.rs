//! Goal: a name means what the source means by it at that place, or nothing. It never refers to an unrelated name of
//! another module. Method: gdb stops programs and writes core files. Names are looked up there, in a frame that is
//! inlined into another one, next to a library with the same names. Names that gdb knows have gdb's values.
//! Of several compilers or options each run takes a part; `WHOLE=1` all.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;

use std::path::PathBuf;
use std::process::Command;

use common::share::in_turn;
use common::{Bench, program, run};
use core_file::{CoreFile, CoreThread};
use debuginfo::{AddressSpace, Frame, Machine, backtrace};
use expr::{Context, evaluate, is_type, parse_with};

/// A program that gdb stopped, and gdb's results for some names.
struct Stopped {
    core: CoreFile,
    tid: u32,
    theirs: Vec<Option<String>>,
}

fn stopped(bench: &Bench, path: &PathBuf, names: &[&str]) -> Stopped {
    let list = bench.write("list", &names.join("\n"));
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"])
        .arg(program("expressions.py"))
        .arg(path)
        .env("EXPRESSIONS", &list)
        .env("CORE", bench.path("core"))
        .env("LD_LIBRARY_PATH", bench.dir())
        .env("LC_ALL", "C");
    let output = run(&mut gdb);
    let (mut theirs, mut stop) = (Vec::new(), None);
    for line in output.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["VALUE", _, value] => theirs.push(Some(value.to_owned())),
            ["ERROR", ..] => theirs.push(None),
            ["STOP", core, tid] => stop = Some((PathBuf::from(core), tid.to_owned())),
            _ => {}
        }
    }
    let (core, tid) = stop.unwrap_or_else(|| panic!("gdb said:\n{output}"));
    Stopped {
        core: CoreFile::open(&core),
        tid: tid.parse().expect("a number"),
        theirs,
    }
}

/// Evaluates names in the frame that called `stop_here`.
struct Asker<'a> {
    core: &'a CoreFile,
    machine: CoreThread<'a>,
    frames: Vec<Frame>,
}

impl<'a> Asker<'a> {
    fn new(stopped: &'a Stopped) -> Asker<'a> {
        let machine = stopped.core.thread(stopped.tid);
        let frames = backtrace(&stopped.core.space, &machine, 20).frames;
        Asker {
            core: &stopped.core,
            machine,
            frames,
        }
    }

    /// Returns the number that a name denotes, or why there is none.
    fn number(&self, text: &str) -> Result<i128, String> {
        self.number_in(1, text)
    }

    /// The same in another frame, or in none.
    fn number_in(&self, index: usize, text: &str) -> Result<i128, String> {
        let context = Context::new(
            &self.core.space,
            &self.machine as &dyn Machine,
            &self.frames,
            index,
        );
        let is_type = |name: &str| is_type(name, &context);
        let expr = parse_with(text, &is_type).map_err(|error| error.one_line())?;
        let value = evaluate(&expr, &context).map_err(|error| error.one_line())?;
        value.as_integer().map_err(|error| error.to_string())
    }

    fn refusal(&self, text: &str) -> String {
        match self.number(text) {
            Ok(value) => panic!("{text} is {value}"),
            Err(why) => why,
        }
    }

    /// Compares each name with its value.
    fn assert_all(&self, compiler: &str, expected: &[(&str, i128)]) {
        for (name, value) in expected {
            assert_eq!(self.number(name), Ok(*value), "{compiler}: {name}");
        }
    }
}

/// Builds the C program with its library, using `compiler`.
fn in_c(bench: &Bench, compiler: &str, level: &str) -> PathBuf {
    let library = program("names_library.c");
    bench.compile(
        compiler,
        &library,
        "libnames.so",
        &["-g", "-shared", "-fPIC"],
    );
    let link = format!("-L{}", bench.dir().display());
    let source = program("names.c").display().to_string();
    let options = ["-g", level, &source, &link, "-lnames"];
    let empty = bench.write("empty.c", "");
    bench.compile(compiler, &empty, "names", &options)
}

#[test]
fn names_are_those_of_the_place_and_of_what_is_around_it() {
    for (compiler, level) in in_turn([
        ("gcc", "-O0"),
        ("gcc", "-O2"),
        ("clang", "-O0"),
        ("clang", "-O2"),
    ]) {
        let bench = Bench::new();
        let path = in_c(&bench, compiler, level);
        let known = [
            "own",
            "LOCAL",
            "RED",
            "GREEN + 1",
            "UNNAMED",
            "main::calls",
            "idle::count",
        ];
        let stopped = stopped(&bench, &path, &known);
        let asker = Asker::new(&stopped);
        let what = format!("{compiler} {level}");
        assert_eq!(asker.frames[1].function.as_deref(), Some("inner"), "{what}");
        for (name, theirs) in known.iter().zip(&stopped.theirs) {
            if let Some(theirs) = theirs {
                let ours = asker.number(name).map(|number| number.to_string());
                assert_eq!(ours.as_ref(), Ok(theirs), "{what}: {name}");
            }
        }
        asker.assert_all(
            &what,
            &[
                ("own", 14),
                // The variable of the function into which this one is inlined, not the library's.
                ("token", 107),
                // The file's variable takes precedence over a caller's variable of the same name.
                ("shared", 5),
                ("RED", 1),
                ("GREEN", 6),
                ("UNNAMED", 12),
                ("outer::token", 107),
                ("outer::shared", -1),
                ("main::step", 7),
                ("main::calls", 3),
                ("idle::count", 41),
                ("libnames::hoard", 2000),
                ("libnames.so::token", 1000),
                ("libnames.so::hoard + 1", 2001),
                ("'libnames.so'::shared", 3000),
                ("names::shared", 5),
            ],
        );
        // clang describes the types of a function that is only inlined in its abstract instance, where names are not
        // looked up.
        if compiler == "gcc" {
            asker.assert_all(&what, &[("LOCAL", 77)]);
        }
    }
}

#[test]
fn what_another_module_has_is_not_taken_for_a_name() {
    let bench = Bench::new();
    let path = in_c(&bench, "gcc", "-O2");
    let stopped = stopped(&bench, &path, &[]);
    let asker = Asker::new(&stopped);
    let foreign = |name: &str| {
        format!(
            "no \"{name}\" here, but one in libnames.so; if that is meant, write libnames.so::{name}"
        )
    };
    assert_eq!(asker.refusal("hoard"), foreign("hoard"));
    assert_eq!(asker.refusal("stride"), foreign("stride"));
    assert_eq!(asker.refusal("stride > 3000"), foreign("stride"));
    assert!(asker.number("libnames.so::stride").is_ok());
    // An imported name is the program's own.
    assert!(asker.number("library_touch").is_ok());
    let refused = asker.refusal("main::stp");
    assert_eq!(
        refused,
        "main has no variable \"stp\"; did you mean \"main::step\"?"
    );
    let refused = asker.refusal("idle::unused");
    assert_eq!(
        refused,
        "unused is a variable of idle, which does not run here; it has a value only during a call of idle: stop in one, for example by break idle"
    );
    assert_eq!(asker.refusal("nosuch::x"), "no variable \"nosuch::x\" here");
}

/// Where a thread stands in its innermost function may not be known; the functions around that one run all the same.
#[test]
fn variables_that_are_qualified_with_a_running_function_need_no_frame() {
    let bench = Bench::new();
    let path = in_c(&bench, "gcc", "-O0");
    let stopped = stopped(&bench, &path, &[]);
    let asker = Asker::new(&stopped);
    let nowhere = asker.frames.len();
    assert_eq!(asker.number_in(nowhere, "main::step"), Ok(7));
    assert!(asker.number_in(nowhere, "step").is_err());
    let refused = asker.number_in(nowhere, "idle::unused");
    assert!(refused.is_err_and(|why| why.contains("which does not run here")));
}

/// A thread that waits is in the C library. Variables that are private to other files of that library are not meant.
#[test]
fn what_is_private_to_another_file_of_a_system_library_does_not_hide_the_programs_own() {
    let bench = Bench::new();
    let hidden = "static int cache = 7, total = 8; int *used(void) { return &cache + total; }\n";
    let hidden = bench.write("hidden.c", hidden).display().to_string();
    let waits = "static int own = 9; void stop_here(void); \
                 int waits(void) { stop_here(); return own; }\n";
    let waits = bench.write("waits.c", waits);
    let options = ["-g", "-O0", "-shared", "-fPIC", &hidden];
    bench.compile("gcc", &waits, "libwaits.so", &options);
    let source = "static int cache = 42, own = 43; int waits(void), *used(void);\n\
                  void stop_here(void) {}\n\
                  int main(void) { return waits() + cache + own + !used(); }\n";
    let source = bench.write("waiting.c", source);
    let source = source.display().to_string();
    let link = format!("-L{}", bench.dir().display());
    let options = ["-g", "-O0", &source, &link, "-lwaits"];
    let empty = bench.write("empty.c", "");
    let path = bench.compile("gcc", &empty, "waiting", &options);
    let mut stopped = stopped(&bench, &path, &[]);
    let ask = |stopped: &Stopped| {
        let asker = Asker::new(stopped);
        ["cache", "own", "total"].map(|name| asker.number(name).ok())
    };
    // A library of the program's own may mean its other files.
    assert_eq!(ask(&stopped), [Some(7), Some(9), Some(8)]);
    let mut modules = stopped.core.space.modules().to_vec();
    for mapped in &mut modules {
        mapped.is_system |= mapped.is_called("libwaits");
    }
    stopped.core.space = AddressSpace::new(modules);
    assert_eq!(ask(&stopped), [Some(42), Some(9), Some(8)]);
}

#[test]
fn enumerators_and_functions_of_cpp_are_known_where_they_are_in_scope() {
    for (compiler, level) in in_turn([
        ("g++", "-O0"),
        ("g++", "-O2"),
        ("clang++", "-O0"),
        ("clang++", "-O2"),
    ]) {
        let bench = Bench::new();
        let path = bench.compile(compiler, &program("names.cpp"), "names", &["-g", level]);
        let known = [
            "paint::Thin",
            "paint::Colour::Green",
            "paint::Brush::Flat",
            "coats",
        ];
        let stopped = stopped(&bench, &path, &known);
        let asker = Asker::new(&stopped);
        let what = format!("{compiler} {level}");
        for (name, theirs) in known.iter().zip(&stopped.theirs) {
            let ours = asker.number(name).map(|number| number.to_string());
            let theirs = theirs.clone().unwrap_or_default();
            assert_eq!(ours, Ok(theirs), "{what}: {name}");
        }
        asker.assert_all(
            &what,
            &[
                ("Thick", 5),
                ("Thick * 2", 10),
                ("Plain::Thick", 5),
                ("Colour::Red", 1),
                ("Brush::Round", 3),
                ("main::step", 7),
                ("paint::work::copy", 7),
                ("work::copy", 7),
                ("paint::last::kept", 64),
            ],
        );
        // An enumerator of "enum class" has no name without its type.
        assert_eq!(asker.refusal("Green"), "no variable \"Green\" here");
    }
}

#[test]
fn enumerators_of_rust_need_their_type_and_no_variable() {
    for level in in_turn(["0", "2"]) {
        let bench = Bench::new();
        let opt = format!("-Copt-level={level}");
        let options = ["--edition=2024", "-g", &opt, "--crate-name=names"];
        let path = bench.compile("rustc", &program("names.rs"), "names", &options);
        let stopped = stopped(&bench, &path, &[]);
        let asker = Asker::new(&stopped);
        asker.assert_all(
            level,
            &[
                ("Colour::Green", 6),
                ("names::Colour::Red", 1),
                ("COATS", 4),
            ],
        );
        assert_eq!(asker.number("main::step"), Ok(7), "{level}");
        // The standard library has functions of many names.
        assert_eq!(
            asker.refusal("next"),
            "no variable \"next\" here",
            "{level}"
        );
    }
}

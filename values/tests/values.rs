//! Goal: variables, their types and their values are those that gdb sees. Method: gdb runs programs of three languages,
//! optimised and not, stops at their marked places, prints all variables and writes a core file; the core file serves as
//! the machine. Texts are compared without differences of style.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Bench, program, run};
use core_file::CoreFile;
use debuginfo::location::at_frame;
use debuginfo::scope::{global, variables_at};
use debuginfo::value::Value;
use debuginfo::{Frame, backtrace};
use values::{RenderOptions, render};

struct Theirs {
    name: String,
    ty: String,
    text: String,
}

struct Stop {
    core: PathBuf,
    tid: u32,
    frames: Vec<(usize, String, Vec<Theirs>)>,
}

fn stops(bench: &Bench, path: &Path, name: &str, globals: &str) -> Vec<Stop> {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"])
        .arg(program("values.py"))
        .arg(path);
    gdb.env("CORES", bench.dir()).env("NAME", name);
    let output = run(gdb.env("GLOBALS", globals).env("LC_ALL", "C.UTF-8"));
    let mut stops: Vec<Stop> = Vec::new();
    for line in output.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["STOP", core, tid] => stops.push(Stop {
                core: PathBuf::from(core),
                tid: tid.parse().expect("a thread"),
                frames: Vec::new(),
            }),
            ["FRAME", level, name] => {
                let stop = stops.last_mut().expect("a stop comes first");
                let level = level.parse().expect("a number");
                stop.frames.push((level, name.to_owned(), Vec::new()));
            }
            ["VAR", name, ty, text] => {
                let stop = stops.last_mut().expect("a stop comes first");
                let frame = stop.frames.last_mut().expect("a frame comes first");
                let text = text.replace("\\\\", "\\");
                frame.2.push(Theirs {
                    name: name.to_owned(),
                    ty: ty.to_owned(),
                    text,
                });
            }
            _ => {}
        }
    }
    assert!(!stops.is_empty(), "gdb said:\n{output}");
    stops
}

/// The common part of both outputs: without the types before pointers, the symbols after them and the zeros at the
/// end of texts.
fn plain(text: &str) -> String {
    let mut text = text.replace("(int (*)(int)) ", "");
    for (from, to) in [(", '\\000' <repeats ", "times>"), (" <", ">")] {
        let mut start = 0;
        while let Some(at) = text[start..].find(from).map(|at| start + at) {
            let before = text[..at]
                .rsplit([' ', '{', '('])
                .next()
                .unwrap_or_default();
            let end = text[at..]
                .find(to)
                .map_or(text.len(), |end| at + end + to.len());
            match before.starts_with("0x") || to == "times>" {
                true => text.replace_range(at..end, ""),
                false => start = at + 1,
            }
        }
    }
    while text.contains("\\000\"") {
        text = text.replace("\\000\"", "\"");
    }
    text
}

/// Names of types without spaces, base types as gdb calls them.
fn plain_type(name: &str) -> String {
    let mut name = name.to_owned();
    for (long, short) in [
        ("long unsigned int", "unsigned long"),
        ("short unsigned int", "unsigned short"),
        ("long int", "long"),
        ("short int", "short"),
    ] {
        name = name.replace(long, short);
    }
    name.replace(' ', "")
}

/// Variables whose members all have a place in optimised code, but not the padding around them: gdb calls them
/// optimized out, and these are their values.
const ONLY_PADDING_IS_MISSING: [(&str, &str); 2] = [
    ("fields", "{a = -3, b = 300}"),
    ("lambda", "{__yes = true, __extra = 5}"),
];

/// Texts that the two word differently.
const OWN_WORDS: [&str; 3] = ["member", "nothing", "vla"];

/// Compares all variables of all frames; returns how many, and how many had a value.
fn compare(path: &Path, stops: &[Stop], texts: bool) -> (usize, usize) {
    let (mut all, mut known) = (0, 0);
    let mut wrong = Vec::new();
    for stop in stops {
        let core = CoreFile::open(&stop.core);
        let thread = core.thread(stop.tid);
        let frames: Vec<Frame> = backtrace(&core.space, &thread, 64).frames;
        for (level, name, theirs) in &stop.frames {
            at_frame(&core.space, &thread, &frames, *level, |site| {
                let ours = variables_at(site);
                for theirs in theirs {
                    all += 1;
                    let candidates: Vec<_> = match theirs.name.strip_prefix("::") {
                        Some(name) => global(site, name).into_iter().collect(),
                        // If a block has no address left, it is uncertain which one hides the other.
                        None => ours
                            .iter()
                            .filter(|v| v.name == theirs.name)
                            .cloned()
                            .collect(),
                    };
                    let values: Vec<_> = candidates.iter().map(|v| v.read(site)).collect();
                    known += usize::from(values.iter().any(|v| v.bytes.is_ok()));
                    let options = RenderOptions::default();
                    let shown = |v: &Value| render(v, &options, site.machine, site.space);
                    let is_padded = |v: &Value| {
                        let ours = (&*theirs.name, &*shown(v));
                        theirs.text == "<optimized out>" && ONLY_PADDING_IS_MISSING.contains(&ours)
                    };
                    let is_same = |v: &Value| agree(v, &shown(v), theirs, texts) || is_padded(v);
                    if !values.iter().any(is_same) {
                        let ours: Vec<_> = values.iter().map(|v| (v.ty.name(), shown(v))).collect();
                        wrong.push(format!(
                            "{name}: {} is\n  {ours:?}\nand not\n  {}: {}",
                            theirs.name, theirs.ty, theirs.text
                        ));
                    }
                }
            })
            .expect("as many frames as gdb has");
        }
    }
    let count = wrong.len();
    assert!(
        wrong.is_empty(),
        "{}: {count} of {all}\n{}",
        path.display(),
        wrong.join("\n")
    );
    (all, known)
}

fn agree(ours: &Value, text: &str, theirs: &Theirs, texts: bool) -> bool {
    let same_type = plain_type(&ours.ty.name()) == plain_type(&theirs.ty);
    if theirs.text == "<optimized out>" {
        // gdb says so where a part is missing.
        return ours.bytes.is_err();
    }
    match texts {
        // gdb assumes that registers are saved although callees may have changed them.
        false if text.contains(" is not saved by the functions that were called") => true,
        // What both write alike.
        false
            if theirs.text.parse::<f64>().is_ok() || ["true", "false"].contains(&&*theirs.text) =>
        {
            same_type && same_words(text, &theirs.text)
        }
        false => text != "<optimized out>",
        true if OWN_WORDS.contains(&theirs.name.as_str()) => ours.bytes.is_ok(),
        true => same_type && same_words(&plain(text), &plain(&theirs.text)),
    }
}

/// Equal, word by word; numbers are compared as such, since ours have only as many digits as needed.
fn same_words(ours: &str, theirs: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let separated = text.split([' ', ',', '{', '}', '(', ')']);
        separated
            .filter(|w| !w.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (ours, theirs) = (words(ours), words(theirs));
    // gdb prints up to nine digits of a float, up to seventeen of a double.
    let mantissa = |text: &str| {
        text.split('e')
            .next()
            .unwrap_or_default()
            .bytes()
            .filter(u8::is_ascii_digit)
            .count()
    };
    let of_float = |text: &str| mantissa(text) <= 10;
    let close = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x == y || of_float(a) && of_float(b) && x as f32 == y as f32,
        _ => false,
    };
    let same = |(a, b): (&String, &String)| a == b || a.contains(['.', 'e']) && close(a, b);
    ours.len() == theirs.len() && ours.iter().zip(&theirs).all(same)
}

fn judged(compiler: &str, source: &str, options: &[&str], globals: &str, at_least: usize) {
    let bench = Bench::new();
    let name = format!("{source}{}", options.concat().replace('/', ""));
    let path = bench.compile(compiler, &program(source), &name, options);
    let stops = stops(&bench, &path, &name, globals);
    let (all, known) = compare(&path, &stops, compiler != "rustc");
    assert!(known >= at_least, "{name}: {known} of {all} had a value");
}

const C_GLOBALS: &str = "global_number global_text global_points thread_number thread_point";
const CPP_GLOBALS: &str = "counter ns::counter ns::Derived::count";

#[test]
fn c_is_as_gdb_sees_it() {
    judged("gcc", "values.c", &["-g", "-O0"], C_GLOBALS, 60);
    judged(
        "gcc",
        "values.c",
        &["-g", "-O0", "-gdwarf-4"],
        C_GLOBALS,
        60,
    );
}

#[test]
fn optimised_c_is_as_gdb_sees_it() {
    judged("gcc", "values.c", &["-g", "-O2"], C_GLOBALS, 40);
    judged(
        "gcc",
        "values.c",
        &["-g", "-O1", "-gdwarf-4"],
        C_GLOBALS,
        40,
    );
}

#[test]
fn cpp_is_as_gdb_sees_it() {
    judged("g++", "values.cpp", &["-g", "-O0"], CPP_GLOBALS, 20);
    judged("g++", "values.cpp", &["-g", "-O2"], CPP_GLOBALS, 10);
}

/// Types are in units of their own, and are found from the variables by their signatures.
#[test]
fn types_in_units_of_their_own_are_as_gdb_sees_them() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let options = ["-g", "-O0", version, "-fdebug-types-section"];
        judged("g++", "values.cpp", &options, CPP_GLOBALS, 20);
    }
}

/// Variables and types are in a separate file, of which the program holds a skeleton. Thread-local variables are left out:
/// gdb does not know the operator by which split files name them.
#[test]
fn split_units_are_as_gdb_sees_them() {
    let globals: Vec<&str> = C_GLOBALS
        .split(' ')
        .filter(|name| !name.starts_with("thread_"))
        .collect();
    for (version, level) in [
        ("-gdwarf-5", "-O0"),
        ("-gdwarf-5", "-O2"),
        ("-gdwarf-4", "-O0"),
    ] {
        let options = ["-g", level, version, "-gsplit-dwarf"];
        let least = if level == "-O0" { 50 } else { 30 };
        judged("gcc", "values.c", &options, &globals.join(" "), least);
    }
    let options = ["-g", "-O0", "-gsplit-dwarf"];
    judged("g++", "values.cpp", &options, CPP_GLOBALS, 20);
}

#[test]
fn rust_is_shown_as_people_write_it() {
    let bench = Bench::new();
    let options = ["--edition=2024", "-g", "-Copt-level=0"];
    let path = bench.compile("rustc", &program("values.rs"), "rust", &options);
    let stops = stops(&bench, &path, "rust", "");
    let core = CoreFile::open(&stops[0].core);
    let thread = core.thread(stops[0].tid);
    let frames = backtrace(&core.space, &thread, 64).frames;
    let options = RenderOptions::default();
    let expected = [
        ("argument", "11"),
        ("text", r#""some \"text\"""#),
        ("slice", "[1, 2, 3]"),
        ("point", "Point { x: 11, y: -2 }"),
        ("pair", "Pair(3, 1.5)"),
        ("unit", "Unit"),
        ("tuple", "(1, 'c', true)"),
        ("some", "Some(5)"),
        ("none", "None"),
        ("niche", "Some(&11)"),
        ("no_niche", "None"),
        ("ok", "Ok(9)"),
        ("failed", r#"Err("bad")"#),
        ("plain", "Green"),
        ("empty", "Empty"),
        ("one", "One(200)"),
        ("named", "Named { a: -1, b: true }"),
        ("big", "Big(1267650600228229401496703205376)"),
        ("either", "{int = 1065353216, float = 1.0}"),
        ("generic", "Generic { item: Point { x: 11, y: -2 } }"),
        ("array", "[1, 2, 3]"),
        ("wide", "-1267650600228229401496703205376"),
        ("reference", "&Point { x: 11, y: -2 }"),
    ];
    at_frame(&core.space, &thread, &frames, 1, |site| {
        let variables = variables_at(site);
        for (name, text) in expected {
            let variable = variables.iter().find(|v| v.name == name);
            let value = variable.unwrap_or_else(|| panic!("no {name}")).read(site);
            assert_eq!(
                render(&value, &options, site.machine, site.space),
                text,
                "{name}"
            );
        }
        for (name, text) in [("GREETING", "\"hello\""), ("values::NUMBERS", "[1, 2, 3]")] {
            let value = global(site, name).expect("a static variable").read(site);
            assert_eq!(render(&value, &options, site.machine, site.space), text);
        }
    })
    .expect("the frame that called");
}

#[test]
fn rust_knows_what_gdb_knows() {
    judged(
        "rustc",
        "values.rs",
        &["--edition=2024", "-g", "-O"],
        "",
        10,
    );
}

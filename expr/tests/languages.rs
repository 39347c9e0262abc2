//! Goal: values equal what gdb shows in every language: arrays of Fortran and Ada, the less common numbers of C, C++'s
//! pointers to members.
//! Method: gdb stops a program, prints what it sees in the syntax of the language and writes a core file, on which the
//! same is evaluated. Words are compared without the signs around them.
//! Of several compilers or options each run takes a part; `WHOLE=1` all.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::share::in_turn;
use common::{Bench, program, run};
use core_file::CoreFile;
use debuginfo::location::at_frame;
use debuginfo::value::Look;
use debuginfo::{AddressSpace, Machine, backtrace};
use expr::Context;
use values::{RenderOptions, render};

/// What to ask gdb apart from variables, and where.
struct Questions {
    stop: &'static str,
    frames: usize,
    expressions: &'static [&'static str],
}

struct Frame {
    level: usize,
    variables: Vec<(String, String)>,
}

fn seen_by_gdb(bench: &Bench, path: &Path, questions: &Questions) -> (PathBuf, u32, Vec<Frame>) {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x"])
        .arg(program("languages.py"))
        .arg(path);
    gdb.env("CORES", bench.dir()).env("NAME", "stopped");
    gdb.env("BREAK", questions.stop)
        .env("FRAMES", questions.frames.to_string())
        .env("ASK", questions.expressions.join(";"));
    let output = run(gdb.env("LC_ALL", "C.UTF-8"));
    let (mut stop, mut frames) = (None, Vec::new());
    for line in output.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["STOP", core, tid] => stop = Some((PathBuf::from(core), tid.parse().unwrap())),
            ["FRAME", level, _] => frames.push(Frame {
                level: level.parse().unwrap(),
                variables: Vec::new(),
            }),
            ["VAR", name, text] => {
                let frame: &mut Frame = frames.last_mut().expect("a frame comes first");
                frame.variables.push((name.to_owned(), text.to_owned()));
            }
            _ => {}
        }
    }
    let (core, tid) = stop.unwrap_or_else(|| panic!("gdb said:\n{output}"));
    (core, tid, frames)
}

/// Returns the words of a value: numbers, names and strings, without signs between them.
fn words(text: &str) -> Vec<String> {
    let text = text.replace(".TRUE.", "true").replace(".FALSE.", "false");
    let signs = [' ', ',', '{', '}', '(', ')', '\'', '"', '='];
    let mut words: Vec<String> = text
        .split(signs)
        .filter(|word| !word.is_empty() && *word != "+")
        .map(|word| {
            let imaginary = word.strip_suffix('i').filter(|w| w.parse::<f64>().is_ok());
            imaginary.unwrap_or(word).to_owned()
        })
        .collect();
    // Ada names the index of the first element if it is not the default.
    while let Some(at) = words.iter().position(|word| word == ">") {
        words.remove(at);
        if at > 0 && words[at - 1].parse::<i64>().is_ok() {
            words.remove(at - 1);
        }
    }
    words
}

/// Returns the text without what gdb adds to a pointer to a function that is a member: its type before the address, and
/// the function's parameters.
fn without_signature(theirs: &str) -> String {
    let Some((_, address)) = theirs.rsplit_once(") 0x") else {
        return theirs.to_owned();
    };
    let (name, rest) = address.split_once('>').unwrap_or((address, ""));
    let name = name.split_once('(').map_or(name, |(name, _)| name);
    format!("0x{name}>{rest}")
}

/// Equal, or numbers of which ours is as short as possible.
fn same(ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (words(ours), words(theirs));
    let close = |(a, b): (&String, &String)| {
        let digits = |word: &str| word.trim_start_matches(['-', '0', '.']).len();
        a == b
            || match (a.parse::<f64>(), b.parse::<f64>()) {
                (Ok(x), Ok(y)) => x == y && (digits(a) >= 17 || digits(b) <= 17),
                _ => false,
            }
    };
    ours.len() == theirs.len() && ours.iter().zip(&theirs).all(close)
}

fn evaluated(text: &str, context: &Context<'_>) -> String {
    let parsed = match expr::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => return format!("<error: {}>", error.one_line()),
    };
    match expr::evaluate(&parsed, context) {
        Ok(value) => render(
            &value,
            &RenderOptions::default(),
            context.machine,
            context.space,
        ),
        Err(error) => format!("<error: {}>", error.one_line()),
    }
}

/// A variable or an expression of a frame.
struct Both {
    level: usize,
    name: String,
    ours: String,
    theirs: String,
}

/// Returns what both show, of the variables of all frames and of the expressions.
fn both(bench: &Bench, path: &Path, questions: &Questions) -> Vec<Both> {
    let (core, tid, frames) = seen_by_gdb(bench, path, questions);
    let core = CoreFile::open(&core);
    let thread = core.thread(tid);
    let found = backtrace(&core.space, &thread, 64).frames;
    let of_frame = |frame: &Frame| {
        let context = Context::new(&core.space, &thread, &found, frame.level);
        let named = frame.variables.iter().filter(|(name, _)| !name.is_empty());
        let both = named.map(|(name, theirs)| Both {
            level: frame.level,
            name: name.clone(),
            ours: evaluated(&name.replace('%', "."), &context),
            theirs: theirs.clone(),
        });
        both.collect::<Vec<_>>()
    };
    frames.iter().flat_map(of_frame).collect()
}

/// Compares what both show. `own` has the correct results for expressions that gdb gets wrong or does not know.
fn judged(bench: &Bench, path: &Path, questions: &Questions, own: &[(&str, &str)], least: usize) {
    let all = both(bench, path, questions);
    let is_right = |one: &Both| match own.iter().find(|(name, _)| *name == one.name) {
        Some((_, expected)) => one.ours == *expected,
        None => same(&one.ours, &without_signature(&one.theirs)),
    };
    let wrong: Vec<String> = all.iter().filter(|one| !is_right(one)).map(told).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all.len() >= least, "only {}", all.len());
}

/// Tells that both differ.
fn told(one: &Both) -> String {
    let Both {
        name, ours, theirs, ..
    } = one;
    format!("{name}:\n  {ours}\nand not\n  {theirs}")
}

const FORTRAN: Questions = Questions {
    stop: "arrays::stop_here",
    frames: 2,
    expressions: &[
        "al(2)",
        "mat(2,1)",
        "mat(1,2)",
        "low(-1)",
        "low(1)",
        "cube(2,3,1)",
        "cube(1,2,2)",
        "grid(1,-1)",
        "grid(0,1)",
        "ptr(3)",
        "names(2)",
        "pts(2)%y",
        "pts(2)%tag",
        "pts(2)%marks",
        "q*3",
        "konst",
        "konst + 1",
        "egreen",
    ],
};

#[test]
fn fortran_is_as_gdb_sees_it() {
    let own = [
        // gdb uses the first element's array for all elements.
        (
            "pts",
            "{{x = 1, y = 2, tag = \"abcd\", marks = <not allocated>}, \
             {x = 3, y = 4, tag = \"wxyz\", marks = {40, 50, 60}}}",
        ),
        ("pts(2)%marks", "{40, 50, 60}"),
        ("q*3", "2"),
        ("i", "<optimized out>"),
    ];
    for options in [&["-g", "-O0"][..], &["-g", "-O0", "-gdwarf-4"]] {
        let bench = Bench::new();
        let name = options.concat();
        let path = bench.compile("gfortran", &program("arrays.f90"), &name, options);
        judged(&bench, &path, &FORTRAN, &own, 41);
    }
}

fn is_known(said: &str) -> bool {
    let unknown = ["<unknown", "<optimized", "<error", "<synthetic"];
    !unknown.iter().any(|no| said.contains(no))
}

#[test]
fn optimised_fortran_is_the_same_or_unknown() {
    let bench = Bench::new();
    let answers = |level: &str| {
        let options = ["-g", level, "-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra"];
        let path = bench.compile("gfortran", &program("arrays.f90"), level, &options);
        let all = both(&bench, &path, &FORTRAN).into_iter();
        all.map(|both| ((both.level, both.name), both.ours))
            .collect::<BTreeMap<_, _>>()
    };
    let right = answers("-O0");
    for level in in_turn(["-O1", "-O2"]) {
        let (mut wrong, mut known) = (Vec::new(), 0);
        for ((frame, name), said) in answers(level) {
            let Some(right) = right.get(&(frame, name.clone())) else {
                continue;
            };
            let is_known = is_known(&said);
            known += usize::from(is_known && said == *right);
            let lies = ["no object address", "has no elements"]
                .iter()
                .any(|no| said.contains(no));
            if lies || is_known && said != *right {
                wrong.push(format!("{level}: {name} = {said}, and not {right}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(known >= 12, "only {known} of {level}");
    }
}

const ADA: Questions = Questions {
    stop: "arrays.stop_here",
    frames: 2,
    expressions: &[
        "mx(2,1)", "mx(1,3)", "neg(-1)", "neg(1)", "bc(1)", "pb(3)", "pb(1)", "nb(5)", "dyn(4)",
        "r2.ch", "r3.f", "fx + 1.0",
    ],
};

/// Builds the Ada program.
fn arrays_in_ada(bench: &Bench, level: &str) -> PathBuf {
    std::fs::copy(program("arrays.adb"), bench.path("arrays.adb")).unwrap();
    let mut gnatmake = Command::new("gnatmake");
    gnatmake.args(["-q", "-g", level, "arrays.adb"]);
    run(gnatmake.current_dir(bench.dir()));
    bench.path("arrays")
}

#[test]
fn ada_is_as_gdb_sees_it() {
    let bench = Bench::new();
    let path = arrays_in_ada(&bench, "-O0");
    judged(&bench, &path, &ADA, &[], 33);
}

#[test]
fn optimised_ada_is_as_gdb_sees_it_or_unknown() {
    for level in in_turn(["-O1", "-O2"]) {
        let bench = Bench::new();
        let path = arrays_in_ada(&bench, level);
        let (mut wrong, mut alike) = (Vec::new(), 0);
        let all = both(&bench, &path, &ADA).into_iter();
        for one in all.filter(|both| is_known(&both.theirs)) {
            let is_alike = same(&one.ours, &one.theirs);
            alike += usize::from(is_alike);
            if !is_alike && is_known(&one.ours) {
                wrong.push(told(&one));
            }
        }
        assert!(wrong.is_empty(), "{level}: {}", wrong.join("\n"));
        assert!(alike >= 8, "only {alike} of {level}");
    }
}

#[test]
fn elements_that_are_not_there_are_refused() {
    let bench = Bench::new();
    let path = bench.compile("gfortran", &program("arrays.f90"), "f", &["-g"]);
    let (core, tid, _) = seen_by_gdb(&bench, &path, &FORTRAN);
    let core = CoreFile::open(&core);
    let thread = core.thread(tid);
    let frames = backtrace(&core.space, &thread, 64).frames;
    let context = Context::new(&core.space, &thread, &frames, 2);
    for (text, why) in [
        ("al(4)", "there is no element 4; its indexes are 1 to 3"),
        ("low(2)", "there is no element 2; its indexes are -1 to 1"),
        ("none(1)", "not allocated"),
    ] {
        let said = evaluated(text, &context);
        assert!(said.contains(why), "{text}: {said}");
    }
    at_frame(&core.space, &thread, &frames, 2, |site| {
        let listed: Vec<String> = children(site.space, site.machine, "low", site);
        assert_eq!(listed, ["[-1] = -1", "[0] = 0", "[1] = 1"]);
    })
    .expect("the main program's frame");
}

/// Returns the elements of a variable with their names.
fn children(
    space: &AddressSpace,
    machine: &dyn Machine,
    name: &str,
    site: &debuginfo::location::FrameContext<'_>,
) -> Vec<String> {
    let variables = debuginfo::scope::variables_at(site);
    let variable = variables.iter().find(|v| v.name == name).unwrap();
    let look = Look { space, machine };
    let options = RenderOptions::default();
    let all = values::children(&variable.read(site), &options, &look);
    let shown = all.iter();
    shown
        .map(|(name, value)| format!("{name} = {}", render(value, &options, machine, space)))
        .collect()
}

#[test]
fn numbers_of_all_formats_are_as_gdb_sees_them() {
    let questions = Questions {
        stop: "stop",
        frames: 1,
        expressions: &[
            "row[2][255]",
            "text[3]",
            "many[0]",
            "sizeof(text)",
            "held.value",
            "half + 1",
        ],
    };
    for options in [&["-g", "-O0"][..], &["-g", "-O0", "-gdwarf-4"]] {
        let bench = Bench::new();
        let path = bench.compile("gcc", &program("numbers.c"), &options.concat(), options);
        judged(&bench, &path, &questions, &[], 20);
    }
}

#[test]
fn long_double_may_be_of_another_format() {
    let questions = Questions {
        stop: "stop",
        frames: 1,
        expressions: &[],
    };
    // gdb ignores the option.
    let right = "0.6666666666666666666666666666666666";
    let own = [("long_double", right)];
    let bench = Bench::new();
    let options = ["-g", "-O0", "-mlong-double-128"];
    let path = bench.compile("gcc", &program("numbers.c"), "quad", &options);
    judged(&bench, &path, &questions, &own, 10);
}

#[test]
fn pointers_to_members_are_as_gdb_sees_them() {
    let questions = Questions {
        stop: "stop",
        frames: 1,
        expressions: &[
            "a == b",
            "same == b",
            "same != a",
            "v == p",
            "kept.call == v",
            "kept.field",
            "kept.call",
        ],
    };
    let own = [
        // gdb names the destructor of clang's programs here, and does not look into unnamed unions.
        ("inherited", "&virtual Base::go(int)"),
        ("in_union", "&Mid::whole"),
    ];
    for compiler in in_turn(["g++", "clang++"]) {
        let bench = Bench::new();
        let path = bench.compile(compiler, &program("members.cpp"), "members", &["-g", "-O0"]);
        judged(&bench, &path, &questions, &own, 25);
    }
}

//! Goal: peculiarities of a compiler, option or language are read as intended: the result is correct, or unknown with a
//! reason. Method: gdb stops a program and writes a core file, on which expressions are evaluated. The program's source
//! states the correct values.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use common::{Bench, function, open, program, run};
use core_file::CoreFile;
use debuginfo::{AddressSpace, Mapped, ParameterPlace, ValueKind, backtrace};
use expr::Context;
use values::{RenderOptions, render};

/// Stops at `place`, and again after each of `steps` further instructions.
fn stopped(bench: &Bench, path: &Path, place: &str, steps: usize) -> Vec<CoreFile> {
    let name = path.file_name().expect("it is a file").display();
    let core = |at: usize| bench.path(&format!("{name}.{at}.core"));
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "set breakpoint pending on", "-ex"]);
    gdb.arg(format!("break {place}")).args(["-ex", "run"]);
    for at in 0..=steps {
        gdb.arg("-ex").arg(format!("gcore {}", core(at).display()));
        gdb.args(["-ex", "stepi"]);
    }
    run(gdb.args(["-ex", "kill"]).arg(path));
    (0..=steps).map(|at| CoreFile::open(&core(at))).collect()
}

/// Returns the text of an expression's value in a frame.
fn said(core: &CoreFile, frame: usize, text: &str) -> String {
    let thread = core.thread(core.threads[0].tid);
    let frames = backtrace(&core.space, &thread, 64).frames;
    let context = Context {
        space: &core.space,
        machine: &thread,
        frames: &frames,
        index: frame,
        calls: None,
        kept: None,
    };
    let parsed = expr::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    match expr::evaluate(&parsed, &context) {
        Ok(value) => render(&value, &RenderOptions::default(), &thread, &core.space),
        Err(error) => format!("<error: {error}>"),
    }
}

fn is_known(said: &str) -> bool {
    !said.contains("<unknown") && !said.contains("<error") && !said.contains("<optimized out>")
}

fn all_say(core: &CoreFile, frame: usize, expected: &[(&str, &str)]) {
    let wrong: Vec<String> = expected
        .iter()
        .map(|(text, right)| (text, right, said(core, frame, text)))
        .filter(|(_, right, said)| said != *right)
        .map(|(text, right, said)| format!("{text}: {said} and not {right}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn thread_local_variables_of_split_units_are_where_the_linker_put_them() {
    let right = [
        ("first", "144"),
        ("second", "45"),
        ("list", "{7, 8, 9}"),
        ("inner", "47"),
    ];
    for compiler in ["gcc", "clang"] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let options = ["-g", version, "-gsplit-dwarf", "-O0"];
            let bench = Bench::new();
            let source = program("thread_local.c");
            let path = bench.compile(compiler, &source, "main", &options);
            all_say(&stopped(&bench, &path, "stop", 0)[0], 1, &right);

            let options = [&options[..], &["-shared", "-fPIC", "-DLIBRARY"]].concat();
            let library = bench.compile(compiler, &source, "libwork.so", &options);
            let user = "int work (int);\nint main (void) { return work (1) == 0; }\n";
            let user = bench.write("user.c", user);
            let library = library.to_str().expect("UTF-8");
            let path = bench.compile("gcc", &user, "user", &["-g", "-Wl,--no-as-needed", library]);
            all_say(&stopped(&bench, &path, "stop", 0)[0], 1, &right);
        }
    }
}

/// Returns the distance from a function's entry to the address where breakpoints stop.
fn prologue(path: &Path, name: &str) -> u64 {
    let space = AddressSpace::new(vec![Mapped {
        bias: 0,
        module: Arc::new(open(path)),
        number: 0,
        range: 0..u64::MAX,
        is_system: false,
    }]);
    let places = space.functions_matching(name);
    assert_eq!(places.len(), 1, "{name} of {}", path.display());
    places[0].after_prologue - places[0].entry
}

#[test]
fn prologues_of_split_units_end_where_those_of_whole_ones_do() {
    let bench = Bench::new();
    let source = program("realigned.c");
    for compiler in ["gcc", "clang"] {
        for frame in ["-fomit-frame-pointer", "-fno-omit-frame-pointer"] {
            let whole = ["-g", "-O0", frame];
            let whole = bench.compile(compiler, &source, "whole", &whole);
            let split = ["-g", "-O0", frame, "-gsplit-dwarf"];
            let split = bench.compile(compiler, &source, "split", &split);
            for name in ["plain", "aligned", "sized"] {
                let (whole, split) = (prologue(&whole, name), prologue(&split, name));
                assert_eq!(whole, split, "{name} of {compiler} {frame}");
            }
        }
    }
    let source =
        "#[inline(never)]\npub fn many(a: [u64; 40], b: u64) -> u64 {\n    a[b as usize] + b\n}\n
fn main() {\n    println!(\"{}\", many([1; 40], 2));\n}\n";
    let source = bench.write("split.rs", source);
    let build = |kind: &str| {
        let split = format!("split-debuginfo={kind}");
        bench.compile("rustc", &source, kind, &["-g", "-C", &split])
    };
    let whole = prologue(&build("off"), "split::many");
    assert!(whole > 0);
    for kind in ["packed", "unpacked"] {
        assert_eq!(prologue(&build(kind), "split::many"), whole, "{kind}");
    }
}

#[test]
fn nothing_is_wrong_while_a_frame_is_set_up() {
    let right = [
        ("a", "1"),
        ("b", "2"),
        ("f", "6"),
        ("g", "7"),
        ("h", "8"),
        ("ld", "9.5"),
    ];
    let builds: [(&str, &[&str]); 5] = [
        ("clang", &[]),
        ("clang", &["-mstackrealign"]),
        ("clang", &["-fomit-frame-pointer"]),
        ("gcc", &[]),
        ("gcc", &["-mstackrealign"]),
    ];
    for (compiler, own) in builds {
        let bench = Bench::new();
        let options = [&["-g", "-O0"], own].concat();
        let path = bench.compile(compiler, &program("realigned.c"), "main", &options);
        for name in ["plain", "aligned", "sized"] {
            let mut wrong = Vec::new();
            let in_body = &stopped(&bench, &path, name, 0)[0];
            all_say(in_body, 0, &right);
            let address = said(in_body, 0, "&local");
            let at_entry = stopped(&bench, &path, &format!("*{name}"), 8);
            for (at, core) in at_entry.iter().enumerate() {
                for (variable, right) in right {
                    let said = said(core, 0, variable);
                    if said != right && is_known(&said) {
                        wrong.push(format!("{name}, {at} steps: {variable} = {said}"));
                    }
                }
                let local = said(core, 0, "&local");
                if is_known(&local) && local != address {
                    wrong.push(format!(
                        "{name}, {at} steps: &local = {local}, not {address}"
                    ));
                }
            }
            assert!(
                wrong.is_empty(),
                "{compiler} {own:?}:\n{}",
                wrong.join("\n")
            );
            all_say(&at_entry[0], 0, &[("g", "7"), ("h", "8"), ("ld", "9.5")]);
        }
    }
}

#[test]
fn packed_numbers_of_ada_have_a_sign_if_their_ranges_do() {
    let bench = Bench::new();
    std::fs::copy(program("packed.adb"), bench.path("packed.adb")).unwrap();
    let mut gnatmake = Command::new("gnatmake");
    gnatmake.args(["-q", "-g", "-O0", "packed.adb"]);
    run(gnatmake.current_dir(bench.dir()));
    let core = &stopped(&bench, &bench.path("packed"), "packed.stop_here", 0)[0];
    all_say(
        core,
        1,
        &[
            ("v", "{5, 6, 7, 1}"),
            ("v(2)", "6"),
            ("x.a", "5"),
            ("x.b", "-3"),
            ("x.c", "200"),
            ("s", "6"),
            ("s - 10", "-4"),
            ("y", "{10, 20, 30}"),
            ("y(1)", "10"),
            ("y(16)", "20"),
            ("y(77)", "30"),
            ("z(16)", "21"),
            ("z(77)", "31"),
        ],
    );
    let none = said(core, 1, "y(2)");
    assert!(none.contains("no element has the number 2"), "{none}");
    assert!(!is_known(&said(core, 1, "z(1)")));
    let biased = said(core, 1, "nn");
    assert!(!is_known(&biased) || biased == "-150", "{biased}");
}

#[test]
fn decimal_numbers_are_no_binary_ones() {
    let bench = Bench::new();
    for level in ["-O0", "-O2"] {
        let path = bench.compile("gcc", &program("decimals.c"), "decimals", &["-g", level]);
        let module = open(&path);
        let take = function(&module, "take");
        let found: Vec<_> = take
            .params
            .iter()
            .map(|p| (p.kind.clone(), p.place))
            .collect();
        let expected = [
            (ValueKind::Struct { bytes: 8 }, ParameterPlace::Sse(0)),
            (ValueKind::Struct { bytes: 4 }, ParameterPlace::Sse(1)),
            (ValueKind::Struct { bytes: 16 }, ParameterPlace::Sse(2)),
            (ValueKind::Float { bytes: 8 }, ParameterPlace::Sse(3)),
        ];
        assert_eq!(found, expected);
        assert_eq!(take.ret, ValueKind::Struct { bytes: 8 });
    }
}

#[test]
fn constants_have_a_sign_only_if_one_is_written() {
    for compiler in ["g++", "clang++"] {
        for level in ["-O0", "-O2"] {
            let bench = Bench::new();
            let path = bench.compile(compiler, &program("constants.cpp"), "main", &["-g", level]);
            let module = open(&path);
            let stop = function(&module, "stop");
            for (param, wanted) in
                stop.params
                    .iter()
                    .zip([(200, "HIGH"), (200, "MANY"), (128, "TOP")])
            {
                let ValueKind::Enum { names, .. } = &param.kind else {
                    panic!("{:?}", param.kind);
                };
                let is_named = |(value, name): &(i64, String)| (*value, &**name) == wanted;
                assert!(names.iter().any(is_named), "{compiler}: {names:?}");
            }
            let core = &stopped(&bench, &path, "stop", 0)[0];
            let wanted = [("p", "HIGH"), ("s", "MANY"), ("t", "TOP")];
            all_say(core, 0, &wanted);
            all_say(
                core,
                1,
                &[("constant", "200"), ("byte + 0", "254"), ("negative", "-3")],
            );
        }
    }
}

#[test]
fn callers_tell_floating_point_arguments_too() {
    for level in ["-Og", "-O2"] {
        let bench = Bench::new();
        let options = ["-g", level, "-fno-inline", "-fno-ipa-cp", "-fno-ipa-ra"];
        let path = bench.compile("gcc", &program("passed_floats.c"), "main", &options);
        let core = &stopped(&bench, &path, "stop", 0)[0];
        for frame in [1, 2] {
            all_say(core, frame, &[("x", "1.25"), ("y", "2.5"), ("n", "7")]);
        }
        all_say(core, 3, &[("x", "1.25")]);
    }
}

#[test]
fn texts_of_the_library_are_read_where_clang_only_declares_their_holder() {
    for compiler in ["g++", "clang++"] {
        let bench = Bench::new();
        let source = program("strings.cpp");
        let path = bench.compile(compiler, &source, "main", &["-g", "-O0", "-std=c++17"]);
        let core = &stopped(&bench, &path, "stop", 0)[0];
        let long = format!("\"{}\"", "x".repeat(40));
        all_say(core, 0, &[("s", "\"few\""), ("v", &long)]);

        let source = program("declared.cpp");
        let path = bench.compile(compiler, &source, "declared", &["-g", "-O0", "-std=c++17"]);
        let core = &stopped(&bench, &path, "stop", 0)[0];
        for (text, right) in [("text", "\"only\""), ("text[0]", "111"), ("s[3]", "121")] {
            let said = said(core, 0, text);
            assert!(
                said.starts_with(right) || said.contains("only declared"),
                "{said}"
            );
        }
    }
}

#[test]
fn what_one_module_only_declares_has_the_type_that_another_one_defines() {
    let bench = Bench::new();
    let library = "struct held { int n; long m; } held = {3, 4};\nint many[] = {5, 6};\n
int sum (void) { return held.n + many[1]; }\n";
    let library = bench.write("library.c", library);
    let options = ["-g", "-O0", "-shared", "-fPIC"];
    let library = bench.compile("gcc", &library, "libheld.so", &options);
    let user = "extern struct held held;\nextern int many[];\nint sum (void);\n
void stop (void *p, int *q) {}\nint main (void) { stop (&held, many); return sum () == 0; }\n";
    let user = bench.write("user.c", user);
    let library = library.to_str().expect("UTF-8");
    for level in ["-O0", "-O2"] {
        for place in ["-fPIE", "-fPIC"] {
            let path = bench.compile(
                "gcc",
                &user,
                "user",
                &["-g", level, place, "-Wl,--no-as-needed", library],
            );
            let core = &stopped(&bench, &path, "sum", 0)[0];
            all_say(
                core,
                1,
                &[
                    ("held", "{n = 3, m = 4}"),
                    ("held.m", "4"),
                    ("many", "{5, 6}"),
                ],
            );
        }
    }
}

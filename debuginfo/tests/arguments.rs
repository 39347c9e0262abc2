//! Goal: a parameter's place is where the callee receives it, and a result's place is where the caller finds it.
//! Method: the programs print every value just before they pass it. gdb stops at the callee's first instruction and
//! after its return. The registers and stack bytes at the stated places must equal the printed values. Each run takes a third of
//! the builds in C and C++; `WHOLE=1` all.

mod common;

use std::path::Path;

use common::observed::{compare, observe, summaries_agree};
use common::share::in_turn;
use common::{Bench, function, open, program};
use debuginfo::{Module, ParameterPlace, RetPlace, RetReg, ValueKind};

/// Functions of the C program that optimisers may change.
const CHANGED: [&str; 3] = ["changed", "pure_unused", "ignored_result"];
/// Older versions of DWARF cannot state that a type is aligned to 32 bytes.
const OVERALIGNED: [&str; 1] = ["pass_wide"];

fn check(path: &Path, lenient: &[&str], at_least: usize) {
    let module = open(path);
    let main = module.symbols().into_iter().find(|s| s.linkage == "main");
    let main = main.expect("every program has a main").svma.0;
    let observed = observe(path, &module, main);
    let compared = compare(&module, &observed, lenient);
    assert!(compared >= at_least, "only {compared} values compared");
    summaries_agree(&module.functions().list);
}

fn c(options: &[&str], lenient: &[&str]) {
    let bench = Bench::new();
    let options = [&["-g", "-w", "-Wno-psabi"], options].concat();
    let path = bench.compile("gcc", &program("arguments.c"), "arguments", &options);
    check(&path, lenient, 150);
}

/// Without optimisation, in old versions of DWARF, and with changed signatures: optimised at once or when it is linked.
#[test]
fn arguments_of_c() {
    for (options, lenient) in in_turn([
        (&["-O0"][..], &[][..]),
        (&["-O0", "-gdwarf-2", "-gstrict-dwarf"], &OVERALIGNED),
        (&["-O2"], &CHANGED),
        (&["-O0", "-gdwarf-3", "-gstrict-dwarf"], &OVERALIGNED),
        (&["-O1", "-gdwarf-4", "-no-pie"], &CHANGED),
        (&["-O2", "-flto", "-no-pie"], &CHANGED),
    ]) {
        c(options, lenient);
    }
}

fn cxx(options: &[&str], lenient: &[&str]) {
    let bench = Bench::new();
    let options = [&["-g", "-w"], options].concat();
    let path = bench.compile("g++", &program("arguments.cpp"), "arguments", &options);
    check(&path, lenient, 80);
}

/// A constructor whose hidden parameter the optimiser removes.
const CXX_CHANGED: [&str; 1] = ["_ZN6shapes4LeftC2Eid"];

/// Functions that pass classes with a destructor, a copy or a move constructor. These versions do not state whether the
/// programmer wrote it, which decides how the class is passed.
const UNCLEAR: [&str; 5] = [
    "shapes::pass_destructor",
    "shapes::pass_copy",
    "shapes::pass_defaulted",
    "pass_unique",
    "pass_vector",
];

/// DWARF 4 tells trivial classes by their members; others have units of types, are optimised at once or when they are linked, or are
/// written in a strict version.
#[test]
fn arguments_of_cxx() {
    let both = [&CXX_CHANGED[..], &UNCLEAR].concat();
    for (options, lenient) in in_turn([
        (&["-O0"][..], &[][..]),
        (&["-O1", "-gdwarf-4", "-fdebug-types-section"], &[]),
        (&["-O2"], &CXX_CHANGED),
        (&["-O2", "-gdwarf-4", "-no-pie"], &CXX_CHANGED),
        (&["-O0", "-gdwarf-4"], &[]),
        (&["-O1", "-gdwarf-5", "-fdebug-types-section"], &[]),
        (&["-O1", "-flto", "-gdwarf-4"], &CXX_CHANGED),
        (&["-O2", "-flto", "-gdwarf-5"], &CXX_CHANGED),
        (&["-O0", "-gdwarf-4", "-gstrict-dwarf"], &UNCLEAR),
        (&["-O0", "-gdwarf-3", "-gstrict-dwarf"], &UNCLEAR),
        (&["-O2", "-gdwarf-4", "-gstrict-dwarf"], &both),
        (&["-O2", "-gdwarf-2", "-gstrict-dwarf"], &both),
    ]) {
        cxx(options, lenient);
    }
}

fn classes(options: &[&str], lenient: &[&str]) {
    let bench = Bench::new();
    let options = [&["-g", "-w", "-std=c++17"], options].concat();
    let path = bench.compile("g++", &program("classes.cpp"), "classes", &options);
    check(&path, lenient, 25);
}

/// The debug information lacks default arguments, which can make a constructor a copy constructor.
const COPIES_MORE: [&str; 1] = ["pass_copies_more"];

/// Functions that pass classes with a declared destructor, copy or move constructor.
const UNCLEAR_CLASSES: [&str; 13] = [
    "pass_view",
    "pass_duration",
    "pass_tuple",
    "pass_optional",
    "pass_shared",
    "pass_copies_template",
    "pass_copies_mutable",
    "pass_copies_more",
    "pass_moves_only",
    "pass_nested",
    "pass_volatile",
    "pass_union",
    "pass_function",
];

#[test]
fn classes_of_all_kinds() {
    for (options, lenient) in in_turn([
        (&["-O0"][..], &COPIES_MORE[..]),
        (&["-O2", "-gdwarf-4"], &COPIES_MORE),
        (&["-O2"], &COPIES_MORE),
        (&["-O2", "-gdwarf-3", "-gstrict-dwarf"], &UNCLEAR_CLASSES),
        (&["-O0", "-gdwarf-4", "-gstrict-dwarf"], &UNCLEAR_CLASSES),
        (&["-O0", "-gdwarf-4", "-fdebug-types-section"], &COPIES_MORE),
    ]) {
        classes(options, lenient);
    }
}

fn rust(options: &[&str], lenient: &[&str], at_least: usize) {
    let bench = Bench::new();
    let options = [&["--edition=2024", "-g", "-Cpanic=abort"], options].concat();
    let path = bench.compile("rustc", &program("arguments.rs"), "arguments", &options);
    check(&path, lenient, at_least);
}

/// The result is in two registers. The second one holds the part from byte 4 on.
const SPLIT_EARLY: [&str; 1] = ["arguments::pair"];

#[test]
fn rust_without_optimisation() {
    rust(&["-Copt-level=0"], &SPLIT_EARLY, 20);
}

/// Functions that only their own crate calls. The optimiser marks that it changed how they are called.
const RUST_CHANGED: [&str; 8] = [
    "arguments::residual",
    "arguments::again",
    "arguments::wide",
    "arguments::slice",
    "arguments::pair",
    "arguments::array",
    "arguments::option",
    "arguments::big",
];

#[test]
fn rust_optimised_is_never_wrong() {
    let options = ["-Copt-level=3", "-Csymbol-mangling-version=v0"];
    rust(&options, &RUST_CHANGED, 2);
}

/// Returns the places of a function's parameters, and that of its result.
fn places(module: &Module, name: &str) -> (Vec<ParameterPlace>, RetPlace) {
    let function = function(module, name);
    assert!(function.params_known, "{function:?}");
    let places = function.params.iter().map(|param| param.place);
    (places.collect(), function.ret_place)
}

/// Removed parameters have no place, and those that follow have moved up, but for functions that others call.
#[test]
fn parameters_that_clang_removed_are_nowhere() {
    use ParameterPlace::{Int, Removed};
    let bench = Bench::new();
    let path = bench.compile("clang", &program("removed.c"), "removed", &["-g", "-O2"]);
    let module = open(&path);
    let rax = RetPlace::Regs(RetReg::Rax, None);
    let constant = places(&module, "constant");
    assert_eq!(
        constant,
        (vec![Int(0), Removed, Removed], RetPlace::Unknown)
    );
    let unused = places(&module, "unused");
    assert_eq!(unused, (vec![Int(0), Removed, Int(1)], RetPlace::Unknown));
    let exported = places(&module, "exported");
    assert_eq!(exported, (vec![Int(0), Removed, Int(2)], rax));
    let all = places(&module, "all");
    assert_eq!(all, (vec![Int(0), Int(1), Int(2)], rax));
    // Without optimisation all are passed.
    let path = bench.compile("clang", &program("removed.c"), "whole", &["-g", "-O0"]);
    let module = open(&path);
    for name in ["constant", "unused", "exported", "all"] {
        let whole = (vec![Int(0), Int(1), Int(2)], rax);
        assert_eq!(places(&module, name), whole, "{name}");
    }
}

/// clang's callers leave anything in the register of a half that is not used, and before version 18 it splits `__int128`
/// between the last register and the stack.
#[test]
fn halves_that_clang_does_not_use_are_unknown() {
    use ParameterPlace::{Int, Removed};
    let bench = Bench::new();
    let path = bench.compile("clang", &program("halves.c"), "halves", &["-g", "-O1"]);
    let module = open(&path);
    for name in ["uses_first", "uses_second"] {
        assert_eq!(places(&module, name).0, [Removed, Int(2)], "{name}");
    }
    assert_eq!(places(&module, "uses_both").0, [Int(0), Int(2)]);
    let path = bench.compile("clang", &program("halves.c"), "wide", &["-g", "-O0"]);
    let module = open(&path);
    let wide = function(&module, "wide")
        .params
        .iter()
        .map(|param| param.place);
    let wide: Vec<ParameterPlace> = wide.collect();
    assert_eq!(wide[..5], [Int(0), Int(1), Int(2), Int(3), Int(4)]);
    assert!(!wide[5..].contains(&Int(5)), "{wide:?}");
}

/// Of a local function, clang removes results that no caller uses, and halves of structures; what follows moves up.
#[test]
fn results_and_halves_that_clang_removed_are_unknown() {
    use ParameterPlace::{Int, Memory, Removed, Sse};
    let bench = Bench::new();
    let rax = RetPlace::Regs(RetReg::Rax, None);
    let xmm0 = RetPlace::Regs(RetReg::Xmm0, None);
    let both = RetPlace::Regs(RetReg::Rax, Some((RetReg::Rdx, 8)));
    let results = [
        ("ignored", RetPlace::Unknown, rax),
        ("taken", rax, rax),
        ("pointer", RetPlace::Unknown, rax),
        ("ignored_double", RetPlace::Unknown, xmm0),
        ("taken_double", xmm0, xmm0),
        ("ignored_long", RetPlace::Unknown, RetPlace::X87),
        ("taken_long", RetPlace::X87, RetPlace::X87),
        ("below", RetPlace::Unknown, rax),
        ("passes", RetPlace::Unknown, rax),
        ("below_used", rax, rax),
        ("passes_used", rax, rax),
        ("first_used", RetPlace::Unknown, both),
        ("second_used", RetPlace::Unknown, both),
        ("both_used", both, both),
        ("by_address", rax, rax),
        ("exported", rax, rax),
        ("part", RetPlace::Unknown, both),
        ("after_loop", rax, rax),
    ];
    let memory = |offset| Memory { offset };
    let whole: Vec<ParameterPlace> = (0..6).map(Int).chain([memory(8), memory(16)]).collect();
    for level in ["-O1", "-O2", "-O3"] {
        let options = ["-g", level];
        let path = bench.compile(
            "clang",
            &program("results.c"),
            &format!("results{level}"),
            &options,
        );
        let module = open(&path);
        for (name, place, _) in results {
            assert_eq!(function(&module, name).ret_place, place, "{name} {level}");
        }
        let of = |name| places(&module, name).0;
        assert_eq!(of("part"), [Removed, Int(1)], "{level}");
        assert_eq!(of("late"), [Removed, Int(1)], "{level}");
        assert_eq!(of("slope"), [Removed, Sse(1), Int(0)], "{level}");
        assert_eq!(of("many"), whole, "{level}");
    }
    let path = bench.compile(
        "clang",
        &program("results.c"),
        "unoptimised",
        &["-g", "-O0"],
    );
    let module = open(&path);
    for (name, _, place) in results {
        assert_eq!(function(&module, name).ret_place, place, "{name}");
    }
}

#[test]
fn parameters_that_rustc_removed_are_nowhere() {
    let bench = Bench::new();
    let options = ["--edition=2024", "-g", "-O"];
    let path = bench.compile("rustc", &program("removed.rs"), "removed", &options);
    let (places, _) = places(&open(&path), "removed::pick");
    assert_eq!(places, [ParameterPlace::Int(0), ParameterPlace::Removed]);
}

/// rustc describes the type of a function item as that of a pointer to a function. Items are not passed, and a result that is
/// one is in no register.
#[test]
fn rust_function_items_are_not_passed() {
    use ParameterPlace::{Empty, Int, Sse};
    let bench = Bench::new();
    let options = ["--edition=2024", "-g", "-Copt-level=0"];
    let path = bench.compile("rustc", &program("items.rs"), "items", &options);
    let module = open(&path);
    let rax = RetPlace::Regs(RetReg::Rax, None);
    let one = "<fn(i64) -> i64>";
    let two = "<fn(i64) -> i64, fn(i64) -> i64>";
    let expected = [
        ("pointer", "", vec![Int(0), Int(1), Int(2)], rax),
        ("pointers", one, vec![Int(0), Int(1), Int(2)], rax),
        ("first", one, vec![Empty, Int(0)], rax),
        ("middle", one, vec![Int(0), Empty, Int(1)], rax),
        ("last", two, vec![Int(0), Empty, Empty], rax),
        ("small", one, vec![Int(0), Int(1), Int(2), Empty], rax),
        ("mixed", two, vec![Int(0), Empty, Int(1)], rax),
        ("same", one, vec![Empty], RetPlace::None),
        ("back", one, vec![Int(0)], rax),
        ("whole", one, vec![Int(0), Int(2)], rax),
        ("float", one, vec![Sse(0), Int(0)], rax),
    ];
    for (name, generic, at, ret) in expected {
        let name = format!("items::{name}{generic}");
        assert_eq!(places(&module, &name), (at, ret), "{name}");
    }
    let whole = function(&module, &format!("items::whole{one}"));
    assert_eq!(whole.params[0].place2, Some(Int(1)));
    assert!(!whole.params[0].indirect);
}

#[test]
fn fortran_arrays_of_unknown_rank_or_shape_have_no_size() {
    let bench = Bench::new();
    let source = "
        module m
        contains
          subroutine any_rank(array, n)
            integer :: array(..), n
            n = rank(array)
          end subroutine
          subroutine any_shape(array, n)
            integer :: array(:), n
            n = size(array)
          end subroutine
          subroutine known_shape(array, n)
            integer :: array(3, 2), n
            n = array(1, 1)
          end subroutine
        end module";
    let source = bench.write("ranks.f90", source);
    let path = bench.compile("gfortran", &source, "ranks.so", &["-g", "-shared", "-fPIC"]);
    let module = open(&path);
    let functions = module.functions();
    for (name, bytes) in [("any_rank", 0), ("any_shape", 0), ("known_shape", 24)] {
        let function = functions.list.iter().find(|f| f.name.ends_with(name));
        let array = &function.expect("a function of the program").params[0];
        let found = (&array.kind, &array.place, array.indirect);
        let expected = (&ValueKind::Struct { bytes }, &ParameterPlace::Int(0), true);
        assert_eq!(found, expected, "{name}");
    }
}

const PACK: &str = "template <class... A> __attribute__((noinline)) int first(A... a, int last) {
  return (0 + ... + int(a)) + last;
}
int main(int n, char **) { return first<int, double>(n, 2.5, 77); }
";

/// GCC puts the parameters of a pack into a DIE of its own, without names. Clang gives all of them one name.
#[test]
fn a_parameter_behind_a_pack_is_in_its_own_register() {
    let bench = Bench::new();
    let source = bench.write("pack.cpp", PACK);
    for (compiler, names) in [("g++", ["", ""]), ("clang++", ["a", "a#1"])] {
        for level in ["-O0", "-O1"] {
            let options = ["-g", "-std=c++17", level];
            let path = bench.compile(compiler, &source, "pack", &options);
            let module = open(&path);
            let first = function(&module, "first<int, double>");
            let params = first.params.iter();
            let places: Vec<_> = params.map(|p| (p.name.as_str(), p.place)).collect();
            let expected = [
                (names[0], ParameterPlace::Int(0)),
                (names[1], ParameterPlace::Sse(0)),
                ("last", ParameterPlace::Int(1)),
            ];
            assert_eq!(places, expected, "{compiler} {level}");
        }
    }
}

//! Goal: peculiarities of a compiler, option or language are read as intended: the result is correct, or unknown with a
//! reason. Method: gdb stops a program and writes a core file, on which expressions are evaluated. The program's source
//! states the correct values. Of several compilers or options each run takes a part; `WHOLE=1` all.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;
#[path = "stopped/mod.rs"]
mod stopped;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use common::share::in_turn;
use common::{Bench, function, open, program, run};
use core_file::CoreFile;
use debuginfo::{AddressSpace, Mapped, ParameterPlace, ValueKind};
use stopped::{all_say, is_known, said, stopped};

#[test]
fn thread_local_variables_of_split_units_are_where_the_linker_put_them() {
    let right = [
        ("first", "144"),
        ("second", "45"),
        ("list", "{7, 8, 9}"),
        ("inner", "47"),
    ];
    for compiler in in_turn(["gcc", "clang"]) {
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
    for compiler in in_turn(["gcc", "clang"]) {
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
    for (compiler, own) in in_turn(builds) {
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
    for level in in_turn(["-O0", "-O2"]) {
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
    for compiler in in_turn(["g++", "clang++"]) {
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
    for level in in_turn(["-Og", "-O2"]) {
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
fn callers_tell_what_references_led_to_and_what_was_computed() {
    let bench = Bench::new();
    let options = [
        "-g",
        "-O2",
        "-fno-inline",
        "-fno-ipa-cp",
        "-fno-ipa-ra",
        "-fno-ipa-sra",
    ];
    let path = bench.compile("gfortran", &program("by_reference.f90"), "main", &options);
    let stops: [(&str, &[(&str, &str)]); 3] = [
        ("in_copy", &[("mine", "77"), ("twice", "154")]),
        ("in_computed", &[("b", "10")]),
        // The place of an element does not depend on the number of elements.
        ("by_reference::in_row", &[("x(1)", "5"), ("n", "4")]),
    ];
    for (place, expected) in stops {
        all_say(&stopped(&bench, &path, place, 0)[0], 1, expected);
    }
}

#[test]
fn a_reference_is_shown_as_its_target_even_if_no_pointer_to_it_exists() {
    const SOURCE: &str = "static volatile long sink;
__attribute__((noinline, noclone)) void stop (int z) { sink += z; }
struct P { int a, b; };
static inline int sq (const int &v, const P *pp) { stop (v); return v * v + pp->a; }
__attribute__((noinline, noclone)) int outer (int k) { P loc{k, 7}; int v = k * 3; return sq (v, &loc) + k; }
int main (int argc, char **) { return outer (argc + 4) == 0; }
";
    let bench = Bench::new();
    let source = bench.write("names.cpp", SOURCE);
    let path = bench.compile("g++", &source, "names", &["-g", "-O2", "-fno-ipa-ra"]);
    let core = &stopped(&bench, &path, "stop", 0)[0];
    let expected = [("v", "15"), ("v + 1", "16"), ("*pp", "{a = 5, b = 7}")];
    all_say(core, 1, &expected);
}

#[test]
fn texts_in_an_array_have_the_length_that_the_caller_passed() {
    const SOURCE: &str = "module m
contains
 subroutine stop (x) bind(c)
  integer, value :: x
  print *, x
 end subroutine
 subroutine words (s, u, n)
  integer, intent(in) :: n
  character(len=*), intent(in) :: s(*)
  character(len=*), intent(in) :: u(n)
  call stop (len (s))
  print *, s(1), u(1)
 end subroutine
end module
program p
 use m
 character(len=5) :: w(3)
 character(len=2) :: q(2)
 w = ['alpha', 'bravo', 'charl']
 q = ['ab', 'cd']
 call words (w, q, 2)
end program
";
    let bench = Bench::new();
    let source = bench.write("texts.f90", SOURCE);
    let path = bench.compile("gfortran", &source, "texts", &["-g", "-O0"]);
    let core = &stopped(&bench, &path, "stop", 0)[0];
    let expected = [
        ("s(1)", "\"alpha\""),
        ("s(2)", "\"bravo\""),
        ("s(3)", "\"charl\""),
        ("u(2)", "\"cd\""),
    ];
    all_say(core, 1, &expected);
    // gdb does not know how many there are either.
    let all = said(core, 1, "s");
    assert!(all.contains("ARRAY[1..9] shows 8 elements"), "{all}");
}

#[test]
fn access_values_of_ada_lead_to_what_they_designate() {
    let bench = Bench::new();
    std::fs::copy(program("accesses.adb"), bench.path("accesses.adb")).unwrap();
    let mut gnatmake = Command::new("gnatmake");
    gnatmake.args(["-q", "-g", "-O0", "accesses.adb"]);
    run(gnatmake.current_dir(bench.dir()));
    let core = &stopped(&bench, &bench.path("accesses"), "accesses.stop_here", 0)[0];
    // Their bounds are variables of the frame.
    all_say(
        core,
        1,
        &[
            ("local", "{4, 4, 4, 4}"),
            ("local(2)", "4"),
            ("words", "\"hello!\""),
            ("renamed", "{30, 40, 50}"),
            ("renamed(4)", "40"),
        ],
    );
    all_say(
        core,
        2,
        &[
            ("f.all", "{30, 40, 50}"),
            ("f.all(5)", "50"),
            ("f(4)", "40"),
            ("*f", "{30, 40, 50}"),
            ("t.all", "{7, 8, 9}"),
            ("t.all(2)", "8"),
            ("t(3)", "9"),
            ("s.all", "\"hello\""),
            ("p.all", "{1, 2, 3, 4, 5}"),
            ("p(2)", "2"),
            ("l.all.value", "1"),
            ("l.next.all", "{value = 2, next = 0x0}"),
            ("nothing", "0x0"),
        ],
    );
    let nothing = said(core, 2, "nothing.all");
    assert!(nothing.contains("the pointer is null"), "{nothing}");
}

#[test]
fn texts_of_the_library_are_read_where_clang_only_declares_their_holder() {
    for compiler in in_turn(["g++", "clang++"]) {
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
    for level in in_turn(["-O0", "-O2"]) {
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

#[test]
fn variables_that_the_linker_removed_have_no_value() {
    const SOURCE: &str = "#include <stdio.h>
int dropped_table[4] = {11, 22, 33, 44};
int dropped_count = 77;
int kept = 5;
static int twice = 6;
__attribute__((noinline)) int dropped_fn(int i) { dropped_count++; return dropped_table[i & 3] + twice; }
__attribute__((noinline)) int used(int i) { return i + kept; }
int main(int argc, char **argv) { printf(\"%d\\n\", used(argc)); return 0; }
";
    let bench = Bench::new();
    let source = bench.write("gc.c", SOURCE);
    let other = "static int twice = 8; int *other (void) { return &twice; }";
    let other = bench.write("other.c", other);
    let other = other.to_str().expect("UTF-8");
    let removed = "<unknown: the linker removed it, because nothing in the program uses it>";
    let common = [
        "-ffunction-sections",
        "-fdata-sections",
        "-Wl,--gc-sections",
    ];
    let ways: [&[&str]; 5] = [
        &["-g"],
        &["-g", "-no-pie"],
        &["-g", "-gdwarf-4", "-gsplit-dwarf"],
        &["-g", "-gsplit-dwarf", "-no-pie"],
        &["-g", "-fuse-ld=gold"],
    ];
    for compiler in in_turn(["gcc", "clang"]) {
        for way in in_turn(ways) {
            let options = [&common[..], way].concat();
            let path = bench.compile(compiler, &source, "gc", &options);
            let expected = [
                ("kept", "5"),
                ("dropped_count", removed),
                ("dropped_table", removed),
                ("dropped_table[1]", removed),
                ("twice", removed),
            ];
            all_say(&stopped(&bench, &path, "used", 0)[0], 0, &expected);
        }
        // Another variable of that name remains.
        let keep = "-Wl,--undefined=other";
        let options = [&common[..], &["-g", keep, other]].concat();
        let path = bench.compile(compiler, &source, "gc2", &options);
        let core = &stopped(&bench, &path, "used", 0)[0];
        all_say(core, 0, &[("twice", "8"), ("'other.c'::twice", "8")]);
    }
}

#[test]
fn a_thread_has_no_storage_of_a_library_whose_number_another_one_had() {
    const PLUG: &str = "static __thread int tl = 9;
int before (void) { __asm__ (\"\"); return 1; }
int plug (void) { static int calls; calls++; before (); tl += VARIANT + calls; before (); return tl; }
";
    const HOST: &str = "#include <dlfcn.h>
static void run (const char *lib) {
  void *h = dlopen (lib, RTLD_NOW | RTLD_LOCAL);
  ((int (*) (void)) dlsym (h, \"plug\")) ();
  dlclose (h);
}
int main (int argc, char **argv) { run (argv[1]); run (argv[2]); return 0; }
";
    let bench = Bench::new();
    let plug = bench.write("plug.c", PLUG);
    let library = |variant: &str| {
        let options = [
            "-g",
            "-O0",
            "-shared",
            "-fPIC",
            &format!("-DVARIANT={variant}"),
        ];
        bench.compile("gcc", &plug, &format!("plug{variant}.so"), &options)
    };
    let (first, second) = (library("1"), library("5"));
    let host = bench.write("host.c", HOST);
    let host = bench.compile("gcc", &host, "host", &["-g", "-O0"]);
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "set breakpoint pending on"]);
    gdb.args(["-ex", "break before"]);
    let core = |at: usize| bench.path(&format!("{at}.core"));
    for at in 0..4 {
        gdb.args(["-ex", if at == 0 { "run" } else { "continue" }]);
        gdb.arg("-ex").arg(format!("gcore {}", core(at).display()));
    }
    gdb.args(["-ex", "kill", "--args"]).arg(&host);
    run(gdb.arg(&first).arg(&second));
    let seen = |at: usize| said(&CoreFile::open(&core(at)), 1, "tl");
    let not_yet = "has not used thread-local variables of";
    assert!(seen(0).contains(not_yet), "{}", seen(0));
    assert_eq!(seen(1), "11");
    assert!(seen(2).contains(not_yet), "{}", seen(2));
    assert_eq!(seen(3), "15");
}

#[test]
fn a_location_that_computes_with_long_doubles_is_unknown_for_that_reason() {
    const SOURCE: &str = "long double wide = 2.5L;
__attribute__((noinline)) int use(int x) { __asm__ volatile(\"\" ::: \"memory\"); return x; }
__attribute__((noinline)) int run(long double given) {
  float narrow = given;
  return use(1);
}
int main(void) { return run(wide); }
";
    let bench = Bench::new();
    let source = bench.write("wide.c", SOURCE);
    let path = bench.compile(
        "gcc",
        &source,
        "wide",
        &["-g", "-O2", "-fno-optimize-sibling-calls"],
    );
    let core = &stopped(&bench, &path, "use", 0)[0];
    let narrow = said(core, 1, "narrow");
    let reason = "a long double or 128-bit number inside a location expression is not supported";
    assert!(narrow.contains(reason), "{narrow}");
}

/// Where gcc computes with the x87 (`-mfpmath=387`), its registers hold variables of all floating-point types, in one format.
#[test]
fn numbers_on_the_x87_stack_are_those_of_their_types() {
    const SOURCE: &str = "float factor = 1.5f;
double more = 2.25;
__attribute__((noinline)) float single(float a) {
  float x = a;
  x *= factor; __asm__ volatile(\"at_single: nop\"); x += factor;
  return x;
}
__attribute__((noinline)) double twice(double a) {
  double y = a;
  y *= more; __asm__ volatile(\"at_twice: nop\"); y += more;
  return y;
}
int main(int c, char **v) { return (int)single(c) + (int)twice(c); }
";
    let bench = Bench::new();
    let source = bench.write("x87.c", SOURCE);
    let path = bench.compile("gcc", &source, "x87", &["-g", "-O1", "-mfpmath=387"]);
    // Behind the `nop`, the location adds: the instruction that does is next.
    for (place, name, held, sum) in [
        ("*at_single", "x", "1.5", "3"),
        ("*at_twice", "y", "2.25", "4.5"),
    ] {
        let cores = stopped(&bench, &path, place, 1);
        all_say(&cores[0], 0, &[(name, held)]);
        all_say(&cores[1], 0, &[(name, sum)]);
    }
}

/// g++ describes `char8_t` as an unsigned integer.
#[test]
fn characters_of_utf_8_are_text() {
    const SOURCE: &str = "void use(void *, void *) {}
int main() {
  char8_t one = u8'a', none = 0, high = 200, text[] = u8\"h\\u00e9llo\";
  const char8_t *to = text;
  use(&one, &to);
}
";
    for compiler in in_turn(["g++", "clang++"]) {
        let bench = Bench::new();
        let source = bench.write("utf8.cpp", SOURCE);
        let path = bench.compile(compiler, &source, "utf8", &["-std=c++20", "-g", "-O0"]);
        let core = &stopped(&bench, &path, "use", 0)[0];
        let expected = [
            ("one", "97 'a'"),
            ("none", r"0 '\000'"),
            ("high", r"200 '\310'"),
            ("text", "\"h\u{e9}llo\""),
            ("text[1]", r"195 '\303'"),
            ("one + 1", "98"),
        ];
        all_say(core, 1, &expected);
        let text = said(core, 1, "to");
        assert!(text.ends_with("\"h\u{e9}llo\""), "{compiler}: {text}");
    }
}

/// gcc -O2 keeps a structure's members apart, and drops each as soon as it is no longer needed.
#[test]
fn a_first_member_that_is_gone_does_not_hide_the_second() {
    const SOURCE: &str = "struct pair { long first, second; };
volatile long sink;
__attribute__((noinline)) long work(long x) {
  struct pair p = {x * 3 + sink, x * 5 + sink};
  sink = p.first; sink = 0;
  __asm__ volatile(\"at_work: nop\" : : : \"rax\", \"rcx\", \"rdx\", \"rsi\", \"rdi\", \"r8\", \"r9\", \"r10\", \"r11\");
  sink = p.second;
  return 0;
}
int main(int c, char **v) { return (int)work(c + 6); }
";
    let bench = Bench::new();
    let source = bench.write("apart.c", SOURCE);
    let path = bench.compile("gcc", &source, "apart", &["-g", "-O2"]);
    let cores = stopped(&bench, &path, "*at_work", 1);
    let gone = "<optimized out>";
    let whole = format!("{{first = {gone}, second = 35}}");
    let expected = [("p", whole.as_str()), ("p.first", gone), ("p.second", "35")];
    all_say(&cores[1], 0, &expected);
}

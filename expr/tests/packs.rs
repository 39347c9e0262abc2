//! Goal: each parameter of a pack has a name and its own value, though Clang gives all of them one name. Method: gdb stops programs
//! and writes core files. The programs' sources state the correct values.
//! Of several compilers or options each run takes a part; `WHOLE=1` all.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;
#[path = "stopped/mod.rs"]
mod stopped;

use common::Bench;
use common::share::in_turn;
use expr::{evaluate, is_type, parse_with};
use stopped::{all_say, in_frame, said, stopped};

const PACK: &str = "extern \"C\" void place(void) {}
template <class... A> int sum(int n, A... a) { place(); return n + (0 + ... + int(a)); }
int main() { return sum(1, 2, 3.5, 'c'); }
";

#[test]
fn the_parameters_of_a_pack_are_numbered() {
    let bench = Bench::new();
    let source = bench.write("packs.cpp", PACK);
    let path = bench.compile("clang++", &source, "packs", &["-g", "-std=c++17"]);
    let core = &stopped(&bench, &path, "place", 0)[0];
    let expected = [
        ("n", "1"),
        ("a", "2"),
        ("a#1", "3.5"),
        ("a#2", "99 'c'"),
        ("a#1 + a", "5.5"),
    ];
    all_say(core, 1, &expected);
    assert!(said(core, 1, "a#3").starts_with("<error"));
}

const BEFORE: &str = "extern \"C\" void place(void) {}
template <class... A> int first(A... a, int last) { return (0 + ... + int(a)) + last; }
int main() { place(); return first<int, double>(1, 2.5, 77); }
";

#[test]
fn the_type_of_a_function_has_the_parameters_of_its_pack() {
    let bench = Bench::new();
    let source = bench.write("before.cpp", BEFORE);
    for compiler in in_turn(["g++", "clang++"]) {
        let path = bench.compile(compiler, &source, "before", &["-g", "-std=c++17"]);
        let core = &stopped(&bench, &path, "place", 0)[0];
        let ty = in_frame(core, 1, None, |context| {
            let is_type = |name: &str| is_type(name, context);
            let parsed = parse_with("first<int, double>", &is_type).expect("it is a name");
            let value = evaluate(&parsed, context).expect("there is such a function");
            value.ty.name()
        });
        assert_eq!(ty, "int (*)(int, double, int)", "{compiler}");
    }
}

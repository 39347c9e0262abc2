//! Goal: expressions about classes and what classes hold mean what they mean in the source. Method: gdb stops a program and
//! writes a core file, on which expressions are evaluated. The program's source states the correct values.
//! Of several compilers or options each run takes a part; `WHOLE=1` all.

#[path = "../../debuginfo/tests/common/mod.rs"]
mod common;
#[path = "../../debuginfo/tests/core_file/mod.rs"]
mod core_file;
#[path = "stopped/mod.rs"]
mod stopped;

use common::Bench;
use common::share::in_turn;
use debuginfo::{Diagnostic, Value};
use expr::{Callee, Calls};
use stopped::{all_say, in_frame, is_known, said, stopped};

const CLASSES: &str = "struct Base { virtual ~Base() = default; int b = 1; };
struct L : virtual Base { int l = 2; };
struct R : virtual Base { int r = 3; };
struct D : L, R { int d = 4; };
struct Plain { int p = 5; };
struct Second { int s = 6; };
struct Both : Plain, Second { int both = 7; };
struct Other { virtual ~Other() = default; };
__attribute__((noinline)) void use(Base *pb, Base *alone, Second *second, L *left) { asm volatile(\"\"); }
int main() { D x; Base base; Both both; use(&x, &base, &both, &x); Other other; }
";

#[test]
fn conversions_between_classes_stay_in_the_object() {
    for compiler in in_turn(["g++", "clang++"]) {
        let bench = Bench::new();
        let source = bench.write("classes.cpp", CLASSES);
        let path = bench.compile(compiler, &source, "classes", &["-g", "-O0"]);
        let core = &stopped(&bench, &path, "use", 0)[0];
        let expected = [
            ("((D*)pb)->d", "4"),
            ("((L*)pb)->l", "2"),
            ("static_cast<R*>((D*)pb)->r", "3"),
            ("dynamic_cast<R*>(left)->r", "3"),
            ("dynamic_cast<D*>(pb)->d", "4"),
            ("dynamic_cast<void*>(pb) == (D*)pb", "true"),
            ("dynamic_cast<D*>(alone)", "0x0"),
            ("dynamic_cast<Other*>(pb)", "0x0"),
            ("(Base*)left == pb", "true"),
            ("((Both*)second)->both", "7"),
            ("((Plain*)(Both*)second)->p", "5"),
            ("(long)second - (long)(Both*)second", "4"),
            ("(long)reinterpret_cast<Both*>(second) - (long)second", "0"),
            ("const_cast<Base*>(pb) == pb", "true"),
            ("(Both*)0", "0x0"),
            ("static_cast<D&>(*left).d", "4"),
            ("(long)&static_cast<D&>(*left) - (long)(D*)left", "0"),
            ("dynamic_cast<R&>(*left).r", "3"),
            ("((Both&)*second).both", "7"),
            ("const_cast<const Second&>(*second).s", "6"),
            (
                "(long)&reinterpret_cast<Both&>(*second) - (long)second",
                "0",
            ),
            ("reinterpret_cast<int&>(*second)", "6"),
            ("&static_cast<int&>(second->s) == &second->s", "true"),
            ("alignof(D)", "8"),
            ("alignof(Both)", "4"),
            ("_Alignof(second->s)", "4"),
            ("alignof(char)", "1"),
            ("alignof(long double)", "16"),
        ];
        all_say(core, 0, &expected);
        let refused = said(core, 0, "((D*)alone)->d");
        assert!(refused.contains("virtual base class of D"), "{refused}");
    }
}

#[test]
fn padding_needs_no_place() {
    const BITS: &str = "struct bf { unsigned a : 3, : 0, b : 5; };
__attribute__((noinline)) int use(int x) { __asm__ volatile(\"\" ::: \"memory\"); return x + 1; }
int run(int n) {
  struct bf b = { 5, 17 };
  int r = use(n);
  return r + b.a + b.b;
}
int main(int c, char **v) { return run(c); }
";
    const RUST: &str = "use std::time::Duration;
#[inline(never)] fn show(x: u64) -> u64 { std::hint::black_box(x) + 1 }
fn main() {
    let n = std::env::args().count() as u64;
    let dur = Duration::from_millis(1500);
    let r = 1..=3;
    let a = show(n);
    println!(\"{} {} {:?}\", a, dur.as_millis(), r);
}
";
    const OPTIONAL: &str = "#include <optional>
__attribute__((noinline)) int use(int x) { asm volatile(\"\" ::: \"memory\"); return x; }
int main(int argc, char **) {
  std::optional<int> o = 5;
  std::optional<int> none;
  int r = use(argc);
  return r + *o + none.has_value();
}
";
    let bench = Bench::new();
    let source = bench.write("bits.c", BITS);
    let path = bench.compile("gcc", &source, "bits", &["-g", "-O1"]);
    let core = &stopped(&bench, &path, "use", 0)[0];
    all_say(core, 1, &[("b", "{a = 5, b = 17}"), ("b.b", "17")]);
    let source = bench.write("padded.rs", RUST);
    let path = bench.compile("rustc", &source, "padded", &["-g", "-C", "opt-level=2"]);
    let core = &stopped(&bench, &path, "padded::show", 0)[0];
    let frame = usize::from(!is_known(&said(core, 1, "dur"))) + 1;
    all_say(
        core,
        frame,
        &[("dur", "1.5s"), ("r", "1..=3"), ("dur.secs", "1")],
    );
    let source = bench.write("optional.cpp", OPTIONAL);
    let path = bench.compile("clang++", &source, "optional", &["-std=c++17", "-g", "-O2"]);
    let core = &stopped(&bench, &path, "use", 0)[0];
    all_say(
        core,
        1,
        &[
            ("o", "std::optional = {5}"),
            ("o._M_payload._M_engaged", "true"),
            ("none", "std::optional [no contained value]"),
        ],
    );
}

#[test]
fn addresses_and_sizes_need_no_target() {
    const LIST: &str = "#include <stddef.h>
struct item { int id; struct item *next; double p[3]; };
int use (struct item *a) { return a->id; }
int main (void) { struct item last = { 2 }, first = { 1, &last }; return use (&first); }
";
    let bench = Bench::new();
    let source = bench.write("list.c", LIST);
    let path = bench.compile("gcc", &source, "list", &["-g", "-O0"]);
    let core = &stopped(&bench, &path, "use", 0)[0];
    let expected = [
        ("(long)&((struct item*)0)->p", "16"),
        ("(long)&((struct item*)0)->p[2]", "32"),
        ("(long)&((struct item*)0)[1].next", "48"),
        ("(long)&a->next->next->next", "8"),
        ("sizeof a->next->next->next->p", "24"),
        ("sizeof(*a->next->next)", "40"),
        ("sizeof(a->next->next->id + 1L)", "8"),
        ("sizeof use(a->next)", "4"),
        ("a->next->next->id", "<error: the pointer is null>"),
    ];
    all_say(core, 0, &expected);
}

#[test]
fn texts_and_holders_are_shown_and_asked_as_in_source() {
    const C: &str = "#include <wchar.h>
#include <uchar.h>
unsigned char bytes[300];
wchar_t wide[] = L\"h\\u00e9llo\";
const char16_t narrow[] = u\"u16\";
char zeros[300], mixed[40] = \"ab\";
int number = 7;
int use (void) { return wide[0]; }
int main (void) { for (int i = 0; i < 300; i++) bytes[i] = i / 100; mixed[30] = 'z'; return use (); }
";
    const CPP: &str = "#include <memory>
#include <optional>
#include <string>
void use () {}
int main () {
  std::unique_ptr<int[]> ua (new int[3]{ 1, 2, 3 });
  std::unique_ptr<int> up (new int (4));
  std::shared_ptr<int> sp = std::make_shared<int> (5);
  std::optional<int> oi = 6, none;
  std::string s = \"short\";
  std::wstring ws = L\"w\\u00efde\";
  use ();
}
";
    let bench = Bench::new();
    let source = bench.write("texts.c", C);
    let path = bench.compile("gcc", &source, "texts", &["-g", "-O0"]);
    let core = &stopped(&bench, &path, "use", 0)[0];
    let expected = [
        (
            "bytes",
            r"'\000' <repeats 100 times>, '\001' <repeats 100 times>, '\002' <repeats 100 times>",
        ),
        ("mixed", r#""ab", '\000' <repeats 28 times>, "z""#),
        ("zeros", r#""""#),
        ("wide", "L\"h\u{e9}llo\""),
        ("narrow", "u\"u16\""),
        ("{int}&number", "7"),
        ("{int}(long)&number + 1", "8"),
    ];
    all_say(core, 0, &expected);
    let source = bench.write("holders.cpp", CPP);
    let path = bench.compile("g++", &source, "holders", &["-std=c++17", "-g", "-O0"]);
    let core = &stopped(&bench, &path, "use", 0)[0];
    let expected = [
        ("ua[1]", "2"),
        ("*ua.get()", "1"),
        ("*up.get()", "4"),
        ("*sp.get()", "5"),
        ("*oi", "6"),
        ("oi.value() == 6", "true"),
        ("s[0] == 's'", "true"),
        ("s[0]", "115 's'"),
        ("ws[2] == 'd'", "true"),
    ];
    all_say(core, 1, &expected);
    assert!(!is_known(&said(core, 1, "s[5]")));
    assert!(!is_known(&said(core, 1, "none.value()")));
}

/// Returns the name and the address of the object that a call is given.
struct Receivers;

impl Calls for Receivers {
    fn call(&self, callee: &Callee<'_>, arguments: &[Value]) -> Result<Value, Diagnostic> {
        let object = arguments[0].as_address().expect("the object is in memory");
        Ok(Value::constant(
            callee.function.ty.pointer(),
            object.to_le_bytes().to_vec(),
        ))
    }
}

#[test]
fn a_qualified_member_function_is_that_of_the_base_class() {
    const SOURCE: &str =
        "struct A { int a = 1; __attribute__((noinline)) int f(int n) { return a + n; } };
struct B { int b = 2; __attribute__((noinline)) int f(int n) { return b * n; } };
struct D : A, B { int d = 3; __attribute__((noinline)) int f(int n) { return d - n; } };
__attribute__((noinline)) void use(D *d) { asm volatile(\"\"); }
int main() { D d; use(&d); return d.f(1) + d.A::f(2) + d.B::f(3); }
";
    let bench = Bench::new();
    let source = bench.write("bases.cpp", SOURCE);
    let path = bench.compile("g++", &source, "bases", &["-g", "-O0"]);
    let core = &stopped(&bench, &path, "use", 0)[0];
    let address = |text: &str| {
        let parsed = expr::parse(text).expect("it is an expression");
        let value = in_frame(core, 0, Some(&Receivers), |context| {
            expr::evaluate(&parsed, context)
        });
        let value = value.unwrap_or_else(|error| panic!("{text}: {error}"));
        value.as_address().expect("it is a pointer")
    };
    let object = address("d");
    assert_eq!(address("d->f(1)"), object);
    assert_eq!(address("d->A::f(2)"), object);
    assert_eq!(address("(*d).B::f(3)"), object + 4);
    let refused = said(core, 0, "d->B::f(3)");
    assert!(refused.contains("cannot be called here"), "{refused}");
}

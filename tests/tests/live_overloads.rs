//! Goal: a call of a C++ function means the overload that it means in the source, or is refused with those that there are; what
//! cannot be converted is refused before anything is called. Method: a program with overloads of many kinds, which calls them
//! itself; the same calls in the stopped program and in a recording of every instruction.

use e2e::{Hindsight, Live, Program, Scratch, compiled};

const PROGRAM: &str = r#"#include <cstdio>
int g(int) { return 1; }
int g(const char *) { return 2; }
int g(unsigned char) { return 3; }
int g(long) { return 4; }
int g(int, int) { return 5; }
struct Left { int l = 70; };
struct A { int a = 80; int who() { return a; } };
struct B : Left, A { int k = 9; };
int h(void *) { return 1; }
int h(B &b) { return b.k; }
int h(B *) { return 30; }
int base(A &of) { return of.a; }
int base(int) { return 2; }
int leads(A *of) { return of->a; }
int constant(B &) { return 1; }
int constant(const B &) { return 2; }
double pick(double x) { return x * 2.5; }
int pick(int x) { return x + 1; }
int wide(double) { return 1; }
int wide(const char *) { return 2; }
int seen(const int &of) { return of + 1; }
int seen(const char *) { return 7; }
int twice(const double &of) { return (int)(of * 2); }
struct Text { Text(const char *) {} };
int text(const Text &) { return 1; }
int text(int) { return 2; }
struct S {
  int v = 1;
  int f(double);
  int f(int i) { return v + i; }
  int f(const char *) { return 7; }
  int add(int n) { return v + n; }
  int own() { return 5; }
  int own() const { return 6; }
  int runs() { return f(1); /* in a method */ }
};
int S::f(double d) { return (int)(d * 100); }
struct Shape { virtual int area(int) { return 1; } virtual int area(const char *) { return 2; } int plain() { return 3; } };
struct Square : Shape { int area(int) override { return 11; } int plain() { return 4; } };
namespace app { enum Kind { ONE }; int over(int) { return 1; } int over(double) { return 2; } int kind(Kind) { return 8; } }
int kind(int) { return 1; }
template <class T> T sum(T x) { return x + x; }
template <class T> T once(T x) { return x; }
int yes(bool of) { return of; }
int take(B &&of) { return of.k; }
int first(const char *const &of) { return of[0]; }
int nargs(int a, int b = 3) { return a + b; }
int total(int n) { return n + 1; }
int is_null(const char *of) { return of == 0; }
double half(double x) { return x / 2; }
enum class Scoped { ONE = 1 };
Scoped scoped = Scoped::ONE;
int called;
int counts() { return ++called; }
void nothing() { called += 10; }
unsigned char uc = 1;
unsigned long ul = 1;
long L = 1;
short small = 1;
B b;
const B fixed;
S s;
const S still;
Shape figure; /* its table of virtual functions needs them all */
Square square;
Shape *shape = &square;
const char *name = "x";
char word[4] = "y";
int main() {
  app::Kind kind_of = app::ONE;
  int all = g(1) + g("x") + g(uc) + g(L) + g(1, 2) + h(&b) + h(b) + h((void *)0) + base(b) + base(1) + leads(&b)
      + constant(b) + constant(fixed) + (int)pick(1.5) + pick(1) + wide(1) + wide("x") + seen(1) + seen("x") + twice(1)
      + text("x") + text(1) + s.f("x") + s.f(1.5) + s.own() + still.own() + s.runs() + shape->area(1) + shape->area("x")
      + app::over(1) + app::over(1.5) + app::kind(kind_of) + kind(1) + sum(1) + (int)sum(1.5) + nargs(1) + b.who()
      + shape->plain() + square.plain() + once(1) + yes(true) + take(B()) + first(name)
      + total(1) + is_null(name) + (int)half(1) + s.add(1);
  nothing();
  printf("%d %d\n", all, counts()); /* ready */
  return 0;
}
"#;

/// Calls, and what they return.
const CALLS: [(&str, &str); 57] = [
    ("g(1)", "1"),
    ("g(\"x\")", "2"),
    ("g(name)", "2"),
    ("g(uc)", "3"),
    ("g('a')", "1"),
    ("g(small)", "1"),
    ("g(L)", "4"),
    ("g(1 + L)", "4"),
    ("g((unsigned char)1)", "3"),
    ("g(1, 2)", "5"),
    ("h(&b)", "30"),
    ("h(b)", "9"),
    ("h(&s)", "1"),
    ("base(b)", "80"),
    ("base(7)", "2"),
    ("leads(&b)", "80"),
    ("constant(b)", "1"),
    ("constant(fixed)", "2"),
    ("pick(4)", "5"),
    ("pick(4.0)", "10"),
    ("wide(uc)", "1"),
    ("seen(4)", "5"),
    ("seen(\"x\")", "7"),
    ("twice(4)", "8"),
    ("text(1)", "2"),
    ("s.f(\"x\")", "7"),
    ("s.f(2)", "3"),
    ("s.f(1.5)", "150"),
    ("(&s)->f(uc)", "2"),
    ("s.own()", "5"),
    ("still.own()", "6"),
    ("shape->area(1)", "11"),
    ("shape->area(\"x\")", "2"),
    ("shape->Shape::area(1)", "1"),
    ("app::over(2.5)", "2"),
    ("app::over(2)", "1"),
    ("kind(kind_of)", "8"),
    ("kind(3)", "1"),
    ("sum(2)", "4"),
    ("sum(2.5)", "5"),
    ("nargs(1, 2)", "3"),
    ("b.who()", "80"),
    ("S::f(&s, 3)", "4"),
    ("shape->plain()", "3"),
    ("square.plain()", "4"),
    ("once(5)", "5"),
    ("yes(\"x\")", "1"),
    ("take((B &&)b)", "9"),
    ("first(word)", "121"),
    ("total(uc)", "2"),
    ("total(L)", "2"),
    ("is_null(0)", "1"),
    ("is_null(\"x\")", "0"),
    ("is_null((const char *)5)", "0"),
    ("is_null(&s)", "0"),
    ("half(3)", "1.5"),
    ("s.add(2)", "3"),
];

/// The number of the line with a comment.
fn line(comment: &str) -> usize {
    let comment = format!("/* {comment} */");
    let found = PROGRAM.lines().position(|line| line.contains(&comment));
    found.expect("the line is there") + 1
}

fn started(name: &str, comment: &str) -> (Live, Scratch) {
    let scratch = Scratch::new(name);
    let app = compiled(&scratch, "app.cc", PROGRAM, &["-O0", "-g"]);
    let at = format!("app.cc:{}", line(comment));
    (Live::started(name, &["--break", &at], &app, &[]), scratch)
}

fn called(live: &Live, call: &str) -> String {
    let reply = live.ask(&["call", call]);
    reply["value"].as_str().unwrap_or("none").to_owned()
}

/// The message and the hint of a call that is refused.
fn refused(live: &Live, call: &str) -> (String, String) {
    let error = live.refused(&["call", call]);
    assert_eq!(error["code"], "EVAL_FAILED", "{call}: {error:#}");
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (text("message"), text("hint"))
}

#[test]
fn the_arguments_choose_the_overload() {
    let (live, _scratch) = started("overloads-live", "ready");
    for (call, value) in CALLS {
        assert_eq!(called(&live, call), value, "{call}");
    }
    let ty = live.ask(&["whatis", "pick(4)"]);
    assert_eq!(ty["type"], "int", "{ty:#}");
    let ty = live.ask(&["whatis", "pick(4.5)"]);
    assert_eq!(ty["type"], "double", "{ty:#}");
}

#[test]
fn the_past_chooses_the_same() {
    let scratch = Scratch::new("overloads-past");
    compiled(&scratch, "app.cc", PROGRAM, &["-O0", "-g"]);
    let app = Program::new(scratch.join("app"), scratch.path());
    Hindsight::recorded(&scratch, "recorded", &["--full"], &app);
    let stop = format!("break app.cc:{}", line("ready"));
    let evals: Vec<String> = CALLS
        .iter()
        .map(|(call, _)| format!("eval {call}"))
        .collect();
    let mut args = vec!["repl", "recorded", "--cmd", &stop, "--cmd", "continue"];
    args.extend(evals.iter().flat_map(|eval| ["--cmd", eval.as_str()]));
    let ended = Hindsight::command(&scratch, &args)
        .env("HOME", scratch.path())
        .run();
    let told = ended.text();
    let values = told.lines().filter_map(|line| {
        let (number, value) = line.strip_prefix('$')?.split_once(" = ")?;
        number.parse::<u32>().ok()?;
        Some(value)
    });
    let values: Vec<&str> = values.collect();
    let right: Vec<&str> = CALLS.iter().map(|(_, value)| *value).collect();
    assert_eq!(values, right, "{told}{}", ended.errors());
}

#[test]
fn what_nothing_decides_is_refused_with_the_functions() {
    let (live, _scratch) = started("overloads-refused", "ready");
    let all = "g(int), g(const char *), g(unsigned char), g(long int), g(int, int)";
    let (message, hint) = refused(&live, "g(ul)");
    assert_eq!(
        message,
        "several functions g take (long unsigned int) equally well: g(int), g(unsigned char), g(long int)"
    );
    assert_eq!(
        hint,
        "convert the arguments to the types of one of them, such as g((int)ul)"
    );
    assert_eq!(called(&live, "g((int)ul)"), "1");
    let (message, hint) = refused(&live, "g(b)");
    assert_eq!(
        message,
        format!("no function g takes (B) without a conversion that a class defines: {all}")
    );
    assert!(hint.contains("write all arguments"), "{hint}");
    let (message, _) = refused(&live, "g(1, 2, 3)");
    assert_eq!(
        message,
        format!("no function g takes (int, int, int): {all}")
    );
    let (message, _) = refused(&live, "text(\"x\")");
    assert_eq!(
        message,
        "no function text takes (char [2]) without a conversion that a class defines: text(const Text &), text(int)"
    );
    let (message, _) = refused(&live, "s.f(name, 1)");
    assert_eq!(
        message,
        "no function f takes (const char *, int): S::f(double), S::f(int), S::f(const char *)"
    );
    let (message, hint) = refused(&live, "nargs(1)");
    assert_eq!(message, "nargs takes 2 arguments, not 1");
    assert!(hint.starts_with("write all arguments"), "{hint}");
    let (message, _) = refused(&live, "nargs(1, 2, 3)");
    assert_eq!(message, "nargs takes 2 arguments, not 3");
    let (message, _) = refused(&live, "once(2.5)");
    assert_eq!(message, "no function once takes (double): once<int>(int)");
    let (message, hint) = refused(&live, "take(b)");
    assert_eq!(message, "B cannot be passed as B &&");
    assert_eq!(hint, "if that is meant, write it so: (B &&)b");
    let (message, hint) = refused(&live, "first(\"x\")");
    assert_eq!(message, "char [2] cannot be passed as const char * const &");
    assert_eq!(hint, "pass a variable of that type");
    let (message, _) = refused(&live, "base(s)");
    assert_eq!(
        message,
        "no function base takes (S) without a conversion that a class defines: base(A &), base(int)"
    );
}

#[test]
fn a_single_function_gets_no_number_for_a_pointer_nor_the_other_way_round() {
    let (live, _scratch) = started("overloads-single", "ready");
    let cases = [
        (
            "total(name)",
            "(const char *): total(int)",
            "total((int)name)",
        ),
        ("total(word)", "(char [4]): total(int)", "total((int)word)"),
        (
            "total(scoped)",
            "(Scoped): total(int)",
            "total((int)scoped)",
        ),
        (
            "half(name)",
            "(const char *): half(double)",
            "half((double)name)",
        ),
        ("leads(7)", "(int): leads(A *)", "leads((A *)7)"),
        (
            "is_null(L)",
            "(long int): is_null(const char *)",
            "is_null((const char *)L)",
        ),
        (
            "s.add(name)",
            "(const char *): S::add(int)",
            "add((int)name)",
        ),
    ];
    for (call, takes, example) in cases {
        let (message, hint) = refused(&live, call);
        let (name, _) = example.split_once('(').expect("it is a call");
        assert_eq!(message, format!("no function {name} takes {takes}"));
        let right = "convert the arguments to the types of its parameters, such as";
        assert_eq!(hint, format!("{right} {example}"));
    }
    let (message, hint) = refused(&live, "total(\"x\")");
    assert_eq!(message, "no function total takes (char [2]): total(int)");
    assert_eq!(hint, "pass arguments of the types of its parameters");
    let (message, _) = refused(&live, "total(b)");
    let what = "without a conversion that a class defines";
    assert_eq!(message, format!("B cannot be passed as int {what}"));
    assert_eq!(called(&live, "total((int)scoped)"), "2");
    assert_eq!(live.run_to_end(), 0);
}

#[test]
fn a_function_of_c_gets_a_number_for_a_pointer() {
    let scratch = Scratch::new("overloads-c");
    let source = "int is_set(const char *of) { return of != 0; }\n\
        int main(void) { return is_set(\"x\") - 1; }\n";
    let app = compiled(&scratch, "app.c", source, &["-O0", "-g"]);
    let live = Live::started("overloads-c", &["--break", "main"], &app, &[]);
    assert_eq!(called(&live, "is_set(5)"), "1");
}

#[test]
fn functions_that_other_files_keep_to_themselves_are_not_meant() {
    let scratch = Scratch::new("overloads-private");
    let other =
        "static int part(long x) { return (int)x + 100; }\nint other() { return part(1); }\n";
    std::fs::write(scratch.join("other.cc"), other).expect("the test's folder is writable");
    let own = "int other();\nstatic int part(int x) { return x; }\nlong L = 1;\n\
        int main() { return part(1) + other() - 102; }\n";
    let app = compiled(&scratch, "app.cc", own, &["-O0", "-g", "other.cc"]);
    let live = Live::started("overloads-private", &["--break", "main"], &app, &[]);
    assert_eq!(called(&live, "part(L)"), "1");
    live.ask(&["break", "other"]);
    live.ask(&["continue"]);
    assert_eq!(called(&live, "part(1)"), "101");
}

#[test]
fn a_method_calls_those_of_its_object() {
    let (live, _scratch) = started("overloads-method", "in a method");
    assert_eq!(called(&live, "f(5)"), "6");
    assert_eq!(called(&live, "f(\"x\")"), "7");
    assert_eq!(called(&live, "g(\"x\")"), "2");
}

#[test]
fn what_is_converted_to_void_is_called_and_shows_nothing() {
    let (live, _scratch) = started("overloads-void", "ready");
    let before: i64 = live.print("called").parse().expect("a number");
    for call in [
        "(void)counts()",
        "(void) puts(\"said\")",
        "nothing()",
        "(void)1",
    ] {
        let ended = live.command(&["call", call]).run();
        assert_eq!(
            ended.status.as_shell_code(),
            0,
            "{call}: {}",
            ended.errors()
        );
        assert_eq!(ended.text(), "", "{call}");
    }
    assert_eq!(live.print("called"), (before + 11).to_string());
    for (call, message) in [
        ("(B)counts()", "int cannot be converted to B"),
        ("(B)(counts() + 1)", "int cannot be converted to B"),
        ("(int)nothing()", "void cannot be converted to int"),
        ("(B)pick(counts())", "int cannot be converted to B"),
    ] {
        assert_eq!(refused(&live, call).0, message, "{call}");
    }
    assert_eq!(
        live.print("called"),
        (before + 11).to_string(),
        "nothing was called"
    );
    assert_eq!(live.run_to_end(), 0);
    // A function that nothing describes is called once, too.
    assert_eq!(live.output().matches("said\n").count(), 1);
}

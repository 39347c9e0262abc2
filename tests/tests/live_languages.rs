//! Goal: names and values are those of the program's language. Method: small programs in Fortran, Ada, C, C++ and Rust that say
//! themselves what the values are; what gdb says of the same places was looked up once.

use std::path::{Path, PathBuf};

use e2e::{Live, Program, Status, compiled};

/// Writes a program and compiles it with another compiler than those of C and C++.
fn made(live: &Live, file: &str, source: &str, command: &[&str]) -> PathBuf {
    std::fs::write(live.scratch.join(file), source).expect("the test's folder is writable");
    let compiler = Path::new("/usr/bin/env");
    let built = Program::new(compiler, live.scratch.path())
        .args(command)
        .run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
    live.scratch.join("app")
}

fn prints(live: &Live, all: &[(&str, &str)]) {
    for (expression, value) in all {
        assert_eq!(live.print(expression), *value, "{expression}");
    }
}

#[test]
fn fortran_has_common_blocks_modules_and_no_case() {
    let live = Live::new("languages-fortran");
    let source = "\
module shop
  integer :: counts(-1:2) = [10, 20, 30, 40]
  type item
    integer :: tag
    type(item), pointer :: next => null()
    real(8) :: v(3)
  end type
contains
  subroutine sell(x)
    integer, intent(in) :: x
    integer :: total
    real(8) :: b(2)
    type(item), target :: one, two
    common /stock/ b, total
    one%tag = 5
    one%next => two
    two%tag = 9
    two%v = [1d0, 2d0, 3d0]
    total = total + x
    print *, total, b, one%next%tag
  end subroutine
end module
program p
  use shop
  integer :: total
  real(8) :: b(2)
  common /stock/ b, total
  total = 42
  b = [1.5d0, 2.5d0]
  call sell(3)
end program
";
    let command = ["gfortran", "-g", "-O0", "-o", "app", "app.f90"];
    let app = made(&live, "app.f90", source, &command);
    live.start(&["--break", "app.f90:20"], &app, &[]);
    prints(
        &live,
        &[
            ("total", "45"),
            ("b", "{1.5, 2.5}"),
            ("TOTAL + X", "48"),
            ("B(2)", "2.5"),
            ("shop::counts", "{10, 20, 30, 40}"),
            ("COUNTS(-1)", "10"),
            ("one%next%tag", "9"),
            ("One%NEXT%v(2)", "2"),
            ("one.next.v(3)", "3"),
            ("x % 2", "1"),
            ("sell == shop::sell", "true"),
        ],
    );
    live.ask(&["set", "B(2)", "7.5"]);
    live.ask(&["set", "shop::counts(-1)", "11"]);
    prints(
        &live,
        &[("b", "{1.5, 7.5}"), ("counts", "{11, 20, 30, 40}")],
    );
}

const RENAMED: &str = "\
module stock
  integer :: count = 5
  integer :: other = 6
contains
  integer function twice(n)
    integer, intent(in) :: n
    twice = 2 * n
  end function
  integer function given(n)
    integer, value :: n
    given = 3 * n
  end function
  real(8) function half(x)
    real(8), intent(in) :: x
    half = x / 2
  end function
  subroutine raise(n)
    integer, intent(inout) :: n
    n = n + 1
  end subroutine
  integer function length(text)
    character(len=*), intent(in) :: text
    length = len(text)
  end function
  integer function total(a)
    integer, intent(in) :: a(:)
    total = sum(a)
  end function
end module
module wrong
  integer :: held = 99
end module
program p
  use stock, only: held => count, double => twice, given, half, raise, length, total
  integer :: k
  integer :: list(3)
  k = 3
  list = [1, 2, 3]
  k = k + double(4) + given(2)
  call raise(k)
  print *, k, half(3d0), length('abc'), total(list), held
  call inner()
contains
  subroutine inner()
    use stock, back => other
    integer :: own
    own = held + back
    print *, own
  end subroutine
end program
";

/// A program in Fortran, stopped where its source says so.
fn renamed(name: &str, mark: &str) -> Live {
    let live = Live::new(name);
    let command = ["gfortran", "-g", "-O0", "-o", "app", "app.f90"];
    let app = made(&live, "app.f90", RENAMED, &command);
    let line = RENAMED.lines().position(|line| line.contains(mark));
    let place = format!("app.f90:{}", line.expect("a line of the program") + 1);
    live.start(&["--break", &place], &app, &[]);
    live
}

#[test]
fn names_that_fortran_gives_to_variables_of_modules_are_known() {
    let live = renamed("languages-renamed", "own = held");
    let known = [
        ("held", "5"),
        ("BACK", "6"),
        ("count", "5"),
        ("wrong::held", "99"),
    ];
    prints(&live, &known);
    live.ask(&["set", "held", "7"]);
    prints(&live, &[("stock::count", "7"), ("held + back", "13")]);
}

/// Fortran passes the address of what it does not pass by value.
#[test]
fn functions_of_fortran_get_the_addresses_of_their_arguments() {
    let live = renamed("languages-called", "k = k + double");
    for (call, result) in [
        ("twice(5)", "10"),
        ("double(5)", "10"),
        ("twice(k)", "6"),
        ("given(5)", "15"),
        ("given(k)", "9"),
        ("half(3)", "1.5"),
        ("length('abcd', 4)", "4"),
    ] {
        assert_eq!(live.ask(&["eval", call])["value"], result, "{call}");
    }
    live.ask(&["eval", "raise(k)"]);
    live.ask(&["eval", "raise(41)"]);
    assert_eq!(live.print("k"), "4");
    let refused = live.refused(&["eval", "total(list)"]);
    assert_eq!(refused["code"], "EVAL_FAILED", "{refused:#}");
    let message = refused["message"].as_str().expect("text");
    assert!(message.starts_with("argument 1 of total: "), "{message}");
}

#[test]
fn ada_has_no_case() {
    let live = Live::new("languages-ada");
    let source = "\
with Ada.Text_IO; use Ada.Text_IO;
procedure App is
   type Color is (Red, Green, Blue);
   type Arr is array (1 .. 5) of Integer;
   type Rec is record X : Integer; Y : Float; end record;
   Count : Integer := 7;
   A : Arr := (1, 2, 3, 4, 50);
   C : Color := Green;
   R : Rec := (3, 2.5);
begin
   Count := Count + 1;
   Put_Line (Integer'Image (A (5) + R.X + Count) & Color'Image (C));
end App;
";
    let command = ["gnatmake", "-q", "-g", "-O0", "app.adb"];
    let app = made(&live, "app.adb", source, &command);
    live.start(&["--break", "app.adb:12"], &app, &[]);
    prints(
        &live,
        &[
            ("Count", "8"),
            ("A(5)", "50"),
            ("C", "green"),
            ("C == Green", "true"),
            ("R.X", "3"),
            ("R.Y * 2", "5"),
        ],
    );
}

#[test]
fn members_of_namespaces_without_a_name_belong_to_the_one_around_them() {
    let live = Live::new("languages-namespaces");
    let source = r#"
namespace app { namespace { int deep = 21; struct H { int q = 4; } held; } static int own = 5;
int look() { return deep + held.q + own; } }
int main() { return app::look() - 30; }
"#;
    let app = compiled(&live.scratch, "app.cc", source, &["-g", "-O0"]);
    live.start(&["--break", "app::look"], &app, &[]);
    prints(
        &live,
        &[
            ("app::deep", "21"),
            ("deep", "21"),
            ("app::held.q", "4"),
            ("app::own", "5"),
        ],
    );
}

#[test]
fn numbers_have_all_their_digits_and_fields_only_their_bits() {
    let live = Live::new("languages-numbers");
    let source = r#"
enum perm { P_R = 1, P_W = 2, P_X = 4, P_BIG = 0x40 };
enum state { IDLE, RUN = 1, DONE = 2, DEAD = 9 };
struct s { unsigned pad : 5; enum perm e : 4; enum state st : 3; signed char f : 2; unsigned z : 18; };
struct s g = {31, P_R | P_W, RUN, -1, 0x3ffff};
long double a = 3.14159265358979323846L, h = 1e4000L, most = 18446744073709551615.0L;
__float128 third;
int grid[2][3] = {{1, 2, 3}, {4, 5, 6}}, *flat = grid[0];
int main(void) {
  third = (__float128)1 / 3;
  return g.e == 3 ? 0 : 1;
}
"#;
    let app = compiled(&live.scratch, "app.c", source, &["-g", "-O0"]);
    live.start(&["--break", "app.c:11"], &app, &[]);
    prints(
        &live,
        &[
            ("g.e", "(P_R | P_W)"),
            ("(int)g.e", "3"),
            ("g.st", "RUN"),
            ("g.f", "-1 '\\377'"),
            ("h * 2", "2e+4000"),
            ("a - 3.141592653589793", "1.2251484549086200104e-16"),
            ("a == 3.141592653589793", "false"),
            ("a > 3.141592653589793", "true"),
            ("most - 1 == 18446744073709551614", "true"),
            ("(unsigned long)most", "18446744073709551615"),
            ("third == 1.0 / 3", "false"),
            ("third * 3", "1"),
            ("sizeof(a * 2)", "16"),
            ("-a", "-3.1415926535897932385"),
            ("*(int(*)[3])flat", "{1, 2, 3}"),
            ("((int (*)[3])flat)[1]", "{4, 5, 6}"),
            ("*(int (*)[2][3])flat", "{{1, 2, 3}, {4, 5, 6}}"),
            ("(*(int (*)[2][3])flat)[1][0]", "4"),
            ("sizeof(int[2][3][4])", "96"),
        ],
    );
}

/// rustc leaves anything in rax where a result lies in memory.
#[test]
fn results_of_optimised_rust_functions_are_found() {
    let live = Live::new("languages-rust");
    let source = r#"
#[derive(Debug, Clone)]
pub struct Rec { a: u64, b: u64, c: u64, name: String }
#[inline(never)]
fn make(k: u64, keep: &mut Vec<Rec>) -> Rec {
    let r = Rec { a: k, b: k * 2, c: k * 3, name: format!("n{k}") };
    keep.push(r.clone());
    r
}
fn main() {
    let mut keep = vec![];
    for i in 1..4 {
        let r = make(i, &mut keep);
        println!("{r:?}");
    }
}
"#;
    let command = [
        "rustc",
        "--edition",
        "2021",
        "-g",
        "-O",
        "-o",
        "app",
        "app.rs",
    ];
    let app = made(&live, "app.rs", source, &command);
    live.start(&["--break", "app::make"], &app, &[]);
    for k in 1..4 {
        if k > 1 {
            live.moved(&["continue"]);
        }
        let came = live.ask(&["finish"]);
        let value = came["returned"]["value"].as_str();
        let expected = format!(
            "Rec {{ a: {k}, b: {}, c: {}, name: \"n{k}\" }}",
            k * 2,
            k * 3
        );
        assert_eq!(value, Some(&*expected), "{came:#}");
    }
}

#[test]
fn registers_beside_the_general_ones_have_their_names() {
    let live = Live::new("languages-registers");
    let source = r#"
int main(void) {
  long double out;
  __asm__ volatile("fldpi\n nop\n fstpt %0" : "=m"(out));
  return out > 4;
}
"#;
    let app = compiled(&live.scratch, "app.c", source, &["-g", "-O0"]);
    live.start(&["--break", "main"], &app, &[]);
    for _ in 0..12 {
        if live.print("$st0").starts_with("3.14") {
            break;
        }
        live.moved(&["step", "--instruction"]);
    }
    prints(
        &live,
        &[
            ("$st0", "3.1415926535897932385"),
            ("$fctrl", "895"),
            ("$mxcsr", "8064"),
            ("sizeof $ymm0", "32"),
        ],
    );
    let registers = live.ask(&["registers", "st0", "ymm1"]);
    assert_eq!(
        registers["registers"][0]["value"], "35c26821a2da0fc90040",
        "{registers:#}"
    );
}

/// They are returned in st0, and complex ones in st0 and st1.
#[test]
fn results_on_the_x87_stack_are_found() {
    let live = Live::new("languages-x87");
    let source = r#"
long double half(long double x) { return x / 2; }
_Complex long double turned(long double x) { return x * 1.0iL + 2; }
int main(void) { return half(5) + __imag__ turned(3) == 5.5L; }
"#;
    let app = compiled(&live.scratch, "app.c", source, &["-g", "-O0"]);
    live.start(&["--break", "half", "--break", "turned"], &app, &[]);
    let came = live.ask(&["finish"]);
    assert_eq!(came["returned"]["value"], "2.5", "{came:#}");
    live.moved(&["continue"]);
    let came = live.ask(&["finish"]);
    assert_eq!(came["returned"]["value"], "2 + 3i", "{came:#}");
}

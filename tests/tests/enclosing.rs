//! Goal: a function that is declared in another one sees that one's variables, live, in messages and conditions, and in a recording
//! of every instruction; a global variable of the same name is never taken for them. Method: programs in GNU C, Fortran and Ada that
//! know their values.

use std::path::Path;

use e2e::{Hindsight, Live, Program, Scratch, Status, compiled};

/// The nested function is called by the C library, so that its caller is not the function around it.
const NESTED: &str = r#"#include <stdio.h>
#include <stdlib.h>
int swaps = 99, dir = 77;
__attribute__((noinline)) static void sort(int *v, int n, int dir) {
  int swaps = 0;
  enum bound { LIMIT = 40, UNUSED } bound = UNUSED;
  int compare(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    swaps += 1;
    return dir * ((x > y) - (x < y)); /* here */
  }
  if (n > 2)
    sort(v, n / 2, -dir);
  qsort(v, n, sizeof *v, compare);
  v[0] += swaps + (bound == LIMIT);
}
int main(void) {
  int v[4] = {4, 2, 9, 1};
  sort(v, 4, -1);
  printf("%d %d %d\n", v[0], swaps, dir);
  return 0;
}
"#;

fn line_of(source: &str, mark: &str) -> usize {
    let at = source.lines().position(|line| line.contains(mark));
    at.expect("a line of the program") + 1
}

/// The inner call of `sort` has the direction 1, the outer one -1.
#[test]
fn a_nested_function_sees_the_variables_of_its_own_call() {
    let scratch = Scratch::new("enclosing-c");
    let app = compiled(&scratch, "app.c", NESTED, &["-g", "-O0"]);
    let program = Program::new(&app, scratch.path());
    let full = Hindsight::recorded(&scratch, "full", &["--full"], &program);
    let place = format!("app.c:{}", line_of(NESTED, "here"));
    let logged = full.prompt(&[&format!("logpoint {place} {{swaps}}/{{dir}}/{{LIMIT}}")]);
    let text = logged.text();
    let written = text.lines().filter_map(|line| line.split("| ").nth(2));
    let written: Vec<&str> = written.skip(1).collect();
    let of = |count: usize, dir: i32| (1..=count).map(move |n| format!("{n}/{dir}/LIMIT"));
    let outer = written.len() - 1;
    let expected: Vec<String> = of(1, 1).chain(of(outer, -1)).collect();
    assert_eq!(written, expected, "{text}");
    let live = Hindsight::recorded(
        &scratch,
        "live",
        &["--logpoint", &place, "{swaps}/{dir}/{LIMIT}"],
        &program,
    );
    let rows = live.rows("SELECT text FROM events WHERE kind = 'logpoint' ORDER BY seq");
    let live: Vec<&str> = rows.iter().filter_map(|row| row["text"].as_str()).collect();
    assert_eq!(live, expected);
    let condition = format!("break {place} if swaps == 2 && dir == -1");
    let steps = [
        "goto first",
        &condition,
        "continue",
        "print swaps",
        "history swaps",
    ];
    let found = full.prompt(&steps).text();
    assert!(found.contains("$1 = 2"), "{found}");
    assert!(found.contains("All writes in this call of sort"), "{found}");
}

/// The values of expressions where a program that was started with a breakpoint stops first.
fn shown(name: &str, place: &str, app: &Path, expressions: &[&str]) -> Vec<String> {
    let live = Live::started(name, &["--break", place], app, &[]);
    expressions.iter().map(|one| live.print(one)).collect()
}

#[test]
fn a_stopped_program_shows_them_too() {
    let scratch = Scratch::new("enclosing-live");
    let app = compiled(&scratch, "app.c", NESTED, &["-g", "-O0"]);
    let place = format!("app.c:{}", line_of(NESTED, "here"));
    let shown = shown(
        "enclosing-stop",
        &place,
        &app,
        &["swaps", "dir", "::swaps", "v[0] + n"],
    );
    assert_eq!(shown, ["1", "1", "99", "6"]);
}

const INTERNAL: &str = "program outer
  implicit none
  integer :: total, k
  total = 10; k = 3
  call bump(4)
  print *, total
contains
  subroutine bump(n)
    integer, intent(in) :: n
    total = total + n * k
    print *, 'in bump', n ! here
  end subroutine
end program
";

#[test]
fn an_internal_procedure_of_fortran_sees_its_host() {
    let scratch = Scratch::new("enclosing-fortran");
    std::fs::write(scratch.join("app.f90"), INTERNAL).expect("the test's folder is writable");
    let built = Program::new("/usr/bin/gfortran", scratch.path())
        .args(["-g", "-O0", "-o", "app", "app.f90"])
        .run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
    let place = format!("app.f90:{}", line_of(INTERNAL, "here"));
    let app = scratch.join("app");
    let shown = shown(
        "enclosing-host",
        &place,
        &app,
        &["total", "k", "n", "total + k"],
    );
    assert_eq!(shown, ["22", "3", "4", "25"]);
}

const SUBPROGRAM: &str = "with Ada.Text_IO;
procedure App is
   type Colour is (Red, Navy, Rust);
   Base : Integer := 41;
   Tint : Colour := Rust;
   procedure Inner (X : Colour) is
   begin
      Base := Base + 1;
      Ada.Text_IO.Put_Line (Base'Image & X'Image & Tint'Image); -- here
   end Inner;
begin
   Inner (Navy);
end App;
";

#[test]
fn a_nested_subprogram_of_ada_sees_the_outer_one() {
    let scratch = Scratch::new("enclosing-ada");
    std::fs::write(scratch.join("app.adb"), SUBPROGRAM).expect("the test's folder is writable");
    let built = Program::new("/usr/bin/gnatmake", scratch.path())
        .args(["-q", "-g", "-O0", "app.adb"])
        .run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
    let place = format!("app.adb:{}", line_of(SUBPROGRAM, "here"));
    let app = scratch.join("app");
    let shown = shown(
        "enclosing-outer",
        &place,
        &app,
        &["base", "tint", "x == navy"],
    );
    assert_eq!(shown, ["42", "rust", "true"]);
}

const LAMBDA: &str = "#include <cstdio>
int run(int n) {
  enum class Where { Here, There };
  enum { LIMIT = 5 };
  Where where = n > 1 ? Where::There : Where::Here;
  auto told = [&](int more) {
    return more + static_cast<int>(where); // here
  };
  return told(LIMIT);
}
int main(int argc, char **) { std::printf(\"%d\\n\", run(argc + 1)); }
";

#[test]
fn a_lambda_knows_the_enumerations_of_its_function() {
    let scratch = Scratch::new("enclosing-lambda");
    let app = compiled(&scratch, "app.cc", LAMBDA, &["-g", "-O0"]);
    let place = format!("app.cc:{}", line_of(LAMBDA, "// here"));
    let expressions = ["where == Where::There", "more == LIMIT", "Where::Here"];
    let shown = shown("enclosing-lambda-stop", &place, &app, &expressions);
    assert_eq!(shown, ["true", "true", "Where::Here"]);
}

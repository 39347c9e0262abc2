// Values of generic parameters that are function items, which are not passed, and pointers to functions.
type Pointer = fn(i64) -> i64;

struct Whole<F> { f: F, n: i64, m: i64 }
struct Float<F> { f: F, n: f64 }

fn double(x: i64) -> i64 { x * 2 }

#[inline(never)]
fn pointer(x: i64, f: Pointer, y: i64) -> i64 { f(x) - y }
#[inline(never)]
fn pointers<F: Fn(i64) -> i64>(x: i64, f: F, y: i64) -> i64 { f(x) - y }
#[inline(never)]
fn first<F: Fn(i64) -> i64>(f: F, x: i64) -> i64 { f(x) }
#[inline(never)]
fn middle<F: Fn(i64) -> i64>(x: i64, f: F, y: i64) -> i64 { f(x) - y }
#[inline(never)]
fn last<F: Fn(i64) -> i64, G: Fn(i64) -> i64>(x: i64, f: F, g: G) -> i64 { f(x) - g(x) }
#[inline(never)]
fn small<F: Fn(i64) -> i64>(a: u32, b: u16, c: u8, f: F) -> i64 { f(i64::from(a)) + i64::from(b) + i64::from(c) }
#[inline(never)]
fn mixed<F: Fn(i64) -> i64, G: Fn(i64) -> i64>(x: i64, f: F, g: G) -> i64 { f(x) - g(x) }
#[inline(never)]
fn same<F: Fn(i64) -> i64>(f: F) -> F { std::hint::black_box(()); f }
#[inline(never)]
fn back<F: Fn(i64) -> i64>(f: F) -> F { std::hint::black_box(()); f }
#[inline(never)]
fn whole<F: Fn(i64) -> i64>(all: Whole<F>, y: i64) -> i64 { (all.f)(all.n) + all.m + y }
#[inline(never)]
fn float<F: Fn(i64) -> i64>(all: Float<F>, y: i64) -> i64 { (all.f)(all.n as i64) + y }

fn main() {
    let p: Pointer = std::hint::black_box(double);
    let mut sum = pointer(1, p, 2) + pointers(1, p, 2) + first(double, 3) + middle(4, double, 5);
    sum += last(6, double, double) + small(7, 8, 9, double) + mixed(10, double, p);
    sum += same(double)(11) + back(p)(12);
    sum += whole(Whole { f: double, n: 13, m: 14 }, 15) + float(Float { f: double, n: 16.5 }, 17);
    println!("{sum}");
}

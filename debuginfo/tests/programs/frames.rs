// Generic functions, closures, trait objects and the runtime's frames on the stack.
use std::hint::black_box;

#[inline(never)]
#[no_mangle]
pub extern "C" fn stop_here(n: i32) {
    black_box(n);
}

trait Shape {
    fn area(&self, n: i32) -> i32;
}

struct Square(i32);

impl Shape for Square {
    #[inline(never)]
    fn area(&self, n: i32) -> i32 {
        stop_here(n);
        self.0 * self.0
    }
}

#[inline(never)]
fn generic<T: Copy + Into<i64>>(value: T) -> i64 {
    let wide = value.into();
    stop_here(2);
    black_box(wide) + 1
}

#[inline(always)]
fn inner(n: i32) -> i32 {
    stop_here(n);
    black_box(n) * 2
}

#[inline(never)]
fn calls_inlined(n: i32) -> i32 {
    let more = black_box(n) + 1;
    inner(more) + more
}

#[inline(never)]
fn apply(f: impl Fn(i32) -> i32) -> i32 {
    f(4)
}

fn main() {
    let shape: Box<dyn Shape> = black_box(Box::new(Square(3)));
    black_box(shape.area(1));
    black_box(generic(7i32));
    black_box(generic(7u8));
    black_box(calls_inlined(2));
    let base = black_box(10);
    black_box(apply(|n| {
        stop_here(n);
        n + base
    }));
    let mut list = black_box(vec![3, 1, 2]);
    let mut stopped = false;
    list.sort_by(|a, b| {
        if !stopped {
            stopped = true;
            stop_here(5);
        }
        a.cmp(b)
    });
    std::thread::spawn(|| stop_here(6)).join().unwrap();
    black_box(list);
}

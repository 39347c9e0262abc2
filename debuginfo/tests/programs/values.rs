//! Values of the kinds that are specific to Rust, in a frame that stops in `stop`.
use std::hint::black_box;

#[derive(Clone, Copy)]
pub struct Point { pub x: i32, pub y: i32 }
pub struct Pair(pub i32, pub f64);
pub struct Unit;
#[derive(Clone, Copy)]
pub enum Plain { Red, Green = 5 }
pub enum Data { Empty, One(u8), Named { a: i64, b: bool }, Big(u128) }
pub union Either { pub int: u32, pub float: f32 }
pub struct Generic<T> { pub item: T }
pub static GREETING: &str = "hello";
pub static NUMBERS: [u16; 3] = [1, 2, 3];

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn stop() { black_box(()); }

#[inline(never)]
fn values(argument: i32, text: &str, slice: &[i32]) -> i32 {
    let point = Point { x: argument, y: -2 };
    let pair = Pair(3, 1.5);
    let unit = Unit;
    let tuple = (1u8, 'c', true);
    let some: Option<i32> = Some(5);
    let none: Option<i32> = None;
    let niche: Option<&i32> = Some(&argument);
    let no_niche: Option<&i32> = None;
    let boxed: Option<Box<i32>> = Some(Box::new(7));
    let ok: Result<u8, &str> = Ok(9);
    let failed: Result<u8, &str> = Err("bad");
    let plain = Plain::Green;
    let empty = Data::Empty;
    let one = Data::One(200);
    let named = Data::Named { a: -1, b: true };
    let big = Data::Big(1 << 100);
    let either = Either { int: 0x3f80_0000 };
    let generic = Generic { item: point };
    let array = [1i16, 2, 3];
    let wide: i128 = -(1 << 100);
    let reference = &point;
    black_box((&point, &pair, &unit, &tuple, &some, &none, &niche, &no_niche, &boxed));
    black_box((&ok, &failed, &plain, &empty, &one, &named, &big, &either, &generic, &array));
    black_box((&wide, &reference, text, slice));
    stop();
    point.x + argument + text.len() as i32 + slice[0] + reference.y
}

fn main() {
    black_box((Plain::Red as i32, GREETING, &NUMBERS));
    let argument = black_box(11);
    std::process::exit(i32::from(values(argument, "some \"text\"", &[1, 2, 3]) == 0));
}

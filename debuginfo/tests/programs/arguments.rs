// Values that Rust passes by address, in registers and as results in memory; printed before they are passed.
use std::convert::Infallible;

fn tell<T>(kind: &str, function: &str, name: &str, value: &T) {
    // SAFETY: the bytes of a value that stays borrowed; callers pass no types with padding.
    let bytes = unsafe { std::slice::from_raw_parts((value as *const T).cast::<u8>(), size_of::<T>()) };
    let text: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    println!("{kind}\targuments::{function}\t{name}\t{text}");
}

type Residual = Result<Infallible, [u64; 6]>;

#[derive(Clone, Copy)]
struct Wide { a: u64, b: [u32; 7] }

#[inline(never)]
fn residual(rest: Residual, after: u32) -> [u64; 6] {
    let Err(mut all) = rest;
    all[0] += u64::from(after);
    all
}
#[inline(never)]
fn again(rest: Residual, after: u32) -> Residual {
    let Err(mut all) = rest;
    all[1] += u64::from(after);
    Err(all)
}
#[inline(never)]
fn wide(v: Wide, after: f64) -> Wide { Wide { a: v.a + after as u64, ..v } }
#[inline(never)]
fn slice(v: &[u8], text: &str, after: u16) -> usize { v.len() + text.len() + usize::from(after) }
#[inline(never)]
fn pair(v: (u32, f32), after: i8) -> (u32, f32) { (v.0 + after as u32, v.1) }
#[inline(never)]
fn array(v: [u16; 3], after: char) -> [u16; 3] { [v[0] + after as u16, v[1], v[2]] }
#[inline(never)]
fn option(v: Option<Box<i32>>, after: Option<u8>) -> i32 { v.map_or(0, |b| *b) + i32::from(after.unwrap_or(1)) }
#[inline(never)]
fn big(v: u128, after: bool) -> u128 { v + u128::from(after) }

macro_rules! call {
    ($function:ident, $($name:ident),+) => {{
        $(tell("ARG", stringify!($function), stringify!($name), &$name);)+
        let result = $function($($name),+);
        tell("RET", stringify!($function), "-", &result);
    }};
}

fn main() {
    let n = std::env::args().count() as u64;
    { let (rest, after): (Residual, u32) = (Err([n, 2, 3, 4, 5, 6]), 7); call!(residual, rest, after); }
    { let (rest, after): (Residual, u32) = (Err([n, 2, 3, 4, 5, 6]), 7); call!(again, rest, after); }
    { let (v, after) = (Wide { a: n, b: [1, 2, 3, 4, 5, 6, 7] }, 2.0); tell("ARG", "wide", "after", &after); let _ = std::hint::black_box(wide(v, after)); }
    { let (v, text, after) = (&[1u8, 2][..], "text", 9u16 + n as u16); call!(slice, v, text, after); }
    { let (v, after) = ((n as u32, 2.5f32), 3i8); call!(pair, v, after); }
    { let (v, after) = ([n as u16, 2, 3], 'x'); call!(array, v, after); }
    { let (v, after) = (Some(Box::new(n as i32)), Some(4u8)); call!(option, v, after); }
    { let (v, after) = (u128::from(n) << 70, true); call!(big, v, after); }
}

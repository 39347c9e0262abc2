//! Enumerators in Rust and names of functions: see tests/names.rs.
use std::hint::black_box;

#[derive(Clone, Copy)]
pub enum Colour {
    Red = 1,
    Green = 6,
}

static COATS: u32 = 4;

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn stop_here() {
    black_box(());
}

#[inline(never)]
fn work(given: u32) -> u32 {
    let copy = black_box(given);
    stop_here();
    copy + black_box(&COATS)
}

fn main() {
    let step = 7u32;
    black_box(&step);
    let colours = [Colour::Red, Colour::Green];
    let sum: u32 = black_box(colours).iter().map(|c| *c as u32).sum();
    std::process::exit(i32::from(work(step) + sum == 0));
}

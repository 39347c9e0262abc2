// The Rust side: enums with data, slices, closures, generics, without the standard library.
#![no_std]
#![allow(dead_code, improper_ctypes_definitions)]
pub enum Shape<'a> { Empty, Circle(f32), Named { name: &'a str, sides: u8 } }
pub struct Wide { words: [u64; 4], flag: bool }
#[inline(never)]
pub fn area(shape: Shape<'_>, scale: Option<core::num::NonZeroU16>) -> f32 {
    match shape { Shape::Empty => 0.0, Shape::Circle(r) => r * r, Shape::Named { sides, .. } => f32::from(sides) + scale.map_or(0.0, |s| f32::from(s.get())) }
}
#[inline(never)]
fn sum<T: Copy + Into<u64>>(items: &[T], each: impl Fn(u64) -> u64) -> u64 {
    let mut total = 0u64;
    let mut at = items.iter();
    while let Some(item) = at.next() { total = total.wrapping_add(each((*item).into())); }
    total
}
#[unsafe(no_mangle)]
pub extern "C" fn start(wide: Wide, pair: (u32, f64), big: u128, c: char) -> u64 {
    let shape = if wide.flag { Shape::Named { name: "x", sides: 3 } } else { Shape::Circle(pair.1 as f32) };
    area(shape, None) as u64 + sum(&wide.words, |w| w ^ 1) + sum(&[1u8, 2], |w| w) + big as u64 + c as u64
}
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }

// A parameter that rustc removes, because it is always the same.

#[inline(never)]
fn pick(on: u64, level: u64) -> u64 {
    println!("{on}");
    on.wrapping_mul(level)
}

fn main() {
    let count = std::env::args().count() as u64;
    let sum = pick(count, 200).wrapping_add(pick(count + 1, 200));
    std::process::exit((sum == 0).into());
}

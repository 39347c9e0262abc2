//! A block of calls that only one of two runs makes, among many like them.

use std::fmt::Write as _;

use e2e::{Program, Scratch};

use crate::{build, compare, ends_with, record};

const OPERATIONS: &str = r#"#include <stdio.h>
__attribute__((noinline)) int leaf(int x) { return x * 7 % 13; }
__attribute__((noinline)) int op(int x) { return leaf(x) + leaf(x + 1); }
int main(void) { int x; long s = 0; while (scanf("%d", &x) == 1) s += op(x); return s > 1000000000; }
"#;

/// Numbers below 50 that look random.
fn numbers(seed: u64, count: usize) -> Vec<u64> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % 50
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn inserted_calls_are_counted_and_nothing_else() {
    let scratch = Scratch::new("compare-inserted");
    let source = scratch.join("app.c");
    std::fs::write(source, OPERATIONS).expect("the test's folder is writable");
    build(scratch.path(), "gcc -O1 -g -o app app.c");
    let all = numbers(1, 20_000);
    for (name, inserted) in [("none", 0), ("some", 40), ("many", 100)] {
        let mut own = all.clone();
        own.splice(3000..3000, numbers(2, inserted));
        let input = own.iter().fold(String::new(), |mut text, number| {
            writeln!(text, "{number}").expect("a string takes any text");
            text
        });
        let app = Program::new(scratch.join("app"), scratch.path()).stdin(input);
        let options = ["-f", "main", "-f", "op", "-f", "leaf"];
        record(&scratch, name, &options, &app);
    }
    for (name, more) in [("some", 121), ("many", 301)] {
        for (pair, of_a, of_b) in [(["none", name], 1, more), ([name, "none"], more, 1)] {
            let calls = |count: u32| match count {
                1 => "1 call".to_owned(),
                _ => format!("{count} calls"),
            };
            let (of_a, of_b) = (calls(of_a), calls(of_b));
            let ended = compare(&scratch, &pair);
            let told = format!("Differences: {of_a} of A and {of_b} of B, in 3 functions\n");
            assert!(ended.text().contains(&told), "{told}{}", ended.text());
            ends_with(&ended, 1);
        }
    }
}

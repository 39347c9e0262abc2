//! Goal: no text makes the parsers of expressions panic or loop endlessly, and a parsed text is printed as text with
//! the same meaning. Method: valid expressions are changed at random from a fixed seed, by bytes and by exchanging
//! pieces. `EXPR_FUZZ_ROUNDS` makes the search longer. `EXPR_FUZZ_CORPUS` names a folder to which the valid ones are
//! written, as a starting corpus for the fuzz target.

// Only the random number generator is used here.
#[allow(dead_code)]
#[path = "../../debuginfo/tests/common/mutate.rs"]
mod mutate;

use std::path::Path;

use expr::fuzzing::expression;
use mutate::{Random, mutate};

const SEEDS: [&str; 35] = [
    "a + b * c - d / e % f",
    "x == 1 || y != 2 && !z",
    "x === 1 ? y : z !== 'text'",
    "(a & b | c ^ ~d) << 3 >> 1",
    "ns::f<int, char*>::x + ::y",
    "Vec::<u8>::MAX as usize < 5u8",
    "(anonymous namespace)::a::{closure#0}::b",
    "p->next->value.0.1[3]",
    "v[1..n+1] v[..=2] v[..]",
    "*array@10 + &mut x",
    "(struct foo const *)p + (unsigned long)-1",
    "(void (*)(int, char*))p as *const u8 as &[u8; 4]",
    "sizeof(int) + sizeof x + sizeof(T*)",
    "(T)-x * (T)*p + (T)&q - (T)(r)",
    "$rax + $xmm0 > args[0] && args.1 < 0",
    "0x1Ful + 0b1010u8 + 0o17 + 017 + 1_000'000ll",
    "1.5e-3f + .5 + 0x1.8p3 + 2f64 + 1.",
    r#""text \"\x41\101\u00e9\u{1F600}" == s"#,
    r##"r#"raw"# == b"bytes" && c == '\n'"##,
    "f(a, -b)(c).len() + g()",
    "x += (y <<= 3)",
    "p->a[3] = \"new\"",
    "len={p->len}, flags={flags:x} {{literal}}",
    "{a ? b : c:d}{\"}\"}{x:?}",
    "(((((((x)))))))",
    "- - - - ! ~ * & x",
    "a < b > c < d :: e > f",
    "true false null nullptr NULL r#true",
    r#"["alpha", 'be\u{74}a'].includes(name) && args[0] >>> 2 !== -1"#,
    "p?.next?.[3]?.x ?? (typeof y === 'number' ? 2 ** 3 : NaN)",
    r"/^a.*\/[z\]]$/.test(s) || s.startsWith(`req-`)",
    "Math.min(a, b, ...c) + Number(x) * parseInt('0x1f', 16)",
    "(() => { let n = 0; for (const x of list) n += x; return n > 10 })()",
    "$('p->x').y // a comment\n /* another */ === 1e3 + 0b11 + 0o7 + 1_000n",
    "a /b/ c; {x: [1,,2]} => y **= 3 >>>= 4 ||= 5",
];

/// More rounds on request, for a longer search.
fn rounds_per_seed() -> usize {
    let asked = std::env::var("EXPR_FUZZ_ROUNDS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(2000)
}

/// Inserts a piece of one text at a random position of another one.
fn splice(into: &mut Vec<u8>, random: &mut Random) {
    let from = SEEDS[random.below(SEEDS.len())].as_bytes();
    let start = random.below(from.len());
    let end = start + random.below(from.len() - start) + 1;
    let at = random.below(into.len() + 1);
    let until = at + random.below((into.len() - at).min(8) + 1);
    into.splice(at..until, from[start..end].iter().copied());
}

#[test]
fn no_changed_text_makes_a_reader_panic() {
    if let Ok(corpus) = std::env::var("EXPR_FUZZ_CORPUS") {
        for (number, seed) in SEEDS.iter().enumerate() {
            let name = Path::new(&corpus).join(format!("expression_{number}"));
            std::fs::write(name, seed).expect("the folder for the corpus exists");
        }
    }
    let mut random = Random::new(33);
    for seed in SEEDS {
        expression(seed.as_bytes());
        for _ in 0..rounds_per_seed() {
            let mut input = seed.as_bytes().to_vec();
            for _ in 0..random.below(4) {
                splice(&mut input, &mut random);
            }
            let whole = [(0, input.len())];
            if random.below(2) == 0 {
                mutate(&mut input, &whole, &mut random);
            }
            let outcome = std::panic::catch_unwind(|| expression(&input));
            assert!(outcome.is_ok(), "{}", String::from_utf8_lossy(&input));
        }
    }
}

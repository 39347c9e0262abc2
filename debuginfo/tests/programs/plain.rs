// Functions, methods, generics and closures of a Rust program.
use std::collections::BTreeMap;

struct Counter {
    seen: BTreeMap<String, usize>,
}

trait Count {
    fn count(&mut self, word: &str, by: usize) -> usize;
}

impl Count for Counter {
    #[inline(never)]
    fn count(&mut self, word: &str, by: usize) -> usize {
        let entry = self.seen.entry(word.to_owned()).or_default();
        *entry += by;
        *entry
    }
}

#[inline(never)]
fn largest<T: PartialOrd + Copy>(all: &[T], start: T) -> T {
    all.iter().fold(start, |a, b| if a > *b { a } else { *b })
}

#[inline(never)]
fn pair(a: (u8, f64), b: Option<Box<i32>>, c: char) -> Result<u64, String> {
    match b {
        Some(b) => Ok(a.1 as u64 + *b as u64 + u64::from(a.0)),
        None => Err(format!("{c}")),
    }
}

#[inline(never)]
fn with(each: &dyn Fn(i64) -> i64, mut n: i64) -> i64 {
    n += 1;
    each(n)
}

mod inner {
    #[inline(never)]
    pub fn scale(by: f32, all: [f32; 3]) -> [f32; 3] {
        all.map(|x| x * by)
    }
}

fn main() {
    let mut counter = Counter { seen: BTreeMap::new() };
    let n = counter.count("a", std::env::args().count()) as i64;
    let sum = largest(&[1, n, 3], 0) + largest(&[0.5, 2.5], 1.0) as i64;
    let sum = with(&|x| x + sum, n) + inner::scale(2.0, [n as f32; 3])[1] as i64;
    println!("{sum} {:?}", pair((1, 2.0), (n > 0).then(|| Box::new(5)), 'x'));
}

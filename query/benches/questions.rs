//! How long do typical questions about ten million calls take, warm?
//!
//! `cargo bench -p query` prints the median of each; `HINDSIGHT_CALLS` sets another number of calls.

mod workload;

use std::path::Path;
use std::time::Instant;

use query::Session;

const RUNS: usize = 9;

fn main() {
    let calls = std::env::var("HINDSIGHT_CALLS").map_or(10_000_000, |n| n.parse().unwrap());
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let recording = workload::recording(dir, calls).unwrap();
    let begun = Instant::now();
    let session = Session::open(recording.dir()).unwrap();
    println!("{:9.2} ms  open", begun.elapsed().as_secs_f64() * 1e3);
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let text = include_str!("questions.sql");
    let questions: Vec<String> = match args.is_empty() {
        true => text.split(";\n").map(str::to_owned).collect(),
        false => args,
    };
    for question in questions.iter().map(|q| q.trim()).filter(|q| !q.is_empty()) {
        let (title, sql) = question.split_once('\n').unwrap_or((question, question));
        let mut first_ms = Vec::new();
        let mut all_ms = Vec::new();
        let mut rows = 0;
        let cpu_before = cpu_ms();
        for _ in 0..RUNS {
            let begun = Instant::now();
            let mut answer = session.sql(sql).unwrap_or_else(|e| panic!("{e}"));
            let first = answer.next().transpose().unwrap_or_else(|e| panic!("{e}"));
            first_ms.push(begun.elapsed().as_secs_f64() * 1e3);
            rows = first.iter().map(|batch| batch.num_rows()).sum::<usize>();
            if std::env::var_os("HINDSIGHT_SHOW").is_some() && all_ms.is_empty() {
                let first: Vec<_> = first.into_iter().collect();
                println!(
                    "{}",
                    arrow::util::pretty::pretty_format_batches(&first).unwrap()
                );
            }
            rows += answer.map(|batch| batch.unwrap().num_rows()).sum::<usize>();
            all_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        first_ms.sort_by(f64::total_cmp);
        all_ms.sort_by(f64::total_cmp);
        let median = RUNS / 2;
        println!(
            "{:9.2} ms, cpu {:9.2} ms, first rows {:9.2} ms, {rows:9} rows  {}",
            all_ms[median],
            (cpu_ms() - cpu_before) / RUNS as f64,
            first_ms[median],
            title.trim_start_matches("-- ")
        );
    }
}

/// Returns the processor time that this process used so far: less disturbed by other processes than a clock.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks: f64 = fields
        .split(' ')
        .skip(11)
        .take(2)
        .map(|t| t.parse::<f64>().unwrap())
        .sum();
    ticks * 10.0
}

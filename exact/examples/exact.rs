//! Recording and running again without the rest of Hindsight: for measurements, and to look into a log.
//!
//! `record FOLDER [--after SECONDS] [--for INSTRUCTIONS] [--times COUNT] [--function ADDRESS]... PROGRAM [ARG...]` prints what the program
//! took (an address is that of the program's file); `replay FOLDER [POSITION...]` goes to positions and to the end;
//! `jump FOLDER COUNT` goes to random positions, and one back from each; `back FOLDER ADDRESS INSTRUCTIONS` runs back to a stop
//! that is never met; `who FOLDER ADDRESS` finds the last write, `writes` all; `seek FOLDER irw [FROM [TO]]` finds instructions, reads and writes;
//! `trace FOLDER ADDRESS...` counts calls of functions; `verify FOLDER` compares; `log FOLDER FROM TO` shows what was recorded between two positions.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use exact::{Hints, Hook, MappedFile, Options, Replay, Result, Traced, When};

fn main() {
    let args: Vec<OsString> = std::env::args_os().collect();
    let words: Vec<&str> = args
        .iter()
        .map(|arg| arg.to_str().unwrap_or_default())
        .collect();
    let [_, verb, folder, rest @ ..] = words.as_slice() else {
        eprintln!("usage: exact record|replay|jump|back|who|log FOLDER ...");
        std::process::exit(2);
    };
    let folder = Path::new(folder);
    let done = match *verb {
        "record" => record(folder, &args[3..]),
        "replay" => replay(folder, &numbers(rest, 10)),
        "jump" => jump(folder, numbers(rest, 10)[0]),
        "back" => back(
            folder,
            numbers(&rest[..1], 16)[0],
            numbers(&rest[1..], 10)[0],
        ),
        "who" => who(folder, numbers(rest, 16)[0]),
        "seek" => seek(folder, rest[0], &numbers(&rest[1..], 10)),
        "writes" => writes(folder, numbers(rest, 16)[0]),
        "trace" => trace(folder, &numbers(rest, 16)),
        "verify" => verify(folder),
        "log" => log(folder, &numbers(rest, 10)),
        _ => panic!("there is no {verb}"),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn numbers(words: &[&str], radix: u32) -> Vec<u64> {
    let number =
        |word: &&str| u64::from_str_radix(word.trim_start_matches("0x"), radix).expect("a number");
    words.iter().map(number).collect()
}

/// Takes the options from the front of the arguments.
fn when(args: &mut &[OsString]) -> When {
    let (mut time, mut instructions, mut times) = (None, u64::MAX, 1);
    let mut functions = Vec::new();
    while let [option, value, rest @ ..] = *args
        && option.as_encoded_bytes().starts_with(b"--")
    {
        let value = value.to_str().expect("a number");
        match option.to_str() {
            Some("--after") => time = Some(value.parse().expect("seconds")),
            Some("--for") => instructions = value.parse().expect("a number"),
            Some("--times") => times = value.parse().expect("a number"),
            Some("--function") => functions.extend(numbers(&[value], 16)),
            _ => panic!("there is no {option:?}"),
        }
        *args = rest;
    }
    if !functions.is_empty() {
        let base = |files: &[MappedFile]| files.iter().map(|file| file.start).min().unwrap_or(0);
        return When::Calls(Box::new(move |files| {
            let low = base(files);
            let address = |at: &u64| if *at < low { low + at } else { *at };
            functions.iter().map(address).collect()
        }));
    }
    match time {
        Some(seconds) => When::After {
            time: Duration::from_secs_f64(seconds),
            instructions,
            times,
        },
        None => When::Always,
    }
}

fn record(folder: &Path, mut args: &[OsString]) -> Result<()> {
    std::fs::create_dir_all(folder).expect("the folder can be made");
    let options = Options {
        when: when(&mut args),
        ..Options::default()
    };
    let start = Instant::now();
    let summary = exact::record(Path::new(&args[0]), args, folder, options)?;
    eprintln!("{summary:?} {:?}", start.elapsed());
    std::process::exit(
        summary
            .code
            .unwrap_or_else(|| 128 + summary.signal.unwrap_or(0)),
    );
}

fn trace(folder: &Path, addresses: &[u64]) -> Result<()> {
    let files = Replay::open(folder)?
        .files()
        .map(|(_, file)| file.start)
        .min();
    let low = files.unwrap_or(0);
    let hook = |at: &u64| Hook {
        address: if *at < low { low + at } else { *at },
        vectors: 0,
    };
    let hooks: Vec<Hook> = addresses.iter().map(hook).collect();
    let (start, mut enters, mut leaves) = (Instant::now(), 0, 0);
    exact::trace(folder, &hooks, &Hints::default(), &mut |traced| {
        enters += u64::from(matches!(traced, Traced::Enter { .. }));
        leaves += u64::from(matches!(traced, Traced::Leave { .. }));
        true
    })?;
    eprintln!("{enters} {leaves} {:?}", start.elapsed());
    Ok(())
}

fn replay(folder: &Path, goals: &[u64]) -> Result<()> {
    let mut replay = Replay::open(folder)?;
    let end = replay.end();
    for goal in goals.iter().copied().chain([end]) {
        let start = Instant::now();
        replay.goto(goal)?;
        eprintln!(
            "{goal} of {end}: rip {:#x} {:?}",
            replay.registers()?.rip,
            start.elapsed()
        );
    }
    Ok(())
}

/// The middle one and the one that a hundredth exceeds, in milliseconds.
fn shown(what: &str, mut took: Vec<f64>) {
    took.sort_by(f64::total_cmp);
    println!(
        "{what} {:.2} {:.2}",
        took[took.len() / 2],
        took[took.len() * 99 / 100]
    );
}

fn jump(folder: &Path, count: u64) -> Result<()> {
    let mut replay = Replay::open(folder)?;
    let end = replay.end();
    replay.goto(end)?;
    let (mut jumps, mut steps) = (Vec::new(), Vec::new());
    let mut random = 88_172_645_463_325_252_u64;
    for _ in 0..count {
        // Xorshift (Marsaglia, 2003): any positions will do.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let goal = 1 + random % (end - 1);
        for (goal, took) in [(goal, &mut jumps), (goal - 1, &mut steps)] {
            let start = Instant::now();
            replay.goto(goal)?;
            took.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    shown("goto", jumps);
    shown("back", steps);
    Ok(())
}

fn back(folder: &Path, address: u64, instructions: u64) -> Result<()> {
    let mut replay = Replay::open(folder)?;
    replay.goto(replay.end().min(instructions))?;
    let start = Instant::now();
    let found = replay.previous_stop(&[address], &mut |_| true)?;
    println!("{found:?} {:.1}", start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

fn who(folder: &Path, address: u64) -> Result<()> {
    let mut replay = Replay::open(folder)?;
    let end = replay.end();
    // The first way through makes the copies.
    for _ in 0..2 {
        let start = Instant::now();
        let found = replay.last_write(address, 4, end)?;
        println!("{found:?} {:.1}", start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

fn writes(folder: &Path, address: u64) -> Result<()> {
    let mut replay = Replay::open(folder)?;
    let end = replay.end();
    let seek = exact::Seek {
        writes: true,
        memory: Some(vec![address..address + 8]),
        ..exact::Seek::default()
    };
    // The first way through makes the copies.
    for _ in 0..2 {
        let start = Instant::now();
        let mut found = Vec::new();
        replay.seek(0..end, &seek, &mut |batch| {
            found.extend(batch.accesses.iter().map(|access| access.position));
            true
        })?;
        println!(
            "{:?} of {} {:.1}",
            found.last(),
            found.len(),
            start.elapsed().as_secs_f64() * 1e3
        );
    }
    Ok(())
}

fn seek(folder: &Path, what: &str, range: &[u64]) -> Result<()> {
    let mut replay = Replay::open(folder)?;
    let end = replay.end();
    let range = range.first().copied().unwrap_or(0)..range.get(1).copied().unwrap_or(end).min(end);
    replay.goto(range.start)?;
    let seek = exact::Seek {
        instructions: what.contains('i'),
        reads: what.contains('r'),
        writes: what.contains('w'),
        value_bytes: 8,
        ..exact::Seek::default()
    };
    let (mut executed, mut accesses) = (0, 0);
    let start = Instant::now();
    replay.seek(range, &seek, &mut |batch| {
        executed += batch.executed.len();
        accesses += batch.accesses.len();
        true
    })?;
    let took = start.elapsed().as_secs_f64();
    println!(
        "{executed} instructions, {accesses} reads and writes in {took:.3} s: {:.1} M/s",
        (executed + accesses) as f64 / took / 1e6
    );
    Ok(())
}

fn verify(folder: &Path) -> Result<()> {
    let start = Instant::now();
    let verdict = exact::verify(folder, &mut |_, _| true)?;
    println!("{verdict:?} {:?}", start.elapsed());
    Ok(())
}

fn log(folder: &Path, range: &[u64]) -> Result<()> {
    for line in Replay::open(folder)?.entries(range[0], range[1]) {
        println!("{line}");
    }
    Ok(())
}

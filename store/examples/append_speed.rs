//! Question: how many bytes a second does one thread append to a log on this disk, checksums and rolling included,
//! and how fast are they read back and decoded?
//!
//! `cargo run --release -p store --example append_speed -- DIR [MIB] [BLOCK_KIB] [ROUNDS]` appends MIB mebibytes (2048) of
//! enter and leave records in blocks of BLOCK_KIB (1024) to a log in the new folder DIR/append-speed, ROUNDS times (5), prints
//! each round and the medians, and removes the folder. `records` is the decoder alone, on a block that stays in the cache.

use std::path::Path;
use std::time::{Duration, Instant};

use store::error::{Error, Result};
use store::log::{FrameBody, LogReader, LogWriter, Step, Tail};
use store::synth::RECORDING_ID;
use store::wire::{self, EnterFields, EnterForm, Leave, Record, Records};

/// How long each part of a round took.
struct Round {
    append: Duration,
    /// Processor time of the appending thread, independent of the load of the machine.
    append_cpu: Duration,
    close: Duration,
    read: Duration,
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().unwrap_or_else(|| ".".into());
    let mut number = |default: usize| args.next().and_then(|a| a.parse().ok()).unwrap_or(default);
    let (mebibytes, block_kib, count_rounds) = (number(2048), number(1024), number(5));
    let block = block(block_kib << 10);
    let count = (mebibytes << 20) / block.len();
    let dir = Path::new(&dir).join("append-speed");
    let bytes = (count * block.len()) as f64;
    let mut rounds = Vec::new();
    for _ in 0..count_rounds {
        std::fs::create_dir(&dir).map_err(Error::io("create", &dir))?;
        let round = measure(&dir, &block, count);
        std::fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))?;
        rounds.push(round?);
        print_round(&rounds[rounds.len() - 1], bytes);
    }
    println!(
        "{count} blocks of {} bytes, median of {count_rounds} rounds",
        block.len()
    );
    print_medians(&rounds, bytes);
    decode_speed();
    Ok(())
}

fn print_round(round: &Round, bytes: f64) {
    let rate = |time: Duration| bytes / time.as_secs_f64() / 1e9;
    println!(
        "round: append {:.3}, of CPU time {:.3}, read {:.3} GB/s",
        rate(round.append),
        rate(round.append_cpu),
        rate(round.read)
    );
}

fn print_medians(rounds: &[Round], bytes: f64) {
    let rate = |of: fn(&Round) -> Duration| {
        let mut times: Vec<f64> = rounds.iter().map(|round| of(round).as_secs_f64()).collect();
        times.sort_by(f64::total_cmp);
        bytes / times[times.len() / 2] / 1e9
    };
    println!("append        {:6.2} GB/s", rate(|r| r.append));
    println!("  of CPU time {:6.2} GB/s", rate(|r| r.append_cpu));
    println!("append, close {:6.2} GB/s", rate(|r| r.append + r.close));
    println!("read, check   {:6.2} GB/s", rate(|r| r.read));
}

fn measure(dir: &Path, block: &[u8], count: usize) -> Result<Round> {
    let mut log = LogWriter::create(dir, RECORDING_ID)?;
    let (start, cpu) = (Instant::now(), cpu_time());
    for index in 0..count {
        // In two parts, as where a ring wraps.
        let parts = block.split_at(index * 72 % block.len());
        log.append_block(0, 0, [parts.1, parts.0])?;
    }
    let (append, append_cpu) = (start.elapsed(), cpu_time() - cpu);
    let start = Instant::now();
    let _closed = log.close()?;
    let close = start.elapsed();
    let start = Instant::now();
    let mut reader = LogReader::open(dir, RECORDING_ID, Tail::MustBeClosed)?;
    let mut read = 0;
    while let Step::Frame(frame) = reader.next_frame()? {
        if let FrameBody::Block(block) = frame.body {
            read += block.bytes.len();
        }
    }
    assert_eq!(read, count * block.len(), "everything is read back");
    Ok(Round {
        append,
        append_cpu,
        close,
        read: start.elapsed(),
    })
}

/// Returns how long this thread has run, from the scheduler's own count.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = stat.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// Fills a block with pairs of enter and leave records.
fn block(len: usize) -> Vec<u8> {
    let mut block = Vec::with_capacity(len);
    let mut ticks = 0;
    while block.len() + 104 <= len {
        let slot = 0x7ffd_0000_0000 + ticks % 4096 * 8;
        let fields = EnterFields {
            form: EnterForm::Hooked,
            function_id: (ticks % 1000) as u32,
            slot,
            return_addr: 0x40_1234,
            args: [ticks, 1, 2, 3, 4, 5],
            xmm: &[],
        };
        wire::push_enter(&mut block, ticks, &fields);
        let leave = Leave {
            slot,
            rax: ticks,
            rdx: 0,
            xmm: None,
        };
        wire::push_leave(&mut block, ticks + 20, &leave);
        ticks += 40;
    }
    block
}

fn decode_speed() {
    let block = block(256 << 10);
    let mut sum = 0u64;
    let mut count = 0u64;
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(500) {
        for decoded in Records::new(&block).map_while(|decoded| decoded.ok()) {
            sum = sum.wrapping_add(decoded.ticks);
            count += 1;
            match decoded.record {
                Record::Enter(enter) => {
                    let args = enter.args();
                    sum ^= enter.slot() ^ u64::from(enter.function_id()) ^ args[0] ^ args[5];
                }
                Record::Leave(leave) => sum ^= leave.slot ^ leave.rax,
                _ => {}
            }
        }
    }
    let rate = count as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("records       {rate:6.0} M/s (sum {sum:x})");
}

//! Makes a recording to measure on: four threads, 300 functions called as often as in real programs, ten calls deep.
//!
//! The same seed gives the same recording.

use std::path::Path;

use store::control::{Control, FunctionDef, Param, ParameterPlace, ValueKind};
use store::recording::{Created, OnTaken, OpenRecording, Recording};
use store::seal::{Ending, SealOptions, Sealer};
use store::wire::{self, EnterFields, EnterForm, Leave};
use store::{Result, synth};

/// Functions defined; one in ten shares its name with others.
const FUNCTIONS: u32 = 300;
/// Functions that a call at each depth chooses from.
const FUNCTIONS_AT_DEPTH: u64 = 25;
const THREADS: usize = 4;
const MOST_DEEP: usize = 12;
/// Events from one watermark to the next.
const WATERMARK_EVENTS: u64 = 20_000;
const STACK_TOP: u64 = 0x7fff_ffff_0000;
const STACK_STEP: u64 = 0x1_0000_0000;

/// Returns the recording with `calls` calls below `dir`, made and sealed the first time.
pub fn recording(dir: &Path, calls: u64) -> Result<Recording> {
    let path = dir.join(format!("questions-{calls}.hindsight"));
    if !path.join("columns/seal.state").exists() {
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(store::Error::io("remove", &path)(error));
            }
            _ => {}
        }
        write_log(&path, calls)?;
        let recording = Recording::open(&path)?;
        let sealer = Sealer::own(&recording, SealOptions::default())?;
        sealer.finish(Ending::Close, |_| {})?;
    }
    Recording::open(&path)
}

/// A generator of numbers that look random (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    /// Returns small numbers more often than large ones.
    fn skewed_below(&mut self, limit: u64) -> u64 {
        let part = self.below(1 << 20) as f64 / f64::from(1 << 20);
        (limit as f64 * part.powi(3)) as u64
    }
}

/// The functions a thread is in, and its records since the last watermark.
#[derive(Default)]
struct Thread {
    stack: Vec<u64>,
    block: Vec<u8>,
}

fn write_log(path: &Path, calls: u64) -> Result<()> {
    let Created { open, mut log } =
        OpenRecording::create(path, OnTaken::Refuse, synth::manifest())?;
    define(&mut log)?;
    let mut numbers = Numbers(42);
    let mut threads: [Thread; THREADS] = Default::default();
    for (index, thread) in threads.iter_mut().enumerate() {
        let top = STACK_TOP - index as u64 * STACK_STEP;
        let stack = (top - 0x80_0000, top + 0x1000);
        wire::push_thread(&mut thread.block, 1, 4000 + index as u32, stack, b"worker");
    }
    let (mut ticks, mut finished, mut events, mut current) = (1, 0, 0, 0);
    while finished < calls {
        if numbers.below(50) == 0 {
            current = numbers.below(THREADS as u64) as usize;
        }
        ticks += 20 + numbers.below(180);
        if numbers.below(1000) == 0 {
            ticks += numbers.below(100_000);
        }
        finished += u64::from(step(
            &mut threads[current],
            current,
            ticks,
            events,
            &mut numbers,
        ));
        events += 1;
        if events % WATERMARK_EVENTS == 0 || finished == calls {
            for (ring, thread) in threads.iter_mut().enumerate() {
                log.append_block(ring as u32, 0, [&thread.block, &[]])?;
                thread.block.clear();
            }
            log.append_watermark(ticks)?;
        }
    }
    open.close(log.close()?)?;
    Ok(())
}

fn define(log: &mut store::log::LogWriter) -> Result<()> {
    log.append_control(&Control::ModuleLoad {
        ticks: 0,
        module: 0,
        path: "/usr/bin/workload".into(),
        build_id: None,
        addr: 0x5555_5555_4000,
        size: 1 << 20,
        system: false,
    })?;
    let int = ValueKind::Int {
        bytes: 4,
        signed: true,
    };
    for id in 0..FUNCTIONS {
        let name = match id % 10 {
            9 => format!("shared_{}", id / 100),
            _ => format!("module_{:02}::function_{id:03}", id / 25),
        };
        log.append_control(&Control::Function(FunctionDef {
            id,
            module: 0,
            svma: u64::from(id) * 0x1000,
            size: 64,
            name,
            linkage: format!("f{id}"),
            file: Some(format!("src/file{}.c", id / 12)),
            line: Some(id + 1),
            params: vec![Param::in_one_place(
                "n",
                int.clone(),
                ParameterPlace::Int(0),
            )],
            ret: int.clone(),
            params_known: true,
            ret_place: None,
        }))?;
    }
    Ok(())
}

/// Lets a thread enter or leave a function; returns whether it left one.
fn step(thread: &mut Thread, index: usize, ticks: u64, events: u64, numbers: &mut Numbers) -> bool {
    let depth = thread.stack.len();
    let slot = |depth: usize| STACK_TOP - index as u64 * STACK_STEP - depth as u64 * 96;
    if depth == 0 || depth < MOST_DEEP && numbers.below(2) == 0 {
        let id = depth as u64 * FUNCTIONS_AT_DEPTH + numbers.skewed_below(FUNCTIONS_AT_DEPTH);
        thread.stack.push(id);
        let heap = 0x5555_5580_0000 + numbers.below(1 << 16) * 16;
        let fields = EnterFields {
            form: EnterForm::Hooked,
            function_id: (id % u64::from(FUNCTIONS)) as u32,
            slot: slot(depth),
            return_addr: 0x5555_5555_5000 + id * 4096 + numbers.below(3) * 16,
            args: [events / 2, heap, numbers.below(100), 7, 0, slot(depth) - 64],
            xmm: &[],
        };
        wire::push_enter(&mut thread.block, ticks, &fields);
        return false;
    }
    thread.stack.pop();
    let rax = match numbers.below(1000) {
        0 => u64::from(u32::MAX),
        _ => numbers.below(64),
    };
    let leave = Leave {
        slot: slot(depth - 1),
        rax,
        rdx: numbers.below(4),
        xmm: None,
    };
    wire::push_leave(&mut thread.block, ticks, &leave);
    true
}

//! How fast is sealing, how many bytes does a call take, and how much memory is needed?
//!
//! Writes the log of a made-up program and seals it: `seal_bench WORKLOAD MILLIONS_OF_CALLS FOLDER`. Workloads:
//! `tight` (one function in a loop), `fib` (recursion), `pointers` (eight random pointers per call), `floats`,
//! `threads` (two threads side by side). One core seals; the log is in the page cache.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use store::Recording;
use store::control::Control;
use store::log::LogWriter;
use store::manifest::{ClockCalibration, Host, Manifest, RecordingId, Settings};
use store::recording::{Created, OnTaken, OpenRecording};
use store::seal::{Ending, SealOptions, Sealed, Sealer};
use store::wire::{self, EnterFields, EnterForm, Leave};

/// Bytes of a block, as a recorder drains them.
const BLOCK_LEN: usize = 256 << 10;
const TSC_HZ: f64 = 2.1e9;
const TSC_BASE: u64 = 1_000_000_007;
const STACK_TOP: u64 = 0x7ffd_1234_5678;
const STACK_LOW: u64 = STACK_TOP - (8 << 20);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, workload, millions, folder] = args.as_slice() else {
        return Err("usage: seal_bench tight|fib|pointers|floats|threads MILLIONS FOLDER".into());
    };
    let calls = (millions.parse::<f64>()? * 1e6) as u64;
    let dir = PathBuf::from(folder).join(format!("seal-bench-{workload}"));
    let recording = write_log(&dir, workload, calls)?;
    let log_len = folder_len(&recording.log_dir())?;
    let started = Instant::now();
    let cpu_started = cpu_seconds()?;
    let sealed = Sealer::own(&recording, SealOptions::default())?.finish(Ending::Close, |_| {})?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = cpu_seconds()? - cpu_started;
    report(
        workload,
        &sealed,
        log_len,
        seconds,
        cpu,
        folder_len(recording.dir())?,
    )
}

fn report(
    workload: &str,
    sealed: &Sealed,
    log_len: u64,
    seconds: f64,
    cpu: f64,
    len: u64,
) -> Result<(), Box<dyn Error>> {
    let calls: u64 = sealed.parts.iter().map(|part| part.part.calls).sum();
    println!(
        "{workload}: {calls} calls, {} events, log {:.0} MB; {seconds:.2} s, cpu {cpu:.2} s; {:.1} M events/s \
         ({:.1} per cpu second), {:.1} ns/call; {:.2} B/call all-in ({} parts), peak RSS {} MB",
        sealed.events,
        log_len as f64 / 1e6,
        sealed.events as f64 / seconds / 1e6,
        sealed.events as f64 / cpu / 1e6,
        cpu * 1e9 / calls as f64,
        len as f64 / calls as f64,
        sealed.parts.len(),
        peak_rss_mb()?,
    );
    Ok(())
}

fn write_log(dir: &Path, workload: &str, calls: u64) -> Result<Recording, Box<dyn Error>> {
    let Created { open, log } = OpenRecording::create(dir, OnTaken::Refuse, manifest())?;
    let mut program = Program::new(log, calls);
    program.control()?;
    match workload {
        "tight" => program.tight()?,
        "fib" => while program.fib(27, 0, 0x5555_5555_4000)?.is_some() {},
        "pointers" => program.pointers()?,
        "floats" => program.floats()?,
        "threads" => program.threads()?,
        other => return Err(format!("no workload {other}").into()),
    }
    Ok(open.close(program.close()?)?)
}

/// A program that makes `left` more calls on up to two threads.
struct Program {
    log: LogWriter,
    blocks: [Vec<u8>; 2],
    thread: usize,
    ticks: u64,
    left: u64,
    random: u64,
}

impl Program {
    fn new(log: LogWriter, calls: u64) -> Self {
        let mut blocks = [Vec::new(), Vec::new()];
        for (thread, block) in blocks.iter_mut().enumerate() {
            wire::push_thread(
                block,
                TSC_BASE,
                4711 + thread as u32,
                (STACK_LOW, STACK_TOP + 8),
                b"worker",
            );
        }
        Self {
            log,
            blocks,
            thread: 0,
            ticks: TSC_BASE + 1000,
            left: calls,
            random: 0x2545_f491_4f6c_dd1d,
        }
    }

    fn control(&mut self) -> store::Result<()> {
        self.log.append_control(&Control::ProcessStart {
            ticks: TSC_BASE,
            pid: 4711,
            argv: vec!["bench".into()],
            exe: "/bin/bench".into(),
            cwd: "/".into(),
            attached: false,
        })
    }

    fn tight(&mut self) -> store::Result<()> {
        for i in 0..self.left {
            self.wait_ns(35, 60);
            self.enter(
                3,
                STACK_TOP,
                0x5555_5555_5189,
                [i, 0x7ffd_0000, 0x1000, 0x5555, 77, 88],
                &[],
            )?;
            self.wait_ns(15, 40);
            self.leave(STACK_TOP, i * 3 + 1, 0x1000, None)?;
        }
        Ok(())
    }

    /// Returns `None` when there are no calls left.
    fn fib(&mut self, n: u64, depth: u64, return_addr: u64) -> store::Result<Option<u64>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let slot = STACK_TOP - depth * 48;
        self.wait_ns(20, 45);
        self.enter(3, slot, return_addr, [n, n * 3, 5, 6, 7, 8], &[])?;
        let value = match n {
            0 | 1 => n,
            _ => {
                let one = self.fib(n - 1, depth + 1, 0x5555_5555_5100)?.unwrap_or(0);
                one + self.fib(n - 2, depth + 1, 0x5555_5555_5120)?.unwrap_or(0)
            }
        };
        self.wait_ns(15, 40);
        self.leave(slot, value, 0, None)?;
        Ok(Some(value))
    }

    fn pointers(&mut self) -> store::Result<()> {
        for _ in 0..self.left {
            let mut pointer = || 0x5555_6000_0000 + self.below(4 << 20) * 16;
            let args = std::array::from_fn(|_| pointer());
            let (rax, rdx) = (pointer(), pointer());
            let id = self.below(40) as u32;
            let slot = STACK_TOP - 8 * self.below(20);
            let return_addr = 0x5555_5555_5189 + self.below(200) * 13;
            self.wait_ns(35, 60);
            self.enter(id, slot, return_addr, args, &[])?;
            self.wait_ns(15, 40);
            self.leave(slot, rax, rdx, None)?;
        }
        Ok(())
    }

    fn floats(&mut self) -> store::Result<()> {
        let mut x = 1.0f64;
        for i in 0..self.left {
            x += 0.1;
            self.wait_ns(35, 60);
            let xmm = [x, x.sin(), i as f64, 0.0].map(f64::to_bits);
            self.enter(3, STACK_TOP, 0x5555_5555_5189, [1, 2, 3, 4, 5, 6], &xmm)?;
            self.wait_ns(15, 40);
            self.leave(STACK_TOP, 0, 0, Some([(x * x).to_bits(), 0]))?;
        }
        Ok(())
    }

    fn threads(&mut self) -> store::Result<()> {
        let mut inside = [false; 2];
        for i in 0..self.left * 2 {
            self.thread = (self.below(8) & 1) as usize;
            self.wait_ns(10, 30);
            let was_inside = inside[self.thread];
            inside[self.thread] = !was_inside;
            match was_inside {
                false => self.enter(3, STACK_TOP, 0x5555_5555_5189, [i, 2, 3, 4, 5, 6], &[])?,
                true => self.leave(STACK_TOP, i, 0, None)?,
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        function_id: u32,
        slot: u64,
        return_addr: u64,
        args: [u64; 6],
        xmm: &[u64],
    ) -> store::Result<()> {
        let form = EnterForm::Hooked;
        let fields = EnterFields {
            form,
            function_id,
            slot,
            return_addr,
            args,
            xmm,
        };
        wire::push_enter(&mut self.blocks[self.thread], self.ticks, &fields);
        self.flush_if_full()
    }

    fn leave(&mut self, slot: u64, rax: u64, rdx: u64, xmm: Option<[u64; 2]>) -> store::Result<()> {
        wire::push_leave(
            &mut self.blocks[self.thread],
            self.ticks,
            &Leave {
                slot,
                rax,
                rdx,
                xmm,
            },
        );
        self.flush_if_full()
    }

    fn flush_if_full(&mut self) -> store::Result<()> {
        match self.blocks.iter().any(|block| block.len() >= BLOCK_LEN) {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> store::Result<()> {
        for (ring, block) in self.blocks.iter_mut().enumerate() {
            if !block.is_empty() {
                self.log.append_block(ring as u32, 0, [block, &[]])?;
                block.clear();
            }
        }
        self.log.append_watermark(self.ticks)
    }

    fn close(mut self) -> store::Result<store::log::ClosedLog> {
        self.flush()?;
        self.log.close()
    }

    fn wait_ns(&mut self, from: u64, to: u64) {
        let ticks = |ns: u64| (ns as f64 * TSC_HZ / 1e9) as u64;
        self.ticks += ticks(from) + self.below(ticks(to) - ticks(from) + 1);
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % end
    }
}

fn manifest() -> Manifest {
    Manifest {
        format_version: store::format::FORMAT_VERSION,
        recording_id: RecordingId([9; 16]),
        hindsight_version: "0.1.0".into(),
        frida_version: None,
        host: Host::default(),
        argv: vec!["bench".into()],
        cwd: "/".into(),
        start_unix_ns: 0,
        start_monotonic_ns: None,
        clock: ClockCalibration {
            tsc_hz: TSC_HZ,
            tsc_base: TSC_BASE,
        },
        settings: Settings::default(),
        launch: None,
        labels: Default::default(),
        run_of: None,
        lineage: None,
    }
}

fn folder_len(dir: &Path) -> Result<u64, Box<dyn Error>> {
    let mut len = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        len += if meta.is_dir() {
            folder_len(&entry.path())?
        } else {
            meta.len()
        };
    }
    Ok(len)
}

/// Returns the processor time this process used, with the kernel's share.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().ok_or("no process name")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    Ok(ticks / 100.0)
}

fn peak_rss_mb() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line
        .and_then(|line| line.split_whitespace().next())
        .ok_or("no VmHWM")?;
    Ok(kb.parse::<u64>()? / 1024)
}

//! Recording: the program runs translated code, one thread at a time; whatever it does not compute by itself comes by here.

mod address_space;
mod births;
mod breakpoints;
mod chance;
mod checks;
mod code;
mod end;
mod files;
mod goal;
mod guards;
pub(crate) mod image;
mod inject;
mod known;
mod linker;
mod locks;
mod native;
mod next;
mod others;
pub(crate) mod outside;
mod own_file;
mod part;
mod registers_alone;
mod release;
mod signal;
mod space;
pub(crate) mod start;
mod stepped;
mod store;
mod stretches;
mod system_call;
mod take;
mod thread;
mod threads;
mod trap_action;
mod turns;
mod vdso;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use libc::user_regs_struct;

use crate::error::{Context as _, Result};
use crate::log::{Context, Entry, Fatal, MappedFile, Registers, Writer};
use crate::ptrace;
use crate::tracee::{Sharing, Tracee, own_extended, own_registers};
use crate::translate::{Mode, Translator, Trap, layout};

use address_space::AddressSpace;
use births::Births;
pub use next::Next;
use part::Part;
use signal::Signals;
pub use start::close_again;
pub use stepped::{Ahead, Ending, LONGEST_INSTRUCTION, Recorded, Standing, Stepped, Stepping};
use thread::{State, Threads};
use turns::Turns;

/// Finds the functions that matter among the files that the program has mapped: their addresses.
pub type Choose = Box<dyn FnMut(&[MappedFile]) -> Vec<u64> + Send>;

/// Which part of a program's run is recorded.
#[derive(Default)]
pub enum When {
    /// All of it.
    #[default]
    Always,
    /// It is recorded when it has run for some time, at least so many instructions; and so on, so many times.
    After {
        time: Duration,
        instructions: u64,
        times: usize,
    },
    /// It is recorded while a thread is in a call of one of these functions.
    Calls(Choose),
}

/// How a program is recorded.
#[derive(Default)]
pub struct Options {
    pub when: When,
    /// No randomisation of addresses.
    pub fixed_addresses: bool,
    /// The environment, if it is another one than ours.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// What the program reads as its standard input, if it is not ours.
    pub input: Option<PathBuf>,
    /// Where its standard output and standard error go, if not to ours.
    pub output: Option<PathBuf>,
    /// A file that is removed when the disk is full, so that there is room for the end of the log.
    pub spare: Option<PathBuf>,
    /// Signals that the program gets with their default action, though we ignore or catch them.
    pub default_signals: Vec<i32>,
    /// What the child does first, before it executes the program; async-signal-safe.
    pub in_child: Option<fn()>,
    /// Is told the program's process id before its first instruction.
    pub started: Option<Box<dyn FnOnce(i32) + Send>>,
}

/// How it went.
#[derive(Debug)]
pub struct Summary {
    /// Instructions executed.
    pub instructions: u64,
    /// Exit code, if the program exited.
    pub code: Option<i32>,
    /// Signal, if one ended it.
    pub signal: Option<i32>,
    pub fatal: Option<Fatal>,
    /// Why not everything was recorded.
    pub lost: Option<String>,
    /// Why it may be impossible to run it again, though all was recorded.
    pub doubt: Option<String>,
    /// The log took no more.
    pub is_full: bool,
    /// The program has become another one, which can be recorded from its first instruction on.
    pub next: Option<Next>,
    /// Blocks translated.
    pub blocks: usize,
    /// Bytes of translated code.
    pub code_bytes: u64,
}

/// Why the loop ends.
enum Ended {
    Exited(i32),
    Killed(i32),
    Lost(String),
    /// The program has become another one, by this thread.
    Executed(i32),
    /// The log takes no more.
    Full,
    /// What was to be recorded is recorded.
    Enough,
}

struct Recorder {
    process: Tracee,
    translator: Translator,
    /// How often translations were forgotten.
    epoch: u64,
    log: Writer,
    /// Instructions executed by all threads, while none runs.
    count: u64,
    threads: Threads,
    births: Births,
    turns: Turns,
    signals: Signals,
    space: AddressSpace,
    part: Part,
    /// A thread that waited has brought the recording to its end.
    ended: Option<Ended>,
    /// Memory has been hashed. A second time may come when a signal was faster than the end.
    hashed: bool,
}

/// Records a program into a folder that exists.
pub fn record(
    program: &Path,
    args: &[OsString],
    folder: &Path,
    mut options: Options,
) -> Result<Summary> {
    let path =
        CString::new(program.as_os_str().as_bytes()).map_err(|error| crate::Error::System {
            what: "start the program",
            source: error.into(),
        })?;
    let log = Writer::create(folder, options.spare.take())?;
    let started = options.started.take();
    let pid = start::start(&path, args, &options)?;
    if let Some(started) = started {
        started(pid);
    }
    match options.when {
        When::Always => {}
        when => return stretches::record(pid, log, args, when),
    }
    Recorder::record(pid, log, args)
}

impl Recorder {
    /// Records a program that stands before its first instruction.
    fn record(pid: i32, log: Writer, args: &[OsString]) -> Result<Summary> {
        let mut recorder = Recorder::new(pid, log)?;
        recorder.begin(args)?;
        let ended = recorder.run();
        recorder.finish(ended)
    }

    fn new(pid: i32, log: Writer) -> Result<Recorder> {
        let mut process = Tracee::new(pid, Sharing::Nothing)?;
        let low = process.map_low(pid, &|_, _| true)?;
        Ok(Recorder {
            process,
            translator: Translator::new(Mode::Record, low),
            epoch: 0,
            log,
            count: 0,
            threads: Threads::new(low),
            births: Births::default(),
            turns: Turns::new(pid),
            signals: Signals::default(),
            space: AddressSpace::default(),
            part: Part::default(),
            ended: None,
            hashed: false,
        })
    }

    /// Notes the state at the start, and enters translated code.
    fn begin(&mut self, args: &[OsString]) -> Result<()> {
        let pid = self.process.pid;
        let mut registers = ptrace::registers(pid).context("read registers")?;
        // The call of execve(2) that it comes from returns this.
        registers.rax = 0;
        ptrace::set_registers(pid, &registers).context("set registers")?;
        self.hide_vdso(registers.rsp)?;
        let mut spans = image::spans(pid)?;
        spans.retain(|span| !self.translator.owns(span.start));
        self.space.set(&spans);
        let memory = spans
            .iter()
            .flat_map(|span| image::content(&self.process, span.start, span.end))
            .collect();
        self.log.add(&Entry::Start {
            tid: pid,
            command: args
                .iter()
                .map(|arg| arg.to_string_lossy().into_owned())
                .collect(),
            context: self.context(pid)?,
            spans,
            memory,
            files: image::files(pid)?,
        })?;
        self.threads.add(pid, 0);
        self.enter(pid, &registers)
    }

    /// Clocks are asked by system calls, which are recorded; the functions of the vDSO read memory that the kernel changes.
    fn hide_vdso(&self, stack: u64) -> Result<()> {
        const AT_SYSINFO_EHDR: u64 = 33;
        const AT_IGNORE: u64 = 1;
        let mut at = stack + 8;
        for _ in 0..2 {
            while self.process.word(at)? != 0 {
                at += 8;
            }
            at += 8;
        }
        loop {
            match self.process.word(at)? {
                0 => return Ok(()),
                AT_SYSINFO_EHDR => return self.process.set_word(at, AT_IGNORE),
                _ => at += 16,
            }
        }
    }

    /// Has a stopped thread go on in translated code with these registers of the program, the counter at [`Self::count`].
    fn enter(&mut self, tid: i32, own: &user_regs_struct) -> Result<()> {
        let Some(body) = self.translated(tid, own.rip)? else {
            return self.go_outside(tid, own);
        };
        let thread = &mut self.threads[tid];
        thread.outside = None;
        let block = thread.block;
        let mut registers = *own;
        self.process
            .set_word(block + u64::from(layout::SLOT_R15), own.r15)?;
        registers.gs_base = block;
        registers.r15 = self.count;
        registers.rip = body;
        registers.orig_rax = u64::MAX;
        ptrace::set_registers(tid, &registers).context("set registers")
    }

    /// Sets the counter of a thread that is about to go on.
    fn set_counter(&mut self, tid: i32) -> Result<()> {
        let mut registers = ptrace::registers(tid).context("read registers")?;
        let Some(place) = self.translator.place(registers.rip) else {
            return Ok(());
        };
        let value = self.count + u64::from(place.ahead);
        if place.swapped {
            return self.process.set_word(
                self.threads[tid].block + u64::from(layout::SLOT_COUNTER),
                value,
            );
        }
        registers.r15 = value;
        ptrace::set_registers(tid, &registers).context("set registers")
    }

    /// Takes over the counter of the thread that ran until now.
    fn take_counter(&mut self, tid: i32, registers: &user_regs_struct, at: u64) -> Result<()> {
        let Some(place) = self.translator.place(at) else {
            return Ok(());
        };
        let value = match place.swapped {
            true => self
                .process
                .word(self.threads[tid].block + u64::from(layout::SLOT_COUNTER))?,
            false => registers.r15,
        };
        self.count = value.wrapping_sub(u64::from(place.ahead));
        Ok(())
    }

    fn run(&mut self) -> Result<Ended> {
        loop {
            if self.is_enough()? {
                return Ok(Ended::Enough);
            }
            if self.is_full() {
                return Ok(Ended::Full);
            }
            if let Some(tid) = self.turns.current
                && !self.deliver_held(tid)?
            {
                self.resume(tid)?;
            }
            let ended = self.wait_for_current()?;
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// A thread has come to a trap of ours; it is stopped behind it.
    fn at_trap(
        &mut self,
        tid: i32,
        registers: &mut user_regs_struct,
        at: u64,
        trap: Trap,
    ) -> Result<Option<Ended>> {
        let block = self.threads[tid].block;
        match trap {
            Trap::Exit {
                target,
                distance_at,
            } => {
                match self.translated(tid, target)? {
                    Some(body) => {
                        self.translator.link(at, distance_at, body);
                        self.process.flush(&mut self.translator)?;
                        registers.rip = body;
                    }
                    None => return self.at_nothing(tid, registers, target).map(|()| None),
                }
                ptrace::set_registers(tid, registers).context("set registers")?;
            }
            Trap::Moved { target } => {
                match self.translated(tid, target)? {
                    Some(body) => {
                        self.translator.lead(at, body);
                        self.process.flush(&mut self.translator)?;
                        registers.rip = body;
                    }
                    None => return self.at_nothing(tid, registers, target).map(|()| None),
                }
                ptrace::set_registers(tid, registers).context("set registers")?;
            }
            Trap::Miss => {
                let target = registers.rax;
                registers.rax = self.process.word(block + u64::from(layout::SLOT_RAX))?;
                registers.rcx = self.process.word(block + u64::from(layout::SLOT_RCX))?;
                match self.translated(tid, target)? {
                    Some(body) => {
                        self.translator.check(target, body);
                        self.process.flush(&mut self.translator)?;
                        registers.rip = body;
                    }
                    None => return self.missed(tid, registers, target).map(|()| None),
                }
                ptrace::set_registers(tid, registers).context("set registers")?;
            }
            Trap::SystemCall { next } => return self.system_call(tid, registers, at, next),
            Trap::Returned { next } => {
                return self.returned(tid, registers, at, next).map(|()| None);
            }
            Trap::Chance { next, .. } => self.chance(tid, registers, at, next)?,
            Trap::Unsupported { pc } => {
                registers.rip = at;
                self.take_counter(tid, registers, at)?;
                ptrace::set_registers(tid, registers).context("set registers")?;
                return self.at_unsupported(tid, registers, pc);
            }
            Trap::Flags { pc } => return self.at_flags(tid, registers, at, pc),
            Trap::Stop { pc } => self.at_stop(tid, registers, at, pc)?,
            Trap::Goal | Trap::Before { .. } | Trap::After { .. } => {
                unreachable!("code that is recorded has no limits and notes")
            }
        }
        Ok(None)
    }

    /// Has a stopped thread do a system call of ours. Signals that come meanwhile are delivered later.
    fn call(&mut self, tid: i32, number: i64, args: [u64; 6]) -> Result<i64> {
        let result = self.process.call(tid, number, args)?;
        self.hold_all(tid);
        Ok(result)
    }

    /// One instruction of a stopped thread, or into the handler of a signal.
    fn step(&mut self, tid: i32, signal: i32) -> Result<i32> {
        let before = ptrace::registers(tid).context("read registers")?.rip;
        let pushes_flags = signal == 0 && self.process.pushes_flags(before);
        ptrace::step(tid, signal).context("step the program")?;
        loop {
            let Some((_, status)) = ptrace::wait(tid, false).context("wait for the program")?
            else {
                continue;
            };
            let other = libc::WIFSTOPPED(status)
                && status >> 16 == 0
                && libc::WSTOPSIG(status) != libc::SIGTRAP;
            // A fault of the instruction itself would come each time that it is executed.
            let is_fault = other && {
                let info = ptrace::signal_info(tid).context("read the signal")?;
                inject::comes_again(&info)
            };
            if !other || is_fault || signal != 0 {
                if libc::WIFSTOPPED(status)
                    && self.process.registers_after_step(tid)?.rip != before
                    && pushes_flags
                {
                    self.process.hide_step(tid)?;
                }
                return Ok(status);
            }
            self.hold(tid)?;
            ptrace::step(tid, 0).context("step the program")?;
        }
    }

    /// The registers of the program, for a thread that is stopped anywhere.
    fn own(&self, tid: i32, registers: &user_regs_struct) -> Result<user_regs_struct> {
        own_registers(
            &self.process,
            &self.translator,
            registers,
            self.threads[tid].block,
        )
    }

    /// All registers of a stopped thread that is not in translated code.
    fn context(&self, tid: i32) -> Result<Context> {
        let mut registers = ptrace::registers(tid).context("read registers")?;
        registers.gs_base = 0;
        let extended = ptrace::extended_state(tid).context("read registers")?;
        Ok(Context {
            registers: Registers::from(&registers),
            extended: own_extended(&self.translator, extended),
        })
    }
}

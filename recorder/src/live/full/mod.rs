//! Records every instruction of a stopped thread from here on, by single steps, while all other threads stand.
//!
//! The log is [`exact`]'s: from it every register and every byte is known at each of these instructions. Our hooks and traps are passed
//! beside it: the entry code of a traced function runs between two recorded instructions, so that its call is recorded as always, and the
//! program's own instructions are put back for the step that executes them. Breakpoints, logpoints and watchpoints are judged as for
//! any step.
//!
//! The thread's plan is the goal [`Record`](super::stepping::Plan); whatever ends the plan ends the recording.

mod entries;
mod turns;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use agent::shared::SHADOWS;
use crossbeam::channel::Sender;
use exact::{Ending, Standing, Stepped, Stepping};
use store::control::Control;

use super::{
    Live,
    breakpoints::Breakpoints,
    error::{LiveError, LiveResult},
    event_loop::Tracer,
    journal::Journal,
    model::Tid,
    stepping::Plan,
    tracee::{
        Tracee,
        event::Event,
        hooks::Hooks,
        threads::{Halt, State},
    },
};
use crate::{
    Result, clock,
    process::Maps,
    return_trampoline::unhook,
    stop::{Registers, procfs},
};

/// What to do where the next instruction cannot be recorded.
pub(crate) const BEHIND_IT: &str =
    "set a breakpoint behind this place, continue to it, and record the next ones: full 10000";

/// The instruction that returns from a function.
const RETURN: u8 = 0xc3;

/// What recording some instructions has come to, or why it failed.
pub type Recorded = std::result::Result<exact::Recorded, String>;

/// What is to be recorded.
pub(crate) struct Wanted {
    /// So many instructions.
    pub instructions: u64,
    /// The folder of the log, and the file that keeps room for its end.
    pub folder: PathBuf,
    pub spare: Option<PathBuf>,
    pub command: Vec<String>,
    /// Told how many are recorded.
    pub progress: Arc<AtomicU64>,
    /// Gets the result.
    pub ended: Sender<Recorded>,
}

/// A thread that is recorded.
pub(crate) struct Full {
    stepped: Stepped,
    instructions: u64,
    progress: Arc<AtomicU64>,
    ended: Sender<Recorded>,
    /// Its probes at this address were judged.
    judged: Option<u64>,
    /// The entry code of the function at this address has run.
    hooked: Option<u64>,
    /// Our bytes, for which the program's own stand in while an instruction is executed.
    lifted: Option<(u64, Vec<u8>)>,
    /// A signal to deliver once no instruction is half done.
    signal: i32,
    /// A handler that begins with the next step: the signal, and the registers before it.
    handler: Option<(i32, Registers)>,
    /// Output was written that the runtime did not see.
    has_unseen_output: bool,
    /// How it ends, if it was not just stopped.
    ending: Option<Ending>,
}

impl std::fmt::Debug for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.stepped.count();
        write!(f, "Full({count} of {})", self.instructions)
    }
}

impl Live {
    /// Records the next instructions of a stopped thread, and then stops it. Any other stop ends this earlier. All other threads are
    /// stopped, and stay so. `command`: the program and its arguments. Returns a number below that of the next stop to show.
    ///
    /// # Errors
    /// The thread is running, the others cannot be stopped, or the thread stands where nothing can be recorded.
    pub(crate) fn record_next(&self, tid: Tid, wanted: Wanted) -> Result<u64> {
        Ok(self.ask(move |tracer| tracer.record_next(tid, wanted))??)
    }
}

impl Tracer {
    fn record_next(&mut self, tid: Tid, wanted: Wanted) -> LiveResult<u64> {
        let thread = self.tracee.threads.get(&tid);
        let stop = thread.ok_or(LiveError::NoThread(tid))?.stop();
        let stop = stop.ok_or(LiveError::Running(tid))?.number;
        if let Some(first) = self.tracee.first_unshown(&self.stops)
            && !self.stops.is_shown(stop)
        {
            return Ok(first - 1);
        }
        if self.tracee.has_call(tid) {
            return Err(refused("it runs a function that was called for you"));
        }
        if self.tracee.is_to_restart(tid)? {
            return Err(waits());
        }
        let newest = self.stops.newest();
        self.abandon_plan(tid);
        self.stop_the_others()?;
        let full = self.tracee.begin_full(&self.breakpoints, tid, wanted)?;
        self.journal.records(tid);
        if let Some(thread) = self.tracee.threads.get_mut(&tid) {
            thread.state = State::Halted(Halt::default());
            thread.full = Some(Box::new(full));
            thread.plan = Some(Plan::of_recording());
            thread.is_moved = true;
            thread.is_stepping = true;
            thread.calls_to_come = 0;
        }
        self.journal.set_standing(false);
        let after = self.stops.newest().max(newest);
        self.full_on(tid);
        Ok(after)
    }

    /// They are reported as stopped, and resumed as such.
    fn stop_the_others(&mut self) -> LiveResult<()> {
        let held = self.hold();
        if held.is_ok() {
            self.halt_companions();
        }
        self.release();
        held
    }
}

impl Tracee {
    fn begin_full(
        &mut self,
        breakpoints: &Breakpoints,
        tid: Tid,
        wanted: Wanted,
    ) -> LiveResult<Full> {
        self.leave_vdso(tid)?;
        let mut registers = self.registers(tid)?;
        let Some(pc) = breakpoints.exact_pc(self, registers.rip) else {
            return Err(refused("it is on its way through the recorder's own code"));
        };
        let hooked = (registers.rip != pc).then_some(pc);
        let (passes, signal) = self.as_it_stood(tid);
        registers.rip = pc;
        let mut threads = vec![(tid, registers)];
        let others: Vec<Tid> = self.threads.keys().copied().collect();
        for other in others.into_iter().filter(|other| *other != tid) {
            let mut registers = self.registers(other)?;
            registers.rip = breakpoints.original_pc(self, registers.rip);
            threads.push((other, registers));
        }
        self.stopped(tid)?.move_to(&registers)?;
        let begun = self.begin_log(tid, threads, &wanted);
        Ok(Full {
            stepped: begun?,
            instructions: wanted.instructions,
            progress: wanted.progress,
            ended: wanted.ended,
            judged: passes.then_some(pc),
            hooked,
            lifted: None,
            signal,
            handler: None,
            has_unseen_output: false,
            ending: None,
        })
    }

    /// A thread in the middle of a function of the vDSO, which reads what the kernel changes at any moment, comes out of it first.
    fn leave_vdso(&mut self, tid: Tid) -> LiveResult<()> {
        const MOST_STEPS: usize = 20_000;
        for _ in 0..MOST_STEPS {
            let pc = self.registers(tid)?.rip;
            if !Stepped::is_in_vdso(self.pid, pc) {
                return Ok(());
            }
            let signal = self.step_once(tid)?;
            if signal != libc::SIGTRAP {
                self.keep_signal(tid, signal);
            }
        }
        Err(refused("it does not come out of a function of the vDSO"))
    }

    /// Whether a thread that resumes passes the trap at its place, and the signal that it is about to get.
    fn as_it_stood(&self, tid: Tid) -> (bool, i32) {
        let halt = self.threads.get(&tid).and_then(|thread| thread.halt());
        let Some(halt) = halt else {
            return (true, 0);
        };
        let passes = halt.passes_trap();
        let is_trapped = matches!(halt.pending, Some(Event::Trap { .. }));
        let signal = match halt.pending {
            Some(Event::Signal { signal, .. }) => signal,
            _ => halt.signal,
        };
        (passes && !is_trapped, signal)
    }

    /// Whether a thread was stopped in a system call that only the kernel knows how to go on with, by restart_syscall(2). A signal
    /// that it is about to get comes first: its handler can be recorded.
    fn is_to_restart(&self, tid: Tid) -> LiveResult<bool> {
        // ERESTART_RESTARTBLOCK in the kernel's errno.h.
        const RESTART_BLOCK: i64 = -516;
        let registers = self.registers(tid)?;
        let is_in_call = registers.orig_rax as i64 >= 0;
        let (_, signal) = self.as_it_stood(tid);
        Ok(is_in_call && registers.rax as i64 == RESTART_BLOCK && signal == 0)
    }

    fn begin_log(
        &self,
        tid: Tid,
        threads: Vec<(Tid, Registers)>,
        wanted: &Wanted,
    ) -> LiveResult<Stepped> {
        let memory = &self.memory;
        let leave = *memory.hooks_now().leave();
        let is_shadow = |at: u64| {
            SHADOWS
                .iter()
                .any(|shadow| (shadow.base..shadow.base.saturating_add(shadow.bytes)).contains(&at))
        };
        let maps = Maps::read(self.pid).unwrap_or_default();
        let shared = maps.mappings.iter();
        let rings: Vec<u64> = shared
            .filter(|mapping| mapping.path.starts_with("/memfd:hindsight"))
            .map(|mapping| mapping.range.start)
            .collect();
        let ran = clock::monotonic_ns().saturating_sub(began(self.pid));
        let standing = Standing {
            pid: self.pid,
            tid,
            threads,
            command: wanted.command.clone(),
            ran,
            // The dynamic linker reads the runtime's library, as all others: that stays.
            is_hidden: &|at| is_shadow(at) || rings.contains(&at),
            is_own_file: &|at| memory.hooks_now().is_of_runtime(at),
            own: &|at, bytes| {
                memory.mask(at, bytes);
                unhook(memory.file(), &leave, at, bytes);
                shorten_end_of_thread(&memory.hooks_now(), at, bytes);
            },
        };
        let begun = Stepped::begin(&standing, &wanted.folder, wanted.spare.clone());
        begun.map_err(|error| refused(&error.to_string()))
    }

    /// Whether a thread is recorded.
    pub fn is_full(&self, tid: Tid) -> bool {
        let thread = self.threads.get(&tid);
        thread.is_some_and(|thread| thread.full.is_some())
    }

    /// Ends the recording of a thread's instructions, if there is one. A halted thread stands in our code again where it would otherwise.
    pub fn end_full(&mut self, journal: &Journal, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let Some(mut full) = thread.full.take() else {
            return;
        };
        // A step that has ended while all threads were held.
        if let Some(halt) = thread.halt_mut()
            && halt.pending == Some(Event::Stepped)
        {
            halt.pending = None;
            self.lower(&mut full);
            if full.handler.is_none() {
                full.step_ended();
            }
        }
        self.lower(&mut full);
        if full.signal != 0
            && let Some(halt) = self.halt_mut(tid)
            && halt.signal == 0
        {
            halt.signal = full.signal;
        }
        let stopped = || Ending::GoesOn("the thread was stopped".to_owned());
        let ending = full.ending.take().unwrap_or_else(stopped);
        let ended = full.stepped.end(ending);
        self.stand_in_ours(tid, full.hooked);
        if full.has_unseen_output {
            journal.send(Control::Warning {
                ticks: clock::ticks(),
                message: "what the thread wrote to its output while its instructions were recorded is only in the recording of these".to_owned(),
            });
        }
        // Nobody may wait for it any more.
        let _ = full.ended.send(ended.map_err(|error| error.to_string()));
    }

    /// A thread between instructions that a hook has displaced goes on in their copies.
    fn stand_in_ours(&self, tid: Tid, hooked: Option<u64>) {
        let Ok(stopped) = self.stopped(tid) else {
            return;
        };
        let Ok(registers) = stopped.registers() else {
            return;
        };
        let pc = registers.rip;
        if hooked == Some(pc) && self.memory.hooks_now().ends_thread(pc) {
            // What the runtime does there is done.
            if let Ok(back) = self.memory.word(registers.rsp) {
                let _ = stopped.move_to(&Registers {
                    rip: back,
                    rsp: registers.rsp + 8,
                    ..registers
                });
            }
            return;
        }
        let hooks = self.memory.hooks_now();
        let copy = hooks
            .over(pc)
            .filter(|(entry, _)| *entry != pc || hooked == Some(pc));
        if let Some(moved) = copy.and_then(|(_, hook)| hook.trampoline.moved(pc)) {
            // On failure the thread was killed.
            let _ = stopped.set_pc(moved);
        }
    }

    /// Our bytes are there again.
    fn lower(&self, full: &mut Full) {
        if let Some((at, bytes)) = full.lifted.take() {
            // It was read from there; if the memory is gone now, so is our code.
            let _ = self.memory.write_raw(at, &bytes);
        }
    }
}

impl Full {
    /// A step has ended without a signal. Returns why it could not be noted.
    fn step_ended(&mut self) -> Option<String> {
        match self.stepped.stepped() {
            Ok(Stepping::Done) => {
                (self.judged, self.hooked) = (None, None);
                self.progress.store(self.stepped.count(), Relaxed);
                None
            }
            Ok(Stepping::GoesOn) => None,
            Err(error) => Some(error.to_string()),
        }
    }
}

/// What the runtime does as a thread ends is no part of the program: the function returns at once in what was read at an address.
fn shorten_end_of_thread(hooks: &Hooks, at: u64, bytes: &mut [u8]) {
    if let Some(offset) = hooks.end_of_thread_in(at, bytes.len()) {
        bytes[offset] = RETURN;
    }
}

fn refused(why: &str) -> LiveError {
    LiveError::Motion(debuginfo::Diagnostic::new(format!(
        "the thread cannot be recorded by steps: {why}"
    )))
}

fn waits() -> LiveError {
    LiveError::Motion(debuginfo::Diagnostic {
        message: "no instruction can be recorded here: the thread waits in a system call, which the kernel will restart (restart_syscall)".to_owned(),
        hint: Some(BEHIND_IT.to_owned()),
    })
}

/// When a process was started, on the monotonic clock; 0 if that is not known.
fn began(pid: i32) -> u64 {
    const TICK_NS: u64 = 10_000_000;
    let text = procfs::text(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name, which may contain anything: field 22 of proc_pid_stat(5).
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks = rest.split(' ').nth(19).and_then(|ticks| ticks.parse().ok());
    ticks.map_or(0, |ticks: u64| ticks * TICK_NS)
}

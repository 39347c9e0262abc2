//! The steps of a thread that is recorded: many in a row for what ends at once, and one at a time, waited for with all other events, for
//! what may take long.

use std::time::{Duration, Instant};

use exact::{Ahead, Ending, LONGEST_INSTRUCTION};

use super::{Full, shorten_end_of_thread};
use crate::{
    live::{
        breakpoints::{Breakpoints, sites::User},
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::{Reason, Tid},
        tracee::{
            Tracee,
            event::Event,
            hooks::shadow_of,
            stopped::Awaited,
            threads::{Halt, Run, State, Trap},
        },
    },
    stop::{Registers, ptrace::Came},
};

/// How long the tracer steps a thread before it looks at everything else.
const TURN: Duration = Duration::from_millis(10);
/// Signals of an instruction that is executed again.
const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
/// How long a system call may take while all other threads stand.
const CALL_PATIENCE: Duration = Duration::from_millis(300);
/// The stack of our own entry code, which the program never sees.
pub(super) const OWN_STACK: usize = 16 << 10;

/// What has become of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It can be stepped on.
    More,
    /// It runs, was stopped, or has ended.
    Away,
}

impl Tracer {
    /// Goes on with a thread that is halted.
    pub(super) fn full_on(&mut self, tid: Tid) {
        self.full_until(tid, Instant::now() + TURN);
    }

    /// Goes on with a thread that something else has halted, after that was acted on. `signal` is to be delivered; 0: none.
    pub fn full_resume(&mut self, tid: Tid, signal: i32) {
        let Some(thread) = self.tracee.threads.get_mut(&tid) else {
            return;
        };
        if !thread.is_halted() {
            return;
        }
        thread.state = State::Halted(Halt::default());
        if let Some(full) = &mut thread.full
            && signal != 0
        {
            full.signal = signal;
        }
        // Only up to its next step: this may be called from within another turn.
        self.full_until(tid, Instant::now());
    }

    /// A step has ended.
    pub fn full_stepped(&mut self, tid: Tid) {
        if let Err(error) = self.tracee.note_step(tid) {
            return self.full_failed(tid, &error.to_string());
        }
        self.full_on(tid);
    }

    fn full_until(&mut self, tid: Tid, until: Instant) {
        loop {
            match self.full_turn(tid, until) {
                Ok(Turn::More) => {}
                Ok(Turn::Away) => return,
                Err(error) => return self.full_failed(tid, &error.to_string()),
            }
        }
    }

    fn full_failed(&mut self, tid: Tid, why: &str) {
        self.tracee.full_ends(tid, Ending::GoesOn(why.to_owned()));
        self.halt(tid, Reason::Step, false);
    }

    fn full_turn(&mut self, tid: Tid, until: Instant) -> LiveResult<Turn> {
        let thread = self.tracee.threads.get(&tid);
        if !thread.is_some_and(|thread| thread.full.is_some() && thread.is_halted()) {
            return Ok(Turn::Away);
        }
        if self.tracee.is_within(tid) {
            let pc = self.tracee.registers(tid)?.rip;
            self.tracee.stopped(tid)?.ask_for_restart();
            return match self.delivers(tid)? {
                true => Ok(Turn::Away),
                false => self.execute(tid, pc, until),
            };
        }
        let registers = self.tracee.leave_what_is_ours(&mut self.breakpoints, tid)?;
        let pc = registers.rip;
        self.tracee
            .pass_end_of_thread(&mut self.breakpoints, tid, &registers)?;
        // A trap at the entry of a traced function comes behind our code there.
        if self.meets_entry_code(tid, &registers)? || self.judges(tid, pc)? {
            return Ok(Turn::Away);
        }
        let is_enough = |_: &mut Tracee, full: &mut Full| {
            let is_enough = full.stepped.count() >= full.instructions;
            Ok(is_enough && full.stepped.is_between(pc))
        };
        if self.tracee.with_full(tid, is_enough)?.unwrap_or(true) {
            let why = "as many instructions are recorded as were asked for";
            self.tracee.full_ends(tid, Ending::GoesOn(why.to_owned()));
            self.halt(tid, Reason::Step, false);
            return Ok(Turn::Away);
        }
        if self.delivers(tid)? {
            return Ok(Turn::Away);
        }
        self.execute(tid, pc, until)
    }

    /// Judges the probes at a place. Returns whether one of them has stopped the thread.
    fn judges(&mut self, tid: Tid, pc: u64) -> LiveResult<bool> {
        let new = self
            .tracee
            .with_full(tid, |_, full| Ok(full.judged.replace(pc) != Some(pc)))?;
        if new != Some(true) {
            return Ok(false);
        }
        let Some(site) = self.breakpoints.sites.at(pc) else {
            return Ok(false);
        };
        let users = site.users.iter().copied();
        let users: Vec<User> = users
            .filter(|user| matches!(user, User::Probe(_) | User::Leave | User::Return(_)))
            .collect();
        if users.is_empty() {
            return Ok(false);
        }
        if let Some(halt) = self.tracee.halt_mut(tid) {
            halt.trap = Trap::Hit;
        }
        Ok(self.stops_at(tid, pc, &users))
    }

    /// Delivers a signal that has come. Returns whether the thread runs then.
    fn delivers(&mut self, tid: Tid) -> LiveResult<bool> {
        let due = self.tracee.with_full(tid, |tracee, full| {
            let comes_again = FAULTS.contains(&full.signal);
            let takes = full.stepped.takes_signals().map_err(of_exact)?
                && (comes_again || !tracee.is_displaced(tid, full.hooked)?);
            Ok(match takes {
                true => std::mem::take(&mut full.signal),
                false => 0,
            })
        })?;
        let signal = due.unwrap_or(0);
        if signal == 0 {
            return Ok(false);
        }
        if !self.tracee.handles(signal) {
            return Ok(self.passes_on(tid, signal));
        }
        self.tracee.with_full(tid, |_, full| {
            let before = full.stepped.signal_ahead().map_err(of_exact)?;
            full.handler = Some((signal, before));
            Ok(())
        })?;
        self.tracee.tell_signal(tid, signal);
        let step = self.tracee.stopped(tid)?.step(signal);
        drop(step.map_err(failed("step the thread"))?);
        self.tracee.runs(tid);
        Ok(true)
    }

    /// A signal without a handler: nothing happens, or the program stops or ends. Returns whether the thread is not recorded any more.
    fn passes_on(&mut self, tid: Tid, signal: i32) -> bool {
        let is_without_effect = self.tracee.ignores(signal)
            || matches!(
                signal,
                libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH | libc::SIGCONT
            );
        if is_without_effect {
            return false;
        }
        let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        self.tracee.full_ends(
            tid,
            match stops.contains(&signal) {
                true => Ending::GoesOn(format!("signal {signal} stops the program")),
                false => Ending::Signal(signal),
            },
        );
        self.abandon_plan(tid);
        self.tracee.keep_signal(tid, signal);
        self.tracee.run_in_place(&self.probes, &self.journal, tid);
        true
    }

    fn execute(&mut self, tid: Tid, pc: u64, until: Instant) -> LiveResult<Turn> {
        let memory = self.tracee.memory.clone();
        let mut code = vec![0; LONGEST_INSTRUCTION];
        let mut ours = code.clone();
        if memory.read_raw(pc, &mut ours).is_ok() {
            code.copy_from_slice(&ours);
        } else {
            // The last instruction before unmapped memory.
            ours = memory.read_up_to(pc, LONGEST_INSTRUCTION);
            code.clone_from(&ours);
        }
        memory.mask(pc, &mut code);
        shorten_end_of_thread(&memory.hooks_now(), pc, &mut code);
        let ahead = self
            .tracee
            .with_full(tid, |_, full| full.stepped.ahead(&code).map_err(of_exact))?;
        let ahead = ahead.ok_or(LiveError::Ended)?;
        match ahead {
            Ahead::Done => return Ok(Turn::More),
            Ahead::Unrecorded(why) => {
                self.tracee.full_ends(tid, Ending::GoesOn(why));
                self.halt(tid, Reason::Step, false);
                return Ok(Turn::Away);
            }
            Ahead::Exit(code) => {
                self.tracee.full_ends(tid, Ending::Exit(code));
                self.abandon_plan(tid);
                self.tracee.run_in_place(&self.probes, &self.journal, tid);
                return Ok(Turn::Away);
            }
            Ahead::Instruction | Ahead::Call => {}
        }
        if code != ours {
            memory
                .write_raw(pc, &code)
                .map_err(failed("put an instruction back"))?;
            self.tracee.with_full(tid, |_, full| {
                full.lifted = Some((pc, ours));
                Ok(())
            })?;
        }
        let step = self.tracee.stopped(tid)?.step(0);
        let step = step.map_err(failed("step the thread"))?;
        match ahead {
            Ahead::Call if self.tracee.threads.len() > 1 => self.call_alone(tid, &step),
            Ahead::Instruction if Instant::now() < until => {
                let came = step.came();
                self.came(tid, came.map_err(failed("wait for the thread"))?)
            }
            _ => {
                self.tracee.runs(tid);
                Ok(Turn::Away)
            }
        }
    }

    /// Waits for the end of a system call while all other threads stand: if it waits for one of them, it never ends.
    fn call_alone(&mut self, tid: Tid, step: &Awaited) -> LiveResult<Turn> {
        let until = Instant::now() + CALL_PATIENCE;
        loop {
            let came = step.look().map_err(failed("wait for the thread"))?;
            if came != Came::Nothing {
                return self.came(tid, came);
            }
            if Instant::now() >= until {
                break;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        self.tracee.runs(tid);
        let why = "the thread waits in a system call, and all other threads are stopped";
        self.tracee.full_ends(tid, Ending::GoesOn(why.to_owned()));
        let held = self.hold();
        if self.tracee.is_full(tid) {
            self.halt(tid, Reason::Step, false);
        }
        self.release();
        held.map(|()| Turn::Away)
    }

    /// Acts on the end of a step.
    fn came(&mut self, tid: Tid, came: Came) -> LiveResult<Turn> {
        let Came::Stopped(signal, event) = came else {
            // Its end is still to be reported.
            self.tracee.runs(tid);
            return Ok(Turn::Away);
        };
        self.tracee.full_halted(tid);
        if signal == libc::SIGTRAP && event == 0 {
            let seen = match self.probes.watchpoints.are_set() {
                true => self.decoding().decode(tid, signal),
                false => Event::Stepped,
            };
            match seen {
                Event::Stepped | Event::Redirected => {
                    self.tracee.note_step(tid)?;
                    return Ok(Turn::More);
                }
                Event::Watch { bits } => {
                    self.tracee.note_step(tid)?;
                    self.watched(tid, bits);
                    return Ok(Turn::Away);
                }
                _ => {}
            }
        }
        self.stopped(tid, signal, event);
        Ok(Turn::Away)
    }
}

impl Tracee {
    /// Puts our bytes back that a step needed to be away.
    pub fn full_halted(&mut self, tid: Tid) {
        if let Some(mut full) = self.take_full(tid) {
            self.lower(&mut full);
            self.put_full(tid, full);
        }
    }

    /// A step that has ended accessed watched memory.
    pub fn full_watched(&mut self, tid: Tid) {
        if self.is_full(tid)
            && let Err(error) = self.note_step(tid)
        {
            self.full_ends(tid, Ending::GoesOn(error.to_string()));
        }
    }

    pub(super) fn full_ends(&mut self, tid: Tid, ending: Ending) {
        let thread = self.threads.get_mut(&tid);
        if let Some(full) = thread.and_then(|thread| thread.full.as_mut()) {
            full.ending = Some(ending);
        }
    }

    fn take_full(&mut self, tid: Tid) -> Option<Box<Full>> {
        self.threads.get_mut(&tid)?.full.take()
    }

    fn put_full(&mut self, tid: Tid, full: Box<Full>) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.full = Some(full);
        }
    }

    /// Does `work` with the recording of a thread, if it still has one.
    pub(super) fn with_full<T>(
        &mut self,
        tid: Tid,
        work: impl FnOnce(&mut Self, &mut Full) -> LiveResult<T>,
    ) -> LiveResult<Option<T>> {
        let Some(mut full) = self.take_full(tid) else {
            return Ok(None);
        };
        let done = work(self, &mut full);
        self.put_full(tid, full);
        done.map(Some)
    }

    /// Whether an instruction has begun and goes on.
    fn is_within(&self, tid: Tid) -> bool {
        let full = self
            .threads
            .get(&tid)
            .and_then(|thread| thread.full.as_ref());
        full.is_some_and(|full| full.stepped.has_begun())
    }

    /// Brings a thread out of our code, which is no part of the program. Returns its registers.
    fn leave_what_is_ours(
        &mut self,
        breakpoints: &mut Breakpoints,
        tid: Tid,
    ) -> LiveResult<Registers> {
        let mut registers = self.registers(tid)?;
        if self.is_called(registers.rip) {
            return Ok(registers);
        }
        if breakpoints.exact_pc(self, registers.rip).is_none() {
            let returns = self.memory.hooks_now().leave().is(registers.rip);
            self.run_ours(breakpoints, tid, registers.rsp)?;
            self.take_kept_signal(tid)?;
            let came = self.registers(tid)?;
            registers = match returns {
                // Our code changes the flags.
                true => Registers {
                    rip: came.rip,
                    rsp: came.rsp,
                    ..registers
                },
                false => came,
            };
            if returns {
                self.stopped(tid)?.move_to(&registers)?;
            }
            // The slot of the return address holds the program's own again.
            let slot = registers.rsp.wrapping_sub(8);
            if breakpoints.exact_pc(self, registers.rip) == Some(registers.rip) {
                let _ = self.memory.write_raw(slot, &registers.rip.to_le_bytes());
            }
        }
        let Some(pc) = breakpoints.exact_pc(self, registers.rip) else {
            let why = debuginfo::Diagnostic::new("the thread does not come out of our code");
            return Err(LiveError::Motion(why));
        };
        if pc != registers.rip {
            registers.rip = pc;
            self.stopped(tid)?.move_to_pc(pc)?;
            self.with_full(tid, |_, full| {
                full.hooked = Some(pc);
                Ok(())
            })?;
        }
        Ok(registers)
    }

    /// Whether the program itself calls the runtime's library here, as the dynamic linker does when the program ends: that is
    /// recorded as any code. Only our return addresses lead there otherwise.
    fn is_called(&self, pc: u64) -> bool {
        let hooks = self.memory.hooks_now();
        hooks.is_of_runtime(pc) && !hooks.leave().is(pc)
    }

    /// Lets our code run to where it is left, after the return of a traced function for example. Of the stack below `top`, the program sees nothing of that.
    fn run_ours(&mut self, breakpoints: &mut Breakpoints, tid: Tid, top: u64) -> LiveResult<()> {
        let below = top.saturating_sub(OWN_STACK as u64);
        let mut stack = self.memory.read_up_to(below, OWN_STACK);
        let is_whole = stack.len() == OWN_STACK;
        let hooks = self.memory.hooks_now();
        let is_return = hooks.leave().is(self.registers(tid)?.rip);
        drop(hooks);
        if is_return {
            let slot = top.wrapping_sub(8);
            let back = self.memory.word(shadow_of(slot));
            self.run_to(
                breakpoints,
                tid,
                back.map_err(failed("read a return address"))?,
            )?;
        } else {
            breakpoints.leave_ours(self, tid)?;
        }
        if is_whole {
            // Its return address is the program's again.
            stack.truncate(OWN_STACK - 8);
            let now = self.memory.read_up_to(below, stack.len());
            if now != stack {
                let _ = self.memory.write_raw(below, &stack);
            }
        }
        Ok(())
    }

    /// A step of a halted thread has ended.
    fn note_step(&mut self, tid: Tid) -> LiveResult<()> {
        self.full_halted(tid);
        self.with_full(tid, |_, full| {
            if let Some((signal, before)) = full.handler.take() {
                (full.judged, full.hooked) = (None, None);
                return full.stepped.handler(signal, &before).map_err(of_exact);
            }
            match full.step_ended() {
                None => Ok(()),
                Some(why) => Err(LiveError::Motion(debuginfo::Diagnostic::new(why))),
            }
        })
        .map(drop)
    }

    /// The thread was resumed, for a step.
    fn runs(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.is_stepping = true;
            thread.state = State::Running(Run::default());
        }
    }
}

pub(super) fn of_exact(error: exact::Error) -> LiveError {
    LiveError::Motion(debuginfo::Diagnostic::new(error.to_string()))
}

pub(super) fn failed(action: &'static str) -> impl FnOnce(std::io::Error) -> LiveError {
    move |source| LiveError::System { action, source }
}

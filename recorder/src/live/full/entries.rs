//! Our code at the entries of functions, when a recorded thread comes there.
//!
//! That of a traced function notes the call, and leaves all registers but the flags as they were: it runs between two instructions. Code that stands in for
//! a function calls it with frames of its own on the stack: it is passed by where that does no harm, and ends recording elsewhere.

use exact::Ending;

use super::turns::{OWN_STACK, failed};
use crate::live::breakpoints::sites::TRAP;
use crate::live::{
    breakpoints::Breakpoints,
    error::{LiveError, LiveResult},
    event_loop::Tracer,
    model::{Reason, Tid},
    tracee::{Tracee, hooks::Hook},
};
use crate::stop::{Registers, ptrace::Came};

/// How the code of a traced function begins: `push %r11; lea probe(%rip), %r11`.
const TRACED: [u8; 5] = [0x41, 0x53, 0x4c, 0x8d, 0x1d];
/// Where the address of the probe follows, counted from the end of the instruction.
const PROBE_END: u64 = 9;
/// Where the probe has the address at which the call goes on.
const CALLS: u64 = 16;

/// What lies at an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// The call is noted.
    Traced,
    /// Other code runs.
    Replaced,
    /// Nothing before the function's first instruction.
    Plain,
}

impl Tracee {
    /// Whether the signal frame of a thread would have an address that is none without our jump there.
    pub(super) fn is_displaced(&self, tid: Tid, hooked: Option<u64>) -> LiveResult<bool> {
        let pc = self.registers(tid)?.rip;
        let hooks = self.memory.hooks_now();
        if hooks.ends_thread(pc) && hooked == Some(pc) {
            return Ok(true);
        }
        let over = hooks.over(pc);
        Ok(over.is_some_and(|(entry, _)| entry != pc || hooked == Some(pc)))
    }

    fn entry_of(&self, pc: u64, hook: &Hook) -> Entry {
        let [_, distance @ ..] = hook.jump;
        let stub = (pc + hook.jump.len() as u64)
            .wrapping_add_signed(i64::from(i32::from_le_bytes(distance)));
        if stub == hook.trampoline.at {
            return Entry::Plain;
        }
        let memory = &self.memory;
        let mut code = [0; PROBE_END as usize];
        if memory.read_raw(stub, &mut code).is_err() || !code.starts_with(&TRACED) {
            return Entry::Replaced;
        }
        let [.., a, b, c, d] = code;
        let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
        let probe = (stub + PROBE_END).wrapping_add_signed(distance);
        match memory.word(probe + CALLS) {
            Ok(calls) if calls == hook.trampoline.at => Entry::Traced,
            _ => Entry::Replaced,
        }
    }

    /// Lets the entry code of a traced function run. Of what it leaves below the stack pointer, the program sees nothing.
    fn run_entry_code(
        &mut self,
        breakpoints: &mut Breakpoints,
        tid: Tid,
        before: &Registers,
    ) -> LiveResult<()> {
        let pc = before.rip;
        let below = before.rsp.saturating_sub(OWN_STACK as u64);
        let stack = self.memory.read_up_to(below, OWN_STACK);
        let hooks = self.memory.hooks_now();
        let copy = hooks.over(pc);
        let copy = copy.and_then(|(_, hook)| hook.trampoline.moved(pc));
        drop(hooks);
        let elsewhere = || {
            let why = "the entry code of a function leads elsewhere";
            LiveError::Motion(debuginfo::Diagnostic::new(why))
        };
        self.run_to(breakpoints, tid, copy.ok_or_else(elsewhere)?)?;
        if self.registers(tid)?.rsp != before.rsp {
            return Err(elsewhere());
        }
        if stack.len() == OWN_STACK {
            let _ = self.memory.write_raw(below, &stack);
        }
        // The flags are no part of a call, and our code changes them.
        self.stopped(tid)?.move_to(before)?;
        self.take_kept_signal(tid)
    }

    /// What the runtime does as a thread ends runs beside the recording, in which its function returns at once: see
    /// [`super::shorten_end_of_thread`].
    pub(super) fn pass_end_of_thread(
        &mut self,
        breakpoints: &mut Breakpoints,
        tid: Tid,
        before: &Registers,
    ) -> LiveResult<()> {
        let pc = before.rip;
        if !self.memory.hooks_now().ends_thread(pc) {
            return Ok(());
        }
        let is_new = self.with_full(tid, |_, full| Ok(full.hooked.replace(pc) != Some(pc)))?;
        if is_new != Some(true) {
            return Ok(());
        }
        let below = before.rsp.saturating_sub(OWN_STACK as u64);
        let stack = self.memory.read_up_to(below, OWN_STACK);
        let back = self.memory.word(before.rsp);
        let back = back.map_err(failed("read a return address"))?;
        self.run_to(breakpoints, tid, back)?;
        if stack.len() == OWN_STACK {
            let _ = self.memory.write_raw(below, &stack);
        }
        self.stopped(tid)?.move_to(before)?;
        self.take_kept_signal(tid)
    }

    /// A signal that came while our code ran is delivered between two recorded instructions.
    pub(super) fn take_kept_signal(&mut self, tid: Tid) -> LiveResult<()> {
        let halt = self.halt_mut(tid);
        let signal = halt.map_or(0, |halt| std::mem::take(&mut halt.signal));
        self.with_full(tid, |_, full| {
            if signal != 0 {
                full.signal = signal;
            }
            Ok(())
        })
        .map(drop)
    }

    /// Lets a thread run through our code to where that is left. It may call functions of the C library; no other thread runs.
    pub(super) fn run_to(
        &mut self,
        breakpoints: &mut Breakpoints,
        tid: Tid,
        target: u64,
    ) -> LiveResult<()> {
        let memory = self.memory.clone();
        let mut covered = [0];
        memory
            .read_raw(target, &mut covered)
            .and_then(|()| memory.write_raw(target, &[TRAP]))
            .map_err(failed("set a trap"))?;
        let came = self.run_to_trap(breakpoints, tid, target);
        // It was read from there.
        let _ = memory.write_raw(target, &covered);
        came
    }

    fn run_to_trap(
        &mut self,
        breakpoints: &mut Breakpoints,
        tid: Tid,
        target: u64,
    ) -> LiveResult<()> {
        let mut signal = 0;
        loop {
            let run = self.stopped(tid)?.run(signal);
            signal = 0;
            let run = run.map_err(failed("resume the thread"))?;
            let came = run.came().map_err(failed("wait for the thread"))?;
            let Came::Stopped(stopped, event) = came else {
                return Err(LiveError::Ended);
            };
            if stopped == libc::SIGTRAP && self.registers(tid)?.rip == target + 1 {
                return self.stopped(tid)?.move_to_pc(target);
            }
            let is_fault = matches!(stopped, libc::SIGSEGV | libc::SIGBUS);
            if event != 0 || is_fault && breakpoints.passes_fault(&self.stopped(tid)?, stopped) {
                continue;
            }
            // It is delivered later; where another one is kept already, at once.
            let kept = self.halt_mut(tid).map_or(0, |halt| halt.signal);
            match kept {
                0 => self.keep_signal(tid, stopped),
                _ => signal = stopped,
            }
        }
    }
}

impl Tracer {
    /// Acts on our code at the entry of a function. Returns whether the thread is not recorded any more.
    pub(super) fn meets_entry_code(&mut self, tid: Tid, registers: &Registers) -> LiveResult<bool> {
        let pc = registers.rip;
        let entry = match self.tracee.memory.hooks_now().over(pc) {
            Some((entry, hook)) if entry == pc => self.tracee.entry_of(pc, hook),
            _ => return Ok(false),
        };
        let new = self
            .tracee
            .with_full(tid, |_, full| Ok(full.hooked.replace(pc) != Some(pc)))?;
        if new != Some(true) {
            return Ok(false);
        }
        match entry {
            Entry::Plain => Ok(false),
            Entry::Traced => self
                .tracee
                .run_entry_code(&mut self.breakpoints, tid, registers)
                .map(|()| false),
            Entry::Replaced => self.pass_replacement(tid, registers),
        }
    }

    /// Our code stands in for a function. Output is noted by nobody then, which the session's recording says.
    fn pass_replacement(&mut self, tid: Tid, registers: &Registers) -> LiveResult<bool> {
        let name = self.tracee.space_now().function_at(registers.rip);
        let name = name.map_or_else(|| "a function".to_owned(), |place| place.name.to_string());
        if name.contains("write") {
            self.tracee.with_full(tid, |_, full| {
                full.has_unseen_output = true;
                Ok(())
            })?;
            return Ok(false);
        }
        // Its own code is to run when the thread goes on.
        self.tracee.with_full(tid, |_, full| {
            full.hooked = None;
            Ok(())
        })?;
        if name.contains("_exit") || name.contains("_Exit") {
            let why = format!("the program exits with code {}", registers.rdi as u8);
            self.tracee.full_ends(tid, Ending::GoesOn(why));
            self.abandon_plan(tid);
            self.tracee.run_in_place(&self.probes, &self.journal, tid);
            return Ok(true);
        }
        let why = format!("the recorder's own code stands in for {name}");
        self.tracee.full_ends(tid, Ending::GoesOn(why));
        self.halt(tid, Reason::Step, false);
        Ok(true)
    }
}

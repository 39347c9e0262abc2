//! Signals: handlers run as translated code too, and see the program's own registers.

use std::collections::VecDeque;

use libc::user_regs_struct;

use super::inject;
use super::threads::Next;
use super::trap_action::{TrapAction, Trapped};
use super::{Recorder, State};
use crate::abi::RED_ZONE;
use crate::digest;
use crate::error::{Context as _, Result};
use crate::log::{Bytes, Entry, Fatal};
use crate::ptrace;
use crate::tracee::{X87_INSTRUCTION, proc_text};
use crate::translate::Trap;

/// Signals that end a program that does not catch them, and that none ignores for long.
const ENDING: [i32; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGSYS,
];
/// Results of calls that a signal has interrupted: the kernel makes them again, or has them fail with EINTR
/// (ERESTARTSYS to ERESTART_RESTARTBLOCK in its errno.h).
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;
/// That of one that waits for some time (ERESTART_RESTARTBLOCK).
const RESTART_BLOCK: i64 = -516;
/// Bytes of the instruction `syscall`.
const SYSCALL: u64 = 2;
/// Where the frame of a signal has the instruction pointer (rt_sigframe: return address, then ucontext_t).
const FRAME_RIP: u64 = 8 + 40 + 16 * 8;
/// Where it has the address of the x87, SSE and later registers (behind 23 others).
const FRAME_EXTENDED: u64 = 8 + 40 + 23 * 8;

/// Where siginfo_t has the address of a fault.
const IN_SIGNAL: usize = 16;

impl Fatal {
    /// What ends the program if no handler is there for it.
    pub(super) fn of(tid: i32, info: &libc::siginfo_t) -> Fatal {
        // SAFETY: both are in the same place of the structure, and plain numbers.
        let address = unsafe { info.si_addr() } as u64;
        Fatal {
            tid,
            signal: info.si_signo,
            code: info.si_code,
            address: if info.si_code > 0 {
                address
            } else {
                address & 0xffff_ffff
            },
        }
    }
}

/// The signals of the program.
#[derive(Default)]
pub(super) struct Signals {
    /// Those that came at a moment when they could not be delivered.
    held: VecDeque<(i32, libc::siginfo_t)>,
    /// The last one that no handler was there for.
    pub(super) fatal: Option<Fatal>,
    pub(super) trap_action: TrapAction,
}

impl Signals {
    /// A signal of a thread is delivered later.
    pub(super) fn hold(&mut self, tid: i32, info: libc::siginfo_t) {
        self.held.push_back((tid, info));
    }

    /// The first one of a thread.
    fn take(&mut self, tid: i32) -> Option<libc::siginfo_t> {
        let index = self.held.iter().position(|(of, _)| *of == tid)?;
        self.held.remove(index).map(|(_, info)| info)
    }

    pub(super) fn take_all(&mut self) -> VecDeque<(i32, libc::siginfo_t)> {
        std::mem::take(&mut self.held)
    }
}

impl Recorder {
    /// A thread has stopped because a signal is about to be delivered to it; it runs translated code, or waits in a call.
    pub(super) fn signal(&mut self, tid: i32) -> Result<Next> {
        let mut info = ptrace::signal_info(tid).context("read the signal")?;
        let changed = self.hide_translation(&mut info);
        self.deliver(tid, &info, changed)
    }

    /// Some faults have the address of their instruction: it is the program's, not that of its translation. Returns whether it was another.
    fn hide_translation(&self, info: &mut libc::siginfo_t) -> bool {
        let of_instruction = matches!(info.si_signo, libc::SIGILL | libc::SIGFPE | libc::SIGTRAP);
        if !of_instruction || info.si_code <= 0 {
            return false;
        }
        // SAFETY: a fault has an address.
        let at = unsafe { info.si_addr() } as u64;
        let Some(place) = self.translator.place(at) else {
            return false;
        };
        let field = (&raw mut *info).wrapping_byte_add(IN_SIGNAL).cast::<u64>();
        // SAFETY: it lies in the structure, which is aligned to words.
        unsafe { field.write(place.pc) };
        true
    }

    /// Keeps the signal that a thread has stopped for.
    pub(super) fn hold(&mut self, tid: i32) -> Result<()> {
        let info = ptrace::signal_info(tid).context("read the signal")?;
        self.keep(tid, info);
        Ok(())
    }

    /// Keeps those that came while a thread did system calls of ours.
    pub(super) fn hold_all(&mut self, tid: i32) {
        for info in std::mem::take(&mut self.process.came) {
            self.keep(tid, info);
        }
    }

    fn keep(&mut self, tid: i32, info: libc::siginfo_t) {
        match self.turns.is_interrupt(tid, info.si_signo) {
            true => self.turns.begin(),
            false => self.signals.hold(tid, info),
        }
    }

    /// Delivers a signal that was kept, if there is one; returns whether the thread has been resumed with it.
    pub(super) fn deliver_held(&mut self, tid: i32) -> Result<bool> {
        let thread = &self.threads[tid];
        if self.signals.held.is_empty() || thread.outside.is_some() || !thread.is_ready() {
            return Ok(false);
        }
        let rip = ptrace::registers(tid).context("read registers")?.rip;
        if self.translator.trap(rip).is_some() {
            return Ok(false);
        }
        let Some(info) = self.signals.take(tid) else {
            return Ok(false);
        };
        // Signals can be passed on where one has stopped the thread: that of a step will do.
        self.step(tid, 0)?;
        if self.is_blocked(tid, info.si_signo)? {
            // A handler that began meanwhile keeps it away. It waits in the kernel, as if it had come just now.
            ptrace::set_signal_info(tid, &info).context("deliver a signal")?;
            ptrace::cont(tid, info.si_signo).context("resume the program")?;
            return Ok(true);
        }
        match self.deliver(tid, &info, true)? {
            Next::Resume => Ok(false),
            Next::Running => Ok(true),
            Next::Stopped(status) => {
                self.turns.arrived.push_back((tid, status));
                Ok(true)
            }
        }
    }

    fn deliver(&mut self, tid: i32, info: &libc::siginfo_t, mut moved: bool) -> Result<Next> {
        let number = info.si_signo;
        if let Some(next) = self.writes_code(tid, info)? {
            return Ok(next);
        }
        let in_call = self.stands_in_call(tid)?;
        let mut caught = self.is_caught(number)?;
        if number == libc::SIGTRAP {
            match self.signals.trap_action.of(info, caught) {
                Trapped::Usual => {}
                Trapped::Ignored => {
                    ptrace::cont(tid, 0).context("resume the program")?;
                    return Ok(Next::Running);
                }
                Trapped::Forgotten => {
                    self.restore_trap_action(tid)?;
                    (caught, moved) = (true, true);
                }
            }
        }
        // Where a call has not begun yet, others may have run since the counter was taken.
        let counts = self.threads[tid].is_ready();
        if !in_call && caught {
            // A call that has not begun yet, or is about to be made again, is made after the handler.
            self.forget_call(tid)?;
        }
        if !in_call {
            moved |= match inject::comes_again(info) {
                true => self.step_to_boundary(tid)?,
                false => self.finish_instruction(tid)?,
            };
            if counts {
                let registers = ptrace::registers(tid).context("read registers")?;
                self.take_counter(tid, &registers, registers.rip)?;
                self.note_repeated(tid)?;
            }
        }
        if moved {
            ptrace::set_signal_info(tid, info).context("deliver a signal")?;
        }
        if !caught {
            // It is ignored, or ends or stops the program.
            self.signals.fatal = Some(Fatal::of(tid, info));
            if !in_call && ENDING.contains(&number) {
                let registers = ptrace::registers(tid).context("read registers")?;
                let own = self.own(tid, &registers)?;
                self.check_at_end(tid, &own)?;
            }
            ptrace::cont(tid, number).context("resume the program")?;
            return Ok(Next::Running);
        }
        let registers = ptrace::registers(tid).context("read registers")?;
        let mut own = self.own(tid, &registers)?;
        let call = match &self.threads[tid].state {
            State::InCall(call) => {
                let next = call.next;
                own.rip = next;
                own.rcx = next;
                if RESTARTS.contains(&(own.rax as i64)) {
                    Some((next, own.rax as i64))
                } else {
                    self.answered(tid, own.rax as i64)?;
                    None
                }
            }
            State::Ready => {
                own.orig_rax = u64::MAX;
                None
            }
        };
        let is_ready = self.threads[tid].is_ready();
        let state = is_ready.then(|| digest::of_registers(&own, own.rip));
        self.out_of_overlay(&mut own)?;
        self.open_for_frame(tid, own.rsp)?;
        ptrace::set_registers(tid, &own).context("set registers")?;
        let status = self.step(tid, number)?;
        if !libc::WIFSTOPPED(status) || libc::WSTOPSIG(status) != libc::SIGTRAP {
            return Ok(Next::Stopped(status));
        }
        self.handler(tid, number, (&own, state), call)
    }

    /// A thread is at the first instruction of a handler. `before`: its registers when the signal came, and what stands for those that
    /// running again has then.
    fn handler(
        &mut self,
        tid: i32,
        number: i32,
        (before, state): (&user_regs_struct, Option<u32>),
        call: Option<(u64, i64)>,
    ) -> Result<Next> {
        let context = self.context(tid)?;
        let registers = user_regs_struct::from(&context.registers);
        let (start, end) = self.threads[tid].alternate;
        self.hide_instruction(registers.rsp)?;
        let top = if (start..end).contains(&registers.rsp) && !(start..end).contains(&before.rsp) {
            end
        } else {
            before.rsp - RED_ZONE
        };
        let length = top.saturating_sub(registers.rsp).min(64 << 10);
        let mut writes = vec![Bytes {
            at: registers.rsp,
            bytes: self.process.bytes(registers.rsp, length as usize),
        }];
        let interrupted = self.process.word(registers.rsp + FRAME_RIP)?;
        let call_done = call.is_some_and(|(next, _)| next == interrupted);
        if let Some(begun) = self.threads[tid].leave_call()
            && let Some((_, result)) = call
        {
            // What is left of a time to sleep, for example.
            writes.extend(self.writes_of(tid, &begun, result));
        }
        self.log.add(&Entry::Signal {
            at: self.count,
            tid,
            number,
            call_done,
            context,
            writes,
            state,
        })?;
        self.count += u64::from(call_done);
        self.enter(tid, &registers)?;
        Ok(Next::Resume)
    }

    /// A frame has the address of the x87 unit's last instruction: it is the program's, not that of its translation.
    fn hide_instruction(&self, frame: u64) -> Result<()> {
        let saved = self.process.word(frame + FRAME_EXTENDED)?;
        if saved == 0 {
            return Ok(());
        }
        let at = saved + X87_INSTRUCTION as u64;
        match self.translator.place(self.process.word(at)?) {
            Some(place) => self.process.set_word(at, place.pc),
            None => Ok(()),
        }
    }

    /// Whether a thread stands behind a system call: it waits there, or has returned.
    pub(super) fn stands_in_call(&self, tid: i32) -> Result<bool> {
        let mut registers = ptrace::registers(tid).context("read registers")?;
        let is_behind = |at| matches!(self.translator.trap(at), Some(Trap::Returned { .. }));
        if is_behind(registers.rip) {
            return Ok(true);
        }
        let Some(call) = self.threads[tid].call() else {
            return Ok(false);
        };
        let restart = libc::SYS_restart_syscall as u64;
        let behind = registers.rip + SYSCALL;
        if registers.rax != restart || call.number == restart || !is_behind(behind) {
            return Ok(false);
        }
        // It was interrupted in a call that waits for some time, and the kernel was about to have it wait for the rest. It does not, and
        // the thread is as it was before: the program has made another call than this one.
        registers.rip = behind;
        registers.rax = RESTART_BLOCK as u64;
        registers.orig_rax = call.number;
        ptrace::set_registers(tid, &registers).context("set registers")?;
        Ok(true)
    }

    /// A thread that is in a call, but does not stand behind it, is before it again.
    pub(super) fn forget_call(&mut self, tid: i32) -> Result<()> {
        let Some(call) = self.threads[tid].leave_call() else {
            return Ok(());
        };
        let mut registers = ptrace::registers(tid).context("read registers")?;
        (registers.rcx, registers.r11) = call.changes;
        ptrace::set_registers(tid, &registers).context("set registers")
    }

    /// Like [`Self::step_to_boundary`], but what repeats is done then: its state in the middle is none of those that running again has.
    pub(super) fn finish_instruction(&mut self, tid: i32) -> Result<bool> {
        let mut moved = self.step_to_boundary(tid)?;
        loop {
            let at = ptrace::registers(tid).context("read registers")?.rip;
            if self.translator.place(at).is_none() {
                return Ok(moved);
            }
            let Some(end) = self.process.end_of_repeated(at) else {
                return Ok(moved);
            };
            moved = true;
            if !self.run_to(tid, end)? {
                return Ok(true);
            }
            self.step_to_boundary(tid)?;
        }
    }

    /// A thread whose counter was taken, and that has come to a boundary between instructions, stands before one that repeats if it
    /// has a fault in that. What was done before counts as an instruction.
    pub(super) fn note_repeated(&mut self, tid: i32) -> Result<()> {
        let registers = ptrace::registers(tid).context("read registers")?;
        let at = registers.rip;
        if self.translator.place(at).is_none() || self.process.end_of_repeated(at).is_none() {
            return Ok(());
        }
        self.log.add(&Entry::Repeated {
            at: self.count,
            tid,
            left: registers.rcx,
        })?;
        self.count += 1;
        self.set_counter(tid)
    }

    /// Has a thread run to an address of translated code. Returns whether it has come there: it has a fault otherwise.
    fn run_to(&mut self, tid: i32, end: u64) -> Result<bool> {
        let displaced = self.process.put_trap(end)?;
        let is_there = loop {
            ptrace::cont(tid, 0).context("resume the program")?;
            let stopped = ptrace::wait(tid, false).context("wait for the program")?;
            let Some((_, status)) = stopped else {
                continue;
            };
            if !libc::WIFSTOPPED(status) || status >> 16 != 0 {
                continue;
            }
            let mut registers = ptrace::registers(tid).context("read registers")?;
            if libc::WSTOPSIG(status) == libc::SIGTRAP && registers.rip == end + 1 {
                registers.rip = end;
                ptrace::set_registers(tid, &registers).context("set registers")?;
                break true;
            }
            let info = ptrace::signal_info(tid).context("read the signal")?;
            if inject::comes_again(&info) {
                break false;
            }
            self.hold(tid)?;
        };
        self.process.write(end, &displaced)?;
        Ok(is_there)
    }

    /// Has a thread go on to where the program's state is whole; returns whether it had to be moved.
    pub(super) fn step_to_boundary(&mut self, tid: i32) -> Result<bool> {
        let mut moved = false;
        loop {
            let mut registers = ptrace::registers(tid).context("read registers")?;
            let Some(place) = self.translator.place(registers.rip) else {
                return Ok(moved);
            };
            if place.boundary && place.at == registers.rip {
                return Ok(moved);
            }
            if self.translator.trap(registers.rip) == Some(Trap::Miss) {
                // The trap that is due here.
                registers.rip += 1;
                let at = registers.rip - 1;
                self.at_trap(tid, &mut registers, at, Trap::Miss)?;
                return Ok(true);
            }
            moved = true;
            let status = self.step(tid, 0)?;
            if libc::WIFSTOPPED(status)
                && status >> 16 == 0
                && libc::WSTOPSIG(status) != libc::SIGTRAP
            {
                // The instruction faults: the program's state is that before it.
                return Ok(moved);
            }
        }
    }

    /// Whether a thread that is in no call has blocked a signal.
    fn is_blocked(&self, tid: i32, number: i32) -> Result<bool> {
        let mask = ptrace::signal_mask(tid).context("read blocked signals")?;
        Ok(mask & (1 << (number - 1)) != 0)
    }

    fn is_caught(&self, number: i32) -> Result<bool> {
        let text = proc_text(format!("/proc/{}/status", self.process.shown))
            .context("read the program's state")?;
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0);
        Ok(mask & (1 << (number - 1)) != 0)
    }
}

//! Leaving a program in the middle of its run: its threads go on by themselves, at the instructions where they were recorded last.

use super::Recorder;
use super::inject::{self, Quiet};
use super::known::Known;
use super::native::Came;
use super::take::is_waiting;
use crate::error::{Context as _, Result};
use crate::ptrace;
use crate::translate::{Trap, layout};

impl Recorder {
    /// All threads leave translated code, and are stopped then. `is_over`: nothing of ours remains in the program. Returns what is
    /// known of its memory otherwise.
    pub(super) fn leave(&mut self, is_over: bool) -> Result<Option<Known>> {
        let mut came = Came::default();
        if let Some(tid) = self.turns.current {
            self.finish_instruction(tid)?;
            let registers = ptrace::registers(tid).context("read registers")?;
            self.take_counter(tid, &registers, registers.rip)?;
            self.note_repeated(tid)?;
        }
        self.stop_all(&mut came)?;
        self.part.waited.clear();
        let tids: Vec<i32> = self.threads.tids().collect();
        for tid in &tids {
            self.finish_call(*tid)?;
        }
        for tid in &tids {
            self.leave_code(*tid)?;
        }
        // Signals that came while a thread was stepped.
        for (tid, info) in self.signals.take_all() {
            came.entry(tid).or_default().push(info);
        }
        let quiet: Vec<Quiet> = tids
            .iter()
            .map(|tid| Quiet::new(*tid))
            .collect::<Result<_>>()?;
        self.unguard(tids[0])?;
        self.restore_trap_action(tids[0])?;
        let mut known = Known::of(&self.process, &|at| self.translator.owns(at))?;
        if !is_over {
            known.look(&self.process)?;
        }
        let scratch = self.scratch();
        for quiet in &quiet {
            for info in came.get(&quiet.tid).into_iter().flatten() {
                if !inject::comes_again(info) {
                    quiet.send(&mut self.process, scratch, info)?;
                }
            }
        }
        if is_over {
            self.remove_ours(&tids)?;
        }
        self.turns.current = None;
        quiet.into_iter().try_for_each(Quiet::end)?;
        Ok((!is_over).then_some(known))
    }

    /// Unmaps what is ours, and restores what was taken away.
    fn remove_ours(&mut self, tids: &[i32]) -> Result<()> {
        self.process.give_up_place();
        let caches = self.translator.caches().map(|at| (at, layout::CACHE_BYTES));
        let low = (self.translator.low(), layout::LOW_BYTES);
        for (at, length) in caches.chain([low]).collect::<Vec<_>>() {
            let args = [at, length, 0, 0, 0, 0];
            self.process.call(tids[0], libc::SYS_munmap, args)?;
        }
        for tid in tids {
            if let Some(was) = self.part.restartable.remove(tid) {
                inject::restore_restartable(&mut self.process, *tid, was)?;
            }
        }
        Ok(())
    }

    /// Stops all threads that are in the kernel; no other one runs.
    fn stop_all(&mut self, came: &mut Came) -> Result<()> {
        let arrived = std::mem::take(&mut self.turns.arrived);
        for (tid, status) in &arrived {
            self.stopped_in_call(*tid, *status, came)?;
        }
        let is_running = |tid: &i32| {
            Some(*tid) != self.turns.current && !arrived.iter().any(|(other, _)| other == tid)
        };
        let in_calls = self.threads.in_calls().map(|(tid, _)| tid);
        let tids: Vec<i32> = in_calls.filter(is_running).collect();
        for tid in &tids {
            let _ = ptrace::interrupt(*tid);
        }
        for tid in tids {
            loop {
                let Some((_, status)) = ptrace::wait(tid, false).context("wait for the program")?
                else {
                    continue;
                };
                if !libc::WIFSTOPPED(status) {
                    self.threads.remove(tid);
                    break;
                }
                if status >> 16 == libc::PTRACE_EVENT_STOP {
                    let at = ptrace::registers(tid).context("read registers")?.rip;
                    let is_behind = self.translator.trap(at.wrapping_sub(1)).is_some();
                    if !(is_behind && inject::has_trap(tid)) {
                        break;
                    }
                    // It stops once more, for that, before it goes on; and then as it was asked to.
                    ptrace::cont(tid, 0).context("resume the program")?;
                    continue;
                }
                self.stopped_in_call(tid, status, came)?;
                // The stop that it is in has made the kernel forget that it is to stop.
                let _ = ptrace::interrupt(tid);
                ptrace::cont(tid, 0).context("resume the program")?;
            }
        }
        if let Some(tid) = self.turns.take_interrupted() {
            self.swallow_stop(tid, came)?;
        }
        Ok(())
    }

    /// A thread that was in a call has stopped: the call has returned, or there is a signal.
    fn stopped_in_call(&mut self, tid: i32, status: i32, came: &mut Came) -> Result<()> {
        if !libc::WIFSTOPPED(status) || status >> 16 != 0 || !self.threads.has(tid) {
            return Ok(());
        }
        let mut registers = ptrace::registers(tid).context("read registers")?;
        let at = registers.rip.wrapping_sub(1);
        let is_trap = libc::WSTOPSIG(status) == libc::SIGTRAP;
        if is_trap && matches!(self.translator.trap(at), Some(Trap::Returned { .. })) {
            registers.rip = at;
            return ptrace::set_registers(tid, &registers).context("set registers");
        }
        let info = ptrace::signal_info(tid).context("read the signal")?;
        if !self.turns.is_interrupt(tid, info.si_signo) {
            came.entry(tid).or_default().push(info);
        }
        Ok(())
    }

    /// A thread was about to be stopped by us: it does not see that.
    fn swallow_stop(&mut self, tid: i32, came: &mut Came) -> Result<()> {
        loop {
            ptrace::cont(tid, 0).context("resume the program")?;
            let status = loop {
                if let Some((_, status)) =
                    ptrace::wait(tid, false).context("wait for the program")?
                {
                    break status;
                }
            };
            if !libc::WIFSTOPPED(status) || libc::WSTOPSIG(status) == libc::SIGSTOP {
                return Ok(());
            }
            if status >> 16 == 0 {
                let info = ptrace::signal_info(tid).context("read the signal")?;
                came.entry(tid).or_default().push(info);
            }
        }
    }

    /// Notes what a call has returned, if it has; it has not begun, or waits, otherwise.
    fn finish_call(&mut self, tid: i32) -> Result<()> {
        let Some(call) = self.threads[tid].call() else {
            return Ok(());
        };
        let (next, number) = (call.next, call.number);
        if !self.stands_in_call(tid)? {
            return self.forget_call(tid);
        }
        let mut registers = ptrace::registers(tid).context("read registers")?;
        if is_waiting(&mut registers) {
            self.part.waited.insert(tid, (next, number));
            return ptrace::set_registers(tid, &registers).context("set registers");
        }
        self.answered(tid, registers.rax as i64)?;
        registers.rcx = next;
        registers.orig_rax = u64::MAX;
        ptrace::set_registers(tid, &registers).context("set registers")
    }

    /// Gives a thread its own registers.
    fn leave_code(&mut self, tid: i32) -> Result<()> {
        let is_waiting = self.part.waited.contains_key(&tid);
        if !is_waiting {
            self.finish_instruction(tid)?;
        }
        let registers = ptrace::registers(tid).context("read registers")?;
        let mut own = self.own(tid, &registers)?;
        if let Some((next, _)) = self.part.waited.get(&tid) {
            own.rip = *next;
            own.rcx = *next;
        } else {
            own.orig_rax = u64::MAX;
        }
        self.out_of_overlay(&mut own)?;
        let extended = ptrace::extended_state(tid).context("read registers")?;
        let right = crate::tracee::own_extended(&self.translator, extended.clone());
        if right != extended {
            ptrace::set_extended_state(tid, &right).context("set registers")?;
        }
        ptrace::set_registers(tid, &own).context("set registers")
    }
}

//! Resumes halted threads: as they ran before, for one instruction, or from exactly where they are.

use crate::{
    live::{
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        journal::Journal,
        model::Tid,
        probes::Probes,
        tracee::{
            Tracee,
            threads::{Run, State},
        },
    },
    stop::{ptrace, restart},
};

/// The instruction that makes system calls.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

impl Tracer {
    /// Resumes a halted thread as before: running or stepping.
    pub fn go_on(&mut self, tid: Tid) {
        let is_stepping = self
            .tracee
            .threads
            .get(&tid)
            .is_some_and(|thread| thread.is_stepping);
        self.go(tid, is_stepping);
    }

    /// Resumes a halted thread, for one instruction if `one_step` is set. A thread at a trap passes it, unless
    /// something else stopped it just before.
    pub fn go(&mut self, tid: Tid, one_step: bool) {
        let halted = self.tracee.threads.get_mut(&tid);
        let Some(thread) = halted.filter(|thread| thread.is_halted()) else {
            return;
        };
        self.journal.set_standing(false);
        let signal = thread.halt().map_or(0, |halt| halt.signal);
        if thread.full.is_some() {
            self.full_resume(tid, signal);
            return;
        }
        if one_step && signal != 0 && thread.plan.is_some() {
            self.signal_while_stepping(tid, signal);
            return;
        }
        let Some(mut thread) = self.tracee.resumable(tid) else {
            return;
        };
        let stood = thread.take_halt(one_step);
        let passes = stood.passes_trap();
        let signal = stood.signal;
        let mut behind_pushed_flags = None;
        if let Ok(stopped) = self.tracee.stopped(tid)
            && let Ok(mut registers) = stopped.registers()
        {
            let site = self.breakpoints.sites.by_trap(registers.rip);
            let stands_at = site.filter(|site| passes && !site.users.is_empty());
            match stands_at {
                // In an interrupted system call the thread is still before the instruction, although rip is after it.
                Some(site) if !restart::may_restart(&registers) => {
                    registers.rip = site.pass_at();
                    let _ = stopped.set_pc(registers.rip);
                }
                _ => stopped.ask_for_restart(),
            }
            if one_step {
                behind_pushed_flags = self.tracee.behind_pushed_flags(&registers);
            }
        }
        self.tracee.tell_signal(tid, signal);
        if !one_step {
            self.tracee.run_thread(&self.probes, tid, signal);
            return;
        }
        self.tracee.forget_passed(tid);
        if let Some(thread) = self.tracee.resumable(tid) {
            let run = Run {
                is_interrupted: false,
                behind_pushed_flags,
            };
            // On failure the thread was killed; its end will be reported.
            let _ = thread.step(signal, run);
        }
    }
}

impl Tracee {
    /// Resumes a halted thread from exactly where it is.
    pub fn run_in_place(&mut self, probes: &Probes, journal: &Journal, tid: Tid) {
        let Some(mut thread) = self.resumable(tid) else {
            return;
        };
        journal.set_standing(false);
        let signal = thread.take_halt(false).signal;
        self.tell_signal(tid, signal);
        self.run_thread(probes, tid, signal);
    }

    /// Lets a thread end the system call in whose middle it has halted, and halts it then. Before, the call's result is not in
    /// `rax` yet: what we make the thread run would get it, and the thread would lose it.
    pub fn end_system_call(&mut self, probes: &Probes, tid: Tid) {
        let thread = self.threads.get(&tid);
        let halted = thread.filter(|thread| thread.is_halted() && thread.full.is_none());
        let Some(is_stepping) = halted.map(|thread| thread.is_stepping) else {
            return;
        };
        // The kernel forgets a request that came before the event. A failure means that the thread was killed.
        if ptrace::interrupt(tid).is_err() {
            return;
        }
        if is_stepping && let Some(thread) = self.resumable(tid) {
            let run = Run {
                is_interrupted: true,
                behind_pushed_flags: None,
            };
            let _ = thread.step(0, run);
            return;
        }
        self.run_thread(probes, tid, 0);
        let thread = self.threads.get_mut(&tid);
        if let Some(State::Running(run)) = thread.map(|thread| &mut thread.state) {
            run.is_interrupted = true;
        }
    }

    /// Single-steps a halted thread. Returns the signal of its next stop.
    pub fn step_once(&mut self, tid: Tid) -> LiveResult<i32> {
        let failed = |source| LiveError::System {
            action: "step the thread",
            source,
        };
        let stopped = self.stopped(tid)?;
        // A system call may change what the thread blocks.
        let mut code = [0; SYSCALL.len()];
        let at = stopped.registers().map_err(failed)?.rip;
        let makes_call = self.memory.read_raw(at, &mut code).is_ok() && code == SYSCALL;
        let blocked = match makes_call {
            true => None,
            false => stopped.hear_traps(),
        };
        let signal = stopped.step(0).map_err(failed)?.signal()?;
        stopped.hear_as_before(blocked);
        Ok(signal)
    }
}

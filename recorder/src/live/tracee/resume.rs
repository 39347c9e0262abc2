//! Resumes halted threads: as they ran before, for one instruction, or from exactly where they are.

use crate::{
    live::{
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        journal::Journal,
        model::Tid,
        probes::Probes,
        tracee::{Tracee, threads::Run},
    },
    stop::restart,
};

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

    /// Single-steps a halted thread. Returns the signal of its next stop.
    pub fn step_once(&mut self, tid: Tid) -> LiveResult<i32> {
        let failed = |source| LiveError::System {
            action: "step the thread",
            source,
        };
        let step = self.stopped(tid)?.step(0).map_err(failed)?;
        step.signal()
    }
}

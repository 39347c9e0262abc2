//! Handles a thread that reaches a probe, throws, or is about to receive a signal.

use super::exceptions::Thrown;
use crate::live::{
    breakpoints::{Breakpoints, sites::User},
    event_loop::Tracer,
    model::{Action, Location, ProbeId, Reason, Tid},
    probes::judge::Wanted,
    remote_call::RemoteCalls,
    tracee::{Tracee, threads::Trap},
};

/// Signals caused by the program itself that end it unless it handles them.
pub const FAULTS: [i32; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGSYS,
    libc::SIGTRAP,
];

impl Tracer {
    /// Handles a thread at the trap of a site.
    pub fn hit(&mut self, tid: Tid, address: u64) {
        if let Some(halt) = self.tracee.halt_mut(tid) {
            halt.trap = Trap::Hit;
        }
        self.look_at_faults(tid, address);
        let Some(site) = self.breakpoints.sites.at(address) else {
            self.go_on(tid);
            return;
        };
        let users: Vec<User> = site.users.iter().copied().collect();
        if self.stops_at(tid, address, &users) {
            return;
        }
        if users.contains(&User::Step(tid)) && self.arrived(tid, address) {
            return;
        }
        let is_stepping = self
            .tracee
            .threads
            .get(&tid)
            .is_some_and(|thread| thread.is_stepping);
        if is_stepping && self.tracee.has_plan(tid) {
            self.look_again(tid, address);
        } else {
            self.go(tid, false);
        }
    }

    /// Evaluates the probes of a place for a thread there. Returns whether one of them has stopped the thread.
    pub fn stops_at(&mut self, tid: Tid, address: u64, users: &[User]) -> bool {
        let mut stop = None;
        let mut calls_to_come = 0;
        for user in users {
            match user {
                User::Unwind => self.before_unwinding(tid, address),
                User::Probe(id) => {
                    let (before, inside) = self.probes.known_calls(&self.tracee, *id, address);
                    self.tracee.set_calls_to_come(tid, inside);
                    if self.probes.logs_in_calls(*id) {
                        self.enter_logged(tid, *id);
                        continue;
                    }
                    let judged = self.judge(tid, *id);
                    if stop.is_none() && judged.is_some() {
                        (stop, calls_to_come) = (judged, before);
                    }
                }
                User::Leave => self.leave_logged(tid, address),
                User::Return(_) => self.leave_watched(tid, address),
                User::Step(_) => {}
            }
        }
        self.tracee.set_calls_to_come(tid, calls_to_come);
        let Some((reason, all_threads)) = stop else {
            return false;
        };
        self.halt(tid, reason, all_threads);
        true
    }

    /// Decides whether a probe stops a thread. Logs the message of a logpoint.
    pub fn judge(&mut self, tid: Tid, id: ProbeId) -> Option<(Reason, bool)> {
        let here = |tracer: &Tracer| {
            let general = tracer.tracee.registers(tid).ok()?;
            Some((
                tracer.breakpoints.original_pc(&tracer.tracee, general.rip),
                general.rsp,
            ))
        };
        let mut asks = std::mem::take(&mut self.probes.stopless);
        let decided = asks.take_decided(tid, id, || here(self));
        self.probes.stopless = asks;
        let wanted = match decided {
            Some(hits) => Wanted { hits, thrown: None },
            None => self.judging().evaluate_probe(tid, id)?,
        };
        let probe = self.probes.by_id.get(&id)?;
        let Action::Break { all_threads, once } = probe.view.spec.action else {
            return None;
        };
        let hits = wanted.hits;
        let reason = match wanted.thrown {
            None => Reason::Breakpoint { probe: id, hits },
            Some(Thrown { what, message })
                if matches!(probe.view.spec.location, Location::Event(_)) =>
            {
                let text = message.map_or_else(String::new, |message| format!(": {message}"));
                Reason::Happened {
                    probe: id,
                    hits,
                    what: what + &text,
                }
            }
            Some(Thrown { what, message }) => {
                let unhandled = matches!(
                    probe.view.spec.location,
                    Location::Throw {
                        unhandled_only: true,
                        ..
                    }
                );
                let (thrown, text) = (what.clone(), message.clone());
                let pc = self.breakpoints.pc(&self.tracee, tid);
                self.journal
                    .exception(tid, None, Some(thrown), unhandled, pc, text);
                Reason::Throw {
                    probe: id,
                    what,
                    message,
                    unhandled,
                }
            }
        };
        // In a function that is called for the user, the thread does not stop.
        if once && !self.tracee.has_call(tid) {
            // Cannot fail: the probe exists, and no thread is stopped at it yet.
            let _ = self.remove_probe(id);
        }
        Some((reason, all_threads))
    }

    /// As [`judge`](Self::judge), for watched memory. Returns whether all threads are to stop.
    pub fn judge_watch(&mut self, tid: Tid, id: ProbeId) -> Option<bool> {
        self.judge(tid, id).map(|(_, all_threads)| all_threads)
    }

    /// Handles a thread that is about to receive a signal.
    pub fn signalled(&mut self, tid: Tid, signal: i32, fault_address: Option<u64>) {
        let fatal = self
            .breakpoints
            .is_fatal(&mut self.calls, &mut self.tracee, tid, signal);
        if self.tracee.has_call(tid) && (fatal || FAULTS.contains(&signal)) {
            self.call_failed(tid, signal);
            return;
        }
        self.tracee.keep_signal(tid, signal);
        if self.tracee.has_call(tid) {
            // Its handler runs within the function.
            self.tracee.run_in_place(&self.probes, &self.journal, tid);
            return;
        }
        if fatal && signal == libc::SIGTRAP {
            self.breakpoints
                .let_trap_end(&mut self.calls, &mut self.tracee, tid);
        }
        if self.is_unattended {
            // The runtime has the program's last moment recorded.
            self.tracee.run_in_place(&self.probes, &self.journal, tid);
            return;
        }
        let probe = self
            .probes
            .by_id
            .values()
            .filter(|probe| probe.is_enabled)
            .find(|probe| match probe.view.spec.location {
                Location::Signal(None) => true,
                Location::Signal(Some(wanted)) => wanted == signal,
                _ => false,
            })
            .map(|probe| probe.view.id);
        if probe.is_some() {
            // The condition refers to a place in the program. A thread that cannot be moved was killed.
            let _ = self.breakpoints.leave_ours(&mut self.tracee, tid);
        }
        if probe.is_some() || fatal || FAULTS.contains(&signal) {
            self.journal
                .exception(tid, Some(signal), None, fatal, fault_address, None);
        }
        let judged = probe.and_then(|id| self.judge(tid, id));
        let is_shown = fatal && !self.tracee.following.has_let_go && FAULTS.contains(&signal);
        if judged.is_some() || is_shown {
            let all_threads = judged.is_some_and(|(_, all_threads)| all_threads);
            let reason = Reason::Signal {
                signal,
                fault_address,
                fatal,
                probe,
            };
            self.halt(tid, reason, all_threads);
        } else if self.tracee.has_plan(tid) && self.tracee.threads[&tid].is_stepping {
            self.signal_while_stepping(tid, signal);
        } else {
            self.tracee.run_in_place(&self.probes, &self.journal, tid);
        }
    }
}

impl Tracee {
    pub fn set_calls_to_come(&mut self, tid: Tid, count: usize) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.calls_to_come = count;
        }
    }
}

impl Breakpoints {
    /// Returns whether the signal will end the program unhandled. `tid` is about to receive it.
    fn is_fatal(
        &mut self,
        calls: &mut RemoteCalls,
        tracee: &mut Tracee,
        tid: Tid,
        signal: i32,
    ) -> bool {
        let harmless = [
            libc::SIGCHLD,
            libc::SIGURG,
            libc::SIGWINCH,
            libc::SIGCONT,
            libc::SIGSTOP,
            libc::SIGTSTP,
            libc::SIGTTIN,
            libc::SIGTTOU,
        ];
        if harmless.contains(&signal) || tracee.ignores(signal) {
            return false;
        }
        // The runtime's handler does not count as the program's.
        !tracee.handles(signal)
            || signal == libc::SIGTRAP && self.is_trap_handler_ours(calls, tracee, tid)
    }
}

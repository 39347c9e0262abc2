//! Handles a thread that reaches a probe, throws, or is about to receive a signal.

use store::control::Control;

use super::{evaluate::Filled, exceptions::Thrown};
use crate::{
    clock,
    live::{
        breakpoints::sites::User,
        condition::Condition,
        event_loop::Tracer,
        guard::guarded,
        model::{Action, Location, ProbeId, Reason, Tid},
    },
};

/// Signals caused by the program itself that end it unless it handles them.
const FAULTS: [i32; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGSYS,
    libc::SIGTRAP,
];

/// A hit of a probe.
pub(crate) struct Wanted {
    /// How often the probe was hit, including this time.
    pub hits: u64,
    thrown: Option<Thrown>,
}

impl Tracer {
    /// Handles a thread at the trap of a site.
    pub fn hit(&mut self, tid: Tid, address: u64) {
        if let Some(halt) = self.tracee.halt_mut(tid) {
            halt.is_at_trap = true;
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
        if is_stepping && self.has_plan(tid) {
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
                    let (before, inside) = self.known_calls(*id, address);
                    self.set_calls_to_come(tid, inside);
                    if self.logs_in_calls(*id) {
                        self.enter_logged(tid, *id);
                        continue;
                    }
                    let judged = self.judge(tid, *id);
                    if stop.is_none() && judged.is_some() {
                        (stop, calls_to_come) = (judged, before);
                    }
                }
                User::Leave => self.leave_logged(tid, address),
                User::Step(_) => {}
            }
        }
        self.set_calls_to_come(tid, calls_to_come);
        let Some((reason, all_threads)) = stop else {
            return false;
        };
        self.halt(tid, reason, all_threads);
        true
    }

    pub fn set_calls_to_come(&mut self, tid: Tid, count: usize) {
        if let Some(thread) = self.tracee.threads.get_mut(&tid) {
            thread.calls_to_come = count;
        }
    }

    /// Decides whether a probe stops a thread. Logs the message of a logpoint.
    pub fn judge(&mut self, tid: Tid, id: ProbeId) -> Option<(Reason, bool)> {
        let here = |tracer: &Tracer| {
            let general = tracer.registers(tid).ok()?;
            Some((tracer.original_pc(general.rip), general.rsp))
        };
        let mut asks = std::mem::take(&mut self.probes.stopless);
        let decided = asks.take_decided(tid, id, || here(self));
        self.probes.stopless = asks;
        let wanted = match decided {
            Some(hits) => Wanted { hits, thrown: None },
            None => self.evaluate_probe(tid, id)?,
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
                let pc = self.pc(tid);
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
        if once {
            // Cannot fail: the probe exists, and no thread is stopped at it yet.
            let _ = self.remove_probe(id);
        }
        Some((reason, all_threads))
    }

    /// Returns the hit if a probe applies to a thread: its condition holds, the exception matches, and the hit count is
    /// reached. Counts the hit. Logs a message.
    pub fn evaluate_probe(&mut self, tid: Tid, id: ProbeId) -> Option<Wanted> {
        self.count_arrival(tid, id);
        let wanted = self.is_meant(tid, id);
        if let Some(thread) = self.tracee.threads.get_mut(&tid) {
            thread.hit_count = None;
        }
        wanted
    }

    fn is_meant(&mut self, tid: Tid, id: ProbeId) -> Option<Wanted> {
        let probe = self.probes.by_id.get(&id)?;
        if probe.view.spec.condition.is_some() && !self.holds(tid, id) {
            return None;
        }
        let spec = &self.probes.by_id.get(&id)?.view.spec;
        let (hit_count, logs) = (spec.hit_count, spec.action.message().is_some());
        let thrown = match &spec.location.clone() {
            Location::Throw {
                pattern,
                unhandled_only: false,
            } => Some(self.thrown(tid, pattern.as_deref())?),
            Location::Throw { pattern, .. } => Some(self.unhandled(tid, pattern.as_deref())?),
            Location::Panic => Some(self.panicked(tid)),
            Location::Event(happening) if !happening.entries().is_empty() => {
                Some(self.happened(tid, happening)?)
            }
            _ => None,
        };
        let (hits, passed_until) = {
            let probe = self.probes.by_id.get_mut(&id)?;
            probe.view.hits += 1;
            let probe = self.probes.by_id.get(&id)?;
            self.tell_count(probe);
            (self.total_hits(probe), probe.view.passed_until)
        };
        if passed_until != 0 && hits >= passed_until {
            self.all_skipped(id);
        }
        if hits <= passed_until || (hit_count != 0 && hits != hit_count) {
            return None;
        }
        if logs {
            self.log(tid, id);
        }
        Some(Wanted { hits, thrown })
    }

    /// Lets the program evaluate a probe again, of which no more hits are skipped.
    fn all_skipped(&mut self, id: ProbeId) {
        if let Some(probe) = self.probes.by_id.get_mut(&id) {
            probe.view.passed_until = 0;
        }
        self.compile_later(id);
    }

    fn log(&mut self, tid: Tid, id: ProbeId) {
        let filled = guarded(|| self.fill_in(tid, id));
        let filled = filled.unwrap_or_else(|error| Filled {
            text: format!("<error: {}>", error.one_line()),
            values: Vec::new(),
            error: Some(error.one_line()),
        });
        let Filled {
            text,
            values,
            error,
        } = filled;
        self.stops.failures.judged(id, false, error.as_deref());
        let passed = self.passed(tid);
        self.journal.send(Control::Logpoint {
            ticks: clock::ticks(),
            tid: tid as u32,
            probe: id,
            message: text,
            values,
            passed: passed.map(Box::new),
            error,
        });
    }

    /// As [`judge`](Self::judge), for watched memory. Returns whether all threads are to stop.
    pub fn judge_watch(&mut self, tid: Tid, id: ProbeId) -> Option<bool> {
        self.judge(tid, id).map(|(_, all_threads)| all_threads)
    }

    fn holds(&self, tid: Tid, id: ProbeId) -> bool {
        let Some(probe) = self.probes.by_id.get(&id) else {
            return false;
        };
        let is_watched = matches!(probe.view.spec.location, Location::Memory { .. });
        let evaluated = guarded(|| match &probe.view.spec.condition {
            None => Ok(true),
            Some(Condition::JavaScript(_)) => self.judge_script(tid, id, is_watched),
            Some(Condition::Own(condition)) if is_watched => self.evaluate_outwards(tid, condition),
            Some(Condition::Own(condition)) => self.evaluate_condition(tid, condition),
        });
        let evaluated = evaluated.unwrap_or_else(|error| Err(error.one_line()));
        let why = evaluated.as_ref().err().map(String::as_str);
        self.stops.failures.judged(id, true, why);
        match evaluated {
            Ok(holds) => holds,
            Err(error) => {
                self.journal.send(Control::ConditionError {
                    ticks: clock::ticks(),
                    tid: tid as u32,
                    probe: id,
                    condition: probe.view.spec.condition_text().unwrap_or_default(),
                    error,
                });
                false
            }
        }
    }

    /// Handles a thread that is about to receive a signal.
    pub fn signalled(&mut self, tid: Tid, signal: i32, fault_address: Option<u64>) {
        let fatal = self.is_fatal(tid, signal);
        if self.has_call(tid) && (fatal || FAULTS.contains(&signal)) {
            self.call_failed(tid, signal);
            return;
        }
        self.tracee.keep_signal(tid, signal);
        if self.has_call(tid) {
            // Its handler runs within the function.
            self.run_in_place(tid);
            return;
        }
        if fatal && signal == libc::SIGTRAP {
            self.let_trap_end(tid);
        }
        if self.is_unattended {
            // The runtime has the program's last moment recorded.
            self.run_in_place(tid);
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
            let _ = self.leave_ours(tid);
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
        } else if self.has_plan(tid) && self.tracee.threads[&tid].is_stepping {
            self.signal_while_stepping(tid, signal);
        } else {
            self.run_in_place(tid);
        }
    }

    /// Returns whether the signal will end the program unhandled. `tid` is about to receive it.
    fn is_fatal(&mut self, tid: Tid, signal: i32) -> bool {
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
        if harmless.contains(&signal) || self.tracee.ignores(signal) {
            return false;
        }
        // The runtime's handler does not count as the program's.
        !self.tracee.handles(signal) || signal == libc::SIGTRAP && self.is_trap_handler_ours(tid)
    }
}

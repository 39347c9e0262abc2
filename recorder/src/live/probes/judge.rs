//! Decides whether a probe applies to a thread that has reached it: its condition, what was thrown, and its count of hits.
//!
//! This only reads the program. It neither stops nor resumes a thread.

use store::control::Control;

use super::{
    Probes,
    evaluate::{Evaluator, Filled},
    exceptions::{Exceptions, Thrown},
    failures::Failures,
};
use crate::{
    clock,
    live::{
        breakpoints::Breakpoints,
        condition::Condition,
        guard::guarded,
        journal::Journal,
        model::{Location, ProbeId, Tid},
        tracee::Tracee,
    },
};

/// A hit of a probe.
pub(crate) struct Wanted {
    /// How often the probe was hit, including this time.
    pub hits: u64,
    pub thrown: Option<Thrown>,
}

/// What probes are judged with.
pub(crate) struct Judge<'a> {
    pub tracee: &'a mut Tracee,
    pub breakpoints: &'a mut Breakpoints,
    pub probes: &'a mut Probes,
    pub journal: &'a Journal,
    pub failures: &'a Failures,
}

impl Judge<'_> {
    fn evaluator(&self) -> Evaluator<'_> {
        Evaluator {
            tracee: self.tracee,
            breakpoints: self.breakpoints,
            probes: self.probes,
        }
    }

    /// Returns the hit if a probe applies to a thread: its condition holds, the exception matches, and the hit count is
    /// reached. Counts the hit. Logs a message.
    pub fn evaluate_probe(&mut self, tid: Tid, id: ProbeId) -> Option<Wanted> {
        self.probes.count_arrival(self.tracee, tid, id);
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
            } => Some(Exceptions::of(self.tracee).thrown(tid, pattern.as_deref())?),
            Location::Throw { pattern, .. } => {
                Some(Exceptions::of(self.tracee).unhandled(tid, pattern.as_deref())?)
            }
            Location::Panic => Some(Exceptions::of(self.tracee).panicked(tid)),
            Location::Event(happening) if !happening.entries().is_empty() => {
                Some(self.probes.happened(self.tracee, tid, happening)?)
            }
            _ => None,
        };
        let (hits, passed_until) = {
            let probe = self.probes.by_id.get_mut(&id)?;
            probe.view.hits += 1;
            let probe = self.probes.by_id.get(&id)?;
            self.breakpoints.tell_count(probe);
            (self.breakpoints.total_hits(probe), probe.view.passed_until)
        };
        if passed_until != 0 && hits >= passed_until {
            self.breakpoints.all_skipped(self.probes, id);
        }
        if hits <= passed_until || (hit_count != 0 && hits != hit_count) {
            return None;
        }
        if logs {
            self.log(tid, id);
        }
        Some(Wanted { hits, thrown })
    }

    fn log(&mut self, tid: Tid, id: ProbeId) {
        let filled = guarded(|| self.evaluator().fill_in(tid, id));
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
        self.failures.judged(id, false, error.as_deref());
        let passed = self.evaluator().passed(tid);
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

    fn holds(&self, tid: Tid, id: ProbeId) -> bool {
        let Some(probe) = self.probes.by_id.get(&id) else {
            return false;
        };
        let is_watched = matches!(probe.view.spec.location, Location::Memory { .. });
        let evaluated = guarded(|| match &probe.view.spec.condition {
            None => Ok(true),
            Some(Condition::JavaScript(_)) => self.evaluator().judge_script(tid, id, is_watched),
            Some(Condition::Own(condition)) if is_watched => {
                self.evaluator().evaluate_outwards(tid, condition)
            }
            Some(Condition::Own(condition)) => self.evaluator().evaluate_condition(tid, condition),
        });
        let evaluated = evaluated.unwrap_or_else(|error| Err(error.one_line()));
        let why = evaluated.as_ref().err().map(String::as_str);
        self.failures.judged(id, true, why);
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
}

impl Breakpoints {
    /// Lets the program evaluate a probe again, of which no more hits are skipped.
    fn all_skipped(&mut self, probes: &mut Probes, id: ProbeId) {
        if let Some(probe) = probes.by_id.get_mut(&id) {
            probe.view.passed_until = 0;
        }
        self.compile_later(id);
    }
}

//! Failures of conditions and messages: how often, the last reason, and which were not reported yet.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::live::model::ProbeId;

/// Evaluations of a probe's condition or message by the tracer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// How often it failed.
    pub times: u64,
    /// How often it was evaluated.
    pub judged: u64,
    /// The last reason.
    pub why: String,
    /// Whether the condition failed, and not the message.
    pub is_condition: bool,
}

#[derive(Debug, Default)]
struct Entry {
    failed: Failed,
    told: u64,
}

/// The failures of all probes.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    by_probe: Mutex<BTreeMap<ProbeId, Entry>>,
}

impl Failures {
    /// Counts an evaluation of a condition or message, and its failure if there is a reason `why`.
    pub fn judged(&self, id: ProbeId, is_condition: bool, why: Option<&str>) {
        let mut all = self.all();
        let entry = all.entry(id).or_default();
        entry.failed.judged += 1;
        if let Some(why) = why {
            entry.failed.times += 1;
            entry.failed.is_condition = is_condition;
            why.clone_into(&mut entry.failed.why);
        }
    }

    /// Forgets a probe that has a new condition or is gone.
    pub fn forget(&self, id: ProbeId) {
        self.all().remove(&id);
    }

    /// Returns the failures of a probe.
    pub fn of(&self, id: ProbeId) -> Option<Failed> {
        let all = self.all();
        let failed = &all.get(&id)?.failed;
        (failed.times > 0).then(|| failed.clone())
    }

    /// Returns what has failed since the last call.
    pub fn untold(&self) -> Vec<(ProbeId, Failed)> {
        let mut all = self.all();
        let new = all.iter_mut().filter(|(_, e)| e.failed.times > e.told);
        new.map(|(id, entry)| {
            entry.told = entry.failed.times;
            (*id, entry.failed.clone())
        })
        .collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<ProbeId, Entry>> {
        // A panic cannot leave the map inconsistent: entries are independent.
        self.by_probe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failed {
    /// Describes the failure in words.
    #[must_use]
    pub fn words(&self) -> String {
        let Failed {
            times,
            judged,
            why,
            is_condition,
        } = self;
        let what = match is_condition {
            true => "its condition",
            false => "its message",
        };
        let often = match times {
            _ if times == judged => format!("at every hit so far ({times})"),
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        format!("{what} failed {often}: {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_once_and_stays_known() {
        let failures = Failures::default();
        failures.judged(3, true, Some("no x"));
        failures.judged(3, true, Some("no x"));
        failures.judged(4, false, None);
        let told = failures.untold();
        assert_eq!(told.len(), 1);
        let words = told[0].1.words();
        assert_eq!(words, "its condition failed at every hit so far (2): no x");
        assert!(failures.untold().is_empty());
        failures.judged(3, true, None);
        assert!(failures.untold().is_empty());
        let words = failures.of(3).map(|failed| failed.words());
        assert_eq!(words.as_deref(), Some("its condition failed 2 times: no x"));
        assert_eq!(failures.of(4), None);
        failures.forget(3);
        assert_eq!(failures.of(3), None);
    }
}

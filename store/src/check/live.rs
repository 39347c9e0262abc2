//! Checks the log's records of live probes: each probe is defined before it is named, and formats and stacks keep their
//! bounds.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::threads::ParameterPlace;
use super::{Report, Severity};
use crate::control::{Control, LogFormat, LogPart, MAX_STACK_LEN};
use crate::wire::{LOG_MAX_VALUES, PROBE_BITS, WORD_LEN};

/// The live probes of the log read so far.
#[derive(Default)]
pub(super) struct LiveProbes {
    defined: HashSet<u32>,
    /// Number of words of the values of each format.
    formats: HashMap<u32, u64>,
    /// Control events that name an undefined probe: place of the first, and count.
    undefined: Option<(PathBuf, u64, u64)>,
}

impl LiveProbes {
    /// Adds a control event.
    pub(super) fn control(
        &mut self,
        place: ParameterPlace<'_>,
        control: &Control,
        report: &mut Report,
    ) {
        let mut odd = |what: String| report.find(Severity::Odd, place.0, Some(place.1), what);
        match control {
            Control::Probe(probe) => {
                if probe.id >> PROBE_BITS != 0 {
                    odd(format!("live probe {} has too large a number", probe.id));
                }
                self.defined.insert(probe.id);
            }
            Control::LogFormat(format) => {
                self.name(place, format.probe);
                let words = words_of(format);
                if words > LOG_MAX_VALUES as u64 {
                    let probe = format.probe;
                    odd(format!(
                        "the format of logpoint {probe} reads {words} words of {LOG_MAX_VALUES}"
                    ));
                }
                self.formats.insert(format.probe, words);
            }
            Control::Pause(pause) => {
                if let Some(probe) = pause.probe {
                    self.name(place, probe);
                }
                let len = pause.stack.len();
                if len > MAX_STACK_LEN {
                    odd(format!(
                        "a pause keeps {len} bytes of the stack, more than {MAX_STACK_LEN}"
                    ));
                }
            }
            Control::ProbeRemoved { id: probe, .. }
            | Control::Logpoint { probe, .. }
            | Control::ConditionError { probe, .. } => self.name(place, *probe),
            Control::LoggedWrite(write) => self.name(place, write.probe),
            _ => {}
        }
    }

    /// Returns whether a probe is defined.
    pub(super) fn is_defined(&self, probe: u32) -> bool {
        self.defined.contains(&probe)
    }

    /// Returns whether a logpoint's record has as many words as its format reads; `None` without a format.
    pub(super) fn fits(&self, probe: u32, words: &[u8]) -> Option<bool> {
        let count = (words.len() / WORD_LEN) as u64;
        self.formats.get(&probe).map(|needed| *needed == count)
    }

    /// Reports probes that were named and never defined. Skipped if the log's beginning is missing.
    pub(super) fn finish(self, from_start: bool, report: &mut Report) {
        if let Some((path, offset, count)) = self.undefined
            && from_start
        {
            let what = format!("a live probe is named that is not defined ({count} times)");
            report.find(Severity::Odd, &path, Some(offset), what);
        }
    }

    fn name(&mut self, place: ParameterPlace<'_>, probe: u32) {
        if self.is_defined(probe) {
            return;
        }
        let first = || (place.0.to_path_buf(), place.1, 0);
        self.undefined.get_or_insert_with(first).2 += 1;
    }
}

/// Returns how many words the values of a format take.
fn words_of(format: &LogFormat) -> u64 {
    let ends = format.parts.iter().map(|part| match part {
        LogPart::Text(_) => 0,
        LogPart::Value(value) => value.end(),
        LogPart::Named { word, .. } => u64::from(*word) + 1,
    });
    ends.max().unwrap_or(0)
}

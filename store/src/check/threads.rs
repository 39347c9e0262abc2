//! Checks the records of each thread: order, times, function ids, and that a slot is entered before it is left.
//!
//! A rule that a target can break in many places is reported once per thread, with the first place and a count.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::live::LiveProbes;
use super::{LogTotals, Report, Severity};
use crate::control::Control;
use crate::wire::{Decoded, EnterForm, Record, Records};

/// A frame: its file and where it begins, in bytes from the file's start.
pub(super) type ParameterPlace<'a> = (&'a Path, u64);

/// All threads of a log: uses of a ring.
#[derive(Default)]
pub(super) struct Threads {
    threads: BTreeMap<(u32, u32), Thread>,
    /// The latest tenancy of each ring.
    tenancies: BTreeMap<u32, u32>,
    functions: HashSet<u32>,
    live: LiveProbes,
    watermark: u64,
}

#[derive(Default)]
struct Thread {
    tid: Option<u32>,
    records: u64,
    last_ticks: u64,
    open_slots: HashSet<u64>,
    /// Stack pointers of open system calls.
    open_syscalls: HashSet<u64>,
    lossy: bool,
    oddities: BTreeMap<Oddity, Tally>,
}

/// A broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Oddity {
    NoThreadRecord,
    SecondThreadRecord,
    TimeRunsBack,
    Late,
    UnknownFunction,
    NullSlot,
    LeftNotEntered,
    EndedNotBegun,
    UnknownProbe,
    OtherFormat,
    Torn,
}

struct Tally {
    count: u64,
    path: PathBuf,
    offset: u64,
}

impl Threads {
    pub(super) fn count(&self) -> u64 {
        self.threads.len() as u64
    }

    pub(super) fn block(
        &mut self,
        place: ParameterPlace<'_>,
        key: (u32, u32),
        bytes: &[u8],
        report: &mut Report,
    ) {
        let latest = self.tenancies.entry(key.0).or_insert(key.1);
        if key.1 < *latest {
            let what = format!(
                "a block of ring {} tenancy {} after one of tenancy {latest}",
                key.0, key.1
            );
            report.find(Severity::Odd, place.0, Some(place.1), what);
        }
        *latest = key.1.max(*latest);
        let thread = self.threads.entry(key).or_default();
        for decoded in Records::new(bytes) {
            match decoded {
                Ok(decoded) => {
                    count(&decoded.record, &mut report.log);
                    thread.times(place, decoded.ticks, self.watermark);
                    thread.record(place, &decoded, &self.functions);
                    thread.live_record(place, &decoded.record, &self.live);
                }
                Err(_) => thread.odd(place, Oddity::Torn),
            }
        }
    }

    pub(super) fn watermark(&mut self, place: ParameterPlace<'_>, ticks: u64, report: &mut Report) {
        if ticks < self.watermark {
            let what = format!("watermark {ticks} after {}", self.watermark);
            report.find(Severity::Odd, place.0, Some(place.1), what);
        }
        self.watermark = self.watermark.max(ticks);
    }

    pub(super) fn control(
        &mut self,
        place: ParameterPlace<'_>,
        control: &Control,
        report: &mut Report,
    ) {
        self.live.control(place, control, report);
        if let Control::Snapshot(snapshot) = control {
            report.copy_of_memory(snapshot.id);
        }
        let Control::Function(function) = control else {
            return;
        };
        if !self.functions.insert(function.id) {
            let what = format!("function {} is defined again", function.id);
            report.find(Severity::Odd, place.0, Some(place.1), what);
        }
    }

    /// Reports the findings. `from_start` is false if some of the log before the last record is missing.
    pub(super) fn finish(self, dir: &Path, from_start: bool, report: &mut Report) {
        self.live.finish(from_start, report);
        if self
            .functions
            .iter()
            .any(|id| *id as usize >= self.functions.len())
            && from_start
        {
            let what = "the ids of functions are not dense".to_string();
            report.find(Severity::Odd, dir, None, what);
        }
        for ((ring, tenancy), thread) in self.threads {
            let name = match thread.tid {
                Some(tid) => format!("thread {tid} (ring {ring} tenancy {tenancy})"),
                None => format!("ring {ring} tenancy {tenancy}"),
            };
            for (oddity, tally) in thread.oddities {
                let Some(severity) = oddity.severity(from_start, thread.lossy) else {
                    continue;
                };
                let what = format!("{name}: {} ({} times)", oddity.what(), tally.count);
                report.find(severity, &tally.path, Some(tally.offset), what);
            }
        }
    }
}

impl Thread {
    fn times(&mut self, place: ParameterPlace<'_>, ticks: u64, watermark: u64) {
        if ticks < self.last_ticks {
            self.odd(place, Oddity::TimeRunsBack);
        }
        if ticks < watermark {
            self.odd(place, Oddity::Late);
        }
        self.last_ticks = ticks;
    }

    fn record(
        &mut self,
        place: ParameterPlace<'_>,
        decoded: &Decoded<'_>,
        functions: &HashSet<u32>,
    ) {
        let is_first = self.records == 0;
        self.records += 1;
        match decoded.record {
            Record::Thread { tid, .. } => {
                if !is_first {
                    self.odd(place, Oddity::SecondThreadRecord);
                }
                self.tid = Some(tid);
                return;
            }
            Record::Enter(enter) => {
                if !functions.contains(&enter.function_id()) {
                    self.odd(place, Oddity::UnknownFunction);
                }
                self.slot(place, enter.slot());
                if !matches!(enter.form(), EnterForm::NoLeave | EnterForm::Only) {
                    self.open_slots.insert(enter.slot());
                }
            }
            Record::Leave(leave) => {
                self.slot(place, leave.slot);
                if !self.open_slots.remove(&leave.slot) {
                    self.odd(place, Oddity::LeftNotEntered);
                }
            }
            Record::Syscall(syscall) => {
                self.open_syscalls.insert(syscall.stack);
            }
            Record::SyscallEnd(end) if !self.open_syscalls.remove(&end.stack) => {
                self.odd(place, Oddity::EndedNotBegun);
            }
            Record::Gap { .. } => self.lossy = true,
            _ => {}
        }
        if is_first {
            self.odd(place, Oddity::NoThreadRecord);
        }
    }

    fn live_record(&mut self, place: ParameterPlace<'_>, record: &Record<'_>, live: &LiveProbes) {
        match *record {
            Record::Logpoint { probe, words } => match live.fits(probe, words) {
                Some(true) => {}
                Some(false) => self.odd(place, Oddity::OtherFormat),
                None => self.odd(place, Oddity::UnknownProbe),
            },
            Record::ConditionError { probe, .. } if !live.is_defined(probe) => {
                self.odd(place, Oddity::UnknownProbe);
            }
            _ => {}
        }
    }

    fn slot(&mut self, place: ParameterPlace<'_>, slot: u64) {
        if slot == 0 {
            self.odd(place, Oddity::NullSlot);
        }
    }

    fn odd(&mut self, place: ParameterPlace<'_>, oddity: Oddity) {
        let tally = self.oddities.entry(oddity).or_insert_with(|| Tally {
            count: 0,
            path: place.0.to_path_buf(),
            offset: place.1,
        });
        tally.count += 1;
    }
}

impl Oddity {
    /// Returns its severity, or `None` if missing data explains it.
    fn severity(self, from_start: bool, lossy: bool) -> Option<Severity> {
        match self {
            Self::NoThreadRecord | Self::UnknownFunction | Self::UnknownProbe if !from_start => {
                None
            }
            Self::LeftNotEntered | Self::EndedNotBegun if !from_start || lossy => None,
            // Late records are moved up to the watermark: allowed, but the recorder should wait longer.
            Self::Late | Self::TimeRunsBack => Some(Severity::Note),
            _ => Some(Severity::Odd),
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::NoThreadRecord => "its first record does not say which thread it is",
            Self::SecondThreadRecord => "a record that says which thread it is comes late",
            Self::TimeRunsBack => "a record is older than the one before",
            Self::Late => "a record is older than the watermark before it",
            Self::UnknownFunction => "a record names a function that is not defined",
            Self::NullSlot => "a record has slot 0",
            Self::LeftNotEntered => "a slot is left that was not entered",
            Self::EndedNotBegun => "a system call ends that did not begin",
            Self::UnknownProbe => "a record names a live probe that is not defined",
            Self::OtherFormat => "a logpoint's record has not the words that its format reads",
            Self::Torn => "the rest of a block cannot be read and counts as a gap",
        }
    }
}

fn count(record: &Record<'_>, totals: &mut LogTotals) {
    totals.records += 1;
    match record {
        Record::Enter(_) => totals.enters += 1,
        Record::Leave(_) => totals.leaves += 1,
        Record::Gap { lost, .. } => totals.lost = totals.lost.saturating_add(*lost),
        _ => {}
    }
}

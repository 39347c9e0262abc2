//! Maps the events of live control to rows, and keeps what later records need: the logpoints' formats and the
//! live probes' conditions, as of the moment that is released.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::message::{object, render};
use super::pair::{Numbered, Sink};
use crate::columns::{CaptureRow, EventKind, EventRow};
use crate::control::{
    Control, Exception, LiveProbe, LogPart, LoggedWrite, Passed, Pause, PauseReason, Write,
};
use crate::error::Result;
use crate::signals::signal_name;
use crate::wire::{self, Capture, Section};

/// The live probes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Live {
    formats: BTreeMap<u32, Vec<LogPart>>,
    probes: BTreeMap<u32, Known>,
}

/// A live probe.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    text: String,
    condition: Option<String>,
}

impl Live {
    /// Adds a control event of live control; ignores others.
    pub(super) fn control<S: Sink>(
        &mut self,
        control: &Control,
        ts_ns: i64,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        match control {
            Control::LogFormat(format) => {
                self.formats.insert(format.probe, format.parts.clone());
                Ok(())
            }
            Control::Probe(probe) => self.probe(probe, ts_ns, out),
            Control::ProbeRemoved { id, .. } => {
                let known = self.probes.get(id);
                out.event(ts_ns, None, EventKind::ProbeRemoved, |row| EventRow {
                    probe: Some(*id),
                    text: known.map(|known| known.text.as_str()),
                    detail: known.and_then(|known| known.condition.as_deref()),
                    ..row
                })
            }
            Control::Pause(pause) => self::pause(pause, ts_ns, out),
            Control::Resume { tid, action, .. } => {
                out.event(ts_ns, thread(*tid), EventKind::Resume, |row| {
                    row.text(action)
                })
            }
            Control::Write(write) => self::write(write, ts_ns, out),
            Control::LoggedWrite(write) => logged_write(write, ts_ns, out),
            Control::Logpoint {
                tid,
                probe,
                message,
                values,
                passed,
                error,
                ..
            } => {
                let values = object(pairs(values));
                let (seq, tid) = (out.next_seq, thread(*tid));
                out.event(ts_ns, tid, EventKind::Logpoint, |row| EventRow {
                    probe: Some(*probe),
                    aux: error.as_deref(),
                    addr: passed.as_ref().map(|passed| passed.pc),
                    detail: values.as_deref(),
                    ..row.text(message)
                })?;
                match passed {
                    Some(passed) => capture(passed, (seq, ts_ns, tid), out),
                    None => Ok(()),
                }
            }
            Control::Exception(exception) => self::exception(exception, ts_ns, out),
            Control::ConditionError {
                tid,
                probe,
                condition,
                error,
                ..
            } => out.event(ts_ns, thread(*tid), EventKind::ConditionError, |row| {
                EventRow {
                    probe: Some(*probe),
                    aux: Some(condition),
                    ..row.text(error)
                }
            }),
            Control::Snapshot(snapshot) => {
                out.event(ts_ns, None, EventKind::Snapshot, |row| EventRow {
                    value: Some(i64::from(snapshot.id)),
                    size: Some(snapshot.changed),
                    aux: Some(snapshot.reason.name()),
                    ..row
                })
            }
            _ => Ok(()),
        }
    }

    /// Adds a record of a passed logpoint.
    pub(super) fn logpoint<S: Sink>(
        &self,
        probe: u32,
        words: &[u8],
        tid: Option<u32>,
        ts_ns: i64,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        let rendered = self.formats.get(&probe).map(|parts| render(parts, words));
        let (text, values) = rendered.unzip();
        let values = values.flatten();
        out.event(ts_ns, tid, EventKind::Logpoint, |row| EventRow {
            probe: Some(probe),
            text: text.as_deref(),
            detail: values.as_deref(),
            bytes: Some(words),
            ..row
        })
    }

    /// Adds a record of a condition that could not be evaluated because of `addr`.
    pub(super) fn condition_error<S: Sink>(
        &self,
        probe: u32,
        addr: u64,
        tid: Option<u32>,
        ts_ns: i64,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        let known = self.probes.get(&probe);
        let text = format!("memory at {addr:#x} cannot be read");
        out.event(ts_ns, tid, EventKind::ConditionError, |row| EventRow {
            probe: Some(probe),
            addr: Some(addr),
            aux: known.and_then(|known| known.condition.as_deref()),
            ..row.text(&text)
        })
    }

    fn probe<S: Sink>(
        &mut self,
        probe: &LiveProbe,
        ts_ns: i64,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        let text = format!("{} {} at {}", probe.kind.name(), probe.id, probe.location);
        out.event(ts_ns, None, EventKind::Probe, |row| EventRow {
            probe: Some(probe.id),
            aux: Some(probe.state.name()),
            detail: probe.condition.as_deref(),
            addr: match probe.places.as_slice() {
                [only] => Some(only.addr),
                _ => None,
            },
            ..row.text(&text)
        })?;
        let condition = probe.condition.clone();
        self.probes.insert(probe.id, Known { text, condition });
        Ok(())
    }
}

fn pause<S: Sink>(pause: &Pause, ts_ns: i64, out: &mut Numbered<S>) -> Result<()> {
    let text = pause_text(pause);
    let values = object(pairs(&pause.values));
    let seq = out.next_seq;
    out.event(ts_ns, thread(pause.tid), EventKind::Pause, |row| EventRow {
        probe: pause.probe,
        aux: Some(pause.reason.name()),
        addr: Some(pause.pc),
        detail: values.as_deref(),
        ..row.text(&text)
    })?;
    out.sink.state(&crate::columns::StateRow {
        seq,
        ts_ns,
        pause,
        values: values.as_deref(),
    })
}

/// Keeps the state of a thread that passed a logpoint or whose write was logged.
fn capture<S: Sink>(
    passed: &Passed,
    (seq, ts_ns, tid): (u64, i64, Option<u32>),
    out: &mut Numbered<S>,
) -> Result<()> {
    let stack = Section {
        addr: passed.stack_addr,
        bytes: &passed.stack,
    };
    let sections = if passed.stack.is_empty() {
        &[][..]
    } else {
        &[stack][..]
    };
    let (flags, payload) = wire::capture_payload(passed.registers, sections);
    match Capture::new(flags, &payload) {
        Some(capture) => out.sink.capture(&CaptureRow {
            seq,
            ts_ns,
            tid,
            capture,
        }),
        None => Ok(()),
    }
}

/// Returns the reason and place of a stop, in one line.
fn pause_text(pause: &Pause) -> String {
    let why = match pause.reason {
        PauseReason::AllThreads => "all threads",
        other => other.name(),
    };
    let probe = pause.probe.map(|id| format!(" {id}")).unwrap_or_default();
    let place = match (&pause.function, &pause.file, pause.line) {
        (Some(function), Some(file), Some(line)) => format!("in {function} at {file}:{line}"),
        (None, Some(file), Some(line)) => format!("at {file}:{line}"),
        (Some(function), _, _) => format!("in {function}"),
        _ => format!("at {:#x}", pause.pc),
    };
    format!("{why}{probe} {place}")
}

fn write<S: Sink>(write: &Write, ts_ns: i64, out: &mut Numbered<S>) -> Result<()> {
    out.event(ts_ns, thread(write.tid), EventKind::Write, |row| EventRow {
        addr: write.addr,
        aux: write.register.as_deref(),
        bytes: Some(&write.new),
        size: Some(write.new.len() as u64),
        old: write.old.as_ref().map(|old| old.as_slice()),
        detail: Some(&write.by),
        ..row.text(&write.target)
    })
}

fn logged_write<S: Sink>(write: &LoggedWrite, ts_ns: i64, out: &mut Numbered<S>) -> Result<()> {
    let (seq, tid) = (out.next_seq, thread(write.tid));
    let line = write.line.map(|line| line.to_string());
    let shared = if write.shared { "shared" } else { "" };
    let place = [write.file.as_deref(), line.as_deref(), write.via.as_deref()];
    let place = place.map(|text| text.unwrap_or_default().replace('\t', " "));
    let place = format!("{}\t{}\t{}\t{shared}", place[0], place[1], place[2]);
    out.event(ts_ns, tid, EventKind::LoggedWrite, |row| EventRow {
        probe: Some(write.probe),
        addr: Some(write.addr),
        value: write.pc.map(|pc| pc as i64),
        aux: write.function.as_deref(),
        bytes: Some(&write.new),
        size: Some(write.new.len() as u64),
        old: (!write.old.is_empty()).then_some(write.old.as_slice()),
        detail: Some(&place),
        ..row.text(&write.target)
    })?;
    match &write.passed {
        Some(passed) => capture(passed, (seq, ts_ns, tid), out),
        None => Ok(()),
    }
}

fn exception<S: Sink>(exception: &Exception, ts_ns: i64, out: &mut Numbered<S>) -> Result<()> {
    let signal = exception.signal.map(signal_name);
    let tid = thread(exception.tid);
    out.event(ts_ns, tid, EventKind::Exception, |row| EventRow {
        text: exception.message.as_deref(),
        value: exception.signal.map(i64::from),
        aux: exception.type_name.as_deref().or(signal.as_deref()),
        addr: exception.addr,
        detail: Some(exception.phase.name()),
        ..row
    })
}

fn pairs(values: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    values
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
}

/// Returns the thread that a control event names; 0 stands for none.
fn thread(tid: u32) -> Option<u32> {
    (tid != 0).then_some(tid)
}

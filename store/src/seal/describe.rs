//! Maps records and control events, other than enters and leaves, to rows of the events table.

use super::live::Live;
use super::pair::{Numbered, Sink};
use crate::columns::{EventKind, EventRow};
use crate::control::Control;
use crate::error::Result;
use crate::signals::signal_name;
use crate::wire::{GapReason, Record, UNKNOWN_ERROR};

const STDOUT: u8 = 1;
const STDERR: u8 = 2;

/// Adds a record of a thread, other than enters, leaves, thread exits and system calls; output to other files is not an event.
pub(super) fn record<S: Sink>(
    record: &Record<'_>,
    live: &Live,
    tid: Option<u32>,
    ts_ns: i64,
    out: &mut Numbered<S>,
) -> Result<()> {
    match *record {
        Record::Thread {
            stack_low,
            stack_high,
            name,
            ..
        } => {
            let name = String::from_utf8_lossy(name);
            let stack = (stack_low < stack_high).then(|| (stack_low, stack_high - stack_low));
            out.event(ts_ns, tid, EventKind::ThreadStart, |row| EventRow {
                addr: stack.map(|(low, _)| low),
                size: stack.map(|(_, len)| len),
                ..row.text(&name)
            })
        }
        Record::Output { fd, bytes } => {
            let kind = match fd {
                STDOUT => EventKind::Stdout,
                STDERR => EventKind::Stderr,
                _ => return Ok(()),
            };
            out.event(ts_ns, tid, kind, |row| EventRow {
                bytes: Some(bytes),
                size: Some(bytes.len() as u64),
                ..row
            })
        }
        Record::ThreadName { name, .. } => {
            let name = String::from_utf8_lossy(name);
            out.event(ts_ns, tid, EventKind::ThreadName, |row| row.text(&name))
        }
        Record::Gap { lost, reason } => {
            let is_counted = !matches!(reason, GapReason::Forbidden | GapReason::Shared);
            let known = is_counted.then_some(lost);
            gap(tid, known, reason, ts_ns, out)
        }
        Record::Fork { child_pid } => out.event(ts_ns, tid, EventKind::Fork, |row| {
            row.value(child_pid.into())
        }),
        Record::Exec { path } => {
            let path = String::from_utf8_lossy(path);
            out.event(ts_ns, tid, EventKind::Exec, |row| row.text(&path))
        }
        Record::ExecFailed { error } => out.event(ts_ns, tid, EventKind::ExecFailed, |row| {
            if error == UNKNOWN_ERROR {
                return row;
            }
            row.value(error.into())
        }),
        Record::Logpoint { probe, words } => live.logpoint(probe, words, tid, ts_ns, out),
        Record::ConditionError { probe, addr } => {
            live.condition_error(probe, addr, tid, ts_ns, out)
        }
        Record::RingWait { since } => {
            let waited_ns = waited_ns(since, ts_ns, out);
            out.event(ts_ns, tid, EventKind::RingWait, |row| row.value(waited_ns))
        }
        Record::Enter(_)
        | Record::Leave(_)
        | Record::Capture(_)
        | Record::ThreadExit { .. }
        | Record::Syscall(_)
        | Record::SyscallEnd(_)
        | Record::FramesLeft { .. }
        | Record::StackSwitch { .. } => Ok(()),
    }
}

/// Adds the gap for the unreadable rest of a block, of unknown length.
pub(super) fn torn<S: Sink>(tid: Option<u32>, ts_ns: i64, out: &mut Numbered<S>) -> Result<()> {
    gap(tid, None, GapReason::Torn, ts_ns, out)
}

/// Adds a control event. Definitions and ends of threads are not events here.
pub(super) fn control<S: Sink>(
    control: &Control,
    live: &mut Live,
    ts_ns: i64,
    out: &mut Numbered<S>,
) -> Result<()> {
    match control {
        Control::ProcessStart { pid, argv, .. } => {
            let argv = argv.join(" ");
            let pid = i64::from(*pid);
            out.event(ts_ns, None, EventKind::ProcessStart, |row| {
                row.text(&argv).value(pid)
            })
        }
        Control::ProcessExit { code, signal, .. } => {
            let signal = signal.map(signal_name);
            out.event(ts_ns, None, EventKind::ProcessExit, |row| EventRow {
                value: code.map(i64::from),
                aux: signal.as_deref(),
                ..row
            })
        }
        Control::Detached { .. } => out.event(ts_ns, None, EventKind::Detached, |row| row),
        Control::ModuleLoad {
            module,
            path,
            build_id,
            addr,
            size,
            ..
        } => out.event(ts_ns, None, EventKind::ModuleLoad, |row| EventRow {
            aux: build_id.as_deref(),
            addr: Some(*addr),
            size: Some(*size),
            ..row.text(path).value((*module).into())
        }),
        Control::ModuleUnload { module, .. } => {
            let module = i64::from(*module);
            out.event(ts_ns, None, EventKind::ModuleUnload, |row| {
                row.value(module)
            })
        }
        Control::Arming {
            tid,
            since,
            modules,
            ..
        } => {
            let waited_ns = waited_ns(*since, ts_ns, out);
            let modules = modules.join(", ");
            out.event(ts_ns, Some(*tid), EventKind::Arming, |row| {
                row.text(&modules).value(waited_ns)
            })
        }
        Control::Gap {
            tid, lost, reason, ..
        } => {
            let tid = (*tid != 0).then_some(*tid);
            gap(tid, Some(*lost), *reason, ts_ns, out)
        }
        Control::Warning { message, .. } => {
            out.event(ts_ns, None, EventKind::Warning, |row| row.text(message))
        }
        Control::Note { text, .. } => out.event(ts_ns, None, EventKind::Note, |row| row.text(text)),
        Control::Function(_) | Control::Skipped { .. } | Control::ThreadEnd { .. } => Ok(()),
        _ => live.control(control, ts_ns, out),
    }
}

/// Returns how long a wait took that began at `since`, in ticks, and ended at `ts_ns`.
fn waited_ns<S: Sink>(since: u64, ts_ns: i64, out: &Numbered<S>) -> i64 {
    (ts_ns - out.clock.ns_from_ticks(since)).max(0)
}

fn gap<S: Sink>(
    tid: Option<u32>,
    lost: Option<u64>,
    reason: GapReason,
    ts_ns: i64,
    out: &mut Numbered<S>,
) -> Result<()> {
    let reason = reason.to_string();
    out.event(ts_ns, tid, EventKind::Gap, |row| EventRow {
        value: lost.map(|lost| lost as i64),
        ..row.text(&reason)
    })
}

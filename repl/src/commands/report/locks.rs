//! The text about locks: who waits for whom at the end, then each lock with the longest waits and holds.

use std::io::{self, Write};

use query::locks::{LockReport, LockTotal, NotRecorded, Span, Waiter, Who};
use query::memory::Frame;
use query::overview::within;
use server::quantity::{count, duration, grouped};

use super::text::{NAME_COLUMNS, layout};
use super::told::{Told, frame_within, told};
use crate::render::{Align, Column, Layout, Paint, Table, Terminal, escaped};

/// A terminal with fewer columns has no room for a lock's name beside the longest wait and hold. The lines below the table
/// have them, too.
const WIDE: usize = 100;
/// Most locks whose longest wait and longest hold are reported.
const LONGEST: usize = 5;
/// Most threads that are listed as waiting.
const WAITING: usize = 10;
const HOW: &str = "hindsight record --locks PROGRAM records the calls that take and give locks";

/// Writes the report.
///
/// # Errors
/// Those of `out`.
pub fn locks(
    out: &mut dyn Write,
    found: &LockReport,
    limit: usize,
    terminal: &Terminal,
) -> io::Result<()> {
    if found.locks.is_empty() {
        writeln!(
            out,
            "no call of a function that takes a lock was recorded; {HOW}"
        )?;
        return not_recorded(out, &found.not_recorded);
    }
    deadlocks(out, found, terminal)?;
    table(out, &found.locks[..limit.min(found.locks.len())], terminal)?;
    if found.locks.len() > limit {
        let more = count((found.locks.len() - limit) as u64, "more lock");
        writeln!(out, "{more}; --limit {} shows them", found.locks.len())?;
    }
    for lock in found.locks.iter().take(limit.min(LONGEST)) {
        who(out, lock, layout(terminal))?;
    }
    not_recorded(out, &found.not_recorded)
}

/// Writes a row per lock.
fn table(out: &mut dyn Write, locks: &[LockTotal], terminal: &Terminal) -> io::Result<()> {
    let is_wide = !matches!(layout(terminal), Layout::Fit(columns) if columns < WIDE);
    let names = match is_wide {
        true => &[
            "lock",
            "kind",
            "taken",
            "contended",
            "waited",
            "longest",
            "held",
            "longest",
        ][..],
        false => &["lock", "kind", "taken", "contended", "waited", "held"],
    };
    let column = |name: &&str| Column {
        name: (*name).to_owned(),
        align: match *name {
            "lock" | "kind" => Align::Left,
            _ => Align::Right,
        },
    };
    let mut table = Table::new(names.iter().map(column).collect());
    for lock in locks {
        table.push(row(lock, is_wide));
    }
    table.flush(out, layout(terminal), terminal.stdout_colour)
}

fn row(lock: &LockTotal, is_wide: bool) -> Vec<Option<String>> {
    let is_held = !matches!(lock.kind, "condition" | "semaphore" | "futex");
    let mut row = vec![
        name(lock.name.as_deref(), &lock.lock),
        lock.kind.to_owned(),
        grouped(lock.acquired),
        match is_held {
            true => grouped(lock.contended),
            false => String::new(),
        },
    ];
    for span in [&lock.waits, &lock.holds] {
        row.push(total(span));
        if is_wide {
            row.push(longest(span));
        }
    }
    row.into_iter().map(Some).collect()
}

/// What could not be recorded.
fn not_recorded(out: &mut dyn Write, missing: &[NotRecorded]) -> io::Result<()> {
    for one in missing {
        let (function, module) = (&one.function, &one.module);
        match one.recorded_from.is_empty() {
            true => writeln!(
                out,
                "not recorded: calls of {function} ({module}): {}",
                one.reason
            )?,
            false => {
                let from = one.recorded_from.join(", ");
                writeln!(
                    out,
                    "recorded only from {from}: calls of {function} ({module}): {}",
                    one.reason
                )?;
            }
        }
    }
    Ok(())
}

fn name(name: Option<&str>, lock: &str) -> String {
    within(name.unwrap_or(lock), NAME_COLUMNS)
}

fn total(span: &Span) -> String {
    match span.times {
        0 => String::new(),
        _ => duration(span.total_ns),
    }
}

fn longest(span: &Span) -> String {
    match span.times {
        0 => String::new(),
        _ => duration(span.longest_ns),
    }
}

/// Who waited longest for a lock, and who held it longest.
fn who(out: &mut dyn Write, lock: &LockTotal, layout: Layout) -> io::Result<()> {
    let of = name(lock.name.as_deref(), &lock.lock);
    for (span, did) in [
        (&lock.waits, "waited longest for it"),
        (&lock.holds, "held it longest"),
    ] {
        let Some(longest) = &span.longest else {
            continue;
        };
        let owner = match (longest.owner, did.starts_with("waited")) {
            (Some(owner), true) => format!(", while thread {owner} had it"),
            _ => String::new(),
        };
        let what = Told {
            subject: &of,
            does: format!(": {} {did}, {}", thread(longest), duration(span.longest_ns)),
            frames: &longest.frames,
            ends: format!("{owner} (seq {})", longest.seq),
        };
        told(out, "", &what, layout)?;
    }
    Ok(())
}

fn thread(who: &Who) -> String {
    match &who.thread {
        Some(name) => format!("thread {} ({name})", who.tid),
        None => format!("thread {}", who.tid),
    }
}

/// Who waits for whom.
fn deadlocks(out: &mut dyn Write, found: &LockReport, terminal: &Terminal) -> io::Result<()> {
    for circle in &found.deadlocks {
        let head = match circle.len() {
            1 => "deadlock: a thread waits for itself".to_owned(),
            threads => format!("deadlock: {threads} threads wait for each other"),
        };
        let head = terminal.stdout_colour.paint(Paint::Heading, escaped(&head));
        writeln!(out, "{head}")?;
        for waiter in circle {
            waits(out, waiter, layout(terminal))?;
        }
    }
    let is_told = |waiter: &&Waiter| !found.deadlocks.iter().any(|circle| circle.contains(waiter));
    let others: Vec<&Waiter> = found.waiting.iter().filter(is_told).collect();
    if !others.is_empty() {
        writeln!(out, "waiting at the end:")?;
        for waiter in others.iter().take(WAITING) {
            waits(out, waiter, layout(terminal))?;
        }
        if others.len() > WAITING {
            let more = count((others.len() - WAITING) as u64, "more thread");
            writeln!(out, "  and {more}; --json has them")?;
        }
    }
    if !found.waiting.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

fn waits(out: &mut dyn Write, waiter: &Waiter, layout: Layout) -> io::Result<()> {
    let lock = name(waiter.name.as_deref(), &waiter.lock);
    let owner = match waiter.who.owner {
        Some(owner) => {
            let taken = Frame::from_own_code(&waiter.owner_frames).first();
            let taken = taken.map(|frame| format!(", taken in {}", frame_within(frame, layout)));
            format!("; thread {owner} has it{}", taken.unwrap_or_default())
        }
        None => String::new(),
    };
    let what = Told {
        subject: "",
        does: format!(
            "{} has waited {} for {lock} ({})",
            thread(&waiter.who),
            duration(waiter.waited_ns),
            waiter.kind.name()
        ),
        frames: &waiter.who.frames,
        ends: owner,
    };
    told(out, "  ", &what, layout)
}

//! The text about locks: who waits for whom at the end, then each lock with the longest waits and holds.

use std::io::{self, Write};

use query::locks::{LockReport, LockTotal, NotRecorded, Span, Waiter, Who};
use query::memory::Frame;
use server::quantity::{count, duration, grouped};

use super::text::{columns, layout};
use crate::render::{Paint, Table, Terminal, escaped};

/// Frames of a place that are shown.
const FRAMES: usize = 3;
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
    let names = [
        "lock",
        "kind",
        "taken",
        "contended",
        "waited",
        "longest",
        "held",
        "longest",
    ];
    let mut table = Table::new(columns(&names));
    for lock in found.locks.iter().take(limit) {
        let is_held = !matches!(lock.kind, "condition" | "semaphore" | "futex");
        table.push(vec![
            Some(name(lock.name.as_deref(), &lock.lock)),
            Some(lock.kind.to_owned()),
            Some(grouped(lock.acquired)),
            Some(match is_held {
                true => grouped(lock.contended),
                false => String::new(),
            }),
            Some(total(&lock.waits)),
            Some(longest(&lock.waits)),
            Some(total(&lock.holds)),
            Some(longest(&lock.holds)),
        ]);
    }
    table.flush(out, layout(terminal), terminal.stdout_colour)?;
    if found.locks.len() > limit {
        let more = count((found.locks.len() - limit) as u64, "more lock");
        writeln!(out, "{more}; --limit {} shows them", found.locks.len())?;
    }
    for lock in found.locks.iter().take(limit.min(LONGEST)) {
        who(out, lock)?;
    }
    not_recorded(out, &found.not_recorded)
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
    name.unwrap_or(lock).to_owned()
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
fn who(out: &mut dyn Write, lock: &LockTotal) -> io::Result<()> {
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
        writeln!(
            out,
            "{of}: {} {did}, {}{}{owner} (seq {})",
            thread(longest),
            duration(span.longest_ns),
            place(longest),
            longest.seq
        )?;
    }
    Ok(())
}

fn thread(who: &Who) -> String {
    match &who.thread {
        Some(name) => format!("thread {} ({name})", who.tid),
        None => format!("thread {}", who.tid),
    }
}

/// ` in work (app.c:17) < main (app.c:30)`
fn place(who: &Who) -> String {
    let own = Frame::from_own_code(&who.frames).iter();
    let frames: Vec<String> = own.take(FRAMES).map(Frame::short_text).collect();
    match frames.is_empty() {
        true => String::new(),
        false => format!(" in {}", frames.join(" < ")),
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
            writeln!(out, "  {}", waits(waiter))?;
        }
    }
    let is_told = |waiter: &&Waiter| !found.deadlocks.iter().any(|circle| circle.contains(waiter));
    let others: Vec<&Waiter> = found.waiting.iter().filter(is_told).collect();
    if !others.is_empty() {
        writeln!(out, "waiting at the end:")?;
        for waiter in others.iter().take(WAITING) {
            writeln!(out, "  {}", waits(waiter))?;
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

fn waits(waiter: &Waiter) -> String {
    let lock = name(waiter.name.as_deref(), &waiter.lock);
    let owner = match waiter.who.owner {
        Some(owner) => {
            let taken = Frame::from_own_code(&waiter.owner_frames).first();
            let taken = taken.map(|frame| format!(", taken in {}", frame.short_text()));
            format!("; thread {owner} has it{}", taken.unwrap_or_default())
        }
        None => String::new(),
    };
    format!(
        "{} has waited {} for {lock} ({}){}{owner}",
        thread(&waiter.who),
        duration(waiter.waited_ns),
        waiter.kind.name(),
        place(&waiter.who)
    )
}

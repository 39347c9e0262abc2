//! Sums up what threads did with each lock, and finds out who waited for whom when the recording ended.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::holds::{Outcome, Wish};
use super::kinds::{Kind, act};
use super::{Locks, name_of};
use crate::asking::execution;
use crate::callers::{Frame, Frames};
use crate::error::Result;
use crate::report::Source;
use crate::rows::ask;
use crate::session::Session;
use crate::state::failed;

/// A thread at a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Who {
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub thread: Option<String>,
    /// The enter event of the call that wanted the lock.
    pub seq: u64,
    /// Who called it: the place of the call first, then the recorded calls around it.
    pub frames: Vec<Frame>,
    /// A thread that held the lock meanwhile.
    pub owner: Option<u32>,
}

/// Times of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Span {
    /// How many are known.
    pub times: u64,
    /// All together, in ns.
    pub total_ns: u64,
    /// The longest, in ns.
    pub longest_ns: u64,
    /// Whose that was.
    pub longest: Option<Who>,
}

/// What threads did with a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockTotal {
    /// Its address.
    pub lock: String,
    /// The global variable that it is, or is in.
    pub name: Option<String>,
    /// What it is: `mutex`, `rwlock`, `spin`, `condition`, `semaphore` or `futex`.
    pub kind: &'static str,
    /// How often a thread got it.
    pub acquired: u64,
    /// How often a thread had to wait because another one held it.
    pub contended: u64,
    /// How often a thread did not get it: it was busy, or the wait timed out.
    pub refused: u64,
    /// How long threads waited for it.
    pub waits: Span,
    /// How long threads had it.
    pub holds: Span,
}

/// A thread that waited when the recording ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiter {
    /// The thread, and the thread that holds the lock.
    pub who: Who,
    /// The lock's address.
    pub lock: String,
    /// The global variable that it is, or is in.
    pub name: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// For how long it had waited, in ns.
    pub waited_ns: u64,
    /// Where the owner took the lock.
    pub owner_frames: Vec<Frame>,
}

/// A function that locks or unlocks, and could not be hooked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotRecorded {
    /// Its name.
    pub function: String,
    /// The module's file name.
    pub module: String,
    /// The reason.
    pub reason: String,
    /// File names of modules whose own calls of it were still recorded, where they leave the module.
    pub recorded_from: Vec<String>,
}

/// What threads did with locks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LockReport {
    /// Threads that waited for each other when the recording ended: each for the next, the last for the first.
    pub deadlocks: Vec<Vec<Waiter>>,
    /// All threads that waited then.
    pub waiting: Vec<Waiter>,
    /// The locks, those first for which threads waited longest.
    pub locks: Vec<LockTotal>,
    /// Functions that lock or unlock and whose calls could not be recorded.
    pub not_recorded: Vec<NotRecorded>,
}

/// Sums up.
///
/// # Errors
/// The recording cannot be read.
pub fn report(locks: &Locks, session: &Session) -> Result<LockReport> {
    let source = session.report_source();
    let mut tell = Tell {
        frames: Frames::new(source.timeline()?, &locks.tree),
        threads: threads(session)?,
    };
    let until_ns = ended_ns(source)?;
    let mut totals: BTreeMap<(u64, &'static str), LockTotal> = BTreeMap::new();
    for wish in &locks.wishes {
        let key = (wish.lock, class(wish.kind));
        let total = match totals.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(LockTotal {
                lock: format!("{:#x}", wish.lock),
                name: name_of(source, wish.lock, wish.begun.seq)?,
                kind: class(wish.kind),
                acquired: 0,
                contended: 0,
                refused: 0,
                waits: Span::default(),
                holds: Span::default(),
            }),
        };
        add(total, wish, until_ns, &mut tell);
    }
    let mut all: Vec<LockTotal> = totals.into_values().collect();
    all.sort_by_key(|lock| {
        let rest = |ns: u64| u64::MAX - ns;
        // Waiting is the purpose of a condition.
        let is_for_waiting = matches!(lock.kind, "condition" | "semaphore" | "futex");
        (
            is_for_waiting,
            // The time of an uncontended lock is that of the call: the C library takes some often.
            lock.contended == 0,
            rest(lock.waits.total_ns),
            rest(lock.acquired),
        )
    });
    let waiting = waiting(locks, session, &mut tell)?;
    Ok(LockReport {
        deadlocks: deadlocks(&waiting),
        waiting,
        locks: all,
        not_recorded: not_recorded(source),
    })
}

fn not_recorded(source: &Source) -> Vec<NotRecorded> {
    let definitions = &source.definitions;
    let file = |module: u32| {
        let module = definitions.module(module);
        module.map_or_else(String::new, |module| {
            let file = module.path.rsplit('/').next();
            file.unwrap_or_default().to_owned()
        })
    };
    let skipped = definitions.skipped().iter();
    let of_locks =
        skipped.filter(|skipped| !skipped.name.ends_with("@plt") && act(&skipped.name).is_some());
    let told = of_locks.map(|skipped| {
        let stub = format!("{}@plt", skipped.name);
        let mut from: Vec<String> = definitions
            .functions()
            .filter(|function| function.linkage == stub)
            .map(|function| file(function.module))
            .collect();
        from.sort();
        from.dedup();
        NotRecorded {
            function: skipped.name.clone(),
            module: file(skipped.module),
            reason: skipped.reason.clone(),
            recorded_from: from,
        }
    });
    let mut told: Vec<NotRecorded> = told.collect();
    told.sort_by(|a, b| (&a.function, &a.module).cmp(&(&b.function, &b.module)));
    told
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Read | Kind::Write => "rwlock",
        other => other.name(),
    }
}

fn threads(session: &Session) -> Result<HashMap<u32, String>> {
    let rows = ask(
        session,
        "select tid, name from threads where name is not null",
    )?;
    let named = rows.iter().filter_map(|row| {
        let tid = row.count(0).and_then(|tid| u32::try_from(tid).ok())?;
        Some((tid, row.text(1)?.to_owned()))
    });
    Ok(named.collect())
}

struct Tell<'t> {
    frames: Frames<'t>,
    threads: HashMap<u32, String>,
}

impl Tell<'_> {
    fn who(&mut self, wish: &Wish) -> Who {
        Who {
            tid: wish.tid,
            thread: self.threads.get(&wish.tid).cloned(),
            seq: wish.begun.seq,
            frames: self.frames.of(wish.by.1),
            owner: wish.owner,
        }
    }
}

/// When the program ended, in ns.
fn ended_ns(source: &Source) -> Result<i64> {
    let timeline = source.timeline()?;
    timeline.map_or(Ok(0), |timeline| {
        timeline
            .ended_ns()
            .map_err(|error| execution(failed(error)))
    })
}

fn add(total: &mut LockTotal, wish: &Wish, until_ns: i64, tell: &mut Tell<'_>) {
    match wish.outcome {
        Outcome::Acquired => total.acquired += 1,
        Outcome::Busy | Outcome::TimedOut => total.refused += 1,
        Outcome::Failed(_) | Outcome::Waiting | Outcome::Left => {}
    }
    // Who finds it busy and goes on has not waited.
    let has_waited = wish.outcome != Outcome::Busy;
    total.contended += u64::from(has_waited && wish.contended == Some(true));
    // A recursive lock is held from the first lock to the last unlock. A thread may hold a lock, or wait for one, up to the end.
    let hold_ns = wish.hold_until_ns(until_ns).filter(|_| !wish.is_again);
    let waits_still = wish.outcome == Outcome::Waiting;
    let wait_ns = match waits_still {
        true => Some(until_ns - wish.begun.ts_ns),
        false => wish.wait_ns(),
    };
    for (span, ns) in [(&mut total.waits, wait_ns), (&mut total.holds, hold_ns)] {
        let Some(ns) = ns.and_then(|ns| u64::try_from(ns).ok()) else {
            continue;
        };
        span.times += 1;
        span.total_ns += ns;
        if ns > span.longest_ns {
            span.longest_ns = ns;
            span.longest = Some(tell.who(wish));
        }
    }
}

/// Finds the threads that waited at the end, and the holders of their locks.
fn waiting(locks: &Locks, session: &Session, tell: &mut Tell<'_>) -> Result<Vec<Waiter>> {
    let source = session.report_source();
    let until_ns = ended_ns(source)?;
    let mut held: HashMap<u64, Vec<&Wish>> = HashMap::new();
    for wish in locks.wishes.iter().filter(|wish| wish.is_held_at_end()) {
        held.entry(wish.lock).or_default().push(wish);
    }
    let mut waiting = Vec::new();
    let open = locks.wishes.iter();
    for wish in open.filter(|wish| wish.outcome == Outcome::Waiting) {
        let holders = held.get(&wish.lock).map_or(&[][..], Vec::as_slice);
        let owner = holders.iter().find(|held| held.kind.keeps_out(wish.kind));
        let mut who = tell.who(wish);
        who.owner = owner.map(|owner| owner.tid);
        waiting.push(Waiter {
            who,
            lock: format!("{:#x}", wish.lock),
            name: name_of(source, wish.lock, wish.begun.seq)?,
            kind: wish.kind,
            waited_ns: u64::try_from(until_ns - wish.begun.ts_ns).unwrap_or(0),
            owner_frames: owner.map_or_else(Vec::new, |owner| tell.frames.of(owner.by.1)),
        });
    }
    Ok(waiting)
}

/// Finds threads that wait for each other.
fn deadlocks(waiting: &[Waiter]) -> Vec<Vec<Waiter>> {
    let waits: HashMap<u32, &Waiter> = waiting.iter().map(|w| (w.who.tid, w)).collect();
    let mut found: Vec<Vec<Waiter>> = Vec::new();
    for first in waiting {
        let mut circle = vec![first];
        let mut next = first.who.owner;
        while let Some(waiter) = next.and_then(|tid| waits.get(&tid)) {
            if waiter.who.tid == first.who.tid {
                break;
            }
            if circle.iter().any(|seen| seen.who.tid == waiter.who.tid) {
                // A cycle that does not lead back here is reported by its own threads.
                circle.clear();
                break;
            }
            circle.push(waiter);
            next = waiter.who.owner;
        }
        let is_closed = next.is_some() && next == Some(first.who.tid) && !circle.is_empty();
        // Each is reported once, beginning with the lowest thread.
        let is_first = circle.iter().all(|one| one.who.tid >= first.who.tid);
        if is_closed && is_first {
            found.push(circle.into_iter().cloned().collect());
        }
    }
    found
}

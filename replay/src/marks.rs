//! The few events that every state depends on, by kind, in memory: stops, writes, modules, threads, notes, exceptions,
//! ends.
//!
//! One pass over the columns `seq`, `tid` and `kind` of the event files finds them; calls are not in these files. An
//! entry takes 16 bytes. Their number depends on the user and the tracer, not on the length of the program's run, except
//! for logged writes: the program makes them, each in microseconds.

use std::collections::BTreeMap;
use std::thread;

use store::wire::GapReason;

use crate::error::{Error, Result};
use crate::event::Kind;
use crate::others::{Head, Others};

/// A kept event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its number.
    pub seq: u64,
    /// Its thread, if it has one.
    pub tid: Option<u32>,
}

/// Kinds that are kept.
const KEPT: [Kind; 15] = [
    Kind::Pause,
    Kind::Resume,
    Kind::Write,
    Kind::LoggedWrite,
    Kind::ModuleLoad,
    Kind::ModuleUnload,
    Kind::ThreadStart,
    Kind::ThreadName,
    Kind::ThreadExit,
    Kind::Note,
    Kind::End,
    Kind::Gap,
    Kind::Snapshot,
    Kind::Probe,
    Kind::Exception,
];

/// The marks of a recording.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    by_kind: BTreeMap<Kind, Vec<Mark>>,
    /// Stops by thread.
    pauses: BTreeMap<u32, Vec<u64>>,
}

impl Marks {
    /// Reads the heads of all events, with one thread per processor.
    pub(crate) fn read(others: &Others) -> Result<Self> {
        let pages = others.pages();
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let share = pages.div_ceil(workers.max(1)).max(1);
        let found = thread::scope(|scope| {
            let ranges = (0..pages).step_by(share);
            let started: Vec<_> = ranges
                .map(|first| scope.spawn(move || kept(others, first..(first + share).min(pages))))
                .collect();
            started
                .into_iter()
                .map(|worker| worker.join().expect("reading heads does not panic"))
                .collect::<Result<Vec<_>>>()
        })?;
        let mut marks = Marks::default();
        for head in found.into_iter().flatten() {
            if is_of_copies(others, &head)? {
                continue;
            }
            let mark = Mark {
                seq: head.seq,
                tid: head.tid,
            };
            marks.by_kind.entry(head.kind).or_default().push(mark);
            if let (Kind::Pause, Some(tid)) = (head.kind, head.tid) {
                marks.pauses.entry(tid).or_default().push(head.seq);
            }
        }
        Ok(marks)
    }

    /// Returns all events of a kept kind, in order.
    pub(crate) fn all(&self, kind: Kind) -> &[Mark] {
        debug_assert!(KEPT.contains(&kind), "{kind:?} is not kept");
        self.by_kind.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Returns those in `first..=last`.
    pub(crate) fn between(&self, kind: Kind, first: u64, last: u64) -> &[Mark] {
        let all = self.all(kind);
        let begin = all.partition_point(|mark| mark.seq < first);
        let end = all.partition_point(|mark| mark.seq <= last);
        all.get(begin..end).unwrap_or(&[])
    }

    /// Returns the last stop of a thread at or before `seq`.
    pub(crate) fn last_pause(&self, tid: u32, seq: u64) -> Option<u64> {
        let pauses = self.pauses.get(&tid)?;
        let end = pauses.partition_point(|pause| *pause <= seq);
        end.checked_sub(1).map(|at| pauses[at])
    }

    /// Returns the last event of a kind and a thread at or before `seq`.
    pub(crate) fn last_of(&self, kind: Kind, tid: u32, seq: u64) -> Option<u64> {
        let until = self.between(kind, 0, seq).iter().rev();
        let mut of_thread = until.filter(|mark| mark.tid == Some(tid));
        of_thread.next().map(|mark| mark.seq)
    }
}

/// Returns whether a gap is about copies of memory: no events are missing there.
fn is_of_copies(others: &Others, head: &Head) -> Result<bool> {
    if head.kind != Kind::Gap || head.tid.is_some() {
        return Ok(false);
    }
    let reason = others.event(head.seq)?.and_then(|event| event.text);
    Ok(reason == Some(GapReason::NotCopied.to_string()))
}

fn kept(others: &Others, pages: std::ops::Range<usize>) -> Result<Vec<Head>, Error> {
    let mut found = Vec::new();
    for page in pages {
        let heads = others.read_heads(page)?;
        found.extend(heads.into_iter().filter(|head| KEPT.contains(&head.kind)));
    }
    Ok(found)
}

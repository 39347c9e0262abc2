//! What is there to run again: the entries of a log, and what they say without being run.

use std::path::Path;

use libc::user_regs_struct;
use rustc_hash::FxHashSet;

use super::Replay;
use super::shared::Plan;
use crate::error::{Error, Result};
use crate::log::{Bytes, Context, Entries, Entry, MappedFile, Reader, Space, Span};

/// Bytes of a stack that grows, at most (the usual limit of setrlimit(2)).
const STACK: u64 = 8 << 20;

/// A recording, but for how the program stood at its start.
pub(super) struct Recorded {
    pub(super) entries: Entries,
    command: Vec<String>,
    /// The thread that runs first.
    pub(super) first: i32,
    /// The files that were mapped at the start.
    files: Vec<MappedFile>,
    /// All that is or was mapped by the program at any time.
    pub(super) taken: Vec<Span>,
    /// Where the program may write to code that it can execute, without a system call: at any time. In order, and apart.
    pub(super) own_code: Vec<Span>,
    /// From where on it shared memory with other processes, if it did.
    pub(super) shares: Option<u64>,
    /// Which thread runs from which position on.
    schedule: Vec<(u64, i32)>,
}

/// How it stood.
pub(super) struct Start {
    pub(super) context: Context,
    pub(super) spans: Vec<Span>,
    pub(super) memory: Vec<Bytes>,
    /// What will be mapped in several places at once.
    pub(super) plan: Plan,
}

impl Recorded {
    /// Reads the recording in a folder.
    pub(super) fn read(folder: &Path) -> Result<(Recorded, Start)> {
        let mut reader = Reader::open(folder)?;
        let Some(Entry::Start {
            tid,
            command,
            context,
            spans,
            memory,
            files,
        }) = reader.next()?
        else {
            return Err(Error::Damaged(String::from(
                "it does not begin with a start",
            )));
        };
        let spans = with_stack(spans, user_regs_struct::from(&context.registers).rsp);
        let mut seen = Seen {
            own_code: spans
                .iter()
                .filter(|span| is_own_code(span))
                .copied()
                .collect(),
            taken: spans.clone(),
            schedule: vec![(0, tid)],
            ..Seen::default()
        };
        let entries = Entries::read(&mut reader, &mut |index, entry: &Entry| {
            seen.see(index, entry);
        })?;
        let recorded = Recorded {
            entries,
            command,
            first: tid,
            files,
            taken: seen.taken,
            own_code: merged(seen.own_code),
            shares: seen.sharing.since,
            schedule: seen.schedule,
        };
        let start = Start {
            context,
            spans,
            memory,
            plan: seen.plan,
        };
        Ok((recorded, start))
    }

    /// How many instructions are recorded.
    pub(super) fn end(&self) -> u64 {
        self.entries.end()
    }

    /// Whether the program may ever write to code between these addresses without a system call.
    pub(super) fn has_own_code(&self, start: u64, end: u64) -> bool {
        let after = self.own_code.partition_point(|span| span.end <= start);
        let next = self.own_code.get(after);
        next.is_some_and(|span| span.start < end)
    }

    /// Whether the program never has memory at an address, of some length.
    pub(super) fn free(&self) -> impl Fn(u64, u64) -> bool {
        |at, length| {
            let mut taken = self.taken.iter();
            taken.all(|span| span.end <= at || at + length <= span.start)
        }
    }
}

impl Replay {
    /// The program and its arguments.
    pub fn command(&self) -> &[String] {
        &self.recorded.command
    }

    /// The entries between two moments, as text.
    #[doc(hidden)]
    pub fn entries(&self, from: u64, to: u64) -> Vec<String> {
        let entries = self.recorded.entries.iter();
        let entries = entries.filter(|entry| (from..=to).contains(&entry.at()));
        entries
            .map(|entry| format!("{entry:x?}").chars().take(420).collect())
            .collect()
    }

    /// How many are recorded.
    pub fn end(&self) -> u64 {
        self.recorded.end()
    }

    /// The files that the program had in its memory, each with the position from which on it was there.
    pub fn files(&self) -> impl Iterator<Item = (u64, MappedFile)> {
        let mapped = self.recorded.entries.iter().flat_map(|entry| match entry {
            Entry::SystemCall {
                at,
                file: Some(file),
                ..
            } => vec![(at + 1, file)],
            Entry::Resumed { at, files, .. } => {
                files.into_iter().map(|file| (at + 1, file)).collect()
            }
            _ => Vec::new(),
        });
        let first = self.recorded.files.iter().cloned();
        first.map(|file| (0, file)).chain(mapped)
    }

    /// Which thread runs from which position on.
    pub fn schedule(&self) -> Vec<(u64, i32)> {
        self.recorded.schedule.clone()
    }
}

/// The stack as large as it can grow.
fn with_stack(mut spans: Vec<Span>, stack: u64) -> Vec<Span> {
    let Some(index) = spans
        .iter()
        .position(|span| (span.start..span.end).contains(&stack))
    else {
        return spans;
    };
    let before = spans[..index].last().map_or(0, |span| span.end);
    let span = &mut spans[index];
    span.start = span.end.saturating_sub(STACK).max(before).min(span.start);
    spans
}

/// What entries say together.
#[derive(Default)]
struct Seen {
    taken: Vec<Span>,
    own_code: Vec<Span>,
    schedule: Vec<(u64, i32)>,
    sharing: Sharing,
    plan: Plan,
}

impl Seen {
    fn see(&mut self, index: usize, entry: &Entry) {
        self.plan.see(index, entry);
        self.sharing.see(entry);
        match entry {
            Entry::SystemCall {
                space,
                shared,
                emptied,
                ..
            } => {
                if let Some(space) = space {
                    self.mapped(space, shared.is_some());
                }
                // A call that has failed may have done a part of it.
                let parts = emptied.iter().filter_map(place);
                self.own_code.extend(parts.filter(is_own_code));
            }
            // It is not known what of its memory was shared then.
            Entry::Before { .. } => self.own_code.extend(&self.taken),
            Entry::Switch { at, tid, .. } => self.schedule.push((*at, *tid)),
            Entry::Resumed {
                at,
                running,
                spaces,
                ..
            } => {
                for space in spaces {
                    self.mapped(space, true);
                }
                self.schedule.push((at + 1, *running));
            }
            _ => {}
        }
    }
}

impl Seen {
    /// Memory that is shared may be written to elsewhere, whatever its protection is at first. Of memory that is moved the log does not
    /// have the protection.
    fn mapped(&mut self, space: &Space, may_be_shared: bool) {
        let span = place(space);
        let is_unknown = may_be_shared || matches!(space, Space::Move { .. });
        let own = span.filter(|span| is_unknown || is_own_code(span));
        self.own_code.extend(own);
        self.taken.extend(span);
    }
}

/// The same memory, each part once, in order.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|span| span.start);
    spans.dedup_by(|next, span| {
        let meets = next.start <= span.end;
        if meets {
            span.end = span.end.max(next.end);
        }
        meets
    });
    spans
}

/// Whether memory can be written and executed.
fn is_own_code(span: &Span) -> bool {
    let both = (libc::PROT_WRITE | libc::PROT_EXEC) as u32;
    span.protection & both == both
}

/// Where there is memory of the program from then on.
fn place(space: &Space) -> Option<Span> {
    match space {
        Space::Map(span) | Space::Protect(span) | Space::Move { to: span, .. } => Some(*span),
        Space::Unmap(_) | Space::Discard(_) => None,
    }
}

/// When the program made a process while it had memory that it shares with it.
#[derive(Default)]
struct Sharing {
    is_shared: bool,
    threads: FxHashSet<i64>,
    since: Option<u64>,
}

impl Sharing {
    fn see(&mut self, entry: &Entry) {
        match entry {
            Entry::Thread { tid, .. } => {
                self.threads.insert(i64::from(*tid));
            }
            Entry::SystemCall {
                at,
                number,
                result,
                space,
                shared,
                ..
            } => {
                let can_write = |span: &Span| span.protection & libc::PROT_WRITE as u32 != 0;
                self.is_shared |=
                    matches!((space, shared), (Some(Space::Map(span)), Some(_)) if can_write(span));
                let makes = matches!(
                    i64::try_from(*number).unwrap_or(-1),
                    libc::SYS_fork | libc::SYS_clone | libc::SYS_clone3
                );
                if makes && self.is_shared && *result > 0 && !self.threads.contains(result) {
                    self.since.get_or_insert(*at);
                }
            }
            _ => {}
        }
    }
}

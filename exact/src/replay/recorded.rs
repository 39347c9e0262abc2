//! What is there to run again: the entries of a log, and what they say without being run.

use std::path::Path;
use std::sync::Arc;

use libc::user_regs_struct;
use rustc_hash::FxHashSet;

use super::Replay;
use crate::error::{Error, Result};
use crate::log::{Bytes, Context, Entry, MappedFile, Reader, Space, Span};

/// Bytes of a stack that grows, at most (the usual limit of setrlimit(2)).
const STACK: u64 = 8 << 20;

/// A recording, but for how the program stood at its start.
pub(super) struct Recorded {
    pub(super) entries: Vec<Arc<Entry>>,
    command: Vec<String>,
    /// The thread that runs first.
    pub(super) first: i32,
    /// The files that were mapped at the start.
    files: Vec<MappedFile>,
    /// All that is or was mapped by the program at any time.
    pub(super) taken: Vec<Span>,
    /// From where on it shared memory with other processes, if it did.
    pub(super) shares: Option<u64>,
}

/// How it stood.
pub(super) struct Start {
    pub(super) context: Context,
    pub(super) spans: Vec<Span>,
    pub(super) memory: Vec<Bytes>,
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
        let mut entries = Vec::new();
        while let Some(entry) = reader.next()? {
            entries.push(Arc::new(entry));
        }
        let spans = with_stack(spans, user_regs_struct::from(&context.registers).rsp);
        let recorded = Recorded {
            taken: taken(&spans, &entries),
            shares: shares(&entries),
            entries,
            command,
            first: tid,
            files,
        };
        let start = Start {
            context,
            spans,
            memory,
        };
        Ok((recorded, start))
    }

    /// How many instructions are recorded.
    pub(super) fn end(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.at())
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
        let entries = self
            .recorded
            .entries
            .iter()
            .filter(|entry| (from..=to).contains(&entry.at()));
        entries
            .map(|entry| format!("{entry:x?}").chars().take(420).collect())
            .collect()
    }

    /// How many are recorded.
    pub fn end(&self) -> u64 {
        self.recorded.end()
    }

    /// The files that the program had in its memory, each with the position from which on it was there.
    pub fn files(&self) -> impl Iterator<Item = (u64, &MappedFile)> {
        let mapped = self
            .recorded
            .entries
            .iter()
            .flat_map(|entry| match &**entry {
                Entry::SystemCall {
                    at,
                    file: Some(file),
                    ..
                } => vec![(*at + 1, file)],
                Entry::Resumed { at, files, .. } => {
                    files.iter().map(|file| (*at + 1, file)).collect()
                }
                _ => Vec::new(),
            });
        self.recorded
            .files
            .iter()
            .map(|file| (0, file))
            .chain(mapped)
    }

    /// What the program unmapped, with the position from which on it was gone: start, and the address after the end.
    pub fn unmapped(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.recorded
            .entries
            .iter()
            .flat_map(|entry| match &**entry {
                Entry::SystemCall {
                    at,
                    space: Some(Space::Unmap(span)),
                    ..
                } => vec![(*at + 1, span.start, span.end)],
                Entry::Resumed { at, spaces, .. } => {
                    let gone = spaces.iter().filter_map(|space| match space {
                        Space::Unmap(span) => Some((*at + 1, span.start, span.end)),
                        _ => None,
                    });
                    gone.collect()
                }
                _ => Vec::new(),
            })
    }

    /// How the program ended: exit code and signal; `None`, and why, where recording stopped before.
    pub fn ended(&self) -> (Option<i32>, Option<i32>, Option<&str>) {
        let lost = self.recorded.entries.iter().rev().take(2);
        let mut lost = lost.filter_map(|entry| match &**entry {
            Entry::Lost { why, .. } => Some(why.as_str()),
            _ => None,
        });
        if let Some(why) = lost.next_back() {
            return (None, None, Some(why));
        }
        match self.recorded.entries.last().map(|entry| &**entry) {
            Some(Entry::Exit {
                signal: 0, code, ..
            }) => (Some(*code), None, None),
            Some(Entry::Exit { signal, .. }) => (None, Some(*signal), None),
            Some(Entry::Executed { .. }) => (None, None, Some("it became another program")),
            _ => (None, None, Some("the recorder was killed")),
        }
    }

    /// Which thread runs from which position on.
    pub fn schedule(&self) -> Vec<(u64, i32)> {
        let switches = self
            .recorded
            .entries
            .iter()
            .filter_map(|entry| match &**entry {
                Entry::Switch { at, tid, .. } => Some((*at, *tid)),
                Entry::Resumed { at, running, .. } => Some((*at + 1, *running)),
                _ => None,
            });
        std::iter::once((0, self.recorded.first))
            .chain(switches)
            .collect()
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

fn taken(spans: &[Span], entries: &[Arc<Entry>]) -> Vec<Span> {
    let place = |space: &Space| match space {
        Space::Map(span) | Space::Protect(span) | Space::Move { to: span, .. } => Some(*span),
        Space::Unmap(_) | Space::Discard(_) => None,
    };
    let mapped = entries.iter().flat_map(|entry| match &**entry {
        Entry::SystemCall {
            space: Some(space), ..
        } => place(space).into_iter().collect(),
        Entry::Resumed { spaces, .. } => spaces.iter().filter_map(place).collect(),
        _ => Vec::new(),
    });
    spans.iter().copied().chain(mapped).collect()
}

/// When the program made a process while it had memory that it shares with it.
fn shares(entries: &[Arc<Entry>]) -> Option<u64> {
    let mut is_shared = false;
    let mut threads = FxHashSet::default();
    entries.iter().find_map(|entry| match &**entry {
        Entry::Thread { tid, .. } => {
            threads.insert(i64::from(*tid));
            None
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
            is_shared |=
                matches!((space, shared), (Some(Space::Map(span)), Some(_)) if can_write(span));
            let makes = matches!(
                i64::try_from(*number).unwrap_or(-1),
                libc::SYS_fork | libc::SYS_clone | libc::SYS_clone3
            );
            (makes && is_shared && *result > 0 && !threads.contains(result)).then_some(*at)
        }
        _ => None,
    })
}

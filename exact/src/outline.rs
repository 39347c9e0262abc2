//! A recording at a glance, without running it again.

use std::path::Path;

use crate::error::{Error, Result};
use crate::log::{Entry, Fatal, MappedFile, Reader, Space};

/// A file in the program's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// From this position on it was there.
    pub from: u64,
    /// From this position on it, or a part of it, was not.
    pub until: Option<u64>,
    pub file: MappedFile,
}

/// A thread of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSpan {
    pub tid: i32,
    /// The position at which it was made.
    pub from: u64,
    /// The position at which it ended, if it did so before the program.
    pub until: Option<u64>,
}

/// A stretch in which the program ran unrecorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last position before it.
    pub at: u64,
    /// How long it was; `None`: until the program ended.
    pub nanoseconds: Option<u64>,
}

/// A program that another one became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Became {
    /// The thread that executed it.
    pub tid: i32,
    /// Its file.
    pub program: String,
    pub arguments: Vec<String>,
}

/// What a recording is of.
#[derive(Debug, Clone, Default)]
pub struct Outline {
    /// The program and its arguments.
    pub command: Vec<String>,
    pub pid: i32,
    pub mappings: Vec<Mapping>,
    pub threads: Vec<ThreadSpan>,
    /// Instructions recorded.
    pub end: u64,
    /// Exit code, if the program exited.
    pub code: Option<i32>,
    /// Signal, if one ended it.
    pub signal: Option<i32>,
    pub fatal: Option<Fatal>,
    /// Why recording stopped before the program ended.
    pub lost: Option<String>,
    /// The log does not say how it ended.
    pub is_cut: bool,
    /// The program that it became at the end.
    pub executed: Option<Became>,
    /// If the program had run unrecorded before: for so long, in nanoseconds, and the file that it executes.
    pub before: Option<(u64, String)>,
    /// Where it was not recorded.
    pub gaps: Vec<Gap>,
}

/// Reads what the recording in a folder is of.
pub fn outline(folder: &Path) -> Result<Outline> {
    let mut reader = Reader::open(folder)?;
    let mut outline = Outline {
        is_cut: true,
        ..Outline::default()
    };
    while let Some(entry) = reader.next()? {
        outline.end = outline.end.max(entry.at());
        outline.add(entry);
    }
    if outline.is_cut {
        let why = "the recorder was killed, or the disk was full: the log has no end";
        outline.lost.get_or_insert_with(|| String::from(why));
    }
    if outline.pid == 0 {
        return Err(Error::Damaged(String::from(
            "it does not begin with a start",
        )));
    }
    Ok(outline)
}

impl Outline {
    fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Start {
                tid,
                command,
                files,
                ..
            } => {
                self.pid = tid;
                self.command = command;
                self.thread(tid, 0);
                files.into_iter().for_each(|file| self.map(0, file));
            }
            Entry::SystemCall {
                at, space, file, ..
            } => {
                if let Some(Space::Map(span) | Space::Unmap(span)) = space {
                    self.unmap(at + 1, span.start, span.end);
                }
                if let Some(file) = file {
                    self.map(at + 1, file);
                }
            }
            Entry::Thread { at, tid, .. } => self.thread(tid, at),
            Entry::End { at, tid, .. } => {
                let thread = self
                    .threads
                    .iter_mut()
                    .rev()
                    .find(|thread| thread.tid == tid);
                if let Some(thread) = thread {
                    thread.until = Some(at);
                }
            }
            Entry::Exit {
                code,
                signal,
                fatal,
                ..
            } => {
                self.is_cut = false;
                self.code = (signal == 0).then_some(code);
                self.signal = (signal != 0).then_some(signal);
                self.fatal = fatal;
            }
            Entry::Before {
                nanoseconds,
                program,
            } => self.before = Some((nanoseconds, program)),
            Entry::Gap { at } => self.gaps.push(Gap {
                at,
                nanoseconds: None,
            }),
            Entry::Resumed { .. } => self.resumed(entry),
            Entry::Lost { why, .. } => {
                self.is_cut = false;
                self.lost = Some(why);
            }
            Entry::Executed {
                tid,
                program,
                arguments,
                ..
            } => {
                self.is_cut = false;
                self.executed = Some(Became {
                    tid,
                    program,
                    arguments,
                });
            }
            Entry::Chance { .. }
            | Entry::Check { .. }
            | Entry::Code { .. }
            | Entry::Repeated { .. }
            | Entry::Signal { .. }
            | Entry::Return { .. }
            | Entry::Switch { .. } => {}
        }
    }

    fn resumed(&mut self, entry: Entry) {
        let Entry::Resumed {
            at,
            nanoseconds,
            threads,
            spaces,
            files,
            ..
        } = entry
        else {
            return;
        };
        if let Some(gap) = self.gaps.last_mut() {
            gap.nanoseconds = Some(nanoseconds);
        }
        let is_there = |tid| threads.iter().any(|(other, _)| *other == tid);
        for thread in &mut self.threads {
            if thread.until.is_none() && !is_there(thread.tid) {
                thread.until = Some(at);
            }
        }
        for (tid, _) in &threads {
            let known = |thread: &ThreadSpan| thread.tid == *tid && thread.until.is_none();
            if !self.threads.iter().any(known) {
                self.thread(*tid, at + 1);
            }
        }
        for space in spaces {
            if let Space::Map(span) | Space::Unmap(span) = space {
                self.unmap(at + 1, span.start, span.end);
            }
        }
        files.into_iter().for_each(|file| self.map(at + 1, file));
    }

    fn thread(&mut self, tid: i32, from: u64) {
        self.threads.push(ThreadSpan {
            tid,
            from,
            until: None,
        });
    }

    fn map(&mut self, from: u64, file: MappedFile) {
        self.mappings.push(Mapping {
            from,
            until: None,
            file,
        });
    }

    fn unmap(&mut self, at: u64, start: u64, end: u64) {
        let gone = self.mappings.iter_mut().filter(|mapping| {
            mapping.until.is_none() && mapping.file.start < end && start < mapping.file.end
        });
        // A library is mapped as a whole, and then its segments over that: the whole is still there as a file.
        for mapping in gone.filter(|mapping| start <= mapping.file.start && mapping.file.end <= end)
        {
            mapping.until = Some(at);
        }
    }
}

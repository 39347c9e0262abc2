//! Running a recording again: a process gets the program's memory and registers, runs translated code that stops at an exact
//! instruction, and is told what the kernel and the processor had answered.

mod apply;
mod asked;
mod chance;
mod checkpoint;
mod notes;
mod oversee;
mod pages;
#[cfg(test)]
mod planted;
mod refused;
mod run;
mod search;
mod seek;
mod step;
mod stub;
mod trace;
mod verify;
mod writes;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use libc::user_regs_struct;
use rustc_hash::FxHashMap;

use crate::error::{Context as _, Error, Result};
use crate::log::{Bytes, Context, Entry, MappedFile, Reader, Registers, Space, Span};
use crate::ptrace;
use crate::tracee::{Sharing, Tracee, own_extended, own_registers};
use crate::translate::{Mode, Translator, layout};
use checkpoint::Checkpoint;
pub use oversee::Overseer;
pub use seek::{Access, Batch, Executed, Instruction, Seek};
pub use trace::{Region, Traced, trace};
pub use verify::{Contradiction, Verdict, verify};

/// Bytes of a stack that grows, at most (the usual limit of setrlimit(2)).
const STACK: u64 = 8 << 20;

/// Everything of a moment but the memory.
#[derive(Debug, Clone)]
struct Moment {
    /// Instructions executed.
    count: u64,
    /// The first entry that has not been applied.
    next: usize,
    /// The thread that runs.
    running: i32,
    /// All others, where they stopped.
    others: FxHashMap<i32, Context>,
}

/// A recording that is run again. It must be used by the thread that opened it: only that one may trace the process.
pub struct Replay {
    entries: Vec<Arc<Entry>>,
    command: Vec<String>,
    /// The thread that runs first.
    first: i32,
    files: Vec<MappedFile>,
    process: Tracee,
    translator: Translator,
    now: Moment,
    /// What the counter of the process counts up to.
    limit: u64,
    /// All that is or was mapped by the program at any time.
    taken: Vec<Span>,
    checkpoints: Vec<Checkpoint>,
    /// Instructions between two of them.
    every: u64,
    /// Bytes that are watched at the moment.
    watch: Option<search::Watch>,
    /// Calls that are traced.
    calls: Option<trace::Calls>,
    /// What is looked for at the moment, and was found.
    found: Option<seek::Found>,
    /// How often the program's code has changed, up to now; translations are those of `translated`.
    translated: usize,
    noting: notes::Noting,
    /// What is compared, while the recording is verified.
    verifying: Option<verify::Verifying>,
    /// Who is asked whether to go on.
    overseer: Option<Overseer>,
}

impl Replay {
    /// Opens the recording in a folder, at its start.
    pub fn open(folder: &Path) -> Result<Replay> {
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
        let taken = taken(&spans, &entries);
        let pid = stub::start()?;
        let mut process = Tracee::new(pid, Sharing::Code)?;
        empty(&mut process)?;
        // Of small pages the kernel tells whether they are shared.
        let args = [libc::PR_SET_THP_DISABLE as u64, 1, 0, 0, 0, 0];
        process.call(pid, libc::SYS_prctl, args)?;
        let low = process.map_low(pid, &free_of(&taken))?;
        let noting = notes::Noting::new(process.map_low(pid, &free_of(&taken))?);
        let mut replay = Replay {
            entries,
            command,
            first: tid,
            files,
            process,
            translator: Translator::new(Mode::Replay, low),
            now: Moment {
                count: 0,
                next: 0,
                running: tid,
                others: FxHashMap::default(),
            },
            limit: 0,
            taken,
            checkpoints: Vec::new(),
            every: checkpoint::EVERY,
            watch: None,
            calls: None,
            found: None,
            translated: 0,
            noting,
            verifying: None,
            overseer: None,
        };
        for span in spans {
            replay.space(Space::Map(span))?;
        }
        replay.make_caches()?;
        replay.make_noting()?;
        replay.write(&memory)?;
        replay.load(&context)?;
        replay.keep()?;
        Ok(replay)
    }

    /// The program and its arguments.
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// How many instructions have been executed.
    pub fn position(&self) -> u64 {
        self.now.count
    }

    /// The entries between two moments, as text.
    #[doc(hidden)]
    pub fn entries(&self, from: u64, to: u64) -> Vec<String> {
        let entries = self
            .entries
            .iter()
            .filter(|entry| (from..=to).contains(&entry.at()));
        entries
            .map(|entry| format!("{entry:x?}").chars().take(420).collect())
            .collect()
    }

    /// How many are recorded.
    pub fn end(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.at())
    }

    /// The files that the program had in its memory, each with the position from which on it was there.
    pub fn files(&self) -> impl Iterator<Item = (u64, &MappedFile)> {
        let mapped = self.entries.iter().flat_map(|entry| match &**entry {
            Entry::SystemCall {
                at,
                file: Some(file),
                ..
            } => vec![(*at + 1, file)],
            Entry::Resumed { at, files, .. } => files.iter().map(|file| (*at + 1, file)).collect(),
            _ => Vec::new(),
        });
        self.files.iter().map(|file| (0, file)).chain(mapped)
    }

    /// What the program unmapped, with the position from which on it was gone: start, and the address after the end.
    pub fn unmapped(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.entries.iter().flat_map(|entry| match &**entry {
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
        let lost = self.entries.iter().rev().take(2);
        let mut lost = lost.filter_map(|entry| match &**entry {
            Entry::Lost { why, .. } => Some(why.as_str()),
            _ => None,
        });
        if let Some(why) = lost.next_back() {
            return (None, None, Some(why));
        }
        match self.entries.last().map(|entry| &**entry) {
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
        let switches = self.entries.iter().filter_map(|entry| match &**entry {
            Entry::Switch { at, tid, .. } => Some((*at, *tid)),
            Entry::Resumed { at, running, .. } => Some((*at + 1, *running)),
            _ => None,
        });
        std::iter::once((0, self.first)).chain(switches).collect()
    }

    /// The threads that are there now, but the one that runs.
    pub fn others(&self) -> Vec<i32> {
        let mut tids: Vec<i32> = self.now.others.keys().copied().collect();
        tids.sort_unstable();
        tids
    }

    /// The registers of a thread that does not run.
    pub fn registers_of(&self, tid: i32) -> Option<user_regs_struct> {
        self.now
            .others
            .get(&tid)
            .map(|context| user_regs_struct::from(&context.registers))
    }

    /// The x87, SSE and later registers of a thread that does not run.
    pub fn extended_of(&self, tid: i32) -> Option<&[u8]> {
        self.now
            .others
            .get(&tid)
            .map(|context| context.extended.as_slice())
    }

    /// The thread that executes the next instruction.
    pub fn thread(&self) -> i32 {
        self.now.running
    }

    /// The registers before the next instruction.
    pub fn registers(&self) -> Result<user_regs_struct> {
        let registers = ptrace::registers(self.process.pid).context("read registers")?;
        own_registers(&self.process, &self.translator, &registers, self.block())
    }

    /// The x87, SSE and later registers, in XSAVE's layout.
    pub fn extended(&self) -> Result<Vec<u8>> {
        let extended = ptrace::extended_state(self.process.pid).context("read registers")?;
        Ok(own_extended(&self.translator, extended))
    }

    /// Fills as much of `into` as there is memory from `address` on; returns how many bytes that are.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.process.read(address, into)
    }

    fn block(&self) -> u64 {
        layout::block(self.translator.low(), 0)
    }

    fn write(&self, memory: &[Bytes]) -> Result<()> {
        memory
            .iter()
            .try_for_each(|bytes| self.process.write(bytes.at, &bytes.bytes))
    }

    /// The thread goes on with these registers.
    fn load(&mut self, context: &Context) -> Result<()> {
        ptrace::set_extended_state(self.process.pid, &context.extended).context("set registers")?;
        self.enter(&user_regs_struct::from(&context.registers))
    }

    /// What the thread has in its registers.
    fn save(&self) -> Result<Context> {
        Ok(Context {
            registers: Registers::from(&self.registers()?),
            extended: self.extended()?,
        })
    }

    /// Maps caches near all code that there will be, before there are copies of the process: all of them share the caches.
    fn make_caches(&mut self) -> Result<()> {
        let pid = self.process.pid;
        for index in 0..self.taken.len() {
            let span = self.taken[index];
            if span.protection & libc::PROT_EXEC as u32 != 0
                && self.translator.needs_cache(span.start)
            {
                let free = free_of(&self.taken);
                self.process
                    .add_cache(pid, &mut self.translator, span.start, &free)?;
            }
        }
        Ok(())
    }

    /// The translation of the code at `pc`. When the caches are full, all of it is made anew.
    fn translated_at(&mut self, pc: u64) -> Result<Option<u64>> {
        if self.translator.is_full() {
            self.translator.reset();
        }
        let body = self.translator.entry(pc, &self.process);
        self.process.flush(&mut self.translator)?;
        Ok(body)
    }

    /// Enters translated code with these registers of the program.
    fn enter(&mut self, own: &user_regs_struct) -> Result<()> {
        let mut registers = *own;
        let block = self.block();
        registers.gs_base = block;
        registers.orig_rax = u64::MAX;
        let Some(body) = self.translated_at(own.rip)? else {
            // It stands where it has a fault, and goes no further.
            return ptrace::set_registers(self.process.pid, &registers).context("set registers");
        };
        self.process
            .set_word(block + u64::from(layout::SLOT_R15), own.r15)?;
        self.note_entry(own)?;
        registers.r15 = self.now.count.wrapping_sub(self.limit);
        registers.rip = body;
        ptrace::set_registers(self.process.pid, &registers).context("set registers")
    }

    fn diverged(&self, what: &str) -> Error {
        Error::Diverged {
            at: self.now.count,
            what: what.to_owned(),
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        let checkpoints = self
            .checkpoints
            .drain(..)
            .map(|checkpoint| checkpoint.process.pid);
        for pid in checkpoints.chain([self.process.pid]) {
            // SAFETY: processes of ours, which nobody has waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            while let Ok(Some((_, status))) = ptrace::wait(pid, false) {
                if !libc::WIFSTOPPED(status) {
                    break;
                }
            }
        }
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

fn free_of(taken: &[Span]) -> impl Fn(u64, u64) -> bool + '_ {
    |at, length| {
        taken
            .iter()
            .all(|span| span.end <= at || at + length <= span.start)
    }
}

/// Unmaps all that the stub got from the kernel, but its own page.
fn empty(process: &mut Tracee) -> Result<()> {
    let path = format!("/proc/{}/maps", process.pid);
    let text = fs::read_to_string(path).context("read the mappings of a process")?;
    for line in text.lines() {
        let range = line
            .split_whitespace()
            .next()
            .and_then(|range| range.split_once('-'));
        let Some((Ok(start), Ok(end))) = range
            .map(|(start, end)| (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)))
        else {
            continue;
        };
        if start != stub::AT && !line.ends_with("[vsyscall]") {
            let pid = process.pid;
            process.call(pid, libc::SYS_munmap, [start, end - start, 0, 0, 0, 0])?;
        }
    }
    Ok(())
}

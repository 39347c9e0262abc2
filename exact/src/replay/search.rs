//! Searching in time: who wrote these bytes, and when did the program come by these addresses.

use std::ops::Range;

use libc::user_regs_struct;

use super::Replay;
use super::apply::RESUME;
use super::cause::Cause;
use crate::error::{Context as _, Error, Result};
use crate::log::{Space, Span};
use crate::operands::goes_down;
use crate::ptrace;

/// Debug registers of the processor, each for up to eight bytes.
pub(super) const REGISTERS: usize = 4;
/// The debug register that tells which of the others was hit.
pub(super) const STATUS: usize = 6;
/// The debug register that tells what they watch.
pub(super) const CONTROL: usize = 7;

/// Of so many writes in a stretch, only the last ones are looked for.
const MANY: usize = 1 << 11;
/// Instructions that are looked at first in that case.
const SHORT: u64 = 1 << 13;

/// Bytes that are watched while the process runs, and the instructions that wrote to them.
#[derive(Debug, Clone, Default)]
pub(super) struct Watch {
    pub(super) address: u64,
    pub(super) length: u64,
    /// Also what the kernel maps there, moves or drops.
    mappings: bool,
    /// With so many writes the process stops.
    most: usize,
    pub(super) hits: Vec<u64>,
    /// Those of which the processor does not tell whether they wrote to them.
    pub(super) unsure: Vec<u64>,
}

impl Watch {
    pub(super) fn new((address, length): (u64, u64), mappings: bool, most: usize) -> Watch {
        Watch {
            address,
            length,
            mappings,
            most,
            hits: Vec::new(),
            unsure: Vec::new(),
        }
    }

    /// The kernel has written here with instruction number `at`.
    pub(super) fn kernel(&mut self, at: u64, start: u64, length: u64) {
        if start < self.address + self.length && self.address < start + length {
            self.hits.push(at);
        }
    }

    /// Instruction number `at` is a system call that has changed what is mapped.
    pub(super) fn mapped(&mut self, at: u64, space: Space) {
        let spans = match space {
            _ if !self.mappings => return,
            Space::Map(span) | Space::Unmap(span) | Space::Discard(span) => [span, span],
            Space::Move { from, to } => [from, to],
            Space::Protect(_) => return,
        };
        let end = self.address + self.length;
        let meets = |span: &Span| span.start < end && self.address < span.end;
        if spans.iter().any(meets) && self.hits.last() != Some(&at) {
            self.hits.push(at);
        }
    }
}

/// Aligned pieces of one, two, four or eight bytes.
pub(super) fn pieces(address: u64, length: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let (mut at, end) = (address, address.saturating_add(length));
    while at < end {
        let size = [8, 4, 2, 1]
            .into_iter()
            .find(|size| at.is_multiple_of(*size) && end - at >= *size);
        let size = size.unwrap_or(1);
        found.push((at, size));
        at += size;
    }
    found
}

impl Replay {
    /// The number of the last instruction before `before` that wrote to any of these bytes: [`Self::goto`] with it shows the moment
    /// before the write. `None`: they are as they were at the start. `length` is 1 to 32, less if `address` is not aligned.
    /// The process is at `before` afterwards.
    pub fn last_write(&mut self, address: u64, length: u64, before: u64) -> Result<Option<u64>> {
        self.last_of(Watch::new((address, length), false, MANY), 0..before)
    }

    /// The same among the instructions with these numbers, also of system calls that mapped memory there, moved or dropped it.
    pub fn last_change(
        &mut self,
        address: u64,
        length: u64,
        positions: Range<u64>,
    ) -> Result<Option<u64>> {
        let begin = positions.start;
        let found = self.last_of(Watch::new((address, length), true, MANY), positions)?;
        Ok(found.filter(|found| *found >= begin))
    }

    /// May also find one a little before these positions.
    fn last_of(&mut self, watch: Watch, positions: Range<u64>) -> Result<Option<u64>> {
        let before = positions.end;
        let bytes = (watch.address, watch.length);
        if pieces(bytes.0, bytes.1).len() > REGISTERS {
            return Err(Error::TooLong { length: bytes.1 });
        }
        self.goto(before)?;
        let found = self.search_back(positions, Some(bytes), &mut |replay, end| {
            replay.last_until(&watch, end)
        })?;
        self.goto(before)?;
        Ok(found)
    }

    /// The last instruction from the present on, before position `end`, that writes to any of these bytes. A stop for each of
    /// millions of writes would take minutes: of many, those shortly before `end` are looked for first.
    fn last_until(&mut self, watch: &Watch, mut end: u64) -> Result<Option<u64>> {
        let start = self.position();
        let hits = self.watched(watch, end)?;
        let Some(mut known) = hits.last().copied() else {
            return Ok(None);
        };
        if hits.len() < MANY {
            return Ok(Some(known));
        }
        let mut window = SHORT;
        loop {
            let from = end.saturating_sub(window).max(known + 1);
            // Where the search was left, the process may be within a translated instruction.
            self.return_to(start)?;
            self.goto(from)?;
            let hits = self.watched(watch, end)?;
            match hits.last() {
                Some(last) if hits.len() < MANY => return Ok(Some(*last)),
                Some(last) => {
                    known = *last;
                    window = SHORT.max((end - known) / 2);
                }
                None if from == known + 1 => return Ok(Some(known)),
                None => {
                    end = from;
                    window = window.saturating_mul(16);
                }
            }
        }
    }

    /// The writes to some bytes from the present on, up to position `end` or until there are many.
    fn watched(&mut self, watch: &Watch, end: u64) -> Result<Vec<u64>> {
        self.watch = Some(watch.clone());
        self.set_watch()?;
        let ran = self.forward_while(end, &mut |replay| !replay.has_many_writes());
        let watch = self.watch.take().unwrap_or_default();
        self.set_watch()?;
        ran?;
        self.hits_of(watch)
    }

    /// Whether the process has written to the watched bytes as often as is wanted.
    pub(super) fn has_many_writes(&self) -> bool {
        let full = |watch: &Watch| watch.hits.len() >= watch.most;
        self.watch.as_ref().is_some_and(full)
    }

    /// The first instruction from the present on, before position `end`, that writes to any of these bytes, or maps memory there,
    /// moves or drops it. The process is after it, or at `end`.
    pub fn next_write(&mut self, address: u64, length: u64, end: u64) -> Result<Option<u64>> {
        let mut step = 1 << 16;
        while self.position() < end {
            let goal = end.min(self.position() + step);
            let found = self.writes(address, length, goal, 1)?.first().copied();
            if let Some(found) = found {
                self.goto(found + 1)?;
                return Ok(Some(found));
            }
            step = (step * 4).min(1 << 28);
        }
        Ok(None)
    }

    /// The first such instructions: at most `limit`.
    pub fn writes(
        &mut self,
        address: u64,
        length: u64,
        end: u64,
        limit: usize,
    ) -> Result<Vec<u64>> {
        if pieces(address, length).len() > REGISTERS {
            return Err(Error::TooLong { length });
        }
        let start = self.position();
        self.watch = Some(Watch::new((address, length), true, limit.max(1)));
        let ran = self.forward_watching(address, length, end);
        let is_full = self.has_many_writes();
        let watch = self.watch.take().unwrap_or_default();
        self.set_watch()?;
        ran?;
        let here = self.position();
        let is_elsewhere = !watch.unsure.is_empty();
        let mut hits = self.hits_of(watch)?;
        if is_full {
            // It may be within a translated instruction, even one at the start.
            self.return_anew(start)?;
        } else if is_elsewhere {
            self.goto(here)?;
        }
        hits.truncate(limit);
        Ok(hits)
    }

    /// Goes forwards while bytes are watched, over what does not write to their pages.
    fn forward_watching(&mut self, address: u64, length: u64, end: u64) -> Result<()> {
        while self.now.count < end && !self.has_many_writes() {
            match self
                .checkpoints
                .untouched_until(self.now.count, address, length)
            {
                Some(next) if next <= end => self.return_to(next)?,
                _ => {
                    self.set_watch()?;
                    let goal = self.checkpoints.after(self.now.count).min(end);
                    self.forward_while(goal, &mut |replay| !replay.has_many_writes())?;
                }
            }
        }
        // A copy is of the moment before what the kernel writes at its position.
        if self.now.count == end && !self.has_many_writes() {
            self.forward(end)?;
        }
        Ok(())
    }

    /// Runs to the next moment, up to position `end`, at which the program is about to execute an instruction at one of these
    /// addresses and `accept` agrees. The process is there afterwards, or at `end`.
    pub fn next_stop(
        &mut self,
        stops: &[u64],
        end: u64,
        accept: &mut dyn FnMut(&Replay) -> bool,
    ) -> Result<Option<u64>> {
        let start = self.position();
        self.set_stops(stops)?;
        let (mut found, mut last) = (None, None);
        let ran = self.forward_with(end, &mut |replay| {
            let here = replay.position();
            let stop = is_new(replay, &mut last) && here > start && accept(replay);
            if stop {
                found = Some(here);
            }
            stop
        });
        ran.map(|()| found)
    }

    /// The last such moment before the present one. The process is there afterwards, or at the start.
    pub fn previous_stop(
        &mut self,
        stops: &[u64],
        accept: &mut dyn FnMut(&Replay) -> bool,
    ) -> Result<Option<u64>> {
        let before = self.position();
        let found = self.search_back(0..before, None, &mut |replay, end| {
            replay.set_stops(stops)?;
            let (mut last, mut seen) = (None, None);
            let ran = replay.forward_with(end, &mut |replay| {
                let here = replay.position();
                if is_new(replay, &mut seen) && here < end && accept(replay) {
                    last = Some(here);
                }
                false
            });
            ran.map(|()| last)
        })?;
        self.goto(found.unwrap_or(0))?;
        Ok(found)
    }

    /// Asks about one stretch between two copies of the process after the other, the last one first, down to that with the first of
    /// the positions; not about those that are known to have written none of some bytes.
    fn search_back(
        &mut self,
        positions: Range<u64>,
        bytes: Option<(u64, u64)>,
        ask: &mut dyn FnMut(&mut Replay, u64) -> Result<Option<u64>>,
    ) -> Result<Option<u64>> {
        let mut end = positions.end;
        while end > positions.start {
            let start = self.checkpoints.before(end);
            if let Some((address, length)) = bytes
                && self.checkpoints.is_untouched(end, address, length)
            {
                end = start;
                continue;
            }
            self.goto(start)?;
            if let Some(found) = ask(self, end)? {
                return Ok(Some(found));
            }
            end = start;
        }
        Ok(None)
    }

    /// Sets where the process stops. Translations with stops are kept for the next search.
    pub(super) fn set_stops(&mut self, stops: &[u64]) -> Result<()> {
        let own = self.registers()?;
        if self.translator.set_stops(stops) {
            self.process.flush(&mut self.translator)?;
        }
        self.enter(&own)
    }

    /// Tells the processor what to watch (Intel, volume 3, 19.2: debug registers).
    pub(super) fn set_watch(&mut self) -> Result<()> {
        let pid = self.process.pid;
        let mut control = 0;
        ptrace::set_debug_register(pid, CONTROL, 0).context("watch memory")?;
        ptrace::set_debug_register(pid, STATUS, 0).context("watch memory")?;
        if let Some(watch) = &self.watch {
            for (index, (address, size)) in
                pieces(watch.address, watch.length).into_iter().enumerate()
            {
                ptrace::set_debug_register(pid, index, address).context("watch memory")?;
                let length = match size {
                    1 => 0,
                    2 => 1,
                    8 => 2,
                    _ => 3,
                };
                control |= 1 << (index * 2) | 1 << (16 + index * 4) | length << (18 + index * 4);
            }
            ptrace::set_debug_register(pid, CONTROL, control).context("watch memory")?;
        }
        Ok(())
    }

    /// Tells whether a write has stopped the process in the middle of an instruction that repeats, and not behind the one
    /// before. Intel's processors say so by a flag; of AMD's the element tells that was written last.
    fn is_repeating(&self, registers: &user_regs_struct) -> bool {
        if registers.eflags & RESUME != 0 {
            return true;
        }
        let (Some(watch), Some(repeated)) = (&self.watch, self.process.repeated(registers.rip))
        else {
            return false;
        };
        let element = repeated.memory_size().size() as u64;
        let last = match goes_down(registers) {
            true => registers.rdi.wrapping_add(element),
            false => registers.rdi.wrapping_sub(element),
        };
        last < watch.address.saturating_add(watch.length)
            && watch.address < last.saturating_add(element)
    }

    /// Notes the write, if one has stopped the process with SIGTRAP, after a step or on its way. Returns whether it goes on: it has not
    /// come to an instruction that traps.
    pub(super) fn noted_write(&mut self, stepped: bool) -> Result<bool> {
        if stepped && self.watch.is_none() {
            return Ok(true);
        }
        let registers = ptrace::registers(self.process.pid).context("read registers")?;
        match self.cause(registers.rip, stepped)? {
            Cause::Trap => Ok(false),
            Cause::Step | Cause::Late => Ok(true),
            Cause::Write => self.note_write(&registers, true).map(|()| true),
            Cause::Unsure => self.note_write(&registers, false).map(|()| true),
        }
    }

    fn note_write(&mut self, registers: &user_regs_struct, is_sure: bool) -> Result<()> {
        let pid = self.process.pid;
        ptrace::set_debug_register(pid, STATUS, 0).context("set a debug register")?;
        let count = self.counter(registers.r15, registers.rip)?;
        let at = if self.is_repeating(registers) {
            count
        } else {
            count.saturating_sub(1)
        };
        if let Some(watch) = &mut self.watch {
            let known = match is_sure {
                true => &mut watch.hits,
                false => &mut watch.unsure,
            };
            if known.last() != Some(&at) {
                known.push(at);
            }
        }
        Ok(())
    }
}

/// Whether the thread has not been seen here before: it comes to a stop once more if it was stepped there, and then goes on.
fn is_new(replay: &Replay, last: &mut Option<(u64, i32)>) -> bool {
    let here = (replay.position(), replay.thread());
    last.replace(here) != Some(here)
}

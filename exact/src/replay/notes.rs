//! Searching a stretch: it runs in translations of their own, whose code appends to a buffer what it executes, reads and writes.

use std::mem;
use std::ops::Range;

use libc::user_regs_struct;

use super::Replay;
use super::limit::Limit;
use super::seek::{Batch, Found, Seek, Touch};
use super::step::Begun;
use crate::error::{Context as _, Error, Result};
use crate::ptrace;
use crate::translate::notes::{Site, Wanted};
use crate::translate::{Mode, Translator, Trap, layout};

/// Bytes for records; they are read when it is full.
pub(super) const BYTES: u64 = 4 << 20;
pub(super) const PAGE: u64 = 4096;
/// A batch is reported when it has so many items, or a little later.
const BATCH: usize = 1 << 16;

/// What searches need, in the process and here.
pub(super) struct Noting {
    /// The translations that note, while they are not in use; the others, while they are.
    translator: Translator,
    /// Of which code they are.
    translated: usize,
    buffer: u64,
    /// A copy of it.
    bytes: Vec<u8>,
    in_use: bool,
    /// Where the last search was left before its end.
    left_at: Option<u64>,
}

impl Noting {
    pub(super) fn new(low: u64) -> Noting {
        Noting {
            translator: Translator::new(Mode::Replay, low),
            translated: 0,
            buffer: 0,
            bytes: Vec::new(),
            in_use: false,
            left_at: None,
        }
    }
}

/// The block that was entered last. It has been executed up to one of its instructions, and will be to its end, if nothing diverts
/// the program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    site: usize,
    /// The next of its instructions.
    next: usize,
    /// The position of that.
    at: u64,
}

impl Replay {
    /// Maps caches and the buffer, before there are copies of the process.
    pub(super) fn make_noting(&mut self) -> Result<()> {
        self.exchange();
        let made = self.make_caches();
        self.exchange();
        made?;
        let places = (0x10..0x7ff).map(|step: u64| 0x7000_0000_0000 + (step << 24));
        let free = self.recorded.free();
        let flags = (libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE) as u64;
        let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let pid = self.process.pid;
        for at in places.filter(|at| free(*at, BYTES + PAGE)) {
            let mut map = |at, length, protection| {
                let args = [at, length, protection, flags, u64::MAX, 0];
                self.process.call(pid, libc::SYS_mmap, args)
            };
            if map(at, BYTES, both)? as u64 == at && map(at + BYTES, PAGE, 0)? as u64 == at + BYTES
            {
                self.noting.buffer = at;
                return Ok(());
            }
        }
        Err(Error::NoRoom)
    }

    /// Where records go.
    pub(super) fn buffer(&self) -> u64 {
        self.noting.buffer
    }

    /// The translations that note for those that do not, or back.
    fn exchange(&mut self) {
        mem::swap(&mut self.translator, &mut self.noting.translator);
        self.noting.in_use = !self.noting.in_use;
    }

    /// Goes on in the other translations, which are made anew if the program's code has changed.
    fn exchange_and_enter(&mut self, own: &user_regs_struct) -> Result<()> {
        let of = mem::replace(&mut self.noting.translated, self.changes.translated);
        self.exchange();
        self.renew_translations(of)?;
        self.enter(own)
    }

    /// Runs from one position to another and reports what is looked for, in the order of positions. It ends early when `report`
    /// returns false; it may be asked with an empty batch. The process is somewhere in between afterwards, or at the end.
    ///
    /// Writes to some memory alone are found fast: what did not write to its pages is left out.
    pub fn seek(
        &mut self,
        positions: Range<u64>,
        seek: &Seek,
        report: &mut dyn FnMut(&Batch) -> bool,
    ) -> Result<()> {
        if positions.end > self.end() {
            return Err(Error::AfterEnd { end: self.end() });
        }
        let mut found = Found::new(seek.clone(), positions.clone());
        match &seek.memory {
            Some(memory) if seek.writes && !seek.reads && !seek.instructions => {
                self.seek_writes(positions, memory, &mut found, report)?;
            }
            _ => {
                self.seek_part(positions, &mut found, report)?;
            }
        }
        Ok(())
    }

    /// The same for a part; returns whether to go on.
    pub(super) fn seek_part(
        &mut self,
        positions: Range<u64>,
        found: &mut Found,
        report: &mut dyn FnMut(&Batch) -> bool,
    ) -> Result<bool> {
        self.go_before(positions.start)?;
        let own = self.registers()?;
        let seek = &found.seek;
        self.noting.translator.set_notes(Wanted {
            instructions: seek.instructions,
            reads: seek.reads,
            writes: seek.writes,
            code: seek.code.clone(),
        });
        let end = positions.end;
        found.positions = positions;
        self.found = Some(mem::take(found));
        let done = self
            .exchange_and_enter(&own)
            .and_then(|()| self.set_records())
            .and_then(|()| self.run_and_report(end, report));
        *found = self.found.take().unwrap_or_default();
        (found.tail, found.begun) = (None, None);
        self.noting.left_at = (!matches!(done, Ok(true))).then_some(self.now.count);
        let own = self.registers()?;
        self.exchange_and_enter(&own)?;
        done
    }

    /// Goes to a position at which nothing has happened yet: what the kernel writes before its instruction is still to come.
    fn go_before(&mut self, position: u64) -> Result<()> {
        let last = self.now.next.checked_sub(1);
        let last = last.and_then(|last| self.recorded.entries.get(last));
        // Behind a search that has come to its end there. One that was left may have been within an instruction.
        let is_there = self.now.count == position && self.noting.left_at != Some(position);
        if is_there && last.is_none_or(|last| last.at() < position) {
            return Ok(());
        }
        self.goto(position.saturating_sub(1))
    }

    fn run_and_report(&mut self, end: u64, report: &mut dyn FnMut(&Batch) -> bool) -> Result<bool> {
        while self.now.count < end {
            self.forward_with(end, &mut |_| true)?;
            let until = self.now.count;
            let Some(found) = &mut self.found else {
                return Ok(false);
            };
            let batch = found.take(until);
            let goes_on = report(&batch);
            found.resume(batch);
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn records_slot(&self) -> u64 {
        self.block() + u64::from(layout::SLOT_RECORDS)
    }

    fn set_records(&self) -> Result<()> {
        self.process
            .set_word(self.records_slot(), self.noting.buffer)
    }

    /// The program is about to enter translated code somewhere.
    pub(super) fn note_entry(&mut self, own: &user_regs_struct) -> Result<()> {
        if let Some(found) = &mut self.found {
            found.tail = None;
            found.begun = None;
            let slot = self.block() + u64::from(layout::SLOT_FS);
            self.process.set_word(slot, own.fs_base)?;
        }
        Ok(())
    }

    /// Whether a batch should be reported.
    pub(super) fn found_enough(&self) -> bool {
        self.found
            .as_ref()
            .is_some_and(|found| found.batch.executed.len() + found.batch.accesses.len() >= BATCH)
    }

    /// Where the next record goes; `None`: nothing is noted.
    pub(super) fn records_end(&self) -> Result<Option<u64>> {
        if self.found.is_none() || !self.noting.in_use {
            return Ok(None);
        }
        self.process.word(self.records_slot()).map(Some)
    }

    /// Forgets the records from there on.
    pub(super) fn set_records_end(&self, end: Option<u64>) -> Result<()> {
        match end {
            Some(end) => self.process.set_word(self.records_slot(), end),
            None => Ok(()),
        }
    }

    /// Takes the records that there are.
    pub(super) fn drain_notes(&mut self) -> Result<()> {
        if self.found.is_none() || !self.noting.in_use {
            return Ok(());
        }
        let slot = self.records_slot();
        let end = self.process.word(slot)?;
        let length = end.wrapping_sub(self.noting.buffer);
        if length == 0 {
            return Ok(());
        }
        let cut_off = || Error::Damaged(String::from("a record of a search is cut off"));
        let mut bytes = mem::take(&mut self.noting.bytes);
        bytes.resize(BYTES as usize, 0);
        let part = bytes.get_mut(..length as usize).ok_or_else(cut_off)?;
        let count = self.process.read(self.noting.buffer, part);
        self.set_records()?;
        let (tid, limit) = (self.now.running, self.limit);
        let known = match &mut self.found {
            Some(found) => found.records(self.translator.sites(), tid, limit, &part[..count]),
            None => None,
        };
        self.noting.bytes = bytes;
        known.ok_or_else(cut_off)
    }

    /// All that was found is of instructions before this position.
    pub(super) fn settle_notes(&mut self) -> Result<()> {
        let (tid, count) = (self.now.running, self.now.count);
        // Where the process stops behind an instruction, the trap that ends its record is still ahead.
        let begun = self.found.as_ref().and_then(|found| found.begun.as_ref());
        if begun.is_some_and(|begun| begun.position() < count)
            && let Some(begun) = self.found.as_mut().and_then(|found| found.begun.take())
        {
            self.end_step(&begun)?;
        }
        if let Some(found) = &mut self.found {
            found.settle(self.translator.sites(), tid, count);
        }
        Ok(())
    }

    /// Instructions of other threads have been counted meanwhile.
    pub(super) fn move_notes(&mut self) {
        let count = self.now.count;
        if let Some(found) = &mut self.found
            && let Some(tail) = &mut found.tail
        {
            tail.at = count;
        }
    }

    /// Whether the process has come to the end of the buffer; then it writes the record anew, to its beginning.
    pub(super) fn emptied_notes(&mut self) -> Result<bool> {
        if self.found.is_none() {
            return Ok(false);
        }
        let guard = self.noting.buffer + BYTES;
        let pid = self.process.pid;
        if !self.has_fault_in(guard..guard + PAGE)? {
            return Ok(false);
        }
        self.drain_notes()?;
        let mut registers = ptrace::registers(pid).context("read registers")?;
        let place = self
            .translator
            .place(registers.rip)
            .ok_or_else(|| self.diverged("it is not where it should be"))?;
        let slot = |slot: u32| self.process.word(self.block() + u64::from(slot));
        registers.r11 = slot(layout::SLOT_FIRST)?;
        registers.r10 = slot(layout::SLOT_SECOND)?;
        registers.rip = place.at;
        ptrace::set_registers(pid, &registers).context("set registers")?;
        Ok(true)
    }

    /// The process has come to a trap around an instruction that takes its time.
    pub(super) fn noted_trap(&mut self, at: u64, trap: Trap, r15: u64) -> Result<()> {
        self.drain_notes()?;
        let begun: Option<Begun> = match (&mut self.found, trap) {
            (Some(_), Trap::Before { .. }) => {
                let position = self.counter(r15, at)?;
                self.begin_step(position)?
            }
            (Some(found), _) => {
                if let Some(begun) = found.begun.take() {
                    self.end_step(&begun)?;
                }
                return Ok(());
            }
            (None, _) => return Err(self.diverged("nothing is noted")),
        };
        if let Some(found) = &mut self.found {
            found.begun = begun;
        }
        Ok(())
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_le_bytes(bytes))
}

impl Found {
    /// What records say; `None`: they are cut off.
    fn records(&mut self, sites: &[Site], tid: i32, limit: Limit, mut rest: &[u8]) -> Option<()> {
        while !rest.is_empty() {
            let number = word(rest, 0)? as u32 as usize;
            let counter = limit.count(word(rest, 8)?);
            let site = sites.get(number)?;
            let (record, behind) = rest.split_at_checked(site.length())?;
            rest = behind;
            match site {
                Site::Block { instructions } => {
                    let at = counter.wrapping_sub(instructions.len() as u64);
                    self.flush(sites, tid);
                    self.tail = Some(Tail {
                        site: number,
                        next: 0,
                        at,
                    });
                }
                Site::Memory { ahead, .. } => {
                    let position = counter.wrapping_sub(u64::from(*ahead));
                    self.memory(site, number, position, tid, record)?;
                }
            }
        }
        Some(())
    }

    /// The whole block has been executed.
    fn flush(&mut self, sites: &[Site], tid: i32) {
        self.settle(sites, tid, u64::MAX);
        self.tail = None;
    }

    /// The block has been executed up to a position.
    fn settle(&mut self, sites: &[Site], tid: i32, count: u64) {
        let Some(mut tail) = self.tail else { return };
        let Some(Site::Block { instructions }) = sites.get(tail.site) else {
            return;
        };
        let numbers = mem::take(self.numbers_of(tail.site, instructions));
        while tail.at < count && tail.next < numbers.len() {
            if let Some(number) = numbers[tail.next] {
                self.executed(tail.at, tid, number);
            }
            tail.next += 1;
            tail.at += 1;
        }
        self.of_sites[tail.site] = numbers;
        self.tail = Some(tail);
    }

    /// The numbers of the instructions of a block, those that are looked for.
    fn numbers_of(
        &mut self,
        site: usize,
        instructions: &[(u64, Vec<u8>)],
    ) -> &mut Vec<Option<u32>> {
        if self.of_sites.len() <= site {
            self.of_sites.resize(site + 1, Vec::new());
        }
        if self.of_sites[site].is_empty() {
            let numbers = instructions
                .iter()
                .map(|(address, code)| self.has_code(*address).then(|| self.number(*address, code)))
                .collect();
            self.of_sites[site] = numbers;
        }
        &mut self.of_sites[site]
    }

    fn memory(
        &mut self,
        site: &Site,
        number: usize,
        position: u64,
        tid: i32,
        record: &[u8],
    ) -> Option<()> {
        let Site::Memory {
            instruction, items, ..
        } = site
        else {
            return None;
        };
        let known = self.numbers_of(number, std::slice::from_ref(instruction))[0];
        for item in items {
            let touch = Touch {
                position,
                tid,
                instruction: known,
                address: word(record, item.address)?,
                size: item.size as u64,
                is_write: item.is_write,
            };
            let old = record.get(item.old..item.old + item.size)?;
            if !item.is_write {
                self.read(touch, old);
                continue;
            }
            match &item.new {
                Err(value) => self.written(touch, old, value),
                Ok(new) => self.written(touch, old, record.get(*new..new + item.size)?),
            }
        }
        Some(())
    }
}

//! What single instructions read and write, where no code is added for that, and what the kernel does.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory};

use super::Replay;
use super::seek::Touch;
use crate::error::Result;
use crate::log::{Bytes, Entry, Space, Span};
use crate::operands::{Operand, State, goes_down, operands, repetitions};
use crate::record::image;

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

/// An instruction that is about to be executed.
pub(super) struct Begun {
    decoded: Instruction,
    number: u32,
    position: u64,
    tid: i32,
    repetitions: u64,
    down: bool,
    /// With what lay there before.
    operands: Vec<(Operand, Vec<u8>)>,
}

impl Begun {
    /// How many instructions were executed before it.
    pub(super) fn position(&self) -> u64 {
        self.position
    }
}

impl Replay {
    /// The memory that the program has now: from where to where.
    pub fn mapped(&self) -> Result<Vec<Range<u64>>> {
        let spans = image::spans(self.process.pid)?;
        let own = spans.iter().filter(|span| self.is_of_program(**span));
        Ok(own.map(|span| span.start..span.end).collect())
    }

    /// Whether a mapping lies in what the program has mapped at any time.
    fn is_of_program(&self, span: Span) -> bool {
        self.recorded
            .taken
            .iter()
            .any(|taken| taken.start < span.end && span.start < taken.end)
    }

    /// An instruction that uses memory is about to be executed.
    pub(super) fn begin_step(&mut self, position: u64) -> Result<Option<Begun>> {
        let general = self.registers()?;
        let code = self.process.bytes(general.rip, LONGEST);
        let decoded = Decoder::with_ip(64, &code, general.rip, DecoderOptions::NONE).decode();
        let tid = self.now.running;
        let Some(found) = &mut self.found else {
            return Ok(None);
        };
        let number = found.number(general.rip, &code[..decoded.len()]);
        let most = found.seek.value_bytes;
        let state = State {
            general,
            extended: self.extended()?,
        };
        let mut info = InstructionInfoFactory::new();
        let found = operands(&mut info, &decoded, &state, &|at| {
            self.process.word(at).ok()
        });
        let operands = found
            .into_iter()
            .map(|operand| {
                let before = self
                    .process
                    .bytes(operand.address, most.min(operand.size as usize));
                (operand, before)
            })
            .collect();
        Ok(Some(Begun {
            decoded,
            number,
            position,
            tid,
            repetitions: repetitions(&decoded, &general),
            down: goes_down(&general),
            operands,
        }))
    }

    /// It has been executed.
    pub(super) fn end_step(&mut self, begun: &Begun) -> Result<()> {
        let left = repetitions(&begun.decoded, &self.registers()?);
        let Some(found) = &mut self.found else {
            return Ok(());
        };
        let written: Vec<Range<u64>> = begun
            .operands
            .iter()
            .filter(|(operand, _)| operand.writes)
            .map(|(operand, _)| operand.address..operand.address.saturating_add(operand.size))
            .collect();
        for (operand, before) in &begun.operands {
            let (address, size) = operand.used(begun.repetitions, left, begun.down);
            let skipped = (address - operand.address) as usize;
            let wanted = found.seek.value_bytes.min(size as usize);
            let kept = before.get(skipped..).unwrap_or(&[]);
            // It has ended early, from the highest address down: what it only read is still there.
            let is_cut = skipped > 0 && kept.len() < wanted;
            let unchanged = match is_cut && written.is_empty() {
                true => self.process.bytes(address, wanted),
                false => Vec::new(),
            };
            let before = match is_cut {
                true => &unchanged[..],
                false => &kept[..kept.len().min(wanted)],
            };
            let touch = Touch {
                position: begun.position,
                tid: begun.tid,
                instruction: Some(begun.number),
                address,
                size,
                is_write: false,
            };
            if operand.reads {
                // What a repeated instruction reads may be what it has written itself.
                let overlaps = operand.repeats.is_some()
                    && written
                        .iter()
                        .any(|range| range.start < address + size && address < range.end);
                found.read(touch, if overlaps { &[] } else { before });
            }
            if operand.writes {
                let after = self.process.bytes(address, before.len());
                found.written(touch, before, &after);
            }
        }
        Ok(())
    }

    /// An instruction that an entry stands for is executed.
    pub(super) fn found_entry(&mut self, entry: &Entry) -> Result<()> {
        let tid = match entry {
            Entry::SystemCall { tid, .. }
            | Entry::Repeated { tid, .. }
            | Entry::Signal {
                tid,
                call_done: true,
                ..
            } => *tid,
            Entry::Chance { .. } | Entry::Return { .. } => self.now.running,
            _ => return Ok(()),
        };
        if self.found.is_none() {
            return Ok(());
        }
        let address = match self.registers_of(tid) {
            Some(registers) => registers.rip,
            None => self.registers()?.rip,
        };
        let code = self.process.bytes(address, LONGEST);
        let decoded = Decoder::with_ip(64, &code, address, DecoderOptions::NONE).decode();
        let position = self.now.count;
        if let Some(found) = &mut self.found
            && found.has_code(address)
        {
            let number = found.number(address, &code[..decoded.len()]);
            found.executed(position, tid, number);
        }
        Ok(())
    }

    /// The instruction at `address` has saved state of the processor; `before`: what lay there.
    pub(super) fn found_saved(&mut self, address: u64, writes: &[Bytes], before: &[Vec<u8>]) {
        let (position, tid) = (self.now.count, self.now.running);
        let code = self.process.bytes(address, LONGEST);
        let decoded = Decoder::with_ip(64, &code, address, DecoderOptions::NONE).decode();
        let Some(found) = self.found.as_mut().filter(|found| found.has_code(address)) else {
            return;
        };
        let number = found.number(address, &code[..decoded.len()]);
        for (bytes, before) in writes.iter().zip(before) {
            let touch = Touch {
                position,
                tid,
                instruction: Some(number),
                address: bytes.at,
                size: bytes.bytes.len() as u64,
                is_write: true,
            };
            found.written(touch, before, &bytes.bytes);
        }
    }

    /// What lies where the kernel is about to write.
    pub(super) fn before_kernel(&self, writes: &[Bytes]) -> Vec<Vec<u8>> {
        let Some(found) = &self.found else {
            return Vec::new();
        };
        let most = found.seek.value_bytes;
        writes
            .iter()
            .map(|bytes| self.process.bytes(bytes.at, bytes.bytes.len().min(most)))
            .collect()
    }

    /// The kernel has written.
    pub(super) fn found_kernel(&mut self, tid: i32, writes: &[Bytes], before: &[Vec<u8>]) {
        for (bytes, before) in writes.iter().zip(before) {
            self.kernel_wrote(
                tid,
                bytes.at,
                bytes.bytes.len() as u64,
                before,
                &bytes.bytes,
            );
        }
    }

    /// What lies where a call is about to make or move memory.
    pub(super) fn before_space(&self, space: Space) -> Vec<u8> {
        match (&self.found, made(space)) {
            (Some(found), Some(span)) => {
                let length = (span.end - span.start) as usize;
                self.process
                    .bytes(span.start, length.min(found.seek.value_bytes))
            }
            _ => Vec::new(),
        }
    }

    /// A call has made or moved memory.
    pub(super) fn found_space(&mut self, tid: i32, space: Space, before: &[u8]) {
        if let (Some(found), Some(span)) = (&self.found, made(space)) {
            let length = span.end - span.start;
            let most = found.seek.value_bytes.min(length as usize);
            let after = self.process.bytes(span.start, most);
            self.kernel_wrote(tid, span.start, length, before, &after);
        }
    }

    fn kernel_wrote(&mut self, tid: i32, address: u64, size: u64, old: &[u8], new: &[u8]) {
        let position = self.now.count;
        let Some(found) = &mut self.found else {
            return;
        };
        if found.seek.code.is_some() {
            return;
        }
        let touch = Touch {
            position,
            tid,
            instruction: None,
            address,
            size,
            is_write: true,
        };
        found.written(touch, old, new);
    }
}

/// The memory whose content a call makes anew.
pub(super) fn made(space: Space) -> Option<Span> {
    match space {
        Space::Map(span) | Space::Discard(span) => Some(span),
        Space::Move { from, to } if from.start == to.start => {
            let start = from.end.min(to.end);
            Some(Span { start, ..to })
        }
        Space::Move { to, .. } => Some(to),
        Space::Unmap(_) | Space::Protect(_) => None,
    }
}

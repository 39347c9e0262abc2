//! Notes of what is executed, read and written: code that is added to blocks, and appends records to a buffer. A record of a block is
//! its number and the counter. That of an instruction has for each stretch of memory the address, what was there before, and, after a
//! write, what is there then.

use std::ops::Range;

use iced_x86::{
    Code as Opcode, Encoder, Instruction, MemoryOperand, Mnemonic, Register, UsedMemory,
};

use super::block::Block;
use super::emit::{Emitter, R9, R10, R11, Reg};
use super::{Trap, layout};
use crate::operands::{is_special, kinds};

/// What is noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    pub instructions: bool,
    pub reads: bool,
    pub writes: bool,
    /// Only of instructions that begin at these addresses.
    pub code: Option<Vec<Range<u64>>>,
}

impl Wanted {
    pub(super) fn is_any(&self) -> bool {
        self.instructions || self.reads || self.writes
    }

    fn has(&self, address: u64) -> bool {
        self.code
            .as_ref()
            .is_none_or(|ranges| ranges.iter().any(|range| range.contains(&address)))
    }
}

/// Bytes of a record without memory.
pub const HEAD_BYTES: usize = 16;

/// A stretch of memory in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    pub size: usize,
    pub reads: bool,
    pub writes: bool,
    /// What a call writes, which is not in the record.
    pub pushed: Option<u64>,
}

impl Noted {
    /// Bytes that one value takes.
    #[inline]
    pub fn value_bytes(&self) -> usize {
        self.size.next_multiple_of(8)
    }

    fn has_new(&self) -> bool {
        self.writes && self.pushed.is_none()
    }

    /// Bytes in the record: the address, the value before, the value after.
    pub fn bytes(&self) -> usize {
        8 + self.value_bytes() * (1 + usize::from(self.has_new()))
    }
}

/// A read or write in a record: where its address and its values lie. Reads come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    pub is_write: bool,
    pub size: usize,
    pub address: usize,
    pub old: usize,
    /// Of a write: where the new value is, or the value itself.
    pub new: Result<usize, [u8; 8]>,
}

/// The reads and writes of a record.
fn items(noted: &[Noted]) -> Vec<Item> {
    let mut address = HEAD_BYTES;
    let mut found = Vec::new();
    for one in noted {
        let old = address + 8;
        let new = match one.pushed {
            Some(value) => Err(value.to_le_bytes()),
            None => Ok(old + one.value_bytes()),
        };
        for is_write in [false, true] {
            if [one.reads, one.writes][usize::from(is_write)] {
                found.push(Item {
                    is_write,
                    size: one.size,
                    address,
                    old,
                    new,
                });
            }
        }
        address += one.bytes();
    }
    found.sort_by_key(|item| item.is_write);
    found
}

/// An instruction of the program: its address and machine code.
pub type Coded = (u64, Vec<u8>);

/// What a record is about.
#[derive(Debug, Clone)]
pub enum Site {
    /// A block is executed; the counter is ahead by all of it.
    Block { instructions: Vec<Coded> },
    /// An instruction reads or writes; the counter is ahead.
    Memory {
        instruction: Coded,
        ahead: u8,
        items: Vec<Item>,
        /// Bytes of the record.
        length: usize,
    },
}

impl Site {
    /// Bytes of its record.
    #[inline]
    pub fn length(&self) -> usize {
        match self {
            Site::Block { .. } => HEAD_BYTES,
            Site::Memory { length, .. } => *length,
        }
    }
}

/// What a translator notes, and the meaning of the numbers in records.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) wanted: Wanted,
    pub(super) sites: Vec<Site>,
}

impl Notes {
    pub(super) fn new(wanted: Wanted) -> Notes {
        Notes {
            wanted,
            sites: Vec::new(),
        }
    }

    fn add(&mut self, site: Site) -> u32 {
        self.sites.push(site);
        self.sites.len() as u32 - 1
    }
}

/// What has to follow an instruction.
pub(super) enum Note {
    /// The values after it, to this record.
    New { noted: Vec<Noted>, length: usize },
    /// Nothing.
    Done,
    /// A trap.
    Trap,
}

impl Emitter {
    /// `mov register, [base + offset]` of 1, 2, 4 or 8 bytes, the rest is zero.
    fn get(&mut self, register: Reg, base: Reg, offset: u32, size: usize) {
        let wide = if size == 8 { 0x48 } else { 0x40 };
        self.put(&[wide | ((register.0 >> 3) << 2) | (base.0 >> 3)]);
        match size {
            1 => self.put(&[0x0f, 0xb6]),
            2 => self.put(&[0x0f, 0xb7]),
            _ => self.put(&[0x8b]),
        }
        self.put(&[0x80 | ((register.0 & 7) << 3) | (base.0 & 7)]);
        self.put(&offset.to_le_bytes());
    }

    /// Copies from where r11 points to the record in r10. Small values go through r11, long ones through r9.
    fn copy_value(&mut self, size: usize, offset: u32) {
        if matches!(size, 1 | 2 | 4 | 8) {
            self.get(R11, R11, 0, size);
            return self.put_word(10, offset, 11);
        }
        let mut done = 0;
        while done < size {
            // Whole words are written, also at the end: there is room.
            let part = [8, 4, 2, 1]
                .into_iter()
                .find(|part| done + part <= size)
                .unwrap_or(1);
            self.get(R9, R11, done as u32, part);
            // A part behind a whole word, such as 2 of 10 bytes.
            self.put_part(offset + done as u32, part);
            done += part;
        }
    }

    /// `mov [r10 + offset], r9` of 1, 2, 4 or 8 bytes.
    fn put_part(&mut self, offset: u32, size: usize) {
        if size == 2 {
            self.put(&[0x66]);
        }
        self.put(&[if size == 8 { 0x4d } else { 0x45 }]);
        self.put(&[if size == 1 { 0x88 } else { 0x89 }, 0x80 | 1 << 3 | 2]);
        self.put(&offset.to_le_bytes());
    }

    /// Takes the registers that notes need; the third only for long values.
    fn take(&mut self, third: bool) {
        self.save(R11, layout::SLOT_FIRST);
        self.save(R10, layout::SLOT_SECOND);
        if third {
            self.save(R9, layout::SLOT_THIRD);
        }
    }

    fn give_back(&mut self, third: bool) {
        self.load(R11, layout::SLOT_FIRST);
        self.load(R10, layout::SLOT_SECOND);
        if third {
            self.load(R9, layout::SLOT_THIRD);
        }
    }

    /// The record in r10 is whole.
    fn end_record(&mut self, length: usize) {
        self.advance(10, length);
        self.save(R10, layout::SLOT_RECORDS);
    }

    /// Puts the address into r11, which until then is the program's, as is r10.
    fn address(&mut self, memory: &UsedMemory) -> Option<()> {
        if memory.base() == Register::None && memory.index() == Register::None {
            self.set(R11, memory.displacement());
        } else {
            let displacement = memory.displacement() as i64;
            let operand = MemoryOperand::new(
                memory.base(),
                memory.index(),
                memory.scale(),
                displacement,
                if displacement == 0 && memory.base() != Register::None {
                    0
                } else if memory.base() == Register::None {
                    8
                } else {
                    1
                },
                false,
                Register::None,
            );
            let lea = Instruction::with2(Opcode::Lea_r64_m, Register::R11, operand).ok()?;
            let mut encoder = Encoder::new(64);
            encoder.encode(&lea, self.here()).ok()?;
            let bytes = encoder.take_buffer();
            self.put(&bytes);
        }
        if memory.segment() == Register::FS {
            self.load(R10, layout::SLOT_FS);
            self.put(&[0x4f, 0x8d, 0x1c, 0x13]); // lea r11, [r11 + r10]
        }
        Some(())
    }
}

impl Block<'_> {
    /// Notes that the block is executed.
    pub(super) fn note_block(&mut self, instructions: &[Instruction]) {
        let wanted = &self.notes.wanted;
        if !wanted.instructions || !instructions.iter().any(|one| wanted.has(one.ip())) {
            return;
        }
        let instructions = instructions
            .iter()
            .map(|one| (one.ip(), self.original(one)))
            .collect::<Vec<Coded>>();
        let pc = instructions[0].0;
        let site = self.notes.add(Site::Block { instructions });
        self.place(pc, true, false);
        self.e.take(false);
        self.e.load(R10, layout::SLOT_RECORDS);
        self.e.put_word(10, 8, 15);
        self.e.put_kind(10, site);
        self.e.end_record(HEAD_BYTES);
        self.e.give_back(false);
    }

    /// The stretches of memory that are noted, or that it takes a trap.
    fn noted(&mut self, instruction: &Instruction) -> Result<Vec<(UsedMemory, Noted)>, ()> {
        let wanted = &self.notes.wanted;
        if !(wanted.reads || wanted.writes) || !wanted.has(instruction.ip()) {
            return Ok(Vec::new());
        }
        let (want_reads, want_writes) = (wanted.reads, wanted.writes);
        let pushed = instruction.is_call_near() || instruction.is_call_near_indirect();
        let mut found = Vec::new();
        for memory in self.info.info(instruction).used_memory() {
            let (reads, writes) = kinds(memory.access());
            let (reads, writes) = (reads && want_reads, writes && want_writes);
            if !reads && !writes {
                continue;
            }
            let size = memory.memory_size().size();
            if is_special(instruction) || !(1..=64).contains(&size) || memory.vsib_size() != 0 {
                return Err(());
            }
            let noted = Noted {
                size,
                reads,
                writes,
                pushed: (writes && pushed).then_some(instruction.next_ip()),
            };
            found.push((*memory, noted));
        }
        if found.len() > 2 { Err(()) } else { Ok(found) }
    }

    /// Notes what an instruction at the end of a block reads, and what it pushes.
    pub(super) fn note_end(&mut self, instruction: &Instruction) {
        if let Some(Note::Trap | Note::New { .. }) = self.note_before(instruction) {
            debug_assert!(false, "calls and returns use memory in a simple way");
        }
    }

    /// Notes addresses and what is there before an instruction.
    pub(super) fn note_before(&mut self, instruction: &Instruction) -> Option<Note> {
        let pc = instruction.ip();
        let found = match self.noted(instruction) {
            Ok(found) if found.is_empty() => return None,
            Ok(found) => found,
            Err(()) => {
                self.trap(pc, Trap::Before { pc });
                return Some(Note::Trap);
            }
        };
        self.place(pc, true, false);
        let undo = self.e.bytes.len();
        if self.addresses(&found).is_none() {
            self.e.bytes.truncate(undo);
            self.trap(pc, Trap::Before { pc });
            return Some(Note::Trap);
        }
        let noted: Vec<Noted> = found.iter().map(|(_, noted)| *noted).collect();
        let length = HEAD_BYTES + noted.iter().map(Noted::bytes).sum::<usize>();
        let site = Site::Memory {
            instruction: (pc, self.original(instruction)),
            ahead: self.ahead,
            items: items(&noted),
            length,
        };
        let site = self.notes.add(site);
        self.e.load(R10, layout::SLOT_RECORDS);
        // The first write meets the end of the buffer, if the record does.
        self.e.put_word(10, length as u32 - 8, 11);
        let mut offset = HEAD_BYTES as u32;
        for (index, one) in noted.iter().enumerate() {
            if index == 1 {
                self.e.load(R11, layout::SLOT_ADDRESS);
            }
            self.e.put_word(10, offset, 11);
            self.e.copy_value(one.size, offset + 8);
            offset += one.bytes() as u32;
        }
        self.e.put_kind(10, site);
        if self.swapped {
            self.e.load(R11, layout::SLOT_COUNTER);
            self.e.put_word(10, 8, 11);
        } else {
            self.e.put_word(10, 8, 15);
        }
        let later = noted.iter().any(Noted::has_new);
        if !later {
            self.e.end_record(length);
        }
        self.e.give_back(takes_third(&noted));
        Some(if later {
            Note::New { noted, length }
        } else {
            Note::Done
        })
    }

    /// Takes registers, and puts the first address into r11, a second one into the thread's block.
    fn addresses(&mut self, found: &[(UsedMemory, Noted)]) -> Option<()> {
        let third = found.iter().any(|(_, noted)| is_long(noted));
        self.e.take(third);
        if let [_, (second, _)] = found {
            self.e.address(second)?;
            self.e.save(R11, layout::SLOT_ADDRESS);
            self.e.give_back(false);
        }
        self.e.address(&found[0].0)
    }

    /// Notes what is there after an instruction.
    pub(super) fn note_after(&mut self, instruction: &Instruction, note: Option<Note>) {
        let next = instruction.next_ip();
        let ahead = self.ahead;
        self.ahead = ahead.saturating_sub(1);
        match note {
            Some(Note::Trap) => {
                self.trap(
                    next,
                    Trap::After {
                        pc: instruction.ip(),
                    },
                );
            }
            Some(Note::New { noted, length }) => {
                self.place(next, false, false);
                let third = takes_third(&noted);
                self.e.take(third);
                self.e.load(R10, layout::SLOT_RECORDS);
                let mut offset = HEAD_BYTES as u32;
                for one in &noted {
                    if one.has_new() {
                        self.e.get(R11, R10, offset, 8);
                        let after = offset + 8 + one.value_bytes() as u32;
                        self.e.copy_value(one.size, after);
                    }
                    offset += one.bytes() as u32;
                }
                self.e.end_record(length);
                self.e.give_back(third);
            }
            Some(Note::Done) | None => {}
        }
        if instruction.mnemonic() == Mnemonic::Wrfsbase && self.notes.wanted.is_any() {
            self.place(next, false, false);
            self.e.save(R11, layout::SLOT_FIRST);
            self.e.put(&[0xf3, 0x49, 0x0f, 0xae, 0xc3]); // rdfsbase r11
            self.e.save(R11, layout::SLOT_FS);
            self.e.load(R11, layout::SLOT_FIRST);
        }
        self.ahead = ahead;
    }
}

fn is_long(noted: &Noted) -> bool {
    !matches!(noted.size, 1 | 2 | 4 | 8)
}

fn takes_third(noted: &[Noted]) -> bool {
    noted.iter().any(is_long)
}

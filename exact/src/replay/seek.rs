//! What a stretch of a recording executed, read and wrote: found by running it again.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::notes::Tail;
use super::step::Begun;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Seek {
    /// Every instruction that is executed.
    pub instructions: bool,
    /// Memory that instructions read.
    pub reads: bool,
    /// Memory that instructions or the kernel write.
    pub writes: bool,
    /// Only instructions that begin at these addresses, and no writes of the kernel. `None`: all.
    pub code: Option<Vec<Range<u64>>>,
    /// Only reads and writes of any of these bytes. `None`: all.
    pub memory: Option<Vec<Range<u64>>>,
    /// Only this thread.
    pub tid: Option<i32>,
    /// Bytes that are kept of a value at most; of a longer one, the first are.
    pub value_bytes: usize,
}

impl Default for Seek {
    /// Nothing, of all code, memory and threads.
    fn default() -> Seek {
        Seek {
            instructions: false,
            reads: false,
            writes: false,
            code: None,
            memory: None,
            tid: None,
            value_bytes: 64,
        }
    }
}

/// An instruction of the program, as it was when it was executed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Instruction {
    pub address: u64,
    /// Its machine code.
    pub code: Vec<u8>,
}

/// An instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executed {
    /// How many instructions were executed before it.
    pub position: u64,
    pub tid: i32,
    /// Its number in [`Batch::instructions`].
    pub instruction: u32,
}

/// Memory is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// How many instructions were executed before the one that does it. What the kernel writes to begin the handler of a signal is
    /// there already at this position; what it writes with a system call, which is an instruction, is there at the next one. New
    /// memory is written with zeros by the call that maps it, and moved memory by the one that moves it.
    pub position: u64,
    pub tid: i32,
    /// The instruction's number in [`Batch::instructions`]. `None`: the kernel.
    pub instruction: Option<u32>,
    pub address: u64,
    /// In bytes. Instructions that save or load the processor's extended state (xsave and its kind) count with their whole area,
    /// though they may leave parts of it alone; a search for writes to a few bytes names them only if they wrote there.
    pub size: u64,
    pub is_write: bool,
    /// Where its values begin in the batch, and how many bytes of the old one and of the new one are kept there.
    values: usize,
    old: u32,
    new: u32,
}

/// Part of what was found, in the order of positions. Reads of an instruction come before its writes.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Every instruction that was met since the search began; numbers keep their meaning from batch to batch.
    pub instructions: Vec<Instruction>,
    pub executed: Vec<Executed>,
    pub accesses: Vec<Access>,
    /// All before this position was reported with this batch.
    pub until: u64,
    values: Vec<u8>,
}

impl Batch {
    /// What was read; or what is there after the write. It is cut off after [`Seek::value_bytes`], and empty if it is not known.
    pub fn value(&self, access: &Access) -> &[u8] {
        let start = access.values + access.old as usize;
        self.values
            .get(start..start + access.new as usize)
            .unwrap_or(&[])
    }

    /// What was there before a write; cut off in the same way, and empty where no memory was.
    pub fn old(&self, access: &Access) -> &[u8] {
        self.values
            .get(access.values..access.values + access.old as usize)
            .unwrap_or(&[])
    }
}

/// A search that is under way.
#[derive(Default)]
pub(super) struct Found {
    pub(super) seek: Seek,
    pub(super) positions: Range<u64>,
    pub(super) batch: Batch,
    numbers: FxHashMap<u64, u32>,
    /// Those of the instructions of each site of records; `None`: it is not looked for.
    pub(super) of_sites: Vec<Vec<Option<u32>>>,
    pub(super) tail: Option<Tail>,
    /// An instruction between two traps.
    pub(super) begun: Option<Begun>,
}

#[inline]
fn touches(ranges: Option<&Vec<Range<u64>>>, start: u64, end: u64) -> bool {
    ranges.is_none_or(|ranges| {
        ranges
            .iter()
            .any(|range| range.start < end && start < range.end)
    })
}

impl Found {
    pub(super) fn new(seek: Seek, positions: Range<u64>) -> Found {
        Found {
            seek,
            positions,
            batch: Batch::default(),
            numbers: FxHashMap::default(),
            of_sites: Vec::new(),
            tail: None,
            begun: None,
        }
    }

    /// The number of an instruction.
    pub(super) fn number(&mut self, address: u64, code: &[u8]) -> u32 {
        let instructions = &mut self.batch.instructions;
        if let Some(number) = self.numbers.get(&address)
            && instructions[*number as usize].code == code
        {
            return *number;
        }
        let number = instructions.len() as u32;
        instructions.push(Instruction {
            address,
            code: code.to_vec(),
        });
        self.numbers.insert(address, number);
        number
    }

    /// Whether it looks at nothing from this position on.
    pub(super) fn ends_at(&self, position: u64) -> bool {
        self.positions.end == position
    }

    /// Whether this code is looked for.
    pub(super) fn has_code(&self, address: u64) -> bool {
        touches(self.seek.code.as_ref(), address, address + 1)
    }

    #[inline]
    fn wants(&self, position: u64, tid: i32) -> bool {
        self.positions.contains(&position) && self.seek.tid.is_none_or(|only| only == tid)
    }

    /// An instruction is executed.
    #[inline]
    pub(super) fn executed(&mut self, position: u64, tid: i32, instruction: u32) {
        if self.seek.instructions && self.wants(position, tid) {
            self.batch.executed.push(Executed {
                position,
                tid,
                instruction,
            });
        }
    }

    /// Memory is read, and this is there; what is not known of it is left away.
    #[inline]
    pub(super) fn read(&mut self, mut access: Touch, value: &[u8]) {
        if self.seek.reads && self.keeps(&access) {
            access.is_write = false;
            self.push(access, &[], value);
        }
    }

    /// Memory is written.
    #[inline]
    pub(super) fn written(&mut self, mut access: Touch, old: &[u8], new: &[u8]) {
        if self.seek.writes && self.keeps(&access) {
            access.is_write = true;
            self.push(access, old, new);
        }
    }

    #[inline]
    fn keeps(&self, access: &Touch) -> bool {
        access.size > 0
            && self.wants(access.position, access.tid)
            && touches(
                self.seek.memory.as_ref(),
                access.address,
                access.address.saturating_add(access.size),
            )
    }

    #[inline]
    fn push(&mut self, access: Touch, old: &[u8], new: &[u8]) {
        let most = self.seek.value_bytes.min(u32::MAX as usize);
        let (old, new) = (&old[..old.len().min(most)], &new[..new.len().min(most)]);
        self.batch.accesses.push(Access {
            position: access.position,
            tid: access.tid,
            instruction: access.instruction,
            address: access.address,
            size: access.size,
            is_write: access.is_write,
            values: self.batch.values.len(),
            old: old.len() as u32,
            new: new.len() as u32,
        });
        self.batch.values.extend_from_slice(old);
        self.batch.values.extend_from_slice(new);
    }

    /// What was found since this was asked, all before `until`.
    pub(super) fn take(&mut self, until: u64) -> Batch {
        self.batch.until = until;
        std::mem::take(&mut self.batch)
    }

    /// The instructions that were met are given back, for the next batch.
    pub(super) fn resume(&mut self, mut batch: Batch) {
        batch.executed.clear();
        batch.accesses.clear();
        batch.values.clear();
        self.batch = batch;
    }
}

/// A read or write, without its values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    pub(super) position: u64,
    pub(super) tid: i32,
    pub(super) instruction: Option<u32>,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) is_write: bool,
}

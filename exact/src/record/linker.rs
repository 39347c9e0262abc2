//! Where the dynamic linker of a program says that it has loaded or unloaded libraries: the function that debuggers stop at (`r_brk`
//! of `struct r_debug`, see link.h). It does nothing, so that whoever stops there need not execute it.

use std::fs;

use crate::error::{Context as _, Result};
use crate::ptrace;
use crate::tracee::{Sharing, Tracee};

const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
const PT_DYNAMIC: u32 = 2;
const PT_PHDR: u32 = 6;
const DT_DEBUG: u64 = 21;
/// Bytes of a program header, and more of them than any program has.
const HEADER: u64 = 56;
const MOST: u64 = 1 << 10;
/// In `struct r_debug`: that function, and what goes on.
const R_BRK: u64 = 16;
const R_STATE: u64 = 24;
const RT_CONSISTENT: u32 = 0;
/// `ret`, and the same behind `endbr64`.
const EMPTY: [&[u8]; 2] = [&[0xc3], &[0xf3, 0x0f, 0x1e, 0xfa, 0xc3]];

/// The dynamic linker of a program that has come to its entry point.
pub(super) struct Linker {
    /// Its function.
    pub(super) at: u64,
    debug: u64,
    memory: Tracee,
}

impl Linker {
    /// `None`: the program has none, or another kind of it.
    pub(super) fn of(pid: i32) -> Result<Option<Linker>> {
        let memory = Tracee::new(pid, Sharing::Nothing)?;
        let Some(debug) = debug(pid, &memory)? else {
            return Ok(None);
        };
        let at = memory.word(debug + R_BRK)?;
        let code = memory.bytes(at, EMPTY[1].len());
        let is_empty = EMPTY.iter().any(|empty| code.starts_with(empty));
        Ok(is_empty.then_some(Linker { at, debug, memory }))
    }

    /// Whether all libraries are as they are to stay.
    pub(super) fn has_loaded(&self) -> bool {
        self.memory.bytes(self.debug + R_STATE, 4) == RT_CONSISTENT.to_le_bytes()
    }

    /// A thread that stands at the function returns from it.
    pub(super) fn pass(&self, tid: i32) -> Result<()> {
        let mut registers = ptrace::registers(tid).context("read registers")?;
        registers.rip = self.memory.word(registers.rsp)?;
        registers.rsp += 8;
        ptrace::set_registers(tid, &registers).context("set registers")
    }
}

/// Where `struct r_debug` is: the dynamic section of the program says so.
fn debug(pid: i32, memory: &Tracee) -> Result<Option<u64>> {
    let vector = fs::read(format!("/proc/{pid}/auxv")).context("read the program's state")?;
    let words: Vec<u64> = vector
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect();
    let value = |key: u64| {
        let mut pairs = words.as_chunks::<2>().0.iter();
        pairs.find(|pair| pair[0] == key).map(|pair| pair[1])
    };
    let (Some(headers), Some(count)) = (value(AT_PHDR), value(AT_PHNUM)) else {
        return Ok(None);
    };
    let (mut bias, mut dynamic) = (0, None);
    for header in (0..count.min(MOST)).map(|index| headers + index * HEADER) {
        let address = memory.word(header + 16)?;
        match memory.word(header)? as u32 {
            PT_PHDR => bias = headers.wrapping_sub(address),
            PT_DYNAMIC => dynamic = Some(address),
            _ => {}
        }
    }
    let Some(dynamic) = dynamic else {
        return Ok(None);
    };
    let entries = (0..MOST).map(|index| bias.wrapping_add(dynamic) + index * 16);
    for entry in entries {
        match memory.word(entry)? {
            0 => break,
            DT_DEBUG => return Ok(Some(memory.word(entry + 8)?).filter(|at| *at != 0)),
            _ => {}
        }
    }
    Ok(None)
}

//! Restores a thread that is between a function's patched entry and its first instruction: in the stub, or where the
//! runtime's enter code saves registers. A stack overflow hits there about as often as in the function itself.
//!
//! The thread is put at the function's entry, with its registers at that time. Only the first pushes and the
//! straight-line code after them are understood; elsewhere the thread stays where it is.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use store::control::GENERAL_REGISTERS;

use super::last::{R11, RAX, RCX, RDX, RIP, RSP};
use crate::arm::PROBE_BYTES;

/// Registers that the enter code saves, in this order.
const SAVED: [usize; 3] = [RAX, RCX, RDX];
/// Offsets in the stub: `push %r11`, its first instruction, and the two after it.
const STUB_STARTS: [u64; 3] = [0, 2, 9];

/// The enter code: its address range and bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct EnterCode {
    pub range: Range<u64>,
    pub bytes: Vec<u8>,
}

/// What is needed to restore such a thread.
pub(super) struct Entering<'a> {
    /// Returns the function that owns the stub at an address.
    pub entry_of_stub: &'a dyn Fn(u64) -> Option<u64>,
    pub enter: &'a [EnterCode; 3],
}

impl Entering<'_> {
    /// Restores the thread with these registers; `word` reads its memory.
    pub fn undo(&self, general: &mut [u64; GENERAL_REGISTERS], word: &dyn Fn(u64) -> Option<u64>) {
        let pc = general[RIP];
        let sp = general[RSP];
        let pushed = |number: u64| word(sp.checked_add(8 * number)?);
        for (count, start) in STUB_STARTS.into_iter().enumerate() {
            let Some(entry) = (self.entry_of_stub)(pc.wrapping_sub(start)) else {
                continue;
            };
            let is_pushed = count != 0;
            if is_pushed {
                let Some(r11) = pushed(0) else { return };
                general[R11] = r11;
                general[RSP] += 8;
            }
            general[RIP] = entry;
            return;
        }
        let Some(code) = self.enter.iter().find(|code| code.range.contains(&pc)) else {
            return;
        };
        let Some(saved) = saved_at(code, pc) else {
            return;
        };
        let Some(entry) = (self.entry_of_stub)(general[R11].wrapping_add(PROBE_BYTES)) else {
            return;
        };
        let words: Option<Vec<u64>> = (0..=saved as u64).map(pushed).collect();
        let Some(words) = words else { return };
        for (register, word) in SAVED[..saved].iter().rev().zip(&words) {
            general[*register] = *word;
        }
        general[R11] = words[saved];
        general[RSP] += 8 * (saved as u64 + 1);
        general[RIP] = entry;
    }
}

/// Returns how many registers are saved when a thread is at `pc`; `None` if the probe is no longer in r11.
fn saved_at(code: &EnterCode, pc: u64) -> Option<usize> {
    let start = code.range.start;
    let mut decoder = Decoder::with_ip(64, &code.bytes, start, DecoderOptions::NONE);
    let mut saved = 0;
    while decoder.can_decode() && decoder.ip() < pc {
        let instruction = decoder.decode();
        match instruction.mnemonic() {
            Mnemonic::Push => saved += 1,
            Mnemonic::Pop | Mnemonic::INVALID => return None,
            _ if writes_r11(&instruction) => return None,
            _ => {}
        }
    }
    (decoder.ip() == pc && saved <= SAVED.len()).then_some(saved)
}

fn writes_r11(instruction: &iced_x86::Instruction) -> bool {
    let mut factory = iced_x86::InstructionInfoFactory::new();
    let used = factory.info(instruction).used_registers();
    used.iter().any(|used| {
        use iced_x86::OpAccess;
        used.register().full_register() == iced_x86::Register::R11
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::code_asm::*;

    const ENTER: u64 = 0x7000;
    const PROBE: u64 = 0x4000;
    const ENTRY: u64 = 0x1000;
    const STACK: u64 = 0x9000;

    fn enter_code() -> EnterCode {
        let mut a = CodeAssembler::new(64).unwrap();
        a.push(rax).unwrap();
        a.push(rcx).unwrap();
        a.push(rdx).unwrap();
        a.mov(rcx, 5u64).unwrap();
        a.mov(qword_ptr(rsp) - 8, rcx).unwrap();
        a.lea(r11, qword_ptr(rsp) + 32).unwrap();
        a.nop().unwrap();
        let bytes = a.assemble(ENTER).unwrap();
        EnterCode {
            range: ENTER..ENTER + bytes.len() as u64,
            bytes,
        }
    }

    /// Returns the restored registers of a thread at `pc` that has pushed these words.
    fn undone(pc: u64, pushed: &[u64]) -> [u64; GENERAL_REGISTERS] {
        let enter = [enter_code(), EnterCode::default(), EnterCode::default()];
        let entering = Entering {
            entry_of_stub: &|at| (at == PROBE + PROBE_BYTES).then_some(ENTRY),
            enter: &enter,
        };
        let mut general = [0; GENERAL_REGISTERS];
        general[RIP] = pc;
        general[R11] = PROBE;
        general[RSP] = STACK;
        entering.undo(&mut general, &|at| {
            pushed.get((at - STACK) as usize / 8).copied()
        });
        general
    }

    #[test]
    fn a_thread_in_the_stub_stands_at_the_entry() {
        let stub = PROBE + PROBE_BYTES;
        let first = undone(stub, &[]);
        assert_eq!((first[RIP], first[RSP]), (ENTRY, STACK));
        let second = undone(stub + 2, &[11]);
        assert_eq!(
            (second[RIP], second[RSP], second[R11]),
            (ENTRY, STACK + 8, 11)
        );
    }

    #[test]
    fn what_the_enter_code_saved_is_put_back() {
        let none = undone(ENTER, &[11]);
        assert_eq!((none[RIP], none[RSP], none[R11]), (ENTRY, STACK + 8, 11));
        let code = enter_code();
        let mut decoder = Decoder::with_ip(64, &code.bytes, ENTER, DecoderOptions::NONE);
        let at: Vec<u64> = decoder.iter().map(|instruction| instruction.ip()).collect();
        let all = undone(at[4], &[3, 2, 1, 11]);
        assert_eq!((all[RIP], all[RSP]), (ENTRY, STACK + 32));
        assert_eq!((all[RAX], all[RCX], all[RDX], all[R11]), (1, 2, 3, 11));
        let later = undone(at[6], &[3, 2, 1, 11]);
        assert_eq!(later[RIP], at[6], "the probe is lost");
    }
}

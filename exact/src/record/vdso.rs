//! The vDSO: its functions read memory that the kernel changes at any moment. To the translator, and in what is recorded, each of
//! them makes the system call that it stands for. The program's memory stays as it is.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic};
use libc::user_regs_struct;

use super::Recorder;
use crate::error::{Context as _, Result};
use crate::log::{Bytes, Span};
use crate::operands::{State, operands};
use crate::ptrace;
use crate::system_calls::written::{Finished, Written, written};
use crate::tracee::Tracee;

/// Names (as linux/arch/x86/entry/vdso/vdso.lds.S exports them) and system calls.
const FUNCTIONS: [(&[u8], i64); 6] = [
    (b"__vdso_clock_gettime", libc::SYS_clock_gettime),
    (b"__vdso_gettimeofday", libc::SYS_gettimeofday),
    (b"__vdso_clock_getres", libc::SYS_clock_getres),
    (b"__vdso_time", libc::SYS_time),
    (b"__vdso_getcpu", libc::SYS_getcpu),
    (b"__vdso_getrandom", libc::SYS_getrandom),
];

/// No vDSO is larger.
const MOST: u64 = 64 << 10;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const SYMBOL: usize = 24;

/// What is to be seen instead of the functions of the vDSO in this span.
pub(super) fn overlay(process: &Tracee, span: Span) -> Vec<Bytes> {
    let length = (span.end - span.start).min(MOST);
    let image = process.bytes(span.start, length as usize);
    let found = functions(&image).unwrap_or_default();
    let calls = found.into_iter().map(|(offset, number)| Bytes {
        at: span.start + offset,
        bytes: call(number),
    });
    calls.collect()
}

/// Where the last instruction lies in what stands for a function.
const RETURN: u64 = 7;
/// Most bytes of an instruction.
const LONGEST: usize = 15;
/// Steps that a thread needs at most to come out of the vDSO.
const MOST_STEPS: usize = 20_000;

impl Recorder {
    /// The registers of a thread that is about to see code as it is, or have it seen by a handler: what stands for a function of the vDSO is
    /// left, by its return, or begins anew.
    pub(super) fn out_of_overlay(&self, own: &mut user_regs_struct) -> Result<()> {
        let inside = |part: &&Bytes| {
            let offset = own.rip.wrapping_sub(part.at);
            (1..part.bytes.len() as u64).contains(&offset)
        };
        let Some(part) = self.process.overlay.iter().find(inside) else {
            return Ok(());
        };
        let waits = own.orig_rax as i64 >= 0 && (-516..=-512).contains(&(own.rax as i64));
        if own.rip - part.at == RETURN && !waits {
            own.rip = self.process.word(own.rsp)?;
            own.rsp += 8;
        } else {
            own.rip = part.at;
            own.orig_rax = u64::MAX;
        }
        Ok(())
    }

    /// A thread that is inside of a function of the vDSO, where it was unrecorded, comes out of it. Returns what it has written.
    pub(super) fn step_out(&mut self, tid: i32) -> Result<Vec<Bytes>> {
        let Some(vdso) = self.part.vdso else {
            return Ok(Vec::new());
        };
        let mut spans = Vec::new();
        for _ in 0..MOST_STEPS {
            let before = ptrace::registers(tid).context("read registers")?;
            let at = before.rip;
            // At its beginning it is what stands for the function.
            let begins = self.process.overlay.iter().any(|part| part.at == at);
            if begins || !(vdso.start..vdso.end).contains(&at) {
                break;
            }
            let stored = self.stores(tid, &before)?;
            self.step(tid, 0)?;
            spans.extend(match stored {
                Some(stored) => stored,
                None => self.written_by_call(tid, &before)?,
            });
        }
        spans.sort_unstable();
        spans.dedup();
        let bytes = |(at, length): (u64, u64)| Bytes {
            at,
            bytes: self.process.bytes(at, length as usize),
        };
        Ok(spans.into_iter().map(bytes).collect())
    }

    /// Where the next instruction of a stopped thread writes: addresses and lengths. `None`: it is a system call.
    fn stores(&self, tid: i32, before: &user_regs_struct) -> Result<Option<Vec<(u64, u64)>>> {
        let code = self.process.bytes(before.rip, LONGEST);
        let instruction = Decoder::with_ip(64, &code, before.rip, DecoderOptions::NONE).decode();
        if instruction.mnemonic() == Mnemonic::Syscall {
            return Ok(None);
        }
        let state = State {
            general: *before,
            extended: ptrace::extended_state(tid).context("read registers")?,
        };
        let mut info = InstructionInfoFactory::new();
        let word = |at| self.process.word(at).ok();
        let found = operands(&mut info, &instruction, &state, &word).into_iter();
        let stores = found.filter(|operand| operand.writes);
        Ok(Some(
            stores
                .map(|operand| (operand.address, operand.size))
                .collect(),
        ))
    }

    /// What a system call wrote that a thread has just made.
    fn written_by_call(&self, tid: i32, before: &user_regs_struct) -> Result<Vec<(u64, u64)>> {
        let after = ptrace::registers(tid).context("read registers")?;
        let call = Finished {
            number: before.rax,
            args: [
                before.rdi, before.rsi, before.rdx, before.r10, before.r8, before.r9,
            ],
            result: after.rax as i64,
        };
        Ok(match written(&call, &self.process) {
            Written::Exactly(spans) => spans,
            // The vDSO has no such calls.
            Written::Unknown => Vec::new(),
        })
    }
}

/// `mov eax, number; syscall; ret`
fn call(number: i64) -> Vec<u8> {
    let mut code = vec![0xb8];
    code.extend((number as u32).to_le_bytes());
    code.extend([0x0f, 0x05, 0xc3]);
    code
}

/// Offsets of the functions in the image, an ELF file (System V ABI, chapters 4 and 5).
fn functions(image: &[u8]) -> Option<Vec<(u64, i64)>> {
    let word = |at: usize| Some(u64::from_le_bytes(*image.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(u32::from_le_bytes(*image.get(at..)?.first_chunk()?));
    let headers = word(32)? as usize;
    let count = usize::from(u16::from_le_bytes(*image.get(56..)?.first_chunk()?));
    let (mut base, mut dynamic) = (0, None);
    for header in (0..count).map(|index| headers + index * 56) {
        match half(header)? {
            PT_LOAD => base = word(header + 16)?.wrapping_sub(word(header + 8)?),
            PT_DYNAMIC => dynamic = Some(word(header + 8)? as usize),
            _ => {}
        }
    }
    let (mut names, mut symbols) = (0, 0);
    let mut at = dynamic?;
    loop {
        match (word(at)?, word(at + 8)?) {
            (0, _) => break,
            (DT_STRTAB, place) => names = place.wrapping_sub(base) as usize,
            (DT_SYMTAB, place) => symbols = place.wrapping_sub(base) as usize,
            _ => {}
        }
        at += 16;
    }
    let mut found = Vec::new();
    // The names follow the symbols.
    for symbol in (symbols..names).step_by(SYMBOL) {
        let name = image.get(names + half(symbol)? as usize..)?;
        let is_it = |known: &[u8]| name.starts_with(known) && name.get(known.len()) == Some(&0);
        let value = word(symbol + 8)?;
        if let Some((_, number)) = FUNCTIONS.iter().find(|(known, _)| is_it(known)) {
            found.push((value.wrapping_sub(base), *number));
        }
    }
    Some(found)
}

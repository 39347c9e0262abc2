//! The vDSO: its functions read memory that the kernel changes at any moment. To the translator, and in what is recorded, each of
//! them makes the system call that it stands for. The program's memory stays as it is.

use libc::user_regs_struct;

use super::Recorder;
use crate::error::{Context as _, Result};
use crate::log::{Bytes, Span};
use crate::ptrace;
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

    /// A thread that returns into the vDSO, where a signal had interrupted it unrecorded, comes out of it.
    pub(super) fn step_out(&mut self, tid: i32) -> Result<()> {
        let Some(vdso) = self.vdso else {
            return Ok(());
        };
        for _ in 0..MOST_STEPS {
            let at = ptrace::registers(tid).context("read registers")?.rip;
            if !(vdso.start..vdso.end).contains(&at) {
                break;
            }
            self.step(tid, 0)?;
        }
        Ok(())
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

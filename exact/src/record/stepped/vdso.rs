//! Functions of the vDSO read memory that the kernel changes at any moment. In what is recorded, each of them makes the system call that
//! it stands for; the thread is moved accordingly.

use libc::user_regs_struct;

use super::{Ahead, Stepped};
use crate::error::{Context as _, Result};
use crate::log::{Bytes, Span};
use crate::ptrace;
use crate::record::vdso;
use crate::tracee::Tracee;

/// `syscall`
const CALL: [u8; 2] = [0x0f, 0x05];
/// Where that and the last instruction lie in what stands for a function (`vdso::overlay`).
const CALL_AT: u64 = 5;
const RETURN_AT: u64 = 7;

/// What is seen instead of the functions of the vDSO.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    pub(super) parts: Vec<Bytes>,
    /// Where the vDSO makes a system call by itself.
    call_at: Option<u64>,
}

impl Overlay {
    pub(super) fn new(process: &Tracee, span: Span) -> Overlay {
        let image = process.bytes(span.start, (span.end - span.start) as usize);
        let mut places = image.windows(CALL.len());
        let found = places.position(|bytes| bytes == CALL);
        Overlay {
            parts: vdso::overlay(process, span),
            call_at: found.map(|offset| span.start + offset as u64),
        }
    }

    pub(super) fn begins_at(&self, pc: u64) -> bool {
        self.parts.iter().any(|part| part.at == pc)
    }

    /// Whether an address is in what stands for a function, but not at its beginning.
    pub(super) fn is_inside(&self, pc: u64) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| (1..part.bytes.len() as u64).contains(&pc.wrapping_sub(part.at)))
    }
}

impl Stepped {
    /// A thread that waits in the call that stands for a function of the vDSO is before that function again.
    pub(super) fn leave_overlay(&mut self) -> Result<()> {
        let Some(begun) = &self.begun else {
            return Ok(());
        };
        let at = begun.before.rip.wrapping_sub(CALL_AT);
        if !self.overlay.begins_at(at) {
            return Ok(());
        }
        let now = user_regs_struct {
            rip: at,
            orig_rax: u64::MAX,
            ..begun.before
        };
        self.begun = None;
        // What stands before the call was done; nothing was noted of it.
        self.count -= 1;
        // If the thread was killed, it needs none.
        let _ = ptrace::set_registers(self.tid, &now);
        Ok(())
    }

    /// What the thread is about to do if it is in what stands for a function of the vDSO. All but the call is done here.
    pub(super) fn ahead_in_overlay(&mut self, before: &user_regs_struct) -> Result<Option<Ahead>> {
        let is_here = |part: &&Bytes| {
            (0..part.bytes.len() as u64).contains(&before.rip.wrapping_sub(part.at))
        };
        let Some(part) = self.overlay.parts.iter().find(is_here) else {
            return Ok(None);
        };
        let mut now = *before;
        match before.rip - part.at {
            0 => {
                let number = part.bytes.get(1..5).and_then(|bytes| bytes.first_chunk());
                now.rax = u64::from(number.map_or(0, |bytes| u32::from_le_bytes(*bytes)));
                now.rip += CALL_AT;
            }
            RETURN_AT => {
                now.rip = self.process.word(before.rsp)?;
                now.rsp += 8;
            }
            _ => {
                let Some(call_at) = self.overlay.call_at else {
                    let why = "the vDSO makes no system call that could stand for it";
                    return Ok(Some(Ahead::Unrecorded(why.to_owned())));
                };
                let ahead = self.call_ahead(before, call_at)?;
                if ahead == Ahead::Call {
                    now.rip = call_at;
                    ptrace::set_registers(self.tid, &now).context("set registers")?;
                }
                return Ok(Some(ahead));
            }
        }
        ptrace::set_registers(self.tid, &now).context("set registers")?;
        self.count += 1;
        Ok(Some(Ahead::Done))
    }
}

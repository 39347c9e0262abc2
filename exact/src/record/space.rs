//! System calls that change the address space.

use super::Recorder;
use super::address_space::PAGE;
use super::image::{self, content};
use super::known;
use super::system_call::Call;
use crate::error::Result;
use crate::log::{Bytes, MappedFile, Space, Span};
use crate::tracee::Tracee;

pub(super) fn whole(start: u64, length: u64, protection: u32) -> Span {
    Span {
        start,
        end: (start + length).next_multiple_of(PAGE),
        protection,
    }
}

/// What a call that succeeded did to the address space, if its arguments and its result say it. What file mappings hold, and what is discarded,
/// is added to `writes`.
pub(super) fn stated(
    process: &Tracee,
    number: u64,
    args: [u64; 6],
    result: i64,
    writes: &mut Vec<Bytes>,
) -> Result<Option<Space>> {
    let [first, length, third, fourth, ..] = args;
    Ok(Some(match i64::try_from(number).unwrap_or(-1) {
        libc::SYS_mmap => {
            let span = whole(result as u64, length, third as u32);
            if fourth & libc::MAP_ANONYMOUS as u64 == 0 {
                writes.extend(content(process, span.start, span.end));
            }
            Space::Map(span)
        }
        libc::SYS_munmap => Space::Unmap(whole(first, length, 0)),
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => {
            Space::Protect(whole(first, length, third as u32))
        }
        libc::SYS_mremap => Space::Move {
            from: whole(first, length, 0),
            to: whole(result as u64, third, 3),
        },
        libc::SYS_madvise
            if matches!(
                third as i32,
                libc::MADV_DONTNEED | libc::MADV_FREE | libc::MADV_REMOVE
            ) =>
        {
            let span = whole(first, length, 0);
            writes.extend(known::held(process, span)?);
            Space::Discard(span)
        }
        _ => return Ok(None),
    }))
}

impl Recorder {
    /// What a call did to the address space. What file mappings hold is added to `writes`.
    pub(super) fn space_of_call(
        &mut self,
        call: &Call,
        result: i64,
        writes: &mut Vec<Bytes>,
    ) -> Result<Option<Space>> {
        if (-4095..0).contains(&result) {
            return Ok(None);
        }
        let [first, ..] = call.args;
        let space = match i64::try_from(call.number).unwrap_or(-1) {
            libc::SYS_shmat => {
                let spans = image::spans(self.process.pid)?;
                let found = spans.into_iter().find(|span| span.start == result as u64);
                let Some(span) = found else {
                    return Ok(None);
                };
                writes.extend(content(&self.process, span.start, span.end));
                Space::Map(span)
            }
            libc::SYS_shmdt => match self.space.files.span_at(first) {
                Some(span) => Space::Unmap(span),
                None => return Ok(None),
            },
            libc::SYS_brk => match self.space.set_brk(result as u64) {
                Some(space) => space,
                None => return Ok(None),
            },
            _ => match stated(&self.process, call.number, call.args, result, writes)? {
                Some(space) => space,
                None => return Ok(None),
            },
        };
        let (start, end) = match space {
            Space::Map(span) | Space::Unmap(span) | Space::Protect(span) | Space::Discard(span) => {
                (span.start, span.end)
            }
            Space::Move { from, .. } => (from.start, from.end),
        };
        match space {
            Space::Map(span) | Space::Protect(span) | Space::Unmap(span) => {
                self.space.protect(span);
                self.replaced(span)?;
            }
            Space::Move { from, to } => {
                self.space.move_to(from, to);
                self.replaced(from)?;
                self.replaced(to)?;
            }
            Space::Discard(_) => {}
        }
        if self.translator.has_code_in(start, end) {
            self.forget(start, end)?;
        }
        Ok(Some(space))
    }

    /// The program has changed what it has there. Other code may be written by it without our seeing that.
    fn replaced(&mut self, span: Span) -> Result<()> {
        let codes = self.space.guards.replaced(span);
        match codes.is_empty() {
            true => Ok(()),
            false => self.forget_codes(&codes),
        }
    }

    /// The file that a call has mapped.
    pub(super) fn mapped_file(&self, call: &Call, result: i64) -> Option<MappedFile> {
        let [_, length, protection, flags, descriptor, offset] = call.args;
        let maps = call.number == libc::SYS_mmap as u64 && !(-4095..0).contains(&result);
        if !maps || flags & libc::MAP_ANONYMOUS as u64 != 0 {
            return None;
        }
        let link = format!("/proc/{}/fd/{}", self.process.pid, descriptor as i32);
        let path = std::fs::read_link(link).ok()?;
        let span = whole(result as u64, length, protection as u32);
        Some(MappedFile {
            start: span.start,
            end: span.end,
            offset,
            protection: span.protection,
            path: path.to_string_lossy().into_owned(),
        })
    }
}

//! System calls that change the address space.

use super::Recorder;
use super::address_space::PAGE;
use super::image::{self, content};
use super::known;
use super::system_call::Call;
use crate::error::Result;
use crate::log::{Bytes, MappedFile, Space, Span};
use crate::tracee::Tracee;

/// mremap(2): what is moved stays mapped. Private memory is empty there, and shared memory is mapped twice.
pub(super) const MREMAP_DONTUNMAP: u64 = 4;
/// madvise(2): what drops pages, beside those that libc names: MADV_DONTNEED_LOCKED, MADV_GUARD_INSTALL.
const DROPS: [i32; 2] = [24, 102];

pub(super) fn whole(start: u64, length: u64, protection: u32) -> Span {
    Span {
        start,
        end: (start + length).next_multiple_of(PAGE),
        protection,
    }
}

/// What a call that succeeded did to the address space, if its arguments and its result say it. What file mappings hold is added to
/// `writes`.
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
        libc::SYS_mremap if maps_once_more(process, first, length, fourth)? => {
            let span = whole(result as u64, third, 3);
            writes.extend(content(process, span.start, span.end));
            Space::Map(span)
        }
        libc::SYS_mremap => Space::Move {
            from: whole(first, length, 0),
            to: whole(result as u64, third, 3),
        },
        _ => return Ok(None),
    }))
}

/// Whether mremap(2), which has succeeded, has mapped the same memory once more.
fn maps_once_more(process: &Tracee, from: u64, length: u64, flags: u64) -> Result<bool> {
    Ok(length == 0 || flags & MREMAP_DONTUNMAP != 0 && known::is_shared(process, from)?)
}

/// Whether an advice drops pages.
fn drops(advice: u64) -> bool {
    let known = matches!(
        advice as i32,
        libc::MADV_DONTNEED | libc::MADV_FREE | libc::MADV_REMOVE
    );
    known || DROPS.contains(&(advice as i32))
}

/// What else a call did: one that has failed may have done a part of what it was to do, one that has moved memory may have left some
/// there, and one that drops pages does not drop all. What is there now is added to `writes`.
pub(super) fn beside(
    process: &Tracee,
    number: u64,
    args: [u64; 6],
    result: i64,
    writes: &mut Vec<Bytes>,
) -> Result<Vec<Space>> {
    let [first, length, third, fourth, ..] = args;
    let has_failed = (-4095..0).contains(&result);
    Ok(match i64::try_from(number).unwrap_or(-1) {
        libc::SYS_mremap
            if !has_failed
                && fourth & MREMAP_DONTUNMAP != 0
                && !known::is_shared(process, first)? =>
        {
            let span = whole(first, length, 3);
            writes.extend(known::held(process, span)?);
            vec![Space::Map(span)]
        }
        // Up to where it has failed.
        libc::SYS_mprotect | libc::SYS_pkey_mprotect if has_failed => {
            let protection = third as u32;
            let mut at = first;
            let mut parts = parts(process, first, length)?;
            parts.retain(|part| {
                let is_one = part.start == at && part.protection == protection;
                at = if is_one { part.end } else { u64::MAX };
                is_one
            });
            parts.into_iter().map(Space::Protect).collect()
        }
        // If it has failed, some of it: what is there now says so.
        libc::SYS_madvise if drops(third) => {
            let Some(span) = pages(first, length) else {
                return Ok(Vec::new());
            };
            let is_refused = result == -i64::from(libc::EINVAL);
            let dropped = known::dropped(process, span, third as i32, is_refused)?;
            let spaces = dropped.into_iter().map(|(part, held)| {
                writes.extend(held);
                Space::Discard(part)
            });
            spaces.collect()
        }
        _ => Vec::new(),
    })
}

/// The pages of a range that a call was given; `None` where no range begins.
fn pages(start: u64, length: u64) -> Option<Span> {
    let end = start.checked_add(length)?.checked_next_multiple_of(PAGE)?;
    start.is_multiple_of(PAGE).then_some(Span {
        start,
        end,
        protection: 0,
    })
}

/// What is mapped of a range that a call was given, lowest first.
fn parts(process: &Tracee, start: u64, length: u64) -> Result<Vec<Span>> {
    let Some(pages) = pages(start, length) else {
        return Ok(Vec::new());
    };
    let spans = image::spans(process.shown)?.into_iter();
    Ok(spans.filter_map(|span| span.common(pages)).collect())
}

impl Recorder {
    /// What a call did to the address space beside [`Self::space_of_call`].
    pub(super) fn beside_call(
        &mut self,
        tid: i32,
        call: &Call,
        result: i64,
        writes: &mut Vec<Bytes>,
    ) -> Result<Vec<Space>> {
        let spaces = beside(&self.process, call.number, call.args, result, writes)?;
        for space in &spaces {
            self.changed(*space)?;
            self.follow_files(tid, call, *space)?;
        }
        Ok(spaces)
    }

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
                let spans = image::spans(self.process.shown)?;
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
        self.changed(space)?;
        Ok(Some(space))
    }

    /// The program has changed its address space.
    fn changed(&mut self, space: Space) -> Result<()> {
        let (place, other) = match space {
            Space::Map(span) | Space::Unmap(span) | Space::Protect(span) | Space::Discard(span) => {
                (span, None)
            }
            Space::Move { from, to } => (from, Some(to)),
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
        for Span { start, end, .. } in std::iter::once(place).chain(other) {
            if self.translator.has_code_in(start, end) {
                self.forget(start, end)?;
            }
        }
        Ok(())
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
        let link = format!("/proc/{}/fd/{}", self.process.shown, descriptor as i32);
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

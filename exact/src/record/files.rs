//! Memory that can change without the program writing to its addresses: what files and shared memory hold, in all places where the
//! program has mapped them.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use rustc_hash::FxHashMap;

use super::Recorder;
use super::address_space::{PAGE, without};
use super::image::content;
use super::system_call::Call;
use crate::error::Result;
use crate::log::{Bytes, Shared, Space, Span};

/// Device and inode of a file. Shared memory without a file has none, and is numbered.
type Identity = (u64, u64);
/// No device.
const ANONYMOUS: u64 = u64::MAX;
/// Nor has a segment of System V.
const SEGMENT: u64 = ANONYMOUS - 1;

#[derive(Debug, Clone, Copy)]
struct Mapping {
    span: Span,
    /// The number of the file, and where in it the mapping begins.
    object: u64,
    offset: u64,
    is_shared: bool,
}

impl Mapping {
    /// Where it shows these bytes of the file.
    fn shows(&self, bytes: &Range<u64>) -> Option<(u64, u64)> {
        let length = self.span.end - self.span.start;
        let start = bytes.start.max(self.offset);
        let end = bytes.end.min(self.offset + length);
        let at = |byte: u64| byte - self.offset + self.span.start;
        (start < end).then(|| (at(start), at(end)))
    }

    fn part(&self, span: Span) -> Mapping {
        let offset = self.offset + (span.start - self.span.start);
        Mapping {
            span,
            offset,
            ..*self
        }
    }
}

/// The mappings of files and of shared memory that the program has made.
#[derive(Debug, Default)]
pub(super) struct Files {
    mappings: Vec<Mapping>,
    numbers: FxHashMap<Identity, u64>,
}

impl Files {
    fn number(&mut self, identity: Option<Identity>) -> u64 {
        let new = self.numbers.len() as u64;
        let identity = identity.unwrap_or((ANONYMOUS, new));
        *self.numbers.entry(identity).or_insert(new)
    }

    /// The program has other memory there, or none.
    fn remove(&mut self, span: Span) -> Vec<Mapping> {
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for known in self.mappings.drain(..) {
            for part in without(known.span, span) {
                kept.push(known.part(part));
            }
            if let Some(common) = known.span.common(span) {
                gone.push(known.part(common));
            }
        }
        self.mappings = kept;
        gone
    }

    /// Follows what a call did to the address space.
    fn follow(&mut self, space: Space) {
        match space {
            Space::Map(span) | Space::Unmap(span) => drop(self.remove(span)),
            Space::Protect(span) => {
                for part in self.remove(span) {
                    let protection = span.protection;
                    let span = Span {
                        protection,
                        ..part.span
                    };
                    self.mappings.push(Mapping { span, ..part });
                }
            }
            Space::Move { from, to } => {
                let moved = self.remove(from);
                self.remove(to);
                for part in moved {
                    // What has grown is more of the same file.
                    let start = to.start + (part.span.start - from.start);
                    let end = match part.span.end == from.end {
                        true => to.end,
                        false => start + (part.span.end - part.span.start),
                    };
                    let span = Span {
                        start,
                        end: end.min(to.end),
                        ..part.span
                    };
                    if span.start < span.end {
                        self.mappings.push(Mapping { span, ..part });
                    }
                }
            }
            Space::Discard(_) => {}
        }
    }

    /// The pages by which the program can write to the memory of a page, each with its protection.
    pub(super) fn writable(&self, page: u64) -> Vec<(u64, u32)> {
        let at = page * PAGE;
        let has = |known: &&Mapping| (known.span.start..known.span.end).contains(&at);
        let Some(own) = self.mappings.iter().find(has) else {
            return Vec::new();
        };
        let offset = at - own.span.start + own.offset;
        let others = self.mappings.iter().filter(|known| {
            let can_write = known.span.protection & libc::PROT_WRITE as u32 != 0;
            known.object == own.object && known.is_shared && can_write
        });
        let shown = others.filter_map(|known| {
            let (start, _) = known.shows(&(offset..offset + PAGE))?;
            Some((start / PAGE, known.span.protection))
        });
        shown.collect()
    }

    /// Whether a page is one of shared memory.
    pub(super) fn is_shared(&self, page: u64) -> bool {
        let at = page * PAGE;
        let mut all = self.mappings.iter();
        all.any(|known| known.is_shared && (known.span.start..known.span.end).contains(&at))
    }

    /// Memory elsewhere that is the same as what can be written in a span.
    fn same_as(&self, span: Span) -> Vec<Span> {
        let meets = |known: &&Mapping| known.span.start < span.end && span.start < known.span.end;
        let mut same = Vec::new();
        for own in self.mappings.iter().filter(meets) {
            if !own.is_shared || own.span.protection & libc::PROT_WRITE as u32 == 0 {
                continue;
            }
            let length = own.span.end - own.span.start;
            let bytes = own.offset..own.offset + length;
            let others = self
                .mappings
                .iter()
                .filter(|known| known.object == own.object);
            same.extend(others.filter_map(|known| {
                let (start, end) = known.shows(&bytes)?;
                Some(Span {
                    start,
                    end,
                    protection: 0,
                })
            }));
        }
        same
    }

    /// What is mapped from an address on.
    fn at(&self, start: u64) -> Option<Mapping> {
        let has = |known: &&Mapping| (known.span.start..known.span.end).contains(&start);
        let known = self.mappings.iter().find(has)?;
        Some(known.part(Span {
            start,
            ..known.span
        }))
    }

    /// The mapping that begins at an address.
    pub(super) fn span_at(&self, start: u64) -> Option<Span> {
        let mut all = self.mappings.iter();
        let found = all.find(|known| known.span.start == start);
        found.map(|known| known.span)
    }

    /// Whether other processes would see what the program writes to memory.
    pub(super) fn has_shared(&self) -> bool {
        !self.shared().is_empty()
    }

    /// Where they would.
    pub(super) fn shared(&self) -> Vec<Span> {
        let is_written = |known: &&Mapping| {
            known.is_shared && known.span.protection & libc::PROT_WRITE as u32 != 0
        };
        let written = self.mappings.iter().filter(is_written);
        written.map(|known| known.span).collect()
    }
}

/// What a call has changed in a file: in which, and from where to where.
enum Changed {
    Some(u64, Range<u64>),
    /// All of it may be otherwise, and it may be shorter.
    All(String),
}

impl Recorder {
    fn identity(&self, link: &str) -> Option<Identity> {
        let data = fs::metadata(format!("/proc/{}/{link}", self.process.shown)).ok()?;
        data.is_file().then(|| (data.dev(), data.ino()))
    }

    /// A call has changed the address space. Returns what it has mapped, if that is shared.
    pub(super) fn follow_files(
        &mut self,
        tid: i32,
        call: &Call,
        space: Space,
    ) -> Result<Option<Shared>> {
        self.space.files.follow(space);
        let [segment, _, _, flags, descriptor, offset] = call.args;
        let mut shared = None;
        if let Space::Map(span) = space
            && call.number == libc::SYS_shmat as u64
        {
            let object = self.space.files.number(Some((SEGMENT, segment)));
            self.space.files.mappings.push(Mapping {
                span,
                object,
                offset: 0,
                is_shared: true,
            });
            shared = Some(Shared { object, offset: 0 });
        }
        if let Space::Map(span) = space
            && call.number == libc::SYS_mremap as u64
            && let Some(own) = self.space.files.at(segment)
            && own.is_shared
        {
            // The same memory once more.
            let (object, offset) = (own.object, own.offset);
            let protection = own.span.protection;
            let span = Span { protection, ..span };
            self.space.files.mappings.push(Mapping { span, ..own });
            shared = Some(Shared { object, offset });
        }
        let is_mmap = call.number == libc::SYS_mmap as u64;
        let is_shared = matches!(
            flags as i32 & libc::MAP_TYPE,
            libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE
        );
        let is_file = flags & libc::MAP_ANONYMOUS as u64 == 0;
        if let Space::Map(span) = space
            && is_mmap
            && (is_shared || is_file)
        {
            let identity = match is_file {
                true => self.identity(&format!("fd/{}", descriptor as i32)),
                false => None,
            };
            let object = self.space.files.number(identity);
            let offset = if is_file { offset } else { 0 };
            self.space.files.mappings.push(Mapping {
                span,
                object,
                offset,
                is_shared,
            });
            shared = is_shared.then_some(Shared { object, offset });
        }
        if let Space::Map(span) | Space::Protect(span) | Space::Move { to: span, .. } = space {
            // Code that was translated can be written from here, now.
            for same in self.space.files.same_as(span) {
                let pages = self.translator.pages_in(same.start, same.end);
                self.guard_pages(tid, pages)?;
            }
        }
        Ok(shared)
    }

    /// What a call did to files that are mapped: what is there now is added to `writes`, and what is not any more to the spaces.
    pub(super) fn file_changes(
        &mut self,
        call: &Call,
        result: i64,
        writes: &mut Vec<Bytes>,
    ) -> Vec<Space> {
        let mut gone = Vec::new();
        if result < 0 || self.space.files.mappings.is_empty() {
            return gone;
        }
        let Some(changed) = self.changed_file(call, result) else {
            return gone;
        };
        let (link, bytes) = match changed {
            Changed::Some(descriptor, bytes) => (format!("fd/{}", descriptor as i32), Some(bytes)),
            Changed::All(link) => (link, None),
        };
        let Some(identity) = self.identity(&link) else {
            return gone;
        };
        let Some(object) = self.space.files.numbers.get(&identity) else {
            return gone;
        };
        let all = self.space.files.mappings.iter();
        for mapping in all.filter(|mapping| mapping.object == *object) {
            let Some(bytes) = &bytes else {
                gone.push(Space::Discard(mapping.span));
                writes.extend(content(&self.process, mapping.span.start, mapping.span.end));
                continue;
            };
            if let Some((at, end)) = mapping.shows(bytes) {
                let bytes = self.process.bytes(at, (end - at) as usize);
                writes.push(Bytes { at, bytes });
            }
        }
        gone
    }

    fn changed_file(&self, call: &Call, result: i64) -> Option<Changed> {
        let [first, second, third, fourth, ..] = call.args;
        let length = result as u64;
        let is_known = |descriptor: u64| {
            let identity = self.identity(&format!("fd/{}", descriptor as i32))?;
            self.space.files.numbers.get(&identity).copied()
        };
        let behind = |descriptor: u64| {
            is_known(descriptor)?;
            let end = self.position(descriptor)?;
            Some(Changed::Some(descriptor, end.checked_sub(length)?..end))
        };
        let at = |descriptor, start: u64| {
            Some(Changed::Some(descriptor, start..start.checked_add(length)?))
        };
        // Where a pointer to the offset is given, that is behind what was written now.
        let told = |descriptor, pointer: u64| match pointer {
            0 => behind(descriptor),
            _ => at(
                descriptor,
                self.process.word(pointer).ok()?.checked_sub(length)?,
            ),
        };
        match i64::try_from(call.number).unwrap_or(-1) {
            libc::SYS_write | libc::SYS_writev | libc::SYS_sendfile => behind(first),
            libc::SYS_pwritev2 if fourth == u64::MAX => behind(first),
            libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2
                if self.appends(call, first) =>
            {
                let end = self.length(first)?;
                Some(Changed::Some(first, end.checked_sub(length)?..end))
            }
            libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => at(first, fourth),
            libc::SYS_copy_file_range | libc::SYS_splice => told(third, fourth),
            libc::SYS_ftruncate | libc::SYS_fallocate => {
                Some(Changed::All(format!("fd/{}", first as i32)))
            }
            libc::SYS_truncate => self.path(first).map(Changed::All),
            libc::SYS_creat => Some(Changed::All(format!("fd/{result}"))),
            libc::SYS_open if second & libc::O_TRUNC as u64 != 0 => {
                Some(Changed::All(format!("fd/{result}")))
            }
            libc::SYS_openat if third & libc::O_TRUNC as u64 != 0 => {
                Some(Changed::All(format!("fd/{result}")))
            }
            _ => None,
        }
    }

    /// The file of this name, from /proc/PID on.
    fn path(&self, pointer: u64) -> Option<String> {
        let bytes = self.process.bytes(pointer, PAGE as usize);
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let path = std::str::from_utf8(&bytes[..end]).ok()?;
        Some(match path.strip_prefix('/') {
            Some(path) => format!("root/{path}"),
            None => format!("cwd/{path}"),
        })
    }

    /// Where a descriptor is in its file.
    pub(super) fn position(&self, descriptor: u64) -> Option<u64> {
        self.told_of(descriptor, "pos:")?.parse().ok()
    }

    /// Whether a call that names a place in a file writes to its end all the same.
    fn appends(&self, call: &Call, descriptor: u64) -> bool {
        const RWF_APPEND: u64 = 0x10;
        const RWF_NOAPPEND: u64 = 0x20;
        let asked = match call.number == libc::SYS_pwritev2 as u64 {
            true => call.args[5],
            false => 0,
        };
        let flags = self.told_of(descriptor, "flags:");
        let flags = flags.and_then(|flags| i32::from_str_radix(&flags, 8).ok());
        let is_opened_so = flags.is_some_and(|flags| flags & libc::O_APPEND != 0);
        asked & RWF_APPEND != 0 || is_opened_so && asked & RWF_NOAPPEND == 0
    }

    /// How long the file of a descriptor is.
    fn length(&self, descriptor: u64) -> Option<u64> {
        let path = format!("/proc/{}/fd/{}", self.process.shown, descriptor as i32);
        fs::metadata(path).ok().map(|data| data.len())
    }

    /// What the kernel tells of a descriptor by this name.
    fn told_of(&self, descriptor: u64, name: &str) -> Option<String> {
        let path = format!("/proc/{}/fdinfo/{}", self.process.shown, descriptor as i32);
        let text = fs::read_to_string(path).ok()?;
        let told = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(told.trim().to_owned())
    }
}

//! Memory that the program had mapped in several places at once: here it is a file in memory, which is mapped in the same places. All
//! copies of the process share it, so that its content is kept with each.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Replay;
use crate::error::{Context as _, Result};
use crate::log::{Entry, Shared, Space, Span};
use crate::translate::layout;

const PAGE: usize = 4096;

/// What the files hold, without pages of zeros: which file, where, and the bytes.
pub(super) type Content = Arc<Vec<(u64, u64, Vec<u8>)>>;

struct Object {
    descriptor: i64,
    file: File,
    length: u64,
}

/// The memory that is shared, by its numbers.
#[derive(Default)]
pub(super) struct Objects {
    all: FxHashMap<u64, Object>,
    /// All places where it is at any time.
    spans: Vec<Span>,
    /// Entries that map it while it is mapped nowhere: it begins anew.
    first: FxHashSet<usize>,
}

/// A mapping that there is at a moment.
struct Mapping {
    span: Span,
    shared: Shared,
}

/// What a recording says about it.
#[derive(Default)]
pub(super) struct Plan {
    mapped: Vec<Mapping>,
    lengths: FxHashMap<u64, u64>,
    /// What is mapped twice at a time.
    twice: FxHashSet<u64>,
    spans: Vec<(u64, Span)>,
    first: FxHashSet<usize>,
}

impl Plan {
    /// What the next entry says, which has this number.
    pub(super) fn see(&mut self, index: usize, entry: &Entry) {
        let Entry::SystemCall {
            space: Some(space),
            shared,
            ..
        } = entry
        else {
            return;
        };
        match *space {
            Space::Map(span) => {
                self.remove(span);
                if let Some(shared) = shared {
                    self.add(index, span, *shared);
                }
            }
            Space::Unmap(span) => self.remove(span),
            Space::Move { from, to } => self.move_to(index, from, to),
            Space::Protect(_) | Space::Discard(_) => {}
        }
    }

    fn add(&mut self, index: usize, span: Span, shared: Shared) {
        let end = shared.offset + (span.end - span.start);
        let length = self.lengths.entry(shared.object).or_default();
        *length = end.max(*length);
        let same = |other: &&Mapping| other.shared.object == shared.object;
        let mut others = self.mapped.iter().filter(same).peekable();
        if others.peek().is_none() {
            self.first.insert(index);
        }
        let overlaps = |other: &Mapping| {
            let length = other.span.end - other.span.start;
            other.shared.offset < end && shared.offset < other.shared.offset + length
        };
        if others.any(overlaps) {
            self.twice.insert(shared.object);
        }
        self.spans.push((shared.object, span));
        self.mapped.push(Mapping { span, shared });
    }

    fn remove(&mut self, gone: Span) {
        let all = std::mem::take(&mut self.mapped);
        for Mapping { span, shared } in all {
            let parts = [
                (span.start, span.end.min(gone.start)),
                (span.start.max(gone.end), span.end),
            ];
            for (start, end) in parts.into_iter().filter(|(start, end)| start < end) {
                let offset = shared.offset + (start - span.start);
                self.mapped.push(Mapping {
                    span: Span { start, end, ..span },
                    shared: Shared { offset, ..shared },
                });
            }
        }
    }

    fn move_to(&mut self, index: usize, from: Span, to: Span) {
        let has = |known: &&Mapping| (known.span.start..known.span.end).contains(&from.start);
        let moved = self.mapped.iter().find(has).map(|known| Shared {
            offset: known.shared.offset + (from.start - known.span.start),
            ..known.shared
        });
        self.remove(from);
        self.remove(to);
        if let Some(shared) = moved {
            self.add(index, to, shared);
            self.first.remove(&index);
        }
    }
}

impl Replay {
    /// Makes the files, before there are copies of the process.
    pub(super) fn make_objects(&mut self, plan: Plan) -> Result<()> {
        let pid = self.process.pid;
        for number in &plan.twice {
            let length = plan.lengths.get(number).copied().unwrap_or(0);
            // The block of a thread is empty: that is no name.
            let args = [layout::block(self.translator.low(), 1), 0, 0, 0, 0, 0];
            let descriptor = self.process.call(pid, libc::SYS_memfd_create, args)?;
            let mut options = File::options();
            let file = options.read(true).write(true);
            let file = file.open(format!("/proc/{pid}/fd/{descriptor}"));
            let file = file.context("open memory that is shared")?;
            file.set_len(length).context("make memory that is shared")?;
            let object = Object {
                descriptor,
                file,
                length,
            };
            self.objects.all.insert(*number, object);
        }
        let spans = plan.spans.iter();
        let spans = spans.filter(|(number, _)| plan.twice.contains(number));
        self.objects.spans = spans.map(|(_, span)| *span).collect();
        self.objects.first = plan.first;
        Ok(())
    }

    /// If the call at entry `index` has mapped such memory, where: what mmap(2) is to get.
    pub(super) fn shared_mapping(
        &self,
        index: usize,
        shared: Option<Shared>,
    ) -> Result<Option<(i64, u64)>> {
        let Some(shared) = shared else {
            return Ok(None);
        };
        let Some(object) = self.objects.all.get(&shared.object) else {
            return Ok(None);
        };
        if self.objects.first.contains(&index) {
            object.clear()?;
        }
        Ok(Some((object.descriptor, shared.offset)))
    }

    /// Whether any of such memory may be there at any time.
    pub(super) fn is_shared(&self, span: Span) -> bool {
        let meets = |known: &Span| known.start < span.end && span.start < known.end;
        self.objects.spans.iter().any(meets)
    }

    /// Where it is at any time.
    pub(super) fn shared_spans(&self) -> &[Span] {
        &self.objects.spans
    }

    /// What it holds.
    pub(super) fn shared_content(&self) -> Result<Content> {
        let mut content = Vec::new();
        for (number, object) in &self.objects.all {
            object.read(*number, &mut content)?;
        }
        Ok(Arc::new(content))
    }

    /// It holds this again.
    pub(super) fn set_shared_content(&self, content: &Content) -> Result<()> {
        for object in self.objects.all.values() {
            object.clear()?;
        }
        for (number, at, bytes) in content.iter() {
            if let Some(object) = self.objects.all.get(number) {
                let written = object.file.write_all_at(bytes, *at);
                written.context("write memory that is shared")?;
            }
        }
        Ok(())
    }
}

impl Object {
    fn clear(&self) -> Result<()> {
        let cleared = self.file.set_len(0);
        let cleared = cleared.and_then(|()| self.file.set_len(self.length));
        cleared.context("clear memory that is shared")
    }

    fn read(&self, number: u64, content: &mut Vec<(u64, u64, Vec<u8>)>) -> Result<()> {
        let mut page = [0; PAGE];
        for at in (0..self.length).step_by(PAGE) {
            let read = self.file.read_at(&mut page, at);
            let read = read.context("read memory that is shared")?;
            if page[..read].iter().all(|byte| *byte == 0) {
                continue;
            }
            match content.last_mut() {
                Some((last, start, bytes))
                    if *last == number && *start + bytes.len() as u64 == at =>
                {
                    bytes.extend_from_slice(&page[..read])
                }
                _ => content.push((number, at, page[..read].to_vec())),
            }
        }
        Ok(())
    }
}

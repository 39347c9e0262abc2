//! Memory at a moment: for each byte the latest event that showed it.
//!
//! | source | shows |
//! |---|---|
//! | pause | the stack from rsp on, at most 64 KiB; a watched place |
//! | write, logged write | the bytes written |
//! | enter | the return address in its slot, as long as the call is open |
//! | enter, leave | what was captured with them: the stack from rsp on, texts, watched values |
//! | snapshot | all writable memory that is not shared |
//! | module file | what is mapped from it read-only |
//! | core file | all memory in it, and no other source is used then |
//! | every instruction | all memory, and no other source is used then |
//!
//! A new source is one more function that [`State::newest`] calls. Each source first says which bytes it has and since
//! when; only bytes that no newer source hides are copied.

use std::ops::Range;
use std::sync::Arc;

use store::wire::Section;

use crate::calls::CallHead;
use crate::captures::Capture;
use crate::error::Result;
use crate::event::Kind;
use crate::modules::read_only;
use crate::snapshots::Last;
use crate::state::{Reason, Seen, State};

/// Most open calls whose slots are examined for one read.
const MAX_SLOTS: usize = 100_000;
/// Most captures before an event that are examined.
const MAX_CAPTURES: usize = 256;
const WORD: u64 = 8;
/// Slots no further apart than this count as one stack.
const SAME_STACK: u64 = 1 << 20;

/// A saved stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    pub seq: u64,
    pub addr: u64,
    pub len: u64,
}

impl Stack {
    fn range(&self) -> Range<u64> {
        self.addr..self.addr.saturating_add(self.len)
    }
}

/// Consecutive bytes from one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where they begin.
    pub address: u64,
    /// How many.
    pub len: u64,
    /// The bytes, as far as they are known.
    pub bytes: Seen<Vec<u8>>,
}

/// Some bytes that an event showed.
struct Piece {
    address: u64,
    bytes: Vec<u8>,
    shown: u64,
    /// They cannot have changed, or not since they were shown.
    is_constant: bool,
}

/// Bytes that some event showed, and how to get them.
struct ByteSource<'s> {
    address: u64,
    len: u64,
    held: Held<'s>,
    shown: u64,
    is_constant: bool,
}

impl ByteSource<'_> {
    fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.len)
    }
}

enum Held<'s> {
    Bytes(Vec<u8>),
    Slice(&'s [u8]),
    /// In this section of a capture.
    Captured(Capture, usize),
}

/// The progress of one read of memory.
struct Gaps {
    /// The ranges not found yet, unordered.
    left: Vec<Range<u64>>,
    runs: Vec<Run>,
    /// The event of the read.
    now: u64,
}

impl Gaps {
    /// From the first gap to the end of the last.
    fn hull(&self) -> Option<Range<u64>> {
        let start = self.left.iter().map(|gap| gap.start).min()?;
        let end = self.left.iter().map(|gap| gap.end).max()?;
        Some(start..end)
    }

    /// Returns whether some of `range` lies in a gap.
    fn want(&self, range: &Range<u64>) -> bool {
        self.left.iter().any(|gap| overlap(gap, range).is_some())
    }

    /// Moves the part of the gaps that `piece` shows into runs.
    fn fill(&mut self, piece: &Piece) {
        let whole = piece.address..piece.address.saturating_add(piece.bytes.len() as u64);
        let mut left = Vec::new();
        for gap in self.left.drain(..) {
            let Some(part) = overlap(&gap, &whole) else {
                left.push(gap);
                continue;
            };
            let from = (part.start - piece.address) as usize;
            let to = (part.end - piece.address) as usize;
            let is_known = piece.is_constant || piece.shown == self.now;
            self.runs.push(Run {
                address: part.start,
                len: part.end - part.start,
                bytes: Seen::at(piece.bytes[from..to].to_vec(), piece.shown, is_known),
            });
            left.extend([gap.start..part.start, part.end..gap.end]);
        }
        left.retain(|gap| !gap.is_empty());
        self.left = left;
    }
}

impl State<'_> {
    /// Returns `len` bytes at `address` in consecutive runs, as far as they are known.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn memory(&self, address: u64, len: u64) -> Result<Vec<Run>> {
        if let Some(core) = &self.timeline.core {
            let range = address..address.saturating_add(len);
            return Ok(core.memory(&self.timeline.modules, self.seq, range));
        }
        if let Some((every, position)) = self.every()? {
            if every.is_over(position)? {
                return Ok(vec![Run {
                    address,
                    len,
                    bytes: Seen::Unknown(Reason::Unrecorded),
                }]);
            }
            return every.memory(position, self.seq, address..address.saturating_add(len));
        }
        let mut gaps = Gaps {
            left: vec![address..address.saturating_add(len)],
            runs: Vec::new(),
            now: self.seq,
        };
        self.newest(&mut gaps)?;
        let Gaps { left, mut runs, .. } = gaps;
        let last = match left.is_empty() {
            true => None,
            false => self.last_snapshot()?,
        };
        runs.extend(left.into_iter().filter(|gap| !gap.is_empty()).map(|gap| {
            let why = self.timeline.modules.why_absent(gap.start, self.seq);
            let is_older = |last: &Last| self.timeline.snapshots.is_older(last, gap.start);
            let reason = match why {
                Some(why) => Reason::NoModule(why),
                None if last.as_ref().is_some_and(is_older) => Reason::OnlyBefore,
                None => Reason::NotCaptured,
            };
            Run {
                address: gap.start,
                len: gap.end - gap.start,
                bytes: Seen::Unknown(reason),
            }
        }));
        let mut runs = self.without_earlier_blocks(runs)?;
        runs.sort_by_key(|run| run.address);
        Ok(runs)
    }

    /// Removes content of freed heap blocks, older than the present blocks there.
    fn without_earlier_blocks(&self, mut runs: Vec<Run>) -> Result<Vec<Run>> {
        let is_stale = |run: &Run| matches!(run.bytes, Seen::Stale { .. });
        if !runs.iter().any(is_stale) {
            return Ok(runs);
        }
        let Some(heap) = self.timeline.heap()? else {
            return Ok(runs);
        };
        let mut kept = Vec::with_capacity(runs.len());
        while let Some(run) = runs.pop() {
            let Seen::Stale { value, as_of } = &run.bytes else {
                kept.push(run);
                continue;
            };
            let range = run.address..run.address.saturating_add(run.len);
            let Some((part, given)) = heap.given(&range, *as_of, self.seq) else {
                kept.push(run);
                continue;
            };
            for rest in [range.start..part.start, part.end..range.end] {
                let within = (rest.start - range.start) as usize..(rest.end - range.start) as usize;
                if !rest.is_empty() {
                    runs.push(Run {
                        address: rest.start,
                        len: rest.end - rest.start,
                        bytes: Seen::at(value[within].to_vec(), *as_of, false),
                    });
                }
            }
            kept.push(Run {
                address: part.start,
                len: part.end - part.start,
                bytes: Seen::Unknown(Reason::HandedOutSince(given)),
            });
        }
        Ok(kept)
    }

    /// Returns whether the stack memory that ends at `end`, as event `shown` showed it, belongs to the innermost recorded
    /// call around it. Older content belonged to frames that are gone. So did a copy at the call's entry: the call's
    /// first instructions had not run.
    pub(crate) fn is_of_frame(&self, end: u64, shown: u64) -> Result<bool> {
        for index in 0..MAX_SLOTS {
            let Some(link) = self.open_call(index)? else {
                break;
            };
            if is_around(link.slot, end) {
                let begun = link.call.start;
                let is_copy = self.timeline.snapshots.is_at(shown);
                return Ok(shown >= begun && (!is_copy || self.has_run_on(begun, shown)?));
            }
        }
        Ok(true)
    }

    /// Returns whether the thread is known to have run after event `begun` and before memory was copied with event
    /// `copied`. Either an event of its own in between shows that, or its stop for which the copy was made, which
    /// follows.
    fn has_run_on(&self, begun: u64, copied: u64) -> Result<bool> {
        let timeline = self.timeline;
        let between = timeline.last_of_thread(self.tid, copied, begun + 1)?;
        if between.is_some() {
            return Ok(true);
        }
        let next = timeline.others.head(copied + 1)?;
        Ok(next.is_some_and(|head| head.kind == Kind::Pause && head.tid == Some(self.tid)))
    }

    /// Fills gaps from what was shown, latest first, until there are none.
    fn newest(&self, gaps: &mut Gaps) -> Result<()> {
        let Some(range) = gaps.hull() else {
            return Ok(());
        };
        let space = self.timeline.modules.space(self.seq);
        if let Some(mapped) = space.at(range.start) {
            let end = range.end.min(mapped.range.end);
            for part in halves(range.start..end) {
                let bytes = read_only(&space, part.start, part.end - part.start);
                let Some(bytes) = bytes else { continue };
                gaps.fill(&Piece {
                    address: part.start,
                    bytes: bytes.to_vec(),
                    shown: self.seq,
                    is_constant: true,
                });
                break;
            }
        }
        // What this very event shows is newer than all else, and answers most requests.
        if !gaps.left.is_empty()
            && let Some(capture) = self.timeline.captured_at(self.seq)?
        {
            for section in capture.sections() {
                if !gaps.want(&range_of(&section)) {
                    continue;
                }
                let mut piece = self.captured(&capture, &section, &range)?;
                piece.shown = self.seq;
                gaps.fill(&piece);
            }
        }
        let Some(range) = gaps.hull() else {
            return Ok(());
        };
        let last = self.last_snapshot()?;
        let mut sources = self.sources(gaps, last.as_ref())?.into_iter().peekable();
        let saved = &self.timeline.pauses.stacks;
        let until = saved.partition_point(|stack| stack.seq <= self.seq);
        let stacks = saved[..until].iter().rev();
        for stack in stacks.filter(|stack| overlap(&stack.range(), &range).is_some()) {
            while let Some(source) = sources.next_if(|source| source.shown >= stack.seq) {
                self.fill_from(source, &range, gaps)?;
            }
            if gaps.left.is_empty() {
                return Ok(());
            }
            if !gaps.want(&stack.range()) {
                continue;
            }
            let is_still = last.is_some_and(|last| {
                let covers = || self.timeline.snapshots.covers(&last, stack.addr);
                last.is_still && stack.seq >= last.seq && covers()
            });
            gaps.fill(&Piece {
                address: stack.addr,
                bytes: self.saved(stack)?.to_vec(),
                shown: stack.seq,
                is_constant: is_still,
            });
        }
        for source in sources {
            if gaps.left.is_empty() {
                break;
            }
            self.fill_from(source, &range, gaps)?;
        }
        Ok(())
    }

    /// Fills gaps from a source; fetches its bytes only if it covers some.
    fn fill_from(&self, source: ByteSource<'_>, range: &Range<u64>, gaps: &mut Gaps) -> Result<()> {
        if gaps.want(&source.range()) {
            gaps.fill(&self.fetched(source, range)?);
        }
        Ok(())
    }

    /// Returns the sources of the gaps, latest first, except this event, read-only memory and saved stacks.
    fn sources(&self, gaps: &Gaps, last: Option<&Last>) -> Result<Vec<ByteSource<'_>>> {
        let Some(range) = &gaps.hull() else {
            return Ok(Vec::new());
        };
        let mut sources = self.slots(range)?;
        let captures = &self.timeline.captures;
        for capture in captures.before(self.seq, MAX_CAPTURES, &gaps.left)? {
            for (index, section) in capture.sections().enumerate() {
                if gaps.want(&range_of(&section)) {
                    sources.push(ByteSource {
                        address: section.addr,
                        len: section.bytes.len() as u64,
                        held: Held::Captured(capture.clone(), index),
                        shown: capture.seq(),
                        is_constant: false,
                    });
                }
            }
        }
        sources.extend(self.shown(self.timeline.written()?, range));
        sources.extend(self.shown(&self.timeline.pauses.watched, range));
        let logged = self.timeline.logged_bytes()?.last_in(range, self.seq);
        sources.extend(logged.map(|(shown, address, bytes)| ByteSource {
            address,
            len: bytes.len() as u64,
            held: Held::Slice(bytes),
            shown,
            is_constant: false,
        }));
        if let Some(last) = last {
            // It also shows everything older than itself.
            let covers =
                |source: &ByteSource<'_>| self.timeline.snapshots.covers(last, source.address);
            sources.retain(|source| source.shown >= last.seq || !covers(source));
            for source in sources.iter_mut().filter(|source| source.shown >= last.seq) {
                source.is_constant |= last.is_still && covers(source);
            }
            let snapshots = &self.timeline.snapshots;
            let mut shown = snapshots.pieces(last, range)?;
            shown.retain(|(address, _)| !snapshots.is_older(last, *address));
            sources.extend(shown.into_iter().map(|(address, bytes)| ByteSource {
                address,
                len: bytes.len() as u64,
                held: Held::Bytes(bytes),
                shown: last.seq,
                is_constant: last.is_still || self.is_relro(last, address),
            }));
        }
        sources.sort_by_key(|source| std::cmp::Reverse(source.shown));
        Ok(sources)
    }

    /// Returns whether a snapshot shows the byte at `address` in a mapping that the dynamic linker had made read-only: such
    /// as the tables of virtual functions.
    fn is_relro(&self, last: &Last, address: u64) -> bool {
        let Some(region) = self.timeline.snapshots.region(last, address) else {
            return false;
        };
        let modules = &self.timeline.modules;
        let (then, now) = (modules.space(last.seq), modules.space(self.seq));
        let (Some(then), Some(now)) = (then.at(address), now.at(address)) else {
            return false;
        };
        let is_same = (then.number, then.bias) == (now.number, now.bias);
        is_same
            && now
                .module
                .is_relro(now.svma(region.start), now.svma(region.end))
    }

    /// The bytes of a source within `range`, or slightly more.
    fn fetched(&self, source: ByteSource<'_>, range: &Range<u64>) -> Result<Piece> {
        let (address, bytes) = match source.held {
            Held::Bytes(bytes) => (source.address, bytes),
            Held::Slice(bytes) => (source.address, bytes.to_vec()),
            Held::Captured(capture, index) => {
                let section = capture.sections().nth(index);
                let section = section.expect("it was counted among the capture's");
                let piece = self.captured(&capture, &section, range)?;
                (piece.address, piece.bytes)
            }
        };
        Ok(Piece {
            address,
            bytes,
            shown: source.shown,
            is_constant: source.is_constant,
        })
    }

    /// Returns the part of `range` that a section of a capture shows, completed to whole words at both ends.
    fn captured(
        &self,
        capture: &Capture,
        section: &Section<'_>,
        range: &Range<u64>,
    ) -> Result<Piece> {
        let end = section.addr.saturating_add(section.bytes.len() as u64);
        let from = range.start.saturating_sub(WORD - 1).max(section.addr);
        let to = range.end.saturating_add(WORD - 1).min(end);
        let within = (from - section.addr) as usize..(to - section.addr) as usize;
        let mut bytes = section.bytes[within].to_vec();
        // Only stacks have return addresses: other sections stay as they are.
        if let Some(tid) = capture.tid() {
            let seq = capture.seq();
            let innermost = match (seq, tid) == (self.seq, self.tid) {
                true => self.open_call(0)?.map(|link| link.call),
                false => self.timeline.innermost(tid, seq)?,
            };
            if innermost.is_some_and(|call| call.slot.abs_diff(section.addr) < SAME_STACK) {
                self.unhook((seq, tid), innermost, from, &mut bytes, end)?;
            }
        }
        Ok(Piece {
            address: from,
            bytes,
            shown: capture.seq(),
            is_constant: false,
        })
    }

    fn last_snapshot(&self) -> Result<Option<Last>> {
        self.timeline
            .snapshots
            .last(self.seq, &self.timeline.others)
    }

    /// The return addresses of the enclosing calls within `range`.
    fn slots(&self, range: &Range<u64>) -> Result<Vec<ByteSource<'_>>> {
        let mut sources = Vec::new();
        for index in self.first_reaching(range.start)..MAX_SLOTS {
            let Some(link) = self.open_call(index)? else {
                break;
            };
            if overlap(&(link.slot..link.slot.saturating_add(WORD)), range).is_some()
                && let Some(address) = link.returns_to
            {
                sources.push(ByteSource {
                    address: link.slot,
                    len: WORD,
                    held: Held::Bytes(address.to_le_bytes().to_vec()),
                    shown: link.call.start,
                    is_constant: false,
                });
            }
            // Stacks grow down: enclosing calls lie higher, unless they are on another stack.
            if is_around(link.slot, range.end) {
                break;
            }
        }
        Ok(sources)
    }

    /// Returns the items of `shown` (in order of events) that lie in `range` and were shown by now.
    fn shown<'s>(
        &self,
        shown: &'s [(u64, u64, Vec<u8>)],
        range: &Range<u64>,
    ) -> impl Iterator<Item = ByteSource<'s>> {
        let until = shown.partition_point(|(seq, ..)| *seq <= self.seq);
        let inside = shown[..until].iter().filter(|(_, address, bytes)| {
            let end = address.saturating_add(bytes.len() as u64);
            overlap(&(*address..end), range).is_some()
        });
        inside.map(|(seq, address, bytes)| ByteSource {
            address: *address,
            len: bytes.len() as u64,
            held: Held::Slice(bytes),
            shown: *seq,
            is_constant: false,
        })
    }

    /// A saved stack as the program sees it: the hooks' return addresses are replaced by the program's own.
    fn saved(&self, stack: &Stack) -> Result<Arc<Vec<u8>>> {
        let timeline = self.timeline;
        timeline.pauses.stack_cache.get(stack.seq, || {
            let state = timeline.pauses.state(stack.seq)?;
            let mut bytes = state.stack.clone().unwrap_or_default();
            if let Some(tid) = state.tid {
                let innermost = timeline.innermost(tid, stack.seq)?;
                let end = stack.addr.saturating_add(bytes.len() as u64);
                self.unhook((stack.seq, tid), innermost, stack.addr, &mut bytes, end)?;
            }
            Ok(bytes)
        })
    }

    /// Restores the program's own return addresses where `bytes` hold those of hooks: thread `tid` had them at `addr`
    /// just after event `seq`, in a part of its stack that reaches up to `end`, when `innermost` was its innermost open
    /// call.
    fn unhook(
        &self,
        (seq, tid): (u64, u32),
        innermost: Option<CallHead>,
        addr: u64,
        bytes: &mut [u8],
        end: u64,
    ) -> Result<()> {
        let timeline = self.timeline;
        let is_here = (seq, tid) == (self.seq, self.tid);
        let mut call = innermost;
        let mut inside: Option<(CallHead, Option<u64>)> = None;
        for index in 0..MAX_SLOTS {
            let Some(head) = call else { break };
            // Stacks grow down: enclosing calls lie higher, unless they are on another stack.
            if is_around(head.slot, end) {
                break;
            }
            let around = inside.take();
            let at = head.slot.wrapping_sub(addr) as usize;
            if let Some(word) = at.checked_add(8).and_then(|end| bytes.get_mut(at..end)) {
                let address = timeline.return_address_around(&head, around)?;
                inside = Some((head, address));
                let found = u64::from_le_bytes((&*word).try_into().expect("eight bytes"));
                // The slot of a call that ended without a return may have been reused by now.
                let is_code = timeline.modules.covers(found, seq);
                if let Some(address) = address
                    && (head.returned() || !is_code)
                {
                    word.copy_from_slice(&address.to_le_bytes());
                }
            }
            call = match is_here {
                true => self.open_call(index + 1)?.map(|link| link.call),
                false => timeline.parent(&head)?,
            };
        }
        Ok(())
    }
}

/// Returns whether a call's return address lies above memory that ends at `end`, on the same stack.
fn is_around(slot: u64, end: u64) -> bool {
    slot >= end && slot - end < SAME_STACK
}

/// The addresses of the memory that a section shows.
fn range_of(section: &Section<'_>) -> Range<u64> {
    section.addr..section.addr.saturating_add(section.bytes.len() as u64)
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> Option<Range<u64>> {
    let both = a.start.max(b.start)..a.end.min(b.end);
    (!both.is_empty()).then_some(both)
}

/// The range, then shorter and shorter beginnings of it: for memory at the end of a segment.
fn halves(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut len = range.end.saturating_sub(range.start);
    std::iter::from_fn(move || {
        let part = range.start..range.start + len;
        let is_some = len > 0;
        len /= 2;
        is_some.then_some(part)
    })
}

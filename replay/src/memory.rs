//! Memory at a moment: for each byte the latest event that showed it.
//!
//! | source | shows |
//! |---|---|
//! | pause | the stack from rsp on, at most 64 KiB; a watched place |
//! | write | the bytes written |
//! | enter | the return address in its slot, as long as the call is open |
//! | enter, leave | what was captured with them: the stack from rsp on, texts, watched values |
//! | snapshot | all writable memory that is not shared |
//! | module file | what is mapped from it read-only |
//!
//! A new source is one more function that [`State::newest`] asks.

use std::ops::Range;
use std::sync::Arc;

use crate::captures::Capture;
use crate::error::Result;
use crate::modules::read_only;
use crate::snapshots::Last;
use crate::state::{Reason, Seen, State};

/// Open calls whose slots are looked at for one read.
const MAX_SLOTS: usize = 100_000;
/// Captures before an event that are looked at for what they showed.
const MAX_CAPTURES: usize = 256;
const WORD: u64 = 8;
/// Slots no further apart are taken for those of one stack.
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

/// Bytes in a row that one source showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where they begin.
    pub address: u64,
    /// How many.
    pub len: u64,
    /// What is known of them.
    pub bytes: Seen<Vec<u8>>,
}

/// Some bytes that an event showed.
struct Piece {
    address: u64,
    bytes: Vec<u8>,
    shown: u64,
    /// They cannot have changed, or not since.
    is_constant: bool,
}

impl State<'_> {
    /// Returns what is known of `len` bytes at `address`, in runs that follow each other.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn memory(&self, address: u64, len: u64) -> Result<Vec<Run>> {
        let end = address.saturating_add(len);
        let mut unknown = vec![address..end];
        let mut runs = Vec::new();
        self.newest(&(address..end), &mut |piece| {
            fill(&mut unknown, &mut runs, &piece, self.seq);
            !unknown.is_empty()
        })?;
        runs.extend(
            unknown
                .into_iter()
                .filter(|gap| !gap.is_empty())
                .map(|gap| {
                    let why = self.timeline.modules.why_absent(gap.start, self.seq);
                    Run {
                        address: gap.start,
                        len: gap.end - gap.start,
                        bytes: Seen::Unknown(why.map_or(Reason::NotCaptured, Reason::NoModule)),
                    }
                }),
        );
        runs.sort_by_key(|run| run.address);
        Ok(runs)
    }

    /// Hands what was shown of `range` to `take`, what was shown last first, until it returns false.
    fn newest(&self, range: &Range<u64>, take: &mut dyn FnMut(Piece) -> bool) -> Result<()> {
        let space = self.timeline.modules.space(self.seq);
        if let Some(mapped) = space.at(range.start) {
            let end = range.end.min(mapped.range.end);
            for part in halves(range.start..end) {
                let bytes = read_only(&space, part.start, part.end - part.start);
                let Some(bytes) = bytes else { continue };
                let piece = Piece {
                    address: part.start,
                    bytes: bytes.to_vec(),
                    shown: self.seq,
                    is_constant: true,
                };
                if !take(piece) {
                    return Ok(());
                }
                break;
            }
        }
        // What this very event shows is newer than all else, and most of what is asked for.
        if let Some(capture) = self.timeline.captured_at(self.seq)? {
            for mut piece in self.captured(&capture, range)? {
                piece.shown = self.seq;
                if !take(piece) {
                    return Ok(());
                }
            }
        }
        let mut pieces = self.slots(range)?;
        self.timeline
            .captures
            .before(self.seq, MAX_CAPTURES, |capture| {
                pieces.extend(self.captured(&capture, range)?);
                Ok(())
            })?;
        pieces.extend(self.shown(self.timeline.written()?, range));
        pieces.extend(self.shown(&self.timeline.watched, range));
        let last = self.last_snapshot()?;
        if let Some(last) = last {
            // What is older than it, it shows too.
            let covers = |piece: &Piece| self.timeline.snapshots.covers(&last, piece.address);
            pieces.retain(|piece| piece.shown >= last.seq || !covers(piece));
            for piece in pieces.iter_mut().filter(|piece| piece.shown >= last.seq) {
                piece.is_constant |= last.is_still && covers(piece);
            }
            let shown = self.timeline.snapshots.pieces(&last, range)?;
            pieces.extend(shown.into_iter().map(|(address, bytes)| Piece {
                address,
                bytes,
                shown: last.seq,
                is_constant: last.is_still,
            }));
        }
        pieces.sort_by_key(|piece| std::cmp::Reverse(piece.shown));
        let mut pieces = pieces.into_iter().peekable();
        let saved = &self.timeline.saved_stacks;
        let until = saved.partition_point(|stack| stack.seq <= self.seq);
        let stacks = saved[..until].iter().rev();
        for stack in stacks.filter(|stack| overlap(&stack.range(), range).is_some()) {
            while let Some(piece) = pieces.next_if(|piece| piece.shown >= stack.seq) {
                if !take(piece) {
                    return Ok(());
                }
            }
            let is_still = last.is_some_and(|last| {
                let covers = || self.timeline.snapshots.covers(&last, stack.addr);
                last.is_still && stack.seq >= last.seq && covers()
            });
            let piece = Piece {
                address: stack.addr,
                bytes: self.saved(stack)?.to_vec(),
                shown: stack.seq,
                is_constant: is_still,
            };
            if !take(piece) {
                return Ok(());
            }
        }
        for piece in pieces {
            if !take(piece) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// What a capture shows of `range`.
    fn captured(&self, capture: &Capture, range: &Range<u64>) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        for section in capture.sections() {
            let end = section.addr.saturating_add(section.bytes.len() as u64);
            if overlap(&(section.addr..end), range).is_none() {
                continue;
            }
            let mut bytes = section.bytes.to_vec();
            // Only stacks have return addresses: sections elsewhere are as they are.
            if let Some(tid) = capture.tid()
                && let Some(call) = self.timeline.innermost(tid, capture.seq())?
                && call.slot.abs_diff(section.addr) < SAME_STACK
            {
                self.unhook(capture.seq(), tid, section.addr, &mut bytes)?;
            }
            pieces.push(Piece {
                address: section.addr,
                bytes,
                shown: capture.seq(),
                is_constant: false,
            });
        }
        Ok(pieces)
    }

    fn last_snapshot(&self) -> Result<Option<Last>> {
        self.timeline
            .snapshots
            .last(self.seq, &self.timeline.others)
    }

    /// The return addresses of the calls around, where they lie in `range`.
    fn slots(&self, range: &Range<u64>) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        for index in 0..MAX_SLOTS {
            let Some(link) = self.open_call(index)? else {
                break;
            };
            if overlap(&(link.slot..link.slot.saturating_add(WORD)), range).is_some()
                && let Some(address) = link.returns_to
            {
                pieces.push(Piece {
                    address: link.slot,
                    bytes: address.to_le_bytes().to_vec(),
                    shown: link.call.start,
                    is_constant: false,
                });
            }
            // Stacks grow down: what is around lies higher, unless it is on another stack.
            if link.slot >= range.end && link.slot - range.end < SAME_STACK {
                break;
            }
        }
        Ok(pieces)
    }

    /// What of `shown`, which is in the order of events, lies in `range` and was shown by now.
    fn shown(&self, shown: &[(u64, u64, Vec<u8>)], range: &Range<u64>) -> Vec<Piece> {
        let until = shown.partition_point(|(seq, ..)| *seq <= self.seq);
        let inside = shown[..until].iter().filter(|(_, address, bytes)| {
            let end = address.saturating_add(bytes.len() as u64);
            overlap(&(*address..end), range).is_some()
        });
        let piece = |(seq, address, bytes): &(u64, u64, Vec<u8>)| Piece {
            address: *address,
            bytes: bytes.clone(),
            shown: *seq,
            is_constant: false,
        };
        inside.map(piece).collect()
    }

    /// A saved stack as the program sees it: return addresses that hooks had replaced are the program's own.
    fn saved(&self, stack: &Stack) -> Result<Arc<Vec<u8>>> {
        let timeline = self.timeline;
        timeline.stack_cache.get(stack.seq, || {
            let state = timeline.state_of_pause(stack.seq)?;
            let mut bytes = state.stack.clone().unwrap_or_default();
            if let Some(tid) = state.tid {
                self.unhook(stack.seq, tid, stack.addr, &mut bytes)?;
            }
            Ok(bytes)
        })
    }

    /// Puts the program's own return addresses where `bytes`, which thread `tid` had at `addr` just after event `seq`, have
    /// those of hooks.
    fn unhook(&self, seq: u64, tid: u32, addr: u64, bytes: &mut [u8]) -> Result<()> {
        let timeline = self.timeline;
        let end = addr.saturating_add(bytes.len() as u64);
        let mut call = timeline.innermost(tid, seq)?;
        for _ in 0..MAX_SLOTS {
            let Some(head) = call else { break };
            // Stacks grow down: what is around lies higher, unless it is on another stack.
            if head.slot >= end && head.slot - end < SAME_STACK {
                break;
            }
            let at = head.slot.wrapping_sub(addr) as usize;
            if let Some(word) = at.checked_add(8).and_then(|end| bytes.get_mut(at..end))
                && let Some(address) = timeline.return_address(&head)?
            {
                let found = u64::from_le_bytes((&*word).try_into().expect("eight bytes"));
                // The slot of a call that was left otherwise may be something else by now.
                let is_code = timeline.modules.covers(found, seq);
                if head.returned() || !is_code {
                    word.copy_from_slice(&address.to_le_bytes());
                }
            }
            call = timeline.parent(&head)?;
        }
        Ok(())
    }
}

/// Puts what `piece` shows of the gaps into runs.
fn fill(gaps: &mut Vec<Range<u64>>, runs: &mut Vec<Run>, piece: &Piece, now: u64) {
    let whole = piece.address..piece.address.saturating_add(piece.bytes.len() as u64);
    let mut left = Vec::new();
    for gap in gaps.drain(..) {
        let Some(part) = overlap(&gap, &whole) else {
            left.push(gap);
            continue;
        };
        let from = (part.start - piece.address) as usize;
        let to = (part.end - piece.address) as usize;
        let is_known = piece.is_constant || piece.shown == now;
        runs.push(Run {
            address: part.start,
            len: part.end - part.start,
            bytes: Seen::at(piece.bytes[from..to].to_vec(), piece.shown, is_known),
        });
        left.extend([gap.start..part.start, part.end..gap.end]);
    }
    left.retain(|gap| !gap.is_empty());
    *gaps = left;
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> Option<Range<u64>> {
    let both = a.start.max(b.start)..a.end.min(b.end);
    (!both.is_empty()).then_some(both)
}

/// The range, then ever shorter beginnings of it: memory that is read at the end of a segment.
fn halves(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut len = range.end.saturating_sub(range.start);
    std::iter::from_fn(move || {
        let part = range.start..range.start + len;
        let is_some = len > 0;
        len /= 2;
        is_some.then_some(part)
    })
}

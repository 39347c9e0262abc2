//! Long lines: instead of single-stepping, the program runs freely until its thread leaves the code of the line.

use std::ops::Range;

use debuginfo::LineGoal;
use exact::Seek;

use super::forward::Left;
use super::{Activation, Walker};

/// Instructions of the first stretch that is run, and of the longest one.
const STRETCH: (u64, u64) = (1 << 16, 1 << 26);

/// Where a leap ends.
pub(super) enum Leap {
    /// At the next instruction of the thread, it leaves the line.
    BeforeLeaving,
    /// There: it has left the line, in this frame or one further out.
    Left,
    /// The recording has ended.
    End,
    /// The line's code is not known.
    No,
}

impl Walker<'_> {
    /// Runs until the thread leaves the code of a line: into calls, too, or only in this frame.
    pub(super) fn leap(
        &mut self,
        goal: &LineGoal,
        frame: &Activation,
        into: bool,
    ) -> exact::Result<Leap> {
        let rip = self.rip();
        let function = self.code(rip);
        let own = self.code_of_line(&function, goal);
        if !own.iter().any(|range| range.contains(&rip)) {
            return Ok(Leap::No);
        }
        let leavers = self.leavers();
        let code = match into {
            true => without(&[0..u64::MAX], &own),
            false => {
                let mut code = without(&function, &own);
                code.extend(frame.back.map(|back| back..back + 1));
                code.extend(leavers.iter().map(|leaver| *leaver..leaver + 1));
                code
            }
        };
        loop {
            let here = self.replay.position();
            let Some(position) = self.next_in(&code)? else {
                self.replay.goto(self.end)?;
                return Ok(Leap::End);
            };
            self.replay.goto(position)?;
            if into {
                let before = self.instruction_back().filter(|before| *before >= here);
                self.replay.goto(before.unwrap_or(here))?;
                return Ok(Leap::BeforeLeaving);
            }
            if leavers.contains(&self.rip()) {
                let leaves = self
                    .thread()
                    .is_some_and(|thread| thread.rsp() >= frame.cfa);
                if !self.instruction()? {
                    return Ok(Leap::End);
                }
                if leaves {
                    return Ok(Leap::Left);
                }
                continue;
            }
            let is_own = match (self.activation(), self.thread()) {
                (Some(now), Some(thread)) => {
                    now.cfa == frame.cfa || thread.rsp() >= frame.cfa || frame.has_returned(&thread)
                }
                _ => true,
            };
            if is_own {
                return Ok(Leap::Left);
            }
            // The function has called itself.
            let Some(inner) = self.activation() else {
                return Ok(Leap::Left);
            };
            if self.leave(&inner)? == Left::Not {
                return Ok(Leap::End);
            }
        }
    }

    /// The code of a function that belongs to a line, in the same inlined copies.
    fn code_of_line(&self, function: &[Range<u64>], goal: &LineGoal) -> Vec<Range<u64>> {
        let mut own = Vec::new();
        for part in function {
            let mut at = part.start;
            while at < part.end
                && let Some(row) = self.space.step_line(at)
            {
                let end = row.range.end.clamp(at + 1, part.end);
                if goal.line == Some((row.file, row.line))
                    && self.space.calls_at(at).len() == goal.copies.len()
                {
                    own.push(at..end);
                }
                at = end;
            }
        }
        own
    }

    /// The position of the thread's next instruction in some code.
    fn next_in(&mut self, code: &[Range<u64>]) -> exact::Result<Option<u64>> {
        let seek = Seek {
            instructions: true,
            code: Some(code.to_vec()),
            tid: Some(self.tid),
            ..Seek::default()
        };
        let mut next = self.replay.position();
        let mut length = STRETCH.0;
        while next < self.end {
            let until = self.end.min(next + length);
            let mut found = None;
            self.replay.seek(next..until, &seek, &mut |batch| {
                let first = batch.executed.first();
                found = found.or(first.map(|executed| executed.position));
                found.is_none()
            })?;
            if found.is_some() {
                return Ok(found);
            }
            next = until;
            length = (length * 4).min(STRETCH.1);
        }
        Ok(None)
    }
}

/// Ranges minus other ranges, all in order.
fn without(ranges: &[Range<u64>], others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    for range in ranges {
        let mut start = range.start;
        let mut inside: Vec<&Range<u64>> = others
            .iter()
            .filter(|other| other.start < range.end && range.start < other.end)
            .collect();
        inside.sort_unstable_by_key(|other| other.start);
        for other in inside {
            if start < other.start {
                left.push(start..other.start);
            }
            start = start.max(other.end);
        }
        if start < range.end {
            left.push(start..range.end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_out() {
        assert_eq!(without(&[10..20], &[]), [10..20]);
        assert_eq!(
            without(&[10..20], &[12..14, 16..18]),
            [10..12, 14..16, 18..20]
        );
        assert_eq!(
            without(&[10..20, 30..40], &[5..12, 18..33]),
            [12..18, 33..40]
        );
        assert_eq!(without(&[10..20], &[0..100]), Vec::<Range<u64>>::new());
    }
}

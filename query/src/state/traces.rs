//! The frames of the rows of a batch, kept for its next column: an answer with many columns asks about the same frames again and again,
//! and most of the work is finding them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use replay::{Instant, Moment, Timeline, Trace};
use rustc_hash::FxHashMap;

use super::moment::thread;

/// Most frames that are kept of a batch, and most of all batches between two of their columns. One has some 2 KiB.
const MOST_FRAMES: usize = 1 << 14;

/// The frames of a batch.
#[derive(Default)]
pub struct Traces {
    seqs: Vec<Option<u64>>,
    steps: Vec<u64>,
    /// By moment, and the limit of frames with which they were found.
    known: FxHashMap<(Instant, usize), Trace>,
    frames: usize,
}

impl Traces {
    /// Asks about the thread of a moment and its frames, at most `limit`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn ask<T>(
        &mut self,
        timeline: &Timeline,
        instant: Instant,
        limit: usize,
        ask: impl FnOnce(&Moment<'_>) -> T,
    ) -> replay::Result<T> {
        let tid = thread(timeline, instant)?;
        let key = (instant, limit);
        let known = self.known.remove(&key);
        let is_new = known.is_none();
        let moment = match known {
            Some(trace) => Moment::with_trace(timeline, instant, tid, trace)?,
            None => Moment::after(timeline, instant.seq, instant.steps, tid, limit)?,
        };
        let answer = ask(&moment);
        let frames = moment.trace.backtrace.frames.len().max(1);
        if is_new {
            if self.frames + frames > MOST_FRAMES {
                return Ok(answer);
            }
            self.frames += frames;
        }
        self.known.insert(key, moment.trace);
        Ok(answer)
    }

    fn is_of(&self, seqs: &[Option<u64>], steps: &[u64]) -> bool {
        self.seqs == seqs && self.steps == steps
    }
}

/// The frames of batches, between two columns. A thread evaluates all columns of its batch before the next one.
#[derive(Default)]
pub struct KeptTraces(Mutex<VecDeque<Traces>>);

impl KeptTraces {
    /// Takes what is kept of the batch with these moments.
    pub fn take(&self, seqs: &[Option<u64>], steps: &[u64]) -> Traces {
        let mut kept = self.lock();
        let at = kept.iter().position(|traces| traces.is_of(seqs, steps));
        let known = at.and_then(|at| kept.remove(at));
        known.unwrap_or_else(|| Traces {
            seqs: seqs.to_vec(),
            steps: steps.to_vec(),
            ..Traces::default()
        })
    }

    /// Keeps the frames of a batch, and forgets those of older ones if they are too many.
    pub fn keep(&self, traces: Traces) {
        if traces.known.is_empty() {
            return;
        }
        let mut kept = self.lock();
        kept.push_back(traces);
        while kept.iter().map(|traces| traces.frames).sum::<usize>() > MOST_FRAMES {
            kept.pop_front();
        }
    }

    /// A panic elsewhere leaves them intact.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Traces>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_batch(kept: &KeptTraces, seq: u64, frames: usize) -> usize {
        let mut traces = kept.take(&[Some(seq)], &[0]);
        let known = traces.known.len();
        let instant = Instant { seq, steps: 0 };
        traces.known.insert((instant, 1), Trace::default());
        traces.frames = frames;
        kept.keep(traces);
        known
    }

    #[test]
    fn a_batch_has_its_own_frames_and_old_ones_are_forgotten() {
        let kept = KeptTraces::default();
        assert_eq!(of_batch(&kept, 1, MOST_FRAMES / 2), 0);
        assert_eq!(of_batch(&kept, 2, MOST_FRAMES / 2), 0);
        assert_eq!(of_batch(&kept, 1, MOST_FRAMES / 2), 1);
        assert_eq!(of_batch(&kept, 2, MOST_FRAMES / 2), 1);
        assert_eq!(of_batch(&kept, 3, 1), 0);
        assert_eq!(of_batch(&kept, 1, 1), 0, "the oldest one");
    }
}

//! How batches of rows share the process of a recording of every instruction. It runs forward from moment to moment, and a moment before
//! the last one costs a run from the nearest copy of the process. So one batch asks at a time, in the order of its moments, and what
//! calls returned is kept: a condition asks for it several times.

use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use datafusion::common::Result;
use rustc_hash::FxHashMap;

/// Most bytes of results that are kept. With more, all are forgotten.
const MOST_BYTES: usize = 8 << 20;

/// Bytes that a result takes besides its text.
const ENTRY_BYTES: usize = 64;

/// What batches share.
#[derive(Default)]
pub struct Rerun {
    turn: Mutex<()>,
    results: Mutex<Results>,
}

/// The results of calls as text, by the events that left them.
#[derive(Default)]
struct Results {
    texts: FxHashMap<u64, String>,
    bytes: usize,
}

/// A batch whose turn it is to ask, and the order of its rows.
#[derive(Default)]
pub struct Turn<'r> {
    /// `None`: as they are.
    order: Option<Vec<u32>>,
    _own: Option<MutexGuard<'r, ()>>,
}

impl Rerun {
    /// Waits until no other batch asks. `seq` is the moment that a row asks about; a batch without any does not wait.
    pub fn turn(&self, rows: usize, seq: impl Fn(usize) -> Option<u64>) -> Turn<'_> {
        if !(0..rows).any(|row| seq(row).is_some()) {
            return Turn::default();
        }
        Turn {
            order: order(rows, seq),
            _own: Some(lock(&self.turn)),
        }
    }

    /// Returns what the call returned that event `seq` left, if it is kept.
    pub fn result(&self, seq: u64) -> Option<String> {
        lock(&self.results).texts.get(&seq).cloned()
    }

    /// Keeps what the call returned that event `seq` left.
    pub fn keep_result(&self, seq: u64, text: &str) {
        let mut results = lock(&self.results);
        results.bytes += text.len() + ENTRY_BYTES;
        if results.bytes > MOST_BYTES {
            *results = Results::default();
            return;
        }
        results.texts.insert(seq, text.to_owned());
    }
}

/// Returns the rows by the moments that they ask about; `None` if that is their order.
fn order(rows: usize, seq: impl Fn(usize) -> Option<u64>) -> Option<Vec<u32>> {
    let mut order: Vec<u32> = (0..u32::try_from(rows).ok()?).collect();
    order.sort_by_key(|row| seq(*row as usize));
    Some(order).filter(|order| !order.is_sorted())
}

impl Turn<'_> {
    /// Returns the rows of the batch in the order in which they are computed.
    pub fn rows(&self, count: usize) -> impl Iterator<Item = usize> + '_ {
        let row = move |at: usize| match &self.order {
            Some(order) => order[at] as usize,
            None => at,
        };
        (0..count).map(row)
    }

    /// Puts what was computed in that order into the order of the batch.
    ///
    /// # Errors
    /// The array has another length than the batch.
    pub fn restored(&self, computed: ArrayRef) -> Result<ArrayRef> {
        let Some(order) = &self.order else {
            return Ok(computed);
        };
        let mut places = vec![0; order.len()];
        for (at, row) in (0..).zip(order) {
            places[*row as usize] = at;
        }
        Ok(take(&computed, &UInt32Array::from(places), None)?)
    }
}

/// A panic elsewhere leaves them intact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    /// Computes the moment of each row, and returns in which order they were asked about.
    fn asked(rerun: &Rerun, seqs: &[Option<u64>]) -> Vec<u64> {
        let turn = rerun.turn(seqs.len(), |row| seqs[row]);
        let rows: Vec<usize> = turn.rows(seqs.len()).collect();
        let computed = rows.iter().map(|row| seqs[*row].map(|seq| seq as i64));
        let computed = Arc::new(computed.collect::<Int64Array>()) as ArrayRef;
        let restored = turn.restored(computed).unwrap();
        let restored = restored.as_primitive::<Int64Type>().iter();
        let expected: Vec<_> = seqs.iter().map(|seq| seq.map(|seq| seq as i64)).collect();
        assert_eq!(restored.collect::<Vec<_>>(), expected);
        rows.iter().filter_map(|row| seqs[*row]).collect()
    }

    #[test]
    fn rows_ask_in_the_order_of_their_moments_and_answer_in_their_own() {
        let rerun = Rerun::default();
        let nested = [Some(90), Some(70), None, Some(80), Some(10), Some(70)];
        assert_eq!(asked(&rerun, &nested), [10, 70, 70, 80, 90]);
        assert_eq!(asked(&rerun, &[Some(1), Some(2)]), [1, 2]);
        assert!(asked(&rerun, &[None, None]).is_empty());
    }

    #[test]
    fn two_batches_never_alternate() {
        let rerun = Rerun::default();
        let log = Mutex::new(Vec::new());
        let ask = |base: u64| {
            let turn = rerun.turn(100, |row| Some(base + row as u64));
            for row in turn.rows(100) {
                lock(&log).push(base + row as u64);
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| ask(0));
            scope.spawn(|| ask(1000));
        });
        let log = lock(&log);
        let back = log.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(log.len() == 200 && back <= 1, "{log:?}");
    }

    #[test]
    fn a_batch_that_asks_nothing_waits_for_none() {
        let rerun = Rerun::default();
        let _other = rerun.turn(1, |_| Some(7));
        let turn = rerun.turn(2, |_| None);
        assert_eq!(turn.rows(2).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn results_are_kept_until_they_are_too_many() {
        let rerun = Rerun::default();
        rerun.keep_result(7, "{a = 1}");
        assert_eq!(rerun.result(7).as_deref(), Some("{a = 1}"));
        assert_eq!(rerun.result(8), None);
        rerun.keep_result(8, &" ".repeat(MOST_BYTES));
        assert_eq!(rerun.result(7), None);
        assert_eq!(rerun.result(8), None);
    }
}

//! One pass over all calls: what each function did, and each thread, in numbers. Row groups are read by several threads
//! at once; their counts are added.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::made::Made;
use super::source::{Source, told};
use crate::compare::{Batch, ByThread, CallFiles, Position, Word};
use crate::error::Result;
use crate::functions::ret::Readings;

/// The statistics of one function's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The function.
    pub function: u32,
    /// How many calls it had.
    pub calls: u64,
    /// Their time without the recorded calls that they made, in ns. For a call that had not ended: up to the end of
    /// the program.
    pub self_ns: u64,
    /// The longest such time of one call that ended, in ns.
    pub longest_ns: u64,
    /// The enter event of the first call that took this long, if one has ended.
    pub longest: Option<u64>,
    /// The longest such time of one call that had not ended, in ns, and its enter event.
    pub open: (u64, Option<u64>),
    /// The enter event of its first call.
    pub first: u64,
    /// How many returned a value in rax.
    pub returned: u64,
    /// How many returned an integer from -4095 to -1, and the first of them.
    pub negative: (u64, Option<u64>),
    /// How many returned zero, and the first of them.
    pub zero: (u64, Option<u64>),
    /// The first that returned a value other than zero.
    pub first_other: Option<u64>,
    /// How many were left without a return, and the first of them.
    pub unwound: (u64, Option<u64>),
}

/// Most different results of a function that are counted one by one.
const MOST_RESULTS: usize = 16;

/// Different results of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Each with how many calls returned it, and the enter event of the first.
    known: Vec<(i64, u64, u64)>,
    /// There are too many different ones, so none is known.
    are_many: bool,
}

impl Counts {
    #[inline]
    fn add_one(&mut self, (result, count, first): (i64, u64, u64)) {
        if self.are_many {
            return;
        }
        let has_room = self.known.len() < MOST_RESULTS;
        match self.known.iter_mut().find(|(known, ..)| *known == result) {
            Some((_, counted, earliest)) => {
                *counted += count;
                *earliest = first.min(*earliest);
            }
            None if has_room => self.known.push((result, count, first)),
            None => self.give_up(),
        }
    }

    fn give_up(&mut self) {
        self.are_many = true;
        self.known = Vec::new();
    }

    fn add(&mut self, other: &Counts) {
        if other.are_many {
            self.give_up();
        }
        for one in &other.known {
            self.add_one(*one);
        }
    }

    /// Returns each result, how many calls returned it, and the enter event of the first; `None` if there are too many different ones.
    pub fn all(&self) -> Option<&[(i64, u64, u64)]> {
        (!self.are_many).then_some(self.known.as_slice())
    }
}

/// The results of one function that may be failures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// Integers from -4095 to -1.
    pub negative: Counts,
    /// All others but zero.
    pub others: Counts,
}

/// What the calls of one thread did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfThread {
    /// How many it made.
    pub calls: u64,
    /// The enter event of the first one.
    pub first: u64,
    /// The longest time of one that ended, without the recorded calls that it made, in ns.
    pub longest_ns: u64,
    /// The enter event and the function of the first call that took this long, if one has ended.
    pub longest: Option<(u64, u32)>,
}

/// What all calls did.
#[derive(Debug, Default)]
pub struct Tallies {
    /// The functions that were called, in the order of their numbers.
    pub functions: Vec<Tally>,
    /// By function id: its results.
    pub results: Vec<Results>,
    /// The threads that are known to have made calls, in the order of their numbers.
    pub threads: Vec<(u32, OfThread)>,
}

/// Adds an event to a count and the first event of a kind.
#[inline]
fn count((number, first): &mut (u64, Option<u64>), seq: u64) {
    *number += 1;
    *first = Some(first.map_or(seq, |first| first.min(seq)));
}

/// Adds two such counts.
fn sum(a: (u64, Option<u64>), b: (u64, Option<u64>)) -> (u64, Option<u64>) {
    (a.0 + b.0, earlier(a.1, b.1))
}

fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        if self.calls == 0 {
            *self = *other;
            return;
        }
        if other.calls == 0 {
            return;
        }
        let (own, others) = (
            (self.longest_ns, self.longest),
            (other.longest_ns, other.longest),
        );
        (self.longest_ns, self.longest) = longer(own, others, |seq| *seq);
        self.calls += other.calls;
        self.self_ns += other.self_ns;
        self.first = self.first.min(other.first);
        self.returned += other.returned;
        self.negative = sum(self.negative, other.negative);
        self.zero = sum(self.zero, other.zero);
        self.first_other = earlier(self.first_other, other.first_other);
        self.unwound = sum(self.unwound, other.unwound);
    }
}

impl OfThread {
    fn add(&mut self, other: &OfThread) {
        if self.calls == 0 {
            *self = *other;
            return;
        }
        let (own, others) = (
            (self.longest_ns, self.longest),
            (other.longest_ns, other.longest),
        );
        (self.longest_ns, self.longest) = longer(own, others, |(seq, _)| *seq);
        self.calls += other.calls;
        self.first = self.first.min(other.first);
    }
}

/// Returns the longer of two longest calls; the first if they are equal.
#[inline]
fn longer<T>(
    a: (u64, Option<T>),
    b: (u64, Option<T>),
    seq: impl Fn(&T) -> u64,
) -> (u64, Option<T>) {
    match (&a.1, &b.1) {
        (None, _) => b,
        (_, None) => a,
        (Some(of_a), Some(of_b)) => {
            let is_b = b.0 > a.0 || b.0 == a.0 && seq(of_b) < seq(of_a);
            if is_b { b } else { a }
        }
    }
}

/// One thread's part of the pass.
#[derive(Default)]
struct Counted {
    functions: Vec<Tally>,
    results: Vec<Results>,
    threads: ByThread<OfThread>,
}

impl Counted {
    /// Counts some calls. Those that had not ended at event `until` have no time yet; those that the debugger had `made` do not count.
    fn batch(&mut self, batch: &Batch, readings: &Readings, (until, made): (u64, &Made)) {
        for at in 0..batch.rows() {
            let (id, start) = (batch.function(at), batch.start(at));
            if !made.is_empty() && made.has(batch.tid(at), start) {
                continue;
            }
            let has_time = batch.end(at).is_some_and(|end| end <= until);
            let own = if has_time { batch.own_ns(at) } else { 0 };
            if self.functions.len() <= id as usize {
                self.functions.resize(id as usize + 1, Tally::default());
                self.results.resize(id as usize + 1, Results::default());
            }
            let tally = &mut self.functions[id as usize];
            tally.function = id;
            tally.first = match tally.calls {
                0 => start,
                _ => tally.first.min(start),
            };
            tally.calls += 1;
            tally.self_ns += own;
            if has_time {
                let longest = (tally.longest_ns, tally.longest);
                (tally.longest_ns, tally.longest) = longer(longest, (own, Some(start)), |seq| *seq);
            }
            if batch.unwound(at) {
                count(&mut tally.unwound, start);
            }
            if let Some(rax) = batch.word(at, Word::Rax) {
                tally.returned += 1;
                match rax {
                    0 => count(&mut tally.zero, start),
                    _ => tally.first_other = earlier(tally.first_other, Some(start)),
                }
                let results = &mut self.results[id as usize];
                match readings.integer(id, rax as i64) {
                    None | Some(0) => {}
                    Some(result) if is_negative(result) => {
                        count(&mut tally.negative, start);
                        results.negative.add_one((result, 1, start));
                    }
                    Some(result) => results.others.add_one((result, 1, start)),
                }
            }
            let tid = batch.tid(at);
            if tid != 0 {
                let longest = has_time.then_some((start, id));
                self.threads.of(tid).add(&OfThread {
                    calls: 1,
                    first: start,
                    longest_ns: own,
                    longest,
                });
            }
        }
    }

    fn add(&mut self, other: Counted) {
        let len = self.functions.len().max(other.functions.len());
        self.functions.resize(len, Tally::default());
        for (own, other) in self.functions.iter_mut().zip(&other.functions) {
            own.add(other);
        }
        self.results.resize(len, Results::default());
        for (own, other) in self.results.iter_mut().zip(&other.results) {
            own.negative.add(&other.negative);
            own.others.add(&other.others);
        }
        for (tid, other) in other.threads.into_all() {
            self.threads.of(tid).add(&other);
        }
    }
}

/// Returns whether a result is an integer from -4095 to -1. One of 32 bits without a known type is not sign-extended.
fn is_negative(value: i64) -> bool {
    matches!(value, -4095..=-1 | 4_294_963_201..=4_294_967_295)
}

/// Counts all calls. Those that had not ended at event `until` have no time yet.
fn counted(source: &Source<'_>, until: u64) -> Result<Counted> {
    let session = source.session();
    let stop = source.cancel().counting();
    let files = CallFiles::open(session.reader(), vec![Word::Rax], stop)?;
    let readings = Readings::of(session.definitions());
    let starts = files.row_groups()?;
    let next = AtomicUsize::new(0);
    let made = source.left_out();
    let work = || -> Result<Counted> {
        let mut counted = Counted::default();
        loop {
            let group = next.fetch_add(1, Ordering::Relaxed);
            let Some(from) = starts.get(group) else {
                return Ok(counted);
            };
            let end = starts.get(group + 1).copied().unwrap_or(Position::end());
            let mut calls = files.calls(*from, None).until(end);
            while let Some(batch) = calls.next()? {
                counted.batch(&batch, &readings, (until, made));
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..cores.min(starts.len()))
            .map(|_| scope.spawn(work))
            .collect();
        let mut all = work()?;
        for other in others {
            let other = other.join();
            all.add(other.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

/// Tallies all functions that were called, and all threads. `end` is the event at which the program ended, and its time:
/// later events are the recorder's.
///
/// # Errors
/// The recording cannot be read; [`crate::Error::Stopped`].
pub fn tallies(source: &Source<'_>, end: (u64, i64)) -> Result<Tallies> {
    let counted = counted(source, end.0)?;
    let mut functions = counted.functions;
    functions.retain(|tally| tally.calls > 0);
    add_open(source, &mut functions, end)?;
    let mut threads = counted.threads.into_all();
    threads.sort_by_key(|(tid, _)| *tid);
    Ok(Tallies {
        functions,
        results: counted.results,
        threads,
    })
}

/// Adds the time of calls that had not ended by then.
fn add_open(source: &Source<'_>, all: &mut [Tally], (seq, end_ns): (u64, i64)) -> Result<()> {
    let Some(timeline) = source.timeline() else {
        return Ok(());
    };
    for thread in told(timeline.threads())? {
        let mut until = end_ns;
        // The time in the call inside, if it is counted among those that have ended.
        let mut inner_ns = 0;
        for call in source.around(thread.tid, seq)? {
            let whole = told(timeline.call(&call))?;
            let own = until - whole.ts_ns - (whole.child_ns - inner_ns);
            until = whole.ts_ns;
            inner_ns = whole.dur_ns.max(0);
            if let Ok(at) = all.binary_search_by_key(&call.function, |tally| tally.function) {
                let own = u64::try_from(own).unwrap_or(0);
                let tally = &mut all[at];
                tally.self_ns += own;
                tally.open = longer(tally.open, (own, Some(call.start)), |seq| *seq);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(results: &[(i64, u64)]) -> Counts {
        let mut counts = Counts::default();
        for (result, seq) in results {
            counts.add_one((*result, 1, *seq));
        }
        counts
    }

    #[test]
    fn results_of_parts_are_added() {
        let mut all = counts(&[(-2, 7), (-9, 8), (-2, 9)]);
        all.add(&counts(&[(-2, 3), (5, 4)]));
        let expected = [(-2, 3, 3), (-9, 1, 8), (5, 1, 4)];
        assert_eq!(all.all(), Some(&expected[..]));
    }

    #[test]
    fn too_many_results_are_not_known() {
        let many: Vec<(i64, u64)> = (0..=MOST_RESULTS as u64).map(|n| (n as i64, n)).collect();
        assert!(counts(&many).all().is_none());
        let (first, last) = many.split_at(MOST_RESULTS);
        assert!(counts(first).all().is_some());
        let mut both = counts(first);
        both.add(&counts(last));
        assert!(both.all().is_none());
        let mut both = counts(&[(1, 1)]);
        both.add(&counts(&many));
        assert!(both.all().is_none());
    }
}

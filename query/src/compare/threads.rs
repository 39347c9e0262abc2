//! Which threads of two recordings belong together: the first ones, then by the function that both recorded first, and the order
//! of their creation.

use std::collections::BTreeMap;

use super::digest::Digest;
use super::side::Side;
use crate::error::Result;
use crate::overview::told;

/// A thread of one recording.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its id.
    pub tid: u32,
    /// `main` for the process's first thread; of others the function that they ran first, empty if they made no recorded
    /// call.
    pub function: String,
    /// It is the process's first thread.
    pub is_main: bool,
    /// Its rows.
    pub digest: Digest,
}

impl Thread {
    /// The function of its first call that is compared.
    fn first(&self) -> Option<u32> {
        self.digest.first.map(|(_, function)| function)
    }
}

/// Threads of both recordings.
#[derive(Debug, Default)]
pub struct Matched {
    /// Those that belong together, with their number among those with the same first function.
    pub pairs: Vec<(Thread, Thread, u32)>,
    /// Those without a counterpart, of either recording.
    pub lone: [Vec<Thread>; 2],
}

/// Returns the threads of a recording in the order of their creation.
///
/// # Errors
/// The recording cannot be read.
pub fn threads(side: &Side<'_>, digests: Vec<(u32, Digest)>) -> Result<Vec<Thread>> {
    let mut digests: BTreeMap<u32, Digest> = digests.into_iter().collect();
    let mut order = Vec::new();
    if let Some(timeline) = side.source.timeline() {
        let known = told(timeline.threads())?.into_iter();
        order.extend(known.map(|thread| thread.tid));
    }
    let rest = digests.keys().copied().filter(|tid| !order.contains(tid));
    let rest: Vec<u32> = rest.collect();
    order.extend(rest);
    // Threads may make their first recorded step in any order. Their ids ascend as they are created; after the highest they go
    // on with the lowest that is free, below that of the first thread, which has the process's id.
    let sql = "select value from events where kind = 'process_start' order by seq limit 1";
    let began = side.source.ask(sql)?;
    let process = began.first().and_then(|row| row.count(0));
    let main = process.and_then(|process| u32::try_from(process).ok());
    let main = main.or(order.first().copied()).unwrap_or_default();
    order.sort_by_key(|tid: &u32| tid.wrapping_sub(main));
    let thread = |tid: u32| {
        let digest = digests.remove(&tid).unwrap_or_default();
        let is_main = tid == main;
        let first = digest.outermost.map(|(_, id)| side.source.name(id));
        Thread {
            tid,
            function: match is_main {
                true => "main".to_owned(),
                false => first.unwrap_or_default(),
            },
            is_main,
            digest,
        }
    };
    Ok(order.into_iter().map(thread).collect())
}

/// Finds threads that belong together. Where the functions do not tell, the order does. Threads that made no call that is
/// compared are alone only with `all`: the other recording may have left out their functions.
pub fn matched(a: Vec<Thread>, b: Vec<Thread>, all: bool) -> Matched {
    let mut found = Matched::default();
    let mut others: Vec<Option<Thread>> = b.into_iter().map(Some).collect();
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let mut left = Vec::new();
    for own in a {
        let is_same = |other: &Thread| match own.is_main || other.is_main {
            true => own.is_main && other.is_main,
            false => own.first() == other.first(),
        };
        let same = |other: &&mut Option<Thread>| other.as_ref().is_some_and(is_same);
        match others.iter_mut().find(same).and_then(Option::take) {
            Some(other) => {
                let number = numbers.entry(own.function.clone()).or_default();
                found.pairs.push((own, other, *number));
                *number += 1;
            }
            None => left.push(own),
        }
    }
    let others: Vec<Thread> = others.into_iter().flatten().collect();
    match left.len() == others.len() {
        true => found.pairs.extend(
            left.into_iter()
                .zip(others)
                .map(|(own, other)| (own, other, 0)),
        ),
        false => {
            let counts = |thread: &Thread| {
                thread.digest.rows > 0 || all && thread.digest.outermost.is_some()
            };
            let alone = |threads: Vec<Thread>| threads.into_iter().filter(counts).collect();
            found.lone = [left, others].map(alone);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads with these functions; `_` has made no call that is compared.
    fn threads(functions: &[&str]) -> Vec<Thread> {
        let thread = |(at, name): (usize, &&str)| {
            let first = name.bytes().next().filter(|byte| *byte != b'_');
            let mut digest = Digest::default();
            digest.rows = u64::from(first.is_some());
            digest.first = first.map(|byte| (1, u32::from(byte)));
            digest.outermost = Some((1, 0));
            Thread {
                tid: at as u32,
                function: (*name).to_owned(),
                is_main: *name == "main",
                digest,
            }
        };
        functions.iter().enumerate().map(thread).collect()
    }

    fn lone(found: &Matched) -> [usize; 2] {
        [found.lone[0].len(), found.lone[1].len()]
    }

    #[test]
    fn threads_are_matched_by_first_function_and_order() {
        let found = matched(
            threads(&["main", "work", "log", "work"]),
            threads(&["main", "log", "work", "work"]),
            false,
        );
        let pairs: Vec<_> = found
            .pairs
            .iter()
            .map(|(a, b, number)| (a.tid, b.tid, *number))
            .collect();
        assert_eq!(pairs, [(0, 0, 0), (1, 2, 0), (2, 1, 0), (3, 3, 1)]);
        let found = matched(threads(&["main", "work"]), threads(&["main"]), false);
        assert_eq!((found.pairs.len(), lone(&found)), (1, [1, 0]));
        let found = matched(threads(&["old"]), threads(&["new"]), false);
        assert_eq!(found.pairs.len(), 1);
        assert!(matched(Vec::new(), Vec::new(), false).pairs.is_empty());
    }

    #[test]
    fn a_thread_that_the_other_recording_left_out_is_no_difference() {
        let (a, b) = (["main", "work", "_log"], ["main", "work"]);
        let found = matched(threads(&a), threads(&b), false);
        assert_eq!((found.pairs.len(), lone(&found)), (2, [0, 0]));
        let found = matched(threads(&a), threads(&b), true);
        assert_eq!((found.pairs.len(), lone(&found)), (2, [1, 0]));
    }
}

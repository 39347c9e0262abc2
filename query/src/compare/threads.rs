//! Which threads of two recordings belong together: by the function that they ran first and the order of their creation.

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
    /// The function that it ran first; empty if it made no recorded call.
    pub function: String,
    /// Its rows.
    pub digest: Digest,
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
    // New threads may make their first step in any order. Their ids ascend as they are created; after the highest they go on
    // with the lowest that is free, below that of the first thread.
    let first = order.first().copied().unwrap_or_default();
    order.sort_by_key(|tid: &u32| tid.wrapping_sub(first));
    let rest: Vec<u32> = digests
        .keys()
        .copied()
        .filter(|tid| !order.contains(tid))
        .collect();
    order.extend(rest);
    let thread = |tid: u32| {
        let digest = digests.remove(&tid).unwrap_or_default();
        let function = digest.outermost.map(|(_, id)| side.source.name(id));
        Thread {
            tid,
            function: function.unwrap_or_default(),
            digest,
        }
    };
    Ok(order.into_iter().map(thread).collect())
}

/// Finds threads that belong together. Where the functions do not tell, the order does.
pub fn matched(a: Vec<Thread>, b: Vec<Thread>) -> Matched {
    let mut found = Matched::default();
    let mut others: Vec<Option<Thread>> = b.into_iter().map(Some).collect();
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let mut left = Vec::new();
    for own in a {
        let same = |other: &&mut Option<Thread>| {
            other
                .as_ref()
                .is_some_and(|other| other.function == own.function)
        };
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
        false => found.lone = [left, others],
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(names: &[&str]) -> Vec<Thread> {
        let thread = |(at, name): (usize, &&str)| Thread {
            tid: at as u32,
            function: (*name).to_owned(),
            digest: Digest::default(),
        };
        names.iter().enumerate().map(thread).collect()
    }

    #[test]
    fn threads_are_matched_by_first_function_and_order() {
        let found = matched(
            threads(&["main", "work", "log", "work"]),
            threads(&["main", "log", "work", "work"]),
        );
        let pairs: Vec<_> = found
            .pairs
            .iter()
            .map(|(a, b, number)| (a.tid, b.tid, *number))
            .collect();
        assert_eq!(pairs, [(0, 0, 0), (1, 2, 0), (2, 1, 0), (3, 3, 1)]);
        let found = matched(threads(&["main", "work"]), threads(&["main"]));
        assert_eq!(
            (found.pairs.len(), found.lone[0].len(), found.lone[1].len()),
            (1, 1, 0)
        );
        let found = matched(threads(&["old"]), threads(&["new"]));
        assert_eq!(found.pairs.len(), 1);
        assert!(matched(Vec::new(), Vec::new()).pairs.is_empty());
    }
}

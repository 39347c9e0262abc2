//! Where the time went: the functions whose calls took longest without the recorded calls that they made.
//!
//! That time of a call is in no other, so recursion counts nothing twice.

use serde::Serialize;

use super::longest::{Longest, Wanted};
use super::source::Source;
use super::tally::Tally;

/// Functions that are told.
const FUNCTIONS: usize = 10;

/// Where the time went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Time {
    /// The time that threads spent in recorded calls, in ns.
    pub recorded_ns: u64,
    /// The functions with the most of it.
    pub functions: Vec<FunctionTime>,
}

/// The time of a function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionTime {
    /// Its name.
    pub function: String,
    /// Its number.
    pub function_id: u32,
    /// How many calls it had.
    pub calls: u64,
    /// The time of its calls without the recorded calls that they made, in ns.
    pub self_ns: u64,
    /// Its part of the time in recorded calls, from 0 to 1.
    pub share: f64,
    /// The longest such time of one call, in ns; 0 if none has ended.
    pub longest_ns: u64,
    /// The enter event of that call, or of the first one if none has ended.
    pub seq: u64,
}

/// Returns the functions that are told.
pub fn most(tallies: &[Tally]) -> Vec<&Tally> {
    let mut most: Vec<&Tally> = tallies.iter().filter(|tally| tally.self_ns > 0).collect();
    most.sort_by_key(|tally| (u64::MAX - tally.self_ns, tally.function));
    most.truncate(FUNCTIONS);
    most
}

/// Returns the longest calls of these functions, where there are several.
pub fn wanted(most: &[&Tally]) -> Vec<(Wanted, u64)> {
    let several = most.iter().filter(|t| t.calls > 1 && t.longest_ns > 0);
    several
        .map(|tally| (Wanted::OfFunction(tally.function), tally.longest_ns))
        .collect()
}

/// Describes the time of `most`.
pub fn time(source: &Source<'_>, tallies: &[Tally], most: &[&Tally], longest: &Longest) -> Time {
    let recorded_ns: u64 = tallies.iter().map(|tally| tally.self_ns).sum();
    let functions = most.iter().map(|tally| {
        let found = longest.get(Wanted::OfFunction(tally.function), tally.longest_ns);
        FunctionTime {
            function: source.name(tally.function),
            function_id: tally.function,
            calls: tally.calls,
            self_ns: tally.self_ns,
            share: tally.self_ns as f64 / recorded_ns.max(1) as f64,
            longest_ns: tally.longest_ns,
            seq: found.map_or(tally.first, |found| found.seq),
        }
    });
    Time {
        recorded_ns,
        functions: functions.collect(),
    }
}

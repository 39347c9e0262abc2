//! Where the time went: the functions whose calls took longest without the recorded calls that they made.
//!
//! This time of a call is part of no other call's, so recursion counts nothing twice.

use serde::Serialize;

use super::source::Source;
use super::tally::Tally;

/// Most functions that are reported.
const FUNCTIONS: usize = 10;

/// Where the time went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Time {
    /// Only the entries of calls are recorded, so no time is known.
    pub only_entries: bool,
    /// The time that threads spent in recorded calls, in ns.
    pub recorded_ns: u64,
    /// The functions with the most of it.
    pub functions: Vec<FunctionTime>,
    /// How many more functions were called.
    pub more: u64,
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
    /// Its share of the time in recorded calls, from 0 to 1.
    pub share: f64,
    /// The longest such time of one call, in ns.
    pub longest_ns: u64,
    /// The enter event of that call.
    pub seq: u64,
    /// That call had not ended when the recording did.
    pub is_open: bool,
}

/// Returns the functions to report.
fn most(tallies: &[Tally]) -> Vec<&Tally> {
    let mut most: Vec<&Tally> = tallies.iter().filter(|tally| tally.self_ns > 0).collect();
    most.sort_by_key(|tally| (u64::MAX - tally.self_ns, tally.function));
    most.truncate(FUNCTIONS);
    most
}

/// Describes where the time went.
pub fn time(source: &Source<'_>, tallies: &[Tally]) -> Time {
    let recorded_ns: u64 = tallies.iter().map(|tally| tally.self_ns).sum();
    let functions = most(tallies).into_iter().map(|tally| {
        let longest = tally.longest.filter(|_| tally.longest_ns > 0);
        let open = tally.open.1.filter(|_| tally.open.0 > tally.longest_ns);
        FunctionTime {
            function: source.name(tally.function),
            function_id: tally.function,
            calls: tally.calls,
            self_ns: tally.self_ns,
            share: tally.self_ns as f64 / recorded_ns.max(1) as f64,
            longest_ns: tally.longest_ns.max(tally.open.0),
            seq: open.or(longest).unwrap_or(tally.first),
            is_open: open.is_some(),
        }
    });
    let functions: Vec<FunctionTime> = functions.collect();
    Time {
        only_entries: source.session().report_source().only_entries,
        recorded_ns,
        more: (tallies.len() - functions.len()) as u64,
        functions,
    }
}

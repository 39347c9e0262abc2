//! Where a function's variables live between two calls that it makes: on its stack, or in registers that calls keep.
//!
//! Each place that a call returns to is looked at twice: as it is while the callee is entered, and as it is when the callee
//! has returned. Neighbours at which the same memory is looked at become one range.

use std::ops;

use debuginfo::{AddressSpace, return_addresses};

use super::pointer_path::{Reads, Sites, When, program};
use super::trace::{Problem, Standing, ways};

const CALLS_NOTHING: &str =
    "the function calls no other, so that nothing is recorded between its entry and its return";

/// Finds what to capture of `text`, an expression inside the function whose first instruction is at `entry`: the words for
/// the runtime.
///
/// # Errors
/// It has no value anywhere; why it can have none, or else why it has none at the first place.
pub(super) fn at_calls(text: &str, space: &AddressSpace, entry: u64) -> Result<Vec<u64>, Problem> {
    let mut told = Vec::new();
    let mut failed = None;
    for part in return_addresses(space, entry) {
        let (mut enters, mut leaves) = (Vec::new(), Vec::new());
        for to in part {
            for (found, standing) in [
                (&mut enters, Standing::Calling(to)),
                (&mut leaves, Standing::Returned(to)),
            ] {
                match ways(text, space, standing) {
                    Ok(reads) => add(found, to, reads),
                    // All of it is in registers.
                    Err(Problem::NoMemory) => add(found, to, Reads::new()),
                    // A variable of another block has no name there.
                    Err(problem @ Problem::Wrong(_)) => {
                        if !matches!(failed, Some(Problem::Wrong(_))) {
                            failed = Some(problem);
                        }
                    }
                    Err(problem) => _ = failed.get_or_insert(problem),
                }
            }
        }
        told.extend(words(&enters, &leaves));
    }
    match told.is_empty() {
        false => Ok(told),
        true => Err(failed.unwrap_or_else(|| Problem::Wrong(CALLS_NOTHING.into()))),
    }
}

/// Places where calls return to, and what is captured there.
type Range = (ops::Range<u64>, Reads);

/// Adds a place, to the range before it if the same is captured there. What lies between may be captured too: memory is what it is.
fn add(found: &mut Vec<Range>, to: u64, reads: Reads) {
    match found.last_mut() {
        Some((last, same)) if *same == reads => last.end = to + 1,
        _ => found.push((to..to + 1, reads)),
    }
}

/// The words for the runtime, once for ranges where the same is captured at both ends of calls.
fn words(enters: &[Range], leaves: &[Range]) -> Vec<u64> {
    let told = |(range, reads): &Range, at_enters, at_leaves| {
        let sites = Sites {
            from: range.start,
            to: range.end,
            at_enters,
            at_leaves,
        };
        program(reads, When::Called(sites))
    };
    let of_enters = enters
        .iter()
        .flat_map(|enter| told(enter, true, leaves.contains(enter)));
    let only = leaves.iter().filter(|leave| !enters.contains(leave));
    of_enters
        .chain(only.flat_map(|leave| told(leave, false, true)))
        .collect()
}

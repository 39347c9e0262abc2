//! Where a function's variables live between two calls that it makes: on its stack, or in registers that calls keep.
//!
//! Each place that a call returns to is looked at twice: as it is while the callee is entered, and as it is when the callee
//! has returned. Neighbours at which the same memory is looked at become one range.

use debuginfo::{Space, return_addresses};

use super::trace::{Problem, Standing, ways};
use super::way::{Reads, Sites, When, program};

/// Finds what to capture of `text`, an expression inside the function whose first instruction is at `entry`. The words for
/// the runtime; empty if the function calls nothing.
///
/// # Errors
/// It has no value anywhere; why it has none at the first place.
pub(super) fn at_calls(text: &str, space: &Space, entry: u64) -> Result<Vec<u64>, Problem> {
    let mut found: Vec<(Sites, Reads)> = Vec::new();
    let mut failed = None;
    let mut is_found = false;
    for to in return_addresses(space, entry) {
        let mut look = |standing| match ways(text, space, standing) {
            Ok(reads) => Some(reads),
            // All of it is in registers.
            Err(Problem::NoMemory) => Some(Reads::new()),
            Err(problem) => {
                failed.get_or_insert(problem);
                None
            }
        };
        let (at_enter, at_leave) = (look(Standing::Calling(to)), look(Standing::Returned(to)));
        is_found |= at_enter.is_some() || at_leave.is_some();
        let site = |at_enters, at_leaves| Sites {
            from: to,
            to: to + 1,
            at_enters,
            at_leaves,
        };
        match (at_enter, at_leave) {
            (Some(enter), Some(leave)) if enter == leave => {
                add(&mut found, site(true, true), enter)
            }
            (enter, leave) => {
                if let Some(reads) = enter {
                    add(&mut found, site(true, false), reads);
                }
                if let Some(reads) = leave {
                    add(&mut found, site(false, true), reads);
                }
            }
        }
    }
    match failed {
        Some(problem) if !is_found => Err(problem),
        _ => Ok(found
            .iter()
            .flat_map(|(sites, reads)| program(reads, When::Called(*sites)))
            .collect()),
    }
}

/// Adds a place to the range before it, if the same is captured there and nothing else lies between.
fn add(found: &mut Vec<(Sites, Reads)>, site: Sites, reads: Reads) {
    let events = |sites: &Sites| (sites.at_enters, sites.at_leaves);
    match found.last_mut() {
        Some((last, same)) if *same == reads && events(last) == events(&site) => last.to = site.to,
        _ => found.push((site, reads)),
    }
}

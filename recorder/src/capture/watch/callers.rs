//! Finds where a function's variables live across the calls that it makes: on its stack, or in callee-saved registers.
//!
//! Variables of an inlined function live in the function that contains its copy.
//!
//! Each return site is examined twice: as it is while the callee is entered, and as it is when the callee has returned.
//! Adjacent sites that read the same memory are merged into one range.

use std::ops;

use debuginfo::scope::variables_of;
use debuginfo::{AddressSpace, Diagnostic, InlinedCopy, return_addresses};
use expr::nearest;

use super::pointer_path::{Reads, Sites, When, program};
use super::trace::{Problem, Standing, ways, ways_in_copy};

const CALLS_NOTHING: &str =
    "the function calls no other, so that nothing is recorded between its entry and its return";
const COPIES_CALL_NOTHING: &str = "no call is made where ";

/// Finds what to capture of `text`, an expression inside the function whose first instruction is at `entry`. Returns
/// the words for the runtime.
///
/// # Errors
/// If the expression has no value at any site: the reason why it can have none, or else the reason at the first site.
pub(super) fn at_calls(text: &str, space: &AddressSpace, entry: u64) -> Result<Vec<u64>, Problem> {
    let of_site = |standing: Standing<'_>| Some(ways(text, space, standing));
    at_sites(space, entry, of_site).unwrap_or_else(|| {
        let why = misspelt(text, space, entry).unwrap_or_else(|| CALLS_NOTHING.into());
        Err(Problem::Wrong(why))
    })
}

/// Says that an expression begins with a name that neither the function nor any module has: no call would change that.
fn misspelt(text: &str, space: &AddressSpace, entry: u64) -> Option<Diagnostic> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let name = text.trim_start_matches(|c| !is_word(c));
    let name = name.split(|c| !is_word(c)).next()?;
    let known = variables_of(space, entry);
    let is_known = known.iter().any(|variable| variable.name == name);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || is_known {
        return None;
    }
    if !matches!(
        ways(name, space, Standing::Anywhere),
        Err(Problem::NotThere(_))
    ) {
        return None;
    }
    let near = nearest(name, known.iter().map(|variable| variable.name.as_str()));
    Some(Diagnostic {
        message: format!("no variable \"{name}\" here"),
        hint: near.map(|near| format!("did you mean \"{near}\"?")),
    })
}

/// The same for an expression over variables of `function`, named with it as in `function::variable`, at the calls made
/// where the function is inlined into the one at `entry`.
///
/// # Errors
/// As for [`at_calls`].
pub(super) fn at_calls_of_copies(
    text: &str,
    function: &str,
    space: &AddressSpace,
    (entry, copies): (u64, &[InlinedCopy]),
) -> Result<Vec<u64>, Problem> {
    let is_inside = |pc: u64| {
        let mut ranges = copies.iter().flat_map(|copy| &copy.ranges);
        ranges.any(|range| range.contains(&pc))
    };
    let of_site = |standing: Standing<'_>| {
        let is_here = match standing {
            Standing::Returned(to) => is_inside(to),
            // The return address may lie after the copy.
            Standing::Calling(to) => is_inside(to - 1),
            Standing::Anywhere | Standing::Entry { .. } => false,
        };
        is_here.then(|| ways_in_copy(text, function, space, standing))
    };
    let none = Problem::Wrong(format!("{COPIES_CALL_NOTHING}{function} is inlined").into());
    at_sites(space, entry, of_site).unwrap_or(Err(none))
}

/// Finds what to capture at the calls of the function at `entry`. `of_site` finds it for one site, or returns `None` if
/// the site does not count. The result is `None` if no site counts.
fn at_sites(
    space: &AddressSpace,
    entry: u64,
    of_site: impl Fn(Standing<'_>) -> Option<Result<Reads, Problem>>,
) -> Option<Result<Vec<u64>, Problem>> {
    let mut told = Vec::new();
    let mut failed = None;
    for part in return_addresses(space, entry) {
        let (mut enters, mut leaves) = (Vec::new(), Vec::new());
        for to in part {
            for (found, standing) in [
                (&mut enters, Standing::Calling(to)),
                (&mut leaves, Standing::Returned(to)),
            ] {
                let Some(ways) = of_site(standing) else {
                    continue;
                };
                match ways {
                    Ok(reads) => add(found, to, reads),
                    // The whole value is in registers.
                    Err(Problem::NoMemory) => add(found, to, Reads::new()),
                    // A variable of another block is not in scope there.
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
        false => Some(Ok(told)),
        true => failed.map(Err),
    }
}

/// A range of return sites, and what is captured there.
type Range = (ops::Range<u64>, Reads);

/// Adds a return site. Extends the preceding range if that captures the same memory. Addresses in between may then be
/// captured too, which is harmless: the captured bytes are true.
fn add(found: &mut Vec<Range>, to: u64, reads: Reads) {
    match found.last_mut() {
        Some((last, same)) if *same == reads => last.end = to + 1,
        _ => found.push((to..to + 1, reads)),
    }
}

/// Returns the words for the runtime. Ranges that capture the same at both ends of calls are written once.
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

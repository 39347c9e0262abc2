//! Calls of the program's own Rust functions that returned `Err`.

use store::control::ValueKind;

use super::failures::{FailureKind, Failures, call};
use super::source::Source;
use super::tally::Tally;
use crate::error::Result;

/// Results are read of so many calls: each needs the memory at the end of the call.
const MOST_CALLS: u64 = 2_000;

/// Finds them where the recording shows the results: small ones lie in registers, others need `--pointees` or `--full`.
///
/// # Errors
/// The recording cannot be read.
pub fn errors_returned(source: &Source<'_>, tallies: &[Tally]) -> Result<Vec<Failures>> {
    let mut candidates: Vec<&Tally> = tallies
        .iter()
        .filter(|tally| may_fail(source, tally))
        .collect();
    candidates.sort_by_key(|tally| tally.calls);
    let mut calls = 0;
    candidates.retain(|tally| {
        calls += tally.calls;
        calls <= MOST_CALLS
    });
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<String> = candidates
        .iter()
        .map(|tally| tally.function.to_string())
        .collect();
    let sql = format!(
        "select function_id, count(*), min(start_seq) from calls \
         where function_id in ({}) and ret_text like 'Err(%' and {} group by function_id order by 2, 3",
        ids.join(", "),
        source.left_out().excluded()
    );
    let mut found = Vec::new();
    for row in source.ask(&sql)? {
        let (Some(id), Some(failed), Some(first)) = (row.count(0), row.count(1), row.count(2))
        else {
            continue;
        };
        let (Some(tally), Some(first)) = (
            candidates
                .iter()
                .find(|tally| u64::from(tally.function) == id),
            call(source, first)?,
        ) else {
            continue;
        };
        let first = source.described(&first)?;
        found.push(Failures {
            kind: FailureKind::Err,
            function: first.function.clone(),
            failed,
            calls: tally.calls,
            values: Vec::new(),
            guessed: false,
            first,
        });
    }
    Ok(found)
}

fn may_fail(source: &Source<'_>, tally: &Tally) -> bool {
    let function = source.function(tally.function);
    let is_rust = function.is_some_and(|function| {
        let is_aggregate = matches!(function.ret, ValueKind::Struct { .. });
        is_aggregate
            && function
                .file
                .as_deref()
                .is_some_and(|file| file.ends_with(".rs"))
    });
    is_rust && source.has_own_source(tally.function)
}

//! Calls whose results look like failures: negative integers, null pointers, calls that were left without a return, and late
//! results other than zero of functions that return zero otherwise.
//!
//! Only the program knows what a result means. A function is reported if such a result is unusual for it, or if its
//! other results are all zero; and last, if it often returns negative results of a known type and orders nothing.

use replay::{CallHead, Event};
use serde::Serialize;
use store::control::{FunctionDef, Param, ValueKind};
use values::errno_name;

use super::panic;
use super::results::errors_returned;
use super::source::{CallLine, Source, told};
use super::tally::{Counts, Results, Tally};
use crate::error::Result;
use crate::rows::Row;
use crate::short_names::last_part;
use crate::unrecorded::has_syscalls;

/// Most functions that are reported.
const FUNCTIONS: usize = 8;
/// Most functions that are reported because they returned `Err`.
const MOST_ERRORS: usize = 4;
/// Most functions of each kind that are examined.
const LOOKED_AT: usize = 32;
/// Most different results of a function that are reported.
const VALUES: usize = 3;
/// Functions with at most this many calls have no usual result.
const FEW: u64 = 3;
/// A function whose nonzero results are reported has at least this many results of zero.
const USUAL: u64 = 10;
/// Of functions that order things, more than one result in this many is positive, and as many are negative.
const OFTEN: u64 = 5;
/// Most events after a call that are examined to decide whether its thread continued.
const EVENTS_AFTER: usize = 64;

/// Calls of one function that look like failures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failures {
    /// In which way.
    pub kind: FailureKind,
    /// The function.
    pub function: String,
    /// How many of its calls.
    pub failed: u64,
    /// Out of this many that ended.
    pub calls: u64,
    /// The results, the most frequent first.
    pub values: Vec<Value>,
    /// The return type is unknown: the values are those of rax.
    pub guessed: bool,
    /// The first of these calls.
    pub first: CallLine,
}

/// Why calls look like failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// They returned an integer from -4095 to -1.
    Negative,
    /// They were left by an exception or longjmp.
    Unwound,
    /// They returned a value other than zero, late, in a program that failed.
    NonZero,
    /// They returned a null pointer.
    Null,
    /// They returned `Err` of Rust.
    Err,
}

/// A result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Value {
    /// The result.
    pub value: i64,
    /// How often.
    pub count: u64,
    /// The enter event of the first call that returned it.
    pub first_seq: u64,
    /// The name of the error, if the result is a negated error number other than -1, which is ambiguous.
    pub errno: Option<&'static str>,
    /// If there is no such name: the last system call that failed in that first call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_syscall: Option<FailedSyscall>,
}

/// A system call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedSyscall {
    /// Its event.
    pub seq: u64,
    /// Its name.
    pub name: String,
    /// The name of the error.
    pub errno: String,
}

/// A function that is worth a look.
struct Candidate<'t> {
    kind: FailureKind,
    tally: &'t Tally,
    failed: u64,
    first: u64,
    guessed: bool,
    /// So many calls returned such a result that it may be an ordinary one.
    is_often: bool,
}

/// Finds such functions. Returns those to report, and how many more there are. `results` are by function id.
///
/// # Errors
/// The recording cannot be read.
pub fn failures(
    source: &Source<'_>,
    (tallies, results): (&[Tally], &[Results]),
    has_failed: bool,
) -> Result<(Vec<Failures>, u64)> {
    let mut candidates: Vec<Candidate<'_>> = tallies
        .iter()
        .flat_map(|tally| candidates_of(source, tally))
        .collect();
    let late = source.late();
    if has_failed {
        candidates.extend(innermost(source, tallies)?);
    }
    // The cause of a failure is rare and comes late. Among the rest, results with a description come first, then rare ones, then
    // earlier ones. Results that may be ordinary ones come last.
    let is_usual = |c: &Candidate<'_>| {
        !has_failed || c.first < late || c.failed.saturating_mul(USUAL) > c.tally.calls.max(USUAL)
    };
    candidates.sort_by_key(|c| {
        (
            c.is_often,
            c.guessed,
            is_usual(c),
            c.kind,
            c.failed,
            c.first,
        )
    });
    let mut kept = Vec::new();
    let mut more = 0;
    for (at, candidate) in candidates.iter().enumerate() {
        let is_told = match candidate.kind {
            FailureKind::Negative | FailureKind::NonZero | FailureKind::Err => true,
            FailureKind::Null => has_caller(source, candidate)?,
            FailureKind::Unwound => {
                at <= LOOKED_AT
                    && is_origin(source, candidate, tallies)?
                    && went_on(source, candidate)?
            }
        };
        if !is_told {
            continue;
        }
        match kept.len() < FUNCTIONS {
            true => kept.push(candidate),
            false => more += 1,
        }
    }
    let errors = errors_returned(source, tallies)?;
    let room = FUNCTIONS.saturating_sub(errors.len().min(MOST_ERRORS));
    more +=
        errors.len().saturating_sub(MOST_ERRORS) as u64 + kept.len().saturating_sub(room) as u64;
    kept.truncate(room);
    let values = values(source, &kept, results)?;
    let told = kept.into_iter().filter_map(|candidate| {
        let first = call(source, candidate.first).transpose()?;
        let first = first.and_then(|first| source.described(&first));
        let of_it = values
            .iter()
            .filter(|(id, _)| *id == candidate.tally.function);
        let values = of_it.map(|(_, value)| value.clone()).take(VALUES);
        Some(first.map(|first| Failures {
            kind: candidate.kind,
            function: first.function.clone(),
            failed: candidate.failed,
            calls: match candidate.kind {
                FailureKind::Unwound => candidate.tally.calls,
                _ => candidate.tally.returned,
            },
            values: match candidate.kind {
                FailureKind::Negative | FailureKind::NonZero => values.collect(),
                _ => Vec::new(),
            },
            guessed: candidate.guessed,
            first,
        }))
    });
    let errors = errors.into_iter().take(MOST_ERRORS).map(Ok);
    Ok((errors.chain(told).collect::<Result<_>>()?, more))
}

pub(super) fn call(source: &Source<'_>, seq: u64) -> Result<Option<CallHead>> {
    match source.timeline() {
        Some(timeline) => told(timeline.entered_at(seq)),
        None => Ok(None),
    }
}

fn candidates_of<'t>(source: &Source<'_>, tally: &'t Tally) -> Vec<Candidate<'t>> {
    let definition = source.function(tally.function);
    if definition.is_some_and(tells_nothing) {
        return Vec::new();
    }
    let kind = definition.map_or(&ValueKind::Unknown, |function| &function.ret);
    let orders = definition.is_some_and(|function| {
        let is_named = is_comparison(&function.name) || is_option_reader(&function.name);
        is_named || is_ordering(&function.ret) || compares(&function.params, tally)
    });
    let (is_number, guessed) = match kind {
        ValueKind::Int { signed, .. } | ValueKind::Enum { signed, .. } => (*signed, false),
        ValueKind::Pointer => (true, false),
        ValueKind::Unknown => (true, true),
        _ => (false, false),
    };
    let candidate = |kind, (failed, first): (u64, Option<u64>), guessed| {
        Some(Candidate {
            kind,
            tally,
            failed,
            first: first?,
            guessed,
            is_often: false,
        })
    };
    let mut found = Vec::new();
    let returned = tally.returned;
    let is_unusual = is_rare(tally.negative.0, returned) || !guessed && is_status(tally);
    if is_number && !orders && (is_unusual || !guessed) {
        let negative = candidate(FailureKind::Negative, tally.negative, guessed);
        found.extend(negative.map(|negative| Candidate {
            is_often: !is_unusual,
            ..negative
        }));
    }
    if *kind == ValueKind::Pointer && is_rare(tally.zero.0, returned) {
        found.extend(candidate(FailureKind::Null, tally.zero, false));
    }
    if !never_returns(tally) {
        found.extend(candidate(FailureKind::Unwound, tally.unwound, false));
    }
    found
}

/// Functions that return zero, and rarely and late something else. Of nested calls that returned the same, the innermost is
/// reported: the value arose there.
fn innermost<'t>(source: &Source<'_>, tallies: &'t [Tally]) -> Result<Vec<Candidate<'t>>> {
    let late = source.late();
    let mut found = tallies
        .iter()
        .filter(|tally| {
            let others = tally.returned - tally.zero.0;
            let kind = source
                .function(tally.function)
                .map(|function| &function.ret);
            let is_told = !source.function(tally.function).is_some_and(tells_nothing);
            let is_number =
                is_told && matches!(kind, Some(ValueKind::Int { .. } | ValueKind::Enum { .. }));
            let is_late = tally.first_other.is_some_and(|first| first >= late);
            let is_rare = tally.zero.0 >= USUAL && others.saturating_mul(USUAL) <= tally.returned;
            is_number && is_late && is_rare && tally.negative.0 == 0
        })
        .collect::<Vec<_>>();
    found.sort_by_key(|tally| std::cmp::Reverse(tally.first_other));
    found.truncate(LOOKED_AT);
    let mut told: Vec<(Candidate<'t>, u64, Option<String>)> = Vec::new();
    for tally in found {
        let first = tally.first_other.unwrap_or_default();
        let Some(call) = call(source, first)? else {
            continue;
        };
        let result = source.described(&call)?.result;
        let end = call.end.unwrap_or(u64::MAX);
        let is_inside = |(inner, _, same): &(Candidate<'_>, u64, Option<String>)| {
            (first..end).contains(&inner.first) && *same == result
        };
        if !told.iter().any(is_inside) {
            let candidate = Candidate {
                kind: FailureKind::NonZero,
                tally,
                failed: tally.returned - tally.zero.0,
                first,
                guessed: false,
                is_often: false,
            };
            told.push((candidate, end, result));
        }
    }
    Ok(told.into_iter().map(|(candidate, ..)| candidate).collect())
}

/// Returns whether only the own library of a function reads its results: those of C++'s library are called `_M_begin`, `_S_create`,
/// `__niter_base`.
fn is_plumbing(name: &str) -> bool {
    let is_of_library = name.starts_with("std::") || name.starts_with("__gnu_cxx::");
    is_of_library && last_part(name).starts_with('_')
}

/// Returns whether the results of a function cannot be failures of the program: it is a library's internal one, or raises a panic.
fn tells_nothing(function: &FunctionDef) -> bool {
    is_plumbing(&function.name) || panic::is_raiser(function)
}

/// Results of a function that mostly returns others; or one of few calls.
fn is_rare(count: u64, of: u64) -> bool {
    count > 0 && (count.saturating_mul(3) <= of || of <= FEW)
}

/// Functions that report success by zero return nothing positive.
fn is_status(tally: &Tally) -> bool {
    let negative = tally.negative.0;
    negative > 0 && negative + tally.zero.0 == tally.returned
}

/// Results of comparisons are negative as often as not.
fn is_comparison(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["cmp", "compar", "collate", "operator<", "coll("]
        .iter()
        .any(|part| name.contains(part))
}

/// Returns whether a type is a result of comparisons, such as Rust's `Ordering`.
fn is_ordering(kind: &ValueKind) -> bool {
    let ValueKind::Enum { names, .. } = kind else {
        return false;
    };
    let has = |name: &str| names.iter().any(|(_, one)| one.eq_ignore_ascii_case(name));
    has("less") && has("greater")
}

/// A function of two pointers that returns results of both signs, neither of them rarely, orders what they point to: `qsort` and
/// `bsearch` call such functions.
fn compares(params: &[Param], tally: &Tally) -> bool {
    let are_pointers = |two: &[Param]| two.iter().all(|param| param.kind == ValueKind::Pointer);
    let positive = tally.returned - tally.zero.0 - tally.negative.0;
    let is_often = |count: u64| count.saturating_mul(OFTEN) > tally.returned;
    matches!(params.len(), 2 | 3)
        && are_pointers(&params[..2])
        && is_often(positive)
        && is_often(tally.negative.0)
        && !is_rare(tally.negative.0, tally.returned)
}

/// `getopt` and its kin return -1 once all options are read.
fn is_option_reader(name: &str) -> bool {
    let name = name.strip_suffix("@plt").unwrap_or(name);
    let name = name.trim_start_matches('_');
    matches!(
        name,
        "getopt" | "getopt_long" | "getopt_long_only" | "getopt_internal" | "getopt_internal_r"
    )
}

/// Returns whether another function called it: the first function of a thread has no caller to report a failure to.
fn has_caller(source: &Source<'_>, candidate: &Candidate<'_>) -> Result<bool> {
    let call = call(source, candidate.first)?;
    Ok(call.is_some_and(|call| call.parent.is_some()))
}

/// Functions that raise exceptions never return.
fn never_returns(tally: &Tally) -> bool {
    tally.calls > FEW && tally.unwound.0 == tally.calls
}

/// Returns whether the call is the first that an exception left, apart from the functions that raise it, and not one
/// of those around it.
fn is_origin(source: &Source<'_>, candidate: &Candidate<'_>, tallies: &[Tally]) -> Result<bool> {
    let (Some(timeline), Some(call)) = (source.timeline(), call(source, candidate.first)?) else {
        return Ok(false);
    };
    let (Some(tid), Some(end)) = (call.tid, call.end) else {
        return Ok(false);
    };
    let mut at = end;
    for _ in 0..EVENTS_AFTER {
        let Some(last) = told(timeline.last_of_thread(tid, at - 1, call.start))? else {
            return Ok(true);
        };
        match told(timeline.event(last))? {
            Event::Leave(inner) if inner.unwound && inner.start > call.start => {
                let tally = tallies.binary_search_by_key(&inner.function, |tally| tally.function);
                if !tally.is_ok_and(|at| never_returns(&tallies[at])) {
                    return Ok(false);
                }
                at = last;
            }
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// Returns whether the thread continued after the call was left: it did not end then.
fn went_on(source: &Source<'_>, candidate: &Candidate<'_>) -> Result<bool> {
    let (Some(timeline), Some(call)) = (source.timeline(), call(source, candidate.first)?) else {
        return Ok(false);
    };
    let (Some(tid), Some(end)) = (call.tid, call.end) else {
        return Ok(false);
    };
    let mut at = end + 1;
    for _ in 0..EVENTS_AFTER {
        let Some(next) = told(timeline.first_of_thread(tid, at))? else {
            return Ok(false);
        };
        match told(timeline.event(next))? {
            Event::Leave(call) if !call.returned() => at = next + 1,
            Event::Other(event) if event.kind != "stdout" && event.kind != "stderr" => {
                at = next + 1
            }
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// A result of a function: how often it was returned, and by which call first.
struct Counted {
    function: u32,
    result: i64,
    count: u64,
    first: u64,
}

/// Counts the results of functions that look like failures, the most frequent first. Where one has too many different ones, they are
/// read again.
fn values(
    source: &Source<'_>,
    candidates: &[&Candidate<'_>],
    results: &[Results],
) -> Result<Vec<(u32, Value)>> {
    let mut counted = Vec::new();
    let mut asked = Vec::new();
    for candidate in candidates {
        let function = candidate.tally.function;
        let of_it = results.get(function as usize);
        let (known, what) = match candidate.kind {
            FailureKind::Negative => (of_it.map(|of_it| &of_it.negative), NEGATIVE),
            FailureKind::NonZero => (of_it.map(|of_it| &of_it.others), "ret <> 0"),
            _ => continue,
        };
        match known.and_then(Counts::all) {
            Some(all) => counted.extend(all.iter().map(|(result, count, first)| Counted {
                function,
                result: *result,
                count: *count,
                first: *first,
            })),
            None => asked.push(format!("(function_id = {function} and {what})")),
        }
    }
    if !asked.is_empty() {
        counted.extend(read_again(source, &asked)?);
    }
    counted.sort_by_key(|one| std::cmp::Reverse((one.count, one.result)));
    let mut found = Vec::new();
    for one in counted {
        let mut value = value_of(source, &one);
        if value.value < 0 && value.errno.is_none() {
            value.failed_syscall = failed_syscall(source, value.first_seq)?;
        }
        found.push((one.function, value));
    }
    Ok(found)
}

/// Selects negative results. One of 32 bits without a known type is not sign-extended.
const NEGATIVE: &str = "(ret between -4095 and -1 or ret between 4294963201 and 4294967295)";

/// Counts the results of calls for which one of the conditions holds.
fn read_again(source: &Source<'_>, conditions: &[String]) -> Result<Vec<Counted>> {
    let sql = format!(
        "select function_id, ret, count(*), min(start_seq) from calls where ({}) and {} \
         group by function_id, ret order by count(*) desc, ret desc",
        conditions.join(" or "),
        source.left_out().excluded()
    );
    let counted = |row: &Row| {
        Some(Counted {
            function: u32::try_from(row.number(0)?).ok()?,
            result: row.number(1)?,
            count: row.count(2)?,
            first: row.count(3)?,
        })
    };
    Ok(source.ask(&sql)?.iter().filter_map(counted).collect())
}

fn value_of(source: &Source<'_>, one: &Counted) -> Value {
    // A value without sign extension is a number of 32 bits.
    let value = match one.result {
        wide @ 4_294_963_201..=4_294_967_295 => i64::from(wide as u32 as i32),
        value => value,
    };
    Value {
        value,
        count: one.count,
        first_seq: one.first,
        // -1 is what functions return for any error.
        errno: value
            .checked_neg()
            .filter(|n| *n != 1 && may_return_errno(source, one.function))
            .and_then(errno_name),
        failed_syscall: None,
    }
}

/// Negated error numbers are returned by libraries of the system, and by the program's functions as `int`. A wider number is a count or an
/// amount.
fn may_return_errno(source: &Source<'_>, function: u32) -> bool {
    let kind = source.function(function).map(|function| &function.ret);
    is_errno_wide(kind) || !source.is_own(function)
}

fn is_errno_wide(kind: Option<&ValueKind>) -> bool {
    matches!(
        kind,
        Some(ValueKind::Int { bytes: 4, .. } | ValueKind::Enum { bytes: 4, .. })
    )
}

/// Returns the last system call that failed while a call ran: `errno` has its error when the call returns.
fn failed_syscall(source: &Source<'_>, seq: u64) -> Result<Option<FailedSyscall>> {
    let manifest = source.session().reader().recording().manifest();
    let has_syscalls = has_syscalls(&manifest.settings.captures);
    let Some(call) = call(source, seq)?.filter(|_| has_syscalls) else {
        return Ok(None);
    };
    let (Some(tid), Some(end)) = (call.tid, call.end) else {
        return Ok(None);
    };
    let sql = format!(
        "select size from events where kind = 'syscall_end' and tid = {tid} and seq > {seq} and seq < {end} \
         and value between -4095 and -1 order by seq desc limit 1"
    );
    let rows = source.ask(&sql)?;
    let Some(began) = rows.first().and_then(|row| row.count(0)) else {
        return Ok(None);
    };
    let rows = source.ask(&format!(
        "select name, errno from syscalls where seq = {began}"
    ))?;
    Ok(rows.first().and_then(|row| {
        Some(FailedSyscall {
            seq: began,
            name: row.text(0)?.to_owned(),
            errno: row.text(1)?.to_owned(),
        })
    }))
}

#[cfg(test)]
mod tests {
    use store::control::ParameterPlace;

    use super::*;

    fn tally(returned: u64, negative: u64, zero: u64) -> Tally {
        Tally {
            calls: returned,
            returned,
            negative: (negative, Some(1)),
            zero: (zero, Some(1)),
            ..Tally::default()
        }
    }

    #[test]
    fn negative_results_are_failures_where_they_are_unusual() {
        for (returned, negative, zero, expected) in [
            (100, 0, 100, false),
            (100, 3, 0, true),
            (100, 60, 40, true),
            // Positive results are as usual: it is told last.
            (100, 45, 10, false),
            (1, 1, 0, true),
            (500, 500, 0, true),
        ] {
            let tally = tally(returned, negative, zero);
            let is_told = is_rare(negative, returned) || is_status(&tally);
            assert_eq!(is_told, expected, "{returned} {negative} {zero}");
        }
        assert!(is_comparison("std::strong_order::Compare(int)"));
        assert!(!is_comparison("open_config"));
        assert!(is_option_reader("getopt_long@plt") && is_option_reader("__getopt"));
        assert!(!is_option_reader("get_options"));
    }

    #[test]
    fn a_wide_number_of_the_program_is_no_errno() {
        let int = |bytes| ValueKind::Int {
            bytes,
            signed: true,
        };
        assert!(is_errno_wide(Some(&int(4))));
        assert!(!is_errno_wide(Some(&int(8))) && !is_errno_wide(None));
    }

    #[test]
    fn internals_of_libraries_do_not_fail() {
        for (name, expected) in [
            ("std::_Rb_tree<int, int>::_M_begin", true),
            ("std::basic_string<char>::_S_create", true),
            ("std::__niter_base<int*>", true),
            ("Table<std::string>::_M_begin", false),
            ("std::map<int, int>::find", false),
            ("look_up", false),
        ] {
            assert_eq!(is_plumbing(name), expected, "{name}");
        }
    }

    #[test]
    fn an_ordering_is_no_failure_and_another_enumeration_may_be_one() {
        let of = |names: [&str; 2]| ValueKind::Enum {
            bytes: 1,
            signed: true,
            names: vec![(-1, names[0].to_owned()), (1, names[1].to_owned())],
        };
        assert!(is_ordering(&of(["Less", "Greater"])));
        assert!(!is_ordering(&of(["ERR_LESS", "OK"])));
    }

    #[test]
    fn functions_of_two_pointers_with_results_of_both_signs_order_things() {
        let param = |kind| Param::in_one_place("p", kind, ParameterPlace::Int(0));
        let pointers = [param(ValueKind::Pointer), param(ValueKind::Pointer)];
        let int = ValueKind::Int {
            bytes: 4,
            signed: true,
        };
        let mixed = [param(ValueKind::Pointer), param(int)];
        for (params, negative, zero, expected) in [
            (&pointers[..], 45, 10, true),
            (&pointers[..1], 45, 10, false),
            (&mixed[..], 45, 10, false),
            // Nearly all calls, or few of them, did not find what they looked for.
            (&pointers[..], 90, 0, false),
            (&pointers[..], 20, 0, false),
            (&pointers[..], 60, 40, false),
        ] {
            let tally = tally(100, negative, zero);
            assert_eq!(compares(params, &tally), expected, "{negative} {zero}");
        }
    }
}

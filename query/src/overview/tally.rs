//! One pass over all calls: what each function did, in numbers.

use super::source::{Source, told};
use crate::error::Result;
use crate::rows::Row;

/// What the calls of one function did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The function.
    pub function: u32,
    /// How many calls it had.
    pub calls: u64,
    /// Their time without the recorded calls that they made, in ns. Of a call that had not ended: up to the end of the
    /// program.
    pub self_ns: u64,
    /// The longest such time of one call that ended, in ns.
    pub longest_ns: u64,
    /// The enter event of its first call.
    pub first: u64,
    /// How many returned a value in rax.
    pub returned: u64,
    /// How many returned an integer from -4095 to -1, and the first of them.
    pub negative: (u64, Option<u64>),
    /// How many returned zero, and the first of them.
    pub zero: (u64, Option<u64>),
    /// The first that returned something else than zero.
    pub first_other: Option<u64>,
    /// How many were left without a return, and the first of them.
    pub unwound: (u64, Option<u64>),
}

impl Tally {
    fn of_row(row: &Row) -> Option<Tally> {
        let count = |column| row.count(column).unwrap_or(0);
        Some(Tally {
            function: u32::try_from(row.number(0)?).ok()?,
            calls: count(1),
            self_ns: count(2),
            longest_ns: count(3),
            first: count(4),
            returned: count(5),
            negative: (count(6), row.count(7)),
            zero: (count(8), row.count(9)),
            first_other: row.count(10),
            unwound: (count(11), row.count(12)),
        })
    }
}

/// Counts. A result of 32 bits without a known type is not extended: both ranges are those of -4095 to -1. What had not
/// ended at event `until` has no time yet.
fn question(until: u64) -> String {
    format!(
        "select function_id, count(*), sum(own), max(own), min(start_seq), count(rax), \
        count(failed), min(failed), count(zero), min(zero), min(other), count(\"left\"), min(\"left\") from (\
            select function_id, start_seq, rax, \
            case when end_seq > {until} then 0 else greatest(self_ns, 0) end as own, \
            case when ret between -4095 and -1 or ret between 4294963201 and 4294967295 then start_seq end as failed, \
            case when rax = 0 then start_seq end as zero, \
            case when rax <> 0 then start_seq end as other, \
            case when unwound then start_seq end as \"left\" from calls) \
        group by function_id"
    )
}

/// Tallies all functions that were called, in the order of their numbers. `end` is the event at which the program ended,
/// and its time: what comes later is the recorder's.
///
/// # Errors
/// The recording cannot be read.
pub fn tallies(source: &Source<'_>, end: (u64, i64)) -> Result<Vec<Tally>> {
    let rows = source.ask(&question(end.0))?;
    let mut all: Vec<Tally> = rows.iter().filter_map(Tally::of_row).collect();
    all.sort_by_key(|tally| tally.function);
    add_open(source, &mut all, end)?;
    Ok(all)
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
                all[at].self_ns += u64::try_from(own).unwrap_or(0);
            }
        }
    }
    Ok(())
}

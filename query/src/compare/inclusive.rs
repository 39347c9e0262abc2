//! How long the calls of each function took with all that they made. Calls of a function inside another one of the same
//! function and thread are time of the outer one alone, as in a report.
//!
//! Backwards, the outer call comes first, so one number per function and thread tells which calls are inside it. Calls that
//! had not ended have no time.

use arrow::array::{Array, AsArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use rustc_hash::FxHashMap;

use super::stop::Stop;
use crate::error::Result;
use crate::report::Groups;
use crate::session::Session;

const COLUMNS: [&str; 5] = ["end_seq", "start_seq", "dur_ns", "function_id", "tid"];

/// The calls of a row group, in order of their ends, those that had not ended last.
struct Rows {
    ended: usize,
    start_seq: Int64Array,
    dur_ns: Int64Array,
    function_id: Int32Array,
    tid: Int32Array,
}

impl Rows {
    fn of(batch: &RecordBatch) -> Option<Rows> {
        let long = |name: &str| {
            let column = batch.column_by_name(name)?;
            column.as_primitive_opt::<Int64Type>().cloned()
        };
        let int = |name: &str| {
            let column = batch.column_by_name(name)?;
            column.as_primitive_opt::<Int32Type>().cloned()
        };
        let end_seq = long("end_seq")?;
        Some(Rows {
            ended: end_seq.len() - end_seq.null_count(),
            start_seq: long("start_seq")?,
            dur_ns: long("dur_ns")?,
            function_id: int("function_id")?,
            tid: int("tid")?,
        })
    }
}

/// Returns the times in ns, by function id; those of functions whose id is `limit` or more are left out.
///
/// # Errors
/// A file cannot be read; [`crate::Error::Stopped`].
pub fn inclusive_ns(session: &Session, limit: usize, stop: &Stop) -> Result<Vec<u64>> {
    let groups = Groups::open(&session.report_source().calls)?;
    let mut sums = vec![0u64; limit];
    // By thread and function, where the last call began that is not inside another one.
    let mut outer: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    // One row group at a time: the other recording's are read at the same time.
    for index in (0..groups.len()).rev() {
        stop.check()?;
        let rows = groups.read_columns(index, &COLUMNS, Rows::of)?;
        for row in (0..rows.ended).rev() {
            let function = rows.function_id.value(row).cast_unsigned();
            let tid = match rows.tid.is_valid(row) {
                true => rows.tid.value(row).cast_unsigned(),
                false => 0,
            };
            let start = rows.start_seq.value(row);
            let began = outer.entry((tid, function)).or_insert(i64::MAX);
            if start > *began {
                continue;
            }
            *began = start;
            if let Some(sum) = sums.get_mut(function as usize) {
                let dur_ns = u64::try_from(rows.dur_ns.value(row)).unwrap_or(0);
                *sum = sum.saturating_add(dur_ns);
            }
        }
    }
    Ok(sums)
}

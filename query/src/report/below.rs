//! The calls below one call, as the program made them: each with its arguments and its times as measured. The longest ones
//! are kept, so memory grows with the depth of calls and with what is asked for, not with the number of calls.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use arrow::array::{Array, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use serde::Serialize;

use crate::error::Result;
use crate::rows::{Row, ask};
use crate::session::Session;

/// So many calls are asked for by their numbers.
const FEW: usize = 1000;
/// How long a call took that has not ended: longer than any other.
const UNFINISHED_NS: i64 = i64::MAX;

/// A call and those below it: that it made, that these made, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Below {
    /// Only the entries of calls are recorded: which call made which is not known, and `calls` is empty.
    #[serde(skip)]
    pub only_entries: bool,
    /// The call, then the longest of those below it, each after the one that made it.
    pub calls: Vec<CallBelow>,
    /// How many there are, the call itself included.
    pub call_count: u64,
}

/// One of these calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallBelow {
    /// Its enter event.
    pub start_seq: u64,
    /// The enter event of the call that made it, if one is recorded.
    pub parent: Option<u64>,
    /// How far it is below the first call, which is at level 0.
    pub level: usize,
    /// Its function.
    pub function: String,
    /// Its arguments as text.
    pub args: Option<String>,
    /// Its time with the recorded calls that it made, as measured, in ns; `None` if it had not ended.
    pub dur_ns: Option<u64>,
    /// Its time without them, as measured, in ns; `None` if it had not ended.
    pub self_ns: Option<u64>,
}

/// Returns the call that begins at the event `seq`, and the longest `most` calls with it down to `levels` levels. `None` if no
/// call begins there.
///
/// # Errors
/// The recording cannot be read.
pub fn below(session: &Session, seq: u64, levels: usize, most: usize) -> Result<Option<Below>> {
    let sql = format!("select tid, end_seq from calls where start_seq = {seq}");
    let Some(first) = ask(session, &sql)?.pop() else {
        return Ok(None);
    };
    if session.report_source().only_entries {
        let only_entries = true;
        return Ok(Some(Below {
            only_entries,
            ..Below::default()
        }));
    }
    let during = during(seq, &first);
    let mut kept = Kept::new(seq, levels, most);
    let sql = format!(
        "select start_seq, end_seq, parent, dur_ns from calls where {during} order by start_seq"
    );
    each(session, &sql, &mut |row| kept.add(row))?;
    Ok(Some(Below {
        only_entries: false,
        call_count: kept.all,
        calls: described(session, &during, &kept.levels_by_start())?,
    }))
}

/// The condition for calls of its thread that began while a call ran.
fn during(seq: u64, first: &Row) -> String {
    let thread = match first.number(0) {
        Some(tid) => format!("tid = {tid}"),
        None => "tid is null".to_owned(),
    };
    match first.number(1) {
        Some(end) => format!("{thread} and start_seq between {seq} and {end}"),
        None => format!("{thread} and start_seq >= {seq}"),
    }
}

/// Passes each row of four whole numbers on.
fn each(session: &Session, sql: &str, then: &mut dyn FnMut([Option<i64>; 4])) -> Result<()> {
    for batch in session.sql(sql)? {
        let batch = batch?;
        let columns = batch.columns().iter();
        let columns = columns.map(|column| cast(column, &DataType::Int64));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        let number = |column: usize, row: usize| {
            let column: &Int64Array = columns[column].as_primitive::<Int64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        for row in 0..batch.num_rows() {
            then([0, 1, 2, 3].map(|column| number(column, row)));
        }
    }
    Ok(())
}

/// A call below the first one that has not ended yet.
struct Open {
    start: i64,
    end: i64,
    level: usize,
}

/// Finds the calls below one, and keeps the longest of them. A call is never shorter than one that it made, so what made a
/// kept call is kept, too.
struct Kept {
    first: i64,
    levels: usize,
    most: usize,
    open: Vec<Open>,
    all: u64,
    /// Duration, enter event and level; the shortest is on top.
    longest: BinaryHeap<Reverse<(i64, Reverse<i64>, usize)>>,
}

impl Kept {
    fn new(seq: u64, levels: usize, most: usize) -> Kept {
        Kept {
            first: seq.cast_signed(),
            levels,
            most,
            open: Vec::new(),
            all: 0,
            longest: BinaryHeap::new(),
        }
    }

    /// Adds a call: its enter event, its leave event, the call that made it, and its duration. They come in the order in which
    /// they began.
    fn add(&mut self, [start, end, parent, dur_ns]: [Option<i64>; 4]) {
        let Some(start) = start else {
            return;
        };
        self.open.retain(|open| open.end > start);
        let Some(level) = self.level(start, parent) else {
            return;
        };
        self.all += 1;
        let end = end.unwrap_or(i64::MAX);
        self.open.push(Open { start, end, level });
        if level >= self.levels {
            return;
        }
        let ns = dur_ns.filter(|ns| *ns >= 0).unwrap_or(UNFINISHED_NS);
        self.longest.push(Reverse((ns, Reverse(start), level)));
        if self.longest.len() > self.most {
            self.longest.pop();
        }
    }

    /// `None`: the call is not below the first one, as those of other coroutines of the thread.
    fn level(&self, start: i64, parent: Option<i64>) -> Option<usize> {
        if start == self.first {
            return Some(0);
        }
        let parent = self.open.iter().rfind(|open| Some(open.start) == parent);
        parent.map(|parent| parent.level + 1)
    }

    fn levels_by_start(&self) -> BTreeMap<i64, usize> {
        let kept = self.longest.iter();
        kept.map(|Reverse((_, Reverse(start), level))| (*start, *level))
            .collect()
    }
}

/// Reads what is shown of the calls with these enter events.
fn described(
    session: &Session,
    during: &str,
    levels: &BTreeMap<i64, usize>,
) -> Result<Vec<CallBelow>> {
    let starts = levels.keys().map(i64::to_string).collect::<Vec<_>>();
    let which = match starts.len() {
        0 => return Ok(Vec::new()),
        1..=FEW => format!("start_seq in ({})", starts.join(", ")),
        _ => during.to_owned(),
    };
    let sql = format!(
        "select start_seq, parent, function, args, dur_ns, self_ns from calls where {which} order by start_seq"
    );
    let rows = ask(session, &sql)?;
    let calls = rows.iter().filter_map(|row| {
        let level = *levels.get(&row.number(0)?)?;
        Some(CallBelow {
            start_seq: row.count(0)?,
            parent: row.count(1),
            level,
            function: row.text(2).unwrap_or_default().to_owned(),
            args: row.text(3).map(str::to_owned),
            dur_ns: row.count(4),
            self_ns: row.count(5),
        })
    });
    Ok(calls.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enter event, leave event, the call that made it, and duration. -1 stands for null.
    type Call = (i64, i64, i64, i64);

    fn kept(calls: &[Call], levels: usize, most: usize) -> (u64, Vec<(i64, usize)>) {
        let mut kept = Kept::new(1, levels, most);
        for (start, end, parent, dur_ns) in calls {
            let known = |number: i64| (number >= 0).then_some(number);
            kept.add([Some(*start), known(*end), known(*parent), Some(*dur_ns)]);
        }
        (kept.all, kept.levels_by_start().into_iter().collect())
    }

    /// The calls 2 and 9 are of the first one, 6 is of another coroutine.
    const CALLS: [Call; 6] = [
        (1, 12, 0, 90),
        (2, 8, 1, 40),
        (3, 4, 2, 10),
        (5, 7, 2, 20),
        (6, 13, 0, 70),
        (9, 10, 1, 20),
    ];

    #[test]
    fn calls_below_one_have_levels() {
        let all = vec![(1, 0), (2, 1), (3, 2), (5, 2), (9, 1)];
        assert_eq!(kept(&CALLS, 9, usize::MAX), (5, all));
        let two_levels = vec![(1, 0), (2, 1), (9, 1)];
        assert_eq!(kept(&CALLS, 2, usize::MAX), (5, two_levels));
    }

    #[test]
    fn the_longest_are_kept_and_of_equal_ones_the_first() {
        assert_eq!(kept(&CALLS, 9, 2), (5, vec![(1, 0), (2, 1)]));
        assert_eq!(kept(&CALLS, 9, 3), (5, vec![(1, 0), (2, 1), (5, 2)]));
    }

    #[test]
    fn what_has_not_ended_is_longest() {
        let calls = [(1, -1, -1, -1), (2, 3, 1, 50), (4, -1, 1, -1)];
        assert_eq!(kept(&calls, 9, 2), (3, vec![(1, 0), (4, 1)]));
    }
}

//! Runs a recording again, stretch by stretch, and makes rows of the results. A stretch takes a fraction of a second, so that
//! a reader can stop at any time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use datafusion::common::Result;
use replay::{MOST_WATCHED, Seek, Sought, Timeline, watchable};
use values::quantity::count;

use super::code::{LineStarts, line_starts, ranges, ranges_of};
use super::exec::Asked;
use super::place::{Moments, Places, SourceLocation};
use super::rows::{Row, batch};
use super::table::Kind;
use super::wanted::Wanted;
use crate::state::failed;

/// Rows of a batch.
const ROWS: usize = 4096;
/// How long rows are collected before they are passed on.
const SLICE: Duration = Duration::from_millis(50);
/// The duration of a stretch should be between these.
const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_millis(250);
/// Instructions of the first stretch and of the longest one, if each is noted.
const NOTED: (u64, u64) = (1 << 18, 1 << 24);
/// The same, if only the beginnings of some lines are noted.
const LINES: (u64, u64) = (1 << 20, 1 << 28);
/// The same, if the program runs freely. Each stretch goes back to the last copy of the program before it, so short ones take longer.
const RUN: (u64, u64) = (1 << 28, 1 << 30);
/// Most bytes of a value that are shown.
const VALUE_BYTES: usize = 64;

/// How to find what the filters select.
pub enum Way {
    /// Code in these ranges notes what it does; `None`: all code.
    Notes(Option<Vec<Range<u64>>>),
    /// The processor watches these bytes.
    Watched(Range<u64>),
    /// The code at which lines begin notes that it is executed.
    Lines(LineStarts),
}

impl Way {
    pub fn of(timeline: &Timeline, kind: Kind, wanted: &Wanted) -> Way {
        if kind == Kind::Lines {
            return Way::Lines(line_starts(timeline, wanted));
        }
        let bytes = memory(wanted);
        if kind == Kind::Writes && bytes.end - bytes.start <= MOST_WATCHED {
            return Way::Watched(bytes);
        }
        Way::Notes(ranges(timeline, wanted))
    }

    /// Describes it for EXPLAIN.
    pub fn describe(&self) -> String {
        match self {
            Way::Notes(None) => "noting what all code does".to_owned(),
            Way::Notes(Some(ranges)) => {
                let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
                format!("noting what {} of code do", count(bytes, "byte"))
            }
            Way::Watched(bytes) => {
                let bytes = count(bytes.end - bytes.start, "byte");
                format!("letting the processor watch {bytes}")
            }
            Way::Lines(starts) => {
                let starts = count(starts.len() as u64, "instruction");
                format!("noting when {starts} where a line begins are passed")
            }
        }
    }

    fn lengths(&self) -> (u64, u64) {
        match self {
            Way::Notes(_) => NOTED,
            Way::Lines(_) => LINES,
            Way::Watched(_) => RUN,
        }
    }
}

/// The memory that the filters select.
fn memory(wanted: &Wanted) -> Range<u64> {
    let number = |number: i64| u64::try_from(number).unwrap_or(0);
    let low = number(wanted.addr.low.max(wanted.end.low.saturating_sub(1)));
    let last = match wanted.end.high {
        i64::MAX => i64::MAX,
        end => end.saturating_sub(1),
    };
    let high = match wanted.addr.high.min(last) {
        i64::MAX => u64::MAX - 1,
        high => number(high),
    };
    // A write that begins before `high` and ends after `low` has both.
    low.min(high)..low.max(high) + 1
}

/// A run that is under way.
pub struct Stretch {
    asked: Asked,
    way: Way,
    seek: Seek,
    /// The positions to run, and how far the run is.
    next: u64,
    end: u64,
    /// Instructions of the next stretch.
    length: u64,
    places: Places,
    moments: Moments,
    found: VecDeque<Sought>,
}

impl Stretch {
    pub fn begin(asked: Asked) -> Result<Stretch> {
        let states = asked.states.clone();
        let timeline = states.timeline()?;
        let Range { start, end } = positions(timeline, &asked.wanted).map_err(failed)?;
        let way = Way::of(timeline, asked.kind, &asked.wanted);
        let bytes = memory(&asked.wanted);
        let tid = asked
            .wanted
            .tid
            .only()
            .and_then(|tid| i32::try_from(tid).ok());
        let code = match &way {
            Way::Notes(ranges) => ranges.clone(),
            Way::Lines(starts) => ranges_of(starts),
            Way::Watched(_) => None,
        };
        let seek = Seek {
            instructions: matches!(asked.kind, Kind::Instructions | Kind::Lines),
            reads: asked.kind == Kind::Reads,
            writes: asked.kind == Kind::Writes,
            memory: match &way {
                Way::Watched(bytes) => Some(watchable(bytes.clone())),
                Way::Notes(_) | Way::Lines(_) => (bytes != (0..u64::MAX)).then(|| vec![bytes]),
            },
            code,
            tid,
            value_bytes: VALUE_BYTES,
        };
        Ok(Stretch {
            length: way.lengths().0,
            way,
            seek,
            next: start,
            end,
            places: Places::new(timeline.spaces().map_err(failed)?),
            moments: Moments::default(),
            found: VecDeque::new(),
            asked,
        })
    }

    /// The position up to which it has been run.
    pub fn reached(&self) -> u64 {
        self.next
    }

    /// Returns rows, of which there may be none yet; `None` at the end.
    pub fn rows(&mut self) -> Result<Option<RecordBatch>> {
        let states = self.asked.states.clone();
        let timeline = states.timeline()?;
        let began = Instant::now();
        let mut rows = Vec::new();
        while rows.len() < ROWS && began.elapsed() < SLICE {
            if let Some(sought) = self.found.pop_front() {
                rows.push(self.row(timeline, sought)?);
                continue;
            }
            if self.next >= self.end {
                break;
            }
            self.run(timeline).map_err(failed)?;
        }
        let is_done = rows.is_empty() && self.found.is_empty() && self.next >= self.end;
        match is_done {
            true => Ok(None),
            false => batch(&self.asked.schema, &rows).map(Some),
        }
    }

    /// Runs the next stretch.
    fn run(&mut self, timeline: &Timeline) -> replay::Result<()> {
        let began = Instant::now();
        let mut until = self.end.min(self.next.saturating_add(self.length));
        let (mut found, reached) = timeline.sought(self.next..until, self.seek.clone())?;
        until = until.min(reached.max(self.next + 1));
        if let Way::Lines(starts) = &self.way {
            found.retain(|sought| {
                let code = sought.code.as_ref();
                code.is_some_and(|(address, _)| starts.contains_key(address))
            });
        }
        let tid = self.seek.tid.map(i32::cast_unsigned);
        found.retain(|sought| tid.is_none_or(|tid| sought.tid == tid));
        self.found.extend(found);
        self.next = until;
        let (shortest, longest) = self.way.lengths();
        let took = began.elapsed();
        if took < SHORT {
            self.length = (self.length * 2).min(longest);
        } else if took > LONG {
            self.length = (self.length / 2).max(shortest);
        }
        Ok(())
    }

    fn row(&mut self, timeline: &Timeline, sought: Sought) -> Result<Row> {
        let reads = |name: &str| self.asked.schema.column_with_name(name).is_some();
        let (mut seq, mut step) = (0, 0);
        if reads("seq") || reads("step") {
            let instant = self.moments.at(timeline, sought.position).map_err(failed)?;
            (seq, step) = (instant.seq, instant.steps);
        }
        let reads_place = reads("function") || reads("file") || reads("line");
        let place = match (&sought.code, &self.way) {
            (Some((address, _)), Way::Lines(starts)) if reads_place => {
                let mut place = self.places.of(sought.position, *address);
                if let Some((file, line)) = starts.get(address) {
                    place.file = Some(Arc::clone(file));
                    place.line = Some(*line);
                }
                place
            }
            (Some((address, _)), _) if reads_place => self.places.of(sought.position, *address),
            _ => SourceLocation::default(),
        };
        let text = match &sought.code {
            Some((address, code)) if reads("text") => {
                Some(self.places.text(sought.position, *address, code))
            }
            _ => None,
        };
        Ok(Row {
            sought,
            seq,
            step,
            place,
            text,
        })
    }
}

/// The positions that the filters select.
fn positions(timeline: &Timeline, wanted: &Wanted) -> replay::Result<Range<u64>> {
    let number = |number: i64| u64::try_from(number).unwrap_or(0);
    let end = timeline.instructions()?;
    let mut start = number(wanted.position.low);
    let mut until = match wanted.position.high {
        high if high < 0 => 0,
        high => number(high).saturating_add(1).min(end),
    };
    if wanted.seq.low > 0 {
        start = match number(wanted.seq.low) {
            seq if seq <= timeline.last() => start.max(timeline.position(seq)?),
            _ => end,
        };
    }
    match wanted.seq.high {
        high if high < 0 => until = 0,
        high if number(high) < timeline.last() => {
            until = until.min(timeline.position(number(high) + 1)?);
        }
        _ => {}
    }
    Ok(start..until)
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{Expr, col, lit};

    use super::*;

    fn left(filters: &[Expr]) -> Range<u64> {
        let mut wanted = Wanted::default();
        for filter in filters {
            assert!(wanted.take(filter));
        }
        memory(&wanted)
    }

    #[test]
    fn memory_is_what_a_write_must_touch() {
        let end = || col("addr") + col("size");
        assert_eq!(left(&[]), 0..u64::MAX);
        assert_eq!(left(&[col("addr").eq(lit(0x1000i64))]), 0x1000..0x1001);
        assert_eq!(
            left(&[col("addr").between(lit(0x1000i64), lit(0x1007i64))]),
            0x1000..0x1008
        );
        // Who wrote any of these eight bytes?
        assert_eq!(
            left(&[col("addr").lt(lit(0x1008i64)), end().gt(lit(0x1000i64))]),
            0x1000..0x1008
        );
        // All of them.
        assert_eq!(
            left(&[
                col("addr").lt_eq(lit(0x1000i64)),
                end().gt_eq(lit(0x1008i64))
            ]),
            0x1000..0x1008
        );
        assert_eq!(left(&[col("addr").gt_eq(lit(0x1000i64))]), 0x1000..u64::MAX);
    }
}

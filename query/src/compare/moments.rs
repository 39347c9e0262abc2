//! Numbers that are times of the clock while a program ran: each run has others. What is computed from two of them, such as how long
//! something took, is not recognised.

use std::ops::Range;

use crate::session::Session;

/// The program may have read the clock before the recording began, and rounds times.
const SLACK_NS: u64 = 1_000_000_000;

/// The numbers that are times of two runs, as ranges. A number that only one run could have read is the same in the other one.
#[derive(Debug, Default)]
pub struct Moments {
    ranges: Vec<Range<u64>>,
    /// The first number of all ranges.
    least: u64,
}

impl Moments {
    /// Takes the times of both recordings.
    pub fn of(a: &Session, b: &Session) -> Self {
        let ranges: Vec<Range<u64>> = [a, b].into_iter().flat_map(times).collect();
        let least = ranges.iter().map(|range| range.start).min();
        Self {
            least: least.unwrap_or(u64::MAX),
            ranges,
        }
    }

    /// Tells whether a number is such a time.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        number >= self.least && self.ranges.iter().any(|range| range.contains(&number))
    }
}

/// Returns the times of a recording: of the wall clock in ns, us, ms and s, of the monotonic clock in ns and us, and of both in s as
/// the bits of a double.
fn times(session: &Session) -> Vec<Range<u64>> {
    let manifest = session.reader().recording().manifest();
    let lasted = session.extent().duration_ns;
    let span = |start: u64| {
        let end = start.saturating_add(lasted).saturating_add(SLACK_NS);
        start.saturating_sub(SLACK_NS)..end
    };
    let in_units = |span: &Range<u64>, unit: u64| span.start / unit..span.end.div_ceil(unit);
    let doubles = |span: &Range<u64>| {
        let bits = |ns: u64| (ns as f64 / 1e9).to_bits();
        bits(span.start)..bits(span.end)
    };
    let mut ranges = Vec::new();
    if let Ok(start @ 1..) = u64::try_from(manifest.start_unix_ns) {
        let span = span(start);
        ranges.extend([1, 1_000, 1_000_000, 1_000_000_000].map(|unit| in_units(&span, unit)));
        ranges.push(doubles(&span));
    }
    if let Some(start) = manifest.start_monotonic_ns {
        let span = span(start);
        ranges.extend([1, 1_000].map(|unit| in_units(&span, unit)));
        ranges.push(doubles(&span));
    }
    ranges
}

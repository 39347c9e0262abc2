//! The code that passes the filters: ranges of addresses. Code elsewhere runs at full speed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use debuginfo::{AddressSpace, Mapped};
use replay::Timeline;

use super::wanted::{Span, Wanted};

/// Most ranges that are distinguished while the program runs. With more of them, all code is noted.
const MOST_RANGES: usize = 2000;

/// Where lines begin.
pub type LineStarts = BTreeMap<u64, (Arc<str>, u32)>;

/// Returns the ranges of code that contain everything that passes the filters; `None`: all code, or too many ranges.
pub fn ranges(timeline: &Timeline, wanted: &Wanted) -> Option<Vec<Range<u64>>> {
    if wanted.pc.is_bounded() {
        // The filters may also mean code outside of functions.
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        let (low, high) = (number(wanted.pc.low), number(wanted.pc.high));
        return Some(vec![low..high.saturating_add(1).max(low)]);
    }
    let has_line = wanted.file.is_some() || wanted.line.is_bounded();
    if wanted.function.is_none() && !has_line {
        return None;
    }
    let space = AddressSpace::new(timeline.modules().all_usable());
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for function in functions(&space, wanted.function.as_deref()) {
        if !has_line {
            ranges.push(function);
            continue;
        }
        let lines = lines_of(&space, function);
        let meant = lines.filter(|(_, file, line)| is_meant(wanted, file, *line));
        ranges.extend(meant.map(|(range, ..)| range));
    }
    ranges.sort_unstable_by_key(|range| range.start);
    (ranges.len() <= MOST_RANGES).then_some(ranges)
}

/// Returns where the lines that pass the filters begin: at the first statement of a line after one of another line.
pub fn line_starts(timeline: &Timeline, wanted: &Wanted) -> LineStarts {
    let space = AddressSpace::new(timeline.modules().all_usable());
    let mut starts = LineStarts::new();
    for range in functions(&space, wanted.function.as_deref()) {
        let mut last: Option<(Arc<str>, u32)> = None;
        let mut at = range.start;
        while at < range.end
            && let Some(row) = space.step_line(at)
        {
            let place = (row.file, row.line);
            if last.as_ref() != Some(&place) {
                let is_start = row.is_statement && row.line > 0;
                if is_start && is_meant(wanted, &place.0, place.1) {
                    starts.insert(row.range.start, place.clone());
                }
                // A row that is not a statement does not begin a line: the next one may.
                last = row.is_statement.then_some(place);
            }
            at = row.range.end.max(at + 1);
        }
    }
    starts
}

/// Returns these addresses as ranges; `None` if there are too many.
pub fn ranges_of(starts: &LineStarts) -> Option<Vec<Range<u64>>> {
    let ranges = starts.keys().map(|start| *start..*start + 1);
    (starts.len() <= MOST_RANGES).then(|| ranges.collect())
}

/// The parts of the code of functions: of those with one of these names, or of all in modules with line tables.
fn functions(space: &AddressSpace, names: Option<&[String]>) -> Vec<Range<u64>> {
    let of_module = |mapped: &Mapped| {
        let all = mapped.module.functions().list.iter();
        let meant = all.filter(|function| match names {
            Some(names) => names.contains(&function.name),
            None => mapped.module.has_dwarf(),
        });
        let ranges = meant.flat_map(|function| function.ranges.iter());
        let ranges = ranges.map(|range| mapped.address(range.start)..mapped.address(range.end));
        ranges.collect::<Vec<_>>()
    };
    space.modules().iter().flat_map(of_module).collect()
}

fn lines_of(
    space: &AddressSpace,
    range: Range<u64>,
) -> impl Iterator<Item = (Range<u64>, Arc<str>, u32)> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        if at >= range.end {
            return None;
        }
        let row = space.step_line(at)?;
        let end = row.range.end.clamp(at + 1, range.end);
        let found = (at..end, row.file, row.line);
        at = end;
        Some(found)
    })
}

fn is_meant(wanted: &Wanted, file: &str, line: u32) -> bool {
    let is_file = |files: &Vec<String>| files.iter().any(|wanted| wanted == file);
    wanted.file.as_ref().is_none_or(is_file)
        && (wanted.line == Span::default() || wanted.line.holds(i64::from(line)))
}

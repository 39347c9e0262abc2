//! The first line of a function's source that differs in two builds, as far as the source files of both are still there.

use std::collections::BTreeMap;
use std::sync::Arc;

use debuginfo::{AddressSpace, Svma};

use super::parted::{SourceLine, source_of};
use super::side::Side;

/// Bytes of a function whose lines are looked up.
const MOST_BYTES: u64 = 16 << 10;

/// The first line of a function that differs.
pub struct Change {
    /// The line, in both builds.
    pub lines: (SourceLine, SourceLine),
    /// The function that the line belongs to, if that is one inlined there.
    pub inlined: Option<String>,
}

/// The lines of a function, or of a copy that is inlined into it, that have code.
struct Span {
    file: Arc<str>,
    /// Where the function begins, if that is known. Code of others that the compiler moved there has other lines.
    declared: Option<u32>,
    first: u32,
    last: u32,
}

/// The lines of a function and of those inlined into it, by name.
struct Lines {
    own: Option<Span>,
    inlined: BTreeMap<Arc<str>, Span>,
}

fn lines(side: &Side<'_>, number: u32) -> Option<Lines> {
    let function = side.source.function(side.id_of(number)?)?;
    let timeline = side.source.timeline()?;
    let space = timeline.modules().space(timeline.last());
    let mapped = space
        .modules()
        .iter()
        .find(|mapped| mapped.number == function.module)?;
    let start = mapped.address(Svma(function.svma));
    let end = start.saturating_add(function.size.min(MOST_BYTES));
    let mut found = spans(&space, start..end);
    if let (Some(own), Some(line)) = (&mut found.own, function.line) {
        own.first = own.first.min(line);
    }
    Some(found)
}

fn spans(space: &AddressSpace, range: std::ops::Range<u64>) -> Lines {
    let mut found = Lines {
        own: None,
        inlined: BTreeMap::new(),
    };
    let mut at = range.start;
    while at < range.end {
        let Some(line) = space.step_line(at).filter(|line| line.range.end > at) else {
            break;
        };
        let mut calls = space.calls_at(at);
        // Some code of an inlined function has the line of its call.
        let inside = space.calls_inside_line(at, &line.file, line.line);
        calls.truncate(calls.len().saturating_sub(inside));
        let declared = calls.last().and_then(|call| call.declared);
        let span = Span {
            file: Arc::clone(&line.file),
            declared,
            first: declared.map_or(line.line, |declared| declared.min(line.line)),
            last: line.line,
        };
        let add = |known: &mut Span| {
            if known.file == line.file {
                known.first = known.first.min(line.line);
                known.last = known.last.max(line.line);
            }
        };
        match calls.last().filter(|_| calls.len() > 1) {
            None => match &mut found.own {
                Some(own) => add(own),
                none => *none = Some(span),
            },
            Some(call) => {
                if let Some(name) = &call.name {
                    let known = found.inlined.entry(Arc::clone(name));
                    known.and_modify(add).or_insert(span);
                }
            }
        }
        at = line.range.end;
    }
    found
}

/// Returns the first line that differs, of both builds: of the function, or else of one inlined into it.
pub fn first_change(a: &Side<'_>, b: &Side<'_>, number: u32) -> Option<Change> {
    let (of_a, of_b) = (lines(a, number)?, lines(b, number)?);
    let own = of_a.own.as_ref().zip(of_b.own.as_ref());
    let own = own.map(|spans| (None, spans));
    let inlined = of_a.inlined.iter().filter_map(|(name, span)| {
        let other = of_b.inlined.get(name)?;
        Some((Some(name.to_string()), (span, other)))
    });
    own.into_iter().chain(inlined).find_map(|(inlined, spans)| {
        let lines = differing((a, spans.0), (b, spans.1))?;
        let inlined = owner(&of_b, &lines.1).unwrap_or(inlined);
        Some(Change { lines, inlined })
    })
}

/// Returns the inlined function that a line belongs to, `Some(None)` if it is the function itself: what is inlined next to
/// it may reach over it. `None` if nothing tells.
fn owner(of: &Lines, line: &SourceLine) -> Option<Option<String>> {
    let own = of.own.as_ref().map(|span| (None, span));
    let inlined = of.inlined.iter();
    let inlined = inlined.map(|(name, span)| (Some(name.to_string()), span));
    let begins = |span: &Span| span.declared.unwrap_or(span.first);
    let around = own
        .into_iter()
        .chain(inlined)
        .filter(|(_, span)| *span.file == *line.file)
        .filter(|(_, span)| (begins(span)..=span.last).contains(&line.line));
    let nearest = around.max_by_key(|(_, span)| begins(span));
    nearest.map(|(name, _)| name)
}

fn differing(a: (&Side<'_>, &Span), b: (&Side<'_>, &Span)) -> Option<(SourceLine, SourceLine)> {
    let (own, other) = (texts(a)?, texts(b)?);
    let mut pairs = own.iter().zip(&other);
    let at = pairs.position(|(own, other)| own != other)?;
    let line = |span: &Span, texts: &[String]| SourceLine {
        file: span.file.to_string(),
        line: span.first + at as u32,
        text: Some(texts[at].clone()),
    };
    Some((line(a.1, &own), line(b.1, &other)))
}

fn texts((side, span): (&Side<'_>, &Span)) -> Option<Vec<String>> {
    let text = source_of(side, &span.file)?;
    let skipped = span.first.checked_sub(1)? as usize;
    let count = span.last.checked_sub(span.first)? as usize + 1;
    let lines = text.lines().skip(skipped).take(count);
    Some(lines.map(|line| line.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_belongs_to_the_function_around_it() {
        let span = |declared: u32, last: u32| Span {
            file: Arc::from("a.c"),
            declared: Some(declared),
            first: declared.min(15),
            last,
        };
        let lines = Lines {
            own: Some(span(40, 60)),
            inlined: BTreeMap::from([
                (Arc::from("below"), span(10, 14)),
                // What is inlined next to it reaches over it.
                (Arc::from("mix"), span(30, 50)),
            ]),
        };
        let of = |line: u32| {
            let line = SourceLine {
                file: "a.c".to_owned(),
                line,
                text: None,
            };
            owner(&lines, &line)
        };
        assert_eq!(of(12), Some(Some("below".to_owned())));
        assert_eq!(of(35), Some(Some("mix".to_owned())));
        assert_eq!(of(45), Some(None));
        // Code of this line is in the function, but it is another's, of which nothing is known.
        assert_eq!(of(20), None);
    }
}

//! The first line of a function's source that differs in two builds, as far as the source files of both are still there.

use debuginfo::Svma;

use super::parted::{SourceLine, source_of};
use super::side::Side;

/// Bytes of a function whose lines are looked up.
const MOST_BYTES: u64 = 16 << 10;

/// The source file of a function, and its lines from the first to the last one that has code.
struct Lines {
    file: String,
    first: u32,
    texts: Vec<String>,
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
    // The code may begin with that of another file's function, inlined into it.
    let own = space.line_at(start)?;
    let file = function.file.as_deref().unwrap_or(&own.file);
    let addresses = start..start.saturating_add(function.size.min(MOST_BYTES));
    let all = addresses.filter_map(|address| space.line_at(address));
    let of_file = all.filter(|line| *line.file == *file).map(|line| line.line);
    let (least, last) = of_file.fold((u32::MAX, None), |(least, last), line| {
        (least.min(line), last.max(Some(line)))
    });
    let (last, first) = (last?, function.line.unwrap_or(least).min(least));
    let text = source_of(side, file)?;
    let skipped = first.checked_sub(1)? as usize;
    let count = last.checked_sub(first)? as usize + 1;
    Some(Lines {
        file: file.to_owned(),
        first,
        texts: text
            .lines()
            .skip(skipped)
            .take(count)
            .map(|line| line.trim().to_owned())
            .collect(),
    })
}

/// Returns the first line that differs, of both builds.
pub fn first_change(a: &Side<'_>, b: &Side<'_>, number: u32) -> Option<(SourceLine, SourceLine)> {
    let (own, other) = (lines(a, number)?, lines(b, number)?);
    let mut pairs = own.texts.iter().zip(&other.texts);
    let at = pairs.position(|(own, other)| own != other)?;
    let line = |of: &Lines| SourceLine {
        file: of.file.clone(),
        line: of.first + at as u32,
        text: Some(of.texts[at].clone()),
    };
    Some((line(&own), line(&other)))
}

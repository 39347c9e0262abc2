//! What the program printed to standard error, and which of its functions printed it.

use serde::Serialize;

use super::source::{By, Source};
use crate::error::Result;
use crate::rows::Row;

/// Most lines that are reported from the beginning, and as many from the end.
const LINES: usize = 4;
/// Writes that are read at each end. A line may consist of several.
const WRITES: usize = 64;
/// What Rust's library prints about a panic.
const PANICKED: &str = " panicked at ";
/// Writes of a thread around that, in which its lines are.
const PIECES: usize = 16;

/// What was printed to standard error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Errors {
    /// How many writes there were.
    pub writes: u64,
    /// The first lines and the last ones, in order.
    pub lines: Vec<ErrorLine>,
    /// Lines between them are omitted.
    pub is_cut: bool,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorLine {
    /// The event that wrote its first byte.
    pub seq: u64,
    /// The thread.
    pub tid: u32,
    /// Its text.
    pub text: String,
    /// The function of the program's own code that was open then.
    pub by: Option<By>,
}

/// Reads the first lines and the last ones.
///
/// # Errors
/// The recording cannot be read.
pub fn errors(source: &Source<'_>) -> Result<Errors> {
    let count = source.ask("select count(*) from output where stream = 'stderr'")?;
    let writes = count.first().and_then(|row| row.count(0)).unwrap_or(0);
    let mut lines = match writes {
        0 => Vec::new(),
        _ => read(source, "asc")?,
    };
    let mut is_cut = false;
    if writes > WRITES as u64 {
        lines.truncate(LINES);
        let last = read(source, "desc")?;
        let after = lines.last().map_or(0, |line| line.seq);
        let last: Vec<ErrorLine> = last.into_iter().filter(|line| line.seq > after).collect();
        lines.extend_from_slice(&last[last.len().saturating_sub(LINES)..]);
        is_cut = true;
    } else if lines.len() > 2 * LINES {
        lines.drain(LINES..lines.len() - LINES);
        is_cut = true;
    }
    if let Some(panic) = panic_lines(source, writes)? {
        let (first, last) = (panic[0].seq, panic[panic.len() - 1].seq);
        let mut kept: Vec<ErrorLine> = lines.extract_if(.., |line| line.seq < first).collect();
        // What follows is a backtrace, which says less, or the program has caught the panic.
        let own = lines.iter().filter(|line| line.seq > last);
        let mut later: Vec<ErrorLine> = own
            .filter(|line| !is_of_backtrace(&line.text))
            .cloned()
            .collect();
        let follows = lines.iter().filter(|line| line.seq > last).count();
        let early = kept.len().saturating_sub(LINES - panic.len());
        let late = later.len().saturating_sub(LINES);
        is_cut |= early > 0 || late > 0 || later.len() < follows;
        kept.drain(..early);
        kept.extend(panic);
        kept.extend(later.drain(late..));
        lines = kept;
    }
    for line in &mut lines {
        line.by = source.by(line.tid, line.seq)?;
    }
    Ok(Errors {
        writes,
        lines,
        is_cut,
    })
}

/// Returns whether a line is of the backtrace that Rust's library prints about a panic.
fn is_of_backtrace(line: &str) -> bool {
    let words = line.trim_start();
    let frame = words.split_once(": ").map(|(number, _)| number);
    let is_frame = frame.is_some_and(|number| number.parse::<u32>().is_ok());
    let is_indented = words.len() < line.len();
    line.starts_with("note: ")
        || line.starts_with("stack backtrace:")
        || is_indented && (is_frame || words.starts_with("at "))
}

/// What the last panic of Rust printed: where it began, and its message.
fn panic_lines(source: &Source<'_>, writes: u64) -> Result<Option<Vec<ErrorLine>>> {
    if writes == 0 {
        return Ok(None);
    }
    let sql = format!(
        "select seq, tid from output where stream = 'stderr' and text like '%{PANICKED}%' order by seq desc limit 1"
    );
    let rows = source.ask(&sql)?;
    let Some((seq, tid)) = rows.first().and_then(|row| row.count(0).zip(row.count(1))) else {
        return Ok(None);
    };
    // Older versions of the library write a line in pieces.
    let side = |side: &str, order: &str| {
        source.ask(&format!(
            "select seq, tid, text from output where stream = 'stderr' and tid = {tid} and seq {side} {seq} order by seq {order} limit {PIECES}"
        ))
    };
    let mut rows = side("<=", "desc")?;
    rows.extend(side(">", "asc")?);
    rows.sort_by_key(|row| row.count(0));
    let lines = joined(rows.iter().filter_map(write));
    let Some(at) = lines.iter().rposition(|line| line.text.contains(PANICKED)) else {
        return Ok(None);
    };
    let is_message = |line: &&ErrorLine| !is_of_backtrace(&line.text);
    let message = lines.get(at + 1).filter(is_message);
    Ok(Some(
        lines[at..=at].iter().chain(message).cloned().collect(),
    ))
}

/// Reads lines from one end, and returns them in order.
fn read(source: &Source<'_>, order: &str) -> Result<Vec<ErrorLine>> {
    let sql = format!(
        "select seq, tid, text from output where stream = 'stderr' order by seq {order} limit {WRITES}"
    );
    let mut rows = source.ask(&sql)?;
    rows.sort_by_key(|row| row.count(0));
    Ok(joined(rows.iter().filter_map(write)))
}

/// A row of a write: its event, thread and text.
fn write(row: &Row) -> Option<(u64, u32, &str)> {
    let tid = u32::try_from(row.number(1)?).ok()?;
    Some((row.count(0)?, tid, row.text(2)?))
}

/// Joins writes of a thread to lines; empty lines are left out.
fn joined<'t>(writes: impl Iterator<Item = (u64, u32, &'t str)>) -> Vec<ErrorLine> {
    let mut lines: Vec<ErrorLine> = Vec::new();
    let mut open: Option<usize> = None;
    for (seq, tid, text) in writes {
        for part in text.split_inclusive('\n') {
            let words = part.trim_end_matches(['\n', '\r']);
            match open.filter(|at| lines[*at].tid == tid) {
                Some(at) => lines[at].text += words,
                None => lines.push(ErrorLine {
                    seq,
                    tid,
                    text: words.to_owned(),
                    by: None,
                }),
            }
            open = (!part.ends_with('\n')).then(|| lines.len() - 1);
        }
    }
    lines.retain(|line| !line.text.trim().is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_be_written_in_pieces() {
        let writes = [
            (3, 1, "terminate called after '"),
            (4, 1, "E'\n\n  what():"),
            (5, 2, "other\n"),
            (6, 1, "x\ny\n"),
        ];
        let lines = joined(writes.into_iter());
        let told: Vec<(u64, &str)> = lines.iter().map(|l| (l.seq, &*l.text)).collect();
        assert_eq!(
            told,
            [
                (3, "terminate called after 'E'"),
                (4, "  what():"),
                (5, "other"),
                (6, "x"),
                (6, "y")
            ]
        );
    }
}

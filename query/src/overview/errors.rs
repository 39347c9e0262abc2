//! What the program printed to standard error, and which of its functions printed it.

use serde::Serialize;

use super::source::{By, Source};
use crate::error::Result;

/// Most lines that are reported from the beginning, and as many from the end.
const LINES: usize = 4;
/// Writes that are read at each end. A line may consist of several.
const WRITES: usize = 64;

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
    for line in &mut lines {
        line.by = source.by(line.tid, line.seq)?;
    }
    Ok(Errors {
        writes,
        lines,
        is_cut,
    })
}

/// Reads lines from one end, and returns them in order.
fn read(source: &Source<'_>, order: &str) -> Result<Vec<ErrorLine>> {
    let sql = format!(
        "select seq, tid, text from output where stream = 'stderr' order by seq {order} limit {WRITES}"
    );
    let mut rows = source.ask(&sql)?;
    rows.sort_by_key(|row| row.count(0));
    let writes = rows.iter().filter_map(|row| {
        let tid = u32::try_from(row.number(1)?).ok()?;
        Some((row.count(0)?, tid, row.text(2)?))
    });
    Ok(joined(writes))
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

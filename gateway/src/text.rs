//! Replies of verbs as plain text: tables with aligned columns, no colours, no limit on the width.

use server::verbs::{Column, Piece, Text};

use crate::words;

/// Writes a reply.
pub fn plain(text: &Text) -> String {
    let mut out = String::new();
    for piece in &text.pieces {
        match piece {
            Piece::Line(line) => out.push_str(&words::in_values(line)),
            Piece::Hint(hint) => out.push_str(&words::of_tools(hint)),
            Piece::Styled(parts) => {
                let line: String = parts.iter().map(|(_, part)| part.as_str()).collect();
                out.push_str(&words::in_values(&line));
            }
            Piece::Table(columns, rows) => {
                out.push_str(&table(columns, rows));
                continue;
            }
        }
        out.push('\n');
    }
    out
}

/// Writes a table with one blank bar between columns: padding would cost tokens and add nothing.
fn table(columns: &[Column], rows: &[Vec<String>]) -> String {
    let heading = columns.iter().map(|column| column.name.to_owned());
    let lines = std::iter::once(heading.collect::<Vec<_>>()).chain(rows.iter().cloned());
    lines
        .map(|cells| words::in_values(&cells.join(" | ")) + "\n")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_not_padded() {
        let columns = [Column::number("Event"), Column::text("Value")];
        let rows = vec![vec!["7".to_owned(), "free".to_owned()]];
        let text = Text::line("history of x").and(Text::table(&columns, rows));
        assert_eq!(plain(&text), "history of x\nEvent | Value\n7 | free\n");
    }
}

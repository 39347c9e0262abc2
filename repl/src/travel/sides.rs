//! Two texts beside each other where the terminal is wide enough, otherwise one above the other.

use query::compare::Values;

use crate::render::{Colour, Paint, Terminal, escaped, fitted_paths, width};

/// Columns of a terminal from which on two sides are shown side by side.
const WIDE: usize = 120;
/// Between two sides.
const GAP: &str = "  | ";

/// The lines of a side.
pub struct Side {
    name: String,
    lines: Vec<String>,
}

impl Side {
    /// Makes a side of its lines.
    pub fn lines(lines: impl IntoIterator<Item = String>) -> Side {
        Side {
            name: String::new(),
            lines: lines.into_iter().collect(),
        }
    }

    /// Gives it a name.
    pub fn named(self, name: String) -> Side {
        Side { name, ..self }
    }
}

/// The same terminal without colours.
pub fn plain(terminal: &Terminal) -> Terminal {
    Terminal {
        stdout_colour: Colour::Off,
        ..terminal.clone()
    }
}

/// A heading.
pub fn heading(text: &str, terminal: &Terminal) -> String {
    let text = escaped(text);
    format!("{}\n", terminal.stdout_colour.paint(Paint::Heading, text))
}

/// Two values that differ.
pub fn values(values: &Values, terminal: &Terminal) -> String {
    let line = |side: char, value: &str| {
        painted(
            &format!("  {side} {} = {}", values.name, escaped(value)),
            terminal.stdout_colour,
        )
    };
    format!("{}\n{}\n", line('A', &values.a), line('B', &values.b))
}

/// Paints a line of a side by its first letter: those of A as the old state, those of B as the new one.
pub fn painted(line: &str, colour: Colour) -> String {
    let paint = match line.trim_start().split_once(' ') {
        Some(("A", _)) => Paint::Removed,
        Some(("B", _)) => Paint::Added,
        _ => return line.to_owned(),
    };
    colour.paint(paint, line).to_string()
}

/// One side under its name.
pub fn alone(side: &Side, terminal: &Terminal) -> String {
    let mut text = format!("{}\n", painted(&side.name, terminal.stdout_colour));
    for line in &side.lines {
        text += &format!("  {line}\n");
    }
    text
}

/// Both sides.
pub fn beside(a: &Side, b: &Side, terminal: &Terminal) -> String {
    let columns = match terminal.stdout {
        true => Terminal::size().0,
        false => 0,
    };
    if columns < WIDE {
        return alone(a, terminal) + &alone(b, terminal);
    }
    let half = (columns - GAP.len()) / 2;
    let colour = terminal.stdout_colour;
    let mut text = String::new();
    let all = |side: &Side| -> Vec<String> {
        std::iter::once(side.name.clone())
            .chain(side.lines.iter().map(|line| format!("  {line}")))
            .map(|line| fitted_paths(&line, half).into_owned())
            .collect()
    };
    let (a, b) = (all(a), all(b));
    for at in 0..a.len().max(b.len()) {
        let line = |side: &[String]| side.get(at).cloned().unwrap_or_default();
        let (own, other) = (line(&a), line(&b));
        let padding = " ".repeat(half.saturating_sub(width(&own)));
        let (own, other) = match at {
            0 => (painted(&own, colour), painted(&other, colour)),
            _ => (own, other),
        };
        text += format!("{own}{padding}{GAP}{other}").trim_end();
        text.push('\n');
    }
    text
}

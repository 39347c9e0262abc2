//! How an error reaches the user: one line, the wrong place where there is one, and the next step.

use std::fmt::Write;

use crate::error::Error;
use crate::render::{Colour, Paint, Terminal, escaped};

/// Writes `error` to stderr.
pub fn report(error: &Error, terminal: &Terminal) {
    eprint!("{}", message(error, terminal.stderr_colour));
}

/// Returns the lines that tell of `error`; none for what needs no words.
pub fn message(error: &Error, colour: Colour) -> String {
    let mut text = String::new();
    if matches!(error, Error::ReaderGone) {
        return text;
    }
    // Writing to a String cannot fail.
    let lines = error.to_string();
    let word = colour.paint(Paint::Error, "error:");
    _ = writeln!(text, "{word} {}", indented(&lines));
    if let Some(excerpt) = error.excerpt() {
        for line in excerpt.lines() {
            _ = writeln!(text, "  {}", escaped(line));
        }
    }
    if let Some(help) = error.help() {
        let word = colour.paint(Paint::Heading, "help:");
        _ = writeln!(text, "{word} {}", indented(&help));
    }
    text
}

/// Escapes each line and indents all but the first.
fn indented(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(escaped).collect();
    lines.join("\n  ")
}

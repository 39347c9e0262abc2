//! Error messages: one line, the wrong part of the input if known, and the next step.

use std::fmt::Write;
use std::sync::OnceLock;

use server::protocol::Response;

use crate::commands::live::write;
use crate::error::Error;
use crate::render::{Colour, Paint, Terminal, escaped};

/// The stream on which the command writes JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Json {
    /// Standard output.
    Stdout,
    /// Standard error, because standard output is the recorded program's.
    Stderr,
}

/// Where this process writes JSON, once the command line requests it.
static JSON: OnceLock<Json> = OnceLock::new();

/// Makes errors be written as JSON, on the stream of the answers.
pub fn as_json(stream: Json) {
    // The first caller knows the command.
    let _ = JSON.set(stream);
}

/// Returns whether errors are written as JSON.
pub fn is_json() -> bool {
    JSON.get().is_some()
}

/// Writes `error` to stderr.
pub fn report(error: &Error, terminal: &Terminal) {
    eprint!("{}", message(error, terminal.stderr_colour));
}

/// Writes an error in place of an answer: as JSON if the answer was to be JSON, else to stderr.
pub fn answer(error: &Error, terminal: &Terminal) {
    let Some(stream) = JSON.get().filter(|_| !matches!(error, Error::ReaderGone)) else {
        report(error, terminal);
        return;
    };
    let response = Response::of(1, Err(error.failure()));
    let response = serde_json::to_value(response).expect("responses are JSON");
    match stream {
        Json::Stdout => match write(&format!("{response:#}\n")) {
            // A reader that has gone needs no answer.
            Ok(()) | Err(Error::ReaderGone) => {}
            // As on a full disk: nothing else would tell.
            Err(_) => report(error, terminal),
        },
        Json::Stderr => eprintln!("{response}"),
    }
}

/// Returns the message for `error`; empty if the error is not reported.
pub fn message(error: &Error, colour: Colour) -> String {
    let mut text = String::new();
    if matches!(error, Error::ReaderGone) {
        return text;
    }
    // Writing to a String cannot fail.
    let lines = without_numbers(&error.to_string());
    if matches!(error, Error::Interrupted | Error::OpeningLeft | Error::Left) {
        // The terminal has shown ^C at the cursor.
        text.push('\n');
    }
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

/// Removes the numbers that the standard library appends to the operating system's messages.
pub fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (os error ") {
        out.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out + rest
}

/// Escapes each line and indents all but the first.
fn indented(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(escaped).collect();
    lines.join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_are_words() {
        let text = "cannot open a: No such file (os error 2): b (os error 13)";
        assert_eq!(without_numbers(text), "cannot open a: No such file: b");
        assert_eq!(without_numbers("plain (os)"), "plain (os)");
    }
}

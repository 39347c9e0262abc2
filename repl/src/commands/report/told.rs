//! Lines that say what a thread did to a lock, and where. A terminal has them in two lines, neither wider than it is: frames are
//! left out, and names shortened. Elsewhere each is one line.

use std::io::{self, Write};

use query::memory::Frame;
use query::overview::within;

use super::text::NAME_COLUMNS;
use crate::render::{Layout, escaped, fitted_paths, width};

/// Frames of a place that are shown.
const FRAMES: usize = 3;
/// A frame's name has at least so many columns.
const LEAST_NAME: usize = 12;
/// The most columns of a name of a terminal's line.
const NAME: usize = 40;

/// What a thread did.
pub(super) struct Told<'a> {
    /// What the line begins with, which may be shortened.
    pub subject: &'a str,
    /// What follows it.
    pub does: String,
    /// Where.
    pub frames: &'a [Frame],
    /// What follows the place.
    pub ends: String,
}

/// Writes it.
///
/// # Errors
/// Those of `out`.
pub(super) fn told(
    out: &mut dyn Write,
    indent: &str,
    what: &Told<'_>,
    layout: Layout,
) -> io::Result<()> {
    let Layout::Fit(columns) = layout else {
        let place = place(what.frames, FRAMES, NAME_COLUMNS);
        let (subject, does, ends) = (what.subject, &what.does, &what.ends);
        return writeln!(
            out,
            "{indent}{}",
            escaped(&format!("{subject}{does}{place}{ends}"))
        );
    };
    let (first, second) = lines(indent, what, columns);
    for line in [first, second]
        .iter()
        .filter(|line| !line.trim().is_empty())
    {
        writeln!(out, "{}", fitted_paths(&escaped(line), columns))?;
    }
    Ok(())
}

/// Returns both lines of a terminal with this number of columns.
fn lines(indent: &str, what: &Told<'_>, columns: usize) -> (String, String) {
    let room = columns.saturating_sub(width(indent) + width(&what.does));
    let subject = within(what.subject, room.max(LEAST_NAME));
    let first = format!("{indent}{subject}{}", what.does);
    let indent = format!("{indent} ");
    let room = columns.saturating_sub(width(&indent) + width(&what.ends));
    let place = place_within(what.frames, room);
    // What ends a sentence begins a line where there is no place.
    let ends = match place.is_empty() {
        true => what.ends.trim_start_matches([',', ';']),
        false => &what.ends,
    };
    (first, format!("{indent}{place}{ends}"))
}

/// Returns as many frames as there is room for, at least one.
fn place_within(frames: &[Frame], columns: usize) -> String {
    let mut all = (1..=FRAMES).rev().map(|most| place(frames, most, NAME));
    all.find(|place| width(place) <= columns)
        .unwrap_or_else(|| {
            let over = width(&place(frames, 1, NAME)).saturating_sub(columns);
            let first = Frame::from_own_code(frames).first();
            let name = first.map_or(0, |frame| width(&short(&frame.function, NAME)));
            place(frames, 1, name.saturating_sub(over).max(LEAST_NAME))
        })
}

/// ` in work (app.c:17) < main (app.c:30)`
fn place(frames: &[Frame], most: usize, name_columns: usize) -> String {
    let own = Frame::from_own_code(frames).iter().take(most);
    let frames: Vec<String> = own.map(|frame| text(frame, name_columns)).collect();
    match frames.is_empty() {
        true => String::new(),
        false => format!(" in {}", frames.join(" < ")),
    }
}

/// Returns a frame as text, short in a terminal.
pub(super) fn frame_within(frame: &Frame, layout: Layout) -> String {
    let columns = match layout {
        Layout::Fit(_) => LEAST_NAME,
        _ => NAME_COLUMNS,
    };
    text(frame, columns)
}

fn text(frame: &Frame, name_columns: usize) -> String {
    Frame {
        function: short(&frame.function, name_columns),
        ..frame.clone()
    }
    .text()
}

/// Returns a name in so many columns: if it is longer, lambdas lose their parameters first.
fn short(name: &str, columns: usize) -> String {
    match width(name) <= columns {
        true => within(name, columns),
        false => within(&without_parameters_of_lambdas(name), columns),
    }
}

/// `main::{lambda#1}::operator()` for `main::{lambda(int, long)#1}::operator()`
fn without_parameters_of_lambdas(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, parameters)) = rest.split_once("{lambda(") {
        let Some(end) = closing(parameters) else {
            break;
        };
        out = out + before + "{lambda";
        rest = &parameters[end + 1..];
    }
    out + rest
}

/// Returns where the parenthesis is that closes one before the text.
fn closing(text: &str) -> Option<usize> {
    let mut open = 1;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        (open == 0).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, line: u32) -> Frame {
        Frame {
            function: function.to_owned(),
            file: Some("app.cc".to_owned()),
            line: Some(line),
        }
    }

    const LAMBDA: &str = "main::{lambda(std::pair<std::string, std::vector<long>>)#1}::operator()";

    fn what(frames: &[Frame]) -> Told<'_> {
        Told {
            subject: "a_lock_whose_name_is_longer_than_half_a_line",
            does: ": thread 27742 (app) waited longest for it, 10.4 ms".to_owned(),
            frames,
            ends: ", while thread 27744 had it (seq 875)".to_owned(),
        }
    }

    #[test]
    fn both_lines_are_as_wide_as_the_terminal_at_most() {
        let frames = [frame(LAMBDA, 10), frame("std::__invoke", 61)];
        for columns in [80, 100, 140, 200] {
            let (first, second) = lines("", &what(&frames), columns);
            assert!(width(&first) <= columns, "{columns}: {first}");
            assert!(width(&second) <= columns, "{columns}: {second}");
            assert!(first.ends_with(" for it, 10.4 ms"), "{first}");
            assert!(second.starts_with("  in main::{lambda"), "{second}");
            assert!(second.contains("(app.cc:10)"), "{second}");
            assert!(second.ends_with(" had it (seq 875)"), "{second}");
            assert_eq!(
                second.contains(" < std::__invoke"),
                columns > 100,
                "{second}"
            );
        }
    }

    #[test]
    fn without_a_place_the_line_begins_with_what_follows_it() {
        let (_, second) = lines("", &what(&[]), 80);
        assert_eq!(second, "  while thread 27744 had it (seq 875)");
    }

    #[test]
    fn a_pipe_has_one_line_with_all_frames() {
        let frames = [frame("work", 10), frame("main", 61)];
        let mut out = Vec::new();
        told(&mut out, "", &what(&frames), Layout::Whole).expect("memory takes all");
        assert_eq!(
            String::from_utf8(out).expect("it is text"),
            "a_lock_whose_name_is_longer_than_half_a_line: thread 27742 (app) waited longest for it, 10.4 ms \
             in work (app.cc:10) < main (app.cc:61), while thread 27744 had it (seq 875)\n"
        );
    }
}

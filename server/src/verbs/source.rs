//! `source`: lines of a source file, with a mark at those that have code. Alias `list`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, show, r#where};
use crate::inspect::{self, SourceReport, View};
use crate::location::{LineHere, LineTarget, ParsedLocation, Target};
use crate::protocol::{Code, Failure};
use crate::session::Listed;

/// The `source` verb.
pub struct Source;

/// The arguments of `source`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SourceArgs {
    /// A line or a function. Default: the position of the selected frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Target>,
    /// How many lines before and after. Default: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Show the whole function.
    pub function: bool,
    /// Continue after the lines that were shown last.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub next: bool,
    /// Show the lines before those that were shown last.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub previous: bool,
}

const CONTEXT: u32 = 5;

impl Verb for Source {
    const NAME: &'static str = "source";
    const DOC: &'static str = "Show source lines; | marks those with code\n\nWithout a location, it shows the lines around the current one every time, where gdb's list continues after the lines that it showed. list - shows the lines before. gdb's source, which reads commands from a file, is hindsight repl --script FILE.";
    const ALIASES: &'static [&'static str] = &["list", "l"];
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Location;
    type Args = SourceArgs;
    type Reply = SourceReport;

    fn run(call: &Call<'_>, args: SourceArgs) -> Result<SourceReport, Failure> {
        let session = call.target()?;
        let last = session.last_shown().lines.clone();
        let report = call.look(1, |view| match (args.next, args.previous) {
            (false, false) => described(view, &args),
            (is_next, _) => beside(view, last.as_ref(), is_next),
        })?;
        session.last_shown().lines = Some(Listed {
            file: report.file.clone(),
            first: report.first,
            last: report.first + (report.lines.len() as u32).saturating_sub(1),
        });
        Ok(report)
    }
}

impl Command for Source {
    const WORDS: &'static [Word] = &[
        Word::new(
            "at",
            "LOCATION",
            Form::Text,
            "file:line, a function, *EXPRESSION, or lines as in 10,20 and a.c:10,20 and f,g [default: the current line]",
        )
        .optional(),
        r#where::LINES,
        Word::flag("function", None, "The whole function"),
        Word::flag(
            "next",
            None,
            "The ten lines after those that were shown last",
        )
        .against("at"),
        Word::flag("previous", None, "The ten lines before them: list -").against("at"),
    ];

    fn text(reply: &SourceReport, _: &SourceArgs) -> Text {
        show::source(reply)
    }
}

/// How many lines follow with `--next`.
const MORE: u32 = 10;

/// The lines after or before those that were shown last.
fn beside(view: &View<'_>, shown: Option<&Listed>, is_next: bool) -> Result<SourceReport, Failure> {
    let none = |message: String, hint: &str| Failure::new(Code::InvalidLine, message).hint(hint);
    let Some(Listed { file, first, last }) = shown else {
        return Err(none(
            "no lines have been shown yet".to_owned(),
            "write list first",
        ));
    };
    let range = match is_next {
        true => (last + 1, last.saturating_add(MORE)),
        false if *first == 1 => {
            let message = format!("there are no lines before line 1 of {file}");
            return Err(none(message, "the lines after these: list --next"));
        }
        false => (first.saturating_sub(MORE).max(1), first - 1),
    };
    let lines = LineRange {
        file: Some(file.clone()),
        first: range.0,
        last: range.1,
    };
    let report = lines.described(view);
    match report {
        Ok(report) if report.lines.is_empty() => {
            let message = format!("{file} has {} lines, and all are shown", report.total);
            Err(none(message, "the lines before: list -"))
        }
        report => report,
    }
}

fn described(view: &View<'_>, args: &SourceArgs) -> Result<SourceReport, Failure> {
    let space = view.space;
    let context = args.context.unwrap_or(CONTEXT);
    if args.function && args.at.is_none() {
        let address = view.frame()?.lookup_pc;
        return inspect::function_source(space, address, args.context.unwrap_or(0));
    }
    if let Some(Target::Text(text)) = &args.at {
        let lines = match LineRange::read(text)? {
            Some(lines) => Some(lines),
            None => LineRange::of_places(view, text)?,
        };
        if let Some(lines) = lines {
            return lines.described(view);
        }
    }
    let target = match &args.at {
        None => here(view)?,
        Some(target) => match inspect::place_of(view, target)? {
            ParsedLocation::Line(line) => line,
            ParsedLocation::LineHere(line) => inspect::line_here(view, line)?,
            ParsedLocation::Function(name) if args.function => {
                let place = first_function(space, &name)?;
                let context = args.context.unwrap_or(0);
                return inspect::function_source(space, place.after_prologue, context);
            }
            ParsedLocation::Function(name) => {
                line_of_function(space, &name, |place| place.after_prologue)?
            }
            ParsedLocation::Address(address) => line_of(space, address)?,
        },
    };
    inspect::line_source(space, &target.file, target.line, context, None)
}

/// Most lines in a list of a source file.
const MOST_LINES: u32 = 100_000;

/// Lines from one to another: `10,20`, `a.c:10,20`, `10,+5`, `10,`, `,20`, `add,avg`. A missing one is ten lines from the other.
#[derive(Debug, PartialEq, Eq)]
struct LineRange {
    file: Option<String>,
    first: u32,
    last: u32,
}

impl LineRange {
    /// Parses it; `None` if the text is another location, like `area(int, int)`.
    fn read(text: &str) -> Result<Option<LineRange>, Failure> {
        let Some((from, to)) = text.rsplit_once(',') else {
            return Ok(None);
        };
        let number = |text: &str| match text.trim() {
            "" => Some(None),
            digits => digits.parse::<u32>().ok().map(Some),
        };
        let (file, from) = match from.rsplit_once(':') {
            Some((file, line)) => (Some(file.trim().to_owned()), line),
            None => (None, from),
        };
        // Counted from the current line.
        if from.trim().starts_with('+') {
            return Ok(None);
        }
        let (Some(first), Some(last)) = (number(from), number(to)) else {
            return Ok(None);
        };
        let last = match (first, to.trim().starts_with('+')) {
            // So many lines after the first.
            (Some(first), true) => last.map(|more| first.saturating_add(more)),
            _ => last,
        };
        LineRange::between(file, first, last).map(Some)
    }

    /// Parses a range with other places: `add,avg`, `add,`, `a.c:10,avg`; `None` if the text is no range.
    fn of_places(view: &View<'_>, text: &str) -> Result<Option<LineRange>, Failure> {
        let Some((from, to)) = ends(text) else {
            return Ok(None);
        };
        let place = |end: &str| match end {
            "" => Ok(None),
            end => line_at(view, end).map(Some),
        };
        let first = place(from)?;
        let more = to.strip_prefix('+').and_then(|more| more.parse().ok());
        let last = match (&first, more) {
            // So many lines after the first.
            (Some(first), Some(more)) => Some(LineTarget {
                line: first.line.saturating_add(more),
                ..first.clone()
            }),
            _ => place(to)?,
        };
        let file = match (&first, &last) {
            // A number means a line of the other end's file.
            (Some(first), Some(last)) if !are_same_file(&first.file, &last.file) => {
                match (is_line(from), is_line(to)) {
                    (true, false) => Some(&last.file),
                    (false, true) => Some(&first.file),
                    _ => return Err(in_two_files((from, first), (to, last))),
                }
            }
            (first, last) => first.as_ref().or(last.as_ref()).map(|end| &end.file),
        };
        let line = |end: &Option<LineTarget>| end.as_ref().map(|end| end.line);
        LineRange::between(file.cloned(), line(&first), line(&last)).map(Some)
    }

    fn between(
        file: Option<String>,
        first: Option<u32>,
        last: Option<u32>,
    ) -> Result<LineRange, Failure> {
        let (first, last) = match (first, last) {
            (Some(first), Some(last)) => (first, last),
            (Some(first), None) => (first, first.saturating_add(9)),
            (None, Some(last)) => (last.saturating_sub(9).max(1), last),
            (None, None) => {
                return Err(Failure::bad_request("no line is given").hint("write list 10,20"));
            }
        };
        if first == 0 || last < first || last - first >= MOST_LINES {
            let message = format!("{first} to {last} are no lines");
            return Err(
                Failure::new(Code::InvalidLine, message).hint("write list 10,20: from 1, upwards")
            );
        }
        Ok(LineRange { file, first, last })
    }

    fn described(&self, view: &View<'_>) -> Result<SourceReport, Failure> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => inspect::line_here(view, LineHere::Number(self.first))?.file,
        };
        let reach = self.last - self.first;
        let mut report = inspect::line_source(view.space, &file, self.first, reach, None)?;
        report.crop(self.first, self.last);
        let here = view.frame().ok().and_then(|frame| frame.source.as_ref());
        let here = here.filter(|here| is_same_file(&here.file, &report.file));
        report.marked = here.map(|here| here.line);
        Ok(report)
    }
}

/// Splits a range at its comma. Those within brackets belong to a function's name.
fn ends(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let mut commas = text.char_indices().filter(|(_, c)| {
        match c {
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && *c == ','
    });
    let (at, _) = commas.next()?;
    let is_only = commas.next().is_none();
    is_only.then(|| (text[..at].trim(), text[at + 1..].trim()))
}

fn are_same_file(one: &str, other: &str) -> bool {
    is_same_file(one, other) || is_same_file(other, one)
}

fn is_line(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The line of a place at an end of a range: of a function, that of its beginning.
fn line_at(view: &View<'_>, text: &str) -> Result<LineTarget, Failure> {
    match inspect::place_of(view, &Target::Text(text.to_owned()))? {
        ParsedLocation::Line(line) => Ok(line),
        ParsedLocation::LineHere(line) => inspect::line_here(view, line),
        ParsedLocation::Function(name) => line_of_function(view.space, &name, |place| place.entry),
        ParsedLocation::Address(address) => line_of(view.space, address),
    }
}

fn in_two_files(from: (&str, &LineTarget), to: (&str, &LineTarget)) -> Failure {
    let message = format!(
        "{} is in {}, and {} in {}",
        from.0, from.1.file, to.0, to.1.file
    );
    Failure::new(Code::InvalidLine, message).hint("a range has lines of one file: list 10,20")
}

/// Returns whether two paths are of one file. One of them may have been read below a folder that the compiler did not name.
fn is_same_file(compiled: &str, read: &str) -> bool {
    Path::new(read).ends_with(compiled.trim_start_matches("./"))
}

/// The first function that a name means.
///
/// # Errors
/// [`Code::InvalidFunction`]: there is none.
pub(super) fn first_function(
    space: &debuginfo::AddressSpace,
    name: &str,
) -> Result<debuginfo::FunctionPlace, Failure> {
    let found = space.functions_matching(name).into_iter().next();
    found.ok_or_else(|| match first_inlined(space, name) {
        Some(at) => {
            let message = format!("{name} is inlined everywhere: it has no code of its own");
            let hint = format!("its lines are at {}:{}", at.file, at.line);
            Failure::new(Code::InvalidFunction, message).hint(hint)
        }
        None => {
            let message = format!("no loaded module has a function {name}");
            Failure::new(Code::InvalidFunction, message)
                .hint("write function, file:line or 0xADDRESS")
        }
    })
}

/// The line of an address of a function, or the first one of a function that is inlined everywhere.
fn line_of_function(
    space: &debuginfo::AddressSpace,
    name: &str,
    address: impl Fn(&debuginfo::FunctionPlace) -> u64,
) -> Result<LineTarget, Failure> {
    match first_function(space, name) {
        Ok(place) => line_of(space, address(&place)),
        Err(failure) => first_inlined(space, name).ok_or(failure),
    }
}

/// The first line of the code of a function that is inlined everywhere.
fn first_inlined(space: &debuginfo::AddressSpace, name: &str) -> Option<LineTarget> {
    let place = space.function_places(name).into_iter().next()?;
    Some(LineTarget {
        file: place.file.to_string(),
        line: place.line,
        column: None,
    })
}

fn line_of(space: &debuginfo::AddressSpace, address: u64) -> Result<LineTarget, Failure> {
    let place = space.line_at(address).ok_or_else(|| {
        let message = format!("no line is known at {address:#x}");
        Failure::new(Code::InvalidAddress, message).hint("look at its code: hindsight disassemble")
    })?;
    Ok(LineTarget {
        file: place.file.to_string(),
        line: place.line,
        column: None,
    })
}

fn here(view: &View<'_>) -> Result<LineTarget, Failure> {
    let frame = view.frame()?;
    match &frame.source {
        Some(place) => Ok(LineTarget {
            file: place.file.to_string(),
            line: place.line,
            column: None,
        }),
        None => line_of(view.space, frame.lookup_pc),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_gdb_reads_them() {
        let read = |text: &str| {
            let read = LineRange::read(text).unwrap();
            read.map(|range| (range.file.unwrap_or_default(), range.first, range.last))
        };
        let none = String::new;
        assert_eq!(read("10,20"), Some((none(), 10, 20)));
        assert_eq!(read("10,"), Some((none(), 10, 19)));
        assert_eq!(read(",20"), Some((none(), 11, 20)));
        assert_eq!(read(",3"), Some((none(), 1, 3)));
        assert_eq!(read("a.c:10,20"), Some(("a.c".to_owned(), 10, 20)));
        assert_eq!(read("area(int, int)"), None);
        assert_eq!(read("main"), None);
        assert_eq!(read("+2,+5"), None);
        assert_eq!(read("add,avg"), None);
        assert_eq!(ends("add,avg"), Some(("add", "avg")));
        assert_eq!(ends("add, "), Some(("add", "")));
        assert_eq!(
            ends("area(int, int),f<a, b>"),
            Some(("area(int, int)", "f<a, b>"))
        );
        for none in ["area(int, int)", "main", "a,b,c"] {
            assert_eq!(ends(none), None, "{none}");
        }
        for wrong in ["20,10", "0,3", ",", "1,4294967295"] {
            assert!(LineRange::read(wrong).is_err(), "{wrong}");
        }
    }
}

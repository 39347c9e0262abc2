//! Lines of a source file around a position.

use std::ops::Range;
use std::path::Path;

use debuginfo::{AddressSpace, LineError, SourceText};
use expr::Missing;
use serde::{Deserialize, Serialize};

use super::{Ended, View};
use crate::location::{LineHere, LineTarget};
use crate::protocol::{Code, Details, ExpressionFault, Failure};

/// Lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// The file that was read.
    pub file: String,
    /// The number of the first line, from 1.
    pub first: u32,
    /// The lines.
    pub lines: Vec<String>,
    /// The requested line.
    pub line: u32,
    /// The line with the arrow: the requested one, or of a range the current one, if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<u32>,
    /// Those of the lines that have code, where breakpoints can be set.
    pub with_code: Vec<u32>,
    /// How many lines the file has.
    pub total: u32,
}

/// Returns the text of one line, if the file can be read.
#[must_use]
pub fn source_line(file: &str, line: u32) -> Option<String> {
    let text = SourceText::around(file, None, line, 0).ok()?;
    text.lines.into_iter().next()
}

/// Returns the lines around `file`:`line`. `file` may be the end of the path of a module's source file.
///
/// # Errors
/// No module was compiled from such a file, or the file cannot be read.
pub fn line_source(
    space: &AddressSpace,
    file: &str,
    line: u32,
    context: u32,
    cwd: Option<&Path>,
) -> Result<SourceReport, Failure> {
    let whole = whole_path(space, file);
    let name = whole.as_deref().unwrap_or(file);
    let text = SourceText::around(name, cwd, line, context).map_err(|error| {
        match (&whole, space.valid_lines(file)) {
            // The file is not a source of any module and cannot be read: the name is wrong.
            (None, Err(unknown)) => of_line_error(&unknown),
            _ => Failure::new(Code::InvalidFile, error.to_string()).hint(error.hint()),
        }
    })?;
    let last = text.first.saturating_add(text.lines.len() as u32);
    let with_code = space.valid_lines(name).unwrap_or_default();
    Ok(SourceReport {
        file: text.path.to_string_lossy().into_owned(),
        with_code: with_code
            .into_iter()
            .filter(|line| (text.first..last).contains(line))
            .collect(),
        first: text.first,
        lines: text.lines,
        line,
        marked: Some(line),
        total: text.total,
    })
}

/// Returns the lines of the function around `address`, as far as its line table covers them, with `context` lines
/// around.
///
/// # Errors
/// No line is known there, or the file cannot be read.
pub fn function_source(
    space: &AddressSpace,
    address: u64,
    context: u32,
) -> Result<SourceReport, Failure> {
    let here = space.line_at(address);
    let function = space.function_at(address);
    let (Some(here), Some(function)) = (here, function) else {
        return Err(Failure::new(
            Code::InvalidLine,
            format!("no lines are known at {address:#x}"),
        )
        .hint("compile the program with -g, or look at the code: hindsight disassemble"));
    };
    let declared = match &function.file {
        Some(file) if *file == here.file => function.line,
        _ => None,
    };
    let own = lines_of(space, &function.ranges, &here.file);
    let last = own.into_iter().chain([here.line]).max();
    let last = last.unwrap_or(here.line);
    let first = declared.unwrap_or(here.line).min(here.line);
    let reach = (last - here.line).max(here.line - first);
    let mut report = line_source(space, &here.file, here.line, reach + context, None)?;
    report.crop(first.saturating_sub(context), last.saturating_add(context));
    Ok(report)
}

/// Returns the lines of `file` that the code of a function belongs to; where another function is inlined, that of the call.
/// In optimised code they are in no order.
fn lines_of(space: &AddressSpace, code: &[Range<u64>], file: &str) -> Vec<u32> {
    let mut lines = Vec::new();
    for part in code {
        let mut at = part.start;
        while at < part.end
            && let Some(row) = space.step_line(at)
        {
            let inlined = space.calls_at(at).into_iter().nth(1);
            let (of, line) = match inlined.and_then(|copy| copy.call) {
                Some(call) => (call.file, call.line),
                None => (row.file, row.line),
            };
            if *of == *file {
                lines.push(line);
            }
            at = row.range.end.max(at + 1);
        }
    }
    lines
}

/// Returns the line that a location without a file means: one of the selected frame's file. Once the program has ended,
/// one of the file that was listed last, or else that of `main`.
///
/// # Errors
/// The frame has no source file, or the line would be before the first one.
pub fn line_here(view: &View<'_>, line: LineHere) -> Result<LineTarget, Failure> {
    if let Some(ended) = view.ended {
        return line_after_end(view.space, ended, line);
    }
    let source = view.frame()?.source.as_ref();
    let here = source.ok_or_else(|| {
        Failure::new(Code::InvalidFile, "the selected frame has no source file").hint(WITH_FILE)
    })?;
    let number = match line {
        LineHere::Number(number) => i64::from(number),
        LineHere::Offset(by) => i64::from(here.line) + by,
    };
    let number = u32::try_from(number).ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| {
        let message = format!(
            "{} has no such line: the current one is {}",
            here.file, here.line
        );
        Failure::new(Code::InvalidLine, message).hint(FROM_ONE)
    })?;
    Ok(LineTarget {
        file: here.file.to_string(),
        line: number,
        column: None,
    })
}

/// What to do about a line whose file is not known.
const WITH_FILE: &str = "write the file too: file:line";
/// What to do about line 0.
const FROM_ONE: &str = "lines are counted from 1";

fn line_after_end(
    space: &AddressSpace,
    ended: &Ended,
    line: LineHere,
) -> Result<LineTarget, Failure> {
    let invalid = |message: &str, hint: &str| Failure::new(Code::InvalidLine, message).hint(hint);
    let number = match line {
        LineHere::Number(0) => return Err(invalid("there is no line 0", FROM_ONE)),
        LineHere::Number(number) => number,
        LineHere::Offset(_) => {
            let message = "the program has ended: there is no current line to count from";
            return Err(invalid(message, WITH_FILE));
        }
    };
    let file = ended.last_listed.clone().or_else(|| file_of_main(space));
    let file = file.ok_or_else(|| {
        let message = "the program has ended, and the file of its function main is not known";
        Failure::new(Code::InvalidFile, message).hint(WITH_FILE)
    })?;
    Ok(LineTarget {
        file,
        line: number,
        column: None,
    })
}

/// Returns the file of the program's `main`, which other languages have in a scope.
fn file_of_main(space: &AddressSpace) -> Option<String> {
    let places = ["main", "*::main"].into_iter().flat_map(|name| {
        let places = space.function_places(name).into_iter();
        places.filter(|place| !place.file.is_empty())
    });
    places.map(|place| place.file.to_string()).next()
}

impl SourceReport {
    /// Removes the lines before `first` and after `last`.
    pub(crate) fn crop(&mut self, first: u32, last: u32) {
        let skip = first.saturating_sub(self.first) as usize;
        self.lines.drain(..skip.min(self.lines.len()));
        self.first = self.first.max(first);
        let keep = (last + 1).saturating_sub(self.first) as usize;
        self.lines.truncate(keep);
        self.with_code.retain(|line| (first..=last).contains(line));
    }
}

/// Finds the only full path that ends in `file`.
fn whole_path(space: &AddressSpace, file: &str) -> Option<String> {
    let all = space.source_files();
    let ends_so =
        |path: &&str| Path::new(path).ends_with(file.trim_start_matches("./")) || *path == file;
    all.iter()
        .map(AsRef::as_ref)
        .find(ends_so)
        .map(str::to_owned)
}

/// Converts the error of a line without code to a failure.
pub(crate) fn of_line_error(error: &LineError) -> Failure {
    let of = |code| Failure {
        hint: error.hint().map(str::to_owned),
        ..Failure::new(code, error.to_string())
    };
    match error {
        LineError::NoCode { valid, .. } => of(Code::InvalidLine).details(Details {
            valid_lines: valid.clone(),
            ..Details::default()
        }),
        LineError::UnknownFile { nearest, .. } => Failure {
            // A module that cannot be read here may have such a file.
            expression: Some(ExpressionFault::Missing(Missing::Elsewhere)),
            ..of(Code::InvalidFile).details(Details {
                nearest: nearest.iter().map(|file| file.to_string()).collect(),
                ..Details::default()
            })
        },
        LineError::NoColumns { .. } => of(Code::InvalidColumn),
        _ => of(Code::InvalidFile),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_errors_keep_what_would_be_right() {
        let no_code = of_line_error(&LineError::NoCode {
            file: "a.c".to_owned(),
            line: 143,
            valid: vec![140, 145],
        });
        assert_eq!(no_code.code, Code::InvalidLine);
        assert_eq!(no_code.message, "No code at a.c:143. Valid lines: 140, 145");
        assert_eq!(no_code.details.valid_lines, [140, 145]);
        let no_columns = of_line_error(&LineError::NoColumns {
            file: "a.c".to_owned(),
            line: 1,
        });
        assert_eq!(no_columns.code, Code::InvalidColumn);
        assert_eq!(no_columns.hint.as_deref(), Some("leave the column out"));
        let no_file = of_line_error(&LineError::UnknownFile {
            file: "b.c".to_owned(),
            nearest: vec!["a.c".into()],
        });
        assert_eq!(no_file.code, Code::InvalidFile);
        assert_eq!(no_file.details.nearest, ["a.c"]);
    }

    #[test]
    fn lines_of_a_file_that_no_module_names_can_be_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
        let name = file.to_str().unwrap();
        let report = line_source(&AddressSpace::default(), name, 2, 5, None).unwrap();
        assert_eq!(report.lines, ["one", "two", "three"]);
        assert_eq!((report.first, report.line, report.total), (1, 2, 3));
        assert_eq!(source_line(name, 3).as_deref(), Some("three"));
        assert_eq!(source_line(name, 4), None);
        let gone = line_source(&AddressSpace::default(), "/nowhere/b.c", 2, 5, None).unwrap_err();
        assert_eq!(gone.code, Code::InvalidFile);
    }

    #[test]
    fn cropping_leaves_the_lines_between() {
        let mut report = SourceReport {
            file: "a.c".to_owned(),
            first: 10,
            lines: (10..20).map(|n| n.to_string()).collect(),
            line: 14,
            marked: Some(14),
            with_code: vec![10, 14, 19],
            total: 30,
        };
        report.crop(12, 15);
        assert_eq!(report.lines, ["12", "13", "14", "15"]);
        assert_eq!((report.first, report.with_code), (12, vec![14]));
    }
}

//! `info_line`: where the code of a source line is, or the line of an address.

use std::ops::Range;

use debuginfo::AddressSpace;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, examine, source};
use crate::inspect::{self, View};
use crate::location::{ParsedLocation, Target};
use crate::protocol::{Code, Failure};

/// The `info_line` verb.
pub struct InfoLine;

/// The arguments of `info_line`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InfoLineArgs {
    /// The place. Default: the line of the selected frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Target>,
}

/// The reply of `info_line`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoLineReply {
    /// The stretches of code, by address.
    pub places: Vec<LineCode>,
}

/// A stretch of code of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCode {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The line has no code: this is that of the next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_code: bool,
    /// The first address, in hexadecimal.
    pub start: String,
    /// The symbol there, and the offset in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_symbol: Option<String>,
    /// The address after the last instruction, in hexadecimal.
    pub end: String,
    /// The symbol there, and the offset in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_symbol: Option<String>,
}

impl Verb for InfoLine {
    const NAME: &'static str = "info_line";
    const DOC: &'static str = "Show which code a source line has, and which line an address has\n\n  info line orders.c:36     info line settle     info line 0x401136";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Location;
    type Args = InfoLineArgs;
    type Reply = InfoLineReply;

    fn run(call: &Call<'_>, args: InfoLineArgs) -> Result<InfoLineReply, Failure> {
        call.look(1, |view| described(view, &args))
    }
}

impl Command for InfoLine {
    const WORDS: &'static [Word] = &[Word::new(
        "at",
        "LOCATION",
        Form::Text,
        "file:line, a function, an address or *EXPRESSION [default: the current line]",
    )
    .optional()];

    fn text(reply: &InfoLineReply, _: &InfoLineArgs) -> Text {
        let symbol = |name: &Option<String>| {
            let name = name.as_ref();
            name.map_or_else(String::new, |name| format!(" <{name}>"))
        };
        Text::lines(reply.places.iter().map(|place| {
            let line = format!("Line {} of \"{}\"", place.line, place.file);
            let start = format!("{}{}", place.start, symbol(&place.start_symbol));
            let end = format!("{}{}", place.end, symbol(&place.end_symbol));
            match place.no_code {
                true => format!("{line} is at address {start} but contains no code."),
                false => format!("{line} starts at address {start} and ends at {end}."),
            }
        }))
    }
}

fn described(view: &View<'_>, args: &InfoLineArgs) -> Result<InfoLineReply, Failure> {
    let space = view.space;
    let Starts {
        starts,
        without_code,
    } = Starts::of(view, args)?;
    let mut places: Vec<(String, u32, Range<u64>)> = Vec::new();
    for start in &starts {
        let found = space.step_line(*start);
        let Some(found) = found else { continue };
        places.push((found.file.to_string(), found.line, found.range));
    }
    places.sort_by_key(|(_, _, range)| (range.start, range.end));
    places.dedup();
    if places.is_empty() {
        let at = starts.first().copied().unwrap_or_default();
        return Err(
            Failure::new(Code::InvalidLine, format!("no line is known at {at:#x}"))
                .hint("compile the program with -g, or look at the code: disassemble"),
        );
    }
    let place = |(file, line, range): (String, u32, Range<u64>)| LineCode {
        file,
        line: without_code.unwrap_or(line),
        no_code: without_code.is_some(),
        start: format!("{:#x}", range.start),
        start_symbol: examine::symbol(view, range.start),
        end: format!("{:#x}", range.end),
        end_symbol: examine::symbol(view, range.end),
    };
    Ok(InfoLineReply {
        places: places.into_iter().map(place).collect(),
    })
}

/// Where code begins that was asked about.
struct Starts {
    starts: Vec<u64>,
    /// The line that was asked about, if it has no code. The code is that of the next line.
    without_code: Option<u32>,
}

impl Starts {
    fn of(view: &View<'_>, args: &InfoLineArgs) -> Result<Starts, Failure> {
        let space = view.space;
        let starts = match &args.at {
            None => vec![view.frame()?.lookup_pc],
            Some(target) => match inspect::place_of(view, target)? {
                ParsedLocation::Address(address) => vec![address],
                ParsedLocation::Function(name) => entries(space, &name)?,
                ParsedLocation::Line(line) => {
                    return Starts::of_line(space, &line.file, line.line);
                }
                ParsedLocation::LineHere(line) => {
                    let here = inspect::line_here(view, line)?;
                    return Starts::of_line(space, &here.file, here.line);
                }
            },
        };
        Ok(Starts {
            starts,
            without_code: None,
        })
    }

    /// The starts of a line's code. A breakpoint on a function's first line is after its prologue, but the line begins
    /// before it.
    fn of_line(space: &AddressSpace, file: &str, line: u32) -> Result<Starts, Failure> {
        let coded = space.valid_lines(file);
        let coded = coded.map_err(|error| inspect::of_line_error(&error))?;
        let next = coded.into_iter().find(|coded| *coded >= line);
        let next = next.unwrap_or(line);
        let places = space
            .resolve_line(file, next, None)
            .map_err(|error| inspect::of_line_error(&error))?;
        let mut starts = Vec::new();
        for place in places {
            let entry = space
                .function_at(place.address)
                .map(|function| function.entry);
            let at_entry = entry.filter(|entry| {
                let first = space.line_at(*entry);
                let is_it = |line| line == next || line == place.line;
                first.is_some_and(|first| is_it(first.line) && first.file == place.file)
            });
            starts.push(at_entry.unwrap_or(place.address));
        }
        Ok(Starts {
            starts,
            without_code: (next != line).then_some(line),
        })
    }
}

fn entries(space: &AddressSpace, name: &str) -> Result<Vec<u64>, Failure> {
    let found = space.functions_matching(name).into_iter();
    let entries: Vec<u64> = found.map(|function| function.entry).collect();
    if entries.is_empty() {
        source::first_function(space, name)?;
    }
    Ok(entries)
}

//! `source`: lines of a source file, with a mark at those that have code. Alias `list`.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, show, r#where};
use crate::inspect::{self, SourceReport, View};
use crate::location::{LineTarget, ParsedLocation, Target};
use crate::protocol::{Code, Failure};

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
}

const CONTEXT: u32 = 5;

impl Verb for Source {
    const NAME: &'static str = "source";
    const DOC: &'static str = "Show source lines; those with code are marked |";
    const ALIASES: &'static [&'static str] = &["list", "l"];
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Location;
    type Args = SourceArgs;
    type Reply = SourceReport;

    fn run(call: &Call<'_>, args: SourceArgs) -> Result<SourceReport, Failure> {
        call.look(1, |view| described(view, &args))
    }
}

impl Command for Source {
    const WORDS: &'static [Word] = &[
        Word::new(
            "at",
            "LOCATION",
            Form::Text,
            "file:line or a function [default: the current line]",
        )
        .optional(),
        r#where::LINES,
        Word::flag("function", None, "The whole function"),
    ];

    fn text(reply: &SourceReport, _: &SourceArgs) -> Text {
        show::source(reply)
    }
}

fn described(view: &View<'_>, args: &SourceArgs) -> Result<SourceReport, Failure> {
    let space = view.space;
    let context = args.context.unwrap_or(CONTEXT);
    if args.function && args.at.is_none() {
        let address = view.frame()?.lookup_pc;
        return inspect::function_source(space, address, args.context.unwrap_or(0));
    }
    let target = match &args.at {
        None => here(view)?,
        Some(target) => match target.parse()? {
            ParsedLocation::Line(line) => line,
            ParsedLocation::LineHere(line) => LineTarget {
                file: current_file(view)?,
                line,
                column: None,
            },
            ParsedLocation::Function(name) if args.function => {
                let place = first_function(space, &name)?;
                let context = args.context.unwrap_or(0);
                return inspect::function_source(space, place.after_prologue, context);
            }
            ParsedLocation::Function(name) => {
                let place = first_function(space, &name)?;
                line_of(space, place.after_prologue)?
            }
            ParsedLocation::Address(address) => line_of(space, address)?,
        },
    };
    inspect::line_source(space, &target.file, target.line, context, None)
}

/// The source file of the selected frame.
fn current_file(view: &View<'_>) -> Result<String, Failure> {
    let source = view.frame()?.source.as_ref();
    source.map(|source| source.file.to_string()).ok_or_else(|| {
        Failure::new(Code::InvalidFile, "there is no current source file").hint("write file:line")
    })
}

fn first_function(
    space: &debuginfo::AddressSpace,
    name: &str,
) -> Result<debuginfo::FunctionPlace, Failure> {
    let found = space.functions_matching(name).into_iter().next();
    found.ok_or_else(|| {
        let message = format!("no loaded module has a function {name}");
        Failure::new(Code::InvalidFunction, message).hint("write function, file:line or 0xADDRESS")
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

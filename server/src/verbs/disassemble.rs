//! `disassemble`: the code of the selected frame's function, or some instructions from an address on.

use debuginfo::{AddressSpace, Certainty};
use serde::{Deserialize, Serialize};

use super::{
    Call, Command, Does, Form, Needs, Piece, Style, Takes, Text, Verb, Word, memory, show,
};
use crate::inspect::{self, CodeReport, View};
use crate::protocol::Failure;

/// The `disassemble` verb.
pub struct Disassemble;

/// The arguments of `disassemble`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DisassembleArgs {
    /// A function, an address, or an expression with an address as its value. Default: the frame's position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// How many instructions. Default: the whole function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Include the source lines.
    pub source: bool,
}

impl Verb for Disassemble {
    const NAME: &'static str = "disassemble";
    const DOC: &'static str = "Show machine code";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Location;
    type Args = DisassembleArgs;
    type Reply = CodeReport;

    fn run(call: &Call<'_>, args: DisassembleArgs) -> Result<CodeReport, Failure> {
        call.look(1, |view| code(view, &args))
    }
}

impl Command for Disassemble {
    const WORDS: &'static [Word] = &[
        Word::new(
            "at",
            "LOCATION",
            Form::Text,
            "A function or an address [default: the current line]",
        )
        .optional(),
        Word::new(
            "count",
            "N",
            Form::NumberOption,
            "Number of instructions [default: the whole function]",
        ),
        Word::flag("source", None, "With the source lines between"),
    ];

    fn text(reply: &CodeReport, _: &DisassembleArgs) -> Text {
        let mut pieces = Vec::new();
        for instruction in &reply.instructions {
            if let (Some(source), Some(line)) = (&instruction.source, instruction.line) {
                let line = format!("   {line:>5} | {}", show::spaced(source));
                pieces.push(Piece::Styled(vec![(Style::Dim, line)]));
            }
            let named = |name: &Option<String>, space| match name {
                Some(name) => format!("{space}<{name}>"),
                None => String::new(),
            };
            let line = format!(
                " {}{}  {}{}",
                instruction.address,
                named(&instruction.symbol, " "),
                instruction.text,
                named(&instruction.target, "  ")
            );
            let arrow = show::arrow(instruction.is_current);
            pieces.push(Piece::Styled(vec![arrow, (Style::Plain, line)]));
        }
        let stale = reply.stale_since.map(memory::stale);
        pieces.extend(stale.map(Piece::Line));
        Text { pieces }
    }
}

fn code(view: &View<'_>, args: &DisassembleArgs) -> Result<CodeReport, Failure> {
    let (address, certainty) = match &args.at {
        None => (view.frame()?.lookup_pc, Certainty::Known),
        Some(text) => match function(view.space, text) {
            Some(entry) => (entry, Certainty::Known),
            None => memory::dated_address(view, text)?,
        },
    };
    let found = code_at(view, args, address).map_err(|failure| memory::dated(failure, certainty));
    Ok(CodeReport {
        stale_since: memory::oldest(None, certainty),
        ..found?
    })
}

fn code_at(view: &View<'_>, args: &DisassembleArgs, address: u64) -> Result<CodeReport, Failure> {
    let current = view.frames.get(view.frame).map(|frame| frame.pc);
    match (args.count, &args.at) {
        (None, _) => {
            inspect::disassemble_around(view.space, view.machine, address, current, args.source)
        }
        (Some(count), at) => {
            // The frame's next instruction, not the pending call.
            let from = match at {
                None => view.frame()?.pc,
                Some(_) => address,
            };
            inspect::disassemble(view.space, view.machine, from, count, current, args.source)
        }
    }
}

fn function(space: &AddressSpace, name: &str) -> Option<u64> {
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '<');
    let places = match is_name {
        true => space.functions_matching(name),
        false => Vec::new(),
    };
    places.first().map(|place| place.entry)
}

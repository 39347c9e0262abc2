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
    /// A function, an address, or an expression with an address as its value; `A,+N` and `A,B` for the bytes from there on.
    /// Default: the frame's position.
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
            "A function or an address, or a range of code: $pc,+32 [default: the current line]",
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
    let range = args.at.as_deref().and_then(range);
    let (address, certainty) = match (&args.at, range) {
        (None, _) => (view.frame()?.lookup_pc, Certainty::Known),
        (Some(_), Some((from, _))) => place(view, from)?,
        (Some(text), None) => place(view, text)?,
    };
    let found = match range {
        Some((_, to)) => code_between(view, args, address, to),
        None => code_at(view, args, address),
    };
    let found = found.map_err(|failure| memory::dated(failure, certainty));
    Ok(CodeReport {
        stale_since: memory::oldest(None, certainty),
        ..found?
    })
}

/// Returns the address of a function, or the one that an expression has as its value.
fn place(view: &View<'_>, text: &str) -> Result<(u64, Certainty), Failure> {
    match function(view.space, text) {
        Some(entry) => Ok((entry, Certainty::Known)),
        None => memory::dated_address(view, text),
    }
}

/// Splits `A,B` at the comma that no parentheses enclose.
fn range(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_i32;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '<' => depth += 1,
            '>' if before == '-' => {}
            ')' | ']' | '>' => depth -= 1,
            ',' if depth == 0 => return Some((text[..at].trim(), text[at + 1..].trim())),
            _ => {}
        }
        before = c;
    }
    None
}

/// The instructions that begin before `to`: an address, or `+` and a number of bytes.
fn code_between(
    view: &View<'_>,
    args: &DisassembleArgs,
    from: u64,
    to: &str,
) -> Result<CodeReport, Failure> {
    let end = match to.strip_prefix('+') {
        Some(bytes) => from.saturating_add(memory::dated_address(view, bytes)?.0),
        None => place(view, to)?.0,
    };
    // An instruction has at least one byte.
    let most = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX);
    let count = args.count.map_or(most, |count| count.min(most));
    let current = view.frames.get(view.frame).map(|frame| frame.pc);
    let mut found =
        inspect::disassemble(view.space, view.machine, from, count, current, args.source)?;
    let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    found
        .instructions
        .retain(|one| address(&one.address).is_some_and(|at| at < end));
    Ok(found)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_comma_of_its_own() {
        assert_eq!(range("$pc,+32"), Some(("$pc", "+32")));
        assert_eq!(range("f, f + 8"), Some(("f", "f + 8")));
        assert_eq!(range("f(int, char),+8"), Some(("f(int, char)", "+8")));
        assert_eq!(range("p->code,+8"), Some(("p->code", "+8")));
        for one in ["f", "f(int, char)", "ns::f<int, char>"] {
            assert_eq!(range(one), None, "{one}");
        }
    }
}

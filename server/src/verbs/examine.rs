//! `x`: memory as numbers, addresses, texts or instructions: `x/4xw ADDRESS`. The letters mean what they mean in gdb.
//!
//! What is not known ends the answer, and the reply says why; nothing is filled in.

use debuginfo::Certainty;
use debuginfo::value::Value as Pointed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use values::Units;

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, memory};
use crate::inspect::{self, View};
use crate::past::frames_for;
use crate::protocol::{Code, Failure};

/// The `x` verb.
pub struct Examine;

/// The arguments of `x`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExamineArgs {
    /// An address, or an expression with an address as its value. Default: after what `x` showed last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// How many, in which format, of which size: `4xw`, `s`, `3i`; `-4xw`: those before. Default: `1xw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// The reply of `x`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExamineReply {
    /// The values, line by line.
    pub rows: Vec<ExamineRow>,
    /// If some bytes may have changed since they were seen: the oldest event that showed one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<u64>,
    /// Why there are fewer values than requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

/// Values that follow each other in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExamineRow {
    /// The address of the first one, in hexadecimal.
    pub address: String,
    /// The symbol there, and the offset in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// The values as text.
    pub values: Vec<String>,
    /// The thread is at this instruction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_current: bool,
}

/// The longest text that is shown in one piece.
const LONGEST_TEXT: usize = 200;

impl Verb for Examine {
    const NAME: &'static str = "x";
    const DOC: &'static str = "Show memory as numbers, texts or instructions: x/4xw &table\n\n  x/4xw &table   four words in hexadecimal\n  x/8xb $sp      eight bytes\n  x/s name       the text there\n  x/5i $pc       five instructions\n  x/-2xw &table  the two words before\n\nAfter the slash come a count, a format (x d u o t a c f s i) and a unit size (b 1, h 2, w 4, g 8 bytes); the defaults are 1, x and w, and for f the size of the numbers there, or else the last one. Without an address, x continues where it stopped, in the same format; at the prompt, so does an empty Enter. $_ is the address of the last unit shown, $__ is its contents.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = ExamineArgs;
    type Reply = ExamineReply;

    fn run(call: &Call<'_>, args: ExamineArgs) -> Result<ExamineReply, Failure> {
        let session = call.target()?;
        let goes_on = args.at.trim().is_empty();
        let format = match args.format {
            None if goes_on => session.last_shown().format.clone(),
            format => format,
        };
        let asked = asked(format.as_deref().unwrap_or_default())?;
        let (began, was_shown) = {
            let shown = session.last_shown();
            (shown.began, shown.format.is_some())
        };
        let reply = call.look(frames_for(&args.at), |view| {
            let (address, certainty) = match (goes_on, began) {
                (true, Some(began)) => (began, last(view)?.certainty),
                (true, None) => behind_last(view)?,
                (false, _) => memory::dated_address(view, &args.at)?,
            };
            let asked = sized(view, asked, &args.at, was_shown);
            let found = match asked.letter {
                'i' if asked.is_backwards => instructions_before(view, address, asked.count),
                'i' => instructions(view, address, asked.count),
                's' => texts(view, address, asked.count),
                _ => numbers(view, address, asked),
            };
            let (mut reply, last) = found.map_err(|failure| memory::dated(failure, certainty))?;
            reply.stale_since = memory::oldest(reply.stale_since, certainty);
            if let Some(last) = last {
                last.keep(view, certainty);
            }
            Ok(reply)
        })?;
        let first = reply.rows.first().and_then(|row| number(&row.address));
        let mut shown = session.last_shown();
        shown.began = first.filter(|_| asked.is_backwards);
        shown.format = match asked.is_backwards {
            true => format.map(|format| without_count(&format)),
            false => format,
        };
        Ok(reply)
    }
}

impl Command for Examine {
    const WORDS: &'static [Word] = &[
        Word::new(
            "format",
            "FORMAT",
            Form::TextOption(None),
            "As after the slash of x/4xw: the count, the format, the size [default: 1xw]",
        ),
        Word::new(
            "at",
            "ADDRESS",
            Form::Operand,
            "An address or an expression that is one: 0x404010, &table, $sp + 8 [default: after what x showed last]",
        )
        .optional(),
    ];

    fn read(written: Map<String, Value>) -> Result<ExamineArgs, Failure> {
        let args: ExamineArgs = serde_json::from_value(Value::Object(written))
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        asked(args.format.as_deref().unwrap_or_default())?;
        Ok(args)
    }

    fn text(reply: &ExamineReply, _: &ExamineArgs) -> Text {
        let mut text = Text::default();
        for row in &reply.rows {
            let symbol = row.symbol.as_ref();
            let symbol = symbol.map_or_else(String::new, |name| format!(" <{name}>"));
            let arrow = if row.is_current { "=> " } else { "" };
            let values = row.values.join("  ");
            text.push(format!("{arrow}{}{symbol}:  {values}", row.address));
        }
        if let Some(seq) = reply.stale_since {
            text.push(memory::stale(seq));
        }
        if let Some(end) = &reply.end {
            text.push(format!("(ends here: {end})"));
        }
        text
    }
}

fn asked(text: &str) -> Result<Units, Failure> {
    Units::read(text).map_err(|why| {
        Failure::bad_request(why)
            .hint("write x/4xw: how many, then one of x d u o t a c f s i, then one of b h w g")
    })
}

/// The units with the size that floating-point numbers have at an address, unless it is stated.
fn sized(view: &View<'_>, asked: Units, at: &str, was_shown: bool) -> Units {
    let last = view.kept.find("_").ok().filter(|_| was_shown);
    let last = last.and_then(|last| last.ty.target()?.size());
    let is_open = asked.letter == 'f' && !asked.has_size && !at.trim().is_empty();
    let value = is_open.then(|| inspect::value_of(view, at).ok()).flatten();
    let last = last.map_or(asked.bytes, |size| usize::try_from(size).unwrap_or(8));
    asked.at(value.as_ref().map(|value| &value.ty), last)
}

/// The format alone. After `x/-4xw`, `x` shows one unit, as in gdb.
fn without_count(format: &str) -> String {
    format
        .trim_start_matches(|c: char| c == '-' || c.is_ascii_digit())
        .to_owned()
}

/// Reads an address as a row has it.
fn number(address: &str) -> Option<u64> {
    u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()
}

/// How many values a line shows.
fn in_line(asked: Units) -> usize {
    match asked.bytes {
        1 | 2 => 8,
        4 => 4,
        _ => 2,
    }
}

/// The last thing that was shown.
#[derive(Clone, Copy, Debug)]
struct Last {
    address: u64,
    /// The name of a base type, and the number of elements, if it is an array.
    unit: &'static str,
    count: Option<u64>,
}

impl Last {
    /// A unit, as a signed integer in any format, as in gdb.
    fn number(address: u64, bytes: usize) -> Last {
        let unit = match bytes {
            1 => "signed char",
            2 => "short",
            4 => "int",
            _ => "long",
        };
        Last {
            address,
            unit,
            count: None,
        }
    }

    fn array(address: u64, count: u64) -> Last {
        Last {
            address,
            unit: "unsigned char",
            count: Some(count),
        }
    }

    /// Sets `$_`, a pointer to it, and `$__`, its value. Both are as certain as the address.
    fn keep(self, view: &View<'_>, certainty: Certainty) {
        let Some(unit) = debuginfo::types::builtin(self.unit) else {
            return;
        };
        let ty = match self.count {
            Some(count) => unit.array(count),
            None => unit,
        };
        let pointer = Pointed::constant(ty.pointer(), self.address.to_le_bytes().to_vec());
        let pointed = Pointed::at(ty, self.address, view.machine);
        view.kept.set("_", &pointer.reached_by(certainty));
        view.kept.set("__", &pointed.reached_by(certainty));
    }
}

/// `$_`, the last unit shown.
fn last(view: &View<'_>) -> Result<Pointed, Failure> {
    let first = |_| {
        Failure::bad_request("x needs an address: nothing has been shown yet")
            .hint("write x/4xw &table")
    };
    view.kept.find("_").map_err(first)
}

/// The address after what `$_` points to, and how far it may be trusted.
fn behind_last(view: &View<'_>) -> Result<(u64, Certainty), Failure> {
    let last = last(view)?;
    let address = last.as_address().map_err(|error| {
        Failure::new(Code::EvalFailed, format!("$_ is not an address: {error}"))
            .hint("give an address: x/4xw &table")
    })?;
    let len = last.ty.target().and_then(|target| target.size());
    Ok((address.wrapping_add(len.unwrap_or(1)), last.certainty))
}

fn numbers(
    view: &View<'_>,
    address: u64,
    asked: Units,
) -> Result<(ExamineReply, Option<Last>), Failure> {
    let len = asked.count * asked.bytes;
    let address = match asked.is_backwards {
        true => address.wrapping_sub(len as u64),
        false => address,
    };
    let read = inspect::memory(view.machine, address, len)?;
    let bytes = from_hex(&read.bytes);
    let whole = bytes.chunks_exact(asked.bytes);
    let values: Vec<String> = whole
        .map(|bytes| asked.text(bytes, &|address| symbol(view, address)))
        .collect();
    if values.is_empty() {
        let why = read.end.unwrap_or_default();
        return Err(Failure::new(
            Code::ReadFailed,
            format!("memory at {address:#x} cannot be read: {why}"),
        ));
    }
    let row = |(line, values): (usize, &[String])| {
        let at = address.wrapping_add((line * in_line(asked) * asked.bytes) as u64);
        row(view, at, values.to_vec())
    };
    let rows = values.chunks(in_line(asked)).enumerate().map(row);
    let reply = ExamineReply {
        rows: rows.collect(),
        stale_since: read.stale_since,
        end: read.end,
    };
    let before_last = ((values.len() - 1) * asked.bytes) as u64;
    let last = Last::number(address.wrapping_add(before_last), asked.bytes);
    Ok((reply, Some(last)))
}

fn row(view: &View<'_>, address: u64, values: Vec<String>) -> ExamineRow {
    ExamineRow {
        address: format!("{address:#x}"),
        symbol: symbol(view, address),
        values,
        is_current: false,
    }
}

/// The symbol at an address, of code or of a variable: `main+4`.
pub(super) fn symbol(view: &View<'_>, address: u64) -> Option<String> {
    let of_variable = || {
        let mapped = view.space.at(address)?;
        let found = mapped.module.variable_symbol_at(mapped.svma(address));
        found.map(|(name, start)| (name, mapped.address(start)))
    };
    let (name, start) = view.space.symbol_at(address).or_else(of_variable)?;
    Some(match address.wrapping_sub(start) {
        0 => name,
        offset => format!("{name}+{offset}"),
    })
}

fn from_hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).expect("hexadecimal digits are ASCII");
        u8::from_str_radix(text, 16).expect("the digits are hexadecimal")
    };
    pairs.map(byte).collect()
}

/// Texts that end with a zero, one after the other.
fn texts(
    view: &View<'_>,
    address: u64,
    count: usize,
) -> Result<(ExamineReply, Option<Last>), Failure> {
    let mut reply = ExamineReply {
        rows: Vec::new(),
        stale_since: None,
        end: None,
    };
    let mut at = address;
    let mut last = None;
    while reply.rows.len() < count {
        let mut bytes = Vec::new();
        let mut is_whole = false;
        while bytes.len() < LONGEST_TEXT {
            let mut byte = [0];
            match view
                .machine
                .memory(at.wrapping_add(bytes.len() as u64), &mut byte)
            {
                Ok(Certainty::Known) => {}
                Ok(Certainty::Stale { as_of }) => {
                    let oldest = reply.stale_since.map_or(as_of, |old| old.min(as_of));
                    reply.stale_since = Some(oldest);
                }
                Err(unknown) => {
                    reply.end = Some(unknown.to_string());
                    break;
                }
            }
            if byte == [0] {
                is_whole = true;
                break;
            }
            bytes.push(byte[0]);
        }
        if bytes.is_empty() && !is_whole {
            break;
        }
        let more = if is_whole || reply.end.is_some() {
            ""
        } else {
            "..."
        };
        let text = format!("\"{}\"{more}", quoted(&bytes));
        reply.rows.push(row(view, at, vec![text]));
        let len = bytes.len() as u64 + u64::from(is_whole);
        last = Some(Last::array(at, len));
        at = at.wrapping_add(len);
        if reply.end.is_some() {
            break;
        }
    }
    match (&reply.end, reply.rows.is_empty()) {
        (Some(why), true) => Err(Failure::new(
            Code::ReadFailed,
            format!("memory at {address:#x} cannot be read: {why}"),
        )),
        _ => Ok((reply, last)),
    }
}

fn quoted(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                c if c.is_control() => text.push_str(&format!("\\{:03o}", c as u32)),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\{byte:03o}"));
        }
    }
    text
}

fn instructions(
    view: &View<'_>,
    address: u64,
    count: usize,
) -> Result<(ExamineReply, Option<Last>), Failure> {
    let current = current(view);
    let code = inspect::disassemble(view.space, view.machine, address, count, current, false)?;
    let found = code.instructions;
    let end = (found.len() < count).then(|| "what follows is not known, or is no code".to_owned());
    Ok(listed(view, &found, end))
}

/// The instructions before an address, up to the beginning of the function: from there on it is known where each begins.
fn instructions_before(
    view: &View<'_>,
    address: u64,
    count: usize,
) -> Result<(ExamineReply, Option<Last>), Failure> {
    let inside = address.wrapping_sub(1);
    let current = current(view);
    let code = inspect::disassemble_around(view.space, view.machine, inside, current, false)?;
    let mut found = Vec::new();
    let mut end = address;
    for instruction in code.instructions.into_iter().rev() {
        let start = number(&instruction.address);
        let start = start.filter(|start| start.wrapping_add(length(&instruction)) == end);
        if let Some(start) = start.filter(|_| found.len() < count) {
            end = start;
            found.push(instruction);
        }
    }
    found.reverse();
    if found.is_empty() {
        let message = format!("no instruction ends at {address:#x}");
        return Err(Failure::new(Code::InvalidAddress, message)
            .hint("give the address where an instruction begins: x/-3i $pc"));
    }
    let end = (found.len() < count).then(|| "no code of the function lies before".to_owned());
    Ok(listed(view, &found, end))
}

/// The address of the selected frame's instruction.
fn current(view: &View<'_>) -> Option<u64> {
    view.frames.get(view.frame).map(|frame| frame.pc)
}

/// The bytes of an instruction.
fn length(instruction: &inspect::InstructionReport) -> u64 {
    instruction.bytes.len() as u64 / 2
}

fn listed(
    view: &View<'_>,
    found: &[inspect::InstructionReport],
    end: Option<String>,
) -> (ExamineReply, Option<Last>) {
    let row = |instruction: &inspect::InstructionReport| {
        let target = instruction.target.as_ref();
        let target = target.map_or_else(String::new, |name| format!("  <{name}>"));
        let start = number(&instruction.address);
        ExamineRow {
            symbol: start.and_then(|start| symbol(view, start)),
            address: instruction.address.clone(),
            values: vec![format!("{}{target}", instruction.text)],
            is_current: instruction.is_current,
        }
    };
    let last = found.last().and_then(|instruction| {
        let start = number(&instruction.address)?;
        Some(Last::array(start, length(instruction)))
    });
    let reply = ExamineReply {
        rows: found.iter().map(row).collect(),
        stale_since: None,
        end,
    };
    (reply, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_on_one_line() {
        assert_eq!(quoted(b"a\"b\\\n\x01\xff"), "a\\\"b\\\\\\n\\001\\377");
    }
}

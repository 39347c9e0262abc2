//! `memory`: the bytes at an address or at the place of an expression. With `write`, writes bytes there first.

use debuginfo::Certainty;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::write::parse_bytes;
use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word};
use crate::inspect::{self, MemoryReport, View};
use crate::location;
use crate::past::frames_for;
use crate::protocol::{Code, Failure};
use crate::session::{Session, of_recorder_text};

/// The `memory` verb.
pub struct Memory;

/// The arguments of `memory`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryArgs {
    /// An address, or an expression with an address as its value: `&buffer`, `p`, `$rsp + 8`.
    pub at: String,
    /// How many bytes to read. Default: 64, or the number of bytes written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Bytes to write there, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<String>,
}

/// The reply of `memory`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryReply {
    /// The bytes after writing.
    #[serde(flatten)]
    pub memory: MemoryReport,
    /// The bytes before writing, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

/// The default number of bytes.
const COUNT: usize = 64;

impl Verb for Memory {
    const NAME: &'static str = "memory";
    const DOC: &'static str =
        "Show or write memory: memory read &x --count 32, memory write 0x7ffe1234 2a00";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = MemoryArgs;
    type Reply = MemoryReply;

    fn run(call: &Call<'_>, args: MemoryArgs) -> Result<MemoryReply, Failure> {
        match &args.write {
            None => call.look(frames_for(&args.at), |view| read(view, &args, COUNT)),
            Some(bytes) => write(call, &args, &parse_bytes(bytes)?),
        }
    }
}

impl Command for Memory {
    const WORDS: &'static [Word] = &[
        Word::new(
            "words",
            "[read] ADDRESS | write ADDRESS BYTES",
            Form::Words,
            "read or write, then an address or an expression that is one, then for write the bytes",
        ),
        Word::new(
            "count",
            "N",
            Form::NumberOption,
            "How many bytes [default: 64]",
        ),
        Word::new(
            "format",
            "FORMAT",
            Form::Choice(&[("hex", &[])]),
            "Only hex is supported",
        ),
    ];

    fn read(mut written: Map<String, Value>) -> Result<MemoryArgs, Failure> {
        let words = written.remove("words").unwrap_or_default();
        let words: Vec<&str> = words
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let (at, write) = match words.as_slice() {
            ["write", at, bytes @ ..] if !bytes.is_empty() => (*at, Some(bytes.concat())),
            ["read", at] | [at] if !matches!(*at, "read" | "write") => (*at, None),
            _ => {
                return Err(Failure::bad_request("that is not a place in memory")
                    .hint("hindsight memory read ADDRESS, or memory write ADDRESS BYTES"));
            }
        };
        let count = written.get("count").and_then(Value::as_u64);
        Ok(MemoryArgs {
            at: at.to_owned(),
            count: count.map(|count| count as usize),
            write,
        })
    }

    /// Writes 16 bytes per line, followed by their printable characters.
    fn text(reply: &MemoryReply, _: &MemoryArgs) -> Text {
        let mut text = Text::default();
        let digits = reply.memory.address.trim_start_matches("0x");
        let start = u64::from_str_radix(digits, 16).unwrap_or_default();
        for (row, line) in reply.memory.bytes.as_bytes().chunks(32).enumerate() {
            let pairs: Vec<&str> = line
                .chunks(2)
                .map(|pair| std::str::from_utf8(pair).unwrap_or("??"))
                .collect();
            let shown = |pair: &&str| match u8::from_str_radix(pair, 16) {
                Ok(byte) if (0x20..0x7f).contains(&byte) => char::from(byte),
                _ => '.',
            };
            let readable: String = pairs.iter().map(shown).collect();
            let address = start.wrapping_add(row as u64 * 16);
            text.push(format!(
                "{address:#018x}  {:<47}  {readable}",
                pairs.join(" ")
            ));
        }
        if let Some(seq) = reply.memory.stale_since {
            text.push(stale(seq));
        }
        if let Some(end) = &reply.memory.end {
            text.push(format!("(ends here: {end})"));
        }
        text
    }
}

fn read(view: &View<'_>, args: &MemoryArgs, count: usize) -> Result<MemoryReply, Failure> {
    let (address, certainty) = dated_address(view, &args.at)?;
    let count = args.count.unwrap_or(count);
    let mut memory = inspect::memory(view.machine, address, count)
        .map_err(|failure| dated(failure, certainty))?;
    memory.stale_since = oldest(memory.stale_since, certainty);
    Ok(MemoryReply {
        memory,
        previous: None,
    })
}

fn write(call: &Call<'_>, args: &MemoryArgs, bytes: &[u8]) -> Result<MemoryReply, Failure> {
    let session = match call.target()? {
        Session::Live(session) => session,
        Session::Recorded(past) if past.is_of_a_session() => {
            return Err(past.needs_the_program("memory write"));
        }
        Session::Recorded(_) => {
            return Err(Failure::new(
                Code::NotAllowed,
                "memory of a recording cannot be written: what it recorded does not change",
            ));
        }
    };
    session.must_run()?;
    let address = session.look(|view| address(view, &args.at))?;
    let old = session
        .live
        .write(&args.at, address, bytes)
        .map_err(|error| of_recorder_text(Code::WriteFailed, &error))?;
    let reply = session.look(|view| read(view, args, bytes.len()))?;
    Ok(MemoryReply {
        previous: Some(inspect::hex_bytes(&old)),
        ..reply
    })
}

/// Parses an address, or evaluates an expression to one.
pub(super) fn address(view: &View<'_>, text: &str) -> Result<u64, Failure> {
    dated_address(view, text).map(|(address, _)| address)
}

/// As [`address`], with how far the address may be trusted.
pub(super) fn dated_address(view: &View<'_>, text: &str) -> Result<(u64, Certainty), Failure> {
    match location::address(text.trim_start_matches('*')) {
        Ok(address) => Ok((address, Certainty::Known)),
        Err(_) => inspect::dated_address(view, text),
    }
}

/// Returns since when an answer may have changed that is as old as the older of two.
pub(super) fn oldest(stale_since: Option<u64>, certainty: Certainty) -> Option<u64> {
    match certainty {
        Certainty::Known => stale_since,
        Certainty::Stale { as_of } => Some(stale_since.map_or(as_of, |seq| seq.min(as_of))),
    }
}

/// The line that says so.
pub(super) fn stale(seq: u64) -> String {
    format!("(stale: as of event {seq}; it may have changed since)")
}

/// Says of a failure at an address when that address was seen.
pub(super) fn dated(failure: Failure, certainty: Certainty) -> Failure {
    match certainty {
        Certainty::Known => failure,
        Certainty::Stale { as_of } => Failure {
            message: format!(
                "{} <the address is stale: as of event {as_of}>",
                failure.message
            ),
            ..failure
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_written_as_bytes_and_text() {
        let reply = MemoryReply {
            memory: MemoryReport {
                address: "0x1000".to_owned(),
                bytes: "48656c6c6f00ff0102030405060708090a".to_owned(),
                stale_since: Some(7),
                end: Some("no memory at 0x1011".to_owned()),
            },
            previous: None,
        };
        let asked = MemoryArgs {
            at: "p".to_owned(),
            count: None,
            write: None,
        };
        let lines = [
            "0x0000000000001000  48 65 6c 6c 6f 00 ff 01 02 03 04 05 06 07 08 09  Hello...........",
            "0x0000000000001010  0a                                               .",
            "(stale: as of event 7; it may have changed since)",
            "(ends here: no memory at 0x1011)",
        ];
        let lines = Text::lines(lines.map(str::to_owned));
        assert_eq!(Memory::text(&reply, &asked), lines);
    }
}

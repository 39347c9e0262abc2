//! `memory`: bytes at an address or at the place of an expression; with `write`, puts bytes there first.

use serde::{Deserialize, Serialize};

use super::write::parse_bytes;
use super::{Call, Does, Needs, Takes, Verb};
use crate::inspect::{self, MemoryReport, View};
use crate::location;
use crate::protocol::{Code, Failure};
use crate::session::{Session, of_recorder_text};

/// The verb.
pub struct Memory;

/// Its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryArgs {
    /// An address, or an expression whose value is one: `&buffer`, `p`, `$rsp + 8`.
    pub at: String,
    /// How many bytes; left out: 64, or as many as are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Bytes to write there, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<String>,
}

/// Its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryReply {
    /// What is there, after writing.
    #[serde(flatten)]
    pub memory: MemoryReport,
    /// What was there before writing, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

/// How many bytes are read if nobody says.
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
            None => call.look(1, |view| read(view, &args, COUNT)),
            Some(bytes) => write(call, &args, &parse_bytes(bytes)?),
        }
    }
}

fn read(view: &View<'_>, args: &MemoryArgs, count: usize) -> Result<MemoryReply, Failure> {
    let address = address(view, &args.at)?;
    let count = args.count.unwrap_or(count);
    Ok(MemoryReply {
        memory: inspect::memory(view.machine, address, count)?,
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

/// Finds an address: written as such, or the value of an expression.
pub(super) fn address(view: &View<'_>, text: &str) -> Result<u64, Failure> {
    match location::address(text.trim_start_matches('*')) {
        Ok(address) => Ok(address),
        Err(_) => inspect::evaluate_address(view, text),
    }
}

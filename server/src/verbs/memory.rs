//! `memory`: bytes at an address or at the place of an expression; with `write`, puts bytes there first.

use serde::{Deserialize, Serialize};

use super::print::viewed;
use super::write::parse_bytes;
use super::{Call, Verb};
use crate::inspect::{self, MemoryReport, View};
use crate::location;
use crate::protocol::{Code, Failure};
use crate::session::of_recorder_text;

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
pub(crate) const COUNT: usize = 64;

impl Verb for Memory {
    const NAME: &'static str = "memory";
    type Args = MemoryArgs;
    type Reply = MemoryReply;

    fn run(call: &Call<'_>, args: MemoryArgs) -> Result<MemoryReply, Failure> {
        let session = call.session()?;
        session.must_run()?;
        let address = viewed(&session, |view| address(view, &args.at))?;
        let bytes = args.write.as_deref().map(parse_bytes).transpose()?;
        let previous = match &bytes {
            None => None,
            Some(bytes) => {
                let old = session
                    .live
                    .write(&args.at, address, bytes)
                    .map_err(|error| of_recorder_text(Code::WriteFailed, &error))?;
                Some(inspect::hex_bytes(&old))
            }
        };
        let count = args
            .count
            .or(bytes.map(|bytes| bytes.len()))
            .unwrap_or(COUNT);
        let memory = viewed(&session, |view| {
            inspect::memory(view.machine, address, count)
        })?;
        Ok(MemoryReply { memory, previous })
    }
}

/// Finds an address: written as such, or the value of an expression.
pub(crate) fn address(view: &View<'_>, text: &str) -> Result<u64, Failure> {
    match location::address(text.trim_start_matches('*')) {
        Ok(address) => Ok(address),
        Err(_) => inspect::evaluate_address(view, text),
    }
}

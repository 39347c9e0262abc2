//! `object`: the life of the heap block that holds an address.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word};
use crate::inspect::short_name;
use crate::past::{BlockCall, BlockReport, ObjectReply, is_address};
use crate::protocol::Failure;
use crate::quantity::count;

/// The verb.
pub struct Object;

/// Its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectArgs {
    /// An address, or an expression whose value is one.
    pub address: String,
    /// The event of the question. Default: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

impl Verb for Object {
    const NAME: &'static str = "object";
    const DOC: &'static str = "Show which call allocated the heap block at an address, and which freed it

Allocation functions are those of C, C++ and Rust, as far as they were recorded: malloc, free, operator new, __rust_alloc and so on. `-f '*' -f 'module:libc.so*'` records them with the program's own functions. `hindsight object RECORDING ADDRESS` asks a recording that is not open.";
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = ObjectArgs;
    type Reply = ObjectReply;

    fn run(call: &Call<'_>, args: ObjectArgs) -> Result<ObjectReply, Failure> {
        // An expression is that of the selected frame; an address has none.
        let past = match args.at.is_none() && !is_address(&args.address) {
            true => call.recording_in_frame(&args.address)?,
            false => call.recording()?,
        };
        past.object(&args.address, args.at)
    }
}

impl Command for Object {
    const WORDS: &'static [Word] = &[
        Word::new(
            "address",
            "ADDRESS",
            Form::Rest,
            "An address, or an expression that is a pointer",
        ),
        Word::new(
            "at",
            "SEQ",
            Form::NumberOption,
            "Look at this event [default: here]",
        ),
    ];

    fn text(reply: &ObjectReply, args: &Self::Args) -> Text {
        let mut lines = Vec::new();
        lines.extend(reply.stale_since.map(|then| {
            let of = args.address.trim();
            format!(
                "{of} was {} at event {then}, and may have changed since.",
                reply.address
            )
        }));
        let ObjectReply { address, seq, .. } = reply;
        match &reply.block {
            Some(block) => {
                let place = match block.offset {
                    0 => "the first byte".to_owned(),
                    offset => format!("byte {offset}"),
                };
                let size = count(block.size, "byte");
                lines.push(format!(
                    "At event {seq}, {address} is {place} of a block of {size} at {}.",
                    block.address
                ));
                lines.extend(life(block));
            }
            None if reply.earlier.is_empty() && reply.later.is_empty() => {}
            None => lines.push(format!("At event {seq}, no known block holds {address}.")),
        }
        lines.extend(
            reply
                .unknown
                .as_ref()
                .map(|why| format!("{address}: {why}.")),
        );
        let text = Text::lines(lines);
        let hint = reply.hint.clone().map_or_else(Text::default, Text::hint);
        let mut lines = Vec::new();
        lines.extend(others("Before", &reply.earlier));
        lines.extend(others("Afterwards", &reply.later));
        if reply.more > 0 {
            lines.push(format!("and {} more blocks", reply.more));
        }
        text.and(hint).and(Text::lines(lines))
    }
}

/// Who allocated a block, and who freed it.
fn life(block: &BlockReport) -> Vec<String> {
    let made = format!("  made by {}", told(&block.made));
    let freed = match &block.freed {
        Some(call) => format!("  freed by {}", told(call)),
        None => "  freed by no recorded call".to_owned(),
    };
    vec![made, freed]
}

fn others(when: &str, blocks: &[BlockReport]) -> Vec<String> {
    let block = |block: &BlockReport| {
        let head = format!("{when}: {} at {}", count(block.size, "byte"), block.address);
        std::iter::once(head).chain(life(block))
    };
    blocks.iter().flat_map(block).collect()
}

/// A call, with its caller and the line of the call.
fn told(call: &BlockCall) -> String {
    let by = call.by.as_ref();
    let by = by.map(|(name, seq)| format!(", called in {} (seq {seq})", short_name(name)));
    let line = match (&call.file, call.line) {
        (Some(file), Some(line)) => {
            format!(" at {}:{line}", file.rsplit('/').next().unwrap_or(file))
        }
        _ => String::new(),
    };
    format!(
        "{} (seq {}){}{line}",
        short_name(&call.function),
        call.seq,
        by.unwrap_or_default()
    )
}

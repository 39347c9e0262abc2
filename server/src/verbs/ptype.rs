//! `ptype`: the type of an expression, or a named type, with its members.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word};
use crate::inspect;
use crate::past::frames_for;
use crate::protocol::Failure;

/// The `ptype` verb.
pub struct Ptype;

/// The arguments of `ptype`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PtypeArgs {
    /// An expression, as for `print`, or the name of a type, as in a cast.
    pub of: String,
    /// With the offset and size of each member, and the holes between them.
    #[serde(default)]
    pub offsets: bool,
}

/// The reply of `ptype`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtypeReply {
    /// The type's name.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its size in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Its declaration, line by line.
    pub lines: Vec<String>,
}

impl Verb for Ptype {
    const NAME: &'static str = "ptype";
    const DOC: &'static str = "Show the type of an expression, or a type, with its members";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = PtypeArgs;
    type Reply = PtypeReply;

    fn run(call: &Call<'_>, args: PtypeArgs) -> Result<PtypeReply, Failure> {
        call.look_at_types(frames_for(&args.of), |view| {
            let ty = inspect::type_of(view, &args.of)?;
            Ok(PtypeReply {
                type_name: ty.name(),
                size: ty.size(),
                lines: inspect::declaration(&ty, args.offsets),
            })
        })
    }
}

impl Command for Ptype {
    const WORDS: &'static [Word] = &[
        Word::flag(
            "offsets",
            None,
            "With the offset and size of each member in bytes, and holes",
        ),
        Word::new(
            "of",
            "EXPRESSION|TYPE",
            Form::Expression,
            "An expression, as for print, or a type: struct order, std::string",
        ),
    ];

    fn text(reply: &PtypeReply, asked: &PtypeArgs) -> Text {
        // Offsets stand in a column of their own.
        if asked.offsets {
            return Text::lines(reply.lines.iter().cloned());
        }
        let mut lines = reply.lines.iter();
        let first = lines.next().map(|line| format!("type = {line}"));
        Text::lines(first.into_iter().chain(lines.cloned()))
    }
}

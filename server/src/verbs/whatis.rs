//! `whatis`: the type of an expression in one line, or the type that a name stands for.

use debuginfo::TypeKind;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, PtypeArgs, Takes, Text, Verb, Word};
use crate::inspect;
use crate::past::frames_for;
use crate::protocol::Failure;

/// The `whatis` verb.
pub struct Whatis;

/// The reply of `whatis`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhatisReply {
    /// The type's name.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its size in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl Verb for Whatis {
    const NAME: &'static str = "whatis";
    const DOC: &'static str = "Show the type of an expression in one line\n\n  whatis order->items     the type that the value has\n  whatis struct order     the type itself\n  whatis size_t           the type that this name stands for\nptype shows the members too.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = PtypeArgs;
    type Reply = WhatisReply;

    fn run(call: &Call<'_>, args: PtypeArgs) -> Result<WhatisReply, Failure> {
        call.look_at_types(frames_for(&args.of), |view| {
            let ty = inspect::type_of(view, &args.of)?;
            // For the name of a typedef, what that name stands for.
            let is_named = ty.kind() == TypeKind::Typedef
                && expr::is_type(args.of.trim(), &inspect::context(view, None));
            let behind = ty.target().filter(|_| is_named);
            let ty = behind.unwrap_or(ty);
            Ok(WhatisReply {
                type_name: ty.name(),
                size: ty.size(),
            })
        })
    }
}

impl Command for Whatis {
    const WORDS: &'static [Word] = &[Word::new(
        "of",
        "EXPRESSION|TYPE",
        Form::Expression,
        "An expression, as for print, or a type: struct order, std::string",
    )];

    fn text(reply: &WhatisReply, _: &PtypeArgs) -> Text {
        Text::line(format!("type = {}", reply.type_name))
    }
}

//! `info_types`: the types whose names match a regular expression.

use serde::{Deserialize, Serialize};

use super::info_functions::WORDS;
use super::pattern::Pattern;
use super::{Call, Command, Does, ListingArgs, Needs, Text, Verb, Word};
use crate::protocol::Failure;

/// The `info_types` verb.
pub struct InfoTypes;

/// The reply of `info_types`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoTypesReply {
    /// The names, sorted, with the namespaces and classes around them.
    pub types: Vec<String>,
    /// How many follow after these.
    pub left_out: usize,
}

/// Most types of one module that are searched.
const MAX_TYPES: usize = 1 << 20;

impl Verb for InfoTypes {
    const NAME: &'static str = "info_types";
    const DOC: &'static str = "List the types whose names match a regular expression\n\n  info types order     info types ^shop::     info types\nThose of the program and its own libraries. ptype shows the members of one.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = ListingArgs;
    type Reply = InfoTypesReply;

    fn run(call: &Call<'_>, args: ListingArgs) -> Result<InfoTypesReply, Failure> {
        let pattern = Pattern::read(args.pattern.as_deref())?;
        call.look(1, |view| {
            let mut types = debuginfo::full_names_of_types(view.space, MAX_TYPES);
            types.retain(|name| pattern.fits_name(name));
            let mut types: Vec<String> = types.into_iter().map(|name| name.whole).collect();
            let left_out = args.page().cut(&mut types);
            Ok(InfoTypesReply { types, left_out })
        })
    }
}

impl Command for InfoTypes {
    const WORDS: &'static [Word] = WORDS;

    fn text(reply: &InfoTypesReply, asked: &ListingArgs) -> Text {
        if reply.types.is_empty() {
            return Text::line("No type fits.");
        }
        let (types, more) = asked.page().shown(&reply.types, reply.left_out);
        Text::lines(types.iter().cloned()).and(more)
    }
}

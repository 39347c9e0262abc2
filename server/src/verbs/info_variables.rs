//! `info_variables`: the global variables whose names match a regular expression, with their types.

use debuginfo::FullName;
use serde::{Deserialize, Serialize};

use super::info_functions::WORDS;
use super::pattern::Pattern;
use super::{Call, Column, Command, Does, ListingArgs, Needs, Text, Verb, Word};
use crate::inspect;
use crate::protocol::Failure;

/// The `info_variables` verb.
pub struct InfoVariables;

/// The reply of `info_variables`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoVariablesReply {
    /// The variables, by name.
    pub variables: Vec<VariableLine>,
    /// How many follow after these.
    pub left_out: usize,
}

/// A global variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableLine {
    /// Its name, with the namespaces and classes around it.
    pub name: String,
    /// Its type, if the name is unambiguous.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
}

/// Most variables of one module that are searched.
const MAX_VARIABLES: usize = 1 << 20;

impl Verb for InfoVariables {
    const NAME: &'static str = "info_variables";
    const DOC: &'static str = "List the global variables whose names match a regular expression\n\n  info variables ^counter     info variables\nThose of the program and its own libraries, as far as debug information describes them.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = ListingArgs;
    type Reply = InfoVariablesReply;

    fn run(call: &Call<'_>, args: ListingArgs) -> Result<InfoVariablesReply, Failure> {
        let pattern = Pattern::read(args.pattern.as_deref())?;
        call.look(1, |view| {
            let all = debuginfo::full_names_of_globals(view.space, MAX_VARIABLES);
            let mut names = all.clone();
            names.retain(|name| pattern.fits_name(name));
            let left_out = args.page().cut(&mut names);
            // A variable of the selected frame may hide one of the same name.
            let outside = view.without_frames();
            let type_of = |name: &str| inspect::type_of(&outside, name).ok().map(|ty| ty.name());
            // Expressions have no word for an anonymous namespace.
            let is_only =
                |name: &FullName| all.iter().filter(|one| one.own == name.own).count() == 1;
            let line = |name: FullName| VariableLine {
                type_name: type_of(&name.whole)
                    .or_else(|| type_of(&name.own).filter(|_| is_only(&name))),
                name: name.whole,
            };
            Ok(InfoVariablesReply {
                variables: names.into_iter().map(line).collect(),
                left_out,
            })
        })
    }
}

impl Command for InfoVariables {
    const WORDS: &'static [Word] = WORDS;

    fn text(reply: &InfoVariablesReply, asked: &ListingArgs) -> Text {
        if reply.variables.is_empty() {
            return Text::line("No global variable fits.");
        }
        let row = |line: &VariableLine| {
            let ty = line.type_name.as_deref();
            let ty = ty.map_or_else(String::new, debuginfo::short_name);
            vec![line.name.clone(), ty]
        };
        let columns = [Column::text("Variable"), Column::text("Type")];
        let (variables, more) = asked.page().shown(&reply.variables, reply.left_out);
        Text::table(&columns, variables.iter().map(row).collect()).and(more)
    }
}

//! `names`: what there is to be named, for the completion of words: functions, files, variables, notes.

use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, Verb};
use crate::inspect::{self, ValueFormat};
use crate::protocol::Failure;

/// The verb.
pub struct Names;

/// Its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamesArgs {
    /// Of what.
    pub of: NameKind,
}

/// What has names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// Functions that were recorded.
    Functions,
    /// Source files of these, without their folders.
    Files,
    /// Variables where one looks.
    Locals,
    /// Variables of the program.
    Globals,
    /// Texts of notes.
    Notes,
}

/// Its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamesReply {
    /// The names.
    pub names: Vec<String>,
}

/// Global variables of a module that are named.
const MAX_GLOBALS: usize = 20_000;

impl Verb for Names {
    const NAME: &'static str = "names";
    const DOC: &'static str = "List what there is to be named, for completion";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = NamesArgs;
    type Reply = NamesReply;

    fn run(call: &Call<'_>, args: NamesArgs) -> Result<NamesReply, Failure> {
        Ok(NamesReply {
            names: names(call, args.of)?,
        })
    }
}

fn names(call: &Call<'_>, of: NameKind) -> Result<Vec<String>, Failure> {
    Ok(match of {
        NameKind::Locals => {
            let variables = call.look(1, |view| inspect::variables(view, ValueFormat::Natural))?;
            let names = variables.into_iter().map(|variable| variable.name);
            names.collect()
        }
        NameKind::Functions => {
            let past = call.recording()?;
            let functions = past.timeline().functions();
            functions.map(|function| function.name.clone()).collect()
        }
        NameKind::Files => {
            let past = call.recording()?;
            let files = past
                .timeline()
                .functions()
                .filter_map(|f| f.file.as_deref());
            let names = files.filter_map(|file| file.rsplit('/').next());
            let names = names.filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        }
        NameKind::Globals => call.recording()?.timeline().global_names(MAX_GLOBALS),
        NameKind::Notes => {
            let notes = call.recording()?.notes()?.notes.into_iter();
            notes.map(|note| note.text).collect()
        }
    })
}

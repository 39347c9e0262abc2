//! `names`: names for completion: functions, files, variables, notes, numbers of breakpoints and threads.

use debuginfo::types::TypeKind;
use serde::{Deserialize, Serialize};

use super::{Call, Does, InfoBreakpoints, InfoBreakpointsReply, Needs, PageArgs, Threads, Verb};
use crate::inspect::{self, Manner};
use crate::protocol::Failure;

/// The `names` verb.
pub struct Names;

/// The arguments of `names`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamesArgs {
    /// The kind of names.
    pub of: NameKind,
    /// The expression whose members are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}

/// A kind of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// Recorded functions.
    Functions,
    /// Source files of recorded functions, without their folders.
    Files,
    /// Variables in the selected frame.
    Locals,
    /// Global variables of the program.
    Globals,
    /// Texts of notes.
    Notes,
    /// Numbers of breakpoints, watches, catchpoints and logpoints.
    Breakpoints,
    /// Numbers of threads.
    Threads,
    /// Members of a structure, or of what a pointer to it points to.
    Members,
}

/// The reply of `names`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamesReply {
    /// The names.
    pub names: Vec<String>,
}

/// Pointers that are followed to a structure, at most.
const MAX_POINTERS: usize = 4;
/// Maximum number of global variables per module.
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
            names: names(call, &args)?,
        })
    }
}

fn names(call: &Call<'_>, args: &NamesArgs) -> Result<Vec<String>, Failure> {
    Ok(match args.of {
        NameKind::Locals => {
            let variables =
                call.look(1, |view| inspect::variables(view, Manner::of_many(false)))?;
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
        NameKind::Members => {
            let text = args.expression.as_deref().unwrap_or_default();
            call.look(1, |view| {
                let mut ty = inspect::value_of(view, text)?.ty.strip();
                for _ in 0..MAX_POINTERS {
                    let points = matches!(
                        ty.kind(),
                        TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference
                    );
                    match ty.target().filter(|_| points) {
                        Some(target) => ty = target.strip(),
                        None => break,
                    }
                }
                let members = ty.members().into_iter();
                Ok(members.filter_map(|member| member.name).collect())
            })?
        }
        NameKind::Breakpoints => match call.run::<InfoBreakpoints>(PageArgs::default())? {
            InfoBreakpointsReply::Program { probes, .. } => {
                probes.iter().map(|probe| probe.id.to_string()).collect()
            }
            InfoBreakpointsReply::Recorded {
                breaks, watches, ..
            } => {
                let breaks = breaks.iter().map(|known| known.id.to_string());
                let watches = watches.iter().map(|watch| watch.id.to_string());
                breaks.chain(watches).collect()
            }
        },
        NameKind::Threads => {
            let threads = call.run::<Threads>(PageArgs::default())?.threads;
            threads
                .iter()
                .map(|thread| thread.thread.to_string())
                .collect()
        }
        NameKind::Notes => {
            let notes = call.recording()?.notes()?.notes.into_iter();
            notes.map(|note| note.text).collect()
        }
    })
}

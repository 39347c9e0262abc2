//! `info_shared`: the modules of the program: their addresses, and whether they have debug information.

use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use super::{Call, Column, Command, Does, Form, Needs, Text, Verb, Word};
use crate::protocol::Failure;

/// The `info_shared` verb.
pub struct InfoShared;

/// The arguments of `info_shared`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InfoSharedArgs {
    /// A regular expression for the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// The reply of `info_shared`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoSharedReply {
    /// The modules in load order, the program first.
    pub modules: Vec<ModuleLine>,
}

/// A module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleLine {
    /// The first mapped address, in hexadecimal.
    pub from: String,
    /// The address after the last byte, in hexadecimal.
    pub to: String,
    /// It has debug information, or its debug file was found.
    pub has_debug_information: bool,
    /// It belongs to the system.
    pub is_system: bool,
    /// Its file.
    pub file: String,
}

impl Verb for InfoShared {
    const NAME: &'static str = "info_shared";
    const DOC: &'static str = "List the program's modules with their addresses\n\n  info sharedlibrary     info sharedlibrary libc\nThe program itself is the first. In SQL, the table modules has all that were ever loaded.";
    const ALIASES: &'static [&'static str] = &["info_sharedlibrary", "info_dll"];
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = InfoSharedArgs;
    type Reply = InfoSharedReply;

    fn run(call: &Call<'_>, args: InfoSharedArgs) -> Result<InfoSharedReply, Failure> {
        let pattern = Pattern::read(args.pattern.as_deref())?;
        call.look(1, |view| {
            let modules = view.space.modules().iter();
            let line = |mapped: &debuginfo::Mapped| ModuleLine {
                from: format!("{:#x}", mapped.range.start),
                to: format!("{:#x}", mapped.range.end),
                has_debug_information: mapped.module.has_dwarf(),
                is_system: mapped.is_system,
                file: mapped.module.path().display().to_string(),
            };
            let modules = modules.map(line);
            Ok(InfoSharedReply {
                modules: modules.filter(|line| pattern.fits(&line.file)).collect(),
            })
        })
    }
}

impl Command for InfoShared {
    const WORDS: &'static [Word] = &[Word::new(
        "pattern",
        "REGEX",
        Form::Text,
        "Only modules whose file has a match",
    )
    .optional()];

    fn text(reply: &InfoSharedReply, asked: &InfoSharedArgs) -> Text {
        if reply.modules.is_empty() && asked.pattern.is_some() {
            return Text::line("No module fits.");
        }
        let row = |module: &ModuleLine| {
            let has = if module.has_debug_information {
                "yes"
            } else {
                "no"
            };
            vec![
                module.from.clone(),
                module.to.clone(),
                has.to_owned(),
                module.file.clone(),
            ]
        };
        let columns = [
            Column::number("From"),
            Column::number("To"),
            Column::text("Debug"),
            Column::text("File"),
        ];
        Text::table(&columns, reply.modules.iter().map(row).collect())
    }
}

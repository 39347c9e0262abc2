//! `info_shared`: the modules of the program: their addresses, and whether they have debug information.

use serde::{Deserialize, Serialize};

use super::{Call, Column, Command, Does, Needs, Nothing, Text, Verb};
use crate::protocol::Failure;

/// The `info_shared` verb.
pub struct InfoShared;

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
    const DOC: &'static str = "List the program's modules with their addresses\n\nThe program itself is the first. In SQL, the table modules has all that were ever loaded.";
    const ALIASES: &'static [&'static str] = &["info_sharedlibrary", "info_dll"];
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = Nothing;
    type Reply = InfoSharedReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<InfoSharedReply, Failure> {
        call.look(1, |view| {
            let modules = view.space.modules().iter();
            let line = |mapped: &debuginfo::Mapped| ModuleLine {
                from: format!("{:#x}", mapped.range.start),
                to: format!("{:#x}", mapped.range.end),
                has_debug_information: mapped.module.has_dwarf(),
                is_system: mapped.is_system,
                file: mapped.module.path().display().to_string(),
            };
            Ok(InfoSharedReply {
                modules: modules.map(line).collect(),
            })
        })
    }
}

impl Command for InfoShared {
    fn text(reply: &InfoSharedReply, _: &Nothing) -> Text {
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

//! `info_source`: the source file of the selected frame, and how it was compiled.

use debuginfo::scope::compiled_as;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Needs, Nothing, Text, Verb};
use crate::inspect::{View, line_source};
use crate::protocol::{Code, Failure};

/// The `info_source` verb.
pub struct InfoSource;

/// The reply of `info_source`. The debug information need not have all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoSourceReply {
    /// The source file.
    pub file: String,
    /// How many lines it has; absent if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
    /// The folder in which the compiler ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The compiler, often with its version and options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<String>,
    /// The version of DWARF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dwarf_version: Option<u16>,
}

const UNKNOWN: &str = "unknown: the debug information does not say";

impl Verb for InfoSource {
    const NAME: &'static str = "info_source";
    const DOC: &'static str =
        "Show the current source file, its folder, language, compiler and DWARF version";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = Nothing;
    type Reply = InfoSourceReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<InfoSourceReply, Failure> {
        call.look(1, described)
    }
}

impl Command for InfoSource {
    fn text(reply: &InfoSourceReply, _: &Nothing) -> Text {
        let file = match reply.lines {
            Some(1) => format!("{}, 1 line", reply.file),
            Some(lines) => format!("{}, {lines} lines", reply.file),
            None => format!("{}, which cannot be read", reply.file),
        };
        let dwarf = reply
            .dwarf_version
            .map(|version| format!("DWARF {version}"));
        let facts = [
            ("Source file", Some(&file)),
            ("Compiled in", reply.directory.as_ref()),
            ("Language", reply.language.as_ref()),
            ("Compiler", reply.producer.as_ref()),
            ("Debug information", dwarf.as_ref()),
        ];
        Text::lines(facts.into_iter().map(|(name, fact)| {
            let fact = fact.map_or(UNKNOWN, String::as_str);
            format!("{name}: {fact}")
        }))
    }
}

fn described(view: &View<'_>) -> Result<InfoSourceReply, Failure> {
    let frame = view.frame()?;
    let source = frame.source.as_ref().ok_or_else(|| {
        Failure::new(Code::InvalidFile, "the selected frame has no source file")
            .hint("select another frame: up; or compile the program with -g")
    })?;
    let mapped = view.space.at(frame.lookup_pc);
    let compiled =
        mapped.and_then(|mapped| compiled_as(&mapped.module, mapped.svma(frame.lookup_pc)));
    let read = line_source(view.space, &source.file, source.line, 0, None).ok();
    let dwarf_version = compiled.as_ref().map(|unit| unit.dwarf_version);
    let (directory, language, producer) = match compiled {
        Some(unit) => (unit.directory, unit.language, unit.producer),
        None => (None, None, None),
    };
    Ok(InfoSourceReply {
        lines: read.as_ref().map(|read| read.total),
        file: read.map_or_else(|| source.file.to_string(), |read| read.file),
        directory,
        language,
        producer,
        dwarf_version,
    })
}

//! `info_functions`: the functions whose names match a regular expression, with their lines and addresses.

use debuginfo::Mapped;
use serde::{Deserialize, Serialize};

use super::page::{self, Page};
use super::pattern::Pattern;
use super::{Call, Column, Command, Does, Form, Needs, Text, Verb, Word, locals};
use crate::inspect::View;
use crate::protocol::Failure;

/// The `info_functions` verb.
pub struct InfoFunctions;

/// Which names are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListingArgs {
    /// A regular expression that has a match in the name. Default: all names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// At most this many, 0 for all; default: all, of which a text shows the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// How many to skip at the start.
    pub skip: usize,
    /// All of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// The reply of `info_functions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoFunctionsReply {
    /// The functions, by module and address.
    pub functions: Vec<FunctionLine>,
    /// How many follow after these.
    pub left_out: usize,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionLine {
    /// Its readable name.
    pub name: String,
    /// The address of its first instruction, in hexadecimal.
    pub address: String,
    /// The file that declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The module's file.
    pub module: String,
}

impl Verb for InfoFunctions {
    const NAME: &'static str = "info_functions";
    const DOC: &'static str = "List the functions whose names match a regular expression\n\n  info functions ^parse     info functions\n\nWithout an expression it lists those of the program and its own libraries, otherwise also those of the system's libraries. In SQL the recorded ones are the table functions.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = ListingArgs;
    type Reply = InfoFunctionsReply;

    fn run(call: &Call<'_>, args: ListingArgs) -> Result<InfoFunctionsReply, Failure> {
        let pattern = Pattern::read(args.pattern.as_deref())?;
        call.look(1, |view| {
            let mut functions = found(view, &pattern);
            let left_out = args.page().cut(&mut functions);
            Ok(InfoFunctionsReply {
                functions,
                left_out,
            })
        })
    }
}

impl Command for InfoFunctions {
    const WORDS: &'static [Word] = WORDS;

    fn text(reply: &InfoFunctionsReply, asked: &ListingArgs) -> Text {
        if reply.functions.is_empty() {
            return Text::line("No function fits.");
        }
        let row = |function: &FunctionLine| {
            let place = match (&function.file, function.line) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                (Some(file), None) => file.clone(),
                (None, _) => function.module.clone(),
            };
            vec![function.address.clone(), function.name.clone(), place]
        };
        let columns = [
            Column::number("Address"),
            Column::text("Function"),
            Column::text("Place"),
        ];
        let (functions, more) = asked.page().shown(&reply.functions, reply.left_out);
        Text::table(&columns, functions.iter().map(row).collect()).and(more)
    }
}

/// The words of verbs that list names.
pub(super) const WORDS: &[Word] = &[
    Word::new(
        "pattern",
        "REGEX",
        Form::Text,
        "A regular expression: names with a match are listed",
    )
    .optional(),
    page::LIMIT,
    page::SKIP,
    locals::FULL,
];

impl ListingArgs {
    /// Which are listed.
    pub(super) fn page(&self) -> Page {
        Page {
            skip: self.skip,
            limit: self.limit,
            full: self.full,
        }
    }
}

fn found(view: &View<'_>, pattern: &Pattern) -> Vec<FunctionLine> {
    let modules = view.space.modules().iter();
    let meant = modules.filter(|mapped| !(pattern.is_none() && mapped.is_system));
    meant
        .flat_map(|mapped| of_module(mapped, pattern))
        .collect()
}

fn of_module(mapped: &Mapped, pattern: &Pattern) -> Vec<FunctionLine> {
    let module = mapped.module.path().display().to_string();
    let described = mapped.module.functions().list.iter();
    let fitting = described.filter(|function| pattern.fits(&function.name));
    let mut lines: Vec<FunctionLine> = fitting
        .map(|function| FunctionLine {
            name: function.name.clone(),
            address: format!("{:#x}", mapped.address(function.svma)),
            file: function.file.as_ref().map(|file| file.to_string()),
            line: function.line,
            module: module.clone(),
        })
        .collect();
    if !mapped.module.has_dwarf() {
        let symbols = mapped.module.symbols().into_iter();
        let fitting = symbols.filter(|symbol| pattern.fits(&symbol.name));
        lines.extend(fitting.map(|symbol| FunctionLine {
            name: symbol.name,
            address: format!("{:#x}", mapped.address(symbol.svma)),
            file: None,
            line: None,
            module: module.clone(),
        }));
    }
    lines
}

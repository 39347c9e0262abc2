//! `locals`: the variables in scope in the frame that is looked at, parameters included, the innermost scope first.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word, show};
use crate::inspect::{self, ValueFormat, VariableReport, View};
use crate::protocol::{Code, Failure};

/// The verb.
pub struct Locals;

/// Its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalsArgs {
    /// How values are written.
    pub format: ValueFormat,
}

/// Variables of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariablesReply {
    /// The frame, from 0.
    pub frame: usize,
    /// Its function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The variables.
    pub variables: Vec<VariableReport>,
}

impl Verb for Locals {
    const NAME: &'static str = "locals";
    const DOC: &'static str = "Show the variables of the current frame";
    const NEEDS: Needs = Needs::Frame;
    const DOES: Does = Does::Look;
    type Args = LocalsArgs;
    type Reply = VariablesReply;

    fn run(call: &Call<'_>, args: LocalsArgs) -> Result<VariablesReply, Failure> {
        call.look(1, |view| described(view, args.format))
    }
}

/// The option of verbs that show values.
pub(super) const FORMAT: Word = Word::new(
    "format",
    "FORMAT",
    Form::Choice(&[
        ("natural", &[]),
        ("hex", &["x"]),
        ("decimal", &["d"]),
        ("unsigned", &["u"]),
        ("octal", &["o"]),
        ("binary", &["t", "b"]),
        ("char", &["c"]),
        ("address", &["a"]),
    ]),
    "How numbers are written",
);

impl Command for Locals {
    const WORDS: &'static [Word] = &[FORMAT];

    fn text(reply: &VariablesReply, _: &LocalsArgs) -> Text {
        reply.text()
    }
}

impl VariablesReply {
    pub(super) fn text(&self) -> Text {
        match self.variables.is_empty() {
            true => Text::line("None are known here."),
            false => show::variables(&self.variables),
        }
    }
}

/// Describes the variables of a view; where the file of its module is missing, that is said.
pub(super) fn described(view: &View<'_>, format: ValueFormat) -> Result<VariablesReply, Failure> {
    let variables = inspect::variables(view, format)?;
    let absent = view.recorded.and_then(|recorded| recorded.absent_module());
    if let Some(why) = absent.filter(|_| variables.is_empty()) {
        return Err(Failure::new(Code::EvalFailed, "no variables are known here").hint(why));
    }
    Ok(VariablesReply {
        frame: view.frame,
        function: view.frame()?.function.clone(),
        variables,
    })
}

//! `locals`: the variables in scope in the selected frame, including parameters, innermost scope first.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word, show};
use crate::inspect::{self, FrameVariables, Manner, ValueFormat, VariableReport, View};
use crate::protocol::{Code, Failure};

/// The `locals` verb.
pub struct Locals;

/// The arguments of `locals`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalsArgs {
    /// How to write the values.
    pub format: ValueFormat,
    /// All of the values, however long they are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// Variables of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariablesReply {
    /// The frame, counted from 0 for the innermost.
    pub frame: usize,
    /// Its function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The variables.
    pub variables: Vec<VariableReport>,
    /// Those of the first frame of the program's own code, if the frame is the innermost and one of a library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<FrameVariables>,
}

impl Verb for Locals {
    const NAME: &'static str = "locals";
    const DOC: &'static str = "Show the variables of the current frame";
    const NEEDS: Needs = Needs::Frame;
    const DOES: Does = Does::Look;
    type Args = LocalsArgs;
    type Reply = VariablesReply;

    fn run(call: &Call<'_>, args: LocalsArgs) -> Result<VariablesReply, Failure> {
        call.look(1, |view| described(view, args.manner()))
    }
}

/// The option of verbs that show values.
pub(super) const FORMAT: Word = Word::new(
    "format",
    "FORMAT",
    Form::Choice(&[
        ("natural", &[]),
        ("hex", &["x"]),
        ("zeros", &["z"]),
        ("decimal", &["d"]),
        ("unsigned", &["u"]),
        ("octal", &["o"]),
        ("binary", &["t", "b"]),
        ("char", &["c"]),
        ("address", &["a"]),
        ("float", &["f"]),
    ]),
    "How numbers are written",
);

/// The option of verbs whose values may be long.
pub(super) const FULL: Word = Word::flag("full", None, "Leave nothing out");

impl LocalsArgs {
    pub(super) fn manner(&self) -> Manner {
        Manner::of_many(self.full).in_format(self.format)
    }
}

impl Command for Locals {
    const WORDS: &'static [Word] = &[FORMAT, FULL];

    fn text(reply: &VariablesReply, asked: &LocalsArgs) -> Text {
        reply.text(asked.full)
    }
}

impl VariablesReply {
    pub(super) fn text(&self, is_full: bool) -> Text {
        let here = match self.variables.is_empty() {
            true => Text::line("None are known here."),
            false => show::variables(&self.variables, is_full),
        };
        let Some(own) = &self.own else {
            return here;
        };
        let heading = show::of_frame(self.frame, self.function.as_deref());
        show::own_variables(own, is_full)
            .and(Text::line(""))
            .and(Text::line(heading))
            .and(here)
    }
}

/// Describes the variables of a view, or reports that the file of its module is missing.
pub(super) fn described(view: &View<'_>, manner: Manner) -> Result<VariablesReply, Failure> {
    let variables = inspect::variables(view, manner)?;
    let absent = view.recorded.and_then(|recorded| recorded.absent_module());
    if let Some(why) = absent.filter(|_| variables.is_empty()) {
        return Err(Failure::new(Code::EvalFailed, "no variables are known here").hint(why));
    }
    Ok(VariablesReply {
        frame: view.frame,
        function: view.frame()?.function.clone(),
        variables,
        own: inspect::own_variables(view, manner),
    })
}

//! `locals`: the variables in scope in the frame that is looked at, parameters included, the innermost scope first.

use serde::{Deserialize, Serialize};

use super::{Call, Verb};
use crate::inspect::{self, ValueFormat, VariableReport, View};
use crate::protocol::Failure;

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
    type Args = LocalsArgs;
    type Reply = VariablesReply;

    fn run(call: &Call<'_>, args: LocalsArgs) -> Result<VariablesReply, Failure> {
        variables(call, args.format)
    }
}

/// Returns all variables of the frame that is looked at.
pub(super) fn variables(call: &Call<'_>, format: ValueFormat) -> Result<VariablesReply, Failure> {
    let session = call.session()?;
    let moment = session.moment()?;
    described(&moment.view(), format)
}

/// Describes the variables of a view.
pub(crate) fn described(view: &View<'_>, format: ValueFormat) -> Result<VariablesReply, Failure> {
    Ok(VariablesReply {
        frame: view.frame,
        function: view.frame()?.function.clone(),
        variables: inspect::variables(view, format)?,
    })
}

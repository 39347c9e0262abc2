//! `attach`: takes a running process under control. It goes on; `pause` stops it.

use serde::{Deserialize, Serialize};

use super::{Call, Verb};
use crate::protocol::Failure;
use crate::session::{self, Origin, Session, SessionReport};

/// The verb.
pub struct Attach;

/// Its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachArgs {
    /// What is attached to.
    pub attach: session::Attach,
}

impl Verb for Attach {
    const NAME: &'static str = "attach";
    type Args = AttachArgs;
    type Reply = SessionReport;

    fn run(call: &Call<'_>, args: AttachArgs) -> Result<SessionReport, Failure> {
        Ok(Session::begin(call, Origin::Attached(args.attach), false, None)?.report())
    }
}

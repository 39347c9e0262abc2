//! `print`: the value of an expression, without side effects: of the frame that is looked at, or of the globals while the
//! program runs.

use serde::{Deserialize, Serialize};

use super::{Call, Verb};
use crate::inspect::{self, ValueFormat, ValueReport, View};
use crate::protocol::{Code, Failure};
use crate::session::{RunningMachine, Session};

/// The verb.
pub struct Print;

/// Its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrintArgs {
    /// The expression.
    pub expression: String,
    /// How it is written.
    #[serde(default)]
    pub format: ValueFormat,
}

impl Verb for Print {
    const NAME: &'static str = "print";
    type Args = PrintArgs;
    type Reply = ValueReport;

    fn run(call: &Call<'_>, args: PrintArgs) -> Result<ValueReport, Failure> {
        let session = call.session()?;
        viewed(&session, |view| {
            inspect::evaluate(view, &args.expression, args.format, None)
        })
    }
}

/// Looks at the chosen frame, or, while the program runs, at its memory alone.
pub(super) fn viewed<T>(
    session: &Session,
    look: impl FnOnce(&View<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match session.moment() {
        Ok(moment) => look(&moment.view()),
        Err(failure) if failure.code == Code::NotStopped => {
            let space = session.live.space();
            let machine = RunningMachine::of(session);
            look(&View {
                space: &space,
                machine: &machine,
                frames: &[],
                frame: 0,
            })
        }
        Err(failure) => Err(failure),
    }
}

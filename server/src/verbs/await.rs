//! `await`: waits for a stop. One that is there already is returned at once, unless `after` asks for a later one.

use recorder::live::Status;
use serde::{Deserialize, Serialize};

use super::{Call, Verb, motion};
use crate::protocol::Failure;
use crate::session::{MotionReport, StateWord};

/// The verb.
pub struct Await;

/// Its arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AwaitArgs {
    /// Only a stop with a greater number than this counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// How long to wait, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

impl Verb for Await {
    const NAME: &'static str = "await";
    type Args = AwaitArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: AwaitArgs) -> Result<MotionReport, Failure> {
        let session = call.session()?;
        let timeout = motion::patience(call, args.timeout_secs)?;
        match (args.after, session.live.status()) {
            (None, Status::Stopped(stop)) => {
                Ok(motion::report(&session, StateWord::Stopped, Some(&stop)))
            }
            (Some(after), _) => motion::wait(call, &session, after, timeout),
            (None, _) => motion::wait(call, &session, session.live.newest_stop(), timeout),
        }
    }
}

//! `settle`: waits until readers of the recording see everything that has happened so far. A client that examines the
//! past of a stopped program calls it first.

use std::time::Duration;

use super::{Call, Does, Needs, Nothing, Verb};
use crate::protocol::{Code, Failure};

/// The `settle` verb.
pub struct Settle;

/// It takes milliseconds, unless the disk is busy.
const PATIENCE: Duration = Duration::from_secs(10);

impl Verb for Settle {
    const NAME: &'static str = "settle";
    const DOC: &'static str = "Wait until readers of the recording see everything up to now";
    const NEEDS: Needs = Needs::Program;
    const DOES: Does = Does::Look;
    type Args = Nothing;
    type Reply = Nothing;

    fn run(call: &Call<'_>, _: Nothing) -> Result<Nothing, Failure> {
        let session = call.live()?;
        match session.live.settle(PATIENCE) {
            true => Ok(Nothing {}),
            false => Err(Failure::new(
                Code::Timeout,
                format!(
                    "the recording is not written as far as the program is, after {} s",
                    PATIENCE.as_secs()
                ),
            )
            .hint("the disk may be busy: ask again")),
        }
    }
}

//! `detach`: removes all patches, leaves the program running and closes the recording.

use super::{Call, Does, EndReply, Needs, Nothing, Verb};
use crate::protocol::Failure;

/// The `detach` verb.
pub struct Detach;

impl Verb for Detach {
    const NAME: &'static str = "detach";
    const DOC: &'static str = "Leave the program running and close its recording";
    const NEEDS: Needs = Needs::Control;
    const DOES: Does = Does::Change;
    type Args = Nothing;
    type Reply = EndReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<EndReply, Failure> {
        let session = call.controlled()?;
        session.must_run()?;
        let outcome = call.close(&session, |live| live.detach())?;
        Ok(EndReply::of(session.id, outcome))
    }
}

//! `detach`: removes all patches, leaves the program running and closes the recording.

use super::{Call, Does, EndReply, Needs, Nothing, Verb};
use crate::protocol::Failure;
use crate::session::of_recorder;

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
        let outcome = session.live.detach().map_err(|error| of_recorder(&error))?;
        call.sessions.remove(session.id);
        call.sessions.end_if_none_are_left();
        Ok(EndReply::of(session.id, outcome))
    }
}

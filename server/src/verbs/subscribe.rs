//! `subscribe`: from now on the daemon reports stops, output and ends to this client, until it disconnects.

use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, Verb};
use crate::protocol::Failure;

/// The `subscribe` verb.
pub struct Subscribe;

/// The arguments of `subscribe`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubscribeArgs {
    /// Subscribe to all sessions, including future ones.
    pub all: bool,
}

/// The reply of `subscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeReply {
    /// The session, unless `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u32>,
}

impl Verb for Subscribe {
    const NAME: &'static str = "subscribe";
    const DOC: &'static str = "Hear of stops, output and ends when they come";
    const NEEDS: Needs = Needs::Daemon;
    const DOES: Does = Does::Look;
    type Args = SubscribeArgs;
    type Reply = SubscribeReply;

    fn run(call: &Call<'_>, args: SubscribeArgs) -> Result<SubscribeReply, Failure> {
        let session = match args.all {
            true => None,
            false => Some(call.session()?.id()),
        };
        call.sessions.subscribers.add(session, call.pushes()?);
        Ok(SubscribeReply { session })
    }
}

//! `thread`: looks at another thread, or says which one is looked at.

use recorder::live::Tid;
use serde::{Deserialize, Serialize};

use super::threads::{looked_at, report};
use super::{Call, ThreadReport, Verb};
use crate::protocol::Failure;
use crate::session::no_thread;

/// The verb.
pub struct Thread;

/// Its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadArgs {
    /// Its number; left out: stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Tid>,
}

impl Verb for Thread {
    const NAME: &'static str = "thread";
    type Args = ThreadArgs;
    type Reply = ThreadReport;

    fn run(call: &Call<'_>, args: ThreadArgs) -> Result<ThreadReport, Failure> {
        let session = call.session()?;
        let tid = match args.thread {
            Some(tid) => {
                let stop = session.stopped_thread(tid)?;
                session.live.mark_shown(stop.number);
                tid
            }
            None => session.stopped()?.tid,
        };
        if args.thread.is_some() && looked_at(&session) != Some(tid) {
            session.select_thread(tid);
        }
        let threads = session.live.threads();
        let Some(thread) = threads.iter().find(|thread| thread.tid == tid).cloned() else {
            return Err(no_thread(tid, &threads));
        };
        Ok(report(&session, thread, Some(tid)))
    }
}

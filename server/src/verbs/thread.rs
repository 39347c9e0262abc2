//! `thread`: selects a thread, or describes the selected one.

use recorder::live::Tid;
use serde::{Deserialize, Serialize};

use super::threads::{looked_at, report};
use super::{Call, Command, Does, Form, Needs, Text, ThreadReport, Verb, Word, threads};
use crate::protocol::Failure;
use crate::session::{LiveSession, Session, no_thread};

/// The `thread` verb.
pub struct Thread;

/// The arguments of `thread`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadArgs {
    /// The thread's number. Default: the selected one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Tid>,
}

impl Verb for Thread {
    const NAME: &'static str = "thread";
    const DOC: &'static str = "Select a thread, or show the current one\n\nThreads have the numbers of the kernel, as threads lists them; gdb counts them from 1.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = ThreadArgs;
    type Reply = ThreadReport;

    fn run(call: &Call<'_>, args: ThreadArgs) -> Result<ThreadReport, Failure> {
        match call.target()? {
            Session::Live(session) => live(&session, args.thread),
            Session::Recorded(past) => past.select_thread(args.thread),
        }
    }
}

impl Command for Thread {
    const WORDS: &'static [Word] = &[Word::new("thread", "ID", Form::Number, "Its number")];

    fn text(reply: &ThreadReport, _: &ThreadArgs) -> Text {
        threads::table(std::slice::from_ref(reply))
    }
}

/// Selects a thread of a program, if one is given, and describes the selected one.
pub(super) fn live(session: &LiveSession, tid: Option<Tid>) -> Result<ThreadReport, Failure> {
    let chosen = tid;
    let tid = match chosen {
        Some(tid) => {
            let stop = session.stopped_thread(tid)?;
            session.live.mark_shown(stop.number);
            tid
        }
        None => session.stopped()?.tid,
    };
    if chosen.is_some() && looked_at(session) != Some(tid) {
        session.select_thread(tid);
    }
    let threads = session.live.threads();
    let Some(thread) = threads.iter().find(|thread| thread.tid == tid).cloned() else {
        return Err(no_thread(tid, &threads));
    };
    Ok(report(session, thread, Some(tid)))
}

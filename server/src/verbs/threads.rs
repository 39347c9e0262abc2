//! `threads`: all threads, what they do and where the stopped ones stand.

use recorder::live::{ThreadState, ThreadView, Tid};
use serde::{Deserialize, Serialize};

use super::{Call, Column, Command, Does, Needs, Nothing, Text, Verb, show};
use crate::protocol::Failure;
use crate::session::{LiveSession, PlaceReport, ReasonReport, Session, StateWord};

/// The verb.
pub struct Threads;

/// Its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadsReply {
    /// By number.
    pub threads: Vec<ThreadReport>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Its number.
    pub thread: Tid,
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: StateWord,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonReport>,
    /// Where it stands; nobody knows of one that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceReport>,
    /// It is looked at.
    pub selected: bool,
}

impl Verb for Threads {
    const NAME: &'static str = "threads";
    const DOC: &'static str = "Show all threads";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = Nothing;
    type Reply = ThreadsReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<ThreadsReply, Failure> {
        let threads = match call.target()? {
            Session::Live(session) => live(&session)?,
            Session::Recorded(past) => past.threads()?,
        };
        Ok(ThreadsReply { threads })
    }
}

impl Command for Threads {
    fn text(reply: &ThreadsReply, _: &Nothing) -> Text {
        table(&reply.threads)
    }
}

/// Writes threads as a table.
pub(super) fn table(threads: &[ThreadReport]) -> Text {
    let row = |thread: &ThreadReport| {
        let mark = if thread.selected { "* " } else { "" };
        vec![
            format!("{mark}{}", thread.thread),
            thread.name.clone(),
            format!("{:?}", thread.state).to_lowercase(),
            thread.place.as_ref().map(show::place).unwrap_or_default(),
        ]
    };
    let columns = [
        Column::number("ID"),
        Column::text("Name"),
        Column::text("State"),
        Column::text("Location"),
    ];
    Text::table(&columns, threads.iter().map(row).collect())
}

fn live(session: &LiveSession) -> Result<Vec<ThreadReport>, Failure> {
    session.must_run()?;
    let selected = looked_at(session);
    let threads = session.live.threads().into_iter();
    let reports = threads.map(|thread| report(session, thread, selected));
    Ok(reports.collect())
}

/// Returns the thread that is looked at, if one is stopped.
pub(super) fn looked_at(session: &LiveSession) -> Option<Tid> {
    session.stopped().ok().map(|stop| stop.tid)
}

/// Describes a thread.
pub(super) fn report(
    session: &LiveSession,
    thread: ThreadView,
    selected: Option<Tid>,
) -> ThreadReport {
    let (state, stop) = match thread.state {
        ThreadState::Running => (StateWord::Running, None),
        ThreadState::Stopped(stop) => (StateWord::Stopped, Some(stop)),
    };
    ThreadReport {
        thread: thread.tid,
        name: thread.name,
        state,
        reason: stop.as_ref().map(|stop| session.report_reason(stop)),
        place: stop.map(|stop| PlaceReport::of(&session.live.space(), stop.pc)),
        selected: selected == Some(thread.tid),
    }
}

//! `threads`: all threads with their state and, if stopped, their position.

use recorder::live::{ThreadState, ThreadView, Tid};
use serde::{Deserialize, Serialize};

use super::{Call, Column, Command, Does, Needs, PageArgs, Text, Verb, Word, page, show};
use crate::protocol::Failure;
use crate::session::{LiveSession, PlaceReport, ReasonReport, Session, StateWord};

/// The `threads` verb.
pub struct Threads;

/// The reply of `threads`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadsReply {
    /// The threads, by number.
    pub threads: Vec<ThreadReport>,
    /// How many more follow these.
    #[serde(default, skip_serializing_if = "page::is_nothing")]
    pub left_out: usize,
    /// The program has ended at this event of its recording, and all threads with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Its number.
    pub thread: Tid,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: StateWord,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonReport>,
    /// Its position; unknown while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceReport>,
    /// The thread is selected.
    pub selected: bool,
}

impl Verb for Threads {
    const NAME: &'static str = "threads";
    const DOC: &'static str = "Show all threads";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = PageArgs;
    type Reply = ThreadsReply;

    fn run(call: &Call<'_>, args: PageArgs) -> Result<ThreadsReply, Failure> {
        let (mut threads, is_over) = match call.target()? {
            Session::Live(session) => (live(&session)?, false),
            Session::Recorded(past) => (past.threads()?, past.is_over()?),
        };
        let left_out = args.page().cut(&mut threads);
        Ok(ThreadsReply {
            threads,
            left_out,
            is_over,
        })
    }
}

impl Command for Threads {
    const WORDS: &'static [Word] = &page::WORDS;

    fn text(reply: &ThreadsReply, asked: &PageArgs) -> Text {
        let (threads, more) = asked.page().shown(&reply.threads, reply.left_out);
        let text = table(threads).and(more);
        match reply.is_over {
            true => text.and(Text::line("The program has ended: no thread runs.")),
            false => text,
        }
    }
}

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

/// Returns the selected thread, if one is stopped.
pub(super) fn looked_at(session: &LiveSession) -> Option<Tid> {
    session.stopped().ok().map(|stop| stop.tid)
}

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

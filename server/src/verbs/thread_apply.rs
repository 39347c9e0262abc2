//! `thread_apply`: a verb that looks, at several threads: `thread apply all print x`. No thread is selected.

use recorder::live::{ThreadState, Tid};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Call, Command, Description, Does, Form, Needs, Style, Text, Verb, Word, find, serve};
use crate::past::{Past, of_replay};
use crate::protocol::{Code, Failure};
use crate::quantity::count;
use crate::session::{LiveSession, Session};

/// The `thread_apply` verb.
pub struct ThreadApply;

/// The arguments of `thread_apply`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadApplyArgs {
    /// The threads. Without any: all that are stopped or, in a recording, alive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Tid>,
    /// The verb, which only looks.
    pub command: String,
    /// The verb's arguments: an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub args: Value,
}

/// The reply of `thread_apply`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadApplyReply {
    /// The answers, by thread.
    pub threads: Vec<OfThread>,
    /// How many threads run, if all were asked for: they have nothing to show.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub running: usize,
}

/// What the verb says about a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfThread {
    /// The thread.
    pub thread: Tid,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The verb's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why the verb failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Verb for ThreadApply {
    const NAME: &'static str = "thread_apply";
    const DOC: &'static str = "Run a verb that looks for several threads: thread apply all print x\n\n  thread apply all print x             all threads that are stopped\n  thread apply 4711 4712 info locals   these threads\n\nThe selected thread stays selected. Threads have the numbers of the kernel, as threads lists them.";
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Look;
    type Args = ThreadApplyArgs;
    type Reply = ThreadApplyReply;

    fn run(call: &Call<'_>, args: ThreadApplyArgs) -> Result<ThreadApplyReply, Failure> {
        let verb = that_looks(&args.command)?;
        let (threads, running) = match call.target()? {
            Session::Live(session) => of_program(&session, &args.threads)?,
            Session::Recorded(past) => (of_recording(&past, &args.threads)?, 0),
        };
        let answers = threads.into_iter().map(|(thread, name)| {
            let answer = answer(call, verb, thread, &args.args);
            let (result, error) = match answer {
                Ok(result) => (Some(result), None),
                Err(failure) => (None, Some(failure)),
            };
            OfThread {
                thread,
                name,
                result,
                error,
            }
        });
        let mut threads: Vec<OfThread> = answers.collect();
        // A mistake in the verb's words is told once.
        if threads.iter().all(|of| of.error.is_some())
            && let Some(failure) = threads.iter_mut().find_map(|of| of.error.take())
        {
            return Err(failure);
        }
        Ok(ThreadApplyReply { threads, running })
    }
}

impl Command for ThreadApply {
    const WORDS: &'static [Word] = &[Word::new(
        "words",
        "all|THREAD.. VERB ..",
        Form::Expression,
        "The threads, then a verb that looks, with its words",
    )];

    /// The headings alone: only a client that knows the verb can write its replies.
    fn text(reply: &ThreadApplyReply, _: &ThreadApplyArgs) -> Text {
        let headings = reply.threads.iter().map(OfThread::heading);
        headings.fold(Text::default(), Text::and)
    }
}

impl OfThread {
    /// Returns the line above what is said about the thread.
    #[must_use]
    pub fn heading(&self) -> Text {
        let name = match self.name.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.name),
        };
        let heading = format!("Thread {}{name}", self.thread);
        Text::styled(vec![(Style::Heading, heading)])
    }
}

impl ThreadApplyReply {
    /// Says that there are threads that run.
    #[must_use]
    pub fn of_running(&self) -> Text {
        if self.running == 0 {
            return Text::default();
        }
        let who = count(self.running as u64, "thread");
        let verb = if self.running == 1 { "runs" } else { "run" };
        Text::hint(format!("({who} {verb}: pause stops them)"))
    }
}

/// Finds a verb that only looks.
fn that_looks(name: &str) -> Result<&'static Description, Failure> {
    let verb = find(name).ok_or_else(|| super::unknown(name))?;
    let is_this = verb.name == ThreadApply::NAME;
    match verb.does == Does::Look && verb.words.is_some() && !is_this {
        true => Ok(verb),
        false => Err(not_taken(verb.name)),
    }
}

fn not_taken(verb: &str) -> Failure {
    let verb = verb.replace('_', "-");
    let message = format!("thread apply does not take {verb}");
    Failure::bad_request(message)
        .hint("it takes verbs that look at one thread: print, info locals, backtrace, x")
}

fn answer(
    call: &Call<'_>,
    verb: &Description,
    thread: Tid,
    args: &Value,
) -> Result<Value, Failure> {
    let call = call.of_thread(thread);
    let answer = serve(&call, verb.name, args.clone())?;
    match call.has_looked() {
        true => Ok(answer),
        // It is about something else, whatever the thread.
        false => Err(not_taken(verb.name)),
    }
}

/// The threads and their names, and how many threads run.
type Chosen = (Vec<(Tid, String)>, usize);

fn of_program(session: &LiveSession, wanted: &[Tid]) -> Result<Chosen, Failure> {
    let all = session.live.threads();
    if !wanted.is_empty() {
        let name = |tid: &Tid| {
            let thread = all.iter().find(|thread| thread.tid == *tid);
            thread.map_or_else(String::new, |thread| thread.name.clone())
        };
        let chosen = wanted.iter().map(|tid| (*tid, name(tid)));
        return Ok((chosen.collect(), 0));
    }
    let known = all.len();
    let stopped = all
        .into_iter()
        .filter(|thread| matches!(thread.state, ThreadState::Stopped(_)));
    let chosen: Vec<(Tid, String)> = stopped.map(|thread| (thread.tid, thread.name)).collect();
    let running = known - chosen.len();
    Ok((chosen, running))
}

fn of_recording(past: &Past, wanted: &[Tid]) -> Result<Vec<(Tid, String)>, Failure> {
    let threads = past.timeline().threads();
    let threads = threads.map_err(|error| of_replay(&error))?;
    let name = |tid: u32| {
        let thread = threads.iter().find(|thread| thread.tid == tid);
        thread.and_then(|thread| thread.name.clone())
    };
    let chosen = match wanted.is_empty() {
        true => past.alive()?,
        false => wanted.iter().map(|tid| tid.cast_unsigned()).collect(),
    };
    if chosen.is_empty() {
        return Err(Failure::new(Code::NoThread, "no thread is alive here"));
    }
    let named = |tid: u32| (tid.cast_signed(), name(tid).unwrap_or_default());
    Ok(chosen.into_iter().map(named).collect())
}

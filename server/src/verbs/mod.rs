//! The verbs: each file is one, with its arguments, its reply and what it does. `TABLE` is all of them.
//!
//! A verb that only looks does its looking through `inspect`; one that makes the program run waits through `motion`;
//! those about probes share `probes`.

mod args;
mod attach;
mod r#await;
pub(crate) mod backtrace;
mod r#break;
mod catch;
mod r#continue;
mod detach;
pub(crate) mod disassemble;
mod display;
mod down;
mod eval;
mod finish;
pub(crate) mod frame;
pub(crate) mod locals;
mod logpoint;
pub(crate) mod memory;
mod motion;
mod next;
mod note;
mod output;
mod pause;
mod print;
mod probes;
pub(crate) mod registers;
mod restart;
mod set;
mod settle;
pub(crate) mod source;
mod start;
mod status;
mod step;
mod stop;
mod thread;
mod threads;
mod undisplay;
mod until;
mod up;
mod watch;
pub(crate) mod r#where;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use args::Args;
pub use attach::{Attach, AttachArgs};
pub use r#await::{Await, AwaitArgs};
pub use backtrace::{Backtrace, BacktraceArgs, BacktraceReply};
pub use r#break::{Break, BreakAdd};
pub use catch::{Catch, CatchAdd, Caught};
pub use r#continue::{Continue, ContinueArgs};
pub use detach::Detach;
pub use disassemble::{Disassemble, DisassembleArgs};
pub use display::{Display, DisplayArgs, DisplaysReply};
pub use down::{Down, DownArgs};
pub use eval::{Eval, EvalArgs};
pub use finish::Finish;
pub use frame::{Frame, FrameArgs, FrameReply};
pub use locals::{Locals, LocalsArgs, VariablesReply};
pub use logpoint::{Logpoint, LogpointAdd};
pub use memory::{Memory, MemoryArgs, MemoryReply};
pub use motion::{StepArgs, TimeoutArgs};
pub use next::Next;
pub use note::{Note, NoteArgs};
pub use output::{Output, OutputArgs, OutputPiece, OutputReply};
pub use pause::Pause;
pub use print::{Print, PrintArgs};
pub use probes::{Chosen, ProbeArgs, ProbeKind, ProbeReport, ProbesReply};
pub use registers::{RegisterReport, Registers, RegistersArgs, RegistersReply};
pub use restart::Restart;
pub use set::{Set, SetArgs, SetReply, Written};
pub use settle::Settle;
pub use source::{Source, SourceArgs};
pub use start::{Start, StartArgs};
pub use status::{Status, StatusReply};
pub use step::Step;
pub use stop::{EndReply, Stop};
pub use thread::{Thread, ThreadArgs};
pub use threads::{ThreadReport, Threads, ThreadsReply};
pub use undisplay::{Undisplay, UndisplayArgs};
pub use until::{Until, UntilArgs};
pub use up::Up;
pub use watch::{Watch, WatchAccess, WatchAdd};
pub use r#where::{Where, WhereArgs, WhereReply};
pub use write::{Write, WriteArgs, WriteTarget};

use crate::config::Config;
use crate::protocol::{Failure, Notice, NoticeKind};
use crate::session::{Session, Sessions};

/// A verb.
pub trait Verb {
    /// Its name on the wire.
    const NAME: &'static str;
    /// What it takes.
    type Args: Serialize + DeserializeOwned;
    /// What it returns.
    type Reply: Serialize + DeserializeOwned;

    /// Does it.
    ///
    /// # Errors
    /// Why it was not done.
    fn run(call: &Call<'_>, args: Self::Args) -> Result<Self::Reply, Failure>;
}

/// A request on its way: who asks, and about which session.
pub struct Call<'a> {
    /// All sessions.
    pub sessions: &'a Arc<Sessions>,
    /// The user's settings.
    pub config: &'a Config,
    /// The session that was named.
    pub session: Option<u32>,
    /// Tells the client something before the answer.
    pub notify: Arc<dyn Fn(Notice) + Send + Sync>,
    /// The client has gone: nobody waits for the answer any more.
    pub gone: Arc<AtomicBool>,
}

impl Call<'_> {
    /// Returns the session that is meant.
    ///
    /// # Errors
    /// [`crate::protocol::Code::NoSession`].
    pub fn session(&self) -> Result<Arc<Session>, Failure> {
        self.sessions.get(self.session)
    }

    /// Tells of conditions and messages of the session that have failed since the last verb.
    fn tell_failures(&self) {
        let Ok(session) = self.session() else {
            return;
        };
        let untold = session.live.untold_failures();
        if untold.is_empty() {
            return;
        }
        let probes = session.live.probes();
        for (id, failed) in untold {
            let view = probes.iter().find(|view| view.id == id);
            let what = view.map_or("probe", |view| ProbeKind::of(&view.spec).word());
            // Where the program judges too, the list knows better how often it was.
            let failed = view.and_then(|view| view.failed.clone()).unwrap_or(failed);
            (self.notify)(Notice {
                kind: NoticeKind::Warning,
                text: format!("{what} {id}: {}", failed.words()),
            });
        }
    }

    /// Says whether the client has gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

/// Arguments of a verb that takes none.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

type Serve = fn(&Call<'_>, Value) -> Result<Value, Failure>;

/// All verbs, by name.
const TABLE: &[(&str, Serve)] = &[
    entry::<Args>(),
    entry::<Attach>(),
    entry::<Await>(),
    entry::<Backtrace>(),
    entry::<Break>(),
    entry::<Catch>(),
    entry::<Continue>(),
    entry::<Detach>(),
    entry::<Disassemble>(),
    entry::<Display>(),
    entry::<Down>(),
    entry::<Eval>(),
    entry::<Finish>(),
    entry::<Frame>(),
    entry::<Locals>(),
    entry::<Logpoint>(),
    entry::<Memory>(),
    entry::<Next>(),
    entry::<Note>(),
    entry::<Output>(),
    entry::<Pause>(),
    entry::<Print>(),
    entry::<Registers>(),
    entry::<Restart>(),
    entry::<Set>(),
    entry::<Settle>(),
    entry::<Source>(),
    entry::<Start>(),
    entry::<Status>(),
    entry::<Step>(),
    entry::<Stop>(),
    entry::<Thread>(),
    entry::<Threads>(),
    entry::<Undisplay>(),
    entry::<Until>(),
    entry::<Up>(),
    entry::<Watch>(),
    entry::<Where>(),
    entry::<Write>(),
];

/// Other names that people try.
const ALIASES: &[(&str, &str)] = &[
    ("b", "break"),
    ("breakpoint", "break"),
    ("bt", "backtrace"),
    ("c", "continue"),
    ("context", "where"),
    ("l", "source"),
    ("list", "source"),
    ("n", "next"),
    ("out", "finish"),
    ("p", "print"),
    ("s", "step"),
];

const fn entry<V: Verb>() -> (&'static str, Serve) {
    (V::NAME, typed::<V>)
}

fn typed<V: Verb>(call: &Call<'_>, args: Value) -> Result<Value, Failure> {
    let args = match args {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::Object(fields) => Value::Object(fields),
        // A list would be taken for the fields in their order.
        _ => {
            let message = format!("the arguments of {} are no object", V::NAME);
            return Err(Failure::bad_request(message).hint("write {\"name\": value}"));
        }
    };
    let args = serde_json::from_value(args).map_err(|error| {
        Failure::bad_request(format!(
            "{} does not take these arguments: {error}",
            V::NAME
        ))
    })?;
    let reply = V::run(call, args);
    call.tell_failures();
    let reply = reply?;
    Ok(serde_json::to_value(reply).expect("replies are JSON"))
}

/// Returns the names of all verbs.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

/// Serves a request.
///
/// # Errors
/// The verb's, and [`crate::protocol::Code::BadRequest`] where there is no such verb or its arguments are wrong.
pub fn serve(call: &Call<'_>, command: &str, args: Value) -> Result<Value, Failure> {
    let name = ALIASES
        .iter()
        .find(|(alias, _)| *alias == command)
        .map_or(command, |(_, name)| name);
    match TABLE.iter().find(|(known, _)| *known == name) {
        Some((_, serve)) => serve(call, args),
        None => Err(unknown(command)),
    }
}

fn unknown(command: &str) -> Failure {
    let mut near: Vec<(f64, &str)> = names()
        .chain(ALIASES.iter().map(|(alias, _)| *alias))
        .map(|name| (strsim::jaro_winkler(command, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut failure = Failure::bad_request(format!("there is no verb \"{command}\""));
    let nearest = near.iter().take(3).map(|(_, n)| (*n).to_owned());
    failure.details.nearest = nearest.collect();
    failure.hint = Some(match failure.details.nearest.as_slice() {
        [] => format!("verbs: {}", names().collect::<Vec<_>>().join(", ")),
        near => format!("did you mean {}?", near.join(" or ")),
    });
    failure
}

#[cfg(test)]
mod tests;

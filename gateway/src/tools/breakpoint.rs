//! `debug_breakpoint`: sets, lists and removes breakpoints and watchpoints.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use server::protocol::Failure;
use server::verbs::{
    Break, BreakAdd, BreakReply, Chosen, ProbeArgs, ProbeReport, Watch, WatchAccess, WatchAdd,
    WatchReply,
};

use super::target::{ids, target};
use crate::answer::{Answer, List};
use crate::context::Context;
use crate::recorded;
use crate::shape;
use crate::tool::{About, Tool};

/// The tool.
pub struct Breakpoint;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// Breakpoints to set
    #[serde(default)]
    add: Vec<Add>,
    /// Ids of breakpoints to remove
    #[serde(default)]
    remove: Vec<String>,
}

/// A breakpoint: at a function, at a line, or where a value is written.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Add {
    /// A function or a pattern: parse, MyClass::*
    function: Option<String>,
    /// A source file
    file: Option<String>,
    /// A line of it, from 1
    line: Option<u32>,
    /// An address in hexadecimal
    address: Option<String>,
    /// Instead of a place: stop when this variable or expression is written
    watch: Option<String>,
    /// Only if this is true: i > 30, args[0] > 100, p->len == 0
    condition: Option<String>,
    /// Only on the Nth hit [default: 0, every hit]
    #[serde(default)]
    hit_count: u64,
}

impl Tool for Breakpoint {
    const NAME: &'static str = "debug_breakpoint";
    const DOC: &'static str = "Set or remove breakpoints at functions or source lines, and watchpoints that stop when a value is written. Without add and remove, lists them.";
    const READ_ONLY: bool = false;
    const ABOUT: About = About::Either(
        "A recording, instead of a session: debug_continue and debug_goto stop there",
    );
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        let removed = ids(&args.remove)?;
        let mut shown = Vec::new();
        let add = |add: Add| added(context, session, add);
        let remove = |id: u32| removed_one(context, session, id);
        for one in args.add {
            shown.extend(all_or_none(&shown, add(one), remove)?);
        }
        for id in removed {
            all_or_none(&shown, remove(id), remove)?;
        }
        if shown.is_empty() {
            shown = listed(context, session)?;
        }
        Ok(Answer::List(List::whole("breakpoints", shown)))
    }
}

fn added(context: &Context, session: Option<u32>, add: Add) -> Result<Vec<Value>, Failure> {
    if let Some(expression) = add.watch {
        let is_alone = add.function.is_none() && add.file.is_none() && add.address.is_none();
        if !is_alone {
            return Err(Failure::bad_request(
                "a watchpoint has no function, file or address",
            ));
        }
        let watch = WatchAdd {
            expression,
            access: WatchAccess::Write,
            condition: add.condition,
            hit_count: add.hit_count,
            all_threads: false,
        };
        let reply = context.ask::<Watch>(session, &ProbeArgs::Add(watch))?;
        return Ok(watches(&reply));
    }
    let add = BreakAdd {
        at: target(add.function, add.file, add.line, add.address)?,
        also: Vec::new(),
        condition: add.condition,
        hit_count: add.hit_count,
        all_threads: false,
        once: false,
        pending: false,
    };
    let reply = context.ask::<Break>(session, &ProbeArgs::Add(add))?;
    breaks(context, session, &reply)
}

fn breaks(
    context: &Context,
    session: Option<u32>,
    reply: &BreakReply,
) -> Result<Vec<Value>, Failure> {
    match reply {
        BreakReply::Probes(reply) => Ok(reports(&reply.probes)),
        BreakReply::Recorded { breaks, .. } => recorded::breaks(context, session, breaks),
    }
}

fn watches(reply: &WatchReply) -> Vec<Value> {
    match reply {
        WatchReply::Probes(reply) => reports(&reply.probes),
        WatchReply::Added(watch) => vec![recorded::watch(watch)],
        WatchReply::Recorded(reply) => reply.watches.iter().map(recorded::watch).collect(),
    }
}

fn listed(context: &Context, session: Option<u32>) -> Result<Vec<Value>, Failure> {
    let reply = context.ask::<Break>(session, &ProbeArgs::List)?;
    let mut all = breaks(context, session, &reply)?;
    all.extend(watches(&context.ask::<Watch>(session, &ProbeArgs::List)?));
    Ok(all)
}

/// Takes back what a call has set so far, if its next step has failed: nobody would know its ids.
pub fn all_or_none<T>(
    set: &[Value],
    step: Result<T, Failure>,
    remove: impl Fn(u32) -> Result<(), Failure>,
) -> Result<T, Failure> {
    if step.is_err() {
        let ids = set.iter().filter_map(|probe| match &probe["id"] {
            Value::String(id) => id.parse().ok(),
            id => id.as_u64().and_then(|id| u32::try_from(id).ok()),
        });
        // The program may have ended, and with it what was set. The failure of the step says why.
        ids.for_each(|id| _ = remove(id));
    }
    step
}

/// Removes a breakpoint, or the watchpoint of this number.
fn removed_one(context: &Context, session: Option<u32>, id: u32) -> Result<(), Failure> {
    let chosen = Chosen {
        ids: vec![id],
        all: false,
    };
    let failed = match context.ask::<Break>(session, &ProbeArgs::Remove(chosen.clone())) {
        Ok(_) => return Ok(()),
        Err(failed) => failed,
    };
    let watch = context.ask::<Watch>(session, &ProbeArgs::Remove(chosen));
    watch.map(drop).map_err(|_| failed)
}

/// Used by `debug_logpoint` too.
pub fn reports(probes: &[ProbeReport]) -> Vec<Value> {
    probes.iter().map(shape::probe).collect()
}

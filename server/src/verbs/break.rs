//! `break`: adds, lists, removes and switches breakpoints. A hit stops its thread, or all threads with `all_threads`. A
//! breakpoint in a recording stops a run through time where a function is entered.

use recorder::live::{Action, ProbeSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Call, Command, Does, Form, Needs, ProbeArgs, ProbeKind, ProbesReply, Takes, Text, Verb, Word,
    probe_text, probe_words, probes,
};
use crate::inspect;
use crate::location::Target;
use crate::past::{self as recorded, BreakWanted, Past};
use crate::protocol::Failure;
use crate::session::Session;

/// The `break` verb.
pub struct Break;

/// A breakpoint to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakAdd {
    /// Its location.
    pub at: Target,
    /// More locations, each with its own breakpoint. Either all are set or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Target>,
    /// Stop only if this expression is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Stop only on the Nth hit; 0: on every hit.
    #[serde(default)]
    pub hit_count: u64,
    /// Stop all threads.
    #[serde(default)]
    pub all_threads: bool,
    /// Stop once, then remove the breakpoint.
    #[serde(default)]
    pub once: bool,
    /// Allow the breakpoint to wait for a module that is not loaded yet.
    #[serde(default)]
    pub pending: bool,
}

/// The reply of `break`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum BreakReply {
    /// Breakpoints in a program.
    Probes(ProbesReply),
    /// Breakpoints in a recording.
    Recorded {
        /// The breakpoints that were added, listed or removed.
        breaks: Vec<recorded::Break>,
        /// The recording is the past of a program, which these breakpoints do not stop.
        of_a_program: bool,
    },
}

impl BreakReply {
    /// Describes a changed breakpoint of a recording.
    pub(super) fn of_recording(changed: recorded::Break) -> BreakReply {
        BreakReply::Recorded {
            breaks: vec![changed],
            of_a_program: false,
        }
    }
}

impl Verb for Break {
    const NAME: &'static str = "break";
    const DOC: &'static str = "Set, list, remove, enable or disable breakpoints\n\nWithout a location, break sets one where the selected frame stands, as gdb does; break list shows all.";
    const ALIASES: &'static [&'static str] = &["breakpoint", "b"];
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Location;
    type Args = ProbeArgs<BreakAdd>;
    type Reply = BreakReply;

    fn run(call: &Call<'_>, args: Self::Args) -> Result<BreakReply, Failure> {
        if let Session::Recorded(past) = call.target()? {
            return Ok(BreakReply::Recorded {
                breaks: recorded(&past, args)?,
                of_a_program: past.is_of_a_session(),
            });
        }
        let reply = probes::run(call, args, ProbeKind::Breakpoint, |session, add| {
            let targets = std::iter::once(&add.at).chain(&add.also);
            let locations = targets.map(|target| probes::located(session, target, add.pending));
            let locations = locations.collect::<Result<Vec<_>, _>>()?;
            let condition = inspect::condition(add.condition.as_deref())?;
            let specs = locations.into_iter().map(|location| ProbeSpec {
                location,
                action: Action::Break {
                    all_threads: add.all_threads,
                    once: add.once,
                },
                condition: condition.clone(),
                hit_count: add.hit_count,
            });
            Ok(specs.collect())
        })?;
        Ok(BreakReply::Probes(reply))
    }
}

impl Command for Break {
    const WORDS: &'static [Word] = &[
        Word::new(
            "words",
            "[add] LOCATION.. | list | remove ID.. | enable ID.. | disable ID..",
            Form::Words,
            "Locations: function, file:line, file:line:column, 0xADDRESS, *EXPRESSION, and of the current file LINE, +N or -N: N lines from here [default: here]",
        )
        .optional(),
        probe_words::FUNCTION,
        probe_words::CONDITION,
        probe_words::HIT_COUNT,
        probe_words::ALL,
        probe_words::ALL_THREADS,
        Word::flag("once", None, "Remove the breakpoint after its first stop"),
        probe_words::PENDING,
    ];

    fn read(mut written: Map<String, Value>) -> Result<Self::Args, Failure> {
        probe_words::here_by_default(&mut written);
        probe_words::read(written, probe_words::locations)
    }

    fn text(reply: &BreakReply, asked: &Self::Args) -> Text {
        match reply {
            BreakReply::Probes(reply) => probe_text::of_program(&reply.probes, asked),
            BreakReply::Recorded {
                breaks,
                of_a_program,
            } => probe_text::breaks(breaks, *of_a_program, asked),
        }
    }
}

fn recorded(past: &Past, args: ProbeArgs<BreakAdd>) -> Result<Vec<recorded::Break>, Failure> {
    match args {
        ProbeArgs::List => Ok(past.all_breaks()),
        ProbeArgs::Add(add) => {
            // If every instruction is recorded, all threads stop when one does.
            let knows_all = past.timeline().has_every_instruction();
            if add.pending || add.all_threads && !knows_all {
                return Err(past.needs_the_program("break with --pending or --all-threads"));
            }
            let targets = std::iter::once(&add.at).chain(&add.also);
            let wanted = BreakWanted {
                condition: add.condition,
                hit_count: add.hit_count,
                once: add.once,
            };
            targets
                .map(|at| past.add_break(at, wanted.clone()))
                .collect()
        }
        ProbeArgs::Remove(chosen) => {
            if chosen.all {
                past.remove_watch(None)?;
            }
            probes::each_id(&chosen, |id| past.remove_break(id))
        }
        ProbeArgs::Enable(chosen) => probes::each_id(&chosen, |id| past.switch_break(id, true)),
        ProbeArgs::Disable(chosen) => probes::each_id(&chosen, |id| past.switch_break(id, false)),
    }
}

//! `watch`: adds, lists, removes and switches watchpoints. A watchpoint stops a thread that writes or reads a value. In
//! a recording, it stops a run through time where the value has changed.

use recorder::live::{Access, Action, Location, ProbeSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Call, Command, Does, Form, Needs, ProbeArgs, ProbeKind, ProbesReply, Takes, Text, Verb, Word,
    probe_text, probe_words, probes,
};
use crate::inspect;
use crate::past::{Past, WatchLine, WatchesReply};
use crate::protocol::{Code, Failure};
use crate::session::{LiveSession, Session, Watched, WatchedFrame};

/// The `watch` verb.
pub struct Watch;

/// A watchpoint to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchAdd {
    /// The value to watch. It must be in memory and have 1, 2, 4 or 8 bytes.
    pub expression: String,
    /// The accesses that count.
    #[serde(default)]
    pub access: WatchAccess,
    /// Stop only if this expression is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Stop only on the Nth hit; 0: on every hit.
    #[serde(default)]
    pub hit_count: u64,
    /// Stop all threads.
    #[serde(default)]
    pub all_threads: bool,
}

/// The accesses that a watchpoint counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchAccess {
    /// Writes.
    #[default]
    Write,
    /// Reads.
    Read,
    /// Writes and reads.
    Both,
}

/// The reply of `watch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WatchReply {
    /// Watchpoints in a program.
    Probes(ProbesReply),
    /// Watches of a recording that were listed or removed.
    Recorded(WatchesReply),
    /// A new watch of a recording.
    Added(WatchLine),
}

impl Verb for Watch {
    const NAME: &'static str = "watch";
    const DOC: &'static str =
        "Stop when a value is written or read; in a recording, where it changed

A local variable is watched in its function only, a global variable everywhere. In a program, the next access after that function has returned is reported as such, and the watchpoint is removed. While you watch a value, runs through a recording stop only where it changed.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Expression;
    type Args = ProbeArgs<WatchAdd>;
    type Reply = WatchReply;

    fn run(call: &Call<'_>, args: Self::Args) -> Result<WatchReply, Failure> {
        if let Session::Recorded(past) = call.target()? {
            return recorded(&past, args);
        }
        let mut watched = None;
        let reply = probes::run(call, args, ProbeKind::Watchpoint, |session, add| {
            let access = match add.access {
                WatchAccess::Write => Access::Write,
                WatchAccess::Read => Access::Read,
                WatchAccess::Both => Access::Both,
            };
            let (location, found) = locate(session, add.expression, access)?;
            watched = Some(found);
            Ok(vec![ProbeSpec {
                location,
                action: Action::Break {
                    all_threads: add.all_threads,
                    once: false,
                },
                condition: inspect::condition(add.condition.as_deref())?,
                hit_count: add.hit_count,
            }])
        })?;
        if let (Some(watched), [probe]) = (watched, reply.probes.as_slice()) {
            call.live()?.remember_watched(probe.id, watched);
        }
        Ok(WatchReply::Probes(reply))
    }
}

impl Command for Watch {
    const WORDS: &'static [Word] = &[
        Word::new(
            "words",
            "[add] EXPRESSION [if CONDITION] | list | remove ID.. | enable ID.. | disable ID..",
            Form::Words,
            "A value that lies in memory, of 1, 2, 4 or 8 bytes; in a recording, any",
        )
        .optional(),
        Word::flag("read", None, "Stop at reads").against("access"),
        Word::flag("access", None, "Stop at reads and writes"),
        probe_words::CONDITION,
        probe_words::HIT_COUNT,
        probe_words::ALL_OF_KIND,
        probe_words::ALL_THREADS,
    ];

    fn read(written: Map<String, Value>) -> Result<Self::Args, Failure> {
        probe_words::read(written, |words, written| {
            let words = probe_words::with_if(words, written)?;
            let mut is_set = |flag| written.remove(flag) == Some(Value::Bool(true));
            let access = match (is_set("read"), is_set("access")) {
                (true, _) => "read",
                (false, true) => "both",
                (false, false) => "write",
            };
            written.insert("access".to_owned(), access.into());
            written.insert("expression".to_owned(), words.join(" ").into());
            Ok(())
        })
    }

    fn text(reply: &WatchReply, asked: &Self::Args) -> Text {
        match reply {
            WatchReply::Probes(reply) => probe_text::of_program(&reply.probes, asked),
            WatchReply::Recorded(reply) => probe_text::watches(&reply.watches, asked),
            WatchReply::Added(line) => probe_text::watched(line),
        }
    }
}

fn recorded(past: &Past, args: ProbeArgs<WatchAdd>) -> Result<WatchReply, Failure> {
    Ok(match args {
        ProbeArgs::List => WatchReply::Recorded(past.all_watches()),
        ProbeArgs::Add(add) => {
            let is_plain = add.condition.is_none()
                && add.hit_count == 0
                && !add.all_threads
                && add.access == WatchAccess::Write;
            if !is_plain && past.is_of_a_session() {
                return Err(past.needs_the_program("watch with a condition or an option"));
            }
            if !is_plain {
                let message = "a watch of a recording stops where the value changes, and takes no condition or option";
                let hint = format!(
                    "watch it: watch {0}; or see all changes: history {0}",
                    add.expression
                );
                return Err(Failure::new(Code::NotAllowed, message).hint(hint));
            }
            WatchReply::Added(past.add_watch(&add.expression)?)
        }
        ProbeArgs::Remove(chosen) => {
            let removed = probes::each_id(&chosen, |id| Ok(past.remove_watch(id)?.watches))?;
            WatchReply::Recorded(WatchesReply { watches: removed })
        }
        ProbeArgs::Enable(_) => return Err(past.needs_the_program("watch enable")),
        ProbeArgs::Disable(_) => return Err(past.needs_the_program("watch disable")),
    })
}

/// Returns the memory and the type of an expression. Names are those of the selected frame, or only globals while the
/// program runs.
pub(super) fn locate(
    session: &LiveSession,
    expression: String,
    access: Access,
) -> Result<(Location, Watched), Failure> {
    inspect::refuse_constant(&expression)?;
    let tid = session.moment().ok().map(|moment| moment.stop.tid);
    let (place, frame) = session.look(|view| {
        let place = inspect::evaluate_place(view, &expression)?;
        let frame = tid.and_then(|tid| WatchedFrame::around(place.address, view, tid));
        Ok((place, frame))
    })?;
    let (address, len) = checked(&expression, place.address, place.len)?;
    let watched = Watched {
        ty: place.ty,
        expression: expression.clone(),
        frame,
    };
    let location = Location::Memory {
        address,
        len,
        access,
        expression,
    };
    Ok((location, watched))
}

fn checked(expression: &str, address: u64, len: u64) -> Result<(u64, u8), Failure> {
    let refused = |why: String| Failure::new(Code::BadRequest, format!("{expression} {why}"));
    match len {
        1 | 2 | 4 | 8 if address.is_multiple_of(len) => Ok((address, len as u8)),
        1 | 2 | 4 | 8 => Err(refused(format!(
            "is at {address:#x}, which is not a multiple of its size: the processor cannot watch it"
        ))
        .hint("watch a part of it")),
        _ => Err(refused(format!(
            "has {len} bytes, and the processor watches 1, 2, 4 or 8"
        ))
        .hint("watch a member or an element of it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_processor_can_watch_is_watched() {
        assert_eq!(checked("x", 0x1000, 8).unwrap(), (0x1000, 8));
        assert_eq!(checked("x", 0x1001, 1).unwrap(), (0x1001, 1));
        for (address, len) in [(0x1004, 8), (0x1001, 2), (0x1000, 3), (0x1000, 0), (0, 16)] {
            assert!(checked("x", address, len).is_err(), "{address:#x} {len}");
        }
    }
}

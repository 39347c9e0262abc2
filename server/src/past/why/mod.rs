//! The chain of recorded events that led to a call or a value.
//!
//! It reports only recorded facts: who called whom, who returned what. Where two values are equal, it says so and no
//! more: whether one came from the other is not known. Where knowledge ends, it names the option that would have
//! recorded more.

mod again;
mod call;
mod value;

use debuginfo::types::TypeKind;
use replay::{CallHead, Event};
use serde::{Deserialize, Serialize};

use super::words::Word;
use super::{Later, Past, Position, frames_for, of_replay};
use crate::inspect;
use crate::protocol::Failure;

/// Most callers that are reported.
const CALLERS: usize = 6;

/// A chain of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyReply {
    /// The subject of the question.
    pub of: String,
    /// The event at which it was.
    pub seq: u64,
    /// What led to it, step by step.
    pub steps: Vec<WhyStep>,
    /// Where knowledge ends.
    pub ends: Vec<WhyEnd>,
    /// What happened to the value afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<Later>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyStep {
    /// The event that shows it.
    pub seq: u64,
    /// Its distance from the subject.
    pub depth: u32,
    /// `call`, `caller`, `event`, `same_value`, `value` or `open`.
    pub kind: String,
    /// What was.
    pub text: String,
}

/// Where knowledge ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyEnd {
    /// What is not known, and why.
    pub why: String,
    /// What would have recorded more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
}

impl WhyReply {
    fn step(&mut self, seq: u64, depth: u32, kind: &str, text: impl Into<String>) {
        self.steps.push(WhyStep {
            seq,
            depth,
            kind: kind.to_owned(),
            text: text.into(),
        });
    }

    fn end(&mut self, why: impl Into<String>, option: Option<String>) {
        self.ends.push(WhyEnd {
            why: why.into(),
            option,
        });
    }
}

impl Past {
    /// Finds what led to an event, if `of` is its number, or to the value of an expression at event `at`, or at the position that the
    /// user has chosen, or at the end.
    ///
    /// # Errors
    /// There is no such event, the expression means nothing there, or the search was interrupted.
    pub(crate) fn why(
        &self,
        of: &str,
        at: Option<u64>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<WhyReply, Failure> {
        let of = of.trim();
        let seq = of.parse::<u64>().ok().filter(|_| at.is_none());
        let begun = || WhyReply {
            of: of.to_owned(),
            ..WhyReply::default()
        };
        let of_value = |here| {
            self.refuse_function(of, here)?;
            let mut reply = begun();
            self.why_value(&mut reply, of, here, is_interrupted)?;
            Ok(reply)
        };
        match seq {
            Some(seq) => {
                let mut reply = begun();
                self.why_event(&mut reply, seq, is_interrupted)?;
                Ok(reply)
            }
            None if at.is_some() => of_value(self.position_at(at)?),
            None => self.at_end_unless_chosen(of_value),
        }
    }

    /// Refuses the name of a recorded function, unless it is that of a variable here too. If it has no meaning here, the
    /// refusal says why: a variable that is not in scope may have the same name.
    fn refuse_function(&self, name: &str, here: Position) -> Result<(), Failure> {
        // In an expression, these do not stand for any text.
        let found = match name.contains(['*', '?', '[']) {
            true => None,
            false => self.timeline.functions_matching(name).into_iter().next(),
        };
        let Some(function) = found.and_then(|id| self.timeline.function(id)) else {
            return Ok(());
        };
        let is_variable = self.look_at(here, frames_for(name), |looked| {
            let ty = inspect::value_of(&looked.view(), name)?.ty.strip();
            // The name of a function means its address, too.
            let ty = ty
                .target()
                .filter(|_| ty.kind() == TypeKind::Pointer)
                .unwrap_or(ty);
            Ok(ty.strip().kind() != TypeKind::Function)
        });
        let recorded = function.name.replace('\'', "''");
        let calls = format!(
            "find its calls: SELECT start_seq, args, ret FROM calls WHERE function = '{recorded}'; then ask of one: why START_SEQ"
        );
        match is_variable {
            Ok(true) => Ok(()),
            Ok(false) => {
                let message = format!("{name} is a function: only each of its calls has a cause");
                Err(Failure::bad_request(message).hint(calls))
            }
            Err(failure) => {
                let of_function = "is a function: only each of its calls has a cause";
                let message = format!("{}; {} {of_function}", failure.message, function.name);
                let hint =
                    format!("if a variable is meant, go to where it is in scope; else {calls}");
                Err(Failure { message, ..failure }.hint(hint))
            }
        }
    }

    fn why_event(
        &self,
        reply: &mut WhyReply,
        seq: u64,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        reply.seq = seq;
        let event = self.timeline.event(seq).map_err(|e| of_replay(&e))?;
        let call = match event {
            Event::Enter(call) | Event::Leave(call) => Some(call),
            Event::Other(event) => {
                let text = match (&event.text, &event.bytes) {
                    (Some(text), _) => format!(": {text}"),
                    (None, Some(bytes)) => {
                        format!(": {}", String::from_utf8_lossy(bytes).trim_end())
                    }
                    (None, None) => String::new(),
                };
                reply.step(seq, 0, "event", format!("{}{text}", event.kind));
                match event.tid {
                    Some(tid) => {
                        let open = self.timeline.innermost(tid, seq);
                        open.map_err(|e| of_replay(&e))?
                    }
                    None => None,
                }
            }
        };
        match call {
            Some(call) => self.why_call(reply, &call, is_interrupted),
            None => {
                reply.end("no recorded call was open then", None);
                Ok(())
            }
        }
    }

    /// Returns the calls around a call, the nearest first.
    fn callers(&self, call: &CallHead, limit: usize) -> Result<Vec<CallHead>, Failure> {
        let mut callers = Vec::new();
        let mut next = self.timeline.parent(call).map_err(|e| of_replay(&e))?;
        while let Some(caller) = next.filter(|_| callers.len() < limit) {
            callers.push(caller);
            next = self.timeline.parent(&caller).map_err(|e| of_replay(&e))?;
        }
        Ok(callers)
    }

    /// Returns the last calls directly inside a call that ended before event `until`, the last one first.
    fn inside(&self, call: &CallHead, until: u64, limit: usize) -> Result<Vec<CallHead>, Failure> {
        let mut inside = Vec::new();
        let Some(tid) = call.tid else {
            return Ok(inside);
        };
        let mut at = until;
        while inside.len() < limit && at > call.start {
            let last = self.timeline.last_of_thread(tid, at - 1, call.start);
            let Some(last) = last
                .map_err(|e| of_replay(&e))?
                .filter(|last| *last > call.start)
            else {
                break;
            };
            at = match self.timeline.event(last).map_err(|e| of_replay(&e))? {
                Event::Leave(child) => {
                    inside.push(child);
                    child.start
                }
                _ => last,
            };
        }
        Ok(inside)
    }

    /// Writes the outcome of a call: `f(n=3) returned -1`.
    fn outcome(&self, call: &CallHead) -> Result<String, Failure> {
        let text = self.call_text(call)?;
        let result = self.result(call)?;
        Ok(match (call.end, result) {
            (None, _) if call.only_entered => format!("{text}: its end is not recorded"),
            (None, _) => format!("{text} had not ended"),
            (Some(_), _) if call.open_at_end => format!("{text} had not returned"),
            (Some(_), _) if call.unwound => {
                format!("{text} was left by an exception or longjmp")
            }
            (Some(_), Some(Word { text: result, .. })) => format!("{text} returned {result}"),
            (Some(_), None) => format!("{text} returned"),
        })
    }

    /// Writes where a call was made: ` at shop.c:12`.
    fn place(&self, call: &CallHead) -> String {
        match self.called_at(call) {
            Some((file, line)) => {
                let name = file.rsplit('/').next().unwrap_or(&file).to_owned();
                format!(", called at {name}:{line}")
            }
            None => String::new(),
        }
    }
}

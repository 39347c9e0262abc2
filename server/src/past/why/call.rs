//! What led to a call: its callers, where the values of its arguments were before, and where its error first
//! appeared.

use replay::CallHead;
use store::control::ValueKind;

use super::super::words::Word;
use super::super::{Past, Position, frames_for, of_replay};
use super::value::number;
use super::{CALLERS, WhyReply};
use crate::inspect::{self, Manner};
use crate::protocol::Failure;

/// Arguments that are followed.
const ARGUMENTS: usize = 6;
/// Calls inside a call that are searched for one that returned the same error.
const INSIDE: usize = 2000;
/// How deep an error is followed.
const DEEPEST: usize = 12;
/// Callers that are searched for an argument with the same value.
const HOLDERS: usize = 64;
/// Watched expressions that are compared.
const WATCHED: usize = 8;
/// How far above a call's frame its thread's stack is assumed to reach, in bytes.
const STACK: u64 = 8 << 20;

impl Past {
    pub(super) fn why_call(
        &self,
        reply: &mut WhyReply,
        call: &CallHead,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let outcome = self.outcome(call)?;
        reply.step(
            call.start,
            0,
            "call",
            format!("{outcome}{}", self.place(call)),
        );
        let callers = self.callers(call, HOLDERS)?;
        self.error(reply, call, &callers)?;
        self.sources(reply, call, &callers, 1, is_interrupted)?;
        for (at, caller) in callers.iter().take(CALLERS).enumerate() {
            let text = self.call_text(caller)?;
            let place = self.place(caller);
            let depth = u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1);
            reply.step(
                caller.start,
                depth,
                "caller",
                format!("called by {text}{place}"),
            );
        }
        if callers.len() > CALLERS {
            let more = callers.len() - CALLERS;
            let outermost = callers.last().map_or(call.start, |caller| caller.start);
            let text = format!("and {more} callers further out, up to");
            reply.step(outermost, CALLERS as u32 + 1, "caller", text);
        }
        Ok(())
    }

    /// Follows the result of a call that looks like an error, or may be an error code: down to its origin, and up as far as it was
    /// passed.
    fn error(
        &self,
        reply: &mut WhyReply,
        call: &CallHead,
        callers: &[CallHead],
    ) -> Result<(), Failure> {
        let Some(error) = self.result(call)? else {
            return Ok(());
        };
        let is_error = self.is_error(call, &error);
        if !is_error && !self.may_be_code(call, &error) {
            return Ok(());
        }
        let value = &error.text;
        let mut inner = *call;
        for depth in 1..=DEEPEST {
            let Some(end) = inner.end else { break };
            let inside = self.inside(&inner, end, INSIDE)?;
            let mut origin = None;
            for child in &inside {
                if self.has_result(child, error.bits)? {
                    origin = Some(*child);
                    break;
                }
            }
            let Some(origin) = origin else {
                if !is_error {
                    // It may be any number, so it means nothing that no other call returned it.
                    break;
                }
                let name = self.timeline.short_name(&inner);
                let searched = match inside.len() {
                    0 => format!("no call inside {name} (seq {}) was recorded", inner.start),
                    INSIDE => {
                        format!("none of the last {INSIDE} calls inside {name} returned {value}")
                    }
                    _ => format!(
                        "no recorded call inside {name} (seq {}) returned {value}: {name} made it or read it from memory, or a \
                         function that was not recorded returned it",
                        inner.start
                    ),
                };
                reply.end(searched, self.each_line_of(&inner));
                break;
            };
            let text = format!(
                "same value inside it: {}{}",
                self.outcome(&origin)?,
                self.place(&origin)
            );
            reply.step(origin.start, depth as u32, "same_value", text);
            inner = origin;
        }
        for caller in callers.iter().take(CALLERS) {
            let result = self.result(caller)?;
            let name = self.timeline.short_name(caller);
            match result {
                Some(result) if result.bits == error.bits => {
                    let text = format!("same value further up: {name} returned {}", result.text);
                    reply.step(caller.end.unwrap_or(caller.start), 1, "same_value", text);
                }
                Some(result) if is_error => {
                    let text = format!("its caller {name} returned another value, {}", result.text);
                    reply.step(caller.end.unwrap_or(caller.start), 1, "value", text);
                    break;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Returns whether a result may be an error code: a small number that is not a Boolean.
    fn may_be_code(&self, call: &CallHead, result: &Word) -> bool {
        let kind = self.definition(call).map(|function| &function.ret);
        let is_number = matches!(kind, Some(ValueKind::Int { .. } | ValueKind::Enum { .. }));
        is_number && (2..=4095).contains(&result.bits)
    }

    /// Returns whether a call returned these bits.
    fn has_result(&self, call: &CallHead, bits: u64) -> Result<bool, Failure> {
        let result = self.result(call)?;
        Ok(result.is_some_and(|result| result.bits == bits))
    }

    /// Returns whether a result looks like an error: a negative number, or a null pointer.
    fn is_error(&self, call: &CallHead, result: &Word) -> bool {
        let kind = self.definition(call).map(|function| &function.ret);
        let is_negative = (-4095..0).contains(&(result.bits as i64));
        match kind {
            Some(ValueKind::Pointer) => result.bits == 0 || is_negative,
            Some(ValueKind::Int { signed, .. } | ValueKind::Enum { signed, .. }) => {
                *signed && is_negative
            }
            _ => is_negative,
        }
    }

    /// Finds where the values of a call's arguments were before: with its callers, and as results of earlier calls.
    pub(super) fn sources(
        &self,
        reply: &mut WhyReply,
        call: &CallHead,
        callers: &[CallHead],
        depth: u32,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let mut words = self.arguments(call)?;
        words.retain(Word::is_telling);
        words.truncate(ARGUMENTS);
        let values: Vec<u64> = words.iter().map(|word| word.bits).collect();
        if values.is_empty() {
            return Ok(());
        }
        let is_result = |call: &CallHead, rax: u64, value: u64| {
            let word = self.result_of(call, rax);
            word.is_some_and(|word| word.bits == value)
        };
        let found = self
            .timeline
            .returned_before(&values, call.start, &is_result, is_interrupted);
        let found = found.map_err(|e| of_replay(&e))?;
        for (word, returned) in words.iter().zip(found) {
            let Word { name, text, .. } = word;
            let holder = self.holder(word.bits, callers)?;
            if let Some((holder, argument)) = &holder {
                let caller = self.timeline.short_name(holder);
                let said = format!("{name}={text}: same value as {argument} of {caller}");
                reply.step(holder.start, depth, "same_value", said);
            }
            match returned {
                Some(returned) => {
                    let said = format!(
                        "{name}={text}: same value as what {} last{}",
                        self.outcome(&returned)?,
                        self.place(&returned)
                    );
                    reply.step(returned.start, depth, "same_value", said);
                }
                _ if holder.is_some() || self.watched(reply, call, word, depth) => {}
                _ if is_on_stack(call, word.bits) => {
                    let said = format!("{name}={text} is an address on the stack of its callers");
                    reply.step(call.start, depth, "value", said);
                }
                _ if word.is_raw => {}
                _ => {
                    let option = match word.is_address {
                        true => self.with_allocations().map(str::to_owned),
                        false => callers.first().and_then(|caller| self.each_line_of(caller)),
                    };
                    let why = format!(
                        "no recorded call returned {name}={text} before event {}",
                        call.start
                    );
                    reply.end(why, option);
                }
            }
        }
        Ok(())
    }

    /// Reports which of the watched expressions had the value of an argument where the call began. Returns whether one
    /// had.
    fn watched(&self, reply: &mut WhyReply, call: &CallHead, word: &Word, depth: u32) -> bool {
        let captures = &self.timeline.recording().manifest().settings.captures;
        let watched = captures
            .iter()
            .filter_map(|capture| capture.strip_prefix("watch "));
        let Some(tid) = call.tid else { return false };
        let position = Position::of_event(call.start, tid);
        for expression in watched.take(WATCHED) {
            let value = self.look_at(position, frames_for(expression), |looked| {
                inspect::evaluate(&looked.view(), expression, Manner::of_many(false), None)
            });
            let shown = value.ok().map(|value| value.shown);
            let known = shown.filter(|shown| shown.stale_since.is_none());
            let value = known.and_then(|shown| shown.value);
            if value.and_then(|value| number(&value)) == Some(word.bits) {
                let said = format!(
                    "{}={}: same value as the watched {expression} when the call began",
                    word.name, word.text
                );
                reply.step(call.start, depth, "same_value", said);
                return true;
            }
        }
        false
    }

    /// The outermost of the consecutive callers that received a value, and their argument.
    fn holder(
        &self,
        bits: u64,
        callers: &[CallHead],
    ) -> Result<Option<(CallHead, String)>, Failure> {
        let mut holder = None;
        for caller in callers {
            let words = self.arguments(caller)?;
            match words.into_iter().find(|word| word.bits == bits) {
                Some(word) => holder = Some((*caller, word.name)),
                None => break,
            }
        }
        Ok(holder)
    }
}

/// Returns whether an address lies above a call's frame, on its thread's stack.
fn is_on_stack(call: &CallHead, address: u64) -> bool {
    let slot = call.slot;
    slot != 0 && (slot..slot.saturating_add(STACK)).contains(&address)
}

//! What led to a value: when it was last written, which calls were open then, and which of them had the same value.

use replay::CallHead;

use super::super::{Past, Position, of_replay};
use super::WhyReply;
use crate::inspect::Manner;
use crate::past::Change;
use crate::protocol::Failure;
use crate::verbs::{LEFT_OVER, LastWriteReply, lies_at};

/// Most open calls that are reported.
const OPEN: usize = 4;
/// Most calls that ended between the two events and are examined.
const ENDED: usize = 64;
/// Most of them that are reported.
const ENDED_TOLD: usize = 3;

impl Past {
    pub(super) fn why_value(
        &self,
        reply: &mut WhyReply,
        expression: &str,
        here: Position,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        reply.seq = here.seq;
        let last = self.last_write_at(expression, Manner::of_many(false), here, is_interrupted)?;
        reply.later.clone_from(&last.later);
        if let Some(place) = &last.place {
            let lies = lies_at(expression, place);
            reply.step(here.seq, 0, "value", lies.trim_end_matches('.'));
        }
        let seen = last.now.as_ref().and_then(|now| now.stale_since);
        let seen = seen.or(last.seen_at).unwrap_or_default();
        let is_old = self.value_now(reply, &last, here);
        let is_stale = is_old && !last.is_exact && seen < here.seq;
        let is_logged_later = last.later.as_ref().is_some_and(|later| later.last.is_write);
        let Some(after) = &last.after else {
            if last.is_exact {
                let call = last.since.as_deref().filter(|since| *since != "recording");
                let text = match call {
                    Some(call) => format!(
                        "no instruction has written {expression} since {call} began: {LEFT_OVER}"
                    ),
                    None => format!("no instruction has written {expression} up to then"),
                };
                reply.step(here.seq, 0, "value", text);
                return Ok(());
            }
            let was_watched = self.was_watched(expression);
            let although = match was_watched {
                true => ", although it was watched: no recorded call could show it",
                false => "",
            };
            let none = "no write to it up to then";
            let saw_none = self.saw_no_write(expression, here, none, (None, here.seq))?;
            let why = format!(
                "the recording shows no value of {expression} up to event {}{although}{}",
                here.seq,
                saw_none.unwrap_or_default()
            );
            let watched = format!("record with --watch '{expression}'");
            let options = [
                Some(watched).filter(|_| !was_watched),
                self.second_run(expression, here),
            ];
            let options: Vec<String> = options.into_iter().flatten().collect();
            let is_any = !options.is_empty() && !is_logged_later;
            reply.end(why, is_any.then(|| options.join(", or ")));
            return Ok(());
        };
        if let Some(again) = &last.again {
            let text = format!("the same value was written once more{}", place(again));
            reply.step(again.seq, 0, "value", text);
        }
        let since = last.before.as_ref().map(|before| before.seq);
        let is_write = self.is_exact(after)?;
        let text = match since {
            _ if after.is_write => written(expression, after),
            _ if is_write => format!("{expression} was set to {} by the user", after.value),
            Some(since) => format!(
                "{expression} became {} between event {since} and event {}",
                after.value, after.seq
            ),
            None if is_stale => {
                format!("{expression} was {} when it was first seen", after.value)
            }
            None => format!("{expression} is {} since it was first seen", after.value),
        };
        reply.step(after.seq, 0, "value", text);
        let number = number(&after.value);
        let window = Window {
            tid: after.thread,
            since,
            until: after.seq,
        };
        let same = self.ended_between(reply, &window, number)?;
        self.open_then(reply, &window, number)?;
        if let Some(call) = same {
            let callers = self.callers(&call, 64)?;
            self.sources(reply, &call, &callers, 2, is_interrupted)?;
        }
        if !is_write {
            let between = since.map_or("before".to_owned(), |since| {
                format!("between event {since} and")
            });
            let seq = after.seq;
            let window = (since, seq);
            let saw_none = self.saw_no_write(expression, here, "no such write", window)?;
            let saw_none = saw_none.unwrap_or_default();
            let why = format!(
                "which statement wrote it {between} event {seq} was not recorded{saw_none}"
            );
            let rerun = match last.again {
                _ if is_logged_later => None,
                Some(_) => None,
                None => self.second_run(expression, here),
            };
            reply.end(why, rerun);
        }
        if is_stale {
            let seen = seen.max(after.seq);
            let was_watched = self.was_watched(expression);
            let recorded = match was_watched {
                true => ", where the watch recorded it last,",
                false => "",
            };
            let why = format!(
                "whether it changed between event {seen}{recorded} and {}",
                here.seq
            );
            let option = format!("record with --watch '{expression}'");
            reply.end(why, Some(option).filter(|_| !was_watched));
        }
        Ok(())
    }

    /// Reports the value. Returns whether it may have changed since it was seen.
    fn value_now(&self, reply: &mut WhyReply, last: &LastWriteReply, here: Position) -> bool {
        let name = &last.expression;
        let Some(now) = &last.now else { return true };
        let newest = last.again.as_ref().or(last.after.as_ref());
        let logged = newest.filter(|_| last.is_logged);
        let text = match (&now.value, now.stale_since, &now.unknown) {
            (_, _, Some(unknown)) => {
                let here = here.instant();
                format!("{name} is not known at event {here}: {unknown}")
            }
            (_, Some(event), None) => match logged {
                Some(write) => format!(
                    "no write to {name} is recorded between event {} and event {}",
                    write.seq, here.seq
                ),
                None if event >= here.seq => format!("{name} was seen at event {event}"),
                None => format!(
                    "{name} was seen at event {event}, and may have changed up to event {}",
                    here.seq
                ),
            },
            (Some(value), None, None) => format!("{name} is {value}"),
            (None, None, None) => return true,
        };
        reply.step(here.seq, 0, "value", text);
        (now.stale_since.is_some() && logged.is_none()) || now.unknown.is_some()
    }

    /// Reports calls that ended while the value changed, first those that returned it. Returns one that did.
    fn ended_between(
        &self,
        reply: &mut WhyReply,
        window: &Window,
        number: Option<u64>,
    ) -> Result<Option<CallHead>, Failure> {
        let Some(since) = window.since else {
            return Ok(None);
        };
        let ended = self.ended(window, since)?;
        let mut same = None;
        for call in &ended {
            let Some(result) = self.result(call)? else {
                continue;
            };
            if number == Some(result.bits) {
                let text = format!(
                    "same value: {}, which ended in between{}",
                    self.outcome(call)?,
                    self.place(call)
                );
                reply.step(call.start, 1, "same_value", text);
                same = Some(*call);
                break;
            }
        }
        let others = ended
            .iter()
            .filter(|call| Some(call.start) != same.map(|s| s.start));
        for call in others.clone().take(ENDED_TOLD) {
            let text = format!("ended in between: {}", self.outcome(call)?);
            reply.step(call.start, 1, "open", text);
        }
        let untold = others.skip(ENDED_TOLD).count();
        if untold > 0 {
            let at_least = if ended.len() == ENDED {
                "at least "
            } else {
                ""
            };
            let noun = if untold == 1 { "call" } else { "calls" };
            let text = format!(
                "ended in between: {at_least}{untold} more {noun}; in SQL: end_seq > {since} and end_seq <= {} and tid = {}",
                window.until, window.tid
            );
            reply.step(since, 1, "open", text);
        }
        Ok(same)
    }

    /// The outermost calls of a thread that ended between two events, the last one first.
    fn ended(&self, window: &Window, since: u64) -> Result<Vec<CallHead>, Failure> {
        let mut ended = Vec::new();
        let mut at = window.until;
        while ended.len() < ENDED && at > since {
            let last = self.timeline.last_of_thread(window.tid, at, since);
            let Some(last) = last
                .map_err(|e| of_replay(&e))?
                .filter(|last| *last > since)
            else {
                break;
            };
            let event = self.timeline.event(last).map_err(|e| of_replay(&e))?;
            let next = match event {
                replay::Event::Leave(call) => {
                    ended.push(call);
                    call.start
                }
                _ => last,
            };
            let Some(next) = next.checked_sub(1) else {
                break;
            };
            at = next;
        }
        Ok(ended)
    }

    /// Reports the calls that were open when the value was first seen, and which of their arguments are equal to it.
    fn open_then(
        &self,
        reply: &mut WhyReply,
        window: &Window,
        number: Option<u64>,
    ) -> Result<(), Failure> {
        let open = self
            .timeline
            .calls_around(window.tid, window.until, OPEN + 1);
        let open = open.map_err(|e| of_replay(&e))?;
        let is_cut = open.len() > OPEN;
        for (depth, call) in open.iter().take(OPEN).enumerate() {
            let text = format!("open then: {}{}", self.call_text(call)?, self.place(call));
            let depth = depth as u32 + 1;
            reply.step(call.start, depth, "open", text);
            let words = self.arguments(call)?;
            let same = words.iter().find(|word| number == Some(word.bits));
            if let Some(word) = same {
                let name = self.timeline.short_name(call);
                let text = format!("same value as its argument {} of {name}", word.name);
                reply.step(call.start, depth + 1, "same_value", text);
            }
        }
        if is_cut {
            let text = format!(
                "open then: more calls around these (backtrace at {})",
                window.until
            );
            reply.step(window.until, OPEN as u32 + 1, "open", text);
        }
        if open.is_empty() {
            reply.end("no recorded call of that thread was open then", None);
        }
        Ok(())
    }
}

/// Describes the line that wrote a value, if the write itself is recorded.
fn written(expression: &str, write: &Change) -> String {
    let became = write.became(expression);
    let gap = write.not_recorded.as_ref();
    let gap = gap.map(|gap| format!(", not recorded: {gap}"));
    format!("{became}{}{}", place(write), gap.unwrap_or_default())
}

/// Describes the line of a write.
fn place(write: &Change) -> String {
    let function = write.function.as_ref().map(|name| format!(", by {name}"));
    let line = match (&write.file, write.line) {
        (Some(file), Some(line)) => Some(format!(" at {file}:{line}")),
        _ => None,
    };
    [function, line].map(Option::unwrap_or_default).concat()
}

/// Two events of a thread.
struct Window {
    tid: u32,
    since: Option<u64>,
    until: u64,
}

/// Parses the number at the beginning of a value, unless it is too common to mean anything.
pub(super) fn number(text: &str) -> Option<u64> {
    let word = text.split_whitespace().next()?;
    let number = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => match word.parse::<u64>() {
            Ok(number) => number,
            Err(_) => word.parse::<i64>().ok()? as u64,
        },
    };
    (number > 1).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_begin_values() {
        for (text, expected) in [
            ("42", Some(42)),
            ("-7", Some(-7i64 as u64)),
            ("0x7ffe10 \"abc\"", Some(0x7f_fe10)),
            ("0", None),
            ("1", None),
            ("{x = 1}", None),
            ("", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }
}

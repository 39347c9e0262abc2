//! Who wrote a value, in a recording of every instruction: the write itself is found, in any function or by the kernel.

use std::ops::Range;

use debuginfo::scope::variables_of;
use debuginfo::{Frame, Machine, short_name};
use replay::history::HistoryScope;
use replay::{CallHead, Instant, Tracked, Wrote, returns_to};

use super::history::{SHARED_BYTES, changed_part};
use super::moves::unrecorded;
use super::{Change, Later, Looked, Past, Position, of_replay};
use crate::inspect::{self, Manner, MemoryPlace};
use crate::protocol::{Code, Failure};
use crate::quantity::grouped;
use crate::verbs::{HistoryReply, LastWriteReply};

/// Most frames that are searched for a variable.
pub(super) const MOST_FRAMES: usize = 256;
/// Most writes that are counted, and most that are described at once.
const MOST_COUNTED: usize = 100_000;
const MOST_SHOWN: usize = 1000;
/// Most writes to the bytes around a bit field that are searched for one that changes it.
const MOST_AROUND: usize = 10_000;

/// Ends the name of a stretch that is a call whose end is not known.
const UP_TO_HERE: &str = ", up to here";

impl Past {
    /// Finds the last instruction before a moment that wrote a value.
    pub(super) fn last_instruction_to_write(
        &self,
        expression: &str,
        manner: Manner,
        here: Position,
    ) -> Result<LastWriteReply, Failure> {
        let (place, owner, now, bytes) = self.look_at(here, MOST_FRAMES, |looked| {
            let view = looked.view();
            let place = inspect::evaluate_place_around(&view, expression);
            let place = place.map_err(|failure| self.nowhere(expression, here, failure))?;
            let owner = frame_of(looked, place.address);
            let bytes = text(looked, &place);
            let now = inspect::evaluate(&view, expression, manner, None)?;
            Ok((place, owner, now, bytes))
        })?;
        let ((begun, until), stretch) = self.span_of(here, owner.as_ref())?;
        let found = self.last_to_change(&place, here.instant())?;
        // What wrote the memory of a call's own variable before the call was no write to the variable. The caller passes what lies further
        // up.
        let call = begun.filter(|_| owner.is_some_and(|owner| place.address < owner.cfa));
        let begun = call.unwrap_or(Instant::at(0));
        let found = found.filter(|(wrote, _)| wrote.before >= begun);
        let (wrote, after) = found.unzip();
        let since = wrote.map_or(begun, |wrote| wrote.after);
        let gaps = self.timeline.not_recorded(since, here.instant());
        let gaps = gaps.map_err(|error| of_replay(&error))?;
        // Behind all that was recorded, nothing is known of the memory.
        let is_unrecorded = gaps.iter().any(|gap| gap.nanoseconds.is_none());
        let is_remapped = after.as_ref().is_some_and(|after| {
            after.not_recorded.is_none() && bytes.as_ref() != Some(&after.value)
        });
        let later = match place.bits {
            None => self.instructions_that_write_later(here, &place, until, MOST_COUNTED)?,
            Some(_) => {
                let last = self.last_to_change(&place, until)?;
                let last = last.filter(|(wrote, _)| wrote.before >= here.instant());
                last.map(|(_, last)| Later {
                    up_to: here.seq,
                    steps: here.steps,
                    count: None,
                    last,
                })
            }
        };
        if after.is_none() && place.bits.is_some() {
            self.refuse_unless_untouched(expression, &place, (begun, here), later.as_ref())?;
        }
        Ok(LastWriteReply {
            expression: expression.to_owned(),
            before: None,
            later,
            is_remapped: is_remapped && gaps.is_empty(),
            is_unmapped: bytes.is_none() && !is_unrecorded,
            after,
            now: Some(now.shown),
            again: None,
            is_logged: false,
            seen_at: None,
            place: None,
            is_exact: true,
            since: self.told_since(call.is_some(), &stretch)?,
            not_recorded: gaps.iter().map(unrecorded).collect(),
            hint: None,
        })
    }

    /// Returns what began where a stretch does, if it is not the program.
    fn told_since(&self, is_of_call: bool, stretch: &str) -> Result<Option<String>, Failure> {
        if is_of_call {
            let call = stretch.strip_suffix(UP_TO_HERE).unwrap_or(stretch);
            return Ok(Some(call.to_owned()));
        }
        let begins_later = self
            .timeline
            .begins_later()
            .map_err(|error| of_replay(&error))?;
        Ok(begins_later.then(|| "recording".to_owned()))
    }

    /// Finds the last write to a place before a moment. Of a bit field, one that changed it: other fields share its bytes.
    fn last_to_change(
        &self,
        place: &MemoryPlace,
        until: Instant,
    ) -> Result<Option<(Wrote, Change)>, Failure> {
        let (address, len) = own_bytes(place);
        let mut until = until;
        for _ in 0..MOST_AROUND {
            let wrote = self
                .timeline
                .last_write_before(until, address, len)
                .map_err(|error| of_replay(&error))?;
            let Some(wrote) = wrote else { return Ok(None) };
            let change = self.written(place, &wrote)?;
            if changes(place, &change) {
                return Ok(Some((wrote, change)));
            }
            until = wrote.before;
        }
        Err(Failure::new(
            Code::EvalFailed,
            format!(
                "the last {MOST_AROUND} writes to the bytes of this bit field changed others in them"
            ),
        ))
    }

    /// Refuses to say that nothing has written a bit field whose bytes were written: one of those writes may have been to it.
    fn refuse_unless_untouched(
        &self,
        expression: &str,
        place: &MemoryPlace,
        (since, here): (Instant, Position),
        later: Option<&Later>,
    ) -> Result<(), Failure> {
        let (address, len) = own_bytes(place);
        let wrote = self
            .timeline
            .last_write_before(here.instant(), address, len)
            .map_err(|error| of_replay(&error))?;
        if wrote.is_none_or(|wrote| wrote.before < since) {
            return Ok(());
        }
        let message = format!(
            "no write has changed {expression} up to here; whether one left it as it was is not known: {SHARED_BYTES}"
        );
        let hint = match later {
            Some(later) => later.text(expression),
            None => "ask for the structure around it: its history has all writes to these bytes"
                .to_owned(),
        };
        Err(Failure::new(Code::NoEvent, message).hint(hint))
    }

    /// Finds the instructions that wrote a value: for a variable on the stack, since its function began; for any other
    /// one, in the whole run.
    pub(super) fn instructions_that_wrote(
        &self,
        expression: &str,
        wanted: &Range<usize>,
    ) -> Result<HistoryReply, Failure> {
        let here = self.position();
        let (place, frame) = self.look_at(here, MOST_FRAMES, |looked| {
            let place = inspect::evaluate_place_around(&looked.view(), expression);
            let place = place.map_err(|failure| self.nowhere(expression, here, failure))?;
            let frame = frame_of(looked, place.address);
            Ok((place, frame))
        })?;
        let timeline = &self.timeline;
        let ((begun, until), searched) = self.span_of(here, frame.as_ref())?;
        let span = (begun.unwrap_or(Instant::at(0)), until);
        let found = timeline.writes_between(span, own_bytes(&place), MOST_COUNTED);
        let found = found.map_err(|error| of_replay(&error))?;
        let written = |at: &u64| {
            let wrote = timeline.wrote(*at).map_err(|error| of_replay(&error))?;
            self.written(&place, &wrote)
        };
        let searched = self.searched(searched, &place, &found);
        let (found, described) = match place.bits {
            None => (found, None),
            Some(_) => {
                let mut changed = Vec::new();
                for at in found.iter().take(MOST_AROUND) {
                    let change = written(at)?;
                    if changes(&place, &change) {
                        changed.push((*at, change));
                    }
                }
                let (found, described): (Vec<u64>, Vec<Change>) = changed.into_iter().unzip();
                (found, Some(described))
            }
        };
        let end = wanted.end.min(wanted.start.saturating_add(MOST_SHOWN));
        let shown = wanted.start.min(found.len())..end.min(found.len());
        let changes: Vec<Change> = match described {
            Some(mut described) => described.drain(shown).collect(),
            None => found[shown].iter().map(written).collect::<Result<_, _>>()?,
        };
        Ok(HistoryReply {
            expression: expression.to_owned(),
            changes,
            known_at: found.len(),
            left_out: found.len().saturating_sub(end),
            searched: Some(searched),
            place: None,
            hint: None,
        })
    }

    /// Says in which stretch these writes to a place are all, and of a bit field that they are its changes.
    fn searched(&self, stretch: String, place: &MemoryPlace, found: &[u64]) -> String {
        let most = match place.bits {
            Some(_) => MOST_AROUND,
            None => MOST_COUNTED,
        };
        let searched = match found.get(most - 1) {
            Some(last) => format!(
                "{stretch}, up to event {} (the first {} to its bytes)",
                self.moment_text(*last),
                grouped(most as u64)
            ),
            None => stretch,
        };
        match place.bits {
            Some(_) => format!("{searched} (changes only: {SHARED_BYTES})"),
            None => searched,
        }
    }

    /// Returns the stretch in which a value is what it is here, and how to say that: the call in whose frame it lies, or all that was
    /// recorded.
    fn span_of(
        &self,
        here: Position,
        frame: Option<&Owner>,
    ) -> Result<((Option<Instant>, Instant), String), Failure> {
        let timeline = &self.timeline;
        let whole = (Some(Instant::at(0)), Instant::at(timeline.last()));
        let Some(frame) = frame else {
            let begins_later = timeline.begins_later().map_err(|error| of_replay(&error))?;
            let ends_earlier = timeline.ends_earlier().map_err(|error| of_replay(&error))?;
            let searched = match begins_later || ends_earlier {
                true => "what was recorded",
                false => "the whole run",
            };
            return Ok((whole, searched.to_owned()));
        };
        let function = frame.function.as_deref().map(short_name);
        let function = function.as_deref().unwrap_or("its function");
        if let Some(call) = self.call_of(here, frame)? {
            let end = call.end.unwrap_or(timeline.last());
            let span = (Some(Instant::at(call.start)), Instant::at(end));
            return Ok((span, format!("this call of {function}")));
        }
        let begun = timeline.entered(here.instant(), here.tid, (frame.entry, frame.cfa));
        let begun = begun.map_err(|error| of_replay(&error))?;
        // A call that began before recording did, or in a gap, has no beginning here: some of what is found may be from before it.
        let stretch = match begun {
            Some(_) => format!("this call of {function}{UP_TO_HERE}"),
            None => format!(
                "what was recorded{UP_TO_HERE} (when this call of {function} began is not known)"
            ),
        };
        Ok(((begun, here.instant()), stretch))
    }

    /// Returns the recorded call with this frame.
    pub(super) fn call_of(
        &self,
        here: Position,
        frame: &Owner,
    ) -> Result<Option<CallHead>, Failure> {
        let slot = frame.cfa.wrapping_sub(8);
        let mut call = self.timeline.innermost(here.tid, here.seq);
        while let Some(found) = call.map_err(|error| of_replay(&error))? {
            if found.slot >= slot {
                return Ok(Some(found).filter(|found| found.slot == slot));
            }
            call = self.timeline.parent(&found);
        }
        Ok(None)
    }

    /// Says what to do about a value that has no place in memory here.
    fn nowhere(&self, expression: &str, here: Position, failure: Failure) -> Failure {
        match self.last_call_with(expression, here) {
            Some(seq)
                if failure.code == Code::EvalFailed && self.is_in_registers(expression, here) =>
            {
                let name = expr::path_of(expression).map_or_else(
                    || expression.to_owned(),
                    |path| expr::without_path(expression, path),
                );
                Failure { hint: None, ..failure }.hint(format!(
                    "it is not always in memory, so see it line by line: goto {seq}, and at each next: print {name}"
                ))
            }
            Some(seq) if failure.code == Code::EvalFailed => {
                Failure { hint: None, ..failure }.hint(format!(
                    "go to the end of its last call up to here: goto {seq}, finish, step-back; then ask again"
                ))
            }
            _ => in_a_register(expression, failure),
        }
    }

    /// Returns whether the compiler keeps the variable of a function that an expression begins with in a register, or nowhere, at times.
    fn is_in_registers(&self, expression: &str, here: Position) -> bool {
        let tracked = self.tracked_at(expression, here).ok();
        let Some(HistoryScope::Within(functions)) = tracked.as_ref().map(Tracked::scope) else {
            return false;
        };
        let names = expr::path_of(expression).map(|path| expr::without_path(expression, path));
        let inside = names.unwrap_or_else(|| expression.to_owned());
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut words = inside
            .split(|c: char| !is_word(c))
            .filter(|word| !word.is_empty());
        let Some(name) = words.next() else {
            return false;
        };
        let space = self.timeline.modules().space(here.seq);
        functions.ids.iter().any(|id| {
            let entry = self.timeline.entry_of(*id, here.seq);
            let variables = entry.map(|entry| variables_of(&space, entry));
            let mut variables = variables.into_iter().flatten();
            variables.any(|one| one.name == name && one.why_unsettled().is_some())
        })
    }

    /// Returns where the last call up to here began of the function whose variable an expression names, if none is open here.
    fn last_call_with(&self, expression: &str, here: Position) -> Option<u64> {
        let tracked = self.tracked_at(expression, here).ok()?;
        let HistoryScope::Within(functions) = tracked.scope() else {
            return None;
        };
        // Calls of the functions around it say nothing of when it runs.
        if functions.is_inlined {
            return None;
        }
        let is_open = self.look_at(here, MOST_FRAMES, |looked| {
            let mut frames = looked.moment.trace.backtrace.frames.iter();
            Ok(frames.any(|frame| frame.function.as_deref() == Some(&functions.name)))
        });
        if is_open.unwrap_or(true) {
            return None;
        }
        let entered = functions.ids.iter().flat_map(|id| {
            let entries = self.timeline.entries(*id, usize::MAX);
            entries.unwrap_or_default()
        });
        entered
            .map(|(seq, _)| seq)
            .filter(|seq| *seq <= here.seq)
            .max()
    }

    /// Returns the value at a place at a moment of a thread; `None` if there is no memory.
    pub(super) fn value_at(
        &self,
        place: &MemoryPlace,
        moment: Instant,
        tid: u32,
    ) -> Result<Option<String>, Failure> {
        let at = Position {
            steps: moment.steps,
            ..Position::of_event(moment.seq, tid)
        };
        self.look_at(at, 1, |looked| Ok(text(looked, place)))
    }

    /// Describes a write: the value before and after it, and who made it.
    pub(super) fn written(&self, place: &MemoryPlace, wrote: &Wrote) -> Result<Change, Failure> {
        let at = |moment: Instant| Position {
            steps: moment.steps,
            ..Position::of_event(moment.seq, wrote.tid)
        };
        let (before, old, stand, pc) = self.look_at(at(wrote.before), 1, |looked| {
            let frame = looked.moment.trace.backtrace.frames.first();
            let pc = frame.map(|frame| crate::session::hex(frame.pc));
            let before = bytes(looked, place);
            let old = before.as_deref().map(|bytes| shown(looked, place, bytes));
            Ok((before, old, looked.place(), pc))
        })?;
        let (after, new) = self.look_at(at(wrote.after), 1, |looked| {
            let after = bytes(looked, place);
            let new = after.as_deref().map(|bytes| shown(looked, place, bytes));
            Ok((after, new))
        })?;
        let unshown = before
            .zip(after)
            .filter(|_| old == new && place.bits.is_none())
            .and_then(|(before, after)| changed_part(&before, &after));
        let gaps = self.timeline.not_recorded(wrote.before, wrote.after);
        let gaps = gaps.map_err(|error| of_replay(&error))?;
        // Which thread and which instruction it was is not known in a gap.
        let is_known = gaps.is_empty();
        Ok(Change {
            seq: wrote.before.seq,
            steps: wrote.before.steps,
            thread: wrote.tid,
            old,
            value: new.unwrap_or_else(|| NO_MEMORY.to_owned()),
            shortened: false,
            function: stand.function.filter(|_| is_known),
            file: stand.file.filter(|_| is_known),
            line: stand.line.filter(|_| is_known),
            is_write: true,
            pc: pc.filter(|_| is_known),
            via: None,
            shared: false,
            not_recorded: gaps.first().map(unrecorded),
            unshown,
            of_call: None,
            only_changes: place.bits.is_some(),
        })
    }
}

/// Stands for a value where the program has no readable memory.
pub(super) const NO_MEMORY: &str = "(no memory)";

/// The value at a place as it is at a moment.
fn text(looked: &Looked<'_>, place: &MemoryPlace) -> Option<String> {
    bytes(looked, place).map(|bytes| shown(looked, place, &bytes))
}

fn shown(looked: &Looked<'_>, place: &MemoryPlace, bytes: &[u8]) -> String {
    inspect::place_text(&looked.view(), place, bytes)
}

fn bytes(looked: &Looked<'_>, place: &MemoryPlace) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(place.len).ok()?];
    looked.machine.memory(place.address, &mut bytes).ok()?;
    Some(bytes)
}

/// Returns the bytes in which a value lies, and how many: of a bit field, those with bits of it.
fn own_bytes(place: &MemoryPlace) -> (u64, u64) {
    let before = place.bits.map_or(0, |bits| bits.offset / 8);
    (
        place.address.saturating_add(before),
        place.len.saturating_sub(before),
    )
}

/// Returns whether a write to a place is one of its value: a bit field shares its bytes with others.
fn changes(place: &MemoryPlace, write: &Change) -> bool {
    place.bits.is_none() || write.not_recorded.is_some() || write.old.as_ref() != Some(&write.value)
}

/// A frame in which an address lies.
pub(super) struct Owner {
    pub function: Option<String>,
    pub entry: u64,
    /// The stack pointer once the function has returned.
    pub cfa: u64,
    /// Where the function returns to.
    pub back: Option<u64>,
}

impl Owner {
    /// Describes the frame of a function; `None` for one that is inlined.
    pub(super) fn of(frames: &[Frame], index: usize) -> Option<Owner> {
        let frame = frames.get(index).filter(|frame| !frame.inlined)?;
        Some(Owner {
            function: frame.function.clone(),
            entry: frame.function_entry?,
            cfa: frame.cfa?,
            back: returns_to(frames, index),
        })
    }
}

/// The function to whose frame an address belongs.
pub(super) fn frame_of(looked: &Looked<'_>, address: u64) -> Option<Owner> {
    let index = inspect::frame_with(&looked.view(), address)?;
    Owner::of(&looked.moment.trace.backtrace.frames, index)
}

pub(super) fn in_a_register(expression: &str, failure: Failure) -> Failure {
    match failure.code {
        // A name that is unknown is in no register.
        Code::EvalFailed if failure.hint.is_none() && failure.expression.is_none() => failure.hint(
            format!("writes to memory are found; name what {expression} was computed from"),
        ),
        _ => failure,
    }
}

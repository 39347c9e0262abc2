//! Which options of a second run would log the writes to a value.

use debuginfo::Register;
use recorder::live::MAX_LOGGED_LEN;
use store::shell::{quoted, word};

use super::super::{Past, Position, frames_for, of_replay};
use crate::inspect;
use crate::protocol::Failure;

/// The assumed maximum size of a thread's stack, in bytes from its innermost frame on.
const STACK: u64 = 8 << 20;
/// Bytes below the stack pointer that a function may use.
const RED_ZONE: u64 = 128;

impl Past {
    /// Returns the command of a second run that logs the writes to an expression's memory; `None` if no memory of it means the same
    /// in another run. If this run has logged them already, only every instruction tells more.
    pub(super) fn second_run(&self, expression: &str, here: Position) -> Option<String> {
        if self.timeline.is_core() {
            return self.recorded_instead(expression, here);
        }
        let name = self.path().to_string_lossy().into_owned();
        let again = format!("hindsight rerun {} --log-writes", word(&name));
        match self.loggable(expression, here) {
            None => self.again_in_full(expression),
            Some(place) if self.was_logged(&place) => self.again_in_full(expression),
            Some(place) if !is_address(&place) => Some(format!("{again} {}", quoted(&place))),
            Some(place) => Some(
                match self.timeline.recording().manifest().settings.no_aslr {
                    true => format!("{again} {place}"),
                    false => {
                        "record with --no-aslr, and ask again there: --log-writes takes the address"
                            .to_owned()
                    }
                },
            ),
        }
    }

    /// Says that the writes to an expression's memory were logged and none was seen after event `since` and up to event `until`, or
    /// which was the last one; `None` if they were not logged.
    pub(super) fn saw_no_write(
        &self,
        expression: &str,
        here: Position,
        none: &str,
        (since, until): (Option<u64>, u64),
    ) -> Result<Option<String>, Failure> {
        let place = self.loggable(expression, here);
        let Some(place) = place.filter(|place| self.was_logged(place)) else {
            return Ok(None);
        };
        let last = self.last_logged_up_to(expression, here, until)?;
        let last = last.filter(|last| since.is_none_or(|since| *last > since));
        Ok(Some(match last {
            Some(last) => format!("; the last logged write to {place} up to then is event {last}"),
            None => format!(
                "; the writes to {place} were logged, and there was {none} by the program itself"
            ),
        }))
    }

    /// Returns the last logged write up to event `until` to the bytes at which an expression lies here, whatever led to them then.
    /// Those to a variable of each call are found by its name: its bytes were another variable's before.
    fn last_logged_up_to(
        &self,
        expression: &str,
        here: Position,
        until: u64,
    ) -> Result<Option<u64>, Failure> {
        if self.in_each_call(expression, here).is_some() {
            return Ok(None);
        }
        let place = self.look_at(here, frames_for(expression), |looked| {
            inspect::evaluate_place(&looked.view(), expression)
        })?;
        let range = place.address..place.address.saturating_add(place.len);
        let last = self.timeline.last_logged_to(&range, until);
        let last = last.map_err(|error| of_replay(&error))?;
        Ok(last.map(|write| write.seq))
    }

    /// What `--log-writes` would be given for an expression: its name, its name in each call, or its address.
    fn loggable(&self, expression: &str, here: Position) -> Option<String> {
        if self.is_in_module(expression, here) {
            return Some(expression.to_owned());
        }
        if let Some(name) = self.in_each_call(expression, here) {
            return Some(name);
        }
        let place = self.look_at(here, frames_for(expression), |looked| {
            let view = looked.view();
            let place = inspect::evaluate_place(&view, expression)?;
            let stack = view.machine.register(Register::RSP);
            Ok((place, stack.ok().map(|(stack, _)| stack)))
        });
        let (place, stack) = place.ok()?;
        let is_on_stack = stack.is_some_and(|stack| {
            let from = stack.saturating_sub(RED_ZONE);
            (from..stack.saturating_add(STACK)).contains(&place.address)
        });
        let has_room = (1..=MAX_LOGGED_LEN).contains(&place.len);
        (has_room && !is_on_stack).then(|| format!("{:#x}:{}", place.address, place.len))
    }

    /// A core file shows one moment, and its program cannot be run again from it: the program must be recorded.
    fn recorded_instead(&self, expression: &str, here: Position) -> Option<String> {
        let program = self.timeline.recording().manifest().argv.first()?;
        self.is_in_module(expression, here).then(|| {
            let expression = quoted(expression);
            format!("a recording, a core file being one moment: hindsight record --log-writes {expression} {program}")
        })
    }

    /// Whether an expression over global variables names memory of a module, and watchpoints have room for it.
    fn is_in_module(&self, expression: &str, here: Position) -> bool {
        let place = self.global_place(expression, here);
        place.is_some_and(|place| {
            let has_room = (1..=MAX_LOGGED_LEN).contains(&place.len);
            has_room && self.timeline.modules().covers(place.address, here.seq)
        })
    }
}

/// Whether a place is written as an address.
fn is_address(place: &str) -> bool {
    place.starts_with("0x")
}

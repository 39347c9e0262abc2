//! Which options of a second run would log the writes to a value.

use debuginfo::Register;
use recorder::live::MAX_LOGGED_LEN;
use store::shell::{quoted, word};

use super::super::{Past, Position, frames_for};
use crate::inspect;

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

    /// Says that the writes to an expression's memory were logged and none was seen; `None` if they were not logged.
    pub(super) fn saw_no_write(
        &self,
        expression: &str,
        here: Position,
        none: &str,
    ) -> Option<String> {
        let place = self.loggable(expression, here)?;
        self.was_logged(&place).then(|| {
            format!(
                "; the writes to {place} were logged, and there was {none} by the program itself"
            )
        })
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

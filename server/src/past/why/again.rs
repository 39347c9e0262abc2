//! Which options of a second run would log the writes to a value.

use debuginfo::Register;
use recorder::live::MAX_LOGGED_LEN;
use store::shell::{quoted, word};

use super::super::{Past, Position};
use crate::inspect;

/// The assumed maximum size of a thread's stack, in bytes from its innermost frame on.
const STACK: u64 = 8 << 20;
/// Bytes below the stack pointer that a function may use.
const RED_ZONE: u64 = 128;

impl Past {
    /// Returns the command of a second run that logs the writes to an expression's memory; `None` if no memory of it means the same
    /// in another run.
    pub(super) fn second_run(&self, expression: &str, here: Position) -> Option<String> {
        if self.timeline.is_core() {
            return self.recorded_instead(expression, here);
        }
        let name = self.path().to_string_lossy().into_owned();
        let again = format!("hindsight rerun {} --log-writes", word(&name));
        if self.is_in_module(expression, here) {
            return Some(format!("{again} {}", quoted(expression)));
        }
        if let Some(name) = self.in_each_call(expression, here) {
            return Some(format!("{again} {}", quoted(&name)));
        }
        let place = self.look_at(here, 1, |looked| {
            let view = looked.view();
            let place = inspect::evaluate_place(&view, expression)?;
            let stack = view.machine.register(Register::RSP);
            Ok((place, stack.ok().map(|(stack, _)| stack)))
        });
        let Ok((place, stack)) = place else {
            return self.again_in_full(expression);
        };
        let is_on_stack = stack.is_some_and(|stack| {
            let from = stack.saturating_sub(RED_ZONE);
            (from..stack.saturating_add(STACK)).contains(&place.address)
        });
        if is_on_stack || place.len == 0 || place.len > MAX_LOGGED_LEN {
            return self.again_in_full(expression);
        }
        Some(
            match self.timeline.recording().manifest().settings.no_aslr {
                true => format!("{again} {:#x}:{}", place.address, place.len),
                false => {
                    "record with --no-aslr, and ask again there: --log-writes takes the address"
                        .to_owned()
                }
            },
        )
    }

    /// A core file shows one moment, and its program cannot be run again from it: the program must be recorded.
    fn recorded_instead(&self, expression: &str, here: Position) -> Option<String> {
        let program = self.timeline.recording().manifest().argv.first()?;
        self.is_in_module(expression, here).then(|| {
            let expression = quoted(expression);
            format!("a recording, a core file being one moment: hindsight record --log-writes {expression} {program}")
        })
    }

    /// Whether an expression over global variables names memory of a module.
    fn is_in_module(&self, expression: &str, here: Position) -> bool {
        let place = self.global_place(expression, here);
        place.is_some_and(|place| self.timeline.modules().covers(place.address, here.seq))
    }
}

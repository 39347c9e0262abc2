//! Decides what to capture with every call, and tells the runtime in the program.

pub(crate) mod parameters;
pub(crate) mod pointees;
pub mod texts;
pub mod watch;

use agent::shared::{CAPTURE_POINTEES, CAPTURE_REGISTERS, CAPTURE_TEXTS, Shared};

use crate::options::Captures;

/// Tells the runtime what to capture. Must run before the program first calls it.
pub(crate) fn announce(captures: &Captures, shared: &Shared) {
    let registers = if captures.registers {
        CAPTURE_REGISTERS
    } else {
        0
    };
    let texts = if captures.texts { CAPTURE_TEXTS } else { 0 };
    let pointees = if captures.pointees {
        CAPTURE_POINTEES
    } else {
        0
    };
    shared.set_capture(registers | texts | pointees, captures.stack_len);
}

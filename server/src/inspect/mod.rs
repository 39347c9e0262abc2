//! Answers about one stopped moment: frames, lines, code, memory, registers, variables and values.
//!
//! This module knows no process. It takes only the modules, a [`Machine`] and frames, so that it treats a recorded
//! moment like a live one.

mod code;
mod conditions;
mod declaration;
mod declared;
mod function_types;
mod functions;
mod memory;
mod named_types;
mod near_names;
mod owner;
mod place;
mod registers;
mod returned;
mod source;
mod stack;
mod values;

use std::sync::Arc;

use debuginfo::{AddressSpace, Frame, FrameMachine, Machine};
use expr::Kept;

pub use code::{CodeReport, InstructionReport, disassemble, disassemble_around};
pub use conditions::{DisplayedAs, condition, display_parts, displayable, message};
pub use debuginfo::short_name;
pub use declaration::declaration;
pub(crate) use declared::type_of_kind;
pub use functions::nearest_functions;
pub use memory::{MemoryReport, hex_bytes, memory};
pub use named_types::type_of;
pub use owner::frame_with;
pub use place::{
    MemoryPlace, certain_address, dated_address, evaluate_address, evaluate_place,
    evaluate_place_around, place_of, refuse_constant,
};
pub use registers::{GENERAL as GENERAL_REGISTERS, RegisterValue, registers};
pub use returned::ReturnedReport;
pub(crate) use source::of_line_error;
pub use source::{SourceReport, function_source, line_here, line_source, source_line};
pub use stack::{FrameReport, StackReport, function_name, short_function, stack};
pub use store::signals::{signal_by_name, signal_name};
pub(crate) use values::context;
pub use values::{
    Change, Extent, FrameVariables, Manner, Shown, ValueFormat, ValueReport, VariableReport,
    arguments, as_assignment, assign, bytes_as, bytes_text, evaluate, evaluate_and_keep,
    is_meaningless, keep, kept_name, of_other_files, own_variables, parameter_at_entry, place_text,
    value_of, variables,
};

use crate::protocol::{Code, Failure};

/// A moment and its selected frame.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The modules.
    pub space: &'a AddressSpace,
    /// The registers of the innermost frame, and memory.
    pub machine: &'a dyn Machine,
    /// The frames, innermost first; empty while the program runs.
    pub frames: &'a [Frame],
    /// The index of the selected frame.
    pub frame: usize,
    /// What only a recorded moment can say; `None` for a live one.
    pub recorded: Option<&'a dyn RecordedMoment>,
    /// What lines without a file are lines of once the program has ended; `None` for any other moment.
    pub ended: Option<&'a Ended>,
    /// The values that the session keeps.
    pub kept: &'a Kept,
}

/// A program that has ended: there is no frame, but its code can be asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The file whose lines were shown last, if any.
    pub last_listed: Option<String>,
}

/// What only a recorded moment can say.
pub trait RecordedMoment {
    /// Says why there is no frame.
    fn no_frame(&self) -> Failure;

    /// Says why the selected frame's module is not available, if it is not.
    fn absent_module(&self) -> Option<String>;

    /// Returns the modules of the end of the recording.
    fn later_space(&self) -> Arc<AddressSpace>;

    /// Runs `work` on the call that the thread has just left, if any.
    ///
    /// # Errors
    /// The recording cannot be read.
    fn in_left_call(&self, work: &mut dyn FnMut(&View<'_>)) -> Result<(), Failure>;

    /// Runs `work` at the entry of the call that made a frame, if its event is recorded.
    ///
    /// # Errors
    /// The recording cannot be read.
    fn at_entry(&self, frame: usize, work: &mut dyn FnMut(&View<'_>)) -> Result<(), Failure>;
}

impl<'a> View<'a> {
    /// Returns the selected frame.
    ///
    /// # Errors
    /// [`Code::NotStopped`] or [`Code::NoFrame`]: there are no frames.
    pub fn frame(&self) -> Result<&'a Frame, Failure> {
        self.frames
            .get(self.frame)
            .ok_or_else(|| match self.recorded {
                Some(recorded) => recorded.no_frame(),
                None => Failure::new(Code::NotStopped, "the program is running: it has no frame")
                    .hint("stop it with: hindsight pause"),
            })
    }

    /// Returns the registers as the frame sees them, and memory.
    ///
    /// # Errors
    /// [`Code::NotStopped`]: there is no frame.
    pub fn frame_machine(&self) -> Result<FrameMachine<'a>, Failure> {
        self.frame()?;
        Ok(FrameMachine::of(self.machine, self.frames, self.frame))
    }

    /// Returns the same moment as one without frames, in which only global names have a meaning.
    #[must_use]
    pub fn without_frames(self) -> View<'a> {
        View {
            frames: &[],
            frame: 0,
            ..self
        }
    }

    /// Returns the same moment with another frame selected.
    #[must_use]
    pub fn at_frame(self, frame: usize) -> View<'a> {
        View { frame, ..self }
    }
}

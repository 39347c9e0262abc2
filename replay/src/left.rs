//! The call that a thread has just returned from: its parameters as they were passed, and memory as it is at the
//! return.
//!
//! The call's frame is gone: variables and parameters on the stack are unknown. Which of the function's instructions was the last is
//! not recorded, so variables in registers, and those that the compiler replaced by constants at times, are unknown too.

use debuginfo::{Ages, Certainty, EntryPlace, Frame, FrameRegisters, Machine, Register, Unknown};

use crate::error::Result;
use crate::event::Event;
use crate::machine::StateMachine;
use crate::moment::Moment;
use crate::state::State;

/// A thread that has returned, as its last call saw it.
struct LeftMachine<'s> {
    /// The start of the call.
    then: StateMachine<'s>,
    /// Its return.
    now: StateMachine<'s>,
}

impl Machine for LeftMachine<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> std::result::Result<Certainty, Unknown> {
        self.now.memory(address, bytes)
    }

    fn was_same(&self, address: u64, len: u64, event: u64) -> bool {
        self.now.was_same(address, len, event)
    }

    fn ages(&self) -> Ages {
        self.now.ages()
    }

    fn pin(&self, event: Option<u64>) -> bool {
        self.now.pin(event)
    }

    fn is_of_unknown_block(&self) -> bool {
        self.now.is_of_unknown_block()
    }

    fn is_before_frame(&self, event: u64) -> bool {
        self.then.is_before_frame(event)
    }

    fn has_returned(&self) -> bool {
        true
    }

    fn register(&self, register: Register) -> std::result::Result<(u64, Certainty), Unknown> {
        match register {
            Register::RSP | Register::RBP => Err(Unknown::because(
                "the call has returned, and its frame is gone",
            )),
            Register::FS_BASE | Register::GS_BASE => self.now.register(register),
            _ => self.then.register(register),
        }
    }

    fn vector(&self, register: Register) -> std::result::Result<([u8; 16], Certainty), Unknown> {
        self.then.vector(register)
    }

    fn vector_low(&self, register: Register) -> std::result::Result<([u8; 8], Certainty), Unknown> {
        self.then.vector_low(register)
    }

    fn entry_parameter(&self, name: &str) -> Option<EntryPlace> {
        self.then.entry_parameter(name)
    }

    fn calls_to_come(&self) -> usize {
        self.then.calls_to_come()
    }
}

impl Moment<'_> {
    /// Evaluates in the call that returned at this very event, given a machine and a frame; `None` if the event is
    /// no return.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn in_left_call<T>(
        &self,
        ask: impl FnOnce(&dyn Machine, &[Frame]) -> T,
    ) -> Result<Option<T>> {
        let state = &self.state;
        let Event::Leave(call) = state.event()? else {
            return Ok(None);
        };
        if call.tid != Some(state.tid) || !call.returned() {
            return Ok(None);
        }
        let then = State::new(state.timeline, call.start, state.tid)?;
        let machine = LeftMachine {
            then: StateMachine::new(&then, &self.space),
            now: StateMachine::new(state, &self.space),
        };
        let frame = Frame {
            pc_is_known: true,
            cfa: None,
            registers: FrameRegisters::innermost(&machine),
            ..then.frame_of(call)
        };
        Ok(Some(ask(&machine, &[frame])))
    }
}

//! What is kept of threads that pass logpoints, where captures were asked for: as with calls, registers and some of the stack.

use debuginfo::{Machine, Register};
use store::control::{ByteBuf, Passed};
use store::wire::CAPTURE_REGISTER_WORDS;

use crate::{
    Captures,
    live::{event_loop::Tracer, journal::read_stack, model::Tid, tracee::machine::RED_ZONE},
};

/// What is to be kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogpointCapture {
    registers: bool,
    /// Bytes from rsp on.
    stack_len: usize,
}

impl LogpointCapture {
    pub fn of(captures: &Captures) -> Self {
        Self {
            registers: captures.registers,
            stack_len: captures.stack_len as usize,
        }
    }

    /// Tells whether it is anything: only the tracer can read it.
    pub fn any(self) -> bool {
        self.registers || self.stack_len > 0
    }
}

impl Tracer {
    /// Looks at a thread that passes a logpoint, if anything is to be kept.
    pub fn passed(&self, tid: Tid) -> Option<Passed> {
        if !self.probes.capture.any() {
            return None;
        }
        let machine = self.machine(tid).ok()?;
        let register = |number: usize| Some(machine.register(Register(number as u16)).ok()?.0);
        let registers: Option<Vec<u64>> = (0..CAPTURE_REGISTER_WORDS).map(register).collect();
        // Below rsp functions that call no others keep their variables.
        let len = match self.probes.capture.stack_len {
            0 => 0,
            len => RED_ZONE as usize + len,
        };
        let general = &machine.registers.general;
        let (stack_addr, stack) = read_stack(&self.tracee.memory, general.rsp, len);
        Some(Passed {
            pc: general.rip,
            registers: registers
                .filter(|_| self.probes.capture.registers)
                .and_then(|registers| registers.try_into().ok()),
            stack_addr,
            stack: ByteBuf::from(stack),
        })
    }
}

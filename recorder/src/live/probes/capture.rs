//! Captures registers and part of the stack of threads that pass logpoints, as for calls, if enabled.

use debuginfo::{Machine, Register};
use store::control::{ByteBuf, Passed};
use store::wire::CAPTURE_REGISTER_WORDS;

use crate::{
    Captures,
    live::{
        journal::read_stack, model::Tid, probes::evaluate::Evaluator, tracee::machine::RED_ZONE,
    },
};

/// What to capture.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogpointCapture {
    registers: bool,
    /// Number of bytes from rsp on.
    stack_len: usize,
}

impl LogpointCapture {
    pub fn of(captures: &Captures) -> Self {
        Self {
            registers: captures.registers,
            stack_len: captures.stack_len as usize,
        }
    }

    /// Returns whether anything is to be captured. Only the tracer can capture it.
    pub fn any(self) -> bool {
        self.registers || self.stack_len > 0
    }
}

impl Evaluator<'_> {
    /// Captures the state of a thread that passes a logpoint, if enabled.
    pub fn passed(&self, tid: Tid) -> Option<Passed> {
        if !self.probes.capture.any() {
            return None;
        }
        let machine = self.tracee.machine(self.breakpoints, tid).ok()?;
        let register = |number: usize| Some(machine.register(Register(number as u16)).ok()?.0);
        let registers: Option<Vec<u64>> = (0..CAPTURE_REGISTER_WORDS).map(register).collect();
        // Below rsp leaf functions keep their variables.
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

//! A call that the processor refuses because its target is no address: the return address is below the stack all the same.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

use super::Replay;
use crate::error::Result;
use crate::log::Entry;
use crate::operands::State;
use crate::record::outside::is_no_address;

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

impl Replay {
    /// The entry may be what such a call has come to, before which the process stands.
    pub(super) fn refused_call(&mut self, entry: &Entry) -> Result<()> {
        let tid = match entry {
            Entry::Signal {
                tid,
                number: libc::SIGSEGV,
                call_done: false,
                ..
            }
            | Entry::Check { tid, .. } => *tid,
            _ => return Ok(()),
        };
        if tid != self.now.running {
            return Ok(());
        }
        let general = self.registers()?;
        let code = self.process.bytes(general.rip, LONGEST);
        let call = Decoder::with_ip(64, &code, general.rip, DecoderOptions::NONE).decode();
        if call.flow_control() != FlowControl::IndirectCall {
            return Ok(());
        }
        let stack = general.rsp.wrapping_sub(8);
        let state = State {
            general,
            extended: Vec::new(),
        };
        match self.target(&call, &state) {
            // Without a stack, that was the fault.
            Some(target) if is_no_address(target) && self.process.word(stack).is_ok() => {
                self.process.set_word(stack, call.next_ip())
            }
            _ => Ok(()),
        }
    }

    /// Where a call goes to, as far as that is known.
    fn target(&self, call: &Instruction, state: &State) -> Option<u64> {
        if call.op0_kind() == OpKind::Register {
            return state.value(call.op0_register(), 0, 0);
        }
        let address = call.virtual_address(0, 0, |register, element, size| {
            state.value(register, element, size)
        })?;
        self.process.word(address).ok()
    }
}

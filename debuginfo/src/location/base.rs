//! The frame bases that compilers state as a register: rbp or rsp, as they are once the prologue has run.
//!
//! Before that, and behind the end of the frame, the register holds something else. But it keeps one distance to the
//! canonical frame address while the function runs, which the unwind tables tell at every instruction.

use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

use super::FrameContext;
use crate::lines::prologue_of;
use crate::machine::{Register, Unknown};
use crate::model::Svma;
use crate::module::Module;
use crate::unwind::{frame_distance, tail_calls};

/// By how much the canonical frame address exceeds the register that the function around `svma` states as its frame base;
/// `None` if the unwind tables do not tell.
pub(super) fn distance(module: &Arc<Module>, svma: u64, register: Register) -> Option<i64> {
    if !matches!(register, Register::RBP | Register::RSP) {
        return None;
    }
    let entry = tail_calls::entry_of(module, svma)?;
    frame_distance(module, entry, register.0)
}

/// Instructions from the end of a function that may take a frame down.
const MAX_EPILOGUE: usize = 10;
/// Bytes of code that are looked at for them.
const EPILOGUE_BYTES: u64 = 32;

/// Checks that registers have at `svma` what they have in the body of its function: what is said of all of the function is meant of
/// its body alone.
///
/// # Errors
/// The code there sets the frame up, or takes it down.
pub(super) fn in_body(module: &Module, svma: u64) -> Result<(), Unknown> {
    let (entry, behind) = prologue_of(module, svma);
    if (entry..behind).contains(&svma) {
        return Err(Unknown::because(
            "its function has not set up its frame yet",
        ));
    }
    match is_epilogue(module, svma) {
        true => Err(Unknown::because("its function has taken down its frame")),
        false => Ok(()),
    }
}

/// Tells whether nothing but registers is taken from the stack at `svma` before the function returns.
fn is_epilogue(module: &Module, svma: u64) -> bool {
    let mut lengths = (1..=EPILOGUE_BYTES).rev();
    let code = lengths.find_map(|len| module.code(Svma(svma), len));
    let mut decoder = Decoder::new(64, code.unwrap_or_default(), DecoderOptions::NONE);
    for _ in 0..MAX_EPILOGUE {
        if !decoder.can_decode() {
            return false;
        }
        let instruction = decoder.decode();
        match (instruction.flow_control(), instruction.mnemonic()) {
            (FlowControl::Return, _) => return true,
            (_, Mnemonic::Pop) => {}
            _ => return false,
        }
    }
    false
}

/// The address in the module's file that `site` looks variables up at.
pub(super) fn svma_of(site: &FrameContext<'_>, bias: u64) -> u64 {
    site.lookup_pc.wrapping_sub(bias)
}

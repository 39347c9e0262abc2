//! Frame bases that compilers state as a register: rbp or rsp, with the value they have after the prologue.
//!
//! Before the prologue's end and after the frame is taken down, the register holds something else. In the body of the
//! function its distance to the CFA is constant, and the unwind tables state the CFA at every instruction.

use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

use super::FrameContext;
use crate::lines::prologue_of;
use crate::machine::{Register, Unknown};
use crate::model::Svma;
use crate::module::Module;
use crate::unwind::{frame_distance, tail_calls};

/// Returns the distance from the register that is the frame base of the function around `svma` up to the CFA, or `None`
/// if the unwind tables do not tell.
pub(super) fn distance(module: &Arc<Module>, svma: u64, register: Register) -> Option<i64> {
    if !matches!(register, Register::RBP | Register::RSP) {
        return None;
    }
    let entry = tail_calls::entry_of(module, svma)?;
    frame_distance(module, entry, register.0)
}

/// Instructions at the end of a function that may take down the frame, at most.
const MAX_EPILOGUE: usize = 10;
/// Bytes of code read for them.
const EPILOGUE_BYTES: u64 = 32;

/// Checks that registers have at `svma` the values of the function's body. A location stated for the whole function is
/// valid only in its body.
///
/// # Errors
/// The code there sets up the frame or takes it down.
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

/// Returns whether the code at `svma` only pops registers before the function returns.
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

/// Returns the address, in the module's file, at which `site` looks up variables.
pub(super) fn svma_of(site: &FrameContext<'_>, bias: u64) -> u64 {
    site.lookup_pc.wrapping_sub(bias)
}

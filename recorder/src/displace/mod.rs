//! Plans how to overwrite a function's entry with a five-byte `jmp rel32`, and re-encodes the displaced instructions
//! elsewhere.
//!
//! Everything here is pure: bytes and addresses go in, bytes and addresses come out. The caller reads and writes the
//! target's memory, and moves threads out of the displaced bytes.
//!
//! ```text
//! entry:  push rbp            entry:  jmp stub        at:  push rbp
//!         mov rbp, rsp   =>           ..         and       mov rbp, rsp
//!         sub rsp, 16                 sub rsp, 16          jmp entry+4.. (the first whole instruction after the patch)
//! ```
//!
//! The displaced instructions keep their meaning: rip-relative operands keep their target, a call pushes its original
//! return address (so that unwinding finds the function's own rules), and flags and registers are left alone.
//! Instructions that cannot be displaced with this guarantee are refused, with the reason.
//!
//! The caller must handle what is not visible here:
//! - Jumps through tables and other computed jumps into the patched bytes. Compilers never aim one at the first five
//!   bytes of a function; hand-written assembly may.
//! - Jumps from other functions (a `.cold` part jumping back into its function), unless [`Limits::branches`] names
//!   them. [`sweep`] finds them.
//! - Functions that are jumped or returned to with something other than a return address on the stack (`_start`,
//!   `_dl_runtime_resolve`). Displacing them is sound; replacing their "return address" is not.

mod classify;
mod encode;
mod near;
mod plan;
mod refusal;
mod scan;
mod sweep;

pub use encode::{MAX_TRAMPOLINE_BYTES, Move, Trampoline, patch_bytes};
pub use near::{LOWEST_ADDRESS, REACH, place_near};
pub use plan::{Displacement, Limits, PATCH_BYTES, plan, plan_at_least, single};
pub use refusal::Refusal;
pub use scan::{Branch, Branches, Named, named_inside};
pub use sweep::{Swept, branches_into, sweep};

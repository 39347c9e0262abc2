//! Plans how a function's entry gives way to a five-byte `jmp rel32`, and writes the displaced instructions anew elsewhere.
//!
//! Everything here is pure: bytes and addresses go in, bytes and addresses come out. Reading and writing the target's
//! memory, and moving threads that stand in the displaced bytes, is the caller's work.
//!
//! ```text
//! entry:  push rbp            entry:  jmp stub        at:  push rbp
//!         mov rbp, rsp   =>           ..         and       mov rbp, rsp
//!         sub rsp, 16                 sub rsp, 16          jmp entry+4.. (the first whole instruction after the patch)
//! ```
//!
//! What the displaced instructions mean does not change: rip-relative operands keep their target, a call pushes the
//! return address it always pushed (so that unwinding finds the function's own rules), flags and registers are left
//! alone. Whatever cannot be displaced with that promise is refused, with the reason.
//!
//! Not visible from here, hence the caller's to know:
//! - jumps through tables and other computed jumps into the patched bytes (compilers never aim one at the first five
//!   bytes of a function; hand-written assembly may);
//! - jumps from other functions, unless [`Limits::branches`] names them (a `.cold` part jumping back into its function);
//!   [`sweep`] finds them;
//! - functions that are not called but jumped or returned to with something else on the stack than a return address
//!   (`_start`, `_dl_runtime_resolve`): displacing them is sound, replacing their "return address" is not.

mod classify;
mod encode;
mod near;
mod plan;
mod refusal;
mod scan;
mod sweep;

pub use encode::{MAX_TRAMPOLINE_BYTES, Move, Trampoline, patch_bytes};
pub use near::{LOWEST_ADDRESS, REACH, place_near};
pub use plan::{Displacement, Limits, PATCH_BYTES, plan, single};
pub use refusal::Refusal;
pub use scan::{Branch, Branches, Named, named_inside};
pub use sweep::{Swept, sweep};

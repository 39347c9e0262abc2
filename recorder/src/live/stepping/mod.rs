//! Stepping: lets a thread run until it is at another place, as a user counts places.
//!
//! A thread with a plan single-steps within its line, and runs at full speed through what it calls. A trap after the
//! call brings it back once its stack pointer is where it was before the call (so that in a recursion only the same
//! frame counts). Meanwhile the unwinder and longjmp are watched, since they may skip that trap. Our own code is
//! stepped through without counting.
//!
//! Inlined calls are stepped over and into like other calls: a thread that reaches the first instruction of an inlined
//! copy is at the line of the call until the user steps into it. The rules are gdb's.

mod arrivals;
mod callee;
mod plan;
mod steps;
mod trap_flag;

pub(crate) use plan::Plan;

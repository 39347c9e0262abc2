//! Stepping: lets a thread run until it is somewhere else, as a person counts places.
//!
//! A thread with a plan runs one instruction at a time within its line, and at full speed through what it calls: a trap
//! behind the call brings it back, as soon as its stack pointer is where it was before the call (so that only the same
//! frame counts in a recursion). The unwinder and longjmp are watched meanwhile, since they may go past that trap. Code
//! of ours is stepped through without counting.
//!
//! Inlined calls are stepped over and into like others: a thread that gets to the first instruction of an inlined copy
//! stands at the line of the call until it is told to step into it. The rules are gdb's.

mod arrivals;
mod callee;
mod line_step;
mod plan;
mod steps;
mod trap_flag;

pub(crate) use plan::Plan;

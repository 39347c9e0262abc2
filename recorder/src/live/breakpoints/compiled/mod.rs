//! Conditions, counts and log messages that the program evaluates itself: machine code beside it, reached by a jump
//! over the statement's first instructions.
//!
//! The code only decides *that nothing is to be reported*. If a condition is true, if there is no answer (a null
//! pointer, missing memory), or if a message takes more than copying words, it runs into a trap with the state exactly
//! as at the statement, and the tracer evaluates the probe as at every other trap. So compiled code never reports
//! anything that the tracer would not, and a probe that cannot be compiled still works.

mod arm;
mod code;
mod faults;
mod floats;
mod place;
mod plan;
mod stub;

pub(crate) use arm::{Compiling, Runtime};
pub(crate) use stub::Stub;

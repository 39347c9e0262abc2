//! Conditions, counts and log messages that the program itself judges: machine code beside it, reached by a jump over the
//! statement's first instructions.
//!
//! The code only decides *that nothing is to be told*. Where a condition is true, where there is no answer (a null pointer,
//! memory that is not there), or where a message takes more than copying words, it runs into a trap with everything as it
//! was at the statement, and the tracer judges as it does at every other trap. So what is compiled never says anything that
//! the tracer would not, and what cannot be compiled goes on as if nothing were.

mod arm;
mod code;
mod floats;
mod place;
mod plan;
mod stub;

pub(crate) use arm::{Compiling, Runtime};
pub(crate) use stub::Stub;

//! The tables `instructions`, `lines`, `memory_writes` and `memory_reads`: what a recording of every instruction executed, read
//! and wrote. Nothing of it is stored: a question runs the program again, from where its filters begin to where they end.
//!
//! Rows are computed a few at a time, in the order of positions. Between two times the process serves other questions, so that
//! values of the same moments can be asked in one query, and a reader that has enough ends the run.

mod code;
mod exec;
mod place;
mod rows;
mod stretch;
mod table;
mod wanted;

pub use exec::INSTRUCTIONS;
pub use table::{Kind, table};

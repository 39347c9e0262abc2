//! The tables `instructions`, `lines`, `memory_writes` and `memory_reads`: what the program executed, read and wrote, in a
//! recording of every instruction. None of it is stored: a query runs the program again, from where its filters begin to where
//! they end.
//!
//! Rows are computed in small batches, in the order of positions. Between two batches the process serves other requests, so
//! that one query can also ask for values at the same moments, and a reader that has enough ends the run.

mod code;
mod exec;
mod place;
mod rows;
mod stretch;
mod table;
mod wanted;

pub use exec::INSTRUCTIONS;
pub use table::{Kind, table};

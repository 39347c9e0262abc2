//! Questions and what becomes of their answers: asked so that Ctrl-C stops the question and not the prompt, drawn as a
//! table, or handed to one of `query`'s writers.

mod asker;
mod cells;
mod interrupt;
mod show;

pub use asker::Asker;
pub use interrupt::Interrupts;
pub use show::{Records, View, note_extent, parquet_needs_a_file, show};

//! Turns the log into numbered, paired and sealed columns, in a stream and with bounded memory.
//!
//! Records are released when a watermark says that nothing older can come, merged in order of time, numbered
//! (`seq`), paired to calls and written as Parquet, one part after the other. After each part `seal.state` says how
//! far that came, so that sealing goes on after a crash, and so that a reader continues over the log's tail into a
//! folder of its own with the very same code. The same log gives the same numbers, however it is cut into steps.

mod crash;
mod definitions;
mod describe;
mod merge;
mod pair;
mod part;
mod queue;
mod sealer;
mod stacks;
mod state;
mod tail;
#[cfg(test)]
mod tests;

pub use definitions::DefinitionsFile;
pub use part::{FileSum, Part};
pub use sealer::{Ending, Progress, SealOptions, Sealed, SealedPart, Sealer};
pub use state::SealState;
pub use tail::seal_tail;

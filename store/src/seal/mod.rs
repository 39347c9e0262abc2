//! Turns the log into numbered, paired and sealed columns, as a stream and with bounded memory.
//!
//! Records are released when a watermark proves that nothing older can come. They are merged in order of time, numbered
//! (`seq`), paired to calls and written as Parquet, one part after the other. After each part `seal.state` notes the
//! progress. So sealing resumes after a crash, and a reader seals the log's tail into a folder of its own with the very
//! same code. The same log gives the same numbers, however it is cut into steps.
//!
//! Memory is bounded by: the reader's window (4 MiB, or one frame if that is longer); the blocks between two
//! watermarks; the rows of one page (2 MiB) and the encoded pages of one row group (262,144 calls: at most 65 MB where
//! all values are random, some 2 MB usually); text and output of one row group of events (16 MiB, or one record if that
//! is longer); the states of one row group (16 MiB too); and 200 bytes for each open call. The length of the recording
//! adds only 200 bytes per part and the checksums, 4 bytes for each 16 KiB of columns.

mod counter;
mod crash;
mod definitions;
mod describe;
mod live;
mod merge;
mod message;
mod outline;
mod pair;
mod part;
mod queue;
mod sealer;
mod stacks;
mod state;
mod syscalls;
mod tail;
mod terms;
#[cfg(test)]
mod tests;
mod thread;

pub use counter::Counter;
pub use definitions::DefinitionsFile;
pub use outline::{BuildId, End, Outline};
pub use part::Part;
pub(crate) use part::is_part_file;
pub use sealer::Sealer;
pub use state::SealState;
pub use tail::{seal_rest_while, seal_tail};
pub use terms::{Ending, Progress, SealOptions, Sealed, SealedPart};

//! The log: checksummed frames in numbered segments, appended by one writer and read by any number of readers.

pub mod frame;
pub mod frame_reader;
pub mod frame_writer;
pub mod packing;
mod position;
mod reader;
mod sync;
#[cfg(test)]
mod tests;
pub(crate) mod torn;
mod writer;

pub use position::{LogPosition, segment_path, segments};
pub use reader::{Block, End, Frame, FrameBody, LogReader, Step, Tail};
pub use writer::{ClosedLog, LogWriter};

//! How the program used memory: its blocks, who allocated and freed them, what was left at the end, and the peak.
//!
//! All of it comes from the recorded calls of allocation functions. Memory from other functions is unknown.

mod blocks;
mod pages;
mod report;

pub use crate::callers::Frame;
pub use blocks::{Block, End, Moment};
pub use report::{AllocationSite, FreedTwice, Held, MemoryReport, Peak};

use store::control::FunctionDef;

use crate::callers::{Progress, Tree, walk};
use crate::error::Result;
use crate::report::Source;
use crate::session::Session;

/// All blocks of a recording.
#[derive(Debug)]
pub struct Memory {
    /// In the order of their allocation, first those from before the recording.
    pub blocks: Vec<Block>,
    /// Calls that were to free blocks which had been freed before, or which nobody made, and that did not return: they freed nothing
    /// that is known.
    pub(crate) tried: Vec<Block>,
    /// The paths to the calls that allocated and freed them.
    pub(crate) tree: Tree,
    /// Blocks of posix_memalign with unknown addresses.
    pub unknown_blocks: u64,
    /// A call of an allocation function was recorded.
    pub has_makers: bool,
}

/// Finds the blocks of a recording. `progress` receives the numbers of calls read and of all calls.
///
/// # Errors
/// The recording cannot be read.
pub(crate) fn read(source: &Source, progress: Progress<'_>) -> Result<Memory> {
    let mut lives = blocks::Lives::new(source.definitions.functions());
    let roles = lives.roles();
    let wants = |function: u32| roles.get(function as usize).copied().unwrap_or(false);
    let tree = walk(&source.calls, &wants, progress, &mut |found| {
        lives.add(found)
    })?;
    let has_makers = lives.has_makers;
    let (blocks, tried, unknown_blocks) = lives.finish();
    Ok(Memory {
        blocks,
        tried,
        tree,
        unknown_blocks,
        has_makers,
    })
}

/// Returns whether one of these functions allocates or frees.
pub(crate) fn is_of<'f>(functions: impl Iterator<Item = &'f FunctionDef>) -> bool {
    blocks::Lives::new(functions).roles().contains(&true)
}

/// Sums up what the program did with memory. `progress` receives the numbers of calls read and of all calls.
///
/// # Errors
/// The recording cannot be read.
pub fn memory(session: &Session, progress: &mut dyn FnMut(u64, u64)) -> Result<MemoryReport> {
    session.check_ends("the recording")?;
    let source = session.report_source();
    let memory = read(source, progress)?;
    report::report(&memory, source)
}

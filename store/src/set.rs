//! The processes of a program that was recorded with its children: one file of lines in the folder that holds their
//! recordings.
//!
//! Several recorders append to it, each line with one write. A line is one fact about a process, in the order of
//! events. Readers skip an incomplete line.

mod fact;
mod list;
mod names;
mod process;
mod process_log;
#[cfg(test)]
mod tests;

pub use fact::Fact;
pub use list::{labels, processes, remove_list, why_incomplete};
pub use names::{may_be_created, resolve};
pub use process::{Process, number};
pub use process_log::ProcessLog;

/// The file with the processes.
pub const PROCESSES_FILE: &str = "processes.jsonl";
/// Ending of the name of a set's folder.
pub const SET_SUFFIX: &str = ".children";

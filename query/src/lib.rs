//! Answers SQL over a recording: tables over its sealed columns and over the tail that is not sealed yet.
//!
//! The crate knows no symbols but those that the recording defines. It writes only answers and temporary files.
#![deny(unsafe_code)]

mod allocator;
mod answer;
mod asking;
mod callers;
mod careful;
pub mod compare;
pub mod complete;
mod context;
mod definitions;
mod engine;
pub mod error;
pub mod finding;
mod functions;
mod instructions;
pub mod locks;
pub mod memory;
mod open;
mod options;
pub mod output;
pub mod overview;
mod parts;
mod planned;
mod question;
mod reading;
pub mod report;
mod rows;
mod rules;
pub mod runs;
mod session;
mod short_names;
pub mod slower;
mod state;
mod stoppable;
mod syscalls;
mod table_functions;
mod tables;
mod unknown_names;
mod unrecorded;

use std::path::Path;

pub use answer::{Answer, Stopper};
pub use error::{Error, Result, SqlError};
pub use open::Extent;
pub use options::Options;
pub use overview::{Overview, overview};
pub use reading::Reading;
pub use report::{Report, report};
pub use runs::Runs;
pub use session::Session;
pub use table_functions::{TABLE_FUNCTIONS, TableFunctionDoc};
pub use tables::{TABLES, TableDoc, runs_again};

/// Opens the recording that `path` names for queries, with the default limits.
///
/// # Errors
/// When the recording or a sealed file cannot be read, or temporary files cannot be written.
pub fn open(path: &Path) -> Result<Session> {
    Session::open(path)
}

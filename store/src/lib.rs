//! Keeps recordings: the append-only log, its sealed columns and recovery. The crate knows neither symbols nor SQL.
//!
//! The log is the truth; everything else in a recording can be derived from it again.
//! `docs/format.md` and `docs/wire.md` are the norm for every byte written here.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod check;
pub mod clock;
pub mod columns;
pub mod control;
pub mod definitions;
pub mod document;
pub mod error;
pub mod file_header;
pub mod format;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod labels;
pub mod log;
pub mod manifest;
pub mod memory;
pub mod notes;
pub mod os_path;
pub mod packed;
mod reader;
pub mod recording;
pub mod seal;
pub mod set;
pub mod shell;
pub mod signals;
pub mod storage;
pub mod summary;
#[cfg(any(test, feature = "testing"))]
pub mod synth;
pub mod wire;

pub use clock::Clock;
pub use control::Control;
pub use error::{Error, Result};
pub use manifest::Manifest;
pub use reader::{Reader, temp_dir};
pub use recording::Recording;
pub use summary::Summary;

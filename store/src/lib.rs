//! Keeps recordings: the append-only log, its sealed columns, the catalog and recovery. Knows no symbols and no SQL.
//!
//! The log is the truth; everything else in a recording can be derived from it again.
//! `docs/format.md` and `docs/wire.md` are the norm for every byte written here.
#![forbid(unsafe_code)]

pub mod clock;
pub mod control;
pub mod error;
pub mod format;
pub mod manifest;
pub mod wire;

pub use error::{Error, Result};

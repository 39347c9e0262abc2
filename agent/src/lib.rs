//! Everything that runs inside the target, and the means to load it: the embedded runtime, the memory it
//! shares with the recorder, and the Frida hosts.
//!
//! `store::wire` defines the layout of records; this crate defines the layout of the threads' rings in memory.

pub mod error;
pub mod host;
pub mod runtime;
pub mod shared;
pub mod wheel;

pub use error::{Error, Result};

//! Everything that runs inside the target, and the means to get it there: the embedded runtime, the memory it
//! shares with the recorder, and the Frida hosts that load it.
//!
//! The layout of records is `store::wire`'s business; this crate knows how threads' rings lie in memory.

pub mod error;
pub mod host;
pub mod runtime;
pub mod shared;
pub mod wheel;

pub use error::{Error, Result};

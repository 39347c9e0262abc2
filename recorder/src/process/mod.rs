//! Starts processes and reads what the system tells about them.

pub mod maps;
pub mod spawn;
pub mod status;

pub use maps::{Mapping, Maps};
pub use spawn::Parked;
pub use status::{ExitWatch, stack_limit};

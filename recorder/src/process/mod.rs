//! Starts processes, and reads what the kernel reports about them.

mod ending;
pub mod executable;
pub mod limits;
pub mod maps;
pub mod spawn;
pub mod status;
mod waits;
mod way;

pub use maps::{Mapping, Maps};
pub use spawn::Parked;
pub use status::{ExitWatch, stack_limit};
pub use waits::ProcessorWaits;
pub use way::Way;

//! Chooses functions and makes them call the runtime.

pub mod choose;
pub mod conventions;
pub mod filter;
pub mod modules;
pub mod patch;
pub mod stubs;
pub mod sweeps;

pub use filter::Filter;
pub use modules::{LoadedModule, Modules};
pub use patch::Armer;

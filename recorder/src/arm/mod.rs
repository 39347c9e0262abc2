//! Chooses functions and makes them call the runtime.

mod also;
pub mod choose;
mod contents;
pub mod conventions;
pub mod filter;
mod golang;
mod inner;
mod judge;
mod leavers;
mod libraries;
mod linked;
pub mod modules;
pub mod own_calls;
pub mod patch;
mod prototypes;
mod replace;
mod resolvers;
pub mod stubs;
pub mod sweeps;
mod system_calls;
mod unwinders;

pub use also::Also;
pub(crate) use choose::{Candidate, candidates};
pub use filter::Filter;
pub(crate) use filter::{Place, module_and_name};
pub use modules::{LoadedModule, Modules};
pub use patch::Armer;
pub(crate) use stubs::PROBE_BYTES;
pub(crate) use system_calls::is_system_call;
pub(crate) use unwinders::unwinders_can_be_told;

//! System calls as text: names, arguments with texts and flags, errors. It decodes what a recording has of a call, and knows
//! no tables.

mod errors;
pub mod files;
mod flags;
mod names;
mod show;
mod signatures;
mod values;

pub use errors::error_name;
pub use names::name;
pub use show::{Call, arguments};

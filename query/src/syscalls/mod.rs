//! System calls as text: names, arguments with texts and flags, errors. It decodes what a recording has of a call, and knows
//! nothing of tables.

mod commands;
mod errors;
pub mod files;
mod flags;
mod mounts;
pub mod processes;
mod show;
mod signatures;
mod sockets;
pub mod structures;
mod system;
pub mod values;
mod words;

pub use commands::command_name;
pub use debuginfo::syscalls::name;
pub use errors::error_name;
pub use show::{Argument, Call, arguments, each_argument, has_signature};

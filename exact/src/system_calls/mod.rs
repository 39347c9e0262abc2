//! System calls: what the kernel does to the memory of the program that makes them.
//!
//! `written` asks the families one after the other; each file but `call` is one of them.

mod call;
mod control;
mod files;
mod fixed;
mod ioctl;
mod ipc;
mod memory;
mod nothing;
mod polling;
mod processes;
pub(crate) mod shown;
mod signals;
mod sockets;
mod time;
pub mod written;

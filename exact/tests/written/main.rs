//! Goal: what `written` says is what the kernel does. Method: the test makes each call itself, with all buffers in memory that is filled
//! with a pattern, and compares that memory before and after: each byte that changed must be in the list. The length of the list is
//! compared with what the manual says of the call.

mod errors;
mod files;
mod ioctls;
mod polling;
mod processes;
mod properties;
mod region;
mod sockets;
mod times;

//! Goal: what `written` says is what the kernel does. Method: the test makes each call itself, with all buffers in memory that is filled
//! with a pattern, and compares that memory before and after: each byte that changed must be in the list. The length of the list is
//! compared with what the manual says of the call. Whole programs are traced besides, and all of their memory is compared at each call.

mod errors;
mod files;
mod ioctls;
mod polling;
mod processes;
mod programs;
mod properties;
mod region;
mod sockets;
mod times;
mod traced;

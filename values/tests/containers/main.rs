//! Goal: containers show their contents. Method: a fixture holds one of each kind and is stopped; for C++, gdb prints the
//! contents with the printers of libstdc++; for Rust and libc++, the program prints its own; ours must agree, element by
//! element and as text. Damaged containers must quickly give an error.

mod common;
mod cxx;
mod damaged;
mod libcxx;
mod rust;
mod snapshot;

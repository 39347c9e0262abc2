//! System calls: what the kernel does to the memory of the program that makes them.

pub mod written;

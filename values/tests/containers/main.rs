//! Goal: containers show what is in them. Method: a fixture holds one of each kind and is stopped; for C++ gdb with the
//! printers that come with libstdc++ tells the contents, for Rust the program prints its own; ours must agree, element by
//! element and as text. Damaged containers must give an error, soon.

mod common;
mod cxx;
mod damaged;
mod rust;
mod snapshot;

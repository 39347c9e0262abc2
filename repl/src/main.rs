//! The `hindsight` binary.
#![forbid(unsafe_code)]
#![allow(dead_code, unused_imports)]

mod error;
mod exit;
mod format;
mod output;
mod prompt;
mod recording;
mod render;
mod statement;
mod suggest;

fn main() {}

//! The SQL prompt.

mod command;
mod complete;
mod editor;

//! One file per command: its arguments, its help text and what it does.

pub mod check;
pub mod guard;
pub mod info;
pub mod record;
pub mod setup;
pub mod sql;
mod target;

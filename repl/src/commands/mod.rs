//! One file per command: its arguments, its help text and what it does.

mod captured;
pub mod check;
mod children;
pub mod compare;
pub mod daemon;
mod deleting;
pub mod export;
pub mod guard;
pub mod info;
mod keeping;
pub mod live;
pub mod ls;
pub mod mcp;
pub mod overview;
pub mod pack;
mod probing;
pub mod processes;
pub mod record;
pub mod repl;
pub mod report;
pub mod rerun;
pub mod rm;
pub mod runs;
pub mod setup;
pub mod sql;
mod target;
pub mod test;

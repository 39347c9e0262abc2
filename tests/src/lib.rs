//! Tools for the end-to-end tests: build fixtures, run them natively and recorded, query recordings, run other tracers.
//!
//! The tests in `tests/` know `hindsight` only by its command line and its exit codes. A fixture that prints a line
//! `calls NAME N` (or `unwound NAME N`) has counted its own calls; [`Comparison`] checks the recording against it.
#![forbid(unsafe_code)]

mod compare;
mod compiled;
mod fixture;
mod headers;
mod hindsight;
mod live;
mod mcp;
mod memory;
mod oracle;
mod process;
mod recording;
mod scratch;
mod share;
mod steady;

pub use compare::{Comparison, Nesting};
pub use compiled::{compiled, rustc};
pub use fixture::{fixture_artifact, fixture_source, lua_source, sqlite_source};
pub use headers::{change_version, make_older};
pub use hindsight::{Hindsight, split_own_lines};
pub use live::{Live, is_alive, marked_line};
pub use mcp::{install, mcp_script, python_with};
pub use memory::{changed_text, thread_names};
pub use oracle::{
    callgrind_counts, gdb_count, gdb_count_at, gdb_places, uftrace_counts, uftrace_library_counts,
};
pub use process::{Ended, Program, Running, Status, kill, wait_until};
pub use recording::{Recording, Row};
pub use rustix::process::Signal;
pub use scratch::{Scratch, workspace_dir};
pub use share::{
    Shared, has_turn, has_turn_among, in_turn, in_turn_among, share, turn, turn_among,
};
pub use steady::Steady;

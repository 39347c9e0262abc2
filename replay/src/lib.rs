//! The state of a recorded program at any moment: registers, memory, the calls around it; and moves through time.
//!
//! A [`Timeline`] is an opened recording. It finds events by number and thread without reading the events in between.
//! [`State`] gives registers and memory just after an event. Each value is known, stale (seen earlier, and may have changed
//! since) or unknown, and says which. [`Moment`] adds modules, so that `debuginfo` can inspect it like a stopped thread. No
//! answer folds over all events: each one comes from page indexes and a few pages. If every instruction is recorded, all
//! values are known: they come from a process that executes the instructions again.
//!
//! The crate leaves commands and tables to `server` and `repl`, SQL to `query`, and capturing to `recorder`.
#![forbid(unsafe_code)]

mod allocation;
mod backtrace;
mod blocks;
mod cache;
mod calls;
mod captures;
mod core_file;
mod crash;
mod entries;
mod error;
mod event;
mod every;
mod heap;
pub mod history;
mod left;
mod logged_writes;
mod machine;
mod marks;
mod memory;
mod min_tree;
mod modules;
mod moment;
pub mod moves;
mod on_stack;
mod others;
mod overseen;
mod pack;
mod pages;
mod pauses;
mod registers;
mod snapshots;
mod state;
mod target;
mod timeline;
mod walk;

pub use allocation::{Role, Size, known_as, library_name, role, role_of};
pub use backtrace::Trace;
pub use blocks::{Block, Blocks};
pub use calls::CallHead;
pub use captures::Capture;
pub use core_file::{CoreOptions, cut_bytes, import as import_core, locate, remarks};
pub use entries::{Answers, Entries};
pub use error::{Error, Result};
pub use event::{Event, Kind};
pub use exact::{Call, Called, Returned};
pub use heap::UNKNOWN_BLOCK;
pub use history::{Parameters, Tracked};
pub use logged_writes::LoggedWrite;
pub use machine::StateMachine;
pub use marks::Mark;
pub use memory::Run;
pub use modules::{Absent, Modules};
pub use moment::{Effort, Moment, Places};
pub use overseen::{Overseer, QUESTION_TIME, goes_on, overseen, with_question_time};
pub use pack::{Outcome as PackOutcome, pack};
pub use state::{Reason, Seen, State};
pub use target::Target;
pub use timeline::{ThreadInfo, Timeline};
pub use walk::{
    Activation, Arrival, CallEnd, Instant, MOST_WATCHED, NotRecorded, Seek, Sought, Spaces,
    Touched, Until, Walk, WalkEnd, Walked, Wrote, returns_to, watchable,
};

//! The state of a recorded program at any moment: registers, memory, the calls around it; and ways to move through time.
//!
//! A [`Timeline`] is an opened recording. It finds events by number and thread without reading what lies between them.
//! [`State`] says what registers and memory were just after an event: each value is known, stale (seen earlier, and may have
//! changed since) or unknown, and says which. [`Moment`] puts modules beside it, so that `debuginfo` answers about it
//! as about a stopped thread. Nothing here is folded over all events: every answer comes from page indexes and a few pages.
//!
//! What the crate leaves to others: words and tables (`server`, `repl`), SQL (`query`), and capturing (`recorder`).
#![forbid(unsafe_code)]

mod backtrace;
mod cache;
mod calls;
mod captures;
mod crash;
mod error;
mod event;
mod heap;
pub mod history;
mod least;
mod left;
mod machine;
mod marks;
mod memory;
mod modules;
mod moment;
pub mod moves;
mod others;
mod pack;
mod pages;
mod pauses;
mod registers;
mod snapshots;
mod state;
mod target;
mod timeline;

pub use backtrace::Trace;
pub use calls::CallHead;
pub use error::{Error, Result};
pub use event::{Event, Kind};
pub use heap::UNKNOWN_BLOCK;
pub use history::{Parameters, Tracked};
pub use machine::StateMachine;
pub use marks::Mark;
pub use memory::Run;
pub use modules::{Absent, Modules};
pub use moment::{Effort, Moment, Places};
pub use pack::{Outcome as PackOutcome, pack};
pub use state::{Reason, Seen, State};
pub use target::Target;
pub use timeline::{ThreadInfo, Timeline};

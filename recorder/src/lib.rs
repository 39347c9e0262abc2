//! Records a program: starts it or attaches to it, arms its functions, drains what they write, and orders it.
//!
//! Layers: `displace` plans patches and does no I/O. `stop` stops a process. `process` starts one and reads /proc.
//! `arm` chooses functions and patches them. `capture` decides what to capture with each call. `drain` moves rings to
//! the log. `guardian` outlives the recorder. `session` ties them together.

pub mod arm;
pub mod capture;
pub mod clock;
pub mod displace;
mod drain;
pub mod error;
mod full;
mod guardian;
pub mod live;
mod loader;
pub mod options;
pub mod process;
mod return_trampoline;
mod session;
mod signals;
mod snapshot;
pub mod stop;
mod wake;

pub use error::{Error, Result};
pub use exact::Ending;
pub use full::{
    FullOptions, FullOutcome, FullPart, Steps, StepsOutcome, complete, is_to_complete, record_full,
};
pub use guardian::guard;
pub use live::Live;
pub use options::{
    Captures, Counting, Death, Exit, Member, Observer, OnFull, Outcome, RecordOptions,
    SnapshotTimes, Surroundings, Target,
};
pub use session::{SetOutcome, record, record_children, why_not_recorded};
pub use signals::{SignalAction, leave_signals_to_other_threads};

//! A thread of the program, as the tracer keeps book of it.

use super::event::Event;
use crate::live::{model::Stop, remote_call::Calling, stepping::Plan};

/// What the kernel has a thread do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs.
    Running,
    /// It stands still, and gets this signal (0: none) when it goes on.
    Halted { signal: i32 },
    /// Job control stopped it; it tells us of SIGCONT.
    Listening,
}

/// A thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub state: State,
    /// What the kernel told of the signal that it gets.
    pub signal_info: Option<libc::siginfo_t>,
    /// Why it stands still, if somebody was told.
    pub stop: Option<Stop>,
    /// How many of the inlined calls that begin where it stands count as not made yet.
    pub calls_to_come: usize,
    /// How often threads have come to the probe that it is judged for.
    pub hit_count: Option<u64>,
    /// What it reported while everything was held.
    pub pending: Option<Event>,
    /// Where it is to get to.
    pub plan: Option<Plan>,
    /// It executes a function that we called.
    pub calling: Option<Box<Calling>>,
    /// It has run into the trap that it stands at, and what that means was looked at.
    pub is_at_trap: bool,
    /// It runs one instruction at a time.
    pub is_stepping: bool,
    /// It runs one instruction, which pushes the flags: where it goes on.
    pub behind_pushed_flags: Option<u64>,
    /// It was asked to stop.
    pub is_interrupted: bool,
    /// Job control stopped it, and we hold it besides.
    pub is_job_stopped: bool,
    /// Somebody waits for it alone to get somewhere.
    pub is_moved: bool,
}

impl Thread {
    pub fn running() -> Self {
        Self {
            state: State::Running,
            signal_info: None,
            stop: None,
            calls_to_come: 0,
            hit_count: None,
            pending: None,
            plan: None,
            calling: None,
            is_at_trap: false,
            is_stepping: false,
            behind_pushed_flags: None,
            is_interrupted: false,
            is_job_stopped: false,
            is_moved: false,
        }
    }
}

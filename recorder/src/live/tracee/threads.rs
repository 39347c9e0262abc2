//! A thread of the program, as the tracer keeps book of it: one enum says what it does, and what only a halted thread has is there
//! only then.

use crate::live::{model::Stop, remote_call::Calling, stepping::Plan};

use super::event::Event;

/// What the kernel has a thread do.
#[derive(Debug)]
pub(crate) enum State {
    /// It runs.
    Running(Run),
    /// It stands still.
    Halted(Halt),
    /// Job control stopped it; it tells us of SIGCONT.
    Listening { is_interrupted: bool },
}

/// How a thread runs.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// It was asked to stop.
    pub is_interrupted: bool,
    /// It runs one instruction, which pushes the flags: where it goes on.
    pub behind_pushed_flags: Option<u64>,
}

/// How a thread stands still.
#[derive(Debug, Default)]
pub(crate) struct Halt {
    /// The signal that it gets when it goes on; 0: none.
    pub signal: i32,
    /// Why, if somebody was told.
    pub stop: Option<Stop>,
    /// What it reported while everything was held.
    pub pending: Option<Event>,
    /// It has run into the trap that it stands at, and what that means was looked at.
    pub is_at_trap: bool,
    /// Job control stopped it, and we hold it besides.
    pub is_job_stopped: bool,
}

impl State {
    /// Tells whether it was asked to stop, and has not done so yet.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Running(run) => run.is_interrupted,
            Self::Listening { is_interrupted } => *is_interrupted,
            Self::Halted(_) => false,
        }
    }
}

/// A thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub state: State,
    /// What the kernel told of the signal that it gets.
    pub signal_info: Option<libc::siginfo_t>,
    /// How many of the inlined calls that begin where it stands count as not made yet.
    pub calls_to_come: usize,
    /// How often threads have come to the probe that it is judged for.
    pub hit_count: Option<u64>,
    /// Where it is to get to.
    pub plan: Option<Plan>,
    /// It executes a function that we called.
    pub calling: Option<Box<Calling>>,
    /// It runs one instruction at a time.
    pub is_stepping: bool,
    /// Somebody waits for it alone to get somewhere.
    pub is_moved: bool,
}

impl Thread {
    pub fn running() -> Self {
        Self {
            state: State::Running(Run::default()),
            signal_info: None,
            calls_to_come: 0,
            hit_count: None,
            plan: None,
            calling: None,
            is_stepping: false,
            is_moved: false,
        }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    pub fn is_halted(&self) -> bool {
        matches!(self.state, State::Halted(_))
    }

    /// It stands still, and nobody was told why.
    pub fn is_held(&self) -> bool {
        self.halt().is_some_and(|halt| halt.stop.is_none())
    }

    /// How it stands still, if it does.
    pub fn halt(&self) -> Option<&Halt> {
        match &self.state {
            State::Halted(halt) => Some(halt),
            State::Running(_) | State::Listening { .. } => None,
        }
    }

    /// The same, to be changed.
    pub fn halt_mut(&mut self) -> Option<&mut Halt> {
        match &mut self.state {
            State::Halted(halt) => Some(halt),
            State::Running(_) | State::Listening { .. } => None,
        }
    }

    /// Why it stands still, if somebody was told.
    pub fn stop(&self) -> Option<&Stop> {
        self.halt()?.stop.as_ref()
    }

    /// What it reported while everything was held; it is acted on once.
    pub fn take_pending(&mut self) -> Option<Event> {
        self.halt_mut()?.pending.take()
    }

    /// Has a halted thread get `signal` when it goes on; 0: none.
    pub fn set_signal(&mut self, signal: i32) {
        if let Some(halt) = self.halt_mut() {
            halt.signal = signal;
        }
    }

    /// A halted thread goes on. Returns how it stood.
    pub fn run(&mut self, is_stepping: bool) -> Halt {
        self.calls_to_come = 0;
        self.is_stepping = is_stepping;
        match std::mem::replace(&mut self.state, State::Running(Run::default())) {
            State::Halted(halt) => halt,
            State::Running(_) | State::Listening { .. } => Halt::default(),
        }
    }
}

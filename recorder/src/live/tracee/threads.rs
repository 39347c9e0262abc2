//! The tracer's record of a thread. An enum holds its state; what only a halted thread has exists only in that state.

use crate::live::{
    full::Full, model::Stop, probes::happenings::Done, remote_call::Calling, stepping::Plan,
};

use super::event::Event;

/// The state of a thread in the kernel.
#[derive(Debug)]
pub(crate) enum State {
    /// Running.
    Running(Run),
    /// Halted in a ptrace-stop.
    Halted(Halt),
    /// Stopped by job control; it will report SIGCONT.
    Listening { is_interrupted: bool },
}

/// How a thread runs.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// It was asked to stop.
    pub is_interrupted: bool,
    /// It single-steps an instruction that pushes the flags, and continues here.
    pub behind_pushed_flags: Option<u64>,
}

/// How a thread is halted.
#[derive(Debug, Default)]
pub(crate) struct Halt {
    /// The signal to deliver when it resumes; 0: none.
    pub signal: i32,
    /// The stop, if it was reported.
    pub stop: Option<Stop>,
    /// Its event that came while all threads were held.
    pub pending: Option<Event>,
    pub trap: Trap,
    /// It was stopped by job control, and we hold it too.
    pub is_job_stopped: bool,
}

/// The trap at the position of a halted thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trap {
    /// There is none, or whether it was hit does not matter.
    #[default]
    None,
    /// It was hit, and was handled.
    Hit,
    /// It was not hit yet, and is when the thread resumes.
    Ahead,
}

impl Halt {
    /// Returns whether a thread that resumes passes the trap at its position.
    pub fn passes_trap(&self) -> bool {
        match self.trap {
            Trap::Hit => true,
            Trap::Ahead => false,
            Trap::None => self.stop.is_some(),
        }
    }
}

impl State {
    /// Returns whether it was asked to stop and has not stopped yet.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Running(run) => run.is_interrupted,
            Self::Listening { is_interrupted } => *is_interrupted,
            Self::Halted(_) => false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Thread {
    pub state: State,
    /// The siginfo of the signal to deliver.
    pub signal_info: Option<libc::siginfo_t>,
    /// How many of the inlined calls that begin at its pc are still to come.
    pub calls_to_come: usize,
    /// How often threads have reached the probe being evaluated for it.
    pub hit_count: Option<u64>,
    /// Its goal.
    pub plan: Option<Plan>,
    /// Every instruction of it is recorded.
    pub full: Option<Box<Full>>,
    /// It is executing a function that we called.
    pub calling: Option<Box<Calling>>,
    pub is_stepping: bool,
    /// A caller waits for this thread to reach its goal.
    pub is_moved: bool,
    /// What it has done in a system call whose end is to be reported.
    pub done: Option<Done>,
    /// It has stopped before the system call at this address, which it makes next.
    pub passes_call: Option<u64>,
    /// A filter checks its system calls: it is not stopped at them.
    pub is_sandboxed: bool,
}

impl Thread {
    pub fn running() -> Self {
        Self {
            state: State::Running(Run::default()),
            signal_info: None,
            calls_to_come: 0,
            hit_count: None,
            plan: None,
            full: None,
            calling: None,
            is_stepping: false,
            is_moved: false,
            done: None,
            passes_call: None,
            is_sandboxed: false,
        }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    pub fn is_halted(&self) -> bool {
        matches!(self.state, State::Halted(_))
    }

    /// Returns whether it is halted without a reported stop.
    pub fn is_held(&self) -> bool {
        self.halt().is_some_and(|halt| halt.stop.is_none())
    }

    /// Returns how it is halted.
    pub fn halt(&self) -> Option<&Halt> {
        match &self.state {
            State::Halted(halt) => Some(halt),
            State::Running(_) | State::Listening { .. } => None,
        }
    }

    pub fn halt_mut(&mut self) -> Option<&mut Halt> {
        match &mut self.state {
            State::Halted(halt) => Some(halt),
            State::Running(_) | State::Listening { .. } => None,
        }
    }

    /// Returns its stop, if it was reported.
    pub fn stop(&self) -> Option<&Stop> {
        self.halt()?.stop.as_ref()
    }

    /// Takes its pending event, which is handled once.
    pub fn take_pending(&mut self) -> Option<Event> {
        self.halt_mut()?.pending.take()
    }

    /// Sets the signal to deliver to a halted thread when it resumes; 0: none.
    pub fn set_signal(&mut self, signal: i32) {
        if let Some(halt) = self.halt_mut() {
            halt.signal = signal;
        }
    }
}

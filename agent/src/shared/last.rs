//! The end of the program, as the first thread to reach it reports it: agent/runtime/last.c. The thread waits until the
//! recorder has looked.

use std::sync::atomic::Ordering::*;

use super::Shared;

/// In [`Shared::want_last`]: a signal that the program does not handle.
pub const LAST_SIGNALS: u32 = 1;
/// In [`Shared::want_last`]: its exit.
pub const LAST_EXIT: u32 = 2;

pub(super) const EXITING: u64 = u64::MAX;
pub(super) const ASKED: u32 = 1;
pub(super) const TAKEN: u32 = 2;
pub(super) const DONE: u32 = 3;

/// A thread at which the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// The thread.
    pub tid: u32,
    /// The number of the signal; `None`: it exits.
    pub signal: Option<i32>,
    /// Address in the target of the kernel's description of the signal (`siginfo_t`).
    pub info: u64,
    /// Address of the registers that the signal interrupted (`ucontext_t`).
    pub context: u64,
}

impl Shared {
    /// Sets at which ends threads wait. Must be called before anything is armed.
    pub fn want_last(&self, what: u32) {
        self.control().last_wanted.store(what, Release);
    }

    /// Lets signals end the program without a wait. Returns whether threads were to wait.
    pub fn pass_signals(&self) -> bool {
        let wanted = self.control().last_wanted.fetch_and(!LAST_SIGNALS, AcqRel);
        wanted & LAST_SIGNALS != 0
    }

    /// Returns the thread that waits at the program's end: once.
    pub fn take_last(&self) -> Option<Last> {
        let control = self.control();
        if control.last_state.load(Acquire) != ASKED {
            return None;
        }
        let signal = control.last_signal.load(Relaxed) as i32;
        Some(Last {
            tid: control.last_tid.load(Relaxed),
            signal: (signal != 0).then_some(signal),
            info: control.last_info.load(Relaxed),
            context: control.last_context.load(Relaxed),
        })
    }

    /// Returns when the program exited, in ticks: `None` if it has not, or not by `_exit`.
    pub fn exited_at(&self) -> Option<u64> {
        let ticks = self.control().exit_ticks.load(Acquire);
        (ticks != 0 && ticks != EXITING).then_some(ticks)
    }

    /// Returns whether the program exits: true before any thread writes a record that is later than
    /// [`Self::exited_at`].
    pub fn is_exiting(&self) -> bool {
        self.control().exit_ticks.load(Acquire) != 0
    }

    /// Lets the thread sleep while it waits, unless it is in a sandbox.
    pub fn last_taken(&self, sandboxed: bool) {
        let control = self.control();
        control.last_sandboxed.store(sandboxed.into(), Release);
        control.last_state.store(TAKEN, Release);
    }

    /// Returns whether the program is at its end and that moment is recorded.
    pub fn last_is_done(&self) -> bool {
        self.control().last_state.load(Acquire) == DONE
    }

    /// Lets the thread continue to the program's end.
    pub fn last_done(&self) {
        self.control().last_state.store(DONE, Release);
    }
}

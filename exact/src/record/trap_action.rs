//! What the program wants done with SIGTRAP. Our own traps make the kernel forget that: a trap of a thread that ignores or blocks
//! the signal resets its action (`force_sig_info` of signal(7) that a fault sends).

use super::Recorder;
use super::system_call::Call;
use crate::error::Result;
use crate::tracee::Tracee;

/// Bytes of the kernel's `struct sigaction`: handler, flags, restorer and a mask.
const ACTION: usize = 32;
const MASK_BYTES: u64 = 8;

/// An action as the program has given it to rt_sigaction(2).
#[derive(Debug, Clone, Copy)]
struct Action([u8; ACTION]);

impl Action {
    fn read(process: &Tracee, at: u64) -> Option<Action> {
        let bytes = process.bytes(at, ACTION);
        bytes.try_into().ok().map(Action)
    }

    fn handler(&self) -> u64 {
        let (handler, _) = self.0.split_first_chunk().expect("it is longer");
        u64::from_le_bytes(*handler)
    }
}

/// The last one, and the one before; `None`: the program has given none.
#[derive(Debug, Default)]
pub(super) struct TrapAction {
    now: Option<Action>,
    before: Option<Action>,
}

/// What becomes of a SIGTRAP that is not one of our own traps.
pub(super) enum Trapped {
    /// The program ignores it.
    Ignored,
    /// The program has a handler, which the kernel has forgotten.
    Forgotten,
    /// As any other signal.
    Usual,
}

impl TrapAction {
    /// The program is about to make a call.
    pub(super) fn call_begins(&mut self, process: &Tracee, number: u64, args: &[u64; 6]) {
        let [signal, action, _, size, ..] = *args;
        let is_set = number == libc::SYS_rt_sigaction as u64
            && signal == libc::SIGTRAP as u64
            && size == MASK_BYTES;
        if is_set {
            self.before = self.now;
        }
        if is_set && action != 0 {
            self.now = Action::read(process, action).or(self.now);
        }
    }

    /// The call has returned: it tells the program what that had given before.
    pub(super) fn call_ends(&self, process: &Tracee, call: &Call, result: i64) -> Result<()> {
        let [signal, _, old, size, ..] = call.args;
        let tells = call.number == libc::SYS_rt_sigaction as u64
            && signal == libc::SIGTRAP as u64
            && size == MASK_BYTES
            && old != 0
            && result == 0;
        match self.before {
            Some(before) if tells => process.write(old, &before.0),
            _ => Ok(()),
        }
    }

    /// Whether a SIGTRAP is ignored or handled, if the kernel would end the program.
    pub(super) fn of(&self, info: &libc::siginfo_t, is_caught: bool) -> Trapped {
        let handler = self
            .now
            .map_or(libc::SIG_DFL as u64, |action| action.handler());
        // The processor's own traps end a program that ignores them.
        let is_sent = info.si_code <= 0;
        match handler as libc::sighandler_t {
            libc::SIG_DFL => Trapped::Usual,
            libc::SIG_IGN if is_sent => Trapped::Ignored,
            libc::SIG_IGN => Trapped::Usual,
            _ if is_caught => Trapped::Usual,
            _ => Trapped::Forgotten,
        }
    }
}

impl Recorder {
    /// The kernel has the program's action for SIGTRAP again, if it has given one. A signal that the thread is stopped for is to be set
    /// anew.
    pub(super) fn restore_trap_action(&mut self, tid: i32) -> Result<()> {
        let Some(action) = self.signals.trap_action.now else {
            return Ok(());
        };
        let at = self.scratch();
        self.process.write(at, &action.0)?;
        let args = [libc::SIGTRAP as u64, at, 0, MASK_BYTES, 0, 0];
        self.call(tid, libc::SYS_rt_sigaction, args).map(drop)
    }
}

//! Tells threads whether the program is in a sandbox, if it can enter one unseen by the runtime. A thread that asks
//! waits: the filter may allow it none of our system calls.

use agent::shared::{Sandbox, Shared};

use super::Session;
use crate::{
    Observer, Result,
    arm::{LoadedModule, own_calls::makes_system_calls, patch::Prepared},
    process::status::Seccomp,
};

/// Functions through which a program enters a sandbox.
const WAYS_IN: [&str; 2] = ["prctl", "syscall"];

/// Makes threads ask if the code of `modules` can enter a sandbox by itself.
pub(super) fn watch_code(shared: &Shared, modules: &[LoadedModule]) {
    if modules.iter().any(makes_system_calls) {
        shared.ask_about_sandbox();
    }
}

/// Makes threads ask unless every function through which a program enters a sandbox is replaced.
pub(super) fn watch_replaced(shared: &Shared, prepared: &[Prepared]) {
    let is_replaced = |name: &str| prepared.iter().any(|prepared| prepared.replaces(name));
    if !WAYS_IN.iter().all(|name| is_replaced(name)) {
        shared.ask_about_sandbox();
    }
}

impl Session {
    /// Makes threads ask if newly loaded modules can enter a sandbox by themselves.
    pub(super) fn watch_sandbox_of(&self, added: &[u32]) {
        let mut modules = added
            .iter()
            .filter_map(|n| self.arming.modules.by_number(*n));
        if !self.shared.asks_about_sandbox() && modules.any(makes_system_calls) {
            self.shared.ask_about_sandbox();
        }
    }

    /// Answers threads that ask.
    pub(super) fn look_at_sandbox(&mut self, observer: &dyn Observer) -> Result<()> {
        let Some(asked) = self.shared.sandbox_asked() else {
            return Ok(());
        };
        // The restrictions at load time did not prevent loading.
        let now = Seccomp::of(self.target.pid);
        let found = match now {
            now if now <= self.so_far.had_seccomp => None,
            now if now.mode == Seccomp::STRICT => Some(Sandbox::Strict),
            _ => Some(Sandbox::Filter),
        };
        if self.shared.answer_sandbox(asked, found) {
            let message = "the program is in a sandbox that it has entered by a system call of its own; docs/transparency.md, \
                           \"Programs that forbid or lock what recording takes\", says what is not recorded after that";
            self.warn(&message.into(), observer)?;
        }
        Ok(())
    }
}

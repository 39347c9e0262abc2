//! The recording's end of a live session: receives the tracer's events for the log, and sends it notifications.

use std::sync::{
    Arc, RwLock,
    atomic::{AtomicBool, Ordering::Acquire},
};

use crossbeam::channel::{Receiver, Sender};
use debuginfo::{AddressSpace, Mapped};
use store::control::Control;

use super::{Session, Stopper, lock, more::More};
use crate::{
    Exit, Observer,
    arm::Modules,
    live::{
        Stdio,
        commands::{Commands, ask},
        event_loop::Tracer,
        journal::Counts,
        model::FirstProbes,
        stops::StopLog,
        tracee::hooks::SharedHooks,
    },
};

/// The connection to the tracer.
pub(crate) struct LiveSide {
    pub commands: Commands,
    pub counts: Arc<Counts>,
    /// Clients that wait until readers can see everything so far.
    pub settling: Receiver<Sender<()>>,
    /// Requests of clients for more functions.
    pub more: Receiver<More>,
    pub end: Arc<AtomicBool>,
    /// Set once the program has executed another one, which has a recorder of its own.
    pub became: Arc<AtomicBool>,
    pub space: Arc<RwLock<Arc<AddressSpace>>>,
    pub stops: Arc<StopLog>,
    /// No user controls the session: it ends as other recordings do.
    pub is_unattended: bool,
}

/// How a program is controlled.
#[derive(Clone, Copy)]
pub(crate) struct Controlled<'a> {
    /// Where its input and output go.
    pub stdio: &'a Stdio,
    /// Probes that are set before it runs.
    pub first: &'a FirstProbes,
    /// No user controls the session.
    pub is_unattended: bool,
}

impl LiveSide {
    /// Returns whether the user wants the recording to end and the program to continue.
    pub fn is_to_end(&self) -> bool {
        self.end.load(Acquire)
    }

    /// Returns whether the program has executed another one, which has a recorder of its own.
    pub fn has_become(&self) -> bool {
        self.became.load(Acquire)
    }

    /// Ends control: the program has ended, or continues without control.
    pub fn end_control(&self, exit: Exit) {
        // The tracer may have ended already.
        let _ = match exit {
            Exit::Detached => ask(&self.commands, Tracer::detach),
            Exit::Code(_) | Exit::Signal(_) => ask(&self.commands, Tracer::finish),
        };
    }
}

impl Session {
    /// Makes the tracer stop the program from now on, and logs its events.
    pub(crate) fn control(
        &mut self,
        live: LiveSide,
        journal: Receiver<Control>,
        hooks: Arc<SharedHooks>,
    ) {
        self.writing.log.listen(journal, Arc::clone(&live.counts));
        lock(&self.arming.armer).tell(hooks);
        self.stopper = Stopper::Tracer(live.commands.clone());
        self.live = Some(live);
    }

    /// Logs what the tracer has sent, and tells its warnings. Returns whether anything was logged since the last time.
    pub(super) fn take_journal(&mut self, observer: &dyn Observer) -> store::Result<bool> {
        let log = &mut self.writing.log;
        let taken = log.take_journal();
        for message in log.take_warnings() {
            observer.warning(&message.as_str().into());
        }
        taken.map(|()| log.take_news())
    }

    /// Returns the pending requests to make everything so far visible.
    pub(super) fn settling(&self) -> Vec<Sender<()>> {
        let live = self.live.as_ref();
        live.map_or_else(Vec::new, |live| live.settling.try_iter().collect())
    }

    /// Notifies the tracer that modules were loaded or unloaded, and waits until it has set its traps there.
    pub(super) fn tell_modules(&self) {
        let Some(live) = &self.live else {
            return;
        };
        publish(&live.space, &self.arming.modules);
        // If the tracer has ended, there are no traps to set.
        let _ = ask(&live.commands, |tracer| tracer.modules_changed());
    }
}

/// Publishes the modules mapped now.
pub(crate) fn publish(space: &RwLock<Arc<AddressSpace>>, modules: &Modules) {
    let mut space = space
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let hidden = space.hidden().cloned();
    *space = Arc::new(space_of(modules).with_hidden(hidden));
}

/// Returns the modules mapped now, for expressions.
pub(crate) fn space_of(modules: &Modules) -> AddressSpace {
    let mapped = modules.loaded.iter().filter_map(|module| {
        Some(Mapped {
            module: Arc::clone(module.elf.as_ref()?),
            number: module.number,
            bias: module.bias,
            range: module.extent(),
            is_system: module.is_system,
        })
    });
    AddressSpace::new(mapped.collect())
}

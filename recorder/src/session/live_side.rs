//! The recording's end of a live session: what the tracer tells it to write down, and what it tells the tracer.

use std::sync::{
    Arc, RwLock,
    atomic::{AtomicBool, Ordering::Acquire},
};

use crossbeam::channel::{Receiver, Sender};
use debuginfo::{AddressSpace, Mapped};
use store::control::{Control, ExceptionPhase};

use super::{Session, Stopper, lock};
use crate::{
    Exit,
    arm::Modules,
    live::{
        commands::{Commands, ask},
        event_loop::Tracer,
        journal::Counts,
        stops::StopLog,
        tracee::hooks::SharedHooks,
    },
};

/// What connects the two.
pub(crate) struct LiveSide {
    pub commands: Commands,
    pub journal: Receiver<Control>,
    pub counts: Arc<Counts>,
    /// Who waits until readers can see everything up to now.
    pub settling: Receiver<Sender<()>>,
    pub end: Arc<AtomicBool>,
    pub space: Arc<RwLock<Arc<AddressSpace>>>,
    pub stops: Arc<StopLog>,
    /// The last signal that the tracer told of as one that ends the program.
    pub fatal: Option<i32>,
}

impl LiveSide {
    /// Tells whether somebody wants the recording to end and the program to go on.
    pub fn is_to_end(&self) -> bool {
        self.end.load(Acquire)
    }

    /// The program has ended, or is to be left alone from here on: the tracer does its last.
    pub fn end_control(&self, exit: Exit) {
        // Where the tracer has ended already, there is nobody to tell.
        let _ = match exit {
            Exit::Detached => ask(&self.commands, Tracer::detach),
            Exit::Code(_) | Exit::Signal(_) => ask(&self.commands, Tracer::finish),
        };
    }
}

impl Session {
    /// Has the tracer stop the program from here on.
    pub(crate) fn control(&mut self, live: LiveSide, hooks: Arc<SharedHooks>) {
        lock(&self.arming.armer).tell(hooks);
        self.stopper = Stopper::Tracer(live.commands.clone());
        self.live = Some(live);
    }

    /// Writes down what the tracer has sent. Returns whether that was anything.
    pub(super) fn take_journal(&mut self) -> store::Result<bool> {
        let Some(live) = &mut self.live else {
            return Ok(false);
        };
        let mut any = false;
        for control in live.journal.try_iter() {
            if let Control::Exception(told) = &control
                && told.phase == ExceptionPhase::Unhandled
            {
                live.fatal = told.signal.or(live.fatal);
            }
            self.writing.log.append_control(&control)?;
            live.counts.written();
            any = true;
        }
        Ok(any)
    }

    /// Returns who has asked for everything up to now to be made visible.
    pub(super) fn settling(&self) -> Vec<Sender<()>> {
        let live = self.live.as_ref();
        live.map_or_else(Vec::new, |live| live.settling.try_iter().collect())
    }

    /// Tells the tracer that modules came or went, and waits until it has put its traps there.
    pub(super) fn tell_modules(&self) {
        let Some(live) = &self.live else {
            return;
        };
        publish(&live.space, &self.arming.modules);
        // The tracer may have ended: then nothing has to be put anywhere.
        let _ = ask(&live.commands, |tracer| tracer.modules_changed());
    }
}

/// Makes known which modules are mapped now.
pub(crate) fn publish(space: &RwLock<Arc<AddressSpace>>, modules: &Modules) {
    let mut space = space
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let hidden = space.hidden().cloned();
    *space = Arc::new(space_of(modules).with_hidden(hidden));
}

/// Returns the modules that are mapped now, as expressions see them.
pub(crate) fn space_of(modules: &Modules) -> AddressSpace {
    let mapped = modules.loaded.iter().filter_map(|module| {
        Some(Mapped {
            module: Arc::clone(module.elf.as_ref()?),
            number: module.number,
            bias: module.bias,
            range: module.file.range.clone(),
            is_system: module.is_system,
        })
    });
    AddressSpace::new(mapped.collect())
}

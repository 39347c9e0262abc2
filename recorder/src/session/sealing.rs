//! The thread that seals while the program runs, if a core is idle. It keeps its priority: when the recording ends, it ends too.

use std::{
    io,
    path::PathBuf,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release, SeqCst},
        },
    },
    thread,
    time::Duration,
};

use store::seal::{Progress, SealOptions, Sealer};

use super::idle_core::IdleCore;

/// Events that are sealed before the next check whether a core is idle: some 10 ms.
const STEP_EVENTS: u64 = 1 << 16;
/// Bytes of log that may wait for an idle core. With more, sealing competes for the busy ones. 20 million calls in a
/// row fit; a program that never rests does not fill the disk with what could be a twentieth of its size.
const MUCH_BYTES: u64 = 4 << 30;
const LITTLE_BYTES: u64 = 1 << 30;

/// While the program floods the log: the pause of sealing between two checks of how much waits.
const REST: Duration = Duration::from_millis(100);
/// How long to gather log before sealing it: sealing little costs nearly as much as sealing much.
const GATHERING: Duration = Duration::from_millis(20);
/// Number of events to seal in such a check.
const LOOK_EVENTS: u64 = 1;

/// Requests to the sealing thread.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    stop: AtomicBool,
    rest: AtomicBool,
    has_grown: AtomicBool,
    waiting: Mutex<()>,
    changed: Condvar,
}

impl Wanted {
    /// Ends sealing.
    pub fn stop(&self) {
        self.stop.store(true, Release);
        self.tell();
    }

    /// Sets whether the disk and the memory bandwidth are needed for the log.
    pub fn set_rest(&self, rest: bool) {
        self.rest.store(rest, Release);
    }

    /// Notes that there may be something to seal.
    pub fn log_has_grown(&self) {
        if !self.has_grown.swap(true, SeqCst) {
            self.tell();
        }
    }

    fn tell(&self) {
        let _waiting = self.lock();
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the log has grown since the last time, or the end.
    fn wait_for_more(&self) {
        let mut waiting = self.lock();
        while !self.has_grown.load(SeqCst) && !self.stop.load(Acquire) {
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(waiting);
        self.has_grown.store(false, SeqCst);
    }
}

/// Seals as the log grows: if a core is idle, and in any case when much waits. To stop it, also unpark its thread.
pub(super) fn seal_in_background(
    recording: &store::Recording,
    options: SealOptions,
    wanted: &Wanted,
) -> store::Result<Sealer> {
    let mut sealer = Sealer::own(recording, options)?;
    let idle = IdleCore::watch().ok();
    let is_to_stop = || wanted.stop.load(Acquire);
    let mut is_much = false;
    while !is_to_stop() {
        if let Some(idle) = idle.as_ref().filter(|_| !is_much) {
            idle.wait(is_to_stop);
            if is_to_stop() {
                break;
            }
        }
        let rest = wanted.rest.load(Acquire) && !is_much;
        let progress = sealer.step(if rest { LOOK_EVENTS } else { STEP_EVENTS })?;
        let waiting = waiting(&progress);
        is_much = waiting >= if is_much { LITTLE_BYTES } else { MUCH_BYTES };
        if is_much {
            continue;
        }
        if rest {
            thread::park_timeout(REST);
        } else if progress.caught_up {
            thread::park_timeout(GATHERING);
            wanted.wait_for_more();
        }
    }
    Ok(sealer)
}

fn waiting(progress: &Progress) -> u64 {
    progress.bytes_total.saturating_sub(progress.bytes_done)
}

pub(super) fn closed_early() -> store::Error {
    store::Error::Io {
        action: "seal",
        path: PathBuf::new(),
        source: io::Error::other("the sealing thread ended early"),
    }
}

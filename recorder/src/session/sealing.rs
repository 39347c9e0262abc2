//! The thread that seals while the program runs, where a core is idle.

use std::{
    io,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering::Acquire},
    thread,
    time::Duration,
};

use store::seal::{SealOptions, Sealer};

const STEP_EVENTS: u64 = 1 << 18;
/// Bytes of log that may wait for an idle core. With more, sealing takes its share of the busy ones: 20 million calls
/// in a row fit, a program that never rests does not fill the disk with what could be a twentieth of its size.
const MUCH_BYTES: u64 = 4 << 30;
const LITTLE_BYTES: u64 = 1 << 30;

/// Seals as the log grows: where a core is idle, and anyway when much waits.
pub(super) fn seal_in_background(
    recording: &store::Recording,
    options: SealOptions,
    stop: &AtomicBool,
) -> store::Result<Sealer> {
    let mut sealer = Sealer::own(recording, options)?;
    while !stop.load(Acquire) {
        // A thread that has given its priority up does not get it back.
        thread::scope(|scope| {
            let idle = scope.spawn(|| {
                yield_to_others();
                seal_while(&mut sealer, stop, |waiting| waiting < MUCH_BYTES)
            });
            idle.join().unwrap_or_else(|_| Err(closed_early()))
        })?;
        seal_while(&mut sealer, stop, |waiting| waiting > LITTLE_BYTES)?;
    }
    Ok(sealer)
}

fn seal_while(
    sealer: &mut Sealer,
    stop: &AtomicBool,
    go_on: impl Fn(u64) -> bool,
) -> store::Result<()> {
    while !stop.load(Acquire) {
        let progress = sealer.step(STEP_EVENTS)?;
        if !go_on(progress.bytes_total.saturating_sub(progress.bytes_done)) {
            break;
        }
        if progress.caught_up {
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// Lets this thread run only where a core has nothing else to do (sched(7), SCHED_IDLE).
fn yield_to_others() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is ours; without the right to change it, the priority stays as it was.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &none) };
}

pub(super) fn closed_early() -> store::Error {
    store::Error::Io {
        action: "seal",
        path: PathBuf::new(),
        source: io::Error::other("the sealing thread ended early"),
    }
}

//! Signals while every instruction of a program is recorded. Ctrl-C and Ctrl-\ reach the program from the terminal; SIGTERM and
//! SIGHUP are passed on to it.

use std::{
    sync::atomic::{
        AtomicBool, AtomicI32,
        Ordering::{Acquire, Release},
    },
    thread,
    time::Duration,
};

use crate::signals::{self, ChildSignals};

/// How often it is looked whether a signal came.
const PAUSE: Duration = Duration::from_millis(50);

/// Does `work`, which starts a program and stores its process id as soon as it is known. Our handlers are not the program's:
/// executing it resets them.
pub(super) fn passed_on<T>(started: &AtomicI32, work: impl FnOnce() -> T) -> T {
    let found = ChildSignals::watch();
    let is_over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        let passing = scope.spawn(|| {
            while !is_over.load(Acquire) {
                thread::park_timeout(PAUSE);
                let pid = started.load(Acquire);
                let passed = pid > 0 && !is_over.load(Acquire);
                if passed && let Some(signal @ (libc::SIGTERM | libc::SIGHUP)) = signals::take() {
                    signals::send(pid, signal);
                }
            }
        });
        let done = work();
        is_over.store(true, Release);
        passing.thread().unpark();
        done
    });
    found.restore();
    done
}

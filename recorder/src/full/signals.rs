//! Signals while every instruction of a program is recorded. Ctrl-C and Ctrl-\ reach the program from the terminal; SIGTERM and
//! SIGHUP are passed on to it. If it is to end with the recorder's parent, it is killed when it does not end by itself.

use std::{
    os::unix::process::parent_id,
    sync::atomic::{
        AtomicBool, AtomicI32,
        Ordering::{Acquire, Release},
    },
    thread,
    time::{Duration, Instant},
};

use crate::signals::{self, ChildSignals};

/// How often it is looked whether a signal came.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a program may take to end by itself when the recorder's parent has ended.
const GRACE: Duration = Duration::from_secs(1);

/// Does `work`, which starts a program and stores its process id as soon as it is known. The program is killed some time after the
/// end of `parent`, if that is given. Our handlers are not the program's: executing it resets them.
pub(super) fn passed_on<T>(
    (started, parent): (&AtomicI32, Option<u32>),
    work: impl FnOnce() -> T,
) -> T {
    let found = ChildSignals::watch();
    let is_over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        let passing = scope.spawn(|| {
            let (mut orphaned, mut is_killed) = (None, false);
            while !is_over.load(Acquire) {
                thread::park_timeout(PAUSE);
                let pid = started.load(Acquire);
                let passed = pid > 0 && !is_over.load(Acquire);
                if passed && let Some(signal @ (libc::SIGTERM | libc::SIGHUP)) = signals::take() {
                    signals::send(pid, signal);
                }
                let is_orphaned = parent.is_some_and(|parent| parent != parent_id());
                if passed && is_orphaned && !is_killed {
                    let since: &mut Instant = orphaned.get_or_insert_with(Instant::now);
                    is_killed = since.elapsed() >= GRACE;
                    if is_killed {
                        signals::send(pid, libc::SIGKILL);
                    }
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

//! Runs independent pieces of work on all processors and returns the results in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// More threads gain nothing, because memory bandwidth is exhausted.
const MAX_THREADS: usize = 8;

/// Calls `work(&mut state, index)` for each index below `count`. Each thread has a state of its own.
///
/// # Panics
/// Passes on a panic of `work`.
pub(crate) fn map<S, T: Send>(
    count: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = state();
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return done;
            }
            done.push((index, work(&mut state, index)));
        }
    };
    let mut all = if threads <= 1 || count <= 1 {
        run()
    } else {
        thread::scope(|scope| {
            let handles: Vec<_> = (0..threads.min(count)).map(|_| scope.spawn(run)).collect();
            let joined = handles.into_iter().map(|handle| match handle.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.flatten().collect()
        })
    };
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, answer)| answer).collect()
}

/// Returns the number of threads worth starting for `bytes` of debug information.
pub(crate) fn threads_for(bytes: usize) -> usize {
    const BYTES_PER_THREAD: usize = 256 << 10;
    let available = thread::available_parallelism().map_or(1, usize::from);
    available.min(MAX_THREADS).min(bytes / BYTES_PER_THREAD + 1)
}

//! Ctrl-C during a query. Before the first [`Interrupts::catch`] it ends the program, as usual.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use recorder::SignalAction;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

/// How often a display is updated.
const BEAT: Duration = Duration::from_millis(200);

/// The actions of signals that were taken over once. Tokio does that only once, and others may put back the earlier ones.
static CAUGHT: Mutex<BTreeMap<i32, SignalAction>> = Mutex::new(BTreeMap::new());

/// Waits for work that signals may stop.
pub struct Interrupts {
    runtime: Runtime,
    signals: Vec<(i32, Signal)>,
}

impl Interrupts {
    /// Leaves Ctrl-C unchanged: it ends the program.
    ///
    /// # Errors
    /// When the runtime for waiting cannot be made.
    pub fn ignore() -> Result<Interrupts, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| Error::io("wait for answers", source))?;
        Ok(Interrupts {
            runtime,
            signals: Vec::new(),
        })
    }

    /// Takes over Ctrl-C: from now on it stops only what [`Self::wait`] waits for.
    ///
    /// # Errors
    /// When a system call fails.
    pub fn catch() -> Result<Interrupts, Error> {
        Interrupts::catch_all(&[libc::SIGINT])
    }

    /// As [`Self::catch`], for work that leaves something to clean up: SIGTERM stops it, too, and SIGHUP, unless the program was
    /// started with that ignored.
    ///
    /// # Errors
    /// When a system call fails.
    pub fn catch_ends() -> Result<Interrupts, Error> {
        match is_ignored(libc::SIGHUP) {
            true => Interrupts::catch_all(&[libc::SIGINT, libc::SIGTERM]),
            false => Interrupts::catch_all(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]),
        }
    }

    fn catch_all(numbers: &[i32]) -> Result<Interrupts, Error> {
        let mut interrupts = Interrupts::ignore()?;
        let guard = interrupts.runtime.enter();
        let catch = |number: &i32| caught(*number).map(|signal| (*number, signal));
        let signals: std::io::Result<Vec<_>> = numbers.iter().map(catch).collect();
        drop(guard);
        interrupts.signals = signals.map_err(|source| Error::io("catch signals", source))?;
        Ok(interrupts)
    }

    /// Waits until `work` is done.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when Ctrl-C is pressed first, and [`Error::Terminated`] when another signal comes; `work` is then
    /// dropped.
    pub fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Error> {
        self.wait_showing(work, || {})
    }

    /// As [`Self::wait`]; calls `show` repeatedly meanwhile.
    ///
    /// # Errors
    /// As for [`Self::wait`].
    pub fn wait_showing<T>(
        &mut self,
        work: impl Future<Output = T>,
        mut show: impl FnMut(),
    ) -> Result<T, Error> {
        let Interrupts { runtime, signals } = self;
        let interrupted = poll_fn(|context| {
            let mut signals = signals.iter_mut();
            let come = signals.find_map(|(number, signal)| {
                let has_come = signal.poll_recv(context).is_ready();
                has_come.then_some(*number)
            });
            come.map_or(Poll::Pending, Poll::Ready)
        });
        let shown = async {
            loop {
                tokio::time::sleep(BEAT).await;
                show();
            }
        };
        runtime.block_on(async {
            // A signal that comes with the end of the work is not lost.
            tokio::select! {
                biased;
                number = interrupted => Err(match number {
                    libc::SIGINT => Error::Interrupted,
                    signal => Error::Terminated { signal },
                }),
                done = work => Ok(done),
                () = shown => unreachable!("it never ends"),
            }
        })
    }

    /// Discards signals that came outside a wait.
    pub fn forget(&mut self) {
        let Interrupts { runtime, signals } = self;
        runtime.block_on(poll_fn(|context| {
            for (_, signal) in signals.iter_mut() {
                let _ = signal.poll_recv(context);
            }
            Poll::Ready(())
        }));
    }
}

/// Catches a signal, in a runtime of tokio. Who has put back the earlier action takes it over again by this.
///
/// # Errors
/// When a system call fails.
pub fn caught(number: i32) -> std::io::Result<Signal> {
    let signal = signal(SignalKind::from_raw(number))?;
    let mut caught = CAUGHT.lock().unwrap_or_else(PoisonError::into_inner);
    let ours = caught.entry(number);
    ours.or_insert_with(|| SignalAction::now(number)).put_back();
    Ok(signal)
}

/// Returns whether the process was started with a signal ignored, as by `nohup`. Asked before the signal is caught.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_caught_again_after_its_usual_action_was_put_back() {
        let usual = SignalAction::now(libc::SIGUSR2);
        drop(Interrupts::catch_all(&[libc::SIGUSR2]).unwrap());
        usual.put_back();
        assert!(SignalAction::now(libc::SIGUSR2).is_default());
        let _caught = Interrupts::catch_all(&[libc::SIGUSR2]).unwrap();
        assert!(!SignalAction::now(libc::SIGUSR2).is_default());
    }
}

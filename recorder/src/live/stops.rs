//! What any thread may read of a session without asking the tracer: its stops, in order, whether they were shown, and
//! its end.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Exit,
    live::{
        model::{Display, Displayed, ProbeView, Reason, Stop, Tid, Waited},
        probes::failures::Failures,
    },
};

/// Number of stops kept for late readers. Of older stops only those not shown are kept.
const KEPT_STOPS: usize = 256;

/// A stop, and whether it was shown.
#[derive(Debug)]
struct Posted {
    stop: Stop,
    is_shown: bool,
}

#[derive(Debug, Default)]
struct Written {
    newest: u64,
    stops: Vec<Posted>,
    ended: Option<Exit>,
    /// The end as seen by the tracer: for an attached process there is no other source.
    seen: Option<Exit>,
    /// The final state of the probes, left by the tracer.
    probes: Vec<ProbeView>,
    displays: Vec<Display>,
    /// How often waiting threads were woken to check again.
    woken: u64,
    /// Threads that ended on their way to a goal, with the number of the newest stop then.
    lost: Vec<(Tid, u64)>,
}

/// The stops of a session, shared by the tracer and the threads that wait for stops.
#[derive(Debug, Default)]
pub(crate) struct StopLog {
    pub failures: Failures,
    written: Mutex<Written>,
    changed: Condvar,
}

impl StopLog {
    /// Numbers a stop and announces it.
    pub fn post(
        &self,
        tid: Tid,
        reason: Reason,
        pc: u64,
        calls_to_come: usize,
        displayed: Vec<Displayed>,
    ) -> Stop {
        let mut written = self.lock();
        written.newest += 1;
        let stop = Stop {
            number: written.newest,
            tid,
            reason,
            pc,
            calls_to_come,
            displayed,
        };
        if written.stops.len() >= KEPT_STOPS
            && let Some(oldest) = written.stops.iter().position(|posted| posted.is_shown)
        {
            written.stops.remove(oldest);
        }
        written.stops.push(Posted {
            // It adds nothing to the stop that it accompanies.
            is_shown: stop.reason == Reason::AllThreads,
            stop: stop.clone(),
        });
        self.changed.notify_all();
        stop
    }

    /// Marks a stop as shown, even if it can no longer be shown.
    pub fn mark_shown(&self, number: u64) {
        let mut written = self.lock();
        let mut stops = written.stops.iter_mut();
        if let Some(posted) = stops.find(|posted| posted.stop.number == number) {
            posted.is_shown = true;
        }
    }

    pub fn is_shown(&self, number: u64) -> bool {
        let written = self.lock();
        let mut stops = written.stops.iter();
        stops
            .find(|posted| posted.stop.number == number)
            .is_none_or(|posted| posted.is_shown)
    }

    /// Keeps the final state of the probes and displays.
    pub fn keep(&self, probes: Vec<ProbeView>, displays: Vec<Display>) {
        let mut written = self.lock();
        (written.probes, written.displays) = (probes, displays);
    }

    /// Returns the final list of displays.
    pub fn kept_displays(&self) -> Vec<Display> {
        self.lock().displays.clone()
    }

    /// Returns the final state of the probes.
    pub fn kept_probes(&self) -> Vec<ProbeView> {
        self.lock().probes.clone()
    }

    /// Changes the final state of the probes: they are set again when the program is started again.
    pub fn change_probes<T>(&self, change: impl FnOnce(&mut Vec<ProbeView>) -> T) -> T {
        change(&mut self.lock().probes)
    }

    /// Notes a thread that has ended on its way to a goal.
    pub fn lose(&self, tid: Tid) {
        let mut written = self.lock();
        if written.lost.len() == KEPT_STOPS {
            written.lost.remove(0);
        }
        let newest = written.newest;
        written.lost.push((tid, newest));
        self.changed.notify_all();
    }

    /// Notes how the program ended, as seen by the tracer.
    pub fn saw_end(&self, exit: Exit) {
        self.lock().seen.get_or_insert(exit);
    }

    /// Returns how the program ended, as seen by the tracer.
    pub fn seen(&self) -> Option<Exit> {
        self.lock().seen
    }

    /// Announces that the program has ended, or was detached.
    pub fn end(&self, exit: Exit) {
        let mut written = self.lock();
        let exit = match exit {
            Exit::Detached => written.seen.unwrap_or(exit),
            Exit::Code(_) | Exit::Signal(_) => exit,
        };
        written.ended.get_or_insert(exit);
        self.changed.notify_all();
    }

    pub fn ended(&self) -> Option<Exit> {
        self.lock().ended
    }

    pub fn newest(&self) -> u64 {
        self.lock().newest
    }

    /// Wakes waiting threads: a thread is where it was before, or the wait is no longer needed.
    pub fn wake(&self) {
        self.lock().woken += 1;
        self.changed.notify_all();
    }

    /// Returns how often waiting threads were woken.
    pub fn woken(&self) -> u64 {
        self.lock().woken
    }

    /// Waits for a stop numbered above `after` that does not merely accompany another, or for the end. With `moved`,
    /// also waits for that thread to end before its goal; with `woken`, for a higher number of wakes than that.
    pub fn wait(
        &self,
        after: u64,
        moved: Option<Tid>,
        woken: Option<u64>,
        timeout: Duration,
    ) -> Waited {
        let deadline = Instant::now() + timeout;
        let mut written = self.lock();
        loop {
            let mut stops = written.stops.iter().map(|posted| &posted.stop);
            let stop = stops.find(|stop| stop.number > after && stop.reason != Reason::AllThreads);
            if let Some(stop) = stop {
                return Waited::Stopped(stop.clone());
            }
            if let Some(exit) = written.ended {
                return Waited::Ended(exit);
            }
            let is_lost = |lost: &(Tid, u64)| Some(lost.0) == moved && lost.1 >= after;
            if let Some((tid, _)) = written.lost.iter().find(|lost| is_lost(lost)) {
                return Waited::ThreadEnded(*tid);
            }
            if woken.is_some_and(|woken| woken < written.woken) {
                return Waited::Woken;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Waited::TimedOut;
            }
            written = self
                .changed
                .wait_timeout(written, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

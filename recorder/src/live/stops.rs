//! What everybody may know of a session without asking the tracer: its stops, in order, whether somebody was shown them, and
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

/// Stops are kept for those who ask late; of the older ones only those are that nobody was shown.
const KEPT_STOPS: usize = 256;

/// A stop, and whether somebody was shown it.
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
    /// What the tracer saw of the end; whoever attached to a process learns it from nobody else.
    seen: Option<Exit>,
    /// What the tracer has left behind of the probes.
    probes: Vec<ProbeView>,
    displays: Vec<Display>,
    /// How often those who wait were woken to look again.
    woken: u64,
    /// Threads that ended on their way somewhere, with the number of the newest stop then.
    lost: Vec<(Tid, u64)>,
}

/// The stops of a session, for the tracer and for those who wait for them.
#[derive(Debug, Default)]
pub(crate) struct StopLog {
    /// Conditions and messages that failed.
    pub failures: Failures,
    written: Mutex<Written>,
    changed: Condvar,
}

impl StopLog {
    /// Numbers a stop and tells everybody.
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
            // It says nothing that the stop which it accompanies does not say.
            is_shown: stop.reason == Reason::AllThreads,
            stop: stop.clone(),
        });
        self.changed.notify_all();
        stop
    }

    /// Somebody was shown a stop, or nobody can be any more.
    pub fn mark_shown(&self, number: u64) {
        let mut written = self.lock();
        let mut stops = written.stops.iter_mut();
        if let Some(posted) = stops.find(|posted| posted.stop.number == number) {
            posted.is_shown = true;
        }
    }

    /// Tells whether somebody was shown a stop.
    pub fn is_shown(&self, number: u64) -> bool {
        let written = self.lock();
        let mut stops = written.stops.iter();
        stops
            .find(|posted| posted.stop.number == number)
            .is_none_or(|posted| posted.is_shown)
    }

    /// LogpointCapture how the probes were in the end, and what was displayed.
    pub fn keep(&self, probes: Vec<ProbeView>, displays: Vec<Display>) {
        let mut written = self.lock();
        (written.probes, written.displays) = (probes, displays);
    }

    /// Returns what was displayed in the end.
    pub fn kept_displays(&self) -> Vec<Display> {
        self.lock().displays.clone()
    }

    /// Returns how the probes were in the end.
    pub fn kept_probes(&self) -> Vec<ProbeView> {
        self.lock().probes.clone()
    }

    /// A thread that was to get somewhere has ended on the way.
    pub fn lose(&self, tid: Tid) {
        let mut written = self.lock();
        if written.lost.len() == KEPT_STOPS {
            written.lost.remove(0);
        }
        let newest = written.newest;
        written.lost.push((tid, newest));
        self.changed.notify_all();
    }

    /// The tracer has seen how the program ended.
    pub fn saw_end(&self, exit: Exit) {
        self.lock().seen.get_or_insert(exit);
    }

    /// Tells everybody that the program has ended, or was left.
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

    /// Has those who wait look again: a thread stands where it stood before, or nobody wants to know any more.
    pub fn wake(&self) {
        self.lock().woken += 1;
        self.changed.notify_all();
    }

    /// Returns how often that was so.
    pub fn woken(&self) -> u64 {
        self.lock().woken
    }

    /// Waits for a stop numbered above `after` that is not a mere companion of another one, or for the end; with `moved`
    /// also for that thread to end before it gets where it was to get, with `woken` for more wakes than that.
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

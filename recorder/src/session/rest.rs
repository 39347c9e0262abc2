//! Decides how long the recorder sleeps between two passes over the rings.
//!
//! The longer the rings have been empty, the longer the sleep. A long sleep can be ended: by the program's threads
//! before a ring is full and when they wait for an answer, and by the tracer with each event. Short sleeps time out, so
//! that no thread has to make a system call while the program is busy.

use std::{
    thread,
    time::{Duration, Instant},
};

use agent::shared::Shared;

use crate::process::status::may_sleep;

/// The first sleep after a pass that found something.
const SHORTEST: Duration = Duration::from_micros(20);
/// Longer sleeps can be ended early.
const SHORT: Duration = Duration::from_millis(1);
/// Maximum sleep while the program may write, and thus the delay until its records can be read.
const LONGEST: Duration = Duration::from_millis(50);
/// Maximum sleep once nothing was written for [`QUIET`].
const LONGEST_QUIET: Duration = Duration::from_millis(250);
/// Maximum sleep if the program's threads cannot end it and wait for room, once nothing was written for [`QUIET`].
const LONGEST_ALONE: Duration = Duration::from_millis(10);
const QUIET: Duration = Duration::from_secs(2);
/// How long the answer that no thread is in a sandbox stays valid.
const BELIEVED: Duration = Duration::from_secs(5);

/// What a pass has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Found {
    Nothing,
    /// Something that was handled and says nothing about what follows.
    Something,
    Records,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Something is due after this time.
    pub at_most: Option<Duration>,
    /// No thread of the program runs.
    pub is_standing: bool,
    /// Threads wait if there is no room.
    pub may_wait: bool,
    /// Threads may be in a sandbox without any sign of it.
    pub is_opaque: bool,
}

/// Decides when the next pass is due.
pub(super) struct Rest<'a> {
    shared: &'a Shared,
    pid: i32,
    /// The next sleep, unless something is found before.
    pause: Duration,
    wrote: Instant,
    is_woken_by_program: bool,
    asked: Option<Instant>,
}

impl<'a> Rest<'a> {
    pub fn new(shared: &'a Shared, pid: i32) -> Self {
        Self {
            shared,
            pid,
            pause: Duration::ZERO,
            wrote: Instant::now(),
            is_woken_by_program: false,
            asked: None,
        }
    }

    /// Must be called before each pass: anything that comes after this call ends the sleep.
    pub fn before_look(&mut self, bounds: Bounds) {
        if self.pause > SHORT {
            self.is_woken_by_program = !bounds.is_opaque && self.is_outside_of_sandboxes();
            self.shared.about_to_sleep(self.is_woken_by_program);
        }
    }

    /// Sleeps if there is nothing to do.
    pub fn after_look(&mut self, found: Found, bounds: Bounds) {
        match found {
            Found::Records => {
                self.shared.stay_awake();
                self.wrote = Instant::now();
                self.pause = Duration::ZERO;
            }
            Found::Something => {
                self.shared.stay_awake();
                self.pause = self.pause.min(SHORT);
            }
            Found::Nothing => self.sleep(bounds),
        }
    }

    fn sleep(&mut self, bounds: Bounds) {
        let longest = self.longest(bounds);
        let at_most = bounds.at_most.unwrap_or(Duration::MAX);
        let pause = self.pause.clamp(SHORTEST, longest).min(at_most);
        if self.pause <= SHORT {
            thread::sleep(pause);
            self.pause = (pause * 2).max(SHORTEST);
            return;
        }
        let is_endless = bounds.is_standing && bounds.at_most.is_none() && pause == longest;
        let is_woken = self.shared.sleep((!is_endless).then_some(pause));
        self.pause = match is_woken {
            true => SHORT,
            false => longest.min(pause * 2),
        };
    }

    /// Returns the maximum sleep. If a burst could be lost, the rings are checked as often as usual.
    fn longest(&self, bounds: Bounds) -> Duration {
        let is_quiet = self.wrote.elapsed() > QUIET;
        let is_woken = self.is_woken_by_program || bounds.is_standing;
        match (is_woken, is_quiet) {
            (true, true) => LONGEST_QUIET,
            (true, false) => LONGEST,
            (false, true) if bounds.may_wait => LONGEST_ALONE,
            (false, _) => SHORT,
        }
    }

    /// Returns whether all threads that have a ring may make any system call, as far as known.
    fn is_outside_of_sandboxes(&mut self) -> bool {
        if self.asked.is_some_and(|asked| asked.elapsed() < BELIEVED) {
            return self.is_woken_by_program;
        }
        self.asked = Some(Instant::now());
        self.shared
            .taken()
            .map(|index| self.shared.tenant(index).tid)
            .filter(|tid| *tid != 0)
            .all(|tid| may_sleep(self.pid, tid))
    }
}

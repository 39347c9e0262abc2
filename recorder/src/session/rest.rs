//! How long the recorder sleeps between two looks into the rings.
//!
//! The longer nothing was there, the longer. Whoever has something for it ends a long sleep: the program's threads before a ring is
//! full and when they wait for an answer, the tracer with each event. Short ones end by themselves, so that nobody has to make a
//! system call while the program is busy.

use std::{
    thread,
    time::{Duration, Instant},
};

use agent::shared::Shared;

use crate::process::status::may_sleep;

/// The first sleep after something was there.
const SHORTEST: Duration = Duration::from_micros(20);
/// Longer sleeps can be ended.
const SHORT: Duration = Duration::from_millis(1);
/// The longest sleep while the program may write: what it writes can be read so much later.
const LONGEST: Duration = Duration::from_millis(50);
/// The same once nothing was written for [`QUIET`].
const LONGEST_QUIET: Duration = Duration::from_millis(250);
/// The longest sleep where the program's threads cannot end it and wait for room, once nothing was written for [`QUIET`].
const LONGEST_ALONE: Duration = Duration::from_millis(10);
const QUIET: Duration = Duration::from_secs(2);
/// How long it is believed that no thread is in a sandbox.
const BELIEVED: Duration = Duration::from_secs(5);

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Found {
    Nothing,
    /// Something that is dealt with; it says nothing of what comes.
    Something,
    /// Records.
    Records,
}

/// What bounds a sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Something is to be done then.
    pub at_most: Option<Duration>,
    /// No thread of the program runs.
    pub is_standing: bool,
    /// Threads wait where there is no room.
    pub may_wait: bool,
    /// Threads may be in a sandbox although nothing tells.
    pub is_opaque: bool,
}

/// When to look again.
pub(super) struct Rest<'a> {
    shared: &'a Shared,
    pid: i32,
    /// The next sleep, if nothing is found before.
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

    /// To be called before each look: what comes after it ends the sleep.
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

    /// Where a burst would be lost, the rings are looked at as often as ever.
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

    /// Tells whether all threads that have a ring may make any system call, as far as is known.
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

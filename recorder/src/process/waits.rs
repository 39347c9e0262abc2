//! How long threads waited for a processor.
//!
//! The kernel counts it (`schedstat` in proc(5)), but forgets the count as soon as a thread is gone. So the recorder looks
//! again and again while a thread lives, and the runtime notes at a thread's end how long it has lived and run: a thread that
//! never slept has waited for the rest. If it slept, and much of its life was not looked at, its waits are not known.

use std::collections::BTreeMap;

use agent::shared::Lifetime;

use crate::{clock, stop::procfs};

/// The waits of a thread are not known if they may be longer than what was seen of them by more than this part of its life.
const PART_UNSEEN: u64 = 10;
/// The thread is looked at again after this part of its life, and not sooner than that, in ns.
const PART_BETWEEN: u64 = 16;
const BETWEEN_NS: u64 = 5_000_000;

/// The threads that have a ring, by its number.
#[derive(Debug)]
pub struct ProcessorWaits {
    threads: BTreeMap<usize, Wait>,
    /// When this pass over the rings began, and the one before it, in ns.
    pass_ns: u64,
    before_ns: u64,
}

/// What was seen of a thread. Times are in ns of the monotonic clock.
#[derive(Clone, Debug)]
struct Wait {
    tid: u32,
    /// Its first record is not older.
    since_ns: u64,
    /// When it was looked at first and last, and how long it had waited by then; `None`: the kernel does not count.
    looks: Option<(Look, Look)>,
    /// The program had ended at the last look.
    is_last: bool,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    at_ns: u64,
    waited_ns: u64,
}

impl ProcessorWaits {
    /// Begins at this time.
    pub fn new(now_ns: u64) -> Self {
        Self {
            threads: BTreeMap::new(),
            pass_ns: now_ns,
            before_ns: now_ns,
        }
    }

    /// Begins a pass: a ring that is new in it was taken after the last one began.
    pub fn begin_pass(&mut self, now_ns: u64) {
        self.before_ns = std::mem::replace(&mut self.pass_ns, now_ns);
    }

    /// Returns whether it is time to look at the thread of a ring. The longer it lives, the less often: what happens after the
    /// last look stays a small part of its life.
    pub fn is_due(&self, ring: usize) -> bool {
        let Some(wait) = self.threads.get(&ring) else {
            return true;
        };
        wait.looks.is_some_and(|(_, last)| {
            let life_ns = last.at_ns.saturating_sub(wait.since_ns);
            let after_ns = BETWEEN_NS.max(life_ns / PART_BETWEEN);
            self.pass_ns.saturating_sub(last.at_ns) >= after_ns
        })
    }

    /// Looks at the thread of a ring. A thread that is gone changes nothing.
    pub fn look(&mut self, pid: i32, ring: usize, tid: u32) {
        let text = procfs::text(format!("/proc/{pid}/task/{tid}/schedstat"));
        let since_ns = self.before_ns;
        let wait = self.threads.entry(ring).or_insert(Wait {
            tid,
            since_ns,
            looks: None,
            is_last: false,
        });
        let Some(waited_ns) = text.ok().and_then(|text| waited_ns(&text)) else {
            return;
        };
        let at_ns = clock::monotonic_ns();
        let now = Look { at_ns, waited_ns };
        wait.looks = Some((wait.looks.map_or(now, |(first, _)| first), now));
    }

    /// Looks at the thread of a ring when the program has ended: what comes later is in no call.
    pub fn look_at_last(&mut self, pid: i32, ring: usize, tid: u32) {
        let before_ns = self.threads.get(&ring).and_then(Wait::last_ns);
        self.look(pid, ring, tid);
        if let Some(wait) = self.threads.get_mut(&ring) {
            wait.is_last |= wait.last_ns() != before_ns;
        }
    }

    /// Forgets the thread of a ring, which has ended, and returns how long it waited in all, in ns, if that is known.
    pub fn end(&mut self, ring: usize, lifetime: Option<Lifetime>, now_ns: u64) -> Option<u64> {
        self.threads.remove(&ring)?.ns(lifetime, now_ns)
    }

    /// Returns how long each of the others waited, if that is known. `lifetime`: what the thread of a ring has noted.
    pub fn rest(
        &self,
        lifetime: impl Fn(usize) -> Option<Lifetime>,
        now_ns: u64,
    ) -> impl Iterator<Item = (u32, u64)> {
        self.threads
            .iter()
            .filter_map(move |(ring, wait)| Some((wait.tid, wait.ns(lifetime(*ring), now_ns)?)))
    }
}

impl Wait {
    fn last_ns(&self) -> Option<u64> {
        self.looks.map(|(_, last)| last.at_ns)
    }

    /// Returns how long it waited, in ns; `None`: too little of its life was seen.
    fn ns(&self, lifetime: Option<Lifetime>, now_ns: u64) -> Option<u64> {
        let idle_ns = lifetime.map(|life| life.passed_ns.saturating_sub(life.ran_ns));
        if lifetime.is_some_and(|life| life.sleeps == 0) {
            return idle_ns;
        }
        let (seen_ns, looked_ns) = self.looks.map_or((0, 0), |(first, last)| {
            let seen_ns = last.waited_ns.saturating_sub(first.waited_ns);
            (seen_ns, last.at_ns.saturating_sub(first.at_ns))
        });
        let end_ns = self.last_ns().filter(|_| self.is_last).unwrap_or(now_ns);
        let lived_ns = end_ns.saturating_sub(self.since_ns);
        let life_ns = lifetime.map_or(lived_ns, |life| life.passed_ns);
        let not_looked_ns = life_ns.saturating_sub(looked_ns);
        let unseen_ns = idle_ns.map_or(not_looked_ns, |idle_ns| {
            not_looked_ns.min(idle_ns.saturating_sub(seen_ns))
        });
        (unseen_ns <= life_ns / PART_UNSEEN).then_some(seen_ns)
    }
}

/// Reads the second number of the file: the time in which the thread was ready and did not run. A kernel that does not count
/// has a third one, how often the thread got a processor, of 0.
fn waited_ns(text: &str) -> Option<u64> {
    let mut numbers = text.split_ascii_whitespace().skip(1);
    let waited_ns = numbers.next()?.parse().ok()?;
    numbers.next().filter(|times| *times != "0")?;
    Some(waited_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that lived from 1000 on and was looked at at these times, with what it had waited by then.
    fn seen(first: (u64, u64), last: (u64, u64)) -> Wait {
        let look = |(at_ns, waited_ns)| Look { at_ns, waited_ns };
        Wait {
            tid: 7,
            since_ns: 1000,
            looks: Some((look(first), look(last))),
            is_last: false,
        }
    }

    fn lifetime(passed_ns: u64, ran_ns: u64, sleeps: u64) -> Option<Lifetime> {
        Some(Lifetime {
            passed_ns,
            ran_ns,
            sleeps,
        })
    }

    #[test]
    fn the_kernels_count_is_read_if_there_is_one() {
        assert_eq!(waited_ns("77697 2901615 2\n"), Some(2_901_615));
        assert_eq!(waited_ns("77697 0 2\n"), Some(0));
        assert_eq!(waited_ns("0 0 0\n"), None);
        assert_eq!(waited_ns(""), None);
        let (pid, tid) = (std::process::id(), std::process::id());
        let mut waits = ProcessorWaits::new(clock::monotonic_ns());
        assert!(waits.is_due(3));
        waits.look(pid.cast_signed(), 3, tid);
        assert!(!waits.is_due(3) && waits.is_due(4));
        let last = waits.threads[&3].last_ns().expect("it was looked at");
        waits.begin_pass(last + BETWEEN_NS);
        assert!(waits.is_due(3));
        waits.look_at_last(pid.cast_signed(), 3, tid);
        assert!(waits.threads[&3].is_last);
        waits.end(3, None, clock::monotonic_ns());
        assert!(waits.is_due(3));
    }

    #[test]
    fn a_thread_that_never_slept_waited_when_it_did_not_run() {
        let once = seen((1500, 40), (1500, 40));
        assert_eq!(
            once.ns(lifetime(250_000, 58_000, 0), 300_000),
            Some(192_000)
        );
        // As many as it slept are not known.
        assert_eq!(once.ns(lifetime(250_000, 58_000, 1), 300_000), None);
    }

    #[test]
    fn waits_are_known_if_most_of_the_life_was_seen() {
        let most = seen((1100, 40), (95_000, 30_040));
        assert_eq!(most.ns(None, 101_000), Some(30_000));
        assert_eq!(most.ns(None, 151_000), None);
        // It ran all the time that was not looked at.
        assert_eq!(
            most.ns(lifetime(150_000, 119_000, 5), 151_000),
            Some(30_000)
        );
        assert_eq!(most.ns(lifetime(150_000, 90_000, 5), 151_000), None);
        // The program had ended, so what came later is nobody's.
        let last = Wait {
            is_last: true,
            ..most
        };
        assert_eq!(last.ns(None, 151_000), Some(30_000));
    }

    #[test]
    fn a_kernel_that_does_not_count_knows_no_waits() {
        let never = Wait {
            looks: None,
            ..seen((0, 0), (0, 0))
        };
        assert_eq!(never.ns(None, 9000), None);
        assert_eq!(never.ns(lifetime(8000, 7990, 2), 9000), Some(0));
        assert_eq!(never.ns(lifetime(8000, 5000, 2), 9000), None);
        assert_eq!(never.ns(lifetime(8000, 5000, 0), 9000), Some(3000));
    }
}

//! Who held which lock when, and who waited for it: the calls of lock functions in the order in which they took effect.
//!
//! A lock is held from the leave of the call that locked it to the enter of the call that unlocks it. A locking call had to
//! wait if another thread held the lock in an excluding mode at any moment between the enter and the leave of the call. Of
//! Rust's locks only the calls that have to wait are known; a thread that called `wake` meanwhile had held the lock.

use rustc_hash::FxHashMap;

use super::kinds::{Act, Kind};
use crate::callers::Call;

/// pthread's error for a lock that another thread holds.
const EBUSY: u32 = 16;
const EAGAIN: u32 = 11;
const ETIMEDOUT: u32 = 110;
/// The lock is acquired, but its last owner died holding it.
const EOWNERDEAD: u32 = 130;

/// A call of a lock function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockCall {
    /// The call.
    pub call: Call,
    /// Its act.
    pub act: Act,
    /// The lock.
    pub lock: u64,
    /// Its path.
    pub node: u32,
}

/// The outcome of a wish for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The thread got the lock, or the event that it waited for.
    Acquired,
    /// Somebody else had it.
    Busy,
    /// The time was over.
    TimedOut,
    /// The function returned this error.
    Failed(u32),
    /// The thread was still waiting when the recording ended.
    Waiting,
    /// The call was left without a return.
    Left,
}

/// An event and its time in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The event.
    pub seq: u64,
    /// Its time.
    pub ts_ns: i64,
}

/// A lock that a thread wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The lock's address.
    pub lock: u64,
    /// Its kind.
    pub kind: Kind,
    /// The thread; 0 if unknown.
    pub tid: u32,
    /// The enter event of the call that wanted it, and when it began to want it.
    pub begun: Point,
    /// When the call ended.
    pub ended: Option<Point>,
    /// When it gave it back.
    pub released: Option<Point>,
    /// A thread that held it meanwhile, so that this one had to wait.
    pub owner: Option<u32>,
    /// Its outcome.
    pub outcome: Outcome,
    /// Whether it had to wait; `None` if unknown.
    pub contended: Option<bool>,
    /// The thread had this lock already.
    pub is_again: bool,
    /// The time of the unlock is unknown: it is one of Rust's locks, or another thread has taken it since without a recorded
    /// unlock.
    pub is_open: bool,
    /// The function that wanted it, and the path to the call.
    pub by: (u32, u32),
}

impl Wish {
    /// Returns when it had it.
    #[must_use]
    pub fn acquired(&self) -> Option<Point> {
        self.ended.filter(|_| self.outcome == Outcome::Acquired)
    }

    /// Returns how long it waited, successfully or until its timeout; `None` if unknown.
    #[must_use]
    pub fn wait_ns(&self) -> Option<i64> {
        let is_over = matches!(self.outcome, Outcome::Acquired | Outcome::TimedOut);
        // A condition's mutex is reacquired at an unrecorded moment.
        let is_known = self.contended.is_some() || !self.kind.is_held();
        let ended = self.ended.filter(|_| is_over && is_known)?;
        Some(ended.ts_ns - self.begun.ts_ns)
    }

    /// Returns whether the thread held the lock when the recording ended.
    #[must_use]
    pub fn is_held_at_end(&self) -> bool {
        let is_taken = self.acquired().is_some() && self.released.is_none();
        is_taken && self.kind.is_held() && !self.is_open
    }

    /// Returns how long it held the lock; `None` if unknown.
    #[must_use]
    pub fn hold_ns(&self) -> Option<i64> {
        Some(self.released?.ts_ns - self.acquired()?.ts_ns)
    }

    /// Returns how long it held the lock, up to the recording's end at `until_ns` if it held it then; `None` if unknown.
    #[must_use]
    pub fn hold_until_ns(&self, until_ns: i64) -> Option<i64> {
        match self.acquired() {
            Some(taken) if self.is_held_at_end() => Some(until_ns - taken.ts_ns),
            _ => self.hold_ns(),
        }
    }
}

/// What happens with a lock at one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Gives,
    Acquires,
    Begins,
}

/// The state of a lock.
#[derive(Debug, Default)]
struct Lock {
    /// Wishes that were fulfilled and are not over.
    held: Vec<usize>,
    /// Those that wait.
    waiting: Vec<usize>,
}

/// Follows the locks through the calls.
#[derive(Default)]
struct Holds {
    wishes: Vec<Wish>,
    locks: FxHashMap<u64, Lock>,
    /// Wishes of calls that have begun, by the calls.
    begun: FxHashMap<usize, usize>,
}

/// Returns all wishes in the order in which they began. `calls` may be in any order.
#[must_use]
pub fn wishes(calls: &[LockCall]) -> Vec<Wish> {
    let mut steps: Vec<(u64, Step, usize)> = Vec::with_capacity(calls.len() * 2);
    for (index, LockCall { call, act, .. }) in calls.iter().enumerate() {
        let begins = match act {
            Act::Gives | Act::RustGives | Act::FutexWakes => Step::Gives,
            _ => Step::Begins,
        };
        steps.push((call.start, begins, index));
        if let (Some(end), Step::Begins) = (call.end, begins) {
            steps.push((end, Step::Acquires, index));
        }
    }
    steps.sort_unstable();
    let mut holds = Holds::default();
    for (_, step, index) in steps {
        let made = &calls[index];
        match step {
            Step::Gives => holds.gives(made),
            Step::Begins => holds.begins(made, index),
            Step::Acquires => holds.ends(made, index),
        }
    }
    let mut wishes = holds.wishes;
    wishes.sort_by_key(|wish| (wish.begun.seq, wish.kind));
    wishes
}

impl Holds {
    fn gives(&mut self, made: &LockCall) {
        let LockCall {
            call, act, lock, ..
        } = made;
        let (lock, at) = (
            *lock,
            Point {
                seq: call.start,
                ts_ns: call.ts_ns,
            },
        );
        if *act != Act::Gives {
            // Writers wait at the second word of Rust's RwLock.
            for lock in [lock, lock.wrapping_sub(4)] {
                self.wakes(lock, call.tid);
            }
            return;
        }
        // A failed unlock (of another thread's lock) releases nothing.
        if call.rax.is_none_or(|error| error as u32 == 0) {
            self.release(lock, call.tid, at);
        }
    }

    /// A thread that wakes the waiters of one of Rust's locks has just unlocked it.
    fn wakes(&mut self, lock: u64, tid: u32) {
        let waiting = self.locks.get(&lock).map(|lock| lock.waiting.clone());
        for wish in waiting.unwrap_or_default() {
            if self.wishes[wish].is_open {
                self.was_kept_out(wish, tid);
            }
        }
    }

    /// The thread releases its latest hold of this lock; without one, the hold of the thread that keeps all others out: the C
    /// library lets a thread unlock another one's lock.
    fn release(&mut self, lock: u64, tid: u32, at: Point) {
        let Some(lock) = self.locks.get_mut(&lock) else {
            return;
        };
        let wishes = &mut self.wishes;
        let own = lock.held.iter().rposition(|held| wishes[*held].tid == tid);
        let only = || {
            lock.held
                .iter()
                .position(|held| wishes[*held].kind != Kind::Read)
        };
        if let Some(given) = own.or_else(only) {
            wishes[lock.held.remove(given)].released = Some(at);
        }
    }

    fn begins(&mut self, made: &LockCall, index: usize) {
        let LockCall {
            call,
            act,
            lock,
            node,
        } = made;
        let begun = Point {
            seq: call.start,
            ts_ns: call.ts_ns,
        };
        let kind = match act {
            Act::Takes(kind) | Act::Tries(kind) | Act::RustTakes(kind) => *kind,
            Act::FutexWaits => Kind::Futex,
            _ => Kind::Condition,
        };
        if *act == Act::Waits {
            self.release(call.args[1], call.tid, begun);
        }
        let is_rust = matches!(act, Act::RustTakes(_));
        let wish = self.wishes.len();
        self.begun.insert(index, wish);
        self.wishes.push(Wish {
            lock: *lock,
            kind,
            tid: call.tid,
            begun,
            ended: None,
            released: None,
            owner: None,
            outcome: Outcome::Waiting,
            contended: (kind.is_held()).then_some(is_rust),
            is_again: false,
            is_open: is_rust,
            by: (call.function, *node),
        });
        let lock = self.locks.entry(*lock).or_default();
        lock.waiting.push(wish);
        let holders: Vec<usize> = lock.held.clone();
        for held in holders {
            let held = self.wishes[held];
            self.wishes[wish].is_again |= held.tid == call.tid;
            if held.tid != call.tid && held.kind.keeps_out(kind) {
                self.was_kept_out(wish, held.tid);
            }
        }
    }

    fn was_kept_out(&mut self, wish: usize, by: u32) {
        let wish = &mut self.wishes[wish];
        if wish.tid != by && wish.kind.is_held() {
            wish.owner.get_or_insert(by);
            wish.contended = Some(true);
        }
    }

    fn ends(&mut self, made: &LockCall, index: usize) {
        let LockCall {
            call,
            act,
            lock,
            node,
        } = made;
        let (Some(wish), Some(seq), Some(ts_ns)) =
            (self.begun.remove(&index), call.end, call.end_ns())
        else {
            return;
        };
        let at = Point { seq, ts_ns };
        let address = *lock;
        if let Some(lock) = self.locks.get_mut(&address) {
            lock.waiting.retain(|waiting| *waiting != wish);
        }
        let kind = self.wishes[wish].kind;
        let outcome = outcome(call, *act);
        self.wishes[wish].outcome = outcome;
        self.wishes[wish].ended = Some(at);
        let is_held = outcome == Outcome::Acquired && kind.is_held();
        if is_held && !self.wishes[wish].is_open {
            self.holds(address, wish);
        }
        if *act == Act::Waits && outcome != Outcome::Left {
            let mutex = self.wishes.len();
            self.wishes.push(Wish {
                lock: call.args[1],
                kind: Kind::Mutex,
                tid: call.tid,
                begun: Point {
                    seq: call.start,
                    ts_ns,
                },
                ended: Some(at),
                released: None,
                owner: None,
                outcome: Outcome::Acquired,
                contended: None,
                is_again: false,
                is_open: false,
                by: (call.function, *node),
            });
            self.holds(call.args[1], mutex);
        }
    }

    /// A thread has the lock: those that it excludes no longer have it. They died, or their unlock was not recorded.
    fn ends_others(&mut self, address: u64, tid: u32, kind: Kind) {
        let wishes = &mut self.wishes;
        let lock = self.locks.entry(address).or_default();
        lock.held.retain(|held| {
            let held = &mut wishes[*held];
            let is_over = held.tid != tid && held.kind.keeps_out(kind);
            held.is_open |= is_over;
            !is_over
        });
    }

    /// The wish is fulfilled: other waiters now wait for this thread.
    fn holds(&mut self, address: u64, wish: usize) {
        let Wish { tid, kind, .. } = self.wishes[wish];
        self.ends_others(address, tid, kind);
        let lock = self.locks.entry(address).or_default();
        lock.held.push(wish);
        let waiting = lock.waiting.clone();
        for other in waiting {
            if kind.keeps_out(self.wishes[other].kind) {
                self.was_kept_out(other, tid);
            }
        }
    }
}

fn outcome(call: &Call, act: Act) -> Outcome {
    let Some(rax) = call.rax.filter(|_| !call.is_unwound) else {
        return Outcome::Left;
    };
    let is_semaphore = matches!(
        act,
        Act::Takes(Kind::Semaphore) | Act::Tries(Kind::Semaphore)
    );
    match (act, rax as u32) {
        (Act::RustTakes(_) | Act::RustWaits | Act::FutexWaits, _) => Outcome::Acquired,
        (_, 0 | EOWNERDEAD) => Outcome::Acquired,
        (Act::Tries(_), EBUSY | EAGAIN) => Outcome::Busy,
        (_, ETIMEDOUT) => Outcome::TimedOut,
        // Its error is errno's, which is not recorded.
        (Act::Tries(_), _) if is_semaphore => Outcome::Busy,
        (_, error) => Outcome::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: u64 = 0x1000;
    const MUTEX: u64 = 0x2000;

    /// A call of thread `tid` from event `start` to event `end`, whose times are ten times that.
    fn call(act: Act, tid: u32, lock: u64, start: u64, end: Option<u64>, rax: u64) -> LockCall {
        LockCall {
            call: Call {
                start,
                end,
                ts_ns: start as i64 * 10,
                dur_ns: end.map_or(-1, |end| (end - start) as i64 * 10),
                function: 0,
                tid,
                parent: None,
                ret_addr: 0,
                args: [lock, MUTEX, 0, 0],
                rax: end.map(|_| rax),
                is_unwound: false,
            },
            act,
            lock,
            node: 0,
        }
    }

    const TAKES: Act = Act::Takes(Kind::Mutex);

    #[test]
    fn who_comes_while_another_has_the_lock_waits_for_it() {
        let all = wishes(&[
            call(TAKES, 1, LOCK, 1, Some(2), 0),
            call(TAKES, 2, LOCK, 3, Some(9), 0),
            call(Act::Gives, 1, LOCK, 7, Some(8), 0),
            call(Act::Gives, 2, LOCK, 10, Some(11), 0),
            call(TAKES, 1, LOCK, 12, None, 0),
        ]);
        let told = |wish: &Wish| (wish.owner, wish.contended, wish.wait_ns(), wish.hold_ns());
        assert_eq!(told(&all[0]), (None, Some(false), Some(10), Some(50)));
        assert_eq!(told(&all[1]), (Some(1), Some(true), Some(60), Some(10)));
        assert_eq!(told(&all[2]), (None, Some(false), None, None));
        assert_eq!(all[2].outcome, Outcome::Waiting);
    }

    #[test]
    fn whoever_gets_the_lock_first_keeps_the_other_waiting() {
        let all = wishes(&[
            call(TAKES, 1, LOCK, 1, Some(4), 0),
            call(TAKES, 2, LOCK, 2, Some(9), 0),
            call(Act::Gives, 1, LOCK, 7, Some(8), 0),
        ]);
        assert_eq!((all[0].owner, all[1].owner), (None, Some(1)));
        assert!(!all[0].is_held_at_end() && all[1].is_held_at_end());
    }

    #[test]
    fn who_has_the_lock_at_the_end_has_held_it_until_then() {
        let all = wishes(&[
            call(TAKES, 1, LOCK, 1, Some(2), 0),
            call(TAKES, 2, MUTEX, 3, Some(4), 0),
            call(Act::Gives, 2, MUTEX, 6, Some(7), 0),
        ]);
        let told = |wish: &Wish| (wish.hold_ns(), wish.hold_until_ns(100));
        assert_eq!(told(&all[0]), (None, Some(80)));
        assert_eq!(told(&all[1]), (Some(20), Some(20)));
    }

    /// A robust mutex whose owner died, and one whose memory was used again.
    #[test]
    fn a_lock_that_another_thread_got_later_is_not_held_until_the_end() {
        let dead = u64::from(EOWNERDEAD);
        let all = wishes(&[
            call(TAKES, 1, LOCK, 1, Some(2), 0),
            call(TAKES, 2, LOCK, 5, Some(6), dead),
            call(TAKES, 3, LOCK, 8, None, 0),
        ]);
        assert_eq!((all[1].owner, all[2].owner), (Some(1), Some(2)));
        assert!(!all[0].is_held_at_end() && all[1].is_held_at_end());
        assert_eq!(all[0].hold_until_ns(100), None);
    }

    #[test]
    fn a_thread_may_unlock_the_lock_of_another() {
        let all = wishes(&[
            call(TAKES, 1, LOCK, 1, Some(2), 0),
            call(Act::Gives, 2, LOCK, 5, Some(6), 0),
            call(TAKES, 3, LOCK, 8, Some(9), 0),
        ]);
        assert_eq!(all[0].hold_ns(), Some(30));
        assert_eq!((all[1].owner, all[1].contended), (None, Some(false)));
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        let (read, write) = (Act::Takes(Kind::Read), Act::Takes(Kind::Write));
        let all = wishes(&[
            call(read, 1, LOCK, 1, Some(2), 0),
            call(read, 2, LOCK, 3, Some(4), 0),
            call(write, 3, LOCK, 5, Some(10), 0),
            call(Act::Gives, 1, LOCK, 6, Some(7), 0),
            call(Act::Gives, 2, LOCK, 8, Some(9), 0),
        ]);
        let contended: Vec<_> = all.iter().map(|wish| wish.contended).collect();
        assert_eq!(contended, [Some(false), Some(false), Some(true)]);
    }

    #[test]
    fn a_wait_for_a_condition_gives_its_mutex_back_meanwhile() {
        let all = wishes(&[
            call(TAKES, 1, MUTEX, 1, Some(2), 0),
            call(Act::Waits, 1, LOCK, 3, Some(9), 0),
            call(TAKES, 2, MUTEX, 4, Some(5), 0),
            call(Act::Gives, 2, MUTEX, 6, Some(7), 0),
            call(Act::Gives, 1, MUTEX, 10, Some(11), 0),
            call(Act::Waits, 1, LOCK, 12, Some(20), u64::from(ETIMEDOUT)),
        ]);
        let told = |wish: &Wish| (wish.kind, wish.contended, wish.wait_ns(), wish.hold_ns());
        assert_eq!(
            told(&all[0]),
            (Kind::Mutex, Some(false), Some(10), Some(10))
        );
        assert_eq!(told(&all[1]), (Kind::Mutex, None, None, Some(10)));
        assert_eq!(told(&all[2]), (Kind::Condition, None, Some(60), None));
        assert_eq!(
            told(&all[3]),
            (Kind::Mutex, Some(false), Some(10), Some(10))
        );
        let last = all.iter().find(|wish| wish.outcome == Outcome::TimedOut);
        assert_eq!(
            last.map(told),
            Some((Kind::Condition, None, Some(80), None))
        );
    }

    #[test]
    fn a_lock_that_is_tried_is_busy() {
        let tries = Act::Tries(Kind::Mutex);
        let all = wishes(&[
            call(TAKES, 1, LOCK, 1, Some(2), 0),
            call(tries, 2, LOCK, 3, Some(4), u64::from(EBUSY)),
            call(TAKES, 1, LOCK, 5, Some(6), 0),
        ]);
        assert_eq!((all[1].outcome, all[1].owner), (Outcome::Busy, Some(1)));
        assert!(all[2].is_again);
    }

    #[test]
    fn a_lock_of_rust_had_the_thread_that_wakes_the_waiting_one() {
        let all = wishes(&[
            call(Act::RustTakes(Kind::Mutex), 2, LOCK, 3, Some(9), 0),
            call(Act::FutexWakes, 1, LOCK, 7, Some(8), 1),
            call(Act::RustTakes(Kind::Write), 2, MUTEX, 13, Some(19), 0),
            call(Act::FutexWakes, 1, MUTEX + 4, 17, Some(18), 1),
        ]);
        let told = |wish: &Wish| (wish.owner, wish.contended, wish.wait_ns(), wish.hold_ns());
        assert_eq!(told(&all[0]), (Some(1), Some(true), Some(60), None));
        assert_eq!(told(&all[1]), (Some(1), Some(true), Some(60), None));
        assert!(!all[0].is_held_at_end());
    }
}

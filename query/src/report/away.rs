//! The time that was nobody's: a thread was stopped by the user's live session, or the program had ended.

use rustc_hash::FxHashMap;

use super::read::Call;
use crate::overview::Made;

/// Stretches of a thread's time: beginning and end in ns, and the sum of all before; in order, and apart.
type Stretches = Vec<(i64, i64, i64)>;

/// Times that are in no call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Away {
    /// When the program ended, in ns.
    until_ns: i64,
    /// By thread.
    held: FxHashMap<u32, Stretches>,
    /// How long each thread slept until the recorder had done something, in ns. That is among the times of `held`.
    slept: FxHashMap<u32, u64>,
    /// Calls that the debugger had threads make.
    made: Made,
}

/// The exception of a thread that was seen last. The thread waits from then on, while memory is copied, and the pause follows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raised {
    tid: u32,
    seq: u64,
    at_ns: i64,
}

impl Raised {
    /// Most events from an exception to the pause that it causes: between them is the copy of memory.
    const NEAR: u64 = 2;

    /// Takes the thread, the event and its time in ns.
    pub fn new(tid: u32, seq: u64, at_ns: i64) -> Raised {
        Raised { tid, seq, at_ns }
    }

    /// Returns since when a thread was stopped that pauses at an event.
    pub fn stopped_ns(self, tid: u32, seq: u64, at_ns: i64) -> i64 {
        match self.tid == tid && (self.seq + 1..=self.seq + Self::NEAR).contains(&seq) {
            true => self.at_ns,
            false => at_ns,
        }
    }
}

impl Away {
    /// Takes when the program ended, and when which thread was held, in any order.
    pub fn new(until_ns: i64, mut held: Vec<(u32, i64, i64)>) -> Away {
        held.sort_unstable();
        let mut by_thread: FxHashMap<u32, Stretches> = FxHashMap::default();
        for (tid, from, to) in held {
            let apart = by_thread.entry(tid).or_default();
            match apart.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                Some((last_from, last_to, before)) => {
                    let before = *before + (*last_to - *last_from);
                    apart.push((from, to, before));
                }
                None => apart.push((from, to, 0)),
            }
        }
        Away {
            until_ns,
            held: by_thread,
            slept: FxHashMap::default(),
            made: Made::default(),
        }
    }

    /// Takes for how long the recorder let each thread sleep, in ns.
    pub fn with_sleeps(self, slept: FxHashMap<u32, u64>) -> Away {
        Away { slept, ..self }
    }

    /// Takes the calls that the debugger had threads make while they were held.
    pub fn with_made(self, made: Made) -> Away {
        Away { made, ..self }
    }

    /// Tells whether a call of a thread is one of these, or lies in one.
    #[inline]
    pub fn is_made(&self, tid: u32, start: u64) -> bool {
        !self.made.is_empty() && self.made.has(tid, start)
    }

    /// Returns for how long a thread slept until the recorder had done something, in ns.
    pub fn slept_ns(&self, tid: u32) -> u64 {
        self.slept.get(&tid).copied().unwrap_or(0)
    }

    /// Returns how long a call took up to the end of the program, in ns, and how much of that was nobody's.
    #[inline]
    pub fn of_call(&self, call: &Call) -> (i64, i64) {
        let end_ns = match call.end {
            Some(_) => (call.ts_ns + call.dur_ns).min(self.until_ns),
            None => self.until_ns,
        };
        let whole_ns = (end_ns - call.ts_ns).max(0);
        if self.held.is_empty() {
            return (whole_ns, 0);
        }
        let Some(held) = self.held.get(&call.tid) else {
            return (whole_ns, 0);
        };
        let away_ns = before(held, end_ns) - before(held, call.ts_ns.min(end_ns));
        (whole_ns, away_ns)
    }

    /// Returns how long threads were held, all added up.
    pub fn held_ns(&self) -> i64 {
        let threads = self.held.values();
        threads.map(|held| before(held, self.until_ns)).sum()
    }
}

/// Returns for how long before `ts_ns`.
fn before(held: &Stretches, ts_ns: i64) -> i64 {
    let at = held.partition_point(|(from, ..)| *from < ts_ns);
    match at.checked_sub(1) {
        Some(last) => {
            let (from, to, before) = held[last];
            before + ts_ns.min(to) - from
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(ts_ns: i64, dur_ns: i64) -> Call {
        Call {
            end: Some(2),
            start: 1,
            ts_ns,
            dur_ns,
            child_ns: 0,
            function: 0,
            tid: 1,
            depth: 0,
            parent: None,
        }
    }

    #[test]
    fn a_thread_is_stopped_since_its_exception() {
        let raised = Raised::new(7, 45, 100);
        assert_eq!(raised.stopped_ns(7, 47, 900), 100);
        assert_eq!(raised.stopped_ns(7, 46, 900), 100);
        // The program went on after it.
        assert_eq!(raised.stopped_ns(7, 48, 900), 900);
        assert_eq!(raised.stopped_ns(8, 46, 900), 900);
        assert_eq!(Raised::default().stopped_ns(7, 3, 900), 900);
    }

    #[test]
    fn what_lies_in_a_call_is_taken_out() {
        let away = Away::new(
            1000,
            vec![
                (1, 50, 60),
                (1, 10, 20),
                (1, 15, 25),
                (2, 0, 90),
                (1, 900, 2000),
            ],
        );
        assert_eq!(away.held_ns(), 15 + 10 + 100 + 90);
        assert_eq!(away.of_call(&call(0, 100)), (100, 25));
        assert_eq!(away.of_call(&call(12, 3)), (3, 3));
        assert_eq!(away.of_call(&call(20, 35)), (35, 10));
        assert_eq!(away.of_call(&call(30, 10)), (10, 0));
        assert_eq!(away.of_call(&call(950, 500)), (50, 50));
        assert_eq!(away.of_call(&call(1500, 500)), (0, 0));
    }

    #[test]
    fn a_call_that_had_not_ended_ends_with_the_program() {
        let away = Away::new(1000, Vec::new());
        let open = Call {
            end: None,
            dur_ns: -1,
            ..call(300, 0)
        };
        assert_eq!(away.of_call(&open), (700, 0));
    }
}

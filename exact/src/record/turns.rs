//! Whose turn it is: one thread runs at a time, and others wait for their turn, or in the kernel.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a thread runs while others wait for their turn.
const TURN: Duration = Duration::from_millis(5);
/// The same for one that comes to us again and again, whose turn seems to begin each time.
const LONGEST: Duration = Duration::from_millis(20);
/// How often it may read the clock in a row. It may do so until another thread has done something.
const READS: u32 = 20;
/// How long others wait for a call that might return at once.
const PATIENCE: Duration = Duration::from_micros(50);

#[derive(Debug)]
pub(super) struct Turns {
    /// Threads that can go on, the next one first; without the one that runs.
    pub(super) ready: VecDeque<i32>,
    /// The one whose turn it is.
    pub(super) current: Option<i32>,
    /// The one that ran last.
    pub(super) running: i32,
    /// Threads that have stopped while it was not their turn, with this status: mostly those that waited in the kernel.
    pub(super) arrived: VecDeque<(i32, i32)>,
    /// When the turn began, or others began to wait.
    since: Instant,
    /// When the turn began, whatever has happened since.
    began: Instant,
    /// How often the current thread has read the clock, without anything else.
    reads: u32,
    /// The current thread has just got an answer of ours: it is between two instructions, all of which are counted.
    is_answered: bool,
    /// A thread that we have sent SIGSTOP.
    stopping: Option<i32>,
}

impl Turns {
    /// There is one thread, and it is its turn.
    pub(super) fn new(tid: i32) -> Turns {
        Turns {
            ready: VecDeque::new(),
            current: Some(tid),
            running: tid,
            arrived: VecDeque::new(),
            since: Instant::now(),
            began: Instant::now(),
            reads: 0,
            is_answered: false,
            stopping: None,
        }
    }

    /// Nobody has a turn, and nobody waits for one; `last` counts as the one that ran last.
    pub(super) fn clear(&mut self, last: i32) {
        self.ready.clear();
        self.arrived.clear();
        self.current = None;
        self.running = last;
    }

    /// The next thread that can go on has its turn from now on.
    pub(super) fn next(&mut self) -> Option<i32> {
        self.current = Some(self.ready.pop_front()?);
        self.begin();
        (self.began, self.reads) = (self.since, 0);
        self.current
    }

    /// The current thread has got an answer to a system call of this number, or to an instruction.
    pub(super) fn answered(&mut self, number: Option<u64>) {
        self.is_answered = true;
        let number = number.and_then(|number| i64::try_from(number).ok());
        self.reads = match number {
            Some(libc::SYS_sched_yield) => READS + 1,
            Some(libc::SYS_clock_gettime | libc::SYS_gettimeofday | libc::SYS_time) => {
                self.reads.saturating_add(1)
            }
            Some(_) => 0,
            None => self.reads,
        };
    }

    /// The current thread has come to us, and nothing is answered yet.
    pub(super) fn asks(&mut self) {
        self.is_answered = false;
    }

    /// Whether the current thread, which was answered, is to let others go on. One that is about to stop anyway does so then.
    pub(super) fn is_over(&self) -> bool {
        let was_long = self.reads > READS || self.began.elapsed() > LONGEST;
        self.is_answered && was_long && !self.is_alone() && self.stopping.is_none()
    }

    /// The current turn is as long as if it had begun now.
    pub(super) fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// The current thread goes behind the others.
    pub(super) fn go_behind(&mut self) {
        self.ready.extend(self.current.take());
    }

    /// When the current thread is to let others go on, if it runs, or if it waits in a call.
    pub(super) fn deadline(&self, runs: bool) -> Instant {
        self.since + if runs { TURN } else { PATIENCE }
    }

    /// No other thread could go on.
    pub(super) fn is_alone(&self) -> bool {
        self.ready.is_empty() && self.arrived.is_empty()
    }

    /// The current thread has stopped again before it ran: a signal whose handler has no room on the stack, for example.
    pub(super) fn arrived_again(&mut self) -> Option<(i32, i32)> {
        let mut all = self.arrived.iter();
        let index = all.position(|(tid, _)| Some(*tid) == self.current)?;
        self.arrived.remove(index)
    }

    /// A thread has ended.
    pub(super) fn forget(&mut self, tid: i32) {
        self.ready.retain(|other| *other != tid);
        self.current.take_if(|current| *current == tid);
    }

    /// Has a running thread stop.
    pub(super) fn interrupt(&mut self, pid: i32, tid: i32) {
        // SAFETY: a signal to a thread that we trace, and that we take back when it has stopped the thread.
        unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, libc::SIGSTOP) };
        self.stopping = Some(tid);
        self.since = Instant::now() + Duration::from_secs(3600);
    }

    /// Whether a signal that has stopped a thread is ours; that is over then.
    pub(super) fn is_interrupt(&mut self, tid: i32, signal: i32) -> bool {
        signal == libc::SIGSTOP && self.stopping.take_if(|stopping| *stopping == tid).is_some()
    }

    /// A thread that we have sent a signal which has not come yet.
    pub(super) fn take_interrupted(&mut self) -> Option<i32> {
        self.stopping.take()
    }
}

//! A stopped thread with its frames, in the form that `inspect` needs, and a running program, of which only the memory
//! is known.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use debuginfo::{AddressSpace, Backtrace, Certainty, Machine, Register, Unknown};
use expr::Kept;
use recorder::live::{Limit, Live, LiveMachine, Stop, ThreadState, ThreadView, Tid};

use super::{LiveSession, of_recorder};
use crate::inspect::{Ended, View};
use crate::protocol::{Code, Failure};

/// The maximum length of a backtrace, so that endless recursion does not make an endless answer.
pub(crate) const MAX_FRAMES: usize = 10_000;

/// A stopped thread and its selected frame.
pub struct Moment {
    /// The modules.
    pub space: Arc<AddressSpace>,
    /// The registers and the memory.
    pub machine: LiveMachine,
    /// The stop.
    pub stop: Stop,
    /// Its frames.
    pub backtrace: Backtrace,
    /// The index of the selected frame.
    pub frame: usize,
    /// The values that the session keeps.
    pub kept: Arc<Kept>,
}

impl Moment {
    /// Returns the view for `inspect`.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View {
            space: &self.space,
            machine: &self.machine,
            frames: &self.backtrace.frames,
            frame: self.frame,
            recorded: None,
            ended: None,
            kept: &self.kept,
        }
    }
}

/// A running program: its memory can be read, but its registers change all the time.
pub struct RunningMachine<'a> {
    live: &'a Live,
    limit: Limit,
}

impl<'a> RunningMachine<'a> {
    /// Makes the machine of a session's program.
    #[must_use]
    pub fn of(session: &'a LiveSession) -> RunningMachine<'a> {
        RunningMachine {
            live: &session.live,
            limit: Limit::new(session.question_time),
        }
    }
}

impl Machine for RunningMachine<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        self.limit.check()?;
        match self.live.read(address, bytes) {
            Ok(()) => Ok(Certainty::Known),
            Err(error) => Err(Unknown::because(error.one_line())),
        }
    }

    fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
        Err(Unknown::because("the program runs"))
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because("the program runs"))
    }
}

/// A program that has ended. Its code and constants are in its files; it has no other state, and notes that some was
/// needed.
struct EndedMachine<'a> {
    space: &'a AddressSpace,
    was_asked: AtomicBool,
}

impl EndedMachine<'_> {
    fn ask(&self) -> Unknown {
        self.was_asked.store(true, Ordering::Relaxed);
        Unknown::because("the program has ended")
    }
}

/// Returns `len` bytes at `address` if no run changes them: they were mapped from a file, read-only.
fn read_only(space: &AddressSpace, address: u64, len: u64) -> Option<&[u8]> {
    let mapped = space.at(address)?;
    let start = mapped.svma(address);
    let end = start.0.checked_add(len)?;
    let mut segments = mapped.module.load_segments().iter();
    segments.find(|segment| {
        let segment_end = segment.vaddr.0.saturating_add(segment.filesz);
        segment.vaddr.0 <= start.0 && end <= segment_end && !segment.flags.write
    })?;
    mapped.module.code(start, len)
}

impl Machine for EndedMachine<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        match read_only(self.space, address, bytes.len() as u64) {
            Some(known) => {
                bytes.copy_from_slice(known);
                Ok(Certainty::Known)
            }
            None => Err(self.ask()),
        }
    }

    fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
        Err(self.ask())
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Err(self.ask())
    }
}

/// What is asked about a program that has ended.
#[derive(Clone, Copy)]
enum Wanted {
    Value,
    Type,
}

impl Wanted {
    /// Returns whether an answer holds although the program has ended; `needed_state` if it depends on its memory or
    /// registers.
    fn allows<T>(self, answer: &Result<T, Failure>, needed_state: bool) -> bool {
        match (self, answer) {
            // A type is the same whatever the value is.
            (Wanted::Type, Ok(_)) => true,
            (Wanted::Value, Ok(_)) => !needed_state,
            (_, Err(other)) if other.code.is_about_code() => !needed_state,
            // A name that is not there, or a mistake in the expression.
            (Wanted::Type, Err(other)) => other.expression.is_some(),
            (Wanted::Value, Err(_)) => false,
        }
    }
}

impl LiveSession {
    /// Returns the stop of the selected thread if it is stopped, else the newest stop.
    ///
    /// # Errors
    /// [`Code::NotRunning`], [`Code::NotStopped`].
    pub fn stopped(&self) -> Result<Stop, Failure> {
        self.must_run()?;
        let threads = self.live.threads();
        let chosen = self.selection().tid;
        stop_of(&threads, chosen).ok_or_else(not_stopped)
    }

    /// Returns the stop of thread `tid`.
    ///
    /// # Errors
    /// [`Code::NotRunning`], [`Code::NoThread`], [`Code::NotStopped`].
    pub fn stopped_thread(&self, tid: Tid) -> Result<Stop, Failure> {
        self.must_run()?;
        let threads = self.live.threads();
        match threads.iter().find(|thread| thread.tid == tid) {
            None => Err(no_thread(tid, &threads)),
            Some(ThreadView {
                state: ThreadState::Stopped(stop),
                ..
            }) => Ok(stop.clone()),
            Some(_) => Err(
                Failure::new(Code::NotStopped, format!("thread {tid} is running"))
                    .hint("stop all threads: hindsight pause"),
            ),
        }
    }

    /// Returns the current moment.
    ///
    /// # Errors
    /// [`Code::NotRunning`], [`Code::NotStopped`].
    pub fn moment(&self) -> Result<Moment, Failure> {
        self.moment_of(self.stopped()?, MAX_FRAMES)
    }

    /// Runs `work` on the selected frame, or on the memory alone while the program runs.
    ///
    /// # Errors
    /// [`Code::NotRunning`], and the errors of `work`.
    pub fn look<T>(
        &self,
        work: impl FnOnce(&View<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.looked(Wanted::Value, work)
    }

    /// As [`LiveSession::look`], for an answer about types, which needs no memory.
    ///
    /// # Errors
    /// As there.
    pub fn look_at_types<T>(
        &self,
        work: impl FnOnce(&View<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.looked(Wanted::Type, work)
    }

    fn looked<T>(
        &self,
        wanted: Wanted,
        work: impl FnOnce(&View<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let failure = match self.moment() {
            Ok(moment) => return work(&moment.view()),
            Err(failure) => failure,
        };
        let space = self.live.space();
        let without_frames = |machine: &dyn Machine, ended: Option<&Ended>| {
            work(&View {
                space: &space,
                machine,
                frames: &[],
                frame: 0,
                recorded: None,
                ended,
                kept: self.live.kept(),
            })
        };
        match failure.code {
            Code::NotStopped => without_frames(&RunningMachine::of(self), None),
            // Its code and types can still be asked about, and nothing else.
            Code::NotRunning => {
                let machine = EndedMachine {
                    space: &space,
                    was_asked: AtomicBool::new(false),
                };
                let ended = Ended {
                    last_listed: self.last_listed(),
                };
                let answer = without_frames(&machine, Some(&ended));
                match wanted.allows(&answer, machine.was_asked.into_inner()) {
                    true => answer,
                    false => Err(failure),
                }
            }
            _ => Err(failure),
        }
    }

    /// The file whose lines were shown last.
    fn last_listed(&self) -> Option<String> {
        // Both parts are consistent at all times.
        let shown = self.last_shown.lock();
        let shown = shown.unwrap_or_else(PoisonError::into_inner);
        shown.lines.as_ref().map(|lines| lines.file.clone())
    }

    /// Returns the index of the selected frame of a stop.
    pub fn frame_of(&self, stop: &Stop) -> usize {
        let selection = self.selection();
        match selection.tid == Some(stop.tid) && selection.stop == stop.number {
            true => selection.frame,
            false => 0,
        }
    }

    /// Returns the moment of a stop, with at most `limit` frames beyond the selected one.
    ///
    /// # Errors
    /// The thread runs again.
    pub fn moment_of(&self, stop: Stop, limit: usize) -> Result<Moment, Failure> {
        let machine = self.live.machine(stop.tid).map_err(|e| of_recorder(&e))?;
        let machine = machine.limited(Limit::new(self.question_time));
        let space = self.live.space();
        let chosen = self.frame_of(&stop);
        let backtrace = debuginfo::backtrace(&space, &machine, limit.saturating_add(chosen));
        let frame = chosen.min(backtrace.frames.len().saturating_sub(1));
        Ok(Moment {
            space,
            machine,
            stop,
            backtrace,
            frame,
            kept: Arc::clone(self.live.kept()),
        })
    }
}

fn stop_of(threads: &[ThreadView], chosen: Option<Tid>) -> Option<Stop> {
    let stops = threads.iter().filter_map(|thread| match &thread.state {
        ThreadState::Stopped(stop) => Some(stop),
        ThreadState::Running => None,
    });
    stops
        .max_by_key(|stop| (Some(stop.tid) == chosen, stop.number))
        .cloned()
}

fn not_stopped() -> Failure {
    Failure::new(Code::NotStopped, "the program is running")
        .hint("stop it with: hindsight pause; or wait for a stop with: hindsight await")
}

/// Makes the failure of an unknown thread; it lists the existing ones.
pub(crate) fn no_thread(tid: Tid, threads: &[ThreadView]) -> Failure {
    let numbers: Vec<String> = threads.iter().map(|t| t.tid.to_string()).collect();
    Failure::new(Code::NoThread, format!("there is no thread {tid}"))
        .hint(format!("threads: {}", numbers.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recorder::live::Reason;

    fn thread(tid: Tid, stop: Option<u64>) -> ThreadView {
        ThreadView {
            tid,
            name: "worker".to_owned(),
            state: match stop {
                None => ThreadState::Running,
                Some(number) => ThreadState::Stopped(Stop {
                    number,
                    tid,
                    reason: Reason::Step,
                    pc: 0x1000,
                    calls_to_come: 0,
                    displayed: Vec::new(),
                }),
            },
        }
    }

    #[test]
    fn the_chosen_thread_is_looked_at_or_else_the_newest_stop() {
        let threads = [thread(10, Some(7)), thread(11, None), thread(12, Some(9))];
        let looked_at = |chosen| stop_of(&threads, chosen).map(|stop| stop.tid);
        assert_eq!(looked_at(None), Some(12));
        assert_eq!(looked_at(Some(10)), Some(10));
        assert_eq!(looked_at(Some(11)), Some(12), "it runs");
        assert_eq!(looked_at(Some(99)), Some(12), "it is gone");
        assert_eq!(stop_of(&[thread(11, None)], None), None);
    }

    #[test]
    fn an_unknown_thread_names_the_others() {
        let failure = no_thread(5, &[thread(10, None), thread(11, None)]);
        assert_eq!(failure.code, Code::NoThread);
        assert_eq!(failure.hint.as_deref(), Some("threads: 10, 11"));
    }
}

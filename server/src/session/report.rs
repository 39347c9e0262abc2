//! Reports about a program, as they are on the wire.

use std::path::PathBuf;
use std::time::Instant;

use debuginfo::{AddressSpace, Diagnostic};
use recorder::Exit;
use recorder::live::{
    Display, Displayed, Location, ProbeId, Reason, Status, Stop, ThreadState, Tid,
};
use serde::{Deserialize, Serialize};

use super::{FollowedReport, LiveSession, RunningMachine};
use crate::inspect;

/// Formats an address in hexadecimal.
#[must_use]
pub fn hex(address: u64) -> String {
    format!("{address:#x}")
}

/// The state of a program or thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateWord {
    /// No thread is stopped.
    Running,
    /// At least one thread is stopped.
    Stopped,
    /// The program has ended or was detached from.
    Ended,
    /// There is no program: this is a recording.
    Recorded,
}

/// A place in the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceReport {
    /// The address of the next instruction, in hexadecimal.
    pub address: String,
    /// The function that contains the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Its short name, if that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_name: Option<String>,
    /// The types of its parameters, `(int, char)`, in a list of breakpoints with another function of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
    /// Its source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Its column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Why a thread cannot stop here, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// `true`: code in the program evaluates the condition, counts or logs here. `false`: the tracer does, at each hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiled: Option<bool>,
    /// Why the tracer does it, or what it still does although there is such code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compiled: Option<String>,
}

/// A line of the program's source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineReport {
    /// The function that contains the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Its file.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
    /// Its text, if the file could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Why a thread stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum ReasonReport {
    /// At the entry point.
    Entry,
    /// At a breakpoint.
    Breakpoint {
        /// The breakpoint's number.
        probe: u32,
        /// How often it has been hit, including this time.
        hits: u64,
    },
    /// A watched place was read or written.
    Watch {
        /// The watchpoint's number.
        probe: u32,
        /// The watched expression, as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expression: Option<String>,
        /// The function of the watched variable has returned: its memory is another one's, and the watchpoint was removed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        left: bool,
        /// The old value; if the type is not known, bytes in hexadecimal, in memory order.
        old: String,
        /// The new value.
        new: String,
        /// Other threads have accessed the place in between: the two values may span several writes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
        /// The line that accessed the place. The thread has left it since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<LineReport>,
    },
    /// A step, finish or until has completed.
    Step,
    /// The user requested the stop.
    User,
    /// A signal is about to be delivered.
    Signal {
        /// The signal's number.
        signal: i32,
        /// The address that caused a fault, in hexadecimal.
        fault_address: Option<String>,
        /// The signal will end the program.
        fatal: bool,
        /// The catchpoint, if one stopped the thread.
        probe: Option<u32>,
    },
    /// A C++ exception or a Rust panic was thrown.
    Throw {
        /// The catchpoint's number.
        probe: u32,
        /// The thrown type, or `panic`.
        what: String,
        /// The exception's text.
        message: Option<String>,
        /// No handler will catch it.
        unhandled: bool,
    },
    /// An event happened that a catchpoint waits for.
    Happened {
        /// The catchpoint's number.
        probe: u32,
        /// How often it has been hit, including this time.
        hits: u64,
        /// What happened, as text.
        what: String,
    },
    /// The stop of another thread stopped this thread too.
    AllThreads,
    /// Not a stop: this is a moment of a recording.
    Event {
        /// The event's number.
        seq: u64,
        /// The moment is this many instructions later, counting all threads.
        #[serde(default, skip_serializing_if = "is_nothing")]
        steps: u64,
        /// What happened, as text.
        what: String,
        /// The watched values that this event changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<WatchChange>,
        /// The breakpoints that stopped the run there.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        breaks: Vec<u32>,
    },
}

fn is_nothing(number: &u64) -> bool {
    *number == 0
}

/// A change of a watched value in a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchChange {
    /// The watch's number.
    pub watch: u32,
    /// The watched expression.
    pub expression: String,
    /// The last known value before the change.
    pub old: String,
    /// The new value; empty if the watch was removed.
    pub new: String,
    /// Why the watch was removed there, if it was: the value does not exist on the other side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<String>,
}

/// A stop of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    /// Its number in the session, from 1.
    pub number: u64,
    /// The thread.
    pub thread: Tid,
    /// The thread's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_name: Option<String>,
    /// Why the thread stopped.
    #[serde(flatten)]
    pub reason: ReasonReport,
    /// Where the thread stopped.
    #[serde(flatten)]
    pub place: PlaceReport,
    /// The text of the line, if the file could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_line: Option<String>,
    /// The expressions displayed at every stop, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub displays: Vec<DisplayReport>,
}

impl StopReport {
    /// Returns the breakpoints, watchpoints and catchpoints that stopped the thread.
    #[must_use]
    pub fn probes(&self) -> Vec<u32> {
        match &self.reason {
            ReasonReport::Breakpoint { probe, .. }
            | ReasonReport::Watch { probe, .. }
            | ReasonReport::Throw { probe, .. }
            | ReasonReport::Happened { probe, .. } => vec![*probe],
            ReasonReport::Signal { probe, .. } => probe.iter().copied().collect(),
            ReasonReport::Event {
                breaks, changed, ..
            } => {
                let watches = changed.iter().map(|change| change.watch);
                breaks.iter().copied().chain(watches).collect()
            }
            ReasonReport::Entry
            | ReasonReport::Step
            | ReasonReport::User
            | ReasonReport::AllThreads => Vec::new(),
        }
    }
}

/// An expression that is displayed at every stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisplayReport {
    /// Its number.
    pub id: u32,
    /// The expression, as written.
    pub expression: String,
    /// Its value, or the reason why it has none in angle brackets. `None`: there is no moment to evaluate it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// It was detached from and left running.
    pub detached: bool,
    /// The same as text.
    pub text: String,
}

/// A session and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReport {
    /// Its number.
    pub session: u32,
    /// The program's name, as given.
    pub program: String,
    /// The process id; 0 for a recording.
    pub pid: i32,
    /// The recording's folder.
    #[serde(with = "store::os_path")]
    pub recording: PathBuf,
    /// The program's state.
    pub status: StateWord,
    /// The newest stop, if the program is stopped; for a recording, the current moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReport>,
    /// The current event, if the user is in the past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past: Option<u64>,
    /// How many threads are stopped.
    pub stopped_threads: usize,
    /// How the program ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitReport>,
    /// How many calls were recorded, once the recording is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The recorder's warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The outcome of a motion of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MotionReport {
    /// The session.
    pub session: u32,
    /// The program's state now.
    pub status: StateWord,
    /// The stop at which the motion ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReport>,
    /// How the program ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitReport>,
    /// The thread that was moved, if it ended first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_ended: Option<Tid>,
    /// How many further threads are at stops that no answer has shown yet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_stops: usize,
    /// All threads were stopped already: `stop` is the newest of their stops.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// The return value of the function that `finish` has left; `None` if it returns nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<inspect::ReturnedReport>,
    /// The program has made a copy of itself, which was followed: the session is that of the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<FollowedReport>,
    /// The wait timed out; the program continues.
    pub timed_out: bool,
    /// Stretches that the motion went over, and that were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_recorded: Vec<String>,
    /// The recording's folder.
    #[serde(with = "store::os_path")]
    pub recording: PathBuf,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Returns how a program ended, as a predicate that follows its name.
fn exit_words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("has ended with exit code {code}"),
        Exit::Signal(signal) => format!("was killed by {}", inspect::signal_name(signal)),
        Exit::Detached => "was left running".to_owned(),
    }
}

impl From<Exit> for ExitReport {
    fn from(exit: Exit) -> ExitReport {
        ExitReport {
            code: match exit {
                Exit::Code(code) => Some(code),
                Exit::Signal(_) | Exit::Detached => None,
            },
            signal: match exit {
                Exit::Signal(signal) => Some(signal),
                Exit::Code(_) | Exit::Detached => None,
            },
            detached: exit == Exit::Detached,
            text: exit_words(exit),
        }
    }
}

impl From<&Reason> for ReasonReport {
    fn from(reason: &Reason) -> ReasonReport {
        match reason.clone() {
            Reason::Entry => ReasonReport::Entry,
            Reason::Breakpoint { probe, hits } => ReasonReport::Breakpoint { probe, hits },
            Reason::Watch {
                probe,
                old,
                new,
                shared,
                left,
            } => ReasonReport::Watch {
                probe,
                expression: None,
                left,
                old: inspect::hex_bytes(&old),
                new: inspect::hex_bytes(&new),
                shared,
                by: None,
            },
            Reason::Step => ReasonReport::Step,
            Reason::User => ReasonReport::User,
            Reason::Signal {
                signal,
                fault_address,
                fatal,
                probe,
            } => ReasonReport::Signal {
                signal,
                fault_address: fault_address.map(hex),
                fatal,
                probe,
            },
            Reason::Throw {
                probe,
                what,
                message,
                unhandled,
            } => ReasonReport::Throw {
                probe,
                what,
                message,
                unhandled,
            },
            Reason::Happened { probe, hits, what } => ReasonReport::Happened { probe, hits, what },
            Reason::AllThreads => ReasonReport::AllThreads,
        }
    }
}

impl DisplayReport {
    /// Describes a displayed expression without evaluating it.
    #[must_use]
    pub fn without_value(display: &Display) -> DisplayReport {
        DisplayReport {
            id: display.id,
            expression: display.expression.clone(),
            value: None,
        }
    }
}

impl From<&Displayed> for DisplayReport {
    fn from(shown: &Displayed) -> DisplayReport {
        DisplayReport {
            value: Some(shown.value.clone()),
            ..DisplayReport::without_value(&shown.display)
        }
    }
}

impl LineReport {
    /// Describes the line of the instruction that contains the byte at `address`.
    pub(crate) fn of(space: &AddressSpace, address: u64) -> Option<LineReport> {
        let source = space.line_at(address)?;
        Some(LineReport {
            function: inspect::function_name(space, address),
            text: inspect::source_line(&source.file, source.line),
            file: source.file.to_string(),
            line: source.line,
        })
    }
}

fn short(space: &AddressSpace, address: u64, function: Option<&str>) -> Option<String> {
    inspect::short_function(space, address, function?)
}

impl PlaceReport {
    /// Describes an address.
    #[must_use]
    pub fn of(space: &AddressSpace, address: u64) -> PlaceReport {
        let source = space.line_at(address);
        let function = inspect::function_name(space, address);
        PlaceReport {
            address: hex(address),
            short_name: short(space, address, function.as_deref()),
            parameters: None,
            function,
            line: source.as_ref().map(|source| source.line),
            column: source
                .as_ref()
                .map(|source| source.column)
                .filter(|column| *column > 0),
            file: source.map(|source| source.file.to_string()),
            problem: None,
            compiled: None,
            not_compiled: None,
        }
    }

    /// Describes where a thread is stopped.
    #[must_use]
    pub fn of_stop(space: &AddressSpace, stop: &Stop) -> PlaceReport {
        PlaceReport::before(space, stop.pc, stop.calls_to_come)
    }

    /// Describes the position of a thread at `pc`. Inlined calls may begin there. If the thread has not made the
    /// innermost `to_come` of them yet, the line is that of the first of these calls. A number that is too large means
    /// all.
    #[must_use]
    pub fn before(space: &AddressSpace, pc: u64, to_come: usize) -> PlaceReport {
        let standing = space.standing(pc, to_come);
        let source = standing.source.as_ref();
        PlaceReport {
            short_name: short(space, pc, standing.function.as_deref()),
            function: standing.function.map(|name| name.to_string()),
            line: source.map(|source| source.line),
            column: source.map(|source| source.column).filter(|at| *at > 0),
            file: source.map(|source| source.file.to_string()),
            ..PlaceReport::of(space, pc)
        }
    }

    /// Returns the text of the line, if the file can be read.
    #[must_use]
    pub fn source_text(&self) -> Option<String> {
        inspect::source_line(self.file.as_deref()?, self.line?)
    }
}

impl LiveSession {
    /// Describes a stop.
    #[must_use]
    pub fn report_stop(&self, stop: &Stop) -> StopReport {
        let place = PlaceReport::of_stop(&self.live.space(), stop);
        let threads = self.live.threads();
        StopReport {
            number: stop.number,
            thread: stop.tid,
            thread_name: threads
                .into_iter()
                .find(|thread| thread.tid == stop.tid)
                .map(|thread| thread.name),
            reason: self.report_reason(stop),
            source_line: place.source_text(),
            place,
            displays: stop.displayed.iter().map(DisplayReport::from).collect(),
        }
    }

    /// Describes why a thread stopped, with watched values formatted as by `print`.
    #[must_use]
    pub fn report_reason(&self, stop: &Stop) -> ReasonReport {
        let Reason::Watch {
            probe,
            old,
            new,
            shared,
            left,
        } = &stop.reason
        else {
            return (&stop.reason).into();
        };
        let space = self.live.space();
        let machine = RunningMachine::of(self);
        let watched = self.watched().get(probe).cloned();
        let text = |bytes: &[u8]| match &watched {
            Some(watched) => inspect::bytes_text(&space, &machine, &watched.ty, bytes),
            None => inspect::hex_bytes(bytes),
        };
        let is_left = *left
            || watched
                .as_ref()
                .is_some_and(|watched| self.has_left(watched, stop));
        if is_left {
            // At another report of the same stop it is gone already.
            _ = self.live.remove_probe(*probe);
        }
        ReasonReport::Watch {
            probe: *probe,
            left: is_left,
            expression: match &watched {
                Some(watched) => Some(watched.expression.clone()),
                None => self.watched_by(*probe),
            },
            old: text(old),
            new: text(new),
            shared: *shared,
            by: LineReport::of(&space, stop.pc.wrapping_sub(1)),
        }
    }

    /// Returns the expression of a watchpoint that was set before the session began.
    fn watched_by(&self, probe: ProbeId) -> Option<String> {
        let probes = self.live.probes().into_iter();
        let mut found = probes.filter(|view| view.id == probe);
        match found.next()?.spec.location {
            Location::Memory { expression, .. } => Some(expression),
            _ => None,
        }
    }

    /// Describes the session with the given stop.
    #[must_use]
    pub fn report_at(&self, stop: Option<&Stop>) -> SessionReport {
        let report = self.report();
        match stop {
            Some(stop) if report.status == StateWord::Stopped => SessionReport {
                stop: Some(self.report_stop(stop)),
                ..report
            },
            _ => report,
        }
    }

    /// Returns how the program ended, as a predicate that follows its name.
    pub(super) fn exit_words(&self, exit: Exit) -> String {
        let executed = self.follow.executed().filter(|_| exit == Exit::Detached);
        executed.map_or_else(|| exit_words(exit), str::to_owned)
    }

    /// Describes the session.
    #[must_use]
    pub fn report(&self) -> SessionReport {
        let (status, stop, exit) = match self.live.status() {
            Status::Running => (StateWord::Running, None, None),
            Status::Stopped(stop) => (StateWord::Stopped, Some(stop), None),
            Status::Ended(exit) => (StateWord::Ended, None, Some(exit)),
        };
        let stopped = |state: &ThreadState| matches!(state, ThreadState::Stopped(_));
        let threads = match status {
            StateWord::Ended | StateWord::Recorded => Vec::new(),
            StateWord::Running | StateWord::Stopped => self.live.threads(),
        };
        let outcome = exit.and_then(|_| self.live.outcome(Instant::now()));
        SessionReport {
            session: self.id,
            program: self.program.clone(),
            pid: self.live.pid(),
            recording: self.live.recording().to_owned(),
            status,
            stop: stop.map(|stop| self.report_stop(&stop)),
            past: self.entered_past().map(|past| past.position().seq),
            stopped_threads: threads.iter().filter(|t| stopped(&t.state)).count(),
            exit: exit.map(|exit| ExitReport {
                text: self.exit_words(exit),
                ..ExitReport::from(exit)
            }),
            calls: outcome.map(|outcome| outcome.calls),
            warnings: self.warnings().iter().map(Diagnostic::one_line).collect(),
        }
    }
}

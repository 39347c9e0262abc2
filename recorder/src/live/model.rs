//! The vocabulary of live control: requests to a running program, and the answers.

use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

use debuginfo::{AddressSpace, Diagnostic};

use super::{
    condition::{Condition, Message},
    happening::Happening,
};
use crate::{Exit, RecordOptions, stop::Registers};

/// A thread number of the operating system.
pub type Tid = i32;
/// Number of a probe: dense from 1, never reused in a session.
pub type ProbeId = u32;

/// Options of a new live session.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// What to record, and of which process.
    pub record: RecordOptions,
    /// Stop at the entry point, before the program's own code runs.
    pub stop_on_entry: bool,
    /// Where a started program's input and output go.
    pub stdio: Stdio,
    /// Probes that are set before the program runs.
    pub first: FirstProbes,
}

/// Probes that are set before the program runs.
#[derive(Clone, Debug)]
pub struct FirstProbes {
    /// What is to be set.
    pub specs: Vec<ProbeSpec>,
    /// They may wait for modules that are loaded later.
    pub pending: bool,
    /// Explains why a place does not exist, given the modules that the program begins with.
    pub check: fn(&AddressSpace, &ProbeSpec) -> Result<(), Diagnostic>,
}

impl FirstProbes {
    /// Returns the first condition or part of a message that is JavaScript, if there is one.
    #[must_use]
    pub fn script(&self) -> Option<&str> {
        self.specs.iter().find_map(|spec| {
            let condition = match &spec.condition {
                Some(Condition::JavaScript(source)) => Some(source.as_str()),
                Some(Condition::Own(_)) | None => None,
            };
            condition.or_else(|| spec.action.message()?.scripts().next())
        })
    }
}

impl Default for FirstProbes {
    fn default() -> Self {
        Self {
            specs: Vec::new(),
            pending: false,
            check: |_, _| Ok(()),
        }
    }
}

/// Where a started program's input and output go.
#[derive(Clone, Debug, Default)]
pub enum Stdio {
    /// To ours.
    #[default]
    Inherit,
    /// Input from /dev/null, output to pipes whose ends [`Live::take_output`](super::Live::take_output) returns.
    Piped {
        /// The program's working directory.
        cwd: PathBuf,
        /// Its whole environment.
        env: Vec<(OsString, OsString)>,
    },
}

/// A call, and how its return is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedCall {
    /// Its thread.
    pub tid: Tid,
    /// The stack pointer just before it was called, and after it has returned.
    pub cfa: u64,
    /// Where it returns.
    pub returns_to: u64,
}

/// Why a thread has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The program is at its entry point.
    Entry,
    /// A breakpoint.
    Breakpoint {
        /// Its number.
        probe: ProbeId,
        /// How often it has been hit with its condition true, including this time.
        hits: u64,
    },
    /// Watched memory was read or written.
    Watch {
        /// Its number.
        probe: ProbeId,
        /// The bytes before the access.
        old: Vec<u8>,
        /// The bytes now.
        new: Vec<u8>,
        /// Other threads accessed it too before it was read, so the two values may span several writes.
        shared: bool,
        /// The call whose variable was watched has returned ([`Live::watch_until_return`](super::Live::watch_until_return)): the
        /// memory is another variable's.
        left: bool,
    },
    /// A step, finish or until has reached its goal.
    Step,
    /// The user requested it.
    User,
    /// A signal is about to be delivered.
    Signal {
        /// Its number.
        signal: i32,
        /// The address of a fault.
        fault_address: Option<u64>,
        /// The program does not handle it and will end.
        fatal: bool,
        /// The probe that catches the signal, if any.
        probe: Option<ProbeId>,
    },
    /// A C++ exception or a Rust panic.
    Throw {
        /// The probe that catches it.
        probe: ProbeId,
        /// The thrown type, or `panic`.
        what: String,
        /// The text of the panic or of `what()`, if it could be read.
        message: Option<String>,
        /// It has no handler.
        unhandled: bool,
    },
    /// An event that a catchpoint waits for.
    Happened {
        /// The probe.
        probe: ProbeId,
        /// How often it has been hit with its condition true, including this time.
        hits: u64,
        /// What it was, as text.
        what: String,
    },
    /// Another thread's stop also stopped this one.
    AllThreads,
}

impl Reason {
    /// Returns whether the reason is a breakpoint, a watchpoint or a caught exception.
    pub(crate) fn is_of_a_probe(&self) -> bool {
        matches!(
            self,
            Reason::Breakpoint { .. }
                | Reason::Watch { .. }
                | Reason::Throw { .. }
                | Reason::Happened { .. }
        )
    }

    /// Returns the probe that stopped the thread, if one did.
    pub(crate) fn probe(&self) -> Option<ProbeId> {
        match self {
            Reason::Breakpoint { probe, .. }
            | Reason::Watch { probe, .. }
            | Reason::Throw { probe, .. }
            | Reason::Happened { probe, .. } => Some(*probe),
            Reason::Signal { probe, .. } => *probe,
            Reason::Entry | Reason::Step | Reason::User | Reason::AllThreads => None,
        }
    }
}

/// A stop of a thread. A session numbers its stops from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Its number in the session.
    pub number: u64,
    /// Which thread.
    pub tid: Tid,
    /// Why.
    pub reason: Reason,
    /// The address of the next instruction, hooks undone.
    pub pc: u64,
    /// How many of the inlined calls that begin at `pc` are still to come, see [`debuginfo::Machine::calls_to_come`].
    pub calls_to_come: usize,
    /// The displayed expressions with their values in this thread.
    pub displayed: Vec<Displayed>,
}

/// An expression whose value is shown and recorded at every stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Display {
    /// Its number in the session, from 1, never reused.
    pub id: u32,
    /// The text that the user wrote.
    pub expression: String,
}

/// A displayed expression at a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displayed {
    /// The expression.
    pub display: Display,
    /// Its value as text; or in angle brackets, why it has none.
    pub value: String,
}

/// Maximum number of displayed expressions in a session: each is evaluated at every stop of every thread.
pub const MAX_DISPLAYS: usize = 64;

/// What a thread is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It is running, or waiting in the kernel.
    Running,
    /// It is stopped.
    Stopped(Stop),
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadView {
    /// Its number.
    pub tid: Tid,
    /// Its name in the kernel.
    pub name: String,
    /// What it is doing.
    pub state: ThreadState,
}

/// What the program as a whole is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// No thread is stopped.
    Running,
    /// At least one thread is stopped. This is the newest stop.
    Stopped(Stop),
    /// It has ended, or was detached. The recording is closed or being closed.
    Ended(Exit),
}

/// What a probe does when it is hit.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The thread stops.
    Break {
        /// All other threads stop too.
        all_threads: bool,
        /// The probe is removed after its first stop.
        once: bool,
    },
    /// Records an event with this message.
    Log(Message),
    /// An event for each write.
    LogWrites,
}

impl Action {
    /// Returns the message of a logpoint.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Log(message) => Some(message),
            Self::Break { .. } | Self::LogWrites => None,
        }
    }
}

/// The location of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Functions whose name matches the glob, with `::` scopes; after the prologue.
    Function(String),
    /// A line, and a column if given (both from 1).
    Line {
        /// The path of the file, or its end.
        file: String,
        /// From 1.
        line: u32,
        /// From 1.
        column: Option<u32>,
    },
    /// An address in the process.
    Address(u64),
    /// A watched range of memory: 1, 2, 4 or 8 bytes, aligned to its size.
    Memory {
        /// Its first byte.
        address: u64,
        /// 1, 2, 4 or 8.
        len: u8,
        /// Which accesses count.
        access: Access,
        /// The expression that the user wrote.
        expression: String,
    },
    /// A place in memory whose writes are all logged.
    Logged(LoggedPlace),
    /// A C++ throw. The pattern is a glob for the name of the type or of one of its bases.
    Throw {
        /// `None`: any type.
        pattern: Option<String>,
        /// Only exceptions without a handler.
        unhandled_only: bool,
    },
    /// A Rust panic.
    Panic,
    /// The delivery of a signal; `None`: any signal.
    Signal(Option<i32>),
    /// What the kernel reports, or a handler of an exception.
    Event(Happening),
}

/// A place in memory whose writes are logged: at most [`MAX_LOGGED_LEN`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedPlace {
    /// At an address of the process.
    Address {
        /// Its first byte.
        address: u64,
        /// How many bytes.
        len: u64,
    },
    /// The place that an expression over global variables means, once the variable exists: its module may be loaded later.
    Expression(String),
}

/// How many bytes the processor watches at once: four places of eight.
pub const MAX_LOGGED_LEN: u64 = 32;

impl fmt::Display for LoggedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { address, len } => write!(f, "{address:#x}:{len}"),
            Self::Expression(text) => f.write_str(text),
        }
    }
}

/// In the user's words, as the recording stores it.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function(name) => f.write_str(name),
            Self::Line {
                file,
                line,
                column: None,
            } => write!(f, "{file}:{line}"),
            Self::Line {
                file,
                line,
                column: Some(column),
            } => write!(f, "{file}:{line}:{column}"),
            Self::Address(address) => write!(f, "*{address:#x}"),
            Self::Memory { expression, .. } => f.write_str(expression),
            Self::Logged(place) => place.fmt(f),
            Self::Throw {
                pattern,
                unhandled_only,
            } => {
                f.write_str("throw")?;
                if let Some(pattern) = pattern {
                    write!(f, " {pattern}")?;
                }
                if *unhandled_only {
                    f.write_str(" (unhandled)")?;
                }
                Ok(())
            }
            Self::Panic => f.write_str("panic"),
            Self::Signal(Some(signal)) => write!(f, "signal {signal}"),
            Self::Signal(None) => f.write_str("signal"),
            Self::Event(happening) => happening.fmt(f),
        }
    }
}

/// Which accesses a watchpoint counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Writes.
    Write,
    /// Reads that are not writes. The processor cannot distinguish them, so an access that changed the value is not
    /// reported.
    Read,
    /// Both.
    Both,
}

/// A probe to add.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeSpec {
    /// Where.
    pub location: Location,
    /// What to do there.
    pub action: Action,
    /// Must be true for a hit.
    pub condition: Option<Condition>,
    /// Act only on the Nth hit; 0: on every hit.
    pub hit_count: u64,
}

/// Whether a probe is in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeState {
    /// No loaded module has such a place.
    Pending,
    /// It is in place.
    Bound,
    /// It is disabled.
    Disabled,
}

/// One of a probe's places, named like a stop there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePlace {
    /// Address in the process.
    pub address: u64,
    /// Name of the function that a thread stopped there is in.
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: Option<u32>,
    /// Its column, from 1: that of the statement that the probe refers to.
    pub column: Option<u32>,
    /// What the probe refers to, by which the place was found.
    pub meant: Meant,
    /// How many of the inlined calls that begin there are still to come for a thread that stops there.
    pub calls_to_come: usize,
    /// Why a thread cannot be stopped here, if it cannot.
    pub problem: Option<String>,
    /// Who evaluates the probe here; `None` if it always stops the thread.
    pub judged: Option<EvaluatedBy>,
}

/// What a probe refers to at one of its places: the function of a pattern, or the line of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meant {
    /// Name of the function, possibly an inlined one.
    pub function: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// The line actually used, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
}

/// Who evaluates a probe for a thread that reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluatedBy {
    /// Code in the program: hits that are false, only counted, or logged are not reported.
    InProgram,
    /// Code in the program, except for what the text says.
    Partly(String),
    /// The tracer, asked without a stop if possible. The text says why.
    Asked(String),
    /// The tracer, with a stop each time. The text says why.
    ByTracer(String),
}

/// A probe's current state.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeView {
    /// Its number.
    pub id: ProbeId,
    /// The requested probe.
    pub spec: ProbeSpec,
    /// Whether it is in place.
    pub state: ProbeState,
    /// Its places.
    pub places: Vec<ProbePlace>,
    /// How often it was hit with its condition true.
    pub hits: u64,
    /// Hits up to this number are skipped; 0: none.
    pub passed_until: u64,
    /// A note for the user: that the line was moved, or that the probe existed before.
    pub message: Option<String>,
    /// It existed before at the same place, and its condition was replaced.
    pub existed: bool,
    /// Failures of its condition or message.
    pub failed: Option<super::Failed>,
}

impl ProbeView {
    /// Returns how many of its next hits are skipped.
    #[must_use]
    pub fn skips(&self) -> u64 {
        self.passed_until.saturating_sub(self.hits)
    }
}

impl ProbeSpec {
    /// Returns the text of its condition.
    #[must_use]
    pub fn condition_text(&self) -> Option<String> {
        let source = self.condition.as_ref().map(Condition::source);
        source.map(str::to_owned)
    }

    /// Returns whether its condition or message uses the number of threads that have reached it.
    #[must_use]
    pub fn asks_hits(&self) -> bool {
        let condition = self
            .condition
            .as_ref()
            .is_some_and(Condition::uses_hit_count);
        let message = self.action.message();
        condition || message.is_some_and(Message::uses_hit_count)
    }
}

/// How to move a stopped thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Motion {
    /// Until something stops it.
    Continue,
    /// To another line of this frame or, when it returns, of its caller. Steps over calls.
    Next,
    /// To another line, including one of a callee that has line information.
    Step,
    /// One machine instruction.
    Instruction,
    /// One machine instruction. Steps over calls.
    NextInstruction,
    /// Until frame `frame` (0 is the innermost) has returned to its caller.
    Finish {
        /// Which frame.
        frame: usize,
    },
    /// To a line whose code lies behind that of this one, in this frame: out of a loop from its last line. Steps over calls.
    Past,
    /// Until a place is reached in this frame or an outer one, or this frame returns.
    Until {
        /// The place.
        place: Location,
        /// The frame; 0 is the innermost.
        frame: usize,
        /// What this frame calls may reach the place, too.
        deeper: bool,
    },
}

/// The result of waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// A thread has stopped.
    Stopped(Stop),
    /// The program has ended.
    Ended(Exit),
    /// The moved thread ended before it reached its goal. The program continues.
    ThreadEnded(Tid),
    /// The wait was woken: there may be something new to see.
    Woken,
    /// None of these happened in time.
    TimedOut,
}

/// All registers of a stopped thread.
#[derive(Clone, Debug)]
pub struct AllRegisters {
    /// The general registers; rip has hooks undone.
    pub general: Registers,
    /// xmm0 to xmm15.
    pub vectors: [[u8; 16]; 16],
}

/// A function to call in a stopped thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its address.
    pub function: u64,
    /// rdi, rsi, rdx, rcx, r8, r9.
    pub integers: Vec<u64>,
    /// xmm0 and up, as bits.
    pub floats: Vec<u64>,
    /// Bytes that lie on the thread's stack during the call. The integer of that index becomes their address.
    pub texts: Vec<(usize, Vec<u8>)>,
    /// Time limit.
    pub timeout: Duration,
}

/// What a called function returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// rax.
    pub rax: u64,
    /// rdx.
    pub rdx: u64,
    /// The low 8 bytes of xmm0.
    pub xmm0: u64,
    /// The low 8 bytes of xmm1.
    pub xmm1: u64,
}

/// The outcome of a request to record more functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// Functions whose calls are recorded from now on.
    pub functions: Vec<String>,
    /// How many were recorded before.
    pub already: u64,
    /// Those that cannot be recorded.
    pub untraced: Vec<Untraced>,
}

/// A function that cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untraced {
    /// Its name.
    pub function: String,
    /// Why.
    pub reason: String,
}

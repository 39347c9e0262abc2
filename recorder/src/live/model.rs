//! The words of live control: what can be asked of a running program, and what comes back.

use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

use super::condition::{Condition, Message};
use crate::{Exit, RecordOptions, stop::Registers};

/// Operating system's number of a thread.
pub type Tid = i32;
/// Number of a probe; dense from 1, never used twice in a session.
pub type ProbeId = u32;

/// A live session to begin.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// What is recorded, and of which process.
    pub record: RecordOptions,
    /// Stop at the entry point, before the program's own code runs.
    pub stop_on_entry: bool,
    /// Where a started program's input and output go.
    pub stdio: Stdio,
}

/// Where a started program's input and output go.
#[derive(Clone, Debug, Default)]
pub enum Stdio {
    /// To ours.
    #[default]
    Inherit,
    /// Input from nowhere, output to pipes whose ends [`Live::take_output`](super::Live::take_output) hands out.
    Piped {
        /// The program's working directory.
        cwd: PathBuf,
        /// Its whole environment.
        env: Vec<(OsString, OsString)>,
    },
}

/// What makes a thread stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The program stands at its entry point.
    Entry,
    /// A breakpoint.
    Breakpoint {
        /// Its number.
        probe: ProbeId,
        /// How often it has been hit (its condition true), this time included.
        hits: u64,
    },
    /// A watched place was read or written.
    Watch {
        /// Its number.
        probe: ProbeId,
        /// What stood there before.
        old: Vec<u8>,
        /// What stands there now.
        new: Vec<u8>,
        /// Other threads have accessed it too before it was read: the two values may be those of several writes.
        shared: bool,
    },
    /// A step, finish or until has reached its goal.
    Step,
    /// Somebody asked for it.
    User,
    /// A signal is about to be delivered.
    Signal {
        /// Its number.
        signal: i32,
        /// The address that a fault is about.
        fault_address: Option<u64>,
        /// Nothing in the program handles it: the program will end.
        fatal: bool,
        /// The probe that asked for it, if one did.
        probe: Option<ProbeId>,
    },
    /// A C++ exception or a Rust panic.
    Throw {
        /// The probe that asked for it.
        probe: ProbeId,
        /// The thrown type, or `panic`.
        what: String,
        /// The text of a panic or of `what()`, where it could be read.
        message: Option<String>,
        /// Nobody will catch it.
        unhandled: bool,
    },
    /// Another thread's stop stopped this one too.
    AllThreads,
}

impl Reason {
    /// Tells whether a breakpoint, a watchpoint or a caught exception is the reason.
    pub(crate) fn is_of_a_probe(&self) -> bool {
        matches!(
            self,
            Reason::Breakpoint { .. } | Reason::Watch { .. } | Reason::Throw { .. }
        )
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
    /// Where: the address of the next instruction, hooks undone.
    pub pc: u64,
    /// How many of the inlined calls that begin at `pc` count as not made yet, see
    /// [`debuginfo::Machine::calls_to_come`].
    pub calls_to_come: usize,
    /// What the expressions that are displayed at every stop were then, in this thread.
    pub displayed: Vec<Displayed>,
}

/// An expression whose value is shown and recorded at every stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Display {
    /// Its number in the session, from 1; a number is given once.
    pub id: u32,
    /// What was written.
    pub expression: String,
}

/// A displayed expression at a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displayed {
    /// The expression.
    pub display: Display,
    /// Its value as text, in angle brackets why it has none.
    pub value: String,
}

/// How many expressions a session displays at most: each is evaluated at every stop, of every thread.
pub const MAX_DISPLAYS: usize = 64;

/// What a thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It runs, or waits in the kernel.
    Running,
    /// It is stopped.
    Stopped(Stop),
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadView {
    /// Its number.
    pub tid: Tid,
    /// Its name, as the kernel has it.
    pub name: String,
    /// What it does.
    pub state: ThreadState,
}

/// What the program does as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// No thread is stopped.
    Running,
    /// At least one thread is stopped; the newest stop.
    Stopped(Stop),
    /// It has ended, or was left; the recording is closed or being closed.
    Ended(Exit),
}

/// What a probe does when it is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The thread stops.
    Break {
        /// All other threads stop too.
        all_threads: bool,
        /// It stops once and is removed.
        once: bool,
    },
    /// An event with this message.
    Log(Message),
}

impl Action {
    /// The message, if it leaves one.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Log(message) => Some(message),
            Self::Break { .. } => None,
        }
    }
}

/// Where a probe is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Functions whose name matches: glob, with `::` scopes; behind the prologue.
    Function(String),
    /// A line, and a column if given (both from 1).
    Line {
        /// The file, or the end of its path.
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
        /// What counts.
        access: Access,
        /// What the person wrote.
        expression: String,
    },
    /// A C++ throw; the pattern is a glob on the type's name, its bases count too.
    Throw {
        /// `None`: any.
        pattern: Option<String>,
        /// Only if nobody will catch it.
        unhandled_only: bool,
    },
    /// A Rust panic.
    Panic,
    /// The delivery of a signal; `None`: any.
    Signal(Option<i32>),
}

/// In the words of the person, as the recording keeps it.
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
        }
    }
}

/// Which accesses a watchpoint counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Writes.
    Write,
    /// Reads that are no writes; the processor cannot tell them apart, so a changed value is not reported.
    Read,
    /// Both.
    Both,
}

/// A probe to add.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeSpec {
    /// Where.
    pub location: Location,
    /// What then.
    pub action: Action,
    /// Only if this is true.
    pub condition: Option<Condition>,
    /// Only on the Nth hit; 0: on every one.
    pub hit_count: u64,
}

/// Whether a probe is in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeState {
    /// No loaded module has such a place.
    Pending,
    /// It is in place.
    Bound,
    /// It was switched off.
    Disabled,
}

/// One of the places of a probe, named as a stop there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePlace {
    /// Address in the process.
    pub address: u64,
    /// Name of the function that a thread is in which stops there.
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: Option<u32>,
    /// Its column, from 1: that of the statement which the probe is about.
    pub column: Option<u32>,
    /// What the probe is about, by which it was found.
    pub meant: Meant,
    /// How many of the inlined calls that begin there a thread has not made that stops there.
    pub calls_to_come: usize,
    /// Why the thread cannot be stopped here, if it cannot.
    pub problem: Option<String>,
    /// Who judges here whether a thread is to be stopped or leaves a message; `None` where it always stops.
    pub judged: Option<EvaluatedBy>,
}

/// What a probe is about at one of its places: the function of a pattern, the line of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meant {
    /// Name of the function, the inlined one if it is.
    pub function: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// The line that is really used, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
}

/// Who decides what a probe does with a thread that gets there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluatedBy {
    /// Code in the program: nobody hears of what is false, is only counted, or is logged.
    InProgram,
    /// The same, save for what is told here.
    Partly(String),
    /// The tracer, which is asked without a stop where it can be; the text says why.
    Asked(String),
    /// The tracer, each time, of a thread that stands; the text says why.
    ByTracer(String),
}

/// A probe as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeView {
    /// Its number.
    pub id: ProbeId,
    /// What was asked for.
    pub spec: ProbeSpec,
    /// Whether it is in place.
    pub state: ProbeState,
    /// Its places.
    pub places: Vec<ProbePlace>,
    /// How often it was hit with its condition true.
    pub hits: u64,
    /// Something to tell the person: that the line was moved, or that the probe existed before.
    pub message: Option<String>,
    /// It existed before, at the same place; its condition was replaced.
    pub existed: bool,
    /// Its condition or message failed.
    pub failed: Option<super::Failed>,
}

impl ProbeSpec {
    /// The text of its condition.
    #[must_use]
    pub fn condition_text(&self) -> Option<String> {
        let source = self.condition.as_ref().map(Condition::source);
        source.map(str::to_owned)
    }

    /// Tells whether its condition or message asks how often threads have come there.
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

/// How a stopped thread is to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Motion {
    /// Until something stops it.
    Continue,
    /// To another line of this frame or, when it returns, of its caller: calls are stepped over.
    Next,
    /// To another line, of a callee too if it has lines.
    Step,
    /// One machine instruction.
    Instruction,
    /// One machine instruction; a call is stepped over.
    NextInstruction,
    /// Until the frame `frame` (0 is the innermost) has returned to its caller.
    Finish {
        /// Which frame.
        frame: usize,
    },
    /// Until a place is reached in a frame or one further out, or that frame returns.
    Until {
        /// Which place.
        place: Location,
        /// Which frame; 0 is the innermost.
        frame: usize,
    },
}

/// How waiting ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// A thread has stopped.
    Stopped(Stop),
    /// The program has ended.
    Ended(Exit),
    /// The thread that was moved has ended before it got where it was to get; the program goes on.
    ThreadEnded(Tid),
    /// There may be something else to see.
    Woken,
    /// None of these, in the time given.
    TimedOut,
}

/// All registers of a stopped thread.
#[derive(Clone, Debug)]
pub struct AllRegisters {
    /// The general ones; rip has hooks undone.
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
    /// xmm0 and following, as bits.
    pub floats: Vec<u64>,
    /// How long it may take.
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

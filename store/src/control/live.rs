//! Defines what live control writes to the log: its probes, stops of threads, writes, messages and exceptions.

use serde::{Deserialize, Serialize};
pub use serde_bytes::ByteBuf;

use crate::wire::CAPTURE_REGISTER_WORDS;

/// Most bytes of the stack that a pause keeps.
pub const MAX_STACK_LEN: usize = 64 << 10;
/// Words of [`SavedRegisters::general`].
pub const GENERAL_REGISTERS: usize = REGISTER_NAMES.len();
/// Names of [`SavedRegisters::general`], in order: that of the kernel's `user_regs_struct`.
pub const REGISTER_NAMES: [&str; 27] = [
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi",
    "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs",
    "gs",
];
/// Registers xmm0 to xmm15.
pub const VECTOR_REGISTERS: usize = 16;
/// Bytes of each of them.
pub const VECTOR_LEN: usize = 16;

/// A probe that a user set in the running program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveProbe {
    /// When it was added or changed.
    pub ticks: u64,
    /// Its number, below 2^28, never reused in a recording.
    pub id: u32,
    /// Its kind.
    pub kind: ProbeKind,
    /// The requested location, in the user's words.
    pub location: String,
    /// A hit counts only if this is true.
    pub condition: Option<String>,
    /// It acts on the Nth hit only; 0: on every one.
    pub hit_count: u64,
    /// Its action, for people.
    pub action: String,
    /// Whether it is in place.
    pub state: ProbeState,
    /// Its places.
    pub places: Vec<ProbePlace>,
}

/// The kind of a live probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeKind {
    /// The thread stops when it gets there.
    Breakpoint,
    /// The thread leaves a message when it gets there.
    Logpoint,
    /// The thread stops when it uses a place in memory, or its writes there are logged.
    Watchpoint,
    /// The thread stops at an exception, a panic or a signal.
    Catch,
}

/// Whether a live probe is in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeState {
    /// No loaded module has such a place.
    Pending,
    /// It is in place.
    Bound,
    /// It was switched off.
    Disabled,
}

/// One of the places of a live probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePlace {
    /// Address in the process.
    pub addr: u64,
    /// Number of the module it lies in.
    pub module: Option<u32>,
    /// Address inside the module's file.
    pub svma: Option<u64>,
    /// Name of the function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Source line, from 1.
    pub line: Option<u32>,
}

/// A thread was stopped, with its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When.
    pub ticks: u64,
    /// Which thread.
    pub tid: u32,
    /// Why.
    pub reason: PauseReason,
    /// The live probe that stopped it.
    pub probe: Option<u32>,
    /// The number of hits of that probe, this one included.
    pub hits: Option<u64>,
    /// Address of the next instruction, hooks undone.
    pub pc: u64,
    /// Name of the function it lies in.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Source line, from 1.
    pub line: Option<u32>,
    /// The registers, where they could be read.
    pub registers: Option<SavedRegisters>,
    /// Where the bytes of the stack begin.
    pub stack_addr: u64,
    /// The stack from there on, at most [`MAX_STACK_LEN`] bytes; none where it could not be read.
    pub stack: ByteBuf,
    /// Expressions and their values as text.
    pub values: Vec<(String, String)>,
    /// The watched place that was used.
    pub watched: Option<Watched>,
}

/// The state of a thread that passed a logpoint, or whose write was logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// The address of the statement.
    pub pc: u64,
    /// The general registers by their DWARF numbers, where they were kept.
    pub registers: Option<[u64; CAPTURE_REGISTER_WORDS]>,
    /// Address of the first byte in `stack`.
    pub stack_addr: u64,
    /// The stack from there on; none where it was not kept, or could not be read.
    pub stack: ByteBuf,
}

/// Why a thread was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PauseReason {
    /// A breakpoint.
    Breakpoint,
    /// A step has reached its goal.
    Step,
    /// A watched place was used.
    Watch,
    /// A C++ exception or a Rust panic.
    Exception,
    /// A user requested it.
    User,
    /// The program is at its entry point.
    Entry,
    /// A signal is about to be delivered.
    Signal,
    /// Another thread's stop stopped this one too.
    AllThreads,
}

/// All registers of a stopped thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRegisters {
    /// The general ones, in the order of [`REGISTER_NAMES`].
    pub general: [u64; GENERAL_REGISTERS],
    /// xmm0 to xmm15.
    #[serde(with = "vectors")]
    pub vectors: [[u8; VECTOR_LEN]; VECTOR_REGISTERS],
}

/// The place that a watchpoint watches, and how it changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Its first byte.
    pub addr: u64,
    /// The value before, where known.
    pub old: Option<ByteBuf>,
    /// The value now, where known.
    pub new: Option<ByteBuf>,
}

/// A user changed the program's memory or a register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// When.
    pub ticks: u64,
    /// In which thread; 0 where in none.
    pub tid: u32,
    /// The target of the write, in the user's words.
    pub target: String,
    /// Address of its first byte, where it lies in memory.
    pub addr: Option<u64>,
    /// Name of the register, where it lies in one.
    pub register: Option<String>,
    /// The bytes before, where known.
    pub old: Option<ByteBuf>,
    /// The bytes now.
    pub new: ByteBuf,
    /// The author.
    pub by: String,
}

/// The program wrote to a place whose writes are logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedWrite {
    /// When.
    pub ticks: u64,
    /// Which thread.
    pub tid: u32,
    /// The live probe that logs the writes.
    pub probe: u32,
    /// The place, in the user's words.
    pub target: String,
    /// Address of its first byte.
    pub addr: u64,
    /// All its bytes after the write before this one, or when the probe was set.
    pub old: ByteBuf,
    /// All its bytes after this write.
    pub new: ByteBuf,
    /// The instruction that wrote, with hooks undone, if it could be determined.
    pub pc: Option<u64>,
    /// The function that wrote, or the one of the program's own code that had called it.
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// The line in it, from 1: of the write, or of the call.
    pub line: Option<u32>,
    /// The function that wrote, if it is another one.
    pub via: Option<String>,
    /// Other threads wrote there too before the bytes were read: they may be those of several writes.
    pub shared: bool,
    /// The state of the thread, if it was kept.
    pub passed: Option<Box<Passed>>,
}

/// An exception, a panic or a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// When.
    pub ticks: u64,
    /// In which thread.
    pub tid: u32,
    /// Number of the signal, if it is one.
    pub signal: Option<i32>,
    /// The thrown type, or `panic`.
    pub type_name: Option<String>,
    /// Whether it may still be handled.
    pub phase: ExceptionPhase,
    /// Its address: of the fault or of the throw.
    pub addr: Option<u64>,
    /// Its message, where that could be read.
    pub message: Option<String>,
}

/// Whether an exception may still be handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExceptionPhase {
    /// It was just thrown or is about to be delivered.
    FirstChance,
    /// No handler: the program will end.
    Unhandled,
}

/// How the words of a logpoint's records become a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFormat {
    /// Records from here on have this format.
    pub ticks: u64,
    /// Number of the live probe.
    pub probe: u32,
    /// The message's pieces, in order.
    pub parts: Vec<LogPart>,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogPart {
    /// Constant text.
    Text(String),
    /// Made of words of the record.
    Value(LogValue),
    /// The name of a word of the record: `?` if it has none.
    Named {
        /// The expression, in the user's words.
        expression: String,
        /// Index of the word, counted from the end of the record's head.
        word: u32,
        /// Numbers and their names.
        names: Vec<(u64, String)>,
    },
}

/// The words of a logpoint's record that form a value, and how to read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogValue {
    /// The expression, in the user's words.
    pub expression: String,
    /// Index of its first word, counted from the end of the record's head.
    pub word: u32,
    /// How to read it.
    pub kind: LogKind,
    /// Its size: 1, 2, 4, 8 or 16; the room for the bytes of a text.
    pub bytes: u32,
}

impl LogValue {
    /// Returns the index after its last word.
    pub fn end(&self) -> u64 {
        let words = u64::from(self.bytes).div_ceil(crate::wire::WORD_LEN as u64);
        let length = u64::from(self.kind == LogKind::Text);
        u64::from(self.word) + length + words
    }
}

/// How to read a value of a logpoint's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogKind {
    /// A number in two's complement.
    Signed,
    /// A number.
    Unsigned,
    /// A number, in hexadecimal.
    Hex,
    /// A floating point number of 4 or 8 bytes, in Rust's format.
    Float,
    /// The same, in the format of C debuggers.
    CFloat,
    /// An address.
    Pointer,
    /// One byte of text.
    Char,
    /// Zero or not.
    Bool,
    /// A word with a length in bytes, then the bytes.
    Text,
}

impl ProbeKind {
    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Breakpoint => "breakpoint",
            Self::Logpoint => "logpoint",
            Self::Watchpoint => "watchpoint",
            Self::Catch => "catch",
        }
    }
}

impl ProbeState {
    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Bound => "bound",
            Self::Disabled => "disabled",
        }
    }
}

impl PauseReason {
    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Breakpoint => "breakpoint",
            Self::Step => "step",
            Self::Watch => "watch",
            Self::Exception => "exception",
            Self::User => "user",
            Self::Entry => "entry",
            Self::Signal => "signal",
            Self::AllThreads => "all_threads",
        }
    }
}

impl ExceptionPhase {
    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstChance => "first_chance",
            Self::Unhandled => "unhandled",
        }
    }
}

/// Writes the vector registers one after another.
mod vectors {
    use serde::de::{Deserializer, Error};
    use serde::ser::Serializer;

    use super::{VECTOR_LEN, VECTOR_REGISTERS};

    type Vectors = [[u8; VECTOR_LEN]; VECTOR_REGISTERS];

    pub(super) fn serialize<S: Serializer>(vectors: &Vectors, to: S) -> Result<S::Ok, S::Error> {
        serde_bytes::serialize(vectors.as_flattened(), to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vectors, D::Error> {
        let bytes: Vec<u8> = serde_bytes::deserialize(from)?;
        let (vectors, rest) = bytes.as_chunks::<VECTOR_LEN>();
        match <Vectors>::try_from(vectors) {
            Ok(vectors) if rest.is_empty() => Ok(vectors),
            _ => Err(D::Error::invalid_length(bytes.len(), &"256 bytes")),
        }
    }
}

/// Memory was copied while no thread ran; the pages are in their own file ([`crate::memory`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When.
    pub ticks: u64,
    /// Its number, dense from 0.
    pub id: u32,
    /// Why.
    pub reason: SnapshotReason,
    /// Bytes of memory it covers.
    pub covered: u64,
    /// Bytes of memory that had changed since the one before, and are stored.
    pub changed: u64,
}

/// Why memory was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SnapshotReason {
    /// The recording begins.
    Start,
    /// A thread is about to be paused, and no other runs.
    Pause,
    /// Taken at a regular interval.
    Interval,
    /// A thread is about to be paused. The others were held for the copy and continue after it.
    Held,
    /// The program exits.
    Exit,
    /// The recording begins, for a program that ran before.
    Attached,
}

impl SnapshotReason {
    /// Returns the reason as queries see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Pause => "pause",
            Self::Interval => "interval",
            Self::Held => "held",
            Self::Exit => "exit",
            Self::Attached => "attached",
        }
    }
}

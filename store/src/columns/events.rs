//! Writes the Parquet file of all events but the enter and leave of calls, in order of `seq`.
//!
//! | kind | text | value | others |
//! |---|---|---|---|
//! | `process_start` | command line, joined by spaces | process id | |
//! | `process_exit` | | exit code | aux: name of the killing signal |
//! | `exec` | path | | |
//! | `fork` | | process id of the child | |
//! | `thread_start` | name | | addr, size: its stack, where known |
//! | `thread_name` | the new name | | |
//! | `thread_exit`, `detached` | | | |
//! | `module_load` | path | number of the module | aux: build id; addr, size: where it is mapped |
//! | `module_unload` | | number of the module | |
//! | `arming` | paths of the modules | how long it took, in ns | |
//! | `stdout`, `stderr` | | | bytes; size: how many |
//! | `gap` | reason | events lost, null where not known | |
//! | `warning`, `note` | what was said | | |
//! | `leave` (no call began there) | | rax | addr: the slot |
//! | `probe`, `probe_removed` | the probe in a line | | probe; aux: its state; detail: its condition |
//! | `pause` | why and where | | probe; aux: the reason; addr: pc; detail: values |
//! | `resume` | how | | |
//! | `write` | what was written to | | addr; aux: the register; bytes, old: now and before; size; detail: who |
//! | `logged_write` | what was written to | pc | probe; addr; bytes, old: now and before; size; aux: function; detail: where |
//! | `logpoint` | message | | probe; addr: the statement; bytes: the record's words; detail: values |
//! | `exception` | message | number of the signal | aux: type; addr; detail: phase |
//! | `syscall` | | its number | addr: where it is; size: the call that it was made in; bytes: the arguments, then sections |
//! | `syscall_end` | | result | size: the event in which it began; bytes: sections |
//! | `snapshot` | | number of the snapshot | aux: why; size: bytes that had changed |
//! | `condition_error` | why | | probe; aux: the condition; addr: what could not be read |
//!
//! Sections are those of a record: the memory that arguments of a system call point to.
//!
//! Values are an object in JSON: expressions and their texts. The place of a write is four texts with tabs between
//! them: file, line, the function that wrote if it is not `aux`, and `shared` or nothing.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, Int32Builder, Int64Builder, StringBuilder, StringDictionaryBuilder,
};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};

use super::rows::{Batch, ROW_GROUP_BYTES, RowsWriter};

/// Declares the kinds with their names in queries.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The kind of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EventKind {
            $($(#[$doc])* $kind,)*
        }

        impl EventKind {
            /// All of them.
            pub const ALL: &[EventKind] = &[$(EventKind::$kind),*];

            /// Returns the kind's name as queries see it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// The target runs from here on.
    ProcessStart = "process_start",
    /// The target ended.
    ProcessExit = "process_exit",
    /// The process is about to run another program.
    Exec = "exec",
    /// It has not become that program.
    ExecFailed = "exec_failed",
    /// The process forked.
    Fork = "fork",
    /// The first event of a thread.
    ThreadStart = "thread_start",
    /// The thread's name changed.
    ThreadName = "thread_name",
    /// The thread ended.
    ThreadExit = "thread_exit",
    /// An ELF file was mapped.
    ModuleLoad = "module_load",
    /// A module was unmapped.
    ModuleUnload = "module_unload",
    /// A thread waited until the functions of modules that it had loaded were armed.
    Arming = "arming",
    /// A thread waited for room in its ring.
    RingWait = "ring_wait",
    /// Bytes written to file descriptor 1.
    Stdout = "stdout",
    /// Bytes written to file descriptor 2.
    Stderr = "stderr",
    /// Events were lost.
    Gap = "gap",
    /// A message to the user.
    Warning = "warning",
    /// The user's words.
    Note = "note",
    /// The recorder detached from a running target.
    Detached = "detached",
    /// A return without a call.
    Leave = "leave",
    /// A live probe was added or changed.
    Probe = "probe",
    /// A live probe was removed.
    ProbeRemoved = "probe_removed",
    /// A thread was stopped.
    Pause = "pause",
    /// A stopped thread resumes.
    Resume = "resume",
    /// Memory or a register was changed.
    Write = "write",
    /// The program wrote to a place whose writes are logged.
    LoggedWrite = "logged_write",
    /// A logpoint was passed.
    Logpoint = "logpoint",
    /// An exception, a panic or a signal was seen.
    Exception = "exception",
    /// A condition of a live probe could not be evaluated.
    ConditionError = "condition_error",
    /// Memory was copied.
    Snapshot = "snapshot",
    /// A system call began.
    Syscall = "syscall",
    /// A system call came back.
    SyscallEnd = "syscall_end",
}

/// One event. The table above defines each field for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow<'a> {
    /// Number in the recording's order.
    pub seq: u64,
    /// When, in nanoseconds.
    pub ts_ns: i64,
    /// The thread, if there is one and it is known.
    pub tid: Option<u32>,
    /// The kind of the event.
    pub kind: EventKind,
    /// Text for people.
    pub text: Option<&'a str>,
    /// Raw bytes.
    pub bytes: Option<&'a [u8]>,
    /// An address.
    pub addr: Option<u64>,
    /// A length in bytes.
    pub size: Option<u64>,
    /// A number.
    pub value: Option<i64>,
    /// A second text.
    pub aux: Option<&'a str>,
    /// Number of the live probe.
    pub probe: Option<u32>,
    /// A third text.
    pub detail: Option<&'a str>,
    /// The raw bytes before.
    pub old: Option<&'a [u8]>,
}

impl<'a> EventRow<'a> {
    /// Returns an event with only its place and kind.
    pub fn new(seq: u64, ts_ns: i64, tid: Option<u32>, kind: EventKind) -> Self {
        Self {
            seq,
            ts_ns,
            tid,
            kind,
            text: None,
            bytes: None,
            addr: None,
            size: None,
            value: None,
            aux: None,
            probe: None,
            detail: None,
            old: None,
        }
    }

    /// Sets the text.
    pub fn text(self, text: &'a str) -> Self {
        Self {
            text: Some(text),
            ..self
        }
    }

    /// Sets the number.
    pub fn value(self, value: i64) -> Self {
        Self {
            value: Some(value),
            ..self
        }
    }

    fn len_bytes(&self) -> usize {
        let texts = [self.text, self.aux, self.detail];
        let texts = texts.into_iter().flatten().map(str::len);
        let bytes = [self.bytes, self.old].into_iter().flatten();
        texts.chain(bytes.map(<[u8]>::len)).sum()
    }
}

/// Returns the columns of the file.
pub fn events_schema() -> SchemaRef {
    let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Arc::new(Schema::new(vec![
        Field::new("seq", DataType::Int64, false),
        Field::new("ts_ns", DataType::Int64, false),
        Field::new("tid", DataType::Int32, true),
        Field::new("kind", kind, false),
        Field::new("text", DataType::Utf8, true),
        Field::new("bytes", DataType::Binary, true),
        Field::new("addr", DataType::Int64, true),
        Field::new("size", DataType::Int64, true),
        Field::new("value", DataType::Int64, true),
        Field::new("aux", DataType::Utf8, true),
        Field::new("probe", DataType::Int32, true),
        Field::new("detail", DataType::Utf8, true),
        Field::new("old", DataType::Binary, true),
    ]))
}

/// A file of events being written.
pub type EventsWriter<W> = RowsWriter<W, EventBatch>;

/// Events that are not yet written.
#[derive(Default)]
pub struct EventBatch {
    seq: Int64Builder,
    ts_ns: Int64Builder,
    tid: Int32Builder,
    kind: StringDictionaryBuilder<Int32Type>,
    text: StringBuilder,
    bytes: BinaryBuilder,
    addr: Int64Builder,
    size: Int64Builder,
    value: Int64Builder,
    aux: StringBuilder,
    probe: Int32Builder,
    detail: StringBuilder,
    old: BinaryBuilder,
    rows: usize,
    len_bytes: usize,
}

impl Batch for EventBatch {
    type Row<'a> = EventRow<'a>;
    const PAGE_ROWS: usize = 8 << 10;

    fn schema() -> SchemaRef {
        events_schema()
    }

    fn push(&mut self, row: &EventRow<'_>) {
        self.seq.append_value(row.seq as i64);
        self.ts_ns.append_value(row.ts_ns);
        self.tid.append_option(row.tid.map(|tid| tid as i32));
        self.kind.append_value(row.kind.name());
        self.text.append_option(row.text);
        self.bytes.append_option(row.bytes);
        self.addr.append_option(row.addr.map(|addr| addr as i64));
        self.size.append_option(row.size.map(|size| size as i64));
        self.value.append_option(row.value);
        self.aux.append_option(row.aux);
        self.probe.append_option(row.probe.map(|id| id as i32));
        self.detail.append_option(row.detail);
        self.old.append_option(row.old);
        self.rows += 1;
        self.len_bytes += row.len_bytes();
    }

    fn is_full(&self) -> bool {
        self.rows >= Self::PAGE_ROWS || self.len_bytes >= ROW_GROUP_BYTES
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        self.len_bytes = 0;
        vec![
            Arc::new(self.seq.finish()),
            Arc::new(self.ts_ns.finish()),
            Arc::new(self.tid.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.text.finish()),
            Arc::new(self.bytes.finish()),
            Arc::new(self.addr.finish()),
            Arc::new(self.size.finish()),
            Arc::new(self.value.finish()),
            Arc::new(self.aux.finish()),
            Arc::new(self.probe.finish()),
            Arc::new(self.detail.finish()),
            Arc::new(self.old.finish()),
        ]
    }
}

//! What a recording holds: all that the program did not compute by itself, in the order in which it saw it.

mod cut;
mod disk;
mod file;
mod packed;

pub use cut::cut;
pub(crate) use file::{Reader, Writer};
pub(crate) use packed::Entries;

use libc::user_regs_struct;
use serde::{Deserialize, Serialize};

/// Bytes of memory.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) at: u64,
    #[serde(with = "serde_bytes")]
    pub(crate) bytes: Vec<u8>,
}

/// The general registers, in ptrace's order (`user_regs_struct`).
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
pub struct Registers(pub [u64; 27]);

impl From<&user_regs_struct> for Registers {
    fn from(r: &user_regs_struct) -> Registers {
        Registers([
            r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx,
            r.rdx, r.rsi, r.rdi, r.orig_rax, r.rip, r.cs, r.eflags, r.rsp, r.ss, r.fs_base,
            r.gs_base, r.ds, r.es, r.fs, r.gs,
        ])
    }
}

impl From<&Registers> for user_regs_struct {
    fn from(Registers(v): &Registers) -> user_regs_struct {
        user_regs_struct {
            r15: v[0],
            r14: v[1],
            r13: v[2],
            r12: v[3],
            rbp: v[4],
            rbx: v[5],
            r11: v[6],
            r10: v[7],
            r9: v[8],
            r8: v[9],
            rax: v[10],
            rcx: v[11],
            rdx: v[12],
            rsi: v[13],
            rdi: v[14],
            orig_rax: v[15],
            rip: v[16],
            cs: v[17],
            eflags: v[18],
            rsp: v[19],
            ss: v[20],
            fs_base: v[21],
            gs_base: v[22],
            ds: v[23],
            es: v[24],
            fs: v[25],
            gs: v[26],
        }
    }
}

/// A stretch of the address space.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// As for mmap(2).
    pub(crate) protection: u32,
}

impl Span {
    /// What it has in common with another one; its protection stays.
    pub(crate) fn common(self, other: Span) -> Option<Span> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        (start < end).then_some(Span { start, end, ..self })
    }
}

/// A file in the address space.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct MappedFile {
    /// Addresses: the first, and the one after the last.
    pub start: u64,
    pub end: u64,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// As in mmap(2).
    pub protection: u32,
    pub path: String,
}

/// What a system call did to the address space.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) enum Space {
    Map(Span),
    Unmap(Span),
    Protect(Span),
    Move {
        from: Span,
        to: Span,
    },
    /// Private pages are forgotten: what is there reads as zeros.
    Discard(Span),
}

/// What a shared mapping shows: the file or the memory with this number, from an offset on. Others may show it, too.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(crate) object: u64,
    pub(crate) offset: u64,
}

/// All registers of a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Context {
    pub(crate) registers: Registers,
    /// In XSAVE's layout.
    #[serde(with = "serde_bytes")]
    pub(crate) extended: Vec<u8>,
}

/// The signal that ended the program.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
pub struct Fatal {
    /// The thread that got it.
    pub tid: i32,
    /// As in sigaction(2): the signal, and where it came from.
    pub signal: i32,
    pub code: i32,
    /// For a fault, the address that was used; otherwise the process that sent the signal.
    pub address: u64,
}

/// What stands for a stretch of memory (`digest::add_page`, from zero on).
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Hashed {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) hash: u64,
}

/// Something that a program does not compute. `at` is how many instructions all threads together have executed before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// The first.
    Start {
        tid: i32,
        command: Vec<String>,
        context: Context,
        spans: Vec<Span>,
        memory: Vec<Bytes>,
        files: Vec<MappedFile>,
    },
    /// A call of thread `tid` returns. It is an instruction by itself.
    SystemCall {
        at: u64,
        tid: i32,
        number: u64,
        result: i64,
        writes: Vec<Bytes>,
        space: Option<Space>,
        file: Option<MappedFile>,
        /// Stands for the registers before it (`digest::of_registers`).
        #[serde(default)]
        state: Option<u32>,
        /// What it has mapped, if that is shared.
        #[serde(default)]
        shared: Option<Shared>,
        /// What else it did to the address space: memory that files filled which are otherwise now, for example, is empty but for
        /// what is written.
        #[serde(default)]
        emptied: Vec<Space>,
    },
    /// An instruction with results that no other run would see: the registers after it.
    Chance {
        at: u64,
        registers: Registers,
        /// Stands for the registers before it (`digest::of_registers`).
        #[serde(default)]
        state: Option<u32>,
        /// What it saved in memory.
        #[serde(default)]
        writes: Vec<Bytes>,
    },
    /// An instruction that repeats has a fault in the middle: what it did before that counts as an instruction, and the thread stands
    /// before the rest of it.
    Repeated {
        at: u64,
        tid: i32,
        /// How often it is still to be repeated.
        left: u64,
    },
    /// A handler begins: the registers and the frame.
    Signal {
        at: u64,
        tid: i32,
        number: i32,
        /// Whether a system call that was waiting counts as an instruction that is done.
        call_done: bool,
        context: Context,
        writes: Vec<Bytes>,
        /// Stands for the registers of the thread before it, if it was not in a call (`digest::of_registers`).
        #[serde(default)]
        state: Option<u32>,
    },
    /// A handler has ended by rt_sigreturn(2).
    Return {
        at: u64,
        context: Context,
        /// What the rest of a function wrote that the handler had interrupted while nothing was recorded.
        #[serde(default)]
        writes: Vec<Bytes>,
    },
    /// A thread begins.
    Thread {
        at: u64,
        tid: i32,
        context: Context,
        writes: Vec<Bytes>,
    },
    /// The program is about to write to code that it has executed.
    Code { at: u64, start: u64, end: u64 },
    /// Another thread goes on.
    Switch {
        at: u64,
        tid: i32,
        /// Stands for the registers of that thread (`digest::of_registers`).
        #[serde(default)]
        state: Option<u32>,
        /// What the kernel wrote when threads began to wait.
        #[serde(default)]
        writes: Vec<Bytes>,
    },
    /// A thread has ended.
    End {
        at: u64,
        tid: i32,
        writes: Vec<Bytes>,
        /// Stands for the registers before it (`digest::of_registers`).
        #[serde(default)]
        state: Option<u32>,
    },
    /// What is there when the program is about to end: values to compare with.
    Check {
        at: u64,
        tid: i32,
        state: u32,
        /// `digest::of_extended`
        extended: u32,
        memory: Vec<Hashed>,
    },
    /// The start is not that of the program: it had run before, unrecorded.
    Before {
        nanoseconds: u64,
        /// The file that it executes.
        program: String,
    },
    /// The program goes on unrecorded.
    Gap { at: u64 },
    /// It is recorded again. What happened meanwhile counts as one instruction.
    Resumed {
        at: u64,
        /// How long it was not recorded.
        nanoseconds: u64,
        /// The thread that goes on first.
        running: i32,
        /// All threads.
        threads: Vec<(i32, Context)>,
        /// What has become of the address space, and of what is in it.
        spaces: Vec<Space>,
        writes: Vec<Bytes>,
        files: Vec<MappedFile>,
    },
    /// The program has ended: by exit_group(2) with a code, or by a signal.
    Exit {
        at: u64,
        code: i32,
        signal: i32,
        fatal: Option<Fatal>,
    },
    /// From here on nothing is recorded.
    Lost { at: u64, why: String },
    /// The program has become another one: thread `tid` has executed it.
    Executed {
        at: u64,
        tid: i32,
        /// Its file.
        program: String,
        arguments: Vec<String>,
    },
}

impl Entry {
    pub(crate) fn at(&self) -> u64 {
        match self {
            Entry::Start { .. } | Entry::Before { .. } => 0,
            Entry::SystemCall { at, .. }
            | Entry::Chance { at, .. }
            | Entry::Repeated { at, .. }
            | Entry::Signal { at, .. }
            | Entry::Return { at, .. }
            | Entry::Thread { at, .. }
            | Entry::Code { at, .. }
            | Entry::Switch { at, .. }
            | Entry::End { at, .. }
            | Entry::Check { at, .. }
            | Entry::Gap { at }
            | Entry::Resumed { at, .. }
            | Entry::Exit { at, .. }
            | Entry::Lost { at, .. }
            | Entry::Executed { at, .. } => *at,
        }
    }
}

//! Why a process could not be stopped, read or changed.

use std::io;
use std::time::Duration;

use thiserror::Error;

/// The error; [`StopError::hint`] gives the next step if there is one.
#[derive(Debug, Error)]
pub enum StopError {
    #[error("there is no process {pid}")]
    Gone { pid: i32 },
    #[error("process {pid} has ended, and its parent has not noticed yet")]
    Zombie { pid: i32 },
    #[error("process {pid} is Hindsight itself")]
    OwnProcess { pid: i32 },
    #[error("process {pid} is already traced by process {tracer} ({tracer_name})")]
    AlreadyTraced {
        pid: i32,
        tracer: i32,
        tracer_name: String,
    },
    #[error("kernel.yama.ptrace_scope = 1 lets only an ancestor trace process {pid}")]
    ScopeDescendants { pid: i32 },
    #[error("kernel.yama.ptrace_scope = 2 lets only root trace process {pid}")]
    ScopeRoot { pid: i32 },
    #[error(
        "process {pid} cannot be stopped: kernel.yama.ptrace_scope = 3 forbids tracing until the next boot"
    )]
    ScopeNobody { pid: i32 },
    #[error("the kernel does not let user {our_uid} trace process {pid} of user {target_uid}")]
    NotPermitted {
        pid: i32,
        our_uid: u32,
        target_uid: u32,
    },
    #[error(
        "thread {tid} of process {pid} did not stop within {patience:?} (state {state}): it waits in the kernel for a \
         device, or for a vfork child to exec"
    )]
    NotStopping {
        pid: i32,
        tid: i32,
        state: char,
        patience: Duration,
    },
    #[error("process {pid} has no stopped thread {tid}")]
    NoSuchThread { pid: i32, tid: i32 },
    #[error(
        "thread {tid} is inside a system call that the kernel may restart, and no syscall instruction ends at {address:#x}"
    )]
    RestartPending { tid: i32, address: u64 },
    #[error(
        "thread {tid} of process {pid} got {signal} at {address:#x}, in what it was to run for Hindsight"
    )]
    Faulted {
        pid: i32,
        tid: i32,
        signal: String,
        address: u64,
    },
    #[error(
        "thread {tid} of process {pid} was to run something for Hindsight, and was not done after {patience:?}"
    )]
    NotDone {
        pid: i32,
        tid: i32,
        patience: Duration,
    },
    #[error("{operation} {len} bytes at {address:#x} of process {pid}")]
    Memory {
        pid: i32,
        operation: &'static str,
        address: u64,
        len: usize,
        #[source]
        source: io::Error,
    },
    #[error("{request} of thread {tid}")]
    Ptrace {
        request: &'static str,
        tid: i32,
        #[source]
        source: io::Error,
    },
    #[error("{what}")]
    System {
        what: String,
        #[source]
        source: io::Error,
    },
}

impl StopError {
    /// Returns the next step, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::AlreadyTraced { .. } => Some("detach that debugger first"),
            Self::ScopeDescendants { .. } => Some(
                "start the program from here, run as root, or set it to 0 (sysctl kernel.yama.ptrace_scope=0)",
            ),
            Self::ScopeRoot { .. } => Some("run as root"),
            Self::NotPermitted { .. } => Some(
                "run as that user or as root (a program with set-uid or file capabilities, or a container without \
                 CAP_SYS_PTRACE, needs root outside)",
            ),
            Self::NotStopping { .. } | Self::NotDone { .. } => Some("try again"),
            _ => None,
        }
    }
}

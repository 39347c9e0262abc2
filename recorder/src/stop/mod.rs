//! Stops every thread of a process briefly to change its code or move its threads, and releases them unchanged.
//!
//! Guarantee: when [`while_stopped`] returns or unwinds, no thread of the target is stopped by us, no signal was lost,
//! and no system call failed that would not have failed otherwise. A process that was job-control stopped before
//! (SIGSTOP) stays stopped; if it got SIGCONT meanwhile, it runs.
//!
//! Method: each thread is seized and interrupted with ptrace. A ptrace relation belongs to one thread of the tracer.
//! When that thread ends, the kernel dissolves the relation in any state of the tracee. So each stop has a thread of
//! its own: its end also releases threads that could not be stopped, and those that a crash of the recorder would
//! leave stopped.
//!
//! wait(2) is not used to learn of stops: if the target is our child, another of our threads that waits for it would
//! consume them. For the same reason, code that waits for a child that may be stopped must use a pidfd and poll(2), or
//! be ready for stops: the kernel reports them to any waiter in the tracer's process. SIGCHLD may arrive too.
//!
//! Not stopped: other processes that share the target's memory (a vfork child before its exec; its parent thread cannot
//! be stopped before that either, so the stop waits for it, or is refused).

mod calls;
mod error;
pub(crate) mod filters;
mod frames;
pub(crate) mod memory;
pub(crate) mod procfs;
pub(crate) mod ptrace;
pub(crate) mod restart;
mod stopped;

pub use error::StopError;
pub(crate) use frames::interrupted;
pub use stopped::{StoppedProcess, while_stopped};

/// General registers of a stopped thread, named as in the kernel's `struct user_regs_struct`.
pub type Registers = libc::user_regs_struct;

//! What can go wrong while a program is controlled.

use std::io;

use crate::live::model::{ProbeId, Tid};

/// Each message is a sentence that can be shown as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The program has ended, or was left.
    #[error("the program has ended; start it again with \"restart\"")]
    Ended,
    /// The thread runs.
    #[error("thread {0} is running; stop it with \"pause\"")]
    Running(Tid),
    /// No thread has that number.
    #[error("there is no thread {0}; \"threads\" lists them")]
    NoThread(Tid),
    /// No probe has that number.
    #[error("there is no breakpoint, logpoint or watchpoint {0}; \"break list\" lists them")]
    NoProbe(ProbeId),
    /// No displayed expression has that number.
    #[error("there is no display {0}; \"display\" lists them")]
    NoDisplay(u32),
    /// A line has no code. The lines that have some are named in the message and listed.
    #[error("{message}")]
    NoCode {
        /// The sentence.
        message: String,
        /// Lines that have code.
        valid_lines: Vec<u32>,
    },
    /// No file of that name is known to the debug information.
    #[error("{message}")]
    NoFile {
        /// The sentence.
        message: String,
    },
    /// A column of a line whose columns nothing tells.
    #[error("{message}")]
    NoColumn {
        /// The sentence.
        message: String,
    },
    /// The code at an address cannot be moved out of the way.
    #[error(
        "the thread cannot be stopped at {address:#x}: {reason}; the nearest place is {nearest:#x}"
    )]
    CannotStop {
        /// What was asked for.
        address: u64,
        /// Why.
        reason: String,
        /// The nearest address where it can.
        nearest: u64,
    },
    /// A condition or template has a mistake.
    #[error("{message} at position {position}")]
    Expression {
        /// Byte, from 0.
        position: usize,
        /// What is wrong.
        message: String,
    },
    /// An expression was understood, but has no value here.
    #[error("{0}")]
    Evaluate(String),
    /// All debug registers are in use.
    #[error(
        "there are four watchpoints already, and the processor has no more; remove one with \"watch remove\""
    )]
    NoWatchpointLeft,
    /// A place that the processor cannot watch.
    #[error(
        "cannot watch {len} bytes at {address:#x}: the processor watches 1, 2, 4 or 8 bytes at a multiple of that"
    )]
    Unwatchable {
        /// The first byte.
        address: u64,
        /// How many.
        len: u64,
    },
    /// Memory that is not there.
    #[error("there is no memory at {address:#x}")]
    Memory {
        /// The first byte asked for.
        address: u64,
        /// How many.
        len: usize,
    },
    /// A function that was called did not come back.
    #[error("{0}")]
    Call(String),
    /// The threads did not stop.
    #[error("the program does not stop: a thread is held up in the kernel; try again")]
    NotStopping,
    /// We panicked; the program and the session go on.
    #[error("this came upon a mistake in Hindsight: {0}; please report it")]
    Mistake(String),
    /// Nothing to return to.
    #[error("{0}")]
    Motion(String),
    /// A request of the kernel failed.
    #[error("cannot {action}: {source}")]
    System {
        /// A verb and its object.
        action: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The result of controlling a program.
pub type LiveResult<T> = std::result::Result<T, LiveError>;

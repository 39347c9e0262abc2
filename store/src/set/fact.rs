//! One line of the list: a fact about a process.

use serde::{Deserialize, Serialize};

use crate::labels::Changes;

/// What happened to a process. Times are nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub enum Fact {
    /// It was created, as a copy of its parent.
    Begin {
        /// Its id.
        pid: i32,
        /// Its parent's id.
        parent: i32,
        /// When.
        unix_ns: i64,
        /// Its command line, which is its parent's.
        argv: Vec<String>,
    },
    /// It executes a program.
    Image {
        /// Its id.
        pid: i32,
        /// When.
        unix_ns: i64,
        /// Its command line.
        argv: Vec<String>,
    },
    /// The program that it executes is recorded.
    Recorded {
        /// Its id.
        pid: i32,
        /// The recording's folder in the set.
        recording: String,
    },
    /// The program that it executes is not recorded. If its recording had begun, nothing is left of that.
    Unrecorded {
        /// Its id.
        pid: i32,
        /// Why not.
        why: String,
    },
    /// It ended.
    End {
        /// Its id.
        pid: i32,
        /// When.
        unix_ns: i64,
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// Its recording was removed later.
    Pruned {
        /// Its id.
        pid: i32,
        /// The recording's folder in the set.
        recording: String,
    },
    /// The set got labels, or lost those without a value.
    Labels {
        /// By key.
        labels: Changes,
    },
    /// Something that the user should know about its recording.
    Warning {
        /// Its id.
        pid: i32,
        /// The text.
        text: String,
        /// The recording's folder in the set: the process may execute another program by now. `None` before there is one.
        #[serde(default)]
        recording: Option<String>,
    },
}

impl Fact {
    pub(super) fn pid(&self) -> i32 {
        match self {
            Self::Begin { pid, .. }
            | Self::Image { pid, .. }
            | Self::Recorded { pid, .. }
            | Self::Unrecorded { pid, .. }
            | Self::End { pid, .. }
            | Self::Pruned { pid, .. }
            | Self::Warning { pid, .. } => *pid,
            Self::Labels { .. } => 0,
        }
    }
}

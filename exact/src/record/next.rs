//! A recorded program has become another one, by execve(2): that stands before its first instruction.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::{Recorder, Summary, threads};
use crate::error::Result;
use crate::log::Writer;
use crate::ptrace;

/// The program. Only the thread that recorded the one before may use this.
#[derive(Debug)]
pub struct Next {
    pid: i32,
    /// Its file.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

impl Next {
    /// The process is stopped at the event of execve(2).
    pub(super) fn of(pid: i32) -> Next {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments = arguments.strip_suffix(&[0]).unwrap_or(&arguments);
        let arguments = arguments.split(|byte| *byte == 0);
        Next {
            pid,
            program: fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default(),
            arguments: arguments
                .map(|argument| OsString::from_vec(argument.to_vec()))
                .collect(),
        }
    }

    /// The process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Records it into a folder that exists; `spare` as in [`Options`](super::Options).
    pub fn record(self, folder: &Path, spare: Option<PathBuf>) -> Result<Summary> {
        let log = Writer::create(folder, spare)?;
        Recorder::record(self.pid, log, &self.arguments)
    }

    /// Lets it go on unrecorded, and waits for its end: returns its exit code or signal.
    pub fn release(self) -> (Option<i32>, Option<i32>) {
        let _ = ptrace::detach(self.pid, 0);
        threads::end_of(self.pid)
    }
}

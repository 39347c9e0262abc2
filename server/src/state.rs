//! A file that survives the daemon's sudden death. It says which programs the daemon held, and where their recordings
//! are.
//!
//! The file is replaced as a whole whenever a session begins or ends, and removed when the daemon ends normally. A file
//! without a daemon therefore means that the daemon died.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::protocol::{Code, Failure};

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The daemon's process id.
    pub daemon_pid: u32,
    /// Its sessions, by number.
    pub sessions: Vec<Held>,
}

/// The part of a session that matters without its daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The session's number.
    pub session: u32,
    /// The program's name, as given.
    pub program: String,
    /// Its process id.
    pub pid: i32,
    /// The start time of the process, in the kernel's ticks: a process id alone may have been reused.
    pub began: Option<u64>,
    /// The recording's folder.
    #[serde(with = "store::os_path")]
    pub recording: PathBuf,
}

impl State {
    /// Reads the file; `None` if it is missing or unreadable.
    #[must_use]
    pub fn read(path: &Path) -> Option<State> {
        let text = fs::read_to_string(path).ok()?;
        serde_json::from_str(&text)
            .inspect_err(|error| tracing::warn!(%error, "the notes of the last daemon are damaged"))
            .ok()
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).expect("numbers and texts are JSON");
        let new = path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            options.open(&new)?.write_all(text.as_bytes())?;
            fs::rename(&new, path)
        };
        write().map_err(Error::io(format!("write {}", path.display())))
    }

    /// Describes the daemon's death, if it held any session.
    #[must_use]
    pub fn death(&self) -> Option<Failure> {
        let last = self.sessions.last()?;
        let told: Vec<String> = self.sessions.iter().map(Held::fate).collect();
        let message = format!("the daemon was killed: {}", told.join("; "));
        let mut failure = Failure::new(Code::NoSession, message).hint(format!(
            "ask the recording: hindsight sql {}; start again: hindsight start {}",
            store::shell::word(&last.recording.to_string_lossy()),
            last.program
        ));
        failure.details.recording = Some(last.recording.clone());
        Some(failure)
    }
}

impl Held {
    /// Makes the note of a session.
    #[must_use]
    pub fn new(session: u32, program: String, pid: i32, recording: PathBuf) -> Held {
        Held {
            session,
            program,
            pid,
            began: began(pid),
            recording,
        }
    }

    fn fate(&self) -> String {
        let runs = self.began.is_some() && began(self.pid) == self.began;
        format!(
            "{} (process {}) {}; its recording is {}",
            self.program,
            self.pid,
            if runs {
                "is still running"
            } else {
                "has ended since"
            },
            self.recording.display()
        )
    }
}

/// Returns the start time of a process; `None` if it does not exist.
fn began(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain any character. The state is the 3rd field, the start the 22nd.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    match fields.next()? {
        // The first thread may have ended before the others.
        "Z" | "X" if !others_run(pid) => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

fn others_run(pid: i32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() > 1)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn held(pid: i32) -> Held {
        Held::new(1, "./app".to_owned(), pid, "/tmp/app.hindsight".into())
    }

    fn state(sessions: Vec<Held>) -> State {
        State {
            daemon_pid: 4711,
            sessions,
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.json");
        assert_eq!(State::read(&path), None);
        let written = state(vec![held(1)]);
        written.write(&path).unwrap();
        written.write(&path).unwrap();
        assert_eq!(State::read(&path), Some(written));
        fs::write(&path, "{\"daemon").unwrap();
        assert_eq!(State::read(&path), None);
    }

    #[test]
    fn the_name_of_a_recording_may_have_any_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.json");
        let recording = PathBuf::from(OsStr::from_bytes(b"/tmp/odd\xff.hindsight"));
        let odd = Held::new(1, "./app".to_owned(), 4711, recording);
        let written = state(vec![held(1), odd]);
        written.write(&path).unwrap();
        assert_eq!(State::read(&path), Some(written));
    }

    #[test]
    fn a_death_names_the_program_and_its_recording() {
        let us = i32::try_from(std::process::id()).unwrap();
        let told = state(vec![held(us)]).death().unwrap();
        assert_eq!(told.code, Code::NoSession);
        assert_eq!(
            told.message,
            format!(
                "the daemon was killed: ./app (process {us}) is still running; its recording is /tmp/app.hindsight"
            )
        );
        assert_eq!(told.details.recording, Some("/tmp/app.hindsight".into()));
        assert_eq!(state(vec![]).death(), None);
    }

    #[test]
    fn another_process_with_the_same_number_is_not_the_program() {
        let us = i32::try_from(std::process::id()).unwrap();
        let mut other = held(us);
        other.began = other.began.map(|ticks| ticks + 1);
        let told = state(vec![other]).death().unwrap();
        assert!(told.message.contains("has ended since"), "{told}");
    }

    #[test]
    fn a_process_that_is_not_there_has_no_beginning() {
        assert_eq!(began(0), None);
        assert_eq!(began(i32::MAX), None);
    }
}

//! The session that a client works with: the one that its last call began or named.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use server::protocol::Failure;
use server::session::{SessionReport, StateWord};

use crate::context::lock;

/// The session of calls that name none, for one client.
#[derive(Default)]
pub(crate) struct Current(Mutex<Option<Named>>);

/// A session, and where it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Its number.
    pub session: u32,
    /// Its recording, which stays when the session is gone.
    pub recording: PathBuf,
}

impl Current {
    /// Makes this the session of calls that name none.
    pub fn set(&self, session: u32, recording: &Path) {
        *lock(&self.0) = Some(Named {
            session,
            recording: recording.to_owned(),
        });
    }

    /// Returns the session of calls that name none, if an earlier call has begun or named one.
    pub fn get(&self) -> Option<Named> {
        lock(&self.0).clone()
    }
}

/// Refuses to choose among programs that run: a guess could end the wrong one. `here` is the client's folder.
pub(crate) fn only_one(sessions: &[SessionReport], here: &Path) -> Result<(), Failure> {
    let is_meant = |report: &&SessionReport| {
        matches!(report.status, StateWord::Running | StateWord::Stopped)
            && report.recording.starts_with(here)
    };
    let running: Vec<&SessionReport> = sessions.iter().filter(is_meant).collect();
    if running.len() < 2 {
        return Ok(());
    }
    let names = running
        .iter()
        .map(|report| format!("{} ({})", report.session, report.program));
    let names: Vec<String> = names.collect();
    let message = format!("several programs are under control: {}", names.join(", "));
    Err(Failure::bad_request(message)
        .hint("say which: sessionId; calls without it then mean the same one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(session: u32, status: StateWord, recording: &str) -> SessionReport {
        SessionReport {
            session,
            program: format!("./app{session}"),
            pid: 1,
            recording: PathBuf::from(recording),
            status,
            stop: None,
            past: None,
            stopped_threads: 0,
            exit: None,
            calls: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn several_running_programs_of_the_folder_are_not_chosen_among() {
        let here = Path::new("/home/ada");
        let running = report(1, StateWord::Running, "/home/ada/a.hindsight");
        let stopped = report(2, StateWord::Stopped, "/home/ada/b.hindsight");
        let ended = report(3, StateWord::Ended, "/home/ada/c.hindsight");
        let elsewhere = report(4, StateWord::Running, "/other/d.hindsight");
        let one = [running.clone(), ended.clone(), elsewhere.clone()];
        assert!(only_one(&one, here).is_ok());
        let two = [running, stopped, ended, elsewhere];
        let refused = only_one(&two, here).expect_err("two run").message;
        assert!(refused.contains("1 (./app1), 2 (./app2)"), "{refused}");
        assert!(!refused.contains("app3"), "{refused}");
    }

    #[test]
    fn the_session_of_a_client_is_the_one_named_last() {
        let current = Current::default();
        assert_eq!(current.get(), None);
        current.set(1, Path::new("/a"));
        current.set(2, Path::new("/b"));
        assert_eq!(current.get().map(|named| named.session), Some(2));
    }
}

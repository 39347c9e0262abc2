//! The session that a client works with: the one that its last call began or named.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use server::protocol::Failure;
use server::session::{SessionReport, StateWord};

use crate::context::lock;

/// The session of calls that name none, for one client.
#[derive(Default)]
pub(crate) struct Current(Mutex<Chosen>);

/// What the last call has begun or named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// Nothing yet.
    #[default]
    None,
    /// A session.
    Session(Named),
    /// A recording that no session has opened; its recorder may still run.
    Recording(PathBuf),
}

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
        *lock(&self.0) = Chosen::Session(Named {
            session,
            recording: recording.to_owned(),
        });
    }

    /// Makes this recording what calls mean that name no session. If it is that of the current session, the session stays.
    pub fn set_recording(&self, recording: &Path) {
        let mut chosen = lock(&self.0);
        let is_chosen = |named: &Named| named.recording == recording;
        if !matches!(&*chosen, Chosen::Session(named) if is_chosen(named)) {
            *chosen = Chosen::Recording(recording.to_owned());
        }
    }

    /// Makes this recording what calls mean that name no session: its session is over.
    pub fn left(&self, recording: &Path) {
        *lock(&self.0) = Chosen::Recording(recording.to_owned());
    }

    /// Returns the session of calls that name none, if an earlier call has begun or named one.
    pub fn get(&self) -> Option<Named> {
        match &*lock(&self.0) {
            Chosen::Session(named) => Some(named.clone()),
            Chosen::None | Chosen::Recording(_) => None,
        }
    }

    /// Returns the recording that the last call has named or begun to record, if no session has opened it.
    pub fn recording(&self) -> Option<PathBuf> {
        match &*lock(&self.0) {
            Chosen::Recording(recording) => Some(recording.clone()),
            Chosen::None | Chosen::Session(_) => None,
        }
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
        current.set_recording(Path::new("/c"));
        assert_eq!(
            (current.get(), current.recording()),
            (None, Some("/c".into()))
        );
        current.set(3, Path::new("/c"));
        assert_eq!(current.recording(), None);
        current.set_recording(Path::new("/c"));
        assert_eq!(current.get().map(|named| named.session), Some(3));
        current.left(Path::new("/c"));
        assert_eq!(
            (current.get(), current.recording()),
            (None, Some("/c".into()))
        );
    }
}

//! All sessions of a daemon. A session stays when its program has ended, so that its output and its end can be asked for,
//! until it is stopped, detached from or started again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recorder::live::Waited;

use super::Session;
use crate::config::OutputLimits;
use crate::daemon::Presence;
use crate::protocol::{Code, Failure};
use crate::state::{Held, State};

/// All sessions.
pub struct Sessions {
    /// Who keeps the daemon alive.
    pub presence: Presence,
    /// How much of each program's output is kept.
    pub output_limits: OutputLimits,
    /// The command that takes patches back should we be killed.
    pub guardian: Option<Vec<OsString>>,
    notes: PathBuf,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    newest: u32,
    sessions: BTreeMap<u32, Arc<Session>>,
}

/// The end of a program is waited for in pieces of so long; the wait ends at once when it comes.
const WATCH: Duration = Duration::from_secs(3600);

impl Sessions {
    /// Makes an empty list; `notes` is the file that tells of a sudden death.
    #[must_use]
    pub fn new(
        notes: PathBuf,
        output_limits: OutputLimits,
        guardian: Option<Vec<OsString>>,
    ) -> Arc<Sessions> {
        Arc::new(Sessions {
            presence: Presence::default(),
            output_limits,
            guardian,
            notes,
            known: Mutex::default(),
        })
    }

    /// Returns the number for a new session.
    pub fn next_id(&self) -> u32 {
        let mut known = self.known();
        known.newest += 1;
        known.newest
    }

    /// Takes a session in, and watches for its program's end.
    pub fn insert(self: &Arc<Self>, session: Session) -> Arc<Session> {
        let session = Arc::new(session);
        self.known()
            .sessions
            .insert(session.id, Arc::clone(&session));
        self.count();
        let sessions = Arc::clone(self);
        let live = session.live.clone();
        std::thread::spawn(move || {
            while !matches!(live.wait(u64::MAX, WATCH), Waited::Ended(_)) {}
            sessions.count();
        });
        session
    }

    /// Forgets a session.
    pub fn remove(&self, id: u32) {
        self.known().sessions.remove(&id);
        self.count();
    }

    /// Ends the daemon without waiting for it to be idle, unless there is a session left to ask about.
    pub fn end_if_none_are_left(&self) {
        if self.known().sessions.is_empty() {
            self.presence.end_soon();
        }
    }

    /// Returns all sessions, by number.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.known().sessions.values().cloned().collect()
    }

    /// Finds the session that is meant: by number, or else the newest whose program runs, or else the newest.
    ///
    /// # Errors
    /// [`Code::NoSession`].
    pub fn get(&self, id: Option<u32>) -> Result<Arc<Session>, Failure> {
        let all = self.all();
        let found = match id {
            Some(id) => all.iter().find(|session| session.id == id),
            None => {
                let running = all.iter().rev().find(|session| !session.has_ended());
                running.or(all.last())
            }
        };
        found.cloned().ok_or_else(|| no_such(id, &all))
    }

    /// Counts the programs that run, for who waits for the end, and notes them down.
    fn count(&self) {
        let running: Vec<_> = self
            .all()
            .into_iter()
            .filter(|session| !session.has_ended())
            .collect();
        let state = State {
            daemon_pid: std::process::id(),
            sessions: running.iter().map(|session| held(session)).collect(),
        };
        if let Err(error) = state.write(&self.notes) {
            tracing::warn!(%error, "if this daemon is killed, the next one will not know of its sessions");
        }
        self.presence.set_sessions(running.len());
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Each change is one call: whole at any time.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn held(session: &Session) -> Held {
    Held::new(
        session.id,
        session.program.clone(),
        session.live.pid(),
        session.live.recording().to_owned(),
    )
}

fn no_such(id: Option<u32>, all: &[Arc<Session>]) -> Failure {
    let begin = "begin one: hindsight start PROGRAM, or hindsight attach PID";
    match id {
        Some(id) if !all.is_empty() => {
            let numbers: Vec<String> = all.iter().map(|session| session.id.to_string()).collect();
            Failure::new(Code::NoSession, format!("there is no session {id}"))
                .hint(format!("sessions: {}", numbers.join(", ")))
        }
        Some(id) => Failure::new(
            Code::NoSession,
            format!("there is no session {id}, nor any other"),
        )
        .hint(begin),
        None => Failure::new(Code::NoSession, "there is no live session").hint(begin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_session_says_how_to_begin_one() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = Sessions::new(
            folder.path().join("sessions.json"),
            OutputLimits::default(),
            None,
        );
        let Err(failure) = sessions.get(None) else {
            panic!("there is a session")
        };
        assert_eq!(failure.code, Code::NoSession);
        assert_eq!(failure.message, "there is no live session");
        let Err(failure) = sessions.get(Some(3)) else {
            panic!("there is a session")
        };
        assert_eq!(failure.message, "there is no session 3, nor any other");
        assert_eq!(sessions.next_id(), 1);
        assert_eq!(sessions.next_id(), 2);
    }
}

//! All sessions of a daemon, or the only session of a prompt that examines a recording without a daemon. A live session
//! whose program has ended is kept until it is stopped, detached from or restarted, so that clients can still ask for
//! its output and its end.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recorder::live::Waited;

use super::{LiveSession, Session};
use crate::config::OutputLimits;
use crate::daemon::Presence;
use crate::output::Piece;
use crate::past::Past;
use crate::protocol::{Code, Failure};
use crate::push::{Happened, Subscribers};
use crate::state::{Held, State};
use crate::verbs::Asked;

/// All sessions.
pub struct Sessions {
    /// What keeps the daemon alive.
    pub presence: Presence,
    /// How much of each program's output is kept.
    pub output_limits: OutputLimits,
    /// The subscribers to stops, output and ends.
    pub subscribers: Subscribers,
    /// The command that removes the patches if this process is killed.
    pub guardian: Option<Vec<OsString>>,
    /// The file that reports a sudden death; `None` without a daemon.
    notes: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    newest: u32,
    sessions: BTreeMap<u32, Session>,
}

/// The longest single wait for a program's stop or end, which interrupt the wait at once.
const WATCH: Duration = Duration::from_secs(3600);

impl Sessions {
    /// Makes an empty list. `notes` is the file that reports a sudden death.
    #[must_use]
    pub fn new(
        notes: PathBuf,
        output_limits: OutputLimits,
        guardian: Option<Vec<OsString>>,
    ) -> Arc<Sessions> {
        Arc::new(Sessions {
            presence: Presence::default(),
            output_limits,
            subscribers: Subscribers::default(),
            guardian,
            notes: Some(notes),
            known: Mutex::default(),
        })
    }

    /// Makes the list of a single recording, without a daemon.
    #[must_use]
    pub fn of_recording(past: Past) -> Arc<Sessions> {
        let sessions = Sessions {
            presence: Presence::default(),
            output_limits: OutputLimits::default(),
            subscribers: Subscribers::default(),
            guardian: None,
            notes: None,
            known: Mutex::default(),
        };
        let recorded = Session::Recorded(Arc::new(past));
        sessions.known().sessions.insert(recorded.id(), recorded);
        Arc::new(sessions)
    }

    /// Returns the single recording, if there is no daemon.
    #[must_use]
    pub fn alone(&self) -> Option<Arc<Past>> {
        match (&self.notes, self.all().first()) {
            (None, Some(Session::Recorded(past))) => Some(Arc::clone(past)),
            _ => None,
        }
    }

    /// Returns the number for a new session.
    pub fn next_id(&self) -> u32 {
        let mut known = self.known();
        known.newest += 1;
        known.newest
    }

    /// Adds a recording as a session.
    pub fn insert_recorded(&self, past: Past) -> Session {
        let recorded = Session::Recorded(Arc::new(past));
        self.known()
            .sessions
            .insert(recorded.id(), recorded.clone());
        self.presence.stay();
        recorded
    }

    /// Adds a session and watches for its program's stops and end.
    pub fn insert(self: &Arc<Self>, session: LiveSession) -> Arc<LiveSession> {
        let session = Arc::new(session);
        let live = Session::Live(Arc::clone(&session));
        self.known().sessions.insert(session.id, live);
        self.count();
        // A program that has ended by now is not counted, but clients ask about it.
        self.presence.stay();
        let sessions = Arc::clone(self);
        let watched = Arc::clone(&session);
        std::thread::spawn(move || sessions.watch(&watched));
        session
    }

    /// Reports a session's stops until its program ends.
    fn watch(&self, session: &LiveSession) {
        let mut told = 0;
        let end = loop {
            match session.live.peek(told, None, None, WATCH) {
                Waited::Stopped(stop) => {
                    told = stop.number;
                    self.tell(session.id, || Happened::Stopped {
                        stop: Box::new(session.report_stop(&stop)),
                    });
                }
                Waited::Ended(exit) => break exit,
                Waited::TimedOut | Waited::Woken | Waited::ThreadEnded(_) => {}
            }
        };
        self.tell(session.id, || Happened::Ended {
            exit: end.into(),
            recording: session.live.recording().to_owned(),
        });
        self.count();
    }

    /// Returns a callback that reports the output of a session's program.
    pub fn output_of(self: &Arc<Self>, session: u32) -> impl Fn(&Piece) + Send + Sync + use<> {
        let sessions = Arc::downgrade(self);
        move |piece: &Piece| {
            if let Some(sessions) = sessions.upgrade() {
                sessions.tell(session, || Happened::Output {
                    piece: piece.number,
                    stream: piece.stream,
                    text: OsStr::from_bytes(&piece.bytes).into(),
                });
            }
        }
    }

    fn tell(&self, session: u32, what: impl FnOnce() -> Happened) {
        if self.subscribers.want(session) {
            self.subscribers.tell(session, &what());
        }
    }

    /// Removes a session.
    pub fn remove(&self, id: u32) {
        self.known().sessions.remove(&id);
        self.count();
    }

    /// Ends the daemon without the idle time, unless a session is left.
    pub fn end_if_none_are_left(&self) {
        if self.known().sessions.is_empty() {
            self.presence.end_soon();
        }
    }

    /// Returns all sessions, by number.
    #[must_use]
    pub fn all(&self) -> Vec<Session> {
        self.known().sessions.values().cloned().collect()
    }

    /// Returns all live sessions, by number.
    #[must_use]
    pub fn live(&self) -> Vec<Arc<LiveSession>> {
        let live = |session| match session {
            Session::Live(session) => Some(session),
            Session::Recorded(_) => None,
        };
        self.all().into_iter().filter_map(live).collect()
    }

    /// Finds a session: by number if one is given. Otherwise the search covers the sessions begun in the client's
    /// folder, or all if there are none. It is the newest; if the newest one's program has ended, that of the newest
    /// program that runs, if any does.
    ///
    /// # Errors
    /// [`Code::NoSession`].
    pub fn get(&self, asked: &Asked) -> Result<Session, Failure> {
        let all = self.all();
        let found = match asked.session {
            Some(id) => all.iter().find(|session| session.id() == id),
            None => {
                let folder = asked.folder.as_deref();
                let is_near = |session: &&Session| Some(session.folder()) == folder;
                let near: Vec<&Session> = all.iter().filter(is_near).collect();
                let meant = if near.is_empty() {
                    all.iter().collect()
                } else {
                    near
                };
                let newest = meant.last().copied();
                let is_running = |session: &&&Session| {
                    matches!(session, Session::Live(_)) && !session.has_ended()
                };
                let running = meant.iter().rev().find(is_running).copied();
                let has_ended = newest.is_some_and(|session| session.has_ended());
                running.filter(|_| has_ended).or(newest)
            }
        };
        found.cloned().ok_or_else(|| no_such(asked.session, &all))
    }

    /// Updates the count of running programs, which keep the daemon alive, and the file of notes.
    fn count(&self) {
        let running: Vec<_> = self
            .live()
            .into_iter()
            .filter(|session| !session.has_ended())
            .collect();
        let state = State {
            daemon_pid: std::process::id(),
            sessions: running.iter().map(|session| held(session)).collect(),
        };
        let written = self.notes.as_ref().map(|notes| state.write(notes));
        if let Some(Err(error)) = written {
            tracing::warn!(%error, "if this daemon is killed, the next one will not know of its sessions");
        }
        self.presence.set_sessions(running.len());
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Each change is a single call, so the list is consistent at all times.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn held(session: &LiveSession) -> Held {
    Held::new(
        session.id,
        session.program.clone(),
        session.live.pid(),
        session.live.recording().to_owned(),
    )
}

fn no_such(id: Option<u32>, all: &[Session]) -> Failure {
    let begin = "start one: hindsight start PROGRAM, or hindsight attach PID";
    match id {
        Some(id) if !all.is_empty() => {
            let numbers: Vec<String> = all.iter().map(|session| session.id().to_string()).collect();
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
        let Err(failure) = sessions.get(&Asked::default()) else {
            panic!("there is a session")
        };
        assert_eq!(failure.code, Code::NoSession);
        assert_eq!(failure.message, "there is no live session");
        let Err(failure) = sessions.get(&Asked {
            session: Some(3),
            folder: None,
        }) else {
            panic!("there is a session")
        };
        assert_eq!(failure.message, "there is no session 3, nor any other");
        assert_eq!(sessions.next_id(), 1);
        assert_eq!(sessions.next_id(), 2);
    }
}

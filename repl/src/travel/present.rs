//! The daemon's session of a prompt: the program's current state, its recording, and its end when the user leaves the
//! prompt. The daemon holds the session and its current position.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use server::past::Past;
use server::protocol::{Code, Failure};
use server::session::{SessionReport, StateWord};
use server::verbs::{self, GotoArgs, Nothing, OutputArgs, OutputReply};
use store::seal::Counter;
use store::{Reader, Recording};

use crate::ask::open;
use crate::commands::live::{
    Begun, Common, Link, Origin, Patience, asked_of_daemon, ended, pass_on,
};
use crate::error::Error;
use crate::output;

/// A session of the daemon.
pub struct Present {
    link: Rc<Link>,
    /// Its number; `None` once it was stopped or detached from.
    session: Cell<Option<u32>>,
    recording: PathBuf,
    /// The program was started here and ends with the prompt.
    is_ours: bool,
    /// The session was already in the past when the prompt opened.
    was_in_past: bool,
    counter: RefCell<Option<Counter>>,
    reader: RefCell<Option<Arc<Reader>>>,
    /// How many pieces of the program's output have been shown.
    printed: Cell<u64>,
}

impl Present {
    /// Makes the session that began here.
    pub fn begun(begun: Begun, link: &Rc<Link>) -> Present {
        let is_ours = begun.origin == Origin::Started;
        Present::new(begun.session, begun.recording, is_ours, false, link)
    }

    /// Finds a session by its number, or the only one.
    ///
    /// # Errors
    /// There is none, or there are several and no number is given.
    pub fn find(number: Option<u32>, link: &Rc<Link>) -> Result<Present, Error> {
        let common = Common {
            session: number,
            json: false,
        };
        let status =
            asked_of_daemon::<verbs::Status>(&common, link, &Nothing {}, Patience::Answer)?;
        let alive = |report: &&SessionReport| report.status != StateWord::Ended;
        let mut candidates: Vec<&SessionReport> = status.sessions.iter().filter(alive).collect();
        if candidates.is_empty() {
            candidates = status.sessions.iter().collect();
        }
        let found = match candidates.as_slice() {
            [only] => *only,
            [] => {
                let failure = Failure::new(Code::NoSession, "there is no live session")
                    .hint("name a recording or a program: hindsight repl RECORDING|PROGRAM");
                return Err(server::Error::from(failure).into());
            }
            several => {
                let list = several
                    .iter()
                    .map(|report| format!("{} ({})", report.session, report.program));
                let list = list.collect::<Vec<_>>().join(", ");
                return Err(Error::usage(
                    "there is more than one live session",
                    Some(format!("choose one with --session N: {list}")),
                ));
            }
        };
        let recording = found.recording.clone();
        let is_in_past = found.past.is_some();
        Ok(Present::new(
            found.session,
            recording,
            false,
            is_in_past,
            link,
        ))
    }

    fn new(
        session: u32,
        recording: PathBuf,
        is_ours: bool,
        was_in_past: bool,
        link: &Rc<Link>,
    ) -> Present {
        link.attend(Some(session));
        Present {
            link: Rc::clone(link),
            session: Cell::new(Some(session)),
            recording,
            is_ours,
            was_in_past,
            counter: RefCell::default(),
            reader: RefCell::default(),
            printed: Cell::default(),
        }
    }

    /// Returns whether the program ends with the prompt.
    pub fn is_ours(&self) -> bool {
        self.is_ours
    }

    /// Switches the prompt to a session that a verb began. If the number is the same, the session was restarted.
    pub fn follow(&mut self, begun: Begun) {
        let is_same = self.session.get() == Some(begun.session);
        if !is_same {
            // Say what becomes of the previous session.
            _ = self.leave(true);
        }
        let is_ours = match begun.origin {
            Origin::Started => !is_same || self.is_ours,
            Origin::Forked => self.is_ours,
            Origin::Found => is_same && self.is_ours,
        };
        // A copy shares its output with the program.
        let printed = match begun.origin {
            Origin::Forked => self.printed.get(),
            Origin::Started | Origin::Found => 0,
        };
        *self = Present::new(begun.session, begun.recording, is_ours, false, &self.link);
        self.printed.set(printed);
    }

    fn ask<V: verbs::Verb>(&self, args: &V::Args) -> Result<V::Reply, Error> {
        asked_of_daemon::<V>(&self.common(), &self.link, args, Patience::Answer)
    }

    fn common(&self) -> Common {
        Common {
            session: self.session.get(),
            json: false,
        }
    }

    /// Returns the state of the session; `None` if it no longer exists.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn report(&self) -> Result<Option<SessionReport>, Error> {
        if self.session.get().is_none() {
            return Ok(None);
        }
        let status = self.still(self.ask::<verbs::Status>(&Nothing {}))?;
        Ok(status.and_then(|status| status.sessions.into_iter().next()))
    }

    /// Returns the current position; `None` if the session no longer exists.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn position(&self) -> Result<Option<verbs::PositionReply>, Error> {
        match self.session.get() {
            None => Ok(None),
            Some(_) => self.still(self.ask::<verbs::Position>(&Nothing {})),
        }
    }

    /// Converts the failure of a session that no longer exists to `None`, and forgets the session.
    fn still<T>(&self, reply: Result<T, Error>) -> Result<Option<T>, Error> {
        match reply {
            Ok(reply) => Ok(Some(reply)),
            Err(Error::Live {
                source: server::Error::Failed(failure),
            }) if failure.code == Code::NoSession => {
                self.session.set(None);
                self.link.attend(None);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the recording of a session that no longer exists, at its last event.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn what_was_recorded(&self) -> Result<Past, Error> {
        let reader = self.reader()?;
        let open = || {
            let past = Past::new(reader)?;
            let past = past.of_session(0, &PathBuf::new(), None);
            past.go_to_last_stop(None)?;
            Ok(past)
        };
        open().map_err(|failure: Failure| server::Error::from(failure).into())
    }

    /// Returns the recording that questions are about: the session's, or that of the instructions that led to the program's position.
    /// Opens it again if it has grown since the last call.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn reader(&self) -> Result<Arc<Reader>, Error> {
        let instructions = self.instructions()?;
        let events = match instructions {
            Some(_) => None,
            None => Some(self.events()?),
        };
        let folder = instructions.as_deref().unwrap_or(&self.recording);
        let is_it = |reader: &&Arc<Reader>| {
            let has_all = events.is_none_or(|events| reader.events() == events);
            reader.recording().dir() == folder && has_all
        };
        let mut known = self.reader.borrow_mut();
        if let Some(reader) = known.as_ref().filter(is_it) {
            return Ok(Arc::clone(reader));
        }
        let reader = Arc::new(open(folder, &store::temp_dir())?);
        Ok(Arc::clone(known.insert(reader)))
    }

    /// Returns the recording of the instructions that led to the program's position, if the past is theirs now. It grows no more.
    fn instructions(&self) -> Result<Option<PathBuf>, Error> {
        let position = self.position()?;
        let asked = position.map(|at| at.instructions.unwrap_or(at.recording));
        Ok(asked.filter(|folder| *folder != self.recording))
    }

    /// Returns how many events have been recorded so far.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn events(&self) -> Result<u64, Error> {
        if self.session.get().is_some() {
            // If the recording can no longer be written, count what it contains.
            if let Err(error) = self.ask::<verbs::Settle>(&Nothing {}) {
                tracing::debug!(%error, "the recording is not settled");
            }
        }
        let failed = |source| Error::Store { source };
        let mut counter = self.counter.borrow_mut();
        let counter = match &mut *counter {
            Some(counter) => counter,
            none => {
                let recording = Recording::open(&self.recording).map_err(failed)?;
                none.insert(Counter::open(&recording).map_err(failed)?)
            }
        };
        counter.advance().map_err(failed)?;
        Ok(counter.events())
    }

    /// Returns the session's number if its program was started here.
    pub fn started_here(&self) -> Option<u32> {
        self.session.get().filter(|_| self.is_ours)
    }

    /// Shows the program's new output since the last call; the daemon keeps the output.
    pub fn show_output(&self) {
        if self.session.get().is_none() {
            return;
        }
        let args = OutputArgs {
            follow: Some(self.printed.get()),
            at_once: true,
            ..OutputArgs::default()
        };
        // An attached program prints to its own streams, and in the past no output is shown.
        let Ok(OutputReply::Pieces(reply)) = self.ask::<verbs::Output>(&args) else {
            return;
        };
        self.printed.set(reply.next);
        if let Err(error) = pass_on(&reply) {
            tracing::debug!(%error, "output is not shown");
        }
        let last = reply.pieces.last();
        let last = last.map(|piece| OsString::from(&piece.text).into_vec());
        if last.is_some_and(|bytes| !bytes.ends_with(b"\n")) {
            // As for the output itself.
            let _ = output::line("");
        }
    }

    /// Leaves the session: ends the program if it was started here, unless `keep`. Reports on stderr what became of it.
    ///
    /// # Errors
    /// The program cannot be ended.
    pub fn leave(&self, keep: bool) -> Result<(), Error> {
        let Some(report) = self.report()? else {
            return Ok(());
        };
        let number = report.session;
        if report.past.is_some() && report.status != StateWord::Recorded && !self.was_in_past {
            // The next user finds the program in its current state.
            let to = "live".to_owned();
            self.ask::<verbs::Goto>(&GotoArgs { to })?;
        }
        if self.is_ours && !keep {
            let patience = Patience::Start(None);
            let reply =
                asked_of_daemon::<verbs::Stop>(&self.common(), &self.link, &Nothing {}, patience)?;
            eprint!("hindsight: {}", ended(&reply));
            self.session.set(None);
            return Ok(());
        }
        let (does, end) = match report.status {
            StateWord::Running => (", its program keeps running", "stop"),
            StateWord::Stopped => (", its program stays stopped", "stop"),
            StateWord::Ended => (", its program has ended", "stop"),
            StateWord::Recorded => ("", "close"),
        };
        eprintln!(
            "hindsight: session {number} is kept{does}; `hindsight repl --session {number}` returns to it, `hindsight {end} --session {number}` ends it"
        );
        Ok(())
    }
}

//! The session of the daemon that a prompt is about: what its program does now, its recording, and what becomes of it when the
//! prompt is left. The daemon keeps the session, and what is looked at in it.

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

use crate::commands::live::{
    Begun, Common, Link, Origin, Patience, asked_of_daemon, ended, pass_on,
};
use crate::error::Error;

/// A session of the daemon.
pub struct Present {
    link: Rc<Link>,
    /// Its number; none once it was stopped or left.
    session: Cell<Option<u32>>,
    recording: PathBuf,
    /// The program was started here and ends with the prompt.
    is_ours: bool,
    /// Somebody looked at the past before the prompt came.
    was_in_past: bool,
    counter: RefCell<Option<Counter>>,
    reader: RefCell<Option<Arc<Reader>>>,
    /// How many pieces of the program's output were shown.
    printed: Cell<u64>,
}

impl Present {
    /// Takes a session that began here.
    pub fn begun(begun: Begun, link: &Rc<Link>) -> Present {
        let is_ours = begun.origin == Origin::Started;
        Present::new(begun.session, begun.recording, is_ours, false, link)
    }

    /// Finds a session by its number, or the only one.
    ///
    /// # Errors
    /// There is none, or more than one and no number.
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

    /// Says whether the program ends with the prompt.
    pub fn is_ours(&self) -> bool {
        self.is_ours
    }

    /// A verb began a session, which the prompt is about from now on. One that takes the same number was started again.
    pub fn follow(&mut self, begun: Begun) {
        let is_ours = match self.session.get() == Some(begun.session) {
            true => self.is_ours,
            false => {
                // What was started here before is not lost sight of.
                _ = self.leave(true);
                begun.origin == Origin::Started
            }
        };
        *self = Present::new(begun.session, begun.recording, is_ours, false, &self.link);
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

    /// Returns what the session is and does; `None` if it is no more.
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

    /// Returns which moment is looked at; `None` if the session is no more.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn position(&self) -> Result<Option<verbs::PositionReply>, Error> {
        match self.session.get() {
            None => Ok(None),
            Some(_) => self.still(self.ask::<verbs::Position>(&Nothing {})),
        }
    }

    /// Takes note of that the session is no more.
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

    /// Opens the recording of a session that is no more, at its last event.
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

    /// Returns the recording as it is now: opened anew if there are more events than when it was opened last.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn reader(&self) -> Result<Arc<Reader>, Error> {
        let events = self.events()?;
        let mut known = self.reader.borrow_mut();
        if let Some(reader) = known.as_ref().filter(|reader| reader.events() == events) {
            return Ok(Arc::clone(reader));
        }
        let opened = Reader::open(&self.recording, &store::temp_dir());
        let reader = Arc::new(opened.map_err(|source| Error::Store { source })?);
        Ok(Arc::clone(known.insert(reader)))
    }

    /// Returns how many events were recorded up to now.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn events(&self) -> Result<u64, Error> {
        if self.session.get().is_some() {
            // Of a recording that cannot be written on, what is there is seen.
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

    /// Shows what the program has printed since the last time, and forgets nothing.
    pub fn show_output(&self) {
        if self.session.get().is_none() {
            return;
        }
        let args = OutputArgs {
            follow: Some(self.printed.get()),
            at_once: true,
            ..OutputArgs::default()
        };
        // That of a program that was attached to goes where it went before; and none is shown in the past.
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
            println!();
        }
    }

    /// Leaves the session: ends the program if it was started here and is not to be kept. Says on stderr what became of it.
    ///
    /// # Errors
    /// The program cannot be ended.
    pub fn leave(&self, keep: bool) -> Result<(), Error> {
        let Some(report) = self.report()? else {
            return Ok(());
        };
        let number = report.session;
        if report.past.is_some() && report.status != StateWord::Recorded && !self.was_in_past {
            // Who comes next finds the program as it is.
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

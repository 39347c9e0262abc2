//! The live session that a prompt is about: what its program does now, its past, and what becomes of it when the prompt is left.
//!
//! The daemon keeps the session; here is only what the prompt needs of it. Its past is its own recording as far as that was
//! written when the program was stopped, opened anew when there is more.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use query::Options;
use server::past::Past;
use server::protocol::{Code, Failure};
use server::session::{SessionReport, StateWord};
use server::verbs::{self, Nothing, OutputArgs, ThreadArgs};
use store::seal::Counter;
use store::{Reader, Recording};

use crate::commands::live::attended::{self, Begun, Origin};
use crate::commands::live::{Common, Patience, asked_of_daemon, ended, pass_on, recorded};
use crate::error::Error;
use crate::render::Terminal;

/// A live session.
pub struct Present {
    /// Its number; none once it was stopped or left.
    session: Option<u32>,
    recording: PathBuf,
    /// The program was started here and ends with the prompt.
    is_ours: bool,
    counter: Option<Counter>,
    reader: Option<Arc<Reader>>,
    past: Option<Rc<Past>>,
    /// How many pieces of the program's output were shown.
    printed: u64,
    terminal: Terminal,
}

/// What the program does, and where.
pub struct Standing {
    /// The session.
    pub report: SessionReport,
    /// The thread that is looked at and its function, if one is stopped.
    thread: Option<(u32, Option<String>)>,
}

impl Present {
    /// Takes a session that began here.
    pub fn begun(begun: Begun, terminal: &Terminal) -> Present {
        let is_ours = begun.origin == Origin::Started;
        Present::new(begun.session, begun.recording, is_ours, terminal)
    }

    /// Finds a session by its number, or the only one.
    ///
    /// # Errors
    /// There is none, or more than one and no number.
    pub fn find(number: Option<u32>, terminal: &Terminal) -> Result<Present, Error> {
        let common = Common {
            session: number,
            json: false,
        };
        let status = asked_of_daemon::<verbs::Status>(
            &common,
            terminal,
            &Nothing {},
            Patience::Answer,
            false,
        )?;
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
                return Err(recorded::failed(failure));
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
        Ok(Present::new(found.session, recording, false, terminal))
    }

    fn new(session: u32, recording: PathBuf, is_ours: bool, terminal: &Terminal) -> Present {
        attended::attend(Some(session));
        Present {
            session: Some(session),
            recording,
            is_ours,
            counter: None,
            reader: None,
            past: None,
            printed: 0,
            terminal: terminal.clone(),
        }
    }

    /// Says whether the program ends with the prompt.
    pub fn is_ours(&self) -> bool {
        self.is_ours
    }

    /// A verb began a session, which the prompt is about from now on. One that takes the same number was started again.
    pub fn follow(&mut self, begun: Begun) {
        let is_ours = match self.session == Some(begun.session) {
            true => self.is_ours,
            false => {
                // What was started here before is not lost sight of.
                _ = self.leave(true);
                begun.origin == Origin::Started
            }
        };
        *self = Present::new(begun.session, begun.recording, is_ours, &self.terminal);
    }

    fn ask<V: server::verbs::Verb>(&self, args: &V::Args) -> Result<V::Reply, Error> {
        let common = Common {
            session: self.session,
            json: false,
        };
        asked_of_daemon::<V>(&common, &self.terminal, args, Patience::Answer, false)
    }

    /// Returns what the program does now; `None` if the session is no more.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn report(&mut self) -> Result<Option<SessionReport>, Error> {
        if self.session.is_none() {
            return Ok(None);
        }
        match self.ask::<verbs::Status>(&Nothing {}) {
            Ok(status) => Ok(status.sessions.into_iter().next()),
            Err(Error::Live {
                source: server::Error::Failed(failure),
            }) if failure.code == Code::NoSession => {
                self.session = None;
                attended::attend(None);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns where the program stands; `None` if the session is no more.
    fn standing(&mut self) -> Result<Option<Standing>, Error> {
        let Some(report) = self.report()? else {
            return Ok(None);
        };
        let thread = match report.status {
            StateWord::Stopped => self.ask::<verbs::Thread>(&ThreadArgs { thread: None }).ok(),
            StateWord::Running | StateWord::Ended => None,
        };
        let thread = thread.map(|thread| {
            let function = thread.place.and_then(|place| place.function);
            (thread.thread as u32, function)
        });
        Ok(Some(Standing { report, thread }))
    }

    /// Opens the past, and looks at where the program stands now.
    ///
    /// # Errors
    /// The program runs, or its recording cannot be read.
    pub fn past(&mut self) -> Result<Rc<Past>, Error> {
        let standing = self.standing()?;
        let status = standing.as_ref().map(|standing| standing.report.status);
        if status == Some(StateWord::Running) {
            let failure = Failure::new(
                Code::NotStopped,
                "the program is running, and its past can be looked at while it stands still",
            );
            return Err(recorded::failed(failure.hint("stop it first: pause")));
        }
        let reader = self.reader()?;
        let is_whole = |past: &&Rc<Past>| Arc::ptr_eq(past.timeline().reader(), &reader);
        let past = match self.past.as_ref().filter(is_whole) {
            Some(past) => Rc::clone(past),
            None => {
                let opened = Past::new(reader).map_err(recorded::failed)?;
                let number = self.session.unwrap_or_default();
                Rc::new(opened.of_session(number, self.past.as_deref()))
            }
        };
        self.past = Some(Rc::clone(&past));
        let thread = standing.and_then(|standing| standing.thread);
        past.go_to_last_stop(thread.map(|(tid, _)| tid))
            .map_err(recorded::failed)?;
        Ok(past)
    }

    /// Returns the recording as it is now: opened anew if there are more events than when it was opened last.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn reader(&mut self) -> Result<Arc<Reader>, Error> {
        let events = self.events()?;
        let is_whole = |reader: &&Arc<Reader>| reader.events() == events;
        if let Some(reader) = self.reader.as_ref().filter(is_whole) {
            return Ok(Arc::clone(reader));
        }
        let opened = Reader::open(&self.recording, &Options::default().temp_dir);
        let reader = Arc::new(opened.map_err(|source| Error::Store { source })?);
        self.reader = Some(Arc::clone(&reader));
        Ok(reader)
    }

    /// Returns how many events were recorded up to now.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn events(&mut self) -> Result<u64, Error> {
        if self.session.is_some() {
            // Of a recording that cannot be written on, what is there is seen.
            if let Err(error) = self.ask::<verbs::Settle>(&Nothing {}) {
                tracing::debug!(%error, "the recording is not settled");
            }
        }
        let failed = |source| Error::Store { source };
        let counter = match &mut self.counter {
            Some(counter) => counter,
            None => {
                let recording = Recording::open(&self.recording).map_err(failed)?;
                let counter = Counter::open(&recording).map_err(failed)?;
                self.counter.insert(counter)
            }
        };
        counter.advance().map_err(failed)?;
        Ok(counter.events())
    }

    /// Returns what stands before a line.
    pub fn prompt(&mut self) -> String {
        let standing = match self.standing() {
            Ok(Some(standing)) => standing,
            Ok(None) => return "no session> ".to_owned(),
            Err(error) => {
                tracing::debug!(%error, "the prompt does not know where it is");
                return "live> ".to_owned();
            }
        };
        match (standing.report.status, standing.thread) {
            (StateWord::Running, _) => "live running> ".to_owned(),
            (StateWord::Ended, _) => "live ended> ".to_owned(),
            (StateWord::Stopped, None) => "live> ".to_owned(),
            (StateWord::Stopped, Some((tid, function))) => {
                let seq = self.stop_of(tid);
                let function = function.unwrap_or_default();
                super::prompt("live", seq, tid, &function)
            }
        }
    }

    /// Returns the event of a thread's last stop, if the recording tells.
    fn stop_of(&mut self, tid: u32) -> Option<u64> {
        self.events().ok()?;
        let counted = self.counter.as_ref()?.last_stop(tid);
        counted.or_else(|| {
            // It was sealed before we came.
            let past = self.past().ok()?;
            past.timeline().last_stop(tid)
        })
    }

    /// Shows what the program has printed since the last time, and forgets nothing.
    pub fn show_output(&mut self) {
        if self.session.is_none() {
            return;
        }
        let args = OutputArgs {
            follow: Some(self.printed),
            at_once: true,
            ..OutputArgs::default()
        };
        // That of a program that was attached to goes where it went before.
        let Ok(reply) = self.ask::<verbs::Output>(&args) else {
            return;
        };
        self.printed = reply.next;
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
    pub fn leave(&mut self, keep: bool) -> Result<(), Error> {
        let Some(report) = self.report()? else {
            return Ok(());
        };
        let number = report.session;
        if self.is_ours && !keep {
            let common = Common {
                session: Some(number),
                json: false,
            };
            let patience = Patience::Start(None);
            let reply = asked_of_daemon::<verbs::Stop>(
                &common,
                &self.terminal,
                &Nothing {},
                patience,
                false,
            )?;
            eprint!("hindsight: {}", ended(&reply));
            self.session = None;
            return Ok(());
        }
        let does = match report.status {
            StateWord::Running => "goes on running",
            StateWord::Stopped => "stays stopped",
            StateWord::Ended => "has ended",
        };
        eprintln!(
            "hindsight: session {number} is kept, its program {does}; `hindsight repl --session {number}` returns to it, `hindsight stop --session {number}` ends it"
        );
        Ok(())
    }
}

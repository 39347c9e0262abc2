//! The recipient of requests: the daemon, or a recording that a prompt has opened in this process. It also holds what a
//! prompt must know of the requests.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;

use server::client::Wait;
use server::past::Past;
use server::protocol::NoticeKind;
use server::session::{MotionReport, SessionReport};
use server::transport::{InProcess, Transport};
use server::verbs::Verb;

use super::interrupt;
use crate::error::Error;
use crate::progress::Progress;
use crate::render::Terminal;

/// The recipient of requests, and the sender's settings.
pub struct Link {
    terminal: Terminal,
    /// The recording that answers in place of the daemon.
    recording: RefCell<Option<InProcess>>,
    /// A prompt sends the requests. Ctrl-C then ends what the prompt waits for, never the prompt.
    is_prompt: bool,
    /// The session of verbs that name none.
    session: Cell<Option<u32>>,
    begun: RefCell<Option<Begun>>,
    was_interrupted: Cell<bool>,
    /// What to run at the stop that was reached, if its breakpoints have lines.
    at_stop: RefCell<Option<Vec<String>>>,
    /// A user types the lines of the prompt.
    is_typed: Cell<bool>,
    /// Shows the progress of the recording in this process with an answer.
    progress: Arc<Progress>,
}

/// How a session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Its program was started.
    Started,
    /// Its program was already running, or it is a recording.
    Found,
    /// Its program is a copy that the prompt's made of itself.
    Forked,
}

/// A session that a verb began.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Its number.
    pub session: u32,
    /// Its recording's folder.
    pub recording: PathBuf,
    /// How it began.
    pub origin: Origin,
}

impl Link {
    /// Makes the link of a single command to the daemon.
    pub fn of_command(terminal: &Terminal) -> Link {
        Link {
            terminal: terminal.clone(),
            recording: RefCell::default(),
            is_prompt: false,
            session: Cell::default(),
            begun: RefCell::default(),
            was_interrupted: Cell::default(),
            at_stop: RefCell::default(),
            is_typed: Cell::default(),
            progress: Arc::new(Progress::new(terminal)),
        }
    }

    /// Makes the link of a prompt to the daemon.
    pub fn of_prompt(terminal: &Terminal) -> Link {
        Link {
            is_prompt: true,
            ..Link::of_command(terminal)
        }
    }

    /// Returns the terminal.
    pub fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    /// Returns whether a prompt sends the requests.
    pub fn is_prompt(&self) -> bool {
        self.is_prompt
    }

    /// Sets that a user types the lines. From now on Ctrl-C ends a search in this process, not the prompt.
    pub fn types(&self) {
        self.is_typed.set(true);
    }

    /// Sends requests to a recording in this process from now on.
    pub fn look_at(&self, past: Past) {
        let progress = Arc::clone(&self.progress);
        let recording = InProcess::new(past).telling(Arc::new(move |notice| match notice.kind {
            NoticeKind::Progress => progress.setup(&notice.text),
            NoticeKind::Running => progress.running(&notice.text, notice.may_leave),
            NoticeKind::Warning => progress.warning(&notice.one_line()),
        }));
        self.recording.replace(Some(recording));
    }

    /// Sends requests to the daemon again.
    pub fn look_away(&self) {
        self.recording.replace(None);
    }

    /// Returns the recording in this process, if it receives the requests.
    pub fn past(&self) -> Option<Arc<Past>> {
        self.recording.borrow().as_ref().map(InProcess::past)
    }

    /// Sets the session of verbs that name none.
    pub fn attend(&self, session: Option<u32>) {
        self.session.set(session);
    }

    /// Returns the session of verbs that name none.
    pub fn session(&self) -> Option<u32> {
        self.session.get()
    }

    /// Notes for the prompt that a session has begun.
    pub fn begun(&self, report: &SessionReport, origin: Origin) {
        self.begun.replace(Some(Begun {
            session: report.session,
            recording: report.recording.clone(),
            origin,
        }));
    }

    /// Notes for the prompt that a wait has turned to a copy of the program.
    pub(super) fn turned(&self, moved: &MotionReport) {
        if moved.followed.is_some() {
            self.begun.replace(Some(Begun {
                session: moved.session,
                recording: moved.recording.clone(),
                origin: Origin::Forked,
            }));
        }
    }

    /// Returns the session that has begun since the last call.
    pub fn take_begun(&self) -> Option<Begun> {
        self.begun.take()
    }

    /// Notes the lines of the breakpoints at which the program has stopped.
    pub(super) fn stopped_with(&self, lines: Vec<String>) {
        self.at_stop.replace(Some(lines));
    }

    /// Returns the lines to be run since the last call.
    pub fn take_at_stop(&self) -> Option<Vec<String>> {
        self.at_stop.take()
    }

    /// Notes that Ctrl-C was pressed during a wait.
    pub fn interrupted(&self) {
        self.was_interrupted.set(true);
    }

    /// Returns whether Ctrl-C was pressed during a wait since the last call.
    pub fn take_interrupted(&self) -> bool {
        self.was_interrupted.take()
    }

    /// Sends a request to the recording in this process; `None` if there is none.
    ///
    /// # Errors
    /// When the verb fails.
    pub(super) fn ask_recording<V: Verb>(&self, args: &V::Args) -> Option<Result<V::Reply, Error>> {
        let mut recording = self.recording.borrow_mut();
        let recording = recording.as_mut()?;
        let wait = Wait {
            patience: None,
            notify: &mut |_| {},
        };
        let flag = recording.interrupt();
        let call = || recording.call::<V>(args, None, wait);
        flag.clear();
        let work = || self.watched(move || flag.set(), call);
        let reply = self.progress.alive("looking", work);
        self.progress.finish();
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => return Some(Err(error)),
        };
        Some(reply.map_err(Error::from))
    }

    /// Works on recordings in this process. Where a user types the lines, Ctrl-C calls `interrupt`, which is to end it.
    ///
    /// # Errors
    /// Ctrl-C cannot be caught.
    pub fn watched<T>(
        &self,
        interrupt: impl FnOnce() + Send,
        work: impl FnOnce() -> T,
    ) -> Result<T, Error> {
        match self.is_typed.get() {
            true => interrupt::watched(interrupt, work),
            false => Ok(work()),
        }
    }

    /// Exchanges the recording in this process with another one, if there is one.
    pub fn exchange(&self, other: &mut InProcess) {
        if let Some(own) = self.recording.borrow_mut().as_mut() {
            std::mem::swap(own, other);
        }
    }
}

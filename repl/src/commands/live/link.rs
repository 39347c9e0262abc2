//! What verbs are asked through: the daemon, or a recording that a prompt has opened in this process; and what a prompt has to
//! know of them.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;

use server::client::Wait;
use server::past::Past;
use server::session::SessionReport;
use server::transport::{InProcess, Transport};
use server::verbs::Verb;

use super::interrupt;
use crate::error::Error;
use crate::render::Terminal;

/// Who answers verbs, and for whom.
pub struct Link {
    terminal: Terminal,
    /// The recording that is asked in place of the daemon.
    recording: RefCell<Option<InProcess>>,
    /// A prompt asks: Ctrl-C is for what it waits for, and never ends it.
    is_prompt: bool,
    /// The session that verbs mean which name none.
    session: Cell<Option<u32>>,
    begun: RefCell<Option<Begun>>,
    was_interrupted: Cell<bool>,
    /// Somebody types the lines of the prompt.
    is_typed: Cell<bool>,
}

/// Where a session came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Its program was started.
    Started,
    /// Its program ran already, or it is a recording.
    Found,
}

/// A session that a verb began.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Its number.
    pub session: u32,
    /// Its recording's folder.
    pub recording: PathBuf,
    /// Where it came from.
    pub origin: Origin,
}

impl Link {
    /// Asks the daemon for one verb.
    pub fn of_command(terminal: &Terminal) -> Link {
        Link {
            terminal: terminal.clone(),
            recording: RefCell::default(),
            is_prompt: false,
            session: Cell::default(),
            begun: RefCell::default(),
            was_interrupted: Cell::default(),
            is_typed: Cell::default(),
        }
    }

    /// Asks the daemon for a prompt.
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

    /// Says whether a prompt asks.
    pub fn is_prompt(&self) -> bool {
        self.is_prompt
    }

    /// From now on somebody types the lines: Ctrl-C ends a search in this process, and not the prompt.
    pub fn types(&self) {
        self.is_typed.set(true);
    }

    /// From now on a recording in this process is asked.
    pub fn look_at(&self, past: Past) {
        self.recording.replace(Some(InProcess::new(past)));
    }

    /// From now on the daemon is asked again.
    pub fn look_away(&self) {
        self.recording.replace(None);
    }

    /// Returns the recording in this process, if that is asked.
    pub fn past(&self) -> Option<Arc<Past>> {
        self.recording.borrow().as_ref().map(InProcess::past)
    }

    /// From now on, verbs that name no session mean this one.
    pub fn attend(&self, session: Option<u32>) {
        self.session.set(session);
    }

    /// Returns the session that is meant where none is named.
    pub fn session(&self) -> Option<u32> {
        self.session.get()
    }

    /// Tells the prompt of a session that begins.
    pub fn begun(&self, report: &SessionReport, origin: Origin) {
        self.begun.replace(Some(Begun {
            session: report.session,
            recording: report.recording.clone(),
            origin,
        }));
    }

    /// Returns the session that began since the last time.
    pub fn take_begun(&self) -> Option<Begun> {
        self.begun.take()
    }

    /// Notes that Ctrl-C was pressed while something was waited for.
    pub fn interrupted(&self) {
        self.was_interrupted.set(true);
    }

    /// Says whether that was so since the last time.
    pub fn take_interrupted(&self) -> bool {
        self.was_interrupted.take()
    }

    /// Asks the recording in this process; `None` if there is none.
    ///
    /// # Errors
    /// The verb's.
    pub(super) fn ask_recording<V: Verb>(&self, args: &V::Args) -> Option<Result<V::Reply, Error>> {
        let mut recording = self.recording.borrow_mut();
        let recording = recording.as_mut()?;
        let wait = Wait {
            patience: None,
            notify: &mut |_| {},
        };
        let flag = recording.interrupt();
        let call = || recording.call::<V>(args, None, wait);
        let reply = match self.is_typed.get() {
            true => match interrupt::watched(flag, call) {
                Ok(reply) => reply,
                Err(error) => return Some(Err(error)),
            },
            false => call(),
        };
        Some(reply.map_err(Error::from))
    }
}

//! A session that is either live or recorded, with the operations that both have.

use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};

use expr::Kept;

use super::{AtStops, LiveSession, SessionReport};
use crate::past::Past;
use crate::protocol::Failure;

/// A live session or a recording. The past of a live session is a recording too.
#[derive(Clone)]
pub enum Session {
    /// A program under control.
    Live(Arc<LiveSession>),
    /// A recording.
    Recorded(Arc<Past>),
}

/// What was shown last, for verbs that continue after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastShown {
    /// The lines of source.
    pub lines: Option<Listed>,
    /// How memory was shown: `4xw`.
    pub format: Option<String>,
    /// Where `x` continues, if it has shown memory backwards: where that begins.
    pub began: Option<u64>,
}

/// Lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The file.
    pub file: String,
    /// The first line, from 1.
    pub first: u32,
    /// The last line.
    pub last: u32,
}

impl Session {
    /// Returns its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        match self {
            Session::Live(session) => session.id,
            Session::Recorded(past) => past.id(),
        }
    }

    /// Returns the folder of the client that began the session.
    #[must_use]
    pub fn folder(&self) -> &Path {
        match self {
            Session::Live(session) => &session.folder,
            Session::Recorded(past) => past.folder(),
        }
    }

    /// Returns the values that the session keeps: `$1`, `$name`.
    #[must_use]
    pub fn kept(&self) -> &Kept {
        match self {
            Session::Live(session) => session.live.kept(),
            Session::Recorded(past) => past.kept(),
        }
    }

    /// Returns what the session has shown last.
    pub fn last_shown(&self) -> MutexGuard<'_, LastShown> {
        let shown = match self {
            Session::Live(session) => &session.last_shown,
            Session::Recorded(past) => past.last_shown(),
        };
        // Both parts are consistent at all times.
        shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lines that run when a breakpoint has stopped the program.
    #[must_use]
    pub fn at_stops(&self) -> &AtStops {
        match self {
            Session::Live(session) => &session.at_stops,
            Session::Recorded(past) => past.at_stops(),
        }
    }

    /// Returns whether the session's program has ended; false for a recording.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match self {
            Session::Live(session) => session.has_ended(),
            Session::Recorded(_) => false,
        }
    }

    /// Describes the session.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn report(&self) -> Result<SessionReport, Failure> {
        match self {
            Session::Live(session) => Ok(session.report()),
            Session::Recorded(past) => past.report(),
        }
    }

    /// Selects a frame of the selected thread.
    ///
    /// # Errors
    /// The thread runs again.
    pub fn select_frame(&self, frame: usize) -> Result<(), Failure> {
        match self {
            Session::Live(session) => {
                let stop = session.stopped()?;
                session.select_frame(stop.tid, stop.number, frame);
            }
            Session::Recorded(past) => past.select_frame(frame),
        }
        Ok(())
    }
}

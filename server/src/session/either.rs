//! A session that is either live or recorded, with the operations that both have.

use std::path::Path;
use std::sync::Arc;

use super::{LiveSession, SessionReport};
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

    /// Says whether the session's program has ended; false for a recording.
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

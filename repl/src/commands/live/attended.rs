//! The session that a prompt in this thread is about. Verbs that name no session mean it, and what begins a session tells it.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use server::session::SessionReport;

thread_local! {
    static OPEN: Cell<bool> = const { Cell::new(false) };
    static SESSION: Cell<Option<u32>> = const { Cell::new(None) };
    static BEGUN: RefCell<Option<Begun>> = const { RefCell::new(None) };
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// Where a session's program came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was started.
    Started,
    /// It ran already.
    Attached,
}

/// A session that a verb began.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Its number.
    pub session: u32,
    /// Its recording's folder.
    pub recording: PathBuf,
    /// Where its program came from.
    pub origin: Origin,
}

/// Opens a prompt: from now on Ctrl-C is for the program.
pub fn open() {
    OPEN.set(true);
}

/// Says whether there is a prompt.
pub fn is_open() -> bool {
    OPEN.get()
}

/// From now on, verbs that name no session mean this one.
pub fn attend(session: Option<u32>) {
    SESSION.set(session);
}

/// Returns the session that is meant where none is named.
pub fn session() -> Option<u32> {
    SESSION.get()
}

/// Tells the prompt of a session that begins.
pub fn begun(report: &SessionReport, origin: Origin) {
    BEGUN.set(Some(Begun {
        session: report.session,
        recording: report.recording.clone(),
        origin,
    }));
}

/// Returns the session that began since the last time.
pub fn take_begun() -> Option<Begun> {
    BEGUN.take()
}

/// Notes that Ctrl-C was pressed while something was waited for.
pub fn interrupted() {
    INTERRUPTED.set(true);
}

/// Says whether that was so since the last time.
pub fn take_interrupted() -> bool {
    INTERRUPTED.take()
}

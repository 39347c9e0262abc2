//! The event type: the enter or leave of a call, or something else.

use store::columns::ReadEvent;

use crate::calls::CallHead;

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A function was entered.
    Enter(CallHead),
    /// A call ended; [`CallHead::unwound`] says that it did not return.
    Leave(CallHead),
    /// Anything else.
    Other(Box<ReadEvent>),
}

impl Event {
    /// Returns its number.
    #[must_use]
    pub fn seq(&self) -> u64 {
        match self {
            Event::Enter(call) => call.start,
            Event::Leave(call) => call.end.expect("a call that is left has ended"),
            Event::Other(event) => event.seq,
        }
    }

    /// Returns its thread, if it has one.
    #[must_use]
    pub fn tid(&self) -> Option<u32> {
        match self {
            Event::Enter(call) | Event::Leave(call) => call.tid,
            Event::Other(event) => event.tid,
        }
    }

    /// Returns its kind's name, as SQL has it.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Event::Enter(_) => "enter",
            Event::Leave(_) => "leave",
            Event::Other(event) => &event.kind,
        }
    }
}

/// The kinds of events, other than enter and leave, that a state depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A thread was stopped.
    Pause,
    /// It resumes.
    Resume,
    /// Memory or a register was changed from outside.
    Write,
    /// A module was mapped.
    ModuleLoad,
    /// A module was unmapped.
    ModuleUnload,
    /// The first event of a thread.
    ThreadStart,
    /// Its name changed.
    ThreadName,
    /// A thread is ending.
    ThreadExit,
    /// A note.
    Note,
    /// The process ended, became another program, or was detached.
    End,
    /// Events were lost.
    Gap,
    /// The program wrote to descriptor 1 or 2.
    Output,
    /// The program wrote to a place whose writes are logged.
    LoggedWrite,
    /// A logpoint was passed.
    Logpoint,
    /// Memory was copied.
    Snapshot,
    /// A probe of live control was added, changed or removed.
    Probe,
    /// An exception, a panic or a signal was seen.
    Exception,
    /// Anything else.
    Else,
}

impl Kind {
    /// Finds the kind of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Kind {
        match name {
            "pause" => Kind::Pause,
            "resume" => Kind::Resume,
            "write" => Kind::Write,
            "module_load" => Kind::ModuleLoad,
            "module_unload" => Kind::ModuleUnload,
            "thread_start" => Kind::ThreadStart,
            "thread_name" => Kind::ThreadName,
            "thread_exit" => Kind::ThreadExit,
            "note" => Kind::Note,
            "process_exit" | "exec" | "detached" => Kind::End,
            "gap" => Kind::Gap,
            "stdout" | "stderr" => Kind::Output,
            "logged_write" => Kind::LoggedWrite,
            "logpoint" => Kind::Logpoint,
            "snapshot" => Kind::Snapshot,
            "probe" | "probe_removed" => Kind::Probe,
            "exception" => Kind::Exception,
            _ => Kind::Else,
        }
    }

    /// Returns whether the program takes no part in an event of this kind: the event neither shows that a thread ran nor
    /// lets one run.
    pub(crate) fn leaves_program_still(self) -> bool {
        matches!(
            self,
            Kind::Pause | Kind::Write | Kind::Note | Kind::Snapshot | Kind::Probe
        )
    }

    /// Returns whether an event of this kind leaves a stopped thread stopped.
    pub(crate) fn leaves_stopped(self) -> bool {
        matches!(self, Kind::Write)
    }
}

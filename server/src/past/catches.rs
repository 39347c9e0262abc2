//! Catchpoints in a recording: breakpoints at recorded events, not at functions.

use std::collections::BTreeSet;
use std::sync::Arc;

use debuginfo::Glob;
use store::columns::ReadEvent;

use super::breaks::no_options;
use super::{Break, Past, of_replay};
use crate::protocol::{Code, Failure};

/// What a recording has events of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A new process.
    Fork,
    /// Another program.
    Exec,
    /// A system call: one of these numbers, or any.
    Syscall(Vec<u64>),
    /// A library that was loaded while the program ran, whose file has a name that this glob matches.
    Load(Option<String>),
    /// A signal: the one with this number, or any.
    Signal(Option<i32>),
}

/// What is wanted of a catchpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatchWanted {
    /// What is caught.
    pub what: Happened,
    /// How it was asked for.
    pub words: String,
    /// Something was asked for that only a program can do: a condition or a count.
    pub has_options: bool,
}

impl Past {
    /// Sets a catchpoint and returns it. A run through time stops at the events.
    ///
    /// # Errors
    /// [`Code::NotAllowed`]: there are no such events in the recording.
    pub fn add_catch(&self, wanted: CatchWanted) -> Result<Break, Failure> {
        if wanted.has_options {
            return Err(no_options("a condition or a count"));
        }
        let events = match &wanted.what {
            Happened::Fork => self.timeline.events_of("fork", None),
            Happened::Exec => self.execs(),
            Happened::Load(pattern) => self.loads(pattern.as_deref()),
            Happened::Signal(signal) => self.signals(*signal),
            Happened::Syscall(numbers) if numbers.is_empty() => {
                self.timeline.events_of("syscall", None)
            }
            Happened::Syscall(numbers) => {
                let is_it = |event: &ReadEvent| {
                    let number = event.value.and_then(|value| u64::try_from(value).ok());
                    number.is_some_and(|number| numbers.contains(&number))
                };
                self.timeline.events_of("syscall", Some(&is_it))
            }
        };
        let events = events.map_err(|error| of_replay(&error))?;
        if events.is_empty() {
            return Err(self.nothing_happened(&wanted)?);
        }
        let added = Break {
            caught: Some(events.len() as u64),
            events: Arc::new(events.into_iter().collect()),
            ..Break::new(self.next_id(), wanted.words)
        };
        self.breaks().push(added.clone());
        Ok(added)
    }

    /// The event at which the program became another one: it goes on after attempts that fail.
    fn execs(&self) -> replay::Result<Vec<u64>> {
        let failed = self.timeline.events_of("exec_failed", None)?;
        let last = self.timeline.events_of("exec", None)?.pop();
        let last = last.filter(|exec| failed.iter().all(|failed| failed < exec));
        Ok(last.into_iter().collect())
    }

    /// The events of libraries that were loaded after the first thread began.
    fn loads(&self, pattern: Option<&str>) -> replay::Result<Vec<u64>> {
        let began = self.timeline.events_of("thread_start", None)?;
        let began = began.first().copied().unwrap_or(0);
        let glob = pattern.map(Glob::new);
        let is_it = |event: &ReadEvent| {
            let path = event.text.as_deref().unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or(path);
            event.seq > began && glob.as_ref().is_none_or(|glob| glob.matches(name))
        };
        self.timeline.events_of("module_load", Some(&is_it))
    }

    /// The events of signals that were seen. If its thread stopped at one, that stop is the event: it has the thread's state.
    fn signals(&self, wanted: Option<i32>) -> replay::Result<Vec<u64>> {
        let is_it = |event: &ReadEvent| {
            let is_wanted = |number: i64| wanted.is_none_or(|wanted| i64::from(wanted) == number);
            event.value.is_some_and(is_wanted)
        };
        let seen = self.timeline.events_of("exception", Some(&is_it))?;
        let mut events: BTreeSet<u64> = seen.into_iter().collect();
        let is_of_signal = |stop: &ReadEvent| stop.aux.as_deref() == Some("signal");
        for stop in self.timeline.events_of("pause", Some(&is_of_signal))? {
            let before = self.before_stop(stop)?;
            if before.is_some_and(|before| events.remove(&before)) {
                events.insert(stop);
            }
        }
        Ok(events.into_iter().collect())
    }

    /// The last event of a thread before it stopped.
    fn before_stop(&self, stop: u64) -> replay::Result<Option<u64>> {
        let tid = self.timeline.thread_at(stop)?;
        match stop.checked_sub(1) {
            Some(until) => self.timeline.last_of_thread(tid, until, 0),
            None => Ok(None),
        }
    }

    /// Says why there is no event to be caught.
    fn nothing_happened(&self, wanted: &CatchWanted) -> Result<Failure, Failure> {
        let words = &wanted.words;
        let (message, hint) = match &wanted.what {
            Happened::Fork => (
                "the program started no process while it was recorded".to_owned(),
                "look at its functions: break FUNCTION",
            ),
            Happened::Exec => (
                "the program executed no other one while it was recorded".to_owned(),
                "what its children executed is in their recordings: hindsight record --children",
            ),
            Happened::Load(None) => (
                "the program loaded no library while it was recorded".to_owned(),
                "its libraries: info sharedlibrary",
            ),
            Happened::Load(Some(_)) => (
                format!("{words}: the program loaded no such library while it was recorded"),
                "its libraries: info sharedlibrary",
            ),
            Happened::Signal(None) => (
                "no signal was seen while the program was recorded".to_owned(),
                self.where_signals_are(true),
            ),
            Happened::Signal(Some(_)) => (
                format!("{words}: no such signal was seen while the program was recorded"),
                self.where_signals_are(false),
            ),
            Happened::Syscall(_) => {
                let any = self.timeline.events_of("syscall", None);
                match any.map_err(|error| of_replay(&error))?.is_empty() {
                    true => (
                        "no system call was recorded".to_owned(),
                        "record the program with them: hindsight record --syscalls -- PROGRAM",
                    ),
                    false => (
                        format!("{words}: the program made no such call while it was recorded"),
                        "what it made: SELECT name, count(*) FROM syscalls GROUP BY name",
                    ),
                }
            }
        };
        Ok(Failure::new(Code::NotAllowed, message).hint(hint))
    }

    /// Where signals are that the recording does not have. `wants_any`: it has none at all.
    fn where_signals_are(&self, wants_any: bool) -> &'static str {
        let is_full = self.timeline.has_every_instruction();
        match (self.is_of_a_program, is_full, wants_any) {
            (true, ..) => "stop the program at the next one: goto live",
            (false, true, true) => "its events: SELECT kind, count(*) FROM events GROUP BY kind",
            (false, true, false) => "those that were seen: SELECT * FROM exceptions",
            (false, false, true) => {
                "handled signals are recorded with every instruction: hindsight record --full -- PROGRAM"
            }
            (false, false, false) => {
                "handled signals are recorded with every instruction: hindsight record --full -- PROGRAM; those that were seen: SELECT * FROM exceptions"
            }
        }
    }

    /// Refuses to catch what is in a recording only as far as somebody looked.
    pub(crate) fn cannot_catch(&self) -> Failure {
        let refusal = self.needs_the_program("catch");
        match refusal.hint {
            Some(_) => refusal,
            None => refusal.hint(
                "calls that an exception or a panic left: continue where unwound; or: break __cxa_throw, if it was recorded",
            ),
        }
    }
}

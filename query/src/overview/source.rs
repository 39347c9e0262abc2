//! The source of all sections of an overview: the recording, its definitions, its timeline, and calls in words.

use replay::{CallHead, Event, Timeline};
use serde::Serialize;
use store::control::FunctionDef;

use super::cancel::Cancel;
use super::made::Made;
use crate::asking::execution;
use crate::error::{Error, Result};
use crate::functions::args::{self, Asked};
use crate::functions::ret_text;
use crate::rows::{Row, ask};
use crate::session::Session;
use crate::state::failed;

/// Most calls around a moment that are examined.
pub const MOST_AROUND: usize = 256;

/// A call in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallLine {
    /// Its enter event.
    pub seq: u64,
    /// Its leave event; `None` if it had not ended.
    pub end_seq: Option<u64>,
    /// Its function.
    pub function: String,
    /// Its arguments, as the column `args` has them.
    pub args: String,
    /// Its result, if it returned one that is known.
    pub result: Option<String>,
    /// It was left without a return.
    pub unwound: bool,
    /// It was open when its thread, or the process, ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_at_end: bool,
    /// Only its entry is recorded.
    pub only_entered: bool,
    /// The source file of its function.
    pub file: Option<String>,
    /// The line of its function.
    pub line: Option<u32>,
    /// The line that called it, if that is known.
    pub made_at: Option<FileLine>,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileLine {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
}

/// The function of the program's own code that was running, and its call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct By {
    /// The enter event of its call.
    pub seq: u64,
    /// Its name.
    pub function: String,
}

/// An opened recording.
pub struct Source<'s> {
    session: &'s Session,
    timeline: Option<&'s Timeline>,
    cancel: Cancel,
    made: Made,
}

impl<'s> Source<'s> {
    /// Takes a session. A recording without events has no timeline.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn new(session: &'s Session) -> Result<Self> {
        let timeline = match session.extent().events {
            0 => None,
            _ => Some(session.states().timeline().map_err(execution)?),
        };
        Ok(Self {
            session,
            timeline,
            cancel: Cancel::default(),
            made: Made::default(),
        })
    }

    /// Lets `cancel` end the questions from now on.
    #[must_use]
    pub fn until(self, cancel: &Cancel) -> Self {
        Self {
            cancel: cancel.clone(),
            ..self
        }
    }

    /// Leaves these calls out of what the program did.
    pub fn leave_out(&mut self, made: Made) {
        self.made = made;
    }

    /// Returns the calls that are left out.
    pub fn left_out(&self) -> &Made {
        &self.made
    }

    /// Returns what ends the questions.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns the session.
    pub fn session(&self) -> &'s Session {
        self.session
    }

    /// Returns the timeline; `None` if there are no events.
    pub fn timeline(&self) -> Option<&'s Timeline> {
        self.timeline
    }

    /// Returns the event from which on events count as late: three quarters of the run are over.
    pub fn late(&self) -> u64 {
        let events = self.session.extent().events;
        events - events / 4
    }

    /// Returns whether the recording was made with an option such as `memory`.
    pub fn has_captured(&self, what: &str) -> bool {
        let manifest = self.session.reader().recording().manifest();
        manifest.settings.captures.iter().any(|own| own == what)
    }

    /// Runs a query.
    ///
    /// # Errors
    /// The recording cannot be read; [`Error::Stopped`].
    pub fn ask(&self, sql: &str) -> Result<Vec<Row>> {
        self.cancel.check()?;
        ask(self.session, sql)
    }

    /// Returns a function's definition.
    pub fn function(&self, id: u32) -> Option<&'s FunctionDef> {
        self.session.definitions().function(id as usize)
    }

    /// Returns a function's name, or its number if it has none.
    pub fn name(&self, id: u32) -> String {
        match self.function(id) {
            Some(function) => function.name.clone(),
            None => format!("function {id}"),
        }
    }

    /// Returns whether a function belongs to the program and not to a library of the system.
    pub fn is_own(&self, id: u32) -> bool {
        let module = self.function(id).map(|function| function.module);
        let module = module.and_then(|module| self.session.definitions().module(module));
        module.is_none_or(|module| !module.system)
    }

    /// Returns whether the source of a function is the program's own, and not that of a library that comes with a compiler.
    pub fn has_own_source(&self, id: u32) -> bool {
        let file = self
            .function(id)
            .and_then(|function| function.file.as_deref());
        self.is_own(id) && file.is_some_and(|file| !debuginfo::is_library_source(file))
    }

    /// Returns the calls of a thread that were open just after event `seq`, the innermost first.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn around(&self, tid: u32, seq: u64) -> Result<Vec<CallHead>> {
        self.cancel.check()?;
        match self.timeline {
            Some(timeline) => told(timeline.calls_around(tid, seq, MOST_AROUND)),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the innermost call of the program's own source that was open just after event `seq`; if there is none, that of its own
    /// code, which may be a library's template.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn by(&self, tid: u32, seq: u64) -> Result<Option<By>> {
        let around = self.around(tid, seq)?;
        // Entries of the procedure linkage table are the linker's code and belong to no function.
        let is_named = |call: &&CallHead| !self.name(call.function).ends_with("@plt");
        let own = around
            .iter()
            .find(|call| self.has_own_source(call.function));
        let mut code = around.iter().filter(|call| self.is_own(call.function));
        Ok(own
            .or(code.find(is_named))
            .or(around.first())
            .map(|call| By {
                seq: call.start,
                function: self.name(call.function),
            }))
    }

    /// Returns the last calls of a thread before event `seq` that had ended by then, without those inside them, the
    /// last one first, and at most `limit`.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn ended_before(&self, tid: u32, seq: u64, limit: usize) -> Result<Vec<CallHead>> {
        let mut found = Vec::new();
        let Some(timeline) = self.timeline else {
            return Ok(found);
        };
        let mut until = seq.checked_sub(1);
        for _ in 0..MOST_AROUND {
            let Some(at) = until.filter(|_| found.len() < limit) else {
                break;
            };
            let Some(last) = told(timeline.last_of_thread(tid, at, 0))? else {
                break;
            };
            until = match told(timeline.event(last))? {
                Event::Leave(call) => {
                    found.push(call);
                    call.start.checked_sub(1)
                }
                _ => last.checked_sub(1),
            };
        }
        Ok(found)
    }

    /// Describes a call.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn described(&self, call: &CallHead) -> Result<CallLine> {
        let timeline = self.timeline.expect("a call is an event");
        let whole = told(timeline.call(call))?;
        let definition = self.function(call.function);
        let asked = Asked {
            states: self.session.states().clone(),
            has_captures: self.session.has_captures(),
        };
        Ok(CallLine {
            seq: call.start,
            end_seq: call.end,
            function: self.name(call.function),
            args: match call.only_entered {
                // Go passes arguments in registers of its own, which are not recorded.
                true => "?".to_owned(),
                false => args::of_call(self.session.definitions(), &whole, &asked),
            },
            result: ret_text::of_call(definition, &whole, self.session.states()),
            unwound: call.unwound,
            open_at_end: call.open_at_end,
            only_entered: call.only_entered,
            file: definition.and_then(|function| function.file.clone()),
            line: definition.and_then(|function| function.line),
            made_at: match told(timeline.return_address(call))? {
                // A tail call has the return address of the call that it replaced: its own line is not known.
                Some(address) if !call.tail && !is_of_system(timeline, call.start, address) => {
                    line_of_call(timeline, call.start, address)
                }
                _ => None,
            },
        })
    }
}

/// Returns whether an address is in a library of the system: its lines tell nothing of the program.
fn is_of_system(timeline: &Timeline, seq: u64, address: u64) -> bool {
    let space = timeline.modules().space(seq);
    space.at(address).is_some_and(|mapped| mapped.is_system)
}

/// Returns the line of the statement that made the call that began at event `seq`, from its return address: the program's own
/// line if it called through code of a library that is inlined there.
pub(crate) fn line_of_call(timeline: &Timeline, seq: u64, return_address: u64) -> Option<FileLine> {
    let space = timeline.modules().space(seq);
    let line = space.own_line_at(return_address.checked_sub(1)?)?;
    Some(FileLine {
        file: line.file.to_string(),
        line: line.line,
    })
}

/// Passes on an error of `replay`.
///
/// # Errors
/// That of the result.
pub fn told<T>(result: replay::Result<T>) -> Result<T> {
    result.map_err(|error| -> Error { execution(failed(error)) })
}

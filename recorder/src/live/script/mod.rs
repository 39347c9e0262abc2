//! Conditions and parts of messages in JavaScript, evaluated by an engine in the recorder while the thread waits.
//!
//! The text alone decides the language, once. A text that begins with `js:` is JavaScript; any other that can be read in our own
//! language is an expression of ours, which is compiled into the program where that is possible; what is left is JavaScript.

mod condition;
mod engine;
mod known;
mod moment;
mod program;
mod values;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, cell::RefCell, collections::HashMap, rc::Rc};

use expr::{ParseError, Part, Template};

pub use engine::{MEMORY_LIMIT, TIME_LIMIT};

pub(crate) use self::condition::Script;
use self::{
    engine::{Engine, Mistake},
    known::KnownNames,
    moment::Moment,
};
use crate::live::{
    error::LiveResult,
    event_loop::Tracer,
    model::{ProbeId, Tid},
};

/// Frames that values may need: their own, and the caller's for those that only it still knows.
const FRAMES: usize = 2;
/// Frames whose names a condition of a watched place may use.
const FRAMES_OUTWARDS: usize = 32;
/// What a text begins with that is JavaScript in any case.
const PREFIX: &str = "js:";

/// Refuses a condition that is understood in neither language.
///
/// # Errors
/// Where the mistake is, and what is wrong.
pub fn check_condition(text: &str) -> Result<(), ParseError> {
    // Making an engine takes longer than anything that is checked with it.
    thread_local! {
        static CHECKING: RefCell<Scripts> = RefCell::default();
    }
    CHECKING.with_borrow_mut(|scripts| scripts.understand(text).map(drop))
}

/// Refuses a log message in which something between braces is understood in neither language.
///
/// # Errors
/// Where the mistake is, and what is wrong.
pub fn check_message(text: &str) -> Result<(), ParseError> {
    thread_local! {
        static CHECKING: RefCell<Scripts> = RefCell::default();
    }
    CHECKING.with_borrow_mut(|scripts| scripts.understand_message(text).map(drop))
}

/// A log message and its scripts, in their order.
pub(crate) type Message = (Template, Vec<Script>);

/// The conditions and parts of messages that are JavaScript, and the engine, which is made for the first of them.
#[derive(Default)]
pub(crate) struct Scripts {
    // They go before the engine does.
    by_probe: HashMap<ProbeId, Script>,
    messages: HashMap<ProbeId, Rc<Message>>,
    engine: Option<Engine>,
    known: Rc<KnownNames>,
}

impl Scripts {
    /// Compiles a condition that is JavaScript; `None` if it is of our own language.
    ///
    /// # Errors
    /// It is of neither.
    pub fn understand(&mut self, text: &str) -> Result<Option<Script>, ParseError> {
        if prefixed(text) {
            return self.compile(text).map(Some);
        }
        let Err(ours) = expr::parse(text) else {
            return Ok(None);
        };
        if expr::parse_assignment(text).is_ok() {
            let error = ParseError::new(ours.position, "a condition changes nothing");
            return Err(error.with_hint("compare with =="));
        }
        let script = self.compile(text);
        script.map(Some).map_err(|theirs| ours.or_later(theirs))
    }

    /// Reads a log message and compiles what is JavaScript in it.
    ///
    /// # Errors
    /// Something between its braces is understood in neither language.
    pub fn understand_message(&mut self, text: &str) -> Result<Message, ParseError> {
        let template = {
            let reader = Reader(RefCell::new(self));
            Template::parse_among(text, &|_| false, &reader)?
        };
        let sources = template.parts.iter().filter_map(|part| match part {
            Part::Script { source } => Some(source),
            Part::Text(_) | Part::Value { .. } => None,
        });
        let scripts = sources.map(|source| self.compile_by(source, Engine::compile_text));
        let scripts = scripts.collect::<Result<Vec<Script>, ParseError>>()?;
        Ok((template, scripts))
    }

    /// Gives a probe its message, or takes it away.
    pub fn set_message(&mut self, id: ProbeId, message: Option<Message>) {
        match message {
            Some(message) => self.messages.insert(id, Rc::new(message)),
            None => self.messages.remove(&id),
        };
    }

    /// The message of a probe.
    pub fn message(&self, id: ProbeId) -> Option<Rc<Message>> {
        self.messages.get(&id).cloned()
    }

    fn compile(&mut self, text: &str) -> Result<Script, ParseError> {
        self.compile_by(text, Engine::compile)
    }

    fn compile_by(
        &mut self,
        text: &str,
        compile: impl FnOnce(&Engine, &str) -> Result<Script, Mistake>,
    ) -> Result<Script, ParseError> {
        if text.len() > expr::MAX_LENGTH {
            let message = format!("a condition has at most {} bytes", expr::MAX_LENGTH);
            return Err(ParseError::new(expr::MAX_LENGTH, message));
        }
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => Engine::new().map_err(|message| ParseError::new(0, message))?,
        };
        let compiled = compile(&engine, &without_prefix(text));
        self.engine = Some(engine);
        compiled.map_err(|mistake| ParseError {
            hint: mistake.hint.map(str::to_owned),
            in_script: Some(mistake.place),
            ..ParseError::new(mistake.position, mistake.message)
        })
    }

    /// Gives a probe its condition, or takes it away.
    pub fn set(&mut self, id: ProbeId, script: Option<Script>) {
        match script {
            Some(script) => self.by_probe.insert(id, script),
            None => self.by_probe.remove(&id),
        };
    }

    /// Tells whether a probe's condition is JavaScript.
    pub fn has(&self, id: ProbeId) -> bool {
        self.by_probe.contains_key(&id)
    }
}

/// Tells scripts in messages from our own expressions.
struct Reader<'s>(RefCell<&'s mut Scripts>);

impl expr::Scripts for Reader<'_> {
    fn begins(&self, text: &str) -> bool {
        prefixed(text)
    }

    fn read(&self, text: &str) -> Result<(), ParseError> {
        let compiled = self.0.borrow_mut().compile_by(text, Engine::compile_text);
        compiled.map(drop)
    }
}

/// Tells whether a text says that it is JavaScript; `js::x` is a name of ours.
fn prefixed(text: &str) -> bool {
    let rest = text.trim_start().strip_prefix(PREFIX);
    rest.is_some_and(|rest| !rest.starts_with(':'))
}

/// Returns the script itself, with everything where it was.
fn without_prefix(text: &str) -> Cow<'_, str> {
    match prefixed(text) {
        true => text.replacen(PREFIX, "   ", 1).into(),
        false => text.into(),
    }
}

impl Tracer {
    /// The text that a script in a message stands for in a thread.
    pub fn script_text(&self, tid: Tid, script: &Script) -> Result<String, String> {
        let engine = self.probes.scripts.engine.as_ref();
        let engine = engine.ok_or_else(|| "there is no engine for JavaScript".to_owned())?;
        let moment = self.moment(tid, false);
        let moment = moment.map_err(|error| error.one_line())?;
        engine.text(script, Rc::new(moment))
    }

    /// Tells whether a probe's condition is true in a thread; `None` if it is not JavaScript. For a watched place the
    /// frames around are asked for names too.
    pub fn judge_script(
        &self,
        tid: Tid,
        id: ProbeId,
        is_watched: bool,
    ) -> Option<Result<bool, String>> {
        let script = self.probes.scripts.by_probe.get(&id)?;
        let engine = self.probes.scripts.engine.as_ref()?;
        Some(match self.moment(tid, is_watched) {
            Ok(moment) => engine.holds(script, Rc::new(moment)),
            Err(error) => Err(error.one_line()),
        })
    }

    fn moment(&self, tid: Tid, is_watched: bool) -> LiveResult<Moment> {
        let machine = Box::new(self.machine(tid)?);
        let (asked, unwound) = match is_watched {
            true => (FRAMES_OUTWARDS, FRAMES_OUTWARDS),
            false => (1, FRAMES),
        };
        let known = &self.probes.scripts.known;
        Ok(Moment::new(
            self.space_now(),
            machine,
            known,
            asked,
            unwound,
        ))
    }
}

//! Conditions and parts of messages in JavaScript, evaluated by an engine in the recorder while the thread waits.

mod condition;
mod engine;
mod known;
mod moment;
mod program;
mod values;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap, rc::Rc};

use expr::ParseError;

pub use engine::{MEMORY_LIMIT, TIME_LIMIT};

pub(crate) use self::condition::Script;
use self::{
    engine::{Engine, Mistake},
    known::KnownNames,
    moment::Moment,
};
use crate::live::{
    condition::{Condition, Message},
    error::LiveResult,
    model::{ProbeId, ProbeSpec, Tid},
    probes::evaluate::Evaluator,
};

/// Frames that values may need: their own, and the caller's for values that only the caller still has.
const FRAMES: usize = 2;
/// Number of frames whose names a condition on watched memory may use.
const FRAMES_OUTWARDS: usize = 32;
/// The prefix that marks a text as JavaScript.
const PREFIX: &str = "js:";

/// The conditions and parts of messages in JavaScript, and the engine, which is created for the first of them.
#[derive(Default)]
pub(crate) struct Scripts {
    // Must be dropped before the engine.
    by_probe: HashMap<ProbeId, ProbeScripts>,
    engine: Option<Engine>,
    known: Rc<KnownNames>,
}

/// The compiled JavaScript of a probe.
#[derive(Default)]
pub(crate) struct ProbeScripts {
    pub condition: Option<Script>,
    /// The scripts in its message, in order.
    pub message: Vec<Script>,
}

impl Scripts {
    /// Compiles the JavaScript of a probe.
    ///
    /// # Errors
    /// The engine rejects it.
    pub fn compile_spec(&mut self, spec: &ProbeSpec) -> Result<ProbeScripts, ParseError> {
        let condition = match &spec.condition {
            Some(Condition::JavaScript(source)) => Some(self.compile(source)?),
            Some(Condition::Own(_)) | None => None,
        };
        let sources = spec.action.message().into_iter().flat_map(Message::scripts);
        let message = sources.map(|source| self.compile_text(source));
        let message = message.collect::<Result<_, _>>()?;
        Ok(ProbeScripts { condition, message })
    }

    /// Compiles a condition.
    ///
    /// # Errors
    /// The position and the error.
    pub fn compile(&mut self, text: &str) -> Result<Script, ParseError> {
        self.compile_by(text, Engine::compile)
    }

    /// Compiles the text between the braces of a message.
    ///
    /// # Errors
    /// The position and the error.
    pub fn compile_text(&mut self, text: &str) -> Result<Script, ParseError> {
        self.compile_by(text, Engine::compile_text)
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

    pub fn set(&mut self, id: ProbeId, scripts: ProbeScripts) {
        self.by_probe.insert(id, scripts);
    }

    pub fn forget(&mut self, id: ProbeId) {
        self.by_probe.remove(&id);
    }

    /// Returns the scripts in a probe's message, in order.
    pub fn in_message(&self, id: ProbeId) -> &[Script] {
        self.by_probe.get(&id).map_or(&[], |probe| &probe.message)
    }
}

/// Returns whether a text is marked as JavaScript; `js::x` is a name of the program.
pub(super) fn is_prefixed(text: &str) -> bool {
    let rest = text.trim_start().strip_prefix(PREFIX);
    rest.is_some_and(|rest| !rest.starts_with(':'))
}

/// Returns the script without the prefix, with all positions unchanged.
fn without_prefix(text: &str) -> Cow<'_, str> {
    match is_prefixed(text) {
        true => text.replacen(PREFIX, "   ", 1).into(),
        false => text.into(),
    }
}

impl Evaluator<'_> {
    /// Returns the text of a script in a message, evaluated in a thread.
    pub fn script_text(&self, tid: Tid, script: &Script) -> Result<String, String> {
        let engine = self.probes.scripts.engine.as_ref();
        let engine = engine.ok_or_else(|| "there is no engine for JavaScript".to_owned())?;
        let moment = self.moment(tid, false);
        let moment = moment.map_err(|error| error.one_line())?;
        engine.text(script, Rc::new(moment))
    }

    /// Evaluates a probe's JavaScript condition in a thread. For watched memory the outer frames are searched for names
    /// too.
    pub fn judge_script(&self, tid: Tid, id: ProbeId, is_watched: bool) -> Result<bool, String> {
        let scripts = &self.probes.scripts;
        let condition = scripts
            .by_probe
            .get(&id)
            .and_then(|probe| probe.condition.as_ref());
        let (Some(script), Some(engine)) = (condition, &scripts.engine) else {
            return Err("the condition is gone".to_owned());
        };
        let moment = self.moment(tid, is_watched);
        engine.holds(script, Rc::new(moment.map_err(|error| error.one_line())?))
    }

    fn moment(&self, tid: Tid, is_watched: bool) -> LiveResult<Moment> {
        let machine = Box::new(self.tracee.machine(self.breakpoints, tid)?);
        let (asked, unwound) = match is_watched {
            true => (FRAMES_OUTWARDS, FRAMES_OUTWARDS),
            false => (1, FRAMES),
        };
        let known = &self.probes.scripts.known;
        Ok(Moment::new(
            self.tracee.space_now(),
            machine,
            known,
            asked,
            unwound,
        ))
    }
}

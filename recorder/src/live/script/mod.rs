//! Conditions in JavaScript: what the debugger's own language does not understand is evaluated by an engine in the
//! recorder, while the thread stands. Those that only look at plain values are compiled into the program besides, which asks
//! the engine only where they may be true ([`debuginfo::expr::compile_script`]).
//!
//! Which language a condition is in is decided once, by its text alone. Our own language comes first: it is compiled into
//! the program where that is possible, and knows `p->x` and `ns::x`. A condition is JavaScript if it cannot be read in our
//! language, or calls what only JavaScript has, and can be read there.

mod condition;
mod engine;
mod known;
mod language;
mod moment;
mod program;
mod values;

#[cfg(test)]
mod compiled_tests;
#[cfg(test)]
mod tests;

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use debuginfo::expr::{self, ParseError};

pub use engine::{MEMORY_LIMIT, TIME_LIMIT};

pub(crate) use self::condition::Script;
use self::{engine::Engine, known::KnownNames, moment::Moment};
use super::{
    error::LiveResult,
    model::{ProbeId, Tid},
    tracer::Tracer,
};

/// Frames that values may need: their own, and the caller's for those that only it still knows.
const FRAMES: usize = 2;
/// Frames whose names a condition of a watched place may use.
const FRAMES_OUTWARDS: usize = 32;

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

/// The conditions that are JavaScript, and the engine, which is made for the first of them.
#[derive(Default)]
pub(crate) struct Scripts {
    // They go before the engine does.
    by_probe: HashMap<ProbeId, Script>,
    engine: Option<Engine>,
    known: Rc<KnownNames>,
}

impl Scripts {
    /// Compiles a condition that is JavaScript; `None` if it is of our own language.
    ///
    /// # Errors
    /// It is of neither.
    pub fn understand(&mut self, text: &str) -> Result<Option<Script>, ParseError> {
        let ours = expr::parse(text);
        if ours
            .as_ref()
            .is_ok_and(|parsed| !language::calls_javascript(parsed))
        {
            return Ok(None);
        }
        let failed = match self.compile(text) {
            Ok(script) => return Ok(Some(script)),
            Err(error) => error,
        };
        match ours {
            Ok(_) => Ok(None),
            Err(_) if language::looks_like_javascript(text) => Err(failed),
            Err(error) => Err(error),
        }
    }

    fn compile(&mut self, text: &str) -> Result<Script, ParseError> {
        let unreadable = |position, message| ParseError { position, message };
        if text.len() > expr::MAX_LENGTH {
            let message = format!("a condition has at most {} bytes", expr::MAX_LENGTH);
            return Err(unreadable(expr::MAX_LENGTH, message));
        }
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => Engine::new().map_err(|message| unreadable(0, message))?,
        };
        let compiled = engine.compile(text);
        self.engine = Some(engine);
        compiled.map_err(|mistake| unreadable(mistake.position, mistake.message))
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

impl Tracer {
    /// Tells whether a probe's condition is true in a thread; `None` if it is not JavaScript. For a watched place the
    /// frames around are asked for names too.
    pub fn judge_script(
        &self,
        tid: Tid,
        id: ProbeId,
        is_watched: bool,
    ) -> Option<Result<bool, String>> {
        let script = self.scripts.by_probe.get(&id)?;
        let engine = self.scripts.engine.as_ref()?;
        Some(match self.moment(tid, is_watched) {
            Ok(moment) => engine.holds(script, Rc::new(moment)),
            Err(error) => Err(error.to_string()),
        })
    }

    fn moment(&self, tid: Tid, is_watched: bool) -> LiveResult<Moment> {
        let machine = Box::new(self.machine(tid)?);
        let (asked, unwound) = match is_watched {
            true => (FRAMES_OUTWARDS, FRAMES_OUTWARDS),
            false => (1, FRAMES),
        };
        let known = &self.scripts.known;
        Ok(Moment::new(
            self.space_now(),
            machine,
            known,
            asked,
            unwound,
        ))
    }
}

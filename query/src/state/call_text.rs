//! Arguments and results as their types describe them: members of structures, and the texts that were captured with a call.
//!
//! What cannot be read, because a module's file is missing or nothing was captured, has no text here; the columns say what the
//! registers held.

use debuginfo::expr::{self, Expr};
use debuginfo::value::{Look, RenderOptions, render_known};
use replay::{Event, Places, StateMachine};
use rustc_hash::FxHashMap;

use super::{States, moment};

/// Reads arguments and results of many calls, in turn.
pub struct CallTexts<'s> {
    states: &'s States,
    places: Places,
    parsed: FxHashMap<String, Option<Expr>>,
}

impl<'s> CallTexts<'s> {
    /// Reads from the recording's states, which are opened when they are needed.
    pub fn new(states: &'s States) -> Self {
        Self {
            states,
            places: Places::default(),
            parsed: FxHashMap::default(),
        }
    }

    /// Returns the parameter `name` where the call begins that event `seq` entered, if it is known.
    pub fn parameter(&mut self, seq: u64, name: &str) -> Option<String> {
        let timeline = self.states.timeline().ok()?;
        let event = timeline.event(seq).ok()?;
        if !matches!(event, Event::Enter(_)) {
            return None;
        }
        if !self.parsed.contains_key(name) {
            self.parsed.insert(name.to_owned(), expr::parse(name).ok());
        }
        let parsed = self.parsed[name].as_ref()?;
        let known = moment::innermost_value(&mut self.places, timeline, (seq, event), parsed);
        known.ok().flatten()
    }

    /// Returns what came back from the call that event `seq` left, if it is known.
    pub fn result(&mut self, seq: u64) -> Option<String> {
        let timeline = self.states.timeline().ok()?;
        let event = timeline.event(seq).ok()?;
        let Event::Leave(call) = event else {
            return None;
        };
        if !call.returned() {
            return None;
        }
        let entry = timeline.entry_of(call.function, seq)?;
        let moment = self.places.moment(timeline, seq, Event::Leave(call)).ok()?;
        let machine = StateMachine::new(&moment.state, &moment.space);
        let value = debuginfo::returned(&moment.space, &machine, entry).ok()??;
        let look = Look {
            space: &moment.space,
            machine: &machine,
        };
        render_known(&value, &RenderOptions::default(), &look)
    }
}

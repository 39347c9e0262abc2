//! Watches: a run through time stops where the value of an expression has changed.

use replay::history::HistoryScope;
use replay::moves::{Direction, Stops};
use replay::{Instant, Tracked};
use serde::{Deserialize, Serialize};

use super::watched::Bytes;
use super::{Past, of_replay};
use crate::inspect;
use crate::protocol::{Code, Failure};
use crate::session::{MotionReport, ReasonReport, WatchChange};

/// An expression whose changes stop a run through time.
pub(super) struct Watch {
    pub id: u32,
    watched: Watched,
    /// How many runs have stopped at one of its changes.
    hits: u64,
}

/// What is watched.
pub(super) enum Watched {
    /// Its value, as events show it.
    Value(Tracked),
    /// Its bytes, if every instruction is recorded.
    Bytes(Bytes),
}

impl Watched {
    fn text(&self) -> &str {
        match self {
            Watched::Value(tracked) => tracked.text(),
            Watched::Bytes(bytes) => &bytes.text,
        }
    }
}

/// A watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchLine {
    /// Its number. Breakpoints and watches share one sequence.
    pub id: u32,
    /// The watched expression.
    pub expression: String,
    /// The function whose variables it uses; `None` if it applies everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// How many runs have stopped at one of its changes.
    #[serde(default)]
    pub hits: u64,
}

/// All watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchesReply {
    /// The watches, by number.
    pub watches: Vec<WatchLine>,
}

impl Watch {
    /// What it watches, if every instruction is recorded.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.watched {
            Watched::Value(_) => None,
            Watched::Bytes(bytes) => Some(bytes),
        }
    }

    fn line(&self) -> WatchLine {
        WatchLine {
            id: self.id,
            expression: self.watched.text().to_owned(),
            function: match &self.watched {
                Watched::Bytes(bytes) => bytes.call.as_ref().map(|call| call.function.clone()),
                Watched::Value(tracked) => match tracked.scope() {
                    HistoryScope::Everywhere => None,
                    HistoryScope::Within(functions) => Some(functions.name.clone()),
                },
            },
            hits: self.hits,
        }
    }
}

impl Past {
    /// Watches `expression` with its meaning in the selected frame.
    pub(crate) fn add_watch(&self, expression: &str) -> Result<WatchLine, Failure> {
        inspect::refuse_constant(expression)?;
        let watched = match self.timeline.has_every_instruction() {
            true => Watched::Bytes(self.watched_bytes(expression)?),
            false => Watched::Value(self.tracked_at(expression, self.position())?),
        };
        let id = self.next_id();
        let watch = Watch {
            id,
            watched,
            hits: 0,
        };
        let line = watch.line();
        self.watches().push(watch);
        Ok(line)
    }

    /// Returns all watches.
    pub(crate) fn all_watches(&self) -> WatchesReply {
        WatchesReply {
            watches: self.watches().iter().map(Watch::line).collect(),
        }
    }

    /// Removes a watch, or all of them, and returns what was removed.
    pub(crate) fn remove_watch(&self, id: Option<u32>) -> Result<WatchesReply, Failure> {
        let mut watches = self.watches();
        let is_meant = |watch: &mut Watch| id.is_none_or(|id| id == watch.id);
        let removed: Vec<WatchLine> = watches.extract_if(.., is_meant).map(|w| w.line()).collect();
        for gone in &removed {
            self.at_stops.set(gone.id, Vec::new());
        }
        match (id, removed.is_empty()) {
            (Some(id), true) => Err(Failure::new(
                Code::BreakpointNotFound,
                format!("there is no watch {id}"),
            )
            .hint("list them with: watch")),
            _ => Ok(WatchesReply { watches: removed }),
        }
    }

    /// Moves to the nearest stop in a direction.
    pub(crate) fn run(
        &self,
        direction: Direction,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<MotionReport, Failure> {
        self.must_have_moments(direction)?;
        if self.timeline.has_every_instruction() {
            return self.run_by_instructions(direction);
        }
        let (functions, events) = self.places_that_stop();
        let is_watching = !self.watches().is_empty();
        let stops = Stops {
            functions,
            events,
            logpoints: !is_watching,
            passes_pauses: is_watching,
        };
        self.run_to(&stops, None, direction, is_interrupted)
    }

    /// Moves to an event, or to a breakpoint or a change of a watched value on the way there: what a move goes over may stop, as it
    /// does live.
    pub(super) fn run_up_to(
        &self,
        seq: u64,
        direction: Direction,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<MotionReport, Failure> {
        let (functions, events) = self.places_that_stop();
        let stops = Stops {
            functions,
            events,
            logpoints: false,
            passes_pauses: true,
        };
        self.run_to(&stops, Some(seq), direction, is_interrupted)
    }

    /// Moves to the nearest event in a direction that `stops` accepts or that changed a watched value, or to `limit` before that.
    ///
    /// # Errors
    /// [`Code::NoEvent`]: there is none.
    fn run_to(
        &self,
        stops: &Stops,
        limit: Option<u64>,
        direction: Direction,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<MotionReport, Failure> {
        let from = self.position().seq;
        let found = self.timeline.run(from, stops, direction);
        let found = found.map_err(|error| of_replay(&error))?;
        let found = found.into_iter().chain(limit);
        let found = match direction {
            Direction::Forward => found.min(),
            Direction::Back => found.max(),
        };
        let (found, mut changes) = self.nearest_change(from, found, direction, is_interrupted)?;
        let mut told = self.nearest_entry(found, direction, is_interrupted)?;
        let entry = told.stopped.as_ref().map(|stopped| stopped.position);
        let Some(seq) = entry.or(found) else {
            self.hit(&told);
            self.tell_failed(&told);
            return Err(self.no_stop(Instant::at(from), direction));
        };
        if Some(seq) != found {
            changes.clear();
        }
        self.go_to(seq)?;
        self.with_plain(&mut told, seq)?;
        let hit = self.hit(&told);
        self.tell_failed(&told);
        self.hit_watches(&changes);
        let mut report = self.motion()?;
        if let Some(stop) = &mut report.stop
            && let ReasonReport::Event {
                changed, breaks, ..
            } = &mut stop.reason
        {
            *changed = changes;
            *breaks = hit;
        }
        Ok(report)
    }

    /// Returns the nearest event at which a watched value has changed, or `found` if that is nearer, and the changes
    /// there.
    fn nearest_change(
        &self,
        from: u64,
        found: Option<u64>,
        direction: Direction,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(Option<u64>, Vec<WatchChange>), Failure> {
        let (mut nearest, mut changed) = (found, Vec::new());
        for watch in self.watches().iter_mut() {
            let Watched::Value(tracked) = &mut watch.watched else {
                continue;
            };
            let change =
                tracked.nearest_change(&self.timeline, from, nearest, direction, is_interrupted);
            let Some(change) = change.map_err(|error| of_replay(&error))? else {
                continue;
            };
            if nearest != Some(change.seq) {
                changed.clear();
                nearest = Some(change.seq);
            }
            changed.push(WatchChange {
                watch: watch.id,
                expression: tracked.text().to_owned(),
                old: change.old.unwrap_or_default(),
                new: change.new,
                removed: None,
            });
        }
        Ok((nearest, changed))
    }

    /// Counts a stop at changes of watched values, and removes the watches that end there.
    pub(super) fn hit_watches(&self, changes: &[WatchChange]) {
        let (ended, hit): (Vec<_>, Vec<_>) =
            changes.iter().partition(|change| change.removed.is_some());
        for watch in self.watches().iter_mut() {
            let is_hit = hit.iter().any(|change| change.watch == watch.id);
            watch.hits += u64::from(is_hit);
        }
        for change in ended {
            // Another client may have removed it meanwhile.
            let _ = self.remove_watch(Some(change.watch));
        }
    }

    /// Says that nothing in a direction from a moment stops a run.
    pub(super) fn no_stop(&self, from: Instant, direction: Direction) -> Failure {
        let (side, end) = match direction {
            Direction::Forward => ("after", "goto last"),
            Direction::Back => ("before", "goto first"),
        };
        let (message, step) = match self.watches().is_empty() {
            true => (
                format!("nothing {side} event {from} stops here"),
                "set a breakpoint: break FUNCTION",
            ),
            false => (
                format!(
                    "the recording shows no change of a watched expression {side} event {from}"
                ),
                "look at what it shows: history EXPRESSION",
            ),
        };
        let step = self.calls_are_over(direction).unwrap_or(step.to_owned());
        Failure::new(Code::NoEvent, message).hint(format!("{step}; or: {end}"))
    }

    /// Says so if the calls whose variables are watched lie in the other direction.
    fn calls_are_over(&self, direction: Direction) -> Option<String> {
        let here = self.timeline.position_of(self.position().instant()).ok()?;
        let watches = self.watches();
        let over = watches
            .iter()
            .find_map(|watch| watch.bytes()?.is_over(here, direction))?;
        let back = match direction {
            Direction::Forward => "reverse-continue",
            Direction::Back => "continue",
        };
        Some(format!("{over}; go to it: {back}"))
    }
}

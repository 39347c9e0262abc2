//! Logpoints in a recording of every instruction: what they would have printed in the whole run. The program is run again from
//! the start, and the message is written at each place.

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::arrivals::look_from;
use super::breaks::StopAddress;
use super::judge::{Failed, Judge, Writer};
use super::{Past, of_replay};
use crate::location::Target;
use crate::protocol::Failure;
use crate::quantity::count;

/// What is to be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogWanted {
    /// Where.
    pub at: Target,
    /// The text; `{EXPR}` is replaced by a value.
    pub message: String,
    /// Only if this is true.
    pub condition: Option<String>,
    /// Only at the Nth hit; 0: at every one.
    pub hit_count: u64,
    /// Which of the lines.
    pub lines: Range<usize>,
}

/// A line that a logpoint would have printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The event before it.
    pub seq: u64,
    /// The moment is this many instructions later.
    #[serde(default)]
    pub steps: u64,
    /// The thread.
    pub thread: u32,
    /// The text.
    pub message: String,
}

/// Lines that a logpoint would have printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLines {
    /// The lines, in order.
    pub lines: Vec<LogLine>,
    /// More follow, but their number is unknown: the program was not run further.
    pub more: bool,
    /// What could not be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The results of a run.
#[derive(Default)]
struct Found {
    /// Position, thread and text.
    lines: Vec<(u64, u32, String)>,
    more: bool,
    failed: Failed,
}

impl Past {
    /// Returns what a logpoint would have printed in the whole run.
    pub(crate) fn log_lines(&self, wanted: &LogWanted) -> Result<LogLines, Failure> {
        if !self.timeline.has_every_instruction() {
            return Err(self.needs_every_instruction("logpoint"));
        }
        let judge = Judge::new(wanted.condition.as_deref(), self.shared_kept(), true)?;
        let writer = Writer::new(&wanted.message, self.shared_kept())?;
        let stops = self.stop_addresses(&wanted.at)?;
        self.check_names(&judge, &stops)?;
        let found = self.found(wanted, stops, judge, writer)?;
        let line = |(position, thread, message)| {
            let instant = self.timeline.instant(position);
            let instant = instant.map_err(|error| of_replay(&error))?;
            Ok(LogLine {
                seq: instant.seq,
                steps: instant.steps,
                thread,
                message,
            })
        };
        let failed = found.failed.first().map(|(times, position, why)| {
            format!(
                "the condition could not be evaluated {}, first at {}: {why}",
                count(times, "time"),
                self.moment_text(position)
            )
        });
        Ok(LogLines {
            lines: found
                .lines
                .into_iter()
                .map(line)
                .collect::<Result<_, Failure>>()?,
            more: found.more,
            failed,
        })
    }

    fn found(
        &self,
        wanted: &LogWanted,
        stops: Vec<StopAddress>,
        judge: Judge,
        writer: Writer,
    ) -> Result<Found, Failure> {
        let end = self
            .timeline
            .instructions()
            .map_err(|error| of_replay(&error))?;
        let (lines, nth) = (wanted.lines.clone(), wanted.hit_count);
        let found = Arc::new(Mutex::new(Found::default()));
        let shared = Arc::clone(&found);
        let (mut reached, mut hits, mut printed) = (0, 0, 0);
        let addresses: Vec<u64> = stops.iter().map(|stop| stop.address).collect();
        let ran = self.timeline.arrivals(0..end, &addresses, move |arrival| {
            let mut found = shared.lock().unwrap_or_else(PoisonError::into_inner);
            reached += 1;
            look_from(&stops, arrival);
            match judge.holds(arrival, Some(reached)) {
                Ok(true) => hits += 1,
                Ok(false) => return ControlFlow::Continue(()),
                Err(why) => {
                    found.failed.note(arrival.position, why);
                    return ControlFlow::Continue(());
                }
            }
            if nth != 0 && hits != nth {
                return ControlFlow::Continue(());
            }
            if printed >= lines.end {
                found.more = true;
                return ControlFlow::Break(());
            }
            if lines.contains(&printed) {
                let text = writer.write(arrival, reached);
                found.lines.push((arrival.position, arrival.tid, text));
            }
            printed += 1;
            match nth != 0 {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        ran.map_err(|error| of_replay(&error))?;
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *found))
    }
}

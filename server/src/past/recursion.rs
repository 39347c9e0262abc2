//! Variables of recursive functions: events show them in the innermost call, and sometimes in the call that made it.

use debuginfo::Frame;
use replay::history::{Change, Changes, HistoryScope, Progress, Tracked};

use super::{Past, Position, SECOND_RUN, of_replay};
use crate::protocol::{Code, Failure};

/// How many moments are read between two checks for Ctrl-C.
const MOMENTS: usize = 64;

impl Past {
    /// Checks that the values of an expression in the frame of a position are told from those of other variables of the same
    /// names. Events show a variable in the innermost call of its function; `is_last` asks for that of one call.
    pub(super) fn must_be_told_apart(
        &self,
        expression: &str,
        here: Position,
        is_last: bool,
    ) -> Result<(), Failure> {
        if here.frame == 0 || expr::path_of(expression).is_some() {
            return Ok(());
        }
        let why = self.look_at(here, here.frame + 1, |looked| {
            let frames = &looked.moment.trace.backtrace.frames;
            Ok(why_not_told_apart(frames, here.frame, is_last))
        })?;
        let Some((why, is_of_place)) = why else {
            return Ok(());
        };
        // Global variables are the same in each call.
        let is_shared = || {
            let tracked = self.tracked_at(expression, here)?;
            Ok::<bool, Failure>(tracked.scope() == &HistoryScope::Everywhere)
        };
        if !is_of_place && is_shared()? {
            return Ok(());
        }
        let message = format!(
            "{expression} of frame {} cannot be followed: {why}",
            here.frame
        );
        let again = self.again_in_full(expression);
        let again = again.map_or_else(String::new, |again| format!("; or {SECOND_RUN}{again}"));
        Err(Failure::new(Code::EvalFailed, message).hint(format!("select frame 0: frame 0{again}")))
    }

    /// Returns why the last change is unknown if up to here only calls around the innermost one showed a value.
    pub(super) fn why_in_outer_calls(
        &self,
        expression: &str,
        here: Position,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Failure>, Failure> {
        let tracked = self.tracked_at(expression, here)?;
        if tracked.scope() == &HistoryScope::Everywhere {
            return Ok(None);
        }
        let first = self.first_seen(tracked, here.seq, is_interrupted)?;
        if first.is_none_or(|first| first.of_call.is_none()) {
            return Ok(None);
        }
        let message = format!(
            "up to here, {expression} is known only in outer calls of a recursion, and this is about the innermost call"
        );
        let again = self.how_to_log(expression, here);
        let again = again.map_or_else(String::new, |again| format!("; or {SECOND_RUN}{again}"));
        let hint = format!("history {expression} shows the values in all calls{again}");
        Ok(Some(Failure::new(Code::EvalFailed, message).hint(hint)))
    }

    /// Returns the first value that the events up to `seq` show.
    fn first_seen(
        &self,
        mut tracked: Tracked,
        seq: u64,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Change>, Failure> {
        let mut changes = Changes::before(seq + 1);
        loop {
            if is_interrupted() {
                return Err(of_replay(&replay::Error::Interrupted));
            }
            match changes.next(&self.timeline, &mut tracked, MOMENTS) {
                Ok(Progress::Change(change)) => return Ok(Some(change)),
                Ok(Progress::More) => {}
                // It may mean something only later.
                Ok(Progress::End) | Err(replay::Error::Expression { .. }) => return Ok(None),
                Err(error) => return Err(of_replay(&error)),
            }
        }
    }
}

/// Returns why the variables of an outer frame are not told from those of other frames, and whether the reason is that its place
/// in the function is not known.
fn why_not_told_apart(
    frames: &[Frame],
    index: usize,
    is_last: bool,
) -> Option<(&'static str, bool)> {
    let Some(frame) = frames.get(index).filter(|frame| frame.pc_is_known) else {
        return Some(("where it stands is not known at this event", true));
    };
    let is_of_function = |inner: &&Frame| {
        inner.function_entry.is_some() && inner.function_entry == frame.function_entry
    };
    let mut inner = frames[..index].iter().filter(is_of_function);
    let has_inlined = frame.inlined || inner.clone().any(|inner| inner.inlined);
    match (has_inlined, inner.next()) {
        (true, _) => Some((
            "an inlined call shares its function, and the events do not tell their variables apart",
            false,
        )),
        (false, Some(_)) if is_last => Some((
            "its function was called once more inside it, and the events show the innermost call",
            false,
        )),
        _ => None,
    }
}

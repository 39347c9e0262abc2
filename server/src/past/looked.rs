//! A recorded moment as `inspect` sees it, and what a recording can say about what is missing there.

use std::sync::Arc;

use debuginfo::AddressSpace;
use expr::{Kept, Missing};
use replay::{Moment, StateMachine};

use super::{Position, of_replay};
use crate::inspect::{RecordedMoment, View};
use crate::protocol::{Code, ExpressionFault, Failure};

/// A moment in the form that verbs need.
pub(crate) struct Looked<'m> {
    pub moment: &'m Moment<'m>,
    pub machine: StateMachine<'m>,
    pub position: Position,
    pub kept: &'m Kept,
}

impl Looked<'_> {
    /// Returns the view for `inspect`. A moment without frames has an empty list.
    pub fn view(&self) -> View<'_> {
        View {
            space: &self.moment.space,
            machine: &self.machine,
            frames: &self.moment.trace.backtrace.frames,
            frame: self.position.frame,
            recorded: Some(self),
            ended: None,
            kept: self.kept,
        }
    }

    /// Adds a hint to a failure that a missing module may have caused: the hint names the module.
    pub(super) fn explained(&self, failure: Failure) -> Failure {
        let is_of_modules = matches!(
            failure.code,
            Code::EvalFailed
                | Code::InvalidFile
                | Code::InvalidFunction
                | Code::InvalidLine
                | Code::NoFrame
        );
        // A name that only another available module has may also exist in a missing module. So may a file of no
        // available module.
        let elsewhere = failure.hint.clone();
        let missing = match failure.expression {
            // A missing module does not explain a syntax error.
            Some(ExpressionFault::Unreadable) => return failure,
            Some(ExpressionFault::Missing(missing)) => Some(missing),
            None => None,
        };
        let elsewhere = elsewhere.filter(|_| missing == Some(Missing::Elsewhere));
        if !is_of_modules || failure.hint.is_some() && elsewhere.is_none() {
            return failure;
        }
        let somewhere = || {
            self.somewhere()
                .filter(|_| failure.code == Code::EvalFailed)
        };
        // A name that is unknown here may exist in a missing module.
        let is_unknown = failure.code != Code::EvalFailed
            || matches!(
                missing,
                Some(Missing::Name | Missing::Elsewhere | Missing::Type)
            );
        let first = || {
            let modules = self.moment.state.timeline().modules();
            modules
                .first_absent(self.position.seq)
                .filter(|_| is_unknown)
        };
        match self
            .absent()
            .or_else(somewhere)
            .or_else(first)
            .or_else(|| self.early().filter(|_| is_unknown))
        {
            Some(why) => failure.hint(match elsewhere {
                Some(elsewhere) => format!("{elsewhere}; {why}"),
                None => why,
            }),
            None => failure,
        }
    }

    /// Why the module of the selected frame cannot be used.
    fn absent(&self) -> Option<String> {
        let timeline = self.moment.state.timeline();
        let modules = timeline.modules();
        let Position {
            seq, tid, frame, ..
        } = self.position;
        let frames = &self.moment.trace.backtrace.frames;
        let here = frames.get(frame).filter(|frame| frame.pc_is_known);
        match here {
            Some(frame) => modules.why_absent(frame.pc, seq),
            None => {
                let call = timeline.innermost(tid, seq).ok().flatten();
                let function = call.and_then(|call| timeline.function(call.function));
                function.and_then(|function| modules.why_unusable(function.module))
            }
        }
    }

    /// The hint for a moment before the program's own modules.
    fn early(&self) -> Option<String> {
        self.moment.space.modules().is_empty().then(|| {
            format!(
                "no module of the program is loaded yet at event {}: go on with next, or go to an event: goto last",
                self.position.instant()
            )
        })
    }

    /// The hint for a frame whose function is known but not the position in it.
    fn somewhere(&self) -> Option<String> {
        let frames = &self.moment.trace.backtrace.frames;
        let frame = frames.get(self.position.frame)?;
        let function = frame.function.as_ref().filter(|_| !frame.pc_is_known)?;
        Some(format!(
            "where in {function} the thread was at this event is not known, and so its variables are not: step, or step back"
        ))
    }
}

impl RecordedMoment for Looked<'_> {
    fn no_frame(&self) -> Failure {
        let end = self.moment.trace.backtrace.end.as_ref();
        let why = end.map_or_else(String::new, |why| format!(": {why}"));
        Failure::new(
            Code::NoFrame,
            format!(
                "no frame of thread {} is known at event {}{why}",
                self.position.tid,
                self.position.instant()
            ),
        )
        .hint("go to an event that shows one: next, or continue")
    }

    fn absent_module(&self) -> Option<String> {
        self.absent()
    }

    fn later_space(&self) -> Arc<AddressSpace> {
        let timeline = self.moment.state.timeline();
        timeline.modules().space(timeline.last())
    }

    fn in_left_call(&self, work: &mut dyn FnMut(&View<'_>)) -> Result<(), Failure> {
        let space = &self.moment.space;
        let left = self.moment.in_left_call(|machine, frames| {
            work(&View {
                space,
                machine,
                frames,
                frame: 0,
                recorded: None,
                ended: None,
                kept: self.kept,
            });
        });
        left.map(drop).map_err(|error| of_replay(&error))
    }

    fn at_entry(&self, frame: usize, work: &mut dyn FnMut(&View<'_>)) -> Result<(), Failure> {
        let Some(seq) = self.moment.entered_at(frame) else {
            return Ok(());
        };
        let timeline = self.moment.state.timeline();
        let entry = Moment::at(timeline, seq, self.position.tid, 1);
        let entry = entry.map_err(|error| of_replay(&error))?;
        work(&View {
            space: &entry.space,
            machine: &entry.machine(),
            frames: &entry.trace.backtrace.frames,
            frame: 0,
            recorded: None,
            ended: None,
            kept: self.kept,
        });
        Ok(())
    }
}

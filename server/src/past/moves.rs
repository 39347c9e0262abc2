//! Moves through time, and what a recording holds along the way: calls, notes, output.

use debuginfo::Machine;
use replay::moves::{Direction, Note};
use replay::{Activation, CallHead, Event, NotRecorded, Walk, WalkEnd, Walked, returns_to};
use serde::{Deserialize, Serialize};
use values::quantity::duration;

use super::describe::ended;
use super::writes::Owner;
use super::{Looked, Past, Position, of_replay};
use crate::inspect::ReturnedReport;
use crate::protocol::{Code, Failure};
use crate::session::{ExitReport, MotionReport, SessionReport, StateWord};
use crate::verbs::{CallsReply, NoteLine, NotesReply, StepArgs, display};

/// How many frames a move needs: the innermost, and those inlined into it.
const FRAMES: usize = 1;
/// How many frames are read to find the caller of one, which may have inlined calls.
const CALLERS: usize = 64;
/// How many lines of output are shown.
const LINES: usize = 1000;
/// Events of output that are read at once: as many as a page of events has.
const OUTPUT: usize = 8192;

/// A call in the call tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLine {
    /// Its enter event.
    pub start_seq: u64,
    /// Its leave event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_seq: Option<u64>,
    /// Its function.
    pub function: String,
    /// Its short name, if that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_name: Option<String>,
    /// How many recorded calls enclose it.
    pub depth: u32,
    /// Its duration in ns; -1 if it has not ended, or that is not recorded.
    pub dur_ns: i64,
    /// An exception or longjmp left it.
    pub unwound: bool,
    /// It was open when its thread, or the process, ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_at_end: bool,
    /// Only its entry is recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_entered: bool,
    /// The thread is inside this call.
    pub around: bool,
}

/// A line that the program wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLine {
    /// Its number, from 1, as in `goto output:NUMBER`.
    pub line: u64,
    /// The event that wrote the first byte of the line.
    pub seq: u64,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The line.
    pub text: String,
}

/// What the program had written by a given moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLines {
    /// The lines, in order.
    pub lines: Vec<OutputLine>,
    /// There are more lines before the first one.
    pub more: bool,
}

/// Returns the number of steps, 1 by default; refuses 0.
fn some(count: Option<u32>) -> Result<u32, Failure> {
    match count {
        Some(0) => Err(Failure::bad_request("zero steps lead nowhere")),
        count => Ok(count.unwrap_or(1)),
    }
}

/// Refuses steps of instructions in a recording that does not have them.
fn no_instructions() -> Failure {
    Failure::new(Code::NotAllowed, "single instructions were not recorded").hint(
        "step goes from event to event; hindsight record --full -- PROGRAM records every instruction",
    )
}

/// Returns which frame is that of the function that the selected frame belongs to; `None` if that function is the innermost one.
fn outer_frame(looked: &Looked<'_>) -> Result<Option<usize>, Failure> {
    let selected = looked.position.frame;
    let frames = &looked.moment.trace.backtrace.frames;
    let own = |from: usize| (from..frames.len()).find(|index| !frames[*index].inlined);
    match own(selected) {
        _ if selected == 0 => Ok(None),
        Some(index) => Ok(Some(index).filter(|index| own(0) != Some(*index))),
        None => Err(no_end(looked)),
    }
}

/// The beginning and the end of the call of the selected frame are not known.
fn no_end(looked: &Looked<'_>) -> Failure {
    let frame = looked.position.frame;
    let message = format!("no recorded call is known to have made frame {frame}");
    Failure::new(Code::NoEvent, message).hint("select another frame: backtrace, frame N")
}

/// A thread has no instructions before or after a moment.
fn edge(tid: u32, direction: Direction) -> Failure {
    let (side, end) = match direction {
        Direction::Forward => ("later", "goto first"),
        Direction::Back => ("earlier", "goto last"),
    };
    let message = format!("thread {tid} has no {side} place to go to");
    Failure::new(Code::NoEvent, message).hint(format!("the other end is at: {end}"))
}

/// Names a stretch of the run that was not recorded: `event 12+300 to 13 (3.2 ms)`.
pub(super) fn unrecorded(gap: &NotRecorded) -> String {
    let time = gap
        .nanoseconds
        .map_or_else(|| "the rest of the program".to_owned(), duration);
    format!("event {} to {} ({time})", gap.from, gap.until)
}

impl Past {
    /// Describes the current moment as the end of a move.
    pub(crate) fn motion(&self) -> Result<MotionReport, Failure> {
        let displays = self.displays().all();
        let stop = self.look(FRAMES, |looked| {
            let mut stop = looked.stop()?;
            if !displays.is_empty() {
                stop.displays = display::values(&looked.view(), &displays, false);
            }
            Ok(stop)
        })?;
        Ok(MotionReport {
            session: self.session,
            status: StateWord::Stopped,
            stop: Some(stop),
            exit: self.ended_at(self.position().seq)?,
            thread_ended: None,
            more_stops: 0,
            already: false,
            returned: None,
            timed_out: false,
            not_recorded: Vec::new(),
            followed: None,
            recording: self.path(),
        })
    }

    /// Describes the current moment as the end of a move, and what it went over that was not recorded.
    pub(super) fn motion_from(&self, start: Position) -> Result<MotionReport, Failure> {
        let gaps = self
            .timeline
            .not_recorded(start.instant(), self.position().instant());
        let gaps = gaps.map_err(|error| of_replay(&error))?;
        Ok(MotionReport {
            not_recorded: gaps.iter().map(unrecorded).collect(),
            ..self.motion()?
        })
    }

    /// Returns how the program has ended, if event `seq` is that of its end or a later one.
    pub(crate) fn ended_at(&self, seq: u64) -> Result<Option<ExitReport>, Failure> {
        ended(&self.timeline, seq)
    }

    /// Refuses to leave the moment of a core file: what comes before its threads is how they got there, not what they did.
    pub(super) fn must_have_moments(&self, direction: Direction) -> Result<(), Failure> {
        if !self.timeline.is_core() {
            return Ok(());
        }
        let side = match direction {
            Direction::Forward => "later",
            Direction::Back => "earlier",
        };
        let message = format!("a core file shows one moment: there is no {side} event");
        let hint = "threads lists what else it shows, and thread ID selects one";
        Err(Failure::new(Code::NoEvent, message).hint(hint))
    }

    /// Moves by a number of events of any thread, 1 by default; by lines, into calls, if every instruction is recorded.
    pub(crate) fn step(
        &self,
        args: &StepArgs,
        direction: Direction,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<MotionReport, Failure> {
        self.must_have_moments(direction)?;
        let count = args.count;
        if self.timeline.has_every_instruction() {
            let walk = match args.instruction {
                true => Walk::Instructions(1),
                false => Walk::Line,
            };
            return self.walk(walk, count, direction);
        }
        if args.instruction {
            return Err(no_instructions());
        }
        let count = u64::from(some(count)?);
        let seq = self.timeline.step(self.position().seq, count, direction);
        let seq = seq.map_err(|e| of_replay(&e))?;
        self.run_up_to(seq, direction, is_interrupted)
    }

    /// Moves the current thread, by 1 by default.
    fn walk(
        &self,
        walk: Walk,
        count: Option<u32>,
        direction: Direction,
    ) -> Result<MotionReport, Failure> {
        let start = self.position();
        let count = u64::from(some(count)?);
        let mut done = 0;
        while done < count {
            // One search finds the end of all of them.
            let walk = match walk {
                Walk::Instructions(_) => Walk::Instructions(count - done),
                other => other,
            };
            let here = self.position();
            let to_come = self.look(FRAMES, |looked| Ok(looked.machine.calls_to_come()))?;
            let thread = (here.tid, to_come);
            let end = self.timeline.walk(here.instant(), thread, walk, direction);
            let WalkEnd {
                instant,
                walked,
                calls_to_come,
                taken,
            } = end.map_err(|e| of_replay(&e))?;
            let is_at_edge = walked == Walked::AtTheEdge;
            let position = |instant| self.timeline.position_of(instant).ok();
            // There may be several events at one position.
            if is_at_edge && position(instant) == position(here.instant()) && done == 0 {
                return Err(edge(here.tid, direction));
            }
            if let Some(report) = self.break_up_to(start, instant, direction)? {
                return Ok(report);
            }
            self.go_to_instant(instant, Some(here.tid))?;
            if walked == Walked::Done && matches!(walk, Walk::Line | Walk::LineOver) {
                self.choose().calls_to_come = Some(calls_to_come);
            }
            if is_at_edge || walked == Walked::OverGap {
                break;
            }
            done += taken;
        }
        self.motion_from(start)
    }

    /// Moves by a number of events of the current thread, 1 by default, over calls; by lines if every instruction is
    /// recorded.
    pub(crate) fn next(
        &self,
        args: &StepArgs,
        direction: Direction,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<MotionReport, Failure> {
        self.must_have_moments(direction)?;
        if self.timeline.has_every_instruction() {
            let walk = match args.instruction {
                true => Walk::InstructionOver,
                false => Walk::LineOver,
            };
            return self.walk(walk, args.count, direction);
        }
        if args.instruction {
            return Err(no_instructions());
        }
        let count = some(args.count)?;
        let start = self.position();
        let mut seq = start.seq;
        for done in 0..count {
            let next = match direction {
                Direction::Forward => self.timeline.next(start.tid, seq),
                Direction::Back => self.timeline.next_back(start.tid, seq),
            };
            match next {
                Ok(next) => seq = next,
                // If the recording has fewer steps than requested, take those.
                Err(_) if done > 0 => break,
                Err(error) => return Err(of_replay(&error)),
            }
        }
        self.run_up_to(seq, direction, is_interrupted)
    }

    /// Moves to the end or the beginning of the current call.
    pub(crate) fn finish(
        &self,
        direction: Direction,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<MotionReport, Failure> {
        self.must_have_moments(direction)?;
        let start = self.position();
        let motion = self.left(direction, is_interrupted)?;
        Ok(match direction {
            Direction::Forward => MotionReport {
                returned: self.returned_since(start)?,
                ..motion
            },
            Direction::Back => motion,
        })
    }

    fn left(
        &self,
        direction: Direction,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<MotionReport, Failure> {
        if self.timeline.has_every_instruction() {
            self.refuse_without_caller(direction)?;
            let walk = self.selected_frame()?.map_or(Walk::Call, Walk::CallOf);
            return self.walk(walk, None, direction);
        }
        let Position { seq, tid, .. } = self.position();
        let found = match (self.selected_call()?, direction) {
            (None, Direction::Forward) => self.timeline.finish(tid, seq),
            (None, Direction::Back) => self.timeline.reverse_finish(tid, seq),
            (Some(call), Direction::Forward) => self.timeline.end_of(&call),
            (Some(call), Direction::Back) => Ok(call.start),
        };
        let seq = found.map_err(|e| of_replay(&e))?;
        self.run_up_to(seq, direction, is_interrupted)
    }

    /// Refuses to leave a frame of which no caller is known. The way back from within it leads to its entry.
    fn refuse_without_caller(&self, direction: Direction) -> Result<(), Failure> {
        self.look(CALLERS, |looked| {
            let selected = looked.position.frame;
            let trace = &looked.moment.trace.backtrace;
            let mut own = trace.frames.iter().skip(selected);
            let own = own.find(|frame| !frame.inlined);
            let is_inside = own.is_some_and(|frame| {
                let entry = frame.function_entry;
                direction == Direction::Back && entry.is_some_and(|entry| entry != frame.pc)
            });
            if own.is_none() || is_inside || returns_to(&trace.frames, selected).is_some() {
                return Ok(());
            }
            let message = match &trace.end {
                None => "this is the outermost frame: it has no caller to return to".to_owned(),
                Some(why) => format!("no caller of this frame is known: {why}"),
            };
            let run = match direction {
                Direction::Forward => "go on: continue",
                Direction::Back => "go back: reverse-continue",
            };
            Err(Failure::new(Code::NoFrame, message).hint(run))
        })
    }

    /// The frame of the function that the selected frame belongs to; `None` if that function is the innermost one.
    fn selected_frame(&self) -> Result<Option<Activation>, Failure> {
        self.look(FRAMES, |looked| {
            let Some(index) = outer_frame(looked)? else {
                return Ok(None);
            };
            let owner = Owner::of(&looked.moment.trace.backtrace.frames, index);
            let owner = owner.ok_or_else(|| no_end(looked))?;
            Ok(Some(owner.activation()))
        })
    }

    /// The same as a recorded call.
    fn selected_call(&self) -> Result<Option<CallHead>, Failure> {
        self.look(FRAMES, |looked| {
            let Some(index) = outer_frame(looked)? else {
                return Ok(None);
            };
            let entered = looked.moment.entered_at(index);
            let event = entered.map(|seq| self.timeline.event(seq)).transpose();
            match event.map_err(|error| of_replay(&error))? {
                Some(Event::Enter(call)) => Ok(Some(call)),
                _ => Err(no_end(looked)),
            }
        })
    }

    /// Returns the result of the call that returns here and was open at `start`.
    fn returned_since(&self, start: Position) -> Result<Option<ReturnedReport>, Failure> {
        let here = self.position();
        let event = self.timeline.event(here.seq);
        let Event::Leave(call) = event.map_err(|error| of_replay(&error))? else {
            return Ok(None);
        };
        let is_meant = here.steps == 0
            && call.tid == Some(start.tid)
            && call.returned()
            && call.is_open_at(start.seq);
        let entry = self.timeline.entry_of(call.function, here.seq);
        let Some(entry) = entry.filter(|_| is_meant) else {
            return Ok(None);
        };
        let name = Some(self.timeline.name(&call));
        self.look(FRAMES, |looked| {
            let space = &looked.moment.space;
            Ok(ReturnedReport::read(
                space,
                &looked.machine,
                name,
                entry,
                looked.kept,
            ))
        })
    }

    /// Returns the calls around the moment, and up to `limit` calls inside the innermost of them.
    pub(crate) fn calls(&self, limit: usize) -> Result<CallsReply, Failure> {
        let Position { seq, tid, .. } = self.position();
        let timeline = &self.timeline;
        let find = || -> replay::Result<CallsReply> {
            let around = timeline.calls_around(tid, seq, usize::MAX)?;
            let inner = around.first();
            let from = inner.map_or(0, |call| call.start + 1);
            let mut inside = timeline.calls_inside(tid, inner, from, limit + 1)?;
            let more = inside.len() > limit;
            inside.truncate(limit);
            let outer = around.iter().rev().map(|call| self.line(call, true));
            let inner = inside.iter().map(|call| self.line(call, false));
            Ok(CallsReply {
                thread: tid,
                seq,
                calls: outer.chain(inner).collect::<replay::Result<_>>()?,
                more,
            })
        };
        find().map_err(|error| of_replay(&error))
    }

    /// Describes the recording as a session.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(crate) fn report(&self) -> Result<SessionReport, Failure> {
        let program = self.timeline.recording().manifest().argv.first().cloned();
        let absent = self.timeline.modules().all_absent();
        Ok(SessionReport {
            session: self.session,
            program: program.unwrap_or_default(),
            pid: 0,
            recording: self.path(),
            status: StateWord::Recorded,
            stop: self.motion()?.stop,
            past: Some(self.position().seq),
            stopped_threads: 0,
            exit: None,
            calls: None,
            warnings: absent.into_iter().map(|absent| absent.why).collect(),
        })
    }

    fn line(&self, call: &CallHead, around: bool) -> replay::Result<CallLine> {
        let function = self.timeline.name(call);
        let short = self.timeline.short_name(call);
        Ok(CallLine {
            start_seq: call.start,
            end_seq: call.end,
            short_name: (short != function).then_some(short),
            function,
            depth: call.depth,
            dur_ns: self.timeline.call(call)?.dur_ns,
            unwound: call.unwound,
            open_at_end: call.open_at_end,
            only_entered: call.only_entered,
            around,
        })
    }

    /// Adds a note at the current event.
    pub(crate) fn add_note(&self, text: &str) -> Result<NoteLine, Failure> {
        let seq = self.position().seq;
        let text = text.trim();
        let added = self.timeline.add_note(seq, text);
        added.map_err(|error| of_replay(&error))?;
        Ok(NoteLine {
            seq,
            text: text.to_owned(),
            added: true,
        })
    }

    /// Returns all notes.
    pub(crate) fn notes(&self) -> Result<NotesReply, Failure> {
        let notes = self.timeline.notes().map_err(|e| of_replay(&e))?;
        let line = |note: Note| NoteLine {
            seq: note.seq,
            text: note.text,
            added: note.added,
        };
        Ok(NotesReply {
            notes: notes.into_iter().map(line).collect(),
            left_out: 0,
        })
    }

    /// Returns the last lines that the program had written by the current moment.
    pub(crate) fn output(&self, tail: Option<usize>) -> Result<OutputLines, Failure> {
        let here = self.position().seq;
        let limit = tail.unwrap_or(LINES);
        let mut lines: Vec<OutputLine> = Vec::new();
        let mut number = 0;
        let mut from = 0;
        let mut is_open = false;
        let mut dropped = false;
        loop {
            let events = self.timeline.output(from, OUTPUT);
            let events = events.map_err(|error| of_replay(&error))?;
            let Some(last) = events.last() else { break };
            from = last.seq + 1;
            for event in events.into_iter().take_while(|event| event.seq <= here) {
                for part in event
                    .bytes
                    .unwrap_or_default()
                    .split_inclusive(|b| *b == b'\n')
                {
                    let text = String::from_utf8_lossy(part.strip_suffix(b"\n").unwrap_or(part));
                    match lines.last_mut().filter(|_| is_open) {
                        Some(line) => line.text += &text,
                        None => {
                            number += 1;
                            lines.push(OutputLine {
                                line: number,
                                seq: event.seq,
                                stream: event.kind.clone(),
                                text: text.into_owned(),
                            });
                        }
                    }
                    is_open = part.last() != Some(&b'\n');
                }
                if lines.len() > limit.saturating_mul(2) + 2 {
                    lines.drain(..lines.len() - limit);
                    dropped = true;
                }
            }
            if from > here {
                break;
            }
        }
        let more = lines.len().saturating_sub(limit);
        lines.drain(..more);
        Ok(OutputLines {
            lines,
            more: dropped || more > 0,
        })
    }
}

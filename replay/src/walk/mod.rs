//! Moves by instruction, line and call if every instruction is recorded: the program is run again to find their ends. The
//! rules are those of stepping a live program.

mod arrivals;
mod back;
mod changes;
mod forward;
mod leap;
mod search;
mod sought;
mod thread;
mod until;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use debuginfo::{AddressSpace, Frame, Machine, backtrace};
use exact::Replay;

use crate::error::{Error, Result};
use crate::moves::Direction;
use crate::timeline::Timeline;
pub use arrivals::{Arrival, Spaces};
pub use search::{CallEnd, MOST_WATCHED, Wrote};
pub use sought::{Seek, Sought, Touched, watchable};
use thread::Thread;
pub use until::Until;

/// Most inlined calls around a place, and most tail calls.
const FRAMES: usize = 64;

/// A moment between two events: a number of instructions after one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    /// The event.
    pub seq: u64,
    /// Instructions since then, of all threads.
    pub steps: u64,
}

impl Instant {
    /// The moment of an event.
    #[must_use]
    pub fn at(seq: u64) -> Instant {
        Instant { seq, steps: 0 }
    }
}

/// As moments are written: `12`, or `12+300`.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.steps {
            0 => write!(f, "{}", self.seq),
            steps => write!(f, "{}+{steps}", self.seq),
        }
    }
}

/// How far a thread goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// By so many instructions; by fewer, but one at least, to the end of a part of the run.
    Instructions(u64),
    /// By one instruction, over calls.
    InstructionOver,
    /// To another line, also in called functions.
    Line,
    /// To another line of this function or its callers.
    LineOver,
    /// Out of this function; backwards, to its beginning.
    Call,
    /// Out of a function further out; backwards, to its beginning.
    CallOf(Activation),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walked {
    /// There.
    Done,
    /// Before that the recording began or ended.
    AtTheEdge,
    /// On the other side of a gap, in which the program was not recorded.
    OverGap,
}

/// Where a walk has led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkEnd {
    /// The moment.
    pub instant: Instant,
    /// How it ended.
    pub walked: Walked,
    /// How many of the inlined calls that begin there are still to come.
    pub calls_to_come: usize,
    /// How many instructions were taken for [`Walk::Instructions`]; 1 for other walks.
    pub taken: u64,
}

/// A stretch of the run that was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRecorded {
    /// The last moment before it.
    pub from: Instant,
    /// The first one after it.
    pub until: Instant,
    /// How long it was; `None`: to the end of the program.
    pub nanoseconds: Option<u64>,
}

/// A frame of a function that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The entry of its function.
    pub entry: Option<u64>,
    /// Its address: the stack pointer once it has returned.
    pub cfa: u64,
    /// Where it returns to.
    pub back: Option<u64>,
}

/// A thread on its way.
struct Walker<'r> {
    replay: &'r mut Replay,
    space: Arc<AddressSpace>,
    tid: i32,
    /// How many of the inlined calls that begin at its place are still to come.
    calls_to_come: usize,
    /// It never passes this position.
    end: u64,
    /// How many of the wanted instructions were taken.
    taken: u64,
    /// Which thread runs from which position on.
    schedule: Vec<(u64, i32)>,
}

impl Timeline {
    /// Returns the moment after this many instructions.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn instant(&self, position: u64) -> Result<Instant> {
        let seq = self.at_time(i64::try_from(position).unwrap_or(i64::MAX))?;
        let before = self.position(seq)?;
        Ok(Instant {
            seq,
            steps: position.saturating_sub(before),
        })
    }

    /// Returns how many instructions were executed before a moment, of those that are recorded.
    ///
    /// # Errors
    /// There is no such event, or no such instruction.
    pub fn position_of(&self, instant: Instant) -> Result<u64> {
        let position = self.time_of(instant)?;
        match &self.every {
            Some(every) => Ok(position.min(every.end()?)),
            None => Ok(position),
        }
    }

    /// The same, but a moment behind all that was recorded lies after it.
    fn time_of(&self, instant: Instant) -> Result<u64> {
        self.check(instant.seq)?;
        let position = self.position(instant.seq)?.saturating_add(instant.steps);
        if instant.steps == 0 {
            return Ok(position);
        }
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        let end = every.outline()?.end;
        match position <= end {
            true => Ok(position),
            false => Err(Error::Target(
                debuginfo::Diagnostic::new(format!(
                    "there is no instruction {}+{}",
                    instant.seq, instant.steps
                ))
                .with_hint(format!(
                    "{end} instructions are recorded; the last event is {}",
                    self.last()
                )),
            )),
        }
    }

    /// Returns the stretches between two moments, in any order, in which the program ran unrecorded.
    ///
    /// # Errors
    /// There is no such moment.
    pub fn not_recorded(&self, one: Instant, other: Instant) -> Result<Vec<NotRecorded>> {
        let Some(every) = &self.every else {
            return Ok(Vec::new());
        };
        let (one, other) = (self.time_of(one)?, self.time_of(other)?);
        let between = one.min(other)..one.max(other);
        let outline = every.outline()?;
        let gaps = outline.gaps.iter();
        let gaps = gaps.filter_map(|gap| Some((gap.at, Some(gap.nanoseconds?))));
        let last = (outline.end, None);
        gaps.chain([last])
            .filter(|(at, _)| between.contains(at))
            .map(|(at, nanoseconds)| {
                Ok(NotRecorded {
                    from: self.instant(at)?,
                    until: self.instant(at + 1)?,
                    nanoseconds,
                })
            })
            .collect()
    }

    /// Returns whether the program went on unrecorded, to its end.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn ends_earlier(&self) -> Result<bool> {
        let Some(every) = &self.every else {
            return Ok(false);
        };
        let outline = every.outline()?;
        let gap = outline.gaps.last();
        Ok(outline.lost.is_some() || gap.is_some_and(|gap| gap.nanoseconds.is_none()))
    }

    /// Returns whether recording began when the program had run for a while.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn begins_later(&self) -> Result<bool> {
        let Some(every) = &self.every else {
            return Ok(false);
        };
        Ok(every.outline()?.before.is_some())
    }

    /// Walks with a thread from a moment, and returns where that ends. `calls_to_come`: as many of the inlined calls that
    /// begin at the thread's place are still to come.
    ///
    /// # Errors
    /// Instructions are not recorded or cannot be run, or the thread does not exist.
    pub fn walk(
        &self,
        from: Instant,
        (tid, calls_to_come): (u32, usize),
        walk: Walk,
        direction: Direction,
    ) -> Result<WalkEnd> {
        self.walk_within(from, (tid, calls_to_come), (walk, direction), None)
    }

    /// The same; forwards, not further than to a position.
    fn walk_within(
        &self,
        from: Instant,
        (tid, calls_to_come): (u32, usize),
        (walk, direction): (Walk, Direction),
        until: Option<u64>,
    ) -> Result<WalkEnd> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        let position = self.position_of(from)?;
        let outline = every.outline()?;
        if direction == Direction::Back && self.time_of(from)? > outline.end {
            return Ok(WalkEnd {
                instant: self.instant(outline.end)?,
                walked: Walked::OverGap,
                calls_to_come: 0,
                taken: 1,
            });
        }
        // Several events of the same moment describe what is mapped at the start.
        let space = self.modules.space(self.instant(position)?.seq);
        let end = until.unwrap_or(outline.end).min(outline.end);
        let is_in_parts = !outline.gaps.is_empty();
        let gaps = outline.gaps.iter();
        // The gap that ends the recording has no other side.
        let mut gaps = gaps.filter(|gap| gap.nanoseconds.is_some());
        let gap = match direction {
            Direction::Forward => gaps.find(|gap| (position..end).contains(&gap.at)),
            Direction::Back => gaps.rfind(|gap| gap.at < position),
        };
        let gap = gap.map(|gap| gap.at);
        let walked = every.at(position, move |replay| {
            let schedule = replay.schedule();
            let mut walker = Walker {
                replay,
                schedule,
                space,
                tid: tid.cast_signed(),
                calls_to_come,
                end,
                taken: 0,
            };
            if walker.thread().is_none() {
                return Ok(None);
            }
            let walked = match (direction, gap) {
                (Direction::Forward, None) => walker.forward(walk)?,
                (Direction::Forward, Some(gap)) => walker.forward_to_gap(walk, gap)?,
                (Direction::Back, None) if !is_in_parts => walker.back(walk)?,
                (Direction::Back, gap) => walker.back_to_gap(walk, gap)?,
            };
            let to_come = match walked {
                Walked::Done => walker.calls_to_come,
                Walked::AtTheEdge | Walked::OverGap => 0,
            };
            let taken = walker.taken.max(1);
            Ok(Some((walker.replay.position(), walked, to_come, taken)))
        })?;
        let Some((position, walked, calls_to_come, taken)) = walked else {
            return Err(Error::NoMove(
                format!("thread {tid} has ended or has not begun at this moment").into(),
            ));
        };
        Ok(WalkEnd {
            instant: self.instant(position)?,
            walked,
            calls_to_come,
            taken,
        })
    }
}

impl Activation {
    /// Returns whether the frame has been left by a return.
    fn has_returned(&self, thread: &Thread<'_>) -> bool {
        Some(thread.rip()) == self.back && thread.rsp() >= self.cfa
    }
}

impl Walker<'_> {
    /// Goes forwards, no further than to the end of this part, at position `gap`; from there to the beginning of the next one.
    fn forward_to_gap(&mut self, walk: Walk, gap: u64) -> exact::Result<Walked> {
        let here = self.replay.position();
        if here < gap {
            let end = std::mem::replace(&mut self.end, gap);
            let walked = self.forward(walk);
            self.end = end;
            let has_moved = self.replay.position() > here;
            if walked? == Walked::Done {
                return Ok(Walked::Done);
            }
            if has_moved {
                self.replay.goto(gap)?;
                return match self.thread() {
                    Some(_) => Ok(Walked::Done),
                    None => self.stays(here),
                };
            }
        }
        self.over_gap(gap + 1)
    }

    fn stays(&mut self, here: u64) -> exact::Result<Walked> {
        self.replay.goto(here)?;
        Ok(Walked::AtTheEdge)
    }

    /// Goes backwards, no further than to the beginning of this part; from there to the end of the one before, at position `gap`,
    /// if there is one.
    fn back_to_gap(&mut self, walk: Walk, gap: Option<u64>) -> exact::Result<Walked> {
        let (here, begins) = (self.replay.position(), gap.map_or(0, |gap| gap + 1));
        if let Some(gap) = gap
            && here == begins
        {
            return self.over_gap(gap);
        }
        if let Walk::Instructions(count) = walk
            && let Some((found, taken)) = self.instructions_back(count, begins)
        {
            self.taken = taken;
            self.replay.goto(found)?;
            return Ok(Walked::Done);
        }
        let walked = self.back(walk)?;
        if walked == Walked::AtTheEdge {
            return self.back_from_outer_frame(walk, here, begins);
        }
        if self.replay.position() < begins {
            self.replay.goto(begins)?;
            self.taken = 1;
        }
        Ok(walked)
    }

    /// Goes backwards where the line of the frame, or the frame, began before this part: what has run in it are calls.
    fn back_from_outer_frame(
        &mut self,
        walk: Walk,
        here: u64,
        begins: u64,
    ) -> exact::Result<Walked> {
        let last = self.instruction_back().filter(|last| *last >= begins);
        let Some(last) = last else {
            return self.stays(here);
        };
        let mut goal = begins;
        if walk == Walk::Line {
            // Into the function that has returned last.
            self.replay.goto(last)?;
            let frame = self.activation();
            let line = match &frame {
                Some(frame) => self.line_before(frame, (self.rip(), None), last + 1)?,
                None => None,
            };
            goal = line.filter(|line| *line >= begins).unwrap_or(last);
        }
        self.replay.goto(goal)?;
        match self.thread() {
            Some(_) if goal < here => Ok(Walked::Done),
            _ => self.stays(here),
        }
    }

    /// Goes to the other side of a gap, if the thread is there.
    fn over_gap(&mut self, to: u64) -> exact::Result<Walked> {
        let here = self.replay.position();
        self.replay.goto(to)?;
        if self.thread().is_some() {
            return Ok(Walked::OverGap);
        }
        self.stays(here)
    }

    fn thread(&self) -> Option<Thread<'_>> {
        Thread::new(self.replay, self.tid)
    }

    fn rip(&self) -> u64 {
        self.thread().map_or(0, |thread| thread.rip())
    }

    /// The function that runs.
    fn activation(&self) -> Option<Activation> {
        let thread = self.thread()?;
        activation(&self.space, &thread)
    }

    /// The parts of the code of the function around an address.
    fn code(&self, address: u64) -> Vec<Range<u64>> {
        let function = self.space.function_at(address);
        function.map_or_else(Vec::new, |function| function.ranges)
    }

    /// Runs until the thread is at one of `stops` and `is_it` agrees, or else to the end.
    fn run_to(
        &mut self,
        stops: &[u64],
        is_it: impl Fn(&Thread<'_>) -> bool,
    ) -> exact::Result<bool> {
        let tid = self.tid;
        let found = self.replay.next_stop(stops, self.end, &mut |replay| {
            replay.thread() == tid && Thread::new(replay, tid).is_some_and(|thread| is_it(&thread))
        })?;
        Ok(found.is_some())
    }

    /// How many instructions the thread executes from here on until another one does.
    fn own_turn(&self) -> u64 {
        if self.replay.thread() != self.tid {
            return 0;
        }
        let here = self.replay.position();
        let next = self.schedule.partition_point(|(at, _)| *at <= here);
        let end = self.schedule.get(next).map_or(self.end, |(at, _)| *at);
        end.min(self.end).saturating_sub(here)
    }

    /// Executes the thread's next instructions, at most `count`. Returns whether there was one, and the thread has not ended.
    fn instructions(&mut self, count: u64) -> exact::Result<bool> {
        while self.taken < count {
            let run = self.own_turn().min(count - self.taken);
            let is_done = match run {
                0 | 1 => self.instruction()?,
                run => {
                    let goal = self.replay.position() + run;
                    self.replay.goto(goal)?;
                    self.thread().is_some()
                }
            };
            if !is_done {
                return Ok(self.taken > 0 && self.thread().is_some());
            }
            self.taken += run.max(1);
        }
        Ok(true)
    }

    /// Executes the thread's next instruction. Returns whether there is one.
    fn instruction(&mut self) -> exact::Result<bool> {
        if self.replay.thread() != self.tid {
            // It is not its turn yet.
            let before = self.rip();
            let here = self.replay.position();
            let from = self.schedule.partition_point(|(at, _)| *at < here);
            let mut turns = self.schedule[from..].iter();
            match turns.find(|(_, tid)| *tid == self.tid) {
                Some((at, _)) if *at < self.end => self.replay.goto(*at)?,
                _ => return Ok(false),
            }
            if self.rip() != before {
                // It was in a system call, which has returned.
                return Ok(true);
            }
        }
        let next = self.replay.position() + 1;
        if next > self.end {
            return Ok(false);
        }
        self.replay.goto(next)?;
        Ok(self.thread().is_some())
    }
}

fn activation(space: &AddressSpace, thread: &dyn Machine) -> Option<Activation> {
    let frames = backtrace(space, thread, FRAMES).frames;
    let frame = frames.iter().find(|frame| !frame.inlined)?;
    Some(Activation {
        entry: frame.function_entry,
        cfa: frame.cfa?,
        back: returns_to(&frames, 0),
    })
}

/// Returns the address to which the function of frame `index`, or the one that it is inlined into, returns; `None` if that is
/// not known. What has made a tail call is not returned to.
#[must_use]
pub fn returns_to(frames: &[Frame], index: usize) -> Option<u64> {
    let mut outer = frames.get(index..)?.iter();
    outer.find(|frame| !frame.inlined)?;
    let caller = outer.find(|frame| !frame.is_tail_call)?;
    caller.pc_is_known.then_some(caller.pc)
}

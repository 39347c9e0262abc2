//! The state of a thread just after an event: each register and each byte, and whether it is known.
//!
//! One rule decides everything: a value is *known* at an event if that very event showed it, or if the thread has been held
//! since the event that did. Otherwise code may have run in between, and the value is *stale*. Memory that threads can write
//! to is known at the event that showed it, and after a snapshot while the program is stopped (`snapshots.rs`). At other
//! events nothing proves that the other threads, the kernel and other processes left it unchanged. Memory mapped read-only
//! from a file is always known. If every instruction is recorded, all is known at every event up to where that ends (`every.rs`).

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::sync::Arc;

use debuginfo::{Certainty, Unknown};
use store::columns::ReadState;

use crate::calls::CallHead;
use crate::error::Result;
use crate::event::{Event, Kind};
use crate::every::Every;
use crate::registers::Registers;
use crate::timeline::Timeline;

/// Why a value is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No event up to here showed it.
    NotCaptured,
    /// It was seen only before the heap contained that memory.
    OnlyBefore,
    /// It was seen only before its heap block was allocated, with this event.
    HandedOutSince(u64),
    /// The thread has ended.
    ThreadEnded,
    /// The thread does not exist at this moment.
    NoSuchThread,
    /// The process has ended, or is no longer recorded.
    ProcessEnded,
    /// Every instruction was recorded, but only up to here: the program went on unrecorded to its end.
    Unrecorded,
    /// The program had no memory there that it could read.
    NotMapped,
    /// It is in a module whose file cannot be used, and why.
    NoModule(String),
    /// The core file leaves it out, and no file is known to have it.
    NotInCore,
    /// The core file was cut before it.
    CoreCut,
    /// The files of the recording cannot be read, and why.
    Unreadable(String),
}

const NOT_CAPTURED: &str = "unknown: not captured";
const UNRECORDED_HINT: &str = "step-back goes to where it was recorded last";
const ONLY_BEFORE_HINT: &str = "--watch or --snapshot every=N shows it later";

impl Reason {
    /// Converts to `debuginfo`'s type.
    pub(crate) fn unknown(&self) -> Unknown {
        match self {
            // This is the reason for most registers at most events: formatting it would take longer than finding them.
            Reason::NotCaptured => Unknown::because(NOT_CAPTURED),
            Reason::OnlyBefore => Unknown::because(self.to_string()).with_hint(ONLY_BEFORE_HINT),
            Reason::Unrecorded => Unknown::because(self.to_string()).with_hint(UNRECORDED_HINT),
            other => Unknown::because(other.to_string()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Reason::NotCaptured {
            return f.write_str(NOT_CAPTURED);
        }
        f.write_str("unknown: ")?;
        match self {
            Reason::NotCaptured => Ok(()),
            Reason::OnlyBefore => {
                f.write_str("that part of the heap was seen only before the program ran")
            }
            Reason::HandedOutSince(seq) => write!(
                f,
                "that block of the heap was allocated at event {seq}, and was not seen since"
            ),
            Reason::NoSuchThread => f.write_str("the thread has ended, or has not begun"),
            Reason::ThreadEnded => f.write_str("the thread has ended"),
            Reason::ProcessEnded => f.write_str("the process has ended"),
            Reason::Unrecorded => f.write_str("the program was not recorded up to here"),
            Reason::NotMapped => f.write_str("the program has no readable memory there"),
            Reason::NotInCore => f.write_str("the core file does not have it"),
            Reason::CoreCut => f.write_str("the core file was cut before it"),
            Reason::NoModule(why) | Reason::Unreadable(why) => f.write_str(why),
        }
    }
}

/// A value with its certainty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<T> {
    /// It is the value at this moment.
    Known {
        /// The value.
        value: T,
        /// The event that showed it.
        seq: u64,
    },
    /// It was seen then, and may have changed since.
    Stale {
        /// The value.
        value: T,
        /// The event that showed it.
        as_of: u64,
    },
    /// Nothing is known.
    Unknown(Reason),
}

impl<T> Seen<T> {
    /// Makes a value that event `shown` showed, seen from `now`.
    pub(crate) fn at(value: T, shown: u64, is_known: bool) -> Self {
        match is_known {
            true => Seen::Known { value, seq: shown },
            false => Seen::Stale {
                value,
                as_of: shown,
            },
        }
    }

    /// Returns the value, stale or not.
    pub fn value(&self) -> Option<&T> {
        match self {
            Seen::Known { value, .. } | Seen::Stale { value, .. } => Some(value),
            Seen::Unknown(_) => None,
        }
    }

    /// Returns the event that showed the value.
    pub fn shown_at(&self) -> Option<u64> {
        match self {
            Seen::Known { seq, .. } => Some(*seq),
            Seen::Stale { as_of, .. } => Some(*as_of),
            Seen::Unknown(_) => None,
        }
    }

    /// Returns whether it is the value at this moment.
    pub fn is_known(&self) -> bool {
        matches!(self, Seen::Known { .. })
    }

    /// Applies `change` to the value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Seen::Known { value, seq } => Seen::Known {
                value: change(value),
                seq,
            },
            Seen::Stale { value, as_of } => Seen::Stale {
                value: change(value),
                as_of,
            },
            Seen::Unknown(reason) => Seen::Unknown(reason),
        }
    }
}

impl<T: Clone> Seen<T> {
    /// Converts to `debuginfo`'s type.
    pub(crate) fn certain(&self) -> Result<(T, Certainty), Unknown> {
        match self {
            Seen::Known { value, .. } => Ok((value.clone(), Certainty::Known)),
            Seen::Stale { value, as_of } => Ok((value.clone(), Certainty::Stale { as_of: *as_of })),
            Seen::Unknown(reason) => Err(reason.unknown()),
        }
    }
}

/// A thread just after an event, and the memory it sees. Values are looked up on demand.
pub struct State<'t> {
    pub(crate) timeline: &'t Timeline,
    pub(crate) seq: u64,
    pub(crate) tid: u32,
    /// This many instructions after the event, counting all threads.
    pub(crate) steps: u64,
    /// How many of the inlined calls that begin at the thread's place are still to come, if a move says so.
    pub(crate) calls_to_come: Option<usize>,
    registers: OnceCell<Result<Box<Registers>, String>>,
    /// The registers that the event alone shows.
    pub(crate) own: OnceCell<Option<Box<Registers>>>,
    event: OnceCell<Event>,
    open: RefCell<Open>,
    /// Whether each of the first open calls is certain to be on the stack.
    pub(crate) on_stack: RefCell<Vec<bool>>,
}

/// The open calls, from the innermost outwards, as far as they were needed.
#[derive(Default)]
struct Open {
    links: Vec<Link>,
    /// How many of the first links have ascending slots: a stack grows down, but a handler may have another one.
    ascending: usize,
    /// The links are complete.
    is_whole: bool,
}

/// A call that is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub call: CallHead,
    /// Its slot: where the return address is.
    pub slot: u64,
    /// The return address, where it is known.
    pub returns_to: Option<u64>,
}

impl fmt::Debug for State<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State of thread {} at {}", self.tid, self.seq)
    }
}

impl<'t> State<'t> {
    /// Makes the state of thread `tid` just after event `seq`.
    ///
    /// # Errors
    /// [`crate::Error::NoEvent`].
    pub fn new(timeline: &'t Timeline, seq: u64, tid: u32) -> Result<State<'t>> {
        timeline.check(seq)?;
        Ok(State {
            timeline,
            seq,
            tid,
            steps: 0,
            calls_to_come: None,
            registers: OnceCell::new(),
            own: OnceCell::new(),
            event: OnceCell::new(),
            open: RefCell::default(),
            on_stack: RefCell::default(),
        })
    }

    /// The same this many instructions later, counting those of all threads.
    ///
    /// # Errors
    /// [`crate::Error::NoEvent`], or instructions are not recorded.
    pub fn after(timeline: &'t Timeline, seq: u64, steps: u64, tid: u32) -> Result<State<'t>> {
        if steps > 0 && timeline.every.is_none() {
            return Err(timeline.no_instructions());
        }
        let state = State::new(timeline, seq, tid)?;
        Ok(State { steps, ..state })
    }

    /// The same for an event that is already read.
    pub(crate) fn of_event(
        timeline: &'t Timeline,
        seq: u64,
        tid: u32,
        event: Event,
    ) -> Result<State<'t>> {
        let state = State::new(timeline, seq, tid)?;
        state.event.get_or_init(|| event);
        Ok(state)
    }

    /// Returns the event's number.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the thread.
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// Returns the recording.
    #[must_use]
    pub fn timeline(&self) -> &'t Timeline {
        self.timeline
    }

    /// Returns the event.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn event(&self) -> Result<&Event> {
        if let Some(event) = self.event.get() {
            return Ok(event);
        }
        let event = self.timeline.event(self.seq)?;
        Ok(self.event.get_or_init(|| event))
    }

    /// Returns the complete source, if every instruction is recorded, and the position in it.
    pub(crate) fn every(&self) -> Result<Option<(&'t Every, u64)>> {
        let Some(every) = &self.timeline.every else {
            return Ok(None);
        };
        Ok(Some((
            every,
            self.timeline.position(self.seq)? + self.steps,
        )))
    }

    /// Returns the x87, SSE and later registers of the thread in XSAVE's layout, if every instruction is recorded or a core file has
    /// them.
    ///
    /// # Errors
    /// The instructions cannot be run again.
    pub fn extended(&self) -> Result<Option<Vec<u8>>> {
        match self.every()? {
            Some((every, position)) => match every.is_over(position)? {
                true => Ok(None),
                false => every.extended(position, self.tid),
            },
            None => {
                let core = self.timeline.core.as_ref();
                let found = core.and_then(|core| core.extended(self.tid));
                Ok(found.map(<[u8]>::to_vec))
            }
        }
    }

    /// Returns open call number `index` of the thread, from 0, the innermost; `None` if there are fewer.
    pub(crate) fn open_call(&self, index: usize) -> Result<Option<Link>> {
        let mut open = self.open.borrow_mut();
        while open.links.len() <= index && !open.is_whole {
            let next = match open.links.last() {
                None => self.timeline.innermost(self.tid, self.seq)?,
                Some(link) => self.timeline.parent(&link.call)?,
            };
            match next {
                None => open.is_whole = true,
                Some(call) => {
                    let inside = open.links.last().map(|link| (link.call, link.returns_to));
                    let returns_to = self.timeline.return_address_around(&call, inside)?;
                    let is_above = open.links.last().is_none_or(|last| last.slot < call.slot);
                    if is_above && open.ascending == open.links.len() {
                        open.ascending += 1;
                    }
                    open.links.push(Link {
                        call,
                        slot: call.slot,
                        returns_to,
                    });
                }
            }
        }
        Ok(open.links.get(index).copied())
    }

    /// Returns the number of the innermost open call whose slot may reach an address: all inside it lie lower. Calls that have
    /// not been looked at yet may follow.
    pub(crate) fn first_reaching(&self, address: u64) -> usize {
        let open = self.open.borrow();
        let ascending = &open.links[..open.ascending];
        ascending.partition_point(|link| link.slot.saturating_add(8) <= address)
    }

    /// Returns the registers.
    pub(crate) fn all_registers(&self) -> Result<&Registers, Reason> {
        let found = self
            .registers
            .get_or_init(|| Registers::find(self).map_err(|error| error.one_line()));
        match found {
            Ok(registers) => Ok(registers),
            Err(why) => Err(Reason::Unreadable(why.clone())),
        }
    }

    /// Returns why the thread has no registers any more, if so.
    pub(crate) fn gone(&self) -> Result<Option<Reason>> {
        let marks = &self.timeline.marks;
        if let Some(end) = marks.between(Kind::End, 0, self.seq).last() {
            // After `exec`, or if events are out of order, events of the thread show that it still runs.
            let later = self
                .timeline
                .last_of_thread(self.tid, self.seq, end.seq + 1)?;
            if later.is_none() {
                return Ok(Some(Reason::ProcessEnded));
            }
        }
        let Some(exit) = marks.last_of(Kind::ThreadExit, self.tid, self.seq) else {
            return Ok(None);
        };
        // Destructors may still run, and another thread may get the number.
        let later = self.timeline.last_of_thread(self.tid, self.seq, exit + 1)?;
        Ok(later.is_none().then_some(Reason::ThreadEnded))
    }

    /// Returns the first event that can belong to this thread: earlier ones are another thread's of the same number.
    pub(crate) fn born(&self) -> u64 {
        let marks = &self.timeline.marks;
        let Some(start) = marks.last_of(Kind::ThreadStart, self.tid, self.seq) else {
            return 0;
        };
        let exit = start
            .checked_sub(1)
            .and_then(|before| marks.last_of(Kind::ThreadExit, self.tid, before));
        exit.map_or(0, |exit| exit + 1)
    }

    /// Returns whether events of this thread may be missing up to here.
    pub(crate) fn has_lost_events(&self) -> bool {
        self.has_lost_since(0)
    }

    /// The same from event `from` on.
    pub(crate) fn has_lost_since(&self, from: u64) -> bool {
        let gaps = self.timeline.marks.between(Kind::Gap, from, self.seq);
        gaps.iter()
            .any(|mark| mark.tid.is_none_or(|tid| tid == self.tid))
    }

    /// Returns the stop in which the thread is held; `None` if it runs, or may.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn held_by(&self) -> Result<Option<Arc<ReadState>>> {
        let pause = self.timeline.marks.last_pause(self.tid, self.seq);
        match pause.filter(|pause| *pause >= self.born()) {
            Some(pause) if self.is_held_since(pause)? => {
                self.timeline.pauses.state(pause).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns whether the thread has been held since it stopped at event `pause`.
    pub(crate) fn is_held_since(&self, pause: u64) -> Result<bool> {
        let marks = &self.timeline.marks;
        let until = self.seq;
        if pause == until {
            return Ok(true);
        }
        let of_this = |mark: &crate::marks::Mark| mark.tid == Some(self.tid);
        let goes_on = marks
            .between(Kind::Resume, pause + 1, until)
            .iter()
            .any(of_this);
        let ends = !marks.between(Kind::End, pause + 1, until).is_empty();
        // A loss without a thread may have been this thread's.
        let lost = marks
            .between(Kind::Gap, pause + 1, until)
            .iter()
            .any(|mark| mark.tid.is_none() || of_this(mark));
        if goes_on || ends || lost {
            return Ok(false);
        }
        // A function that was called in the held thread makes events without a resume.
        if self
            .timeline
            .calls
            .last_ended(self.tid, until, pause + 1)?
            .is_some()
        {
            return Ok(false);
        }
        if let Some(open) = self.timeline.calls.innermost(self.tid, until)?
            && open.start > pause
        {
            return Ok(false);
        }
        let other = self.timeline.others.last(pause + 1, until, |head| {
            head.tid == Some(self.tid) && !head.kind.leaves_stopped()
        })?;
        Ok(other.is_none())
    }
}

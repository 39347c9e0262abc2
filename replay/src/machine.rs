//! A recorded moment as a `debuginfo` machine: the counterpart of a stopped live thread.

use std::cell::{Cell, OnceCell};
use std::ops::Range;

use debuginfo::{
    AddressSpace, Ages, Certainty, EntryPlace, Frame, Limit, Machine, Register, Unknown,
};

use crate::calls::CallHead;
use crate::event::{Event, Kind};
use crate::memory::Run;
use crate::overseen::question_time;
use crate::state::{Link, Reason, Seen, State};

/// Largest frame in bytes: addresses further apart lie on different stacks.
const MOST_OF_A_FRAME: u64 = 1 << 20;
/// The usual size of a stack.
const STACK: u64 = 8 << 20;

/// How to treat stale values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Stale values are returned, and marked.
    Stale,
    /// Stale values count as unknown: for unwinding.
    KnownOnly,
}

/// A thread at a moment, and the memory it sees.
pub struct StateMachine<'s> {
    state: &'s State<'s>,
    space: &'s AddressSpace,
    trust: Trust,
    /// It has just returned from this call, or will: then only rip and rsp are known.
    returned: Option<(u64, u64)>,
    /// The thread's frames, as far as they were unwound.
    frames: &'s [Frame],
    /// The frames of unrecorded functions, and the first event at which each is known to exist.
    passing: OnceCell<Vec<(Range<u64>, u64)>>,
    /// The first event at which the innermost frame is known to exist, if any is known.
    since: OnceCell<Option<u64>>,
    /// Whether the bytes of the last read were seen together.
    ages: Cell<Ages>,
    /// Memory is read as it was at this event.
    pinned: Cell<Option<u64>>,
    /// Older bytes of the heap were read, and no recorded call identifies their block.
    is_of_unknown_block: Cell<bool>,
    /// Until when memory can be read.
    limit: OnceCell<Limit>,
}

impl<'s> StateMachine<'s> {
    /// Makes one that also returns stale values. `space` has the modules of that moment.
    #[must_use]
    pub fn new(state: &'s State<'s>, space: &'s AddressSpace) -> StateMachine<'s> {
        StateMachine {
            state,
            space,
            trust: Trust::Stale,
            returned: None,
            frames: &[],
            passing: OnceCell::new(),
            since: OnceCell::new(),
            ages: Cell::new(Ages::One),
            pinned: Cell::new(None),
            is_of_unknown_block: Cell::new(false),
            limit: OnceCell::new(),
        }
    }

    /// Returns whether `address` may be in the heap: it is in no module, and not near the thread's stack pointer.
    fn may_be_in_heap(&self, address: u64) -> bool {
        let stack = self.state.register(Register::RSP).value().copied();
        let is_on_stack =
            |sp: u64| (sp.saturating_sub(STACK)..sp.saturating_add(STACK)).contains(&address);
        self.space.at(address).is_none() && !stack.is_some_and(is_on_stack)
    }

    /// Returns whether recorded calls show that memory was in one block of the heap from event `since` on.
    fn is_of_one_block(&self, range: &Range<u64>, since: u64) -> Result<bool, Unknown> {
        let heap = self.state.timeline.heap();
        let heap = heap.map_err(|error| Unknown::because(error.one_line()))?;
        Ok(heap.is_some_and(|heap| heap.is_one_block(range, since, self.state.seq)))
    }

    /// Makes one that distinguishes the content of these frames from earlier content there.
    pub(crate) fn with_frames(self, frames: &'s [Frame]) -> StateMachine<'s> {
        StateMachine { frames, ..self }
    }

    /// Returns whether the memory of a frame was seen only before the frame existed.
    fn is_of_another_frame(&self, range: &Range<u64>, as_of: u64) -> bool {
        let is_near = |cfa: u64| range.start < cfa && cfa - range.start < MOST_OF_A_FRAME;
        if !self
            .frames
            .iter()
            .filter_map(|frame| frame.cfa)
            .any(is_near)
        {
            return false;
        }
        // Without its inputs nothing can be read.
        let passing = self
            .passing
            .get_or_init(|| self.passing().unwrap_or_default());
        passing.iter().any(|(frame, since)| {
            as_of < *since && frame.start < range.end && range.start < frame.end
        })
    }

    /// The frames of unrecorded functions, and since when each is known to exist: since the recorded call inside began,
    /// or this event if there is none.
    fn passing(&self) -> crate::error::Result<Vec<(Range<u64>, u64)>> {
        let state = self.state;
        let mut since = self.last_call()?;
        let mut passing = Vec::new();
        let mut low = state.register(Register::RSP).value().copied();
        let mut open = 0;
        let frames = self.frames.iter().filter(|frame| !frame.inlined);
        for cfa in frames.map(|frame| frame.cfa) {
            let (Some(from), Some(cfa)) = (low, cfa) else {
                low = cfa;
                continue;
            };
            let mut is_recorded = false;
            while let Some(link) = state.open_call(open)?
                && link.slot.wrapping_add(8) <= cfa
            {
                is_recorded = link.slot.wrapping_add(8) == cfa;
                since = link.call.start;
                open += 1;
            }
            if !is_recorded && from < cfa && cfa - from < MOST_OF_A_FRAME {
                passing.push((from..cfa, since));
            }
            low = Some(cfa);
        }
        Ok(passing)
    }

    /// The event at which the call began that has just returned; this event, if none has.
    fn last_call(&self) -> crate::error::Result<u64> {
        Ok(match self.state.event()? {
            Event::Leave(call) if call.tid == Some(self.state.tid) => call.start,
            _ => self.state.seq,
        })
    }

    /// The first event at which the innermost frame is known to exist: the start of its call or, if that is not recorded, of the
    /// call that it has just made. `None` if nothing tells.
    fn frame_since(&self) -> crate::error::Result<Option<u64>> {
        let open = self.state.open_call(0)?;
        let mut physical = self.frames.iter().filter(|frame| !frame.inlined);
        let cfa = physical.next().and_then(|frame| frame.cfa);
        let is_of = |link: &Link| cfa.is_none_or(|cfa| link.slot.wrapping_add(8) == cfa);
        match open.filter(is_of) {
            Some(link) => Ok(Some(link.call.start)),
            None if cfa.is_some() => self.last_call().map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn strict(state: &'s State<'s>, space: &'s AddressSpace) -> StateMachine<'s> {
        StateMachine {
            trust: Trust::KnownOnly,
            ..StateMachine::new(state, space)
        }
    }

    /// The thread at the return of a call that is open now: to `address`, with rsp `sp`.
    pub(crate) fn returned(
        state: &'s State<'s>,
        space: &'s AddressSpace,
        address: u64,
        sp: u64,
    ) -> StateMachine<'s> {
        StateMachine {
            returned: Some((address, sp)),
            ..StateMachine::strict(state, space)
        }
    }

    fn trusted<T: Clone>(&self, seen: &Seen<T>) -> Result<(T, Certainty), Unknown> {
        match (self.trust, seen) {
            (Trust::KnownOnly, Seen::Stale { as_of, .. }) => Err(Unknown::because(format!(
                "it was last seen at event {as_of}, and may have changed since"
            ))),
            _ => seen.certain(),
        }
    }

    /// The open call of the thread whose return address is at `slot`, if it is certain to be on the stack.
    fn certain_call_at(&self, slot: u64) -> Option<Link> {
        let mut links = self.open_calls_from(slot);
        let (index, link) = links.find(|(_, link)| link.slot == slot)?;
        let is_certain = !self.state.has_lost_since(link.call.start)
            && self.state.is_on_stack(self.space, index);
        is_certain.then_some(link)
    }

    /// The open calls whose slots may be at an address or above it, with their numbers.
    fn open_calls_from(&self, address: u64) -> impl Iterator<Item = (usize, Link)> {
        let first = self.state.first_reaching(address);
        (first..).map_while(|index| Some((index, self.state.open_call(index).ok()??)))
    }

    /// The call that the thread makes at this event, if any.
    fn entered(&self) -> Option<CallHead> {
        if self.state.steps > 0 {
            return None;
        }
        match self.state.event().ok()? {
            Event::Enter(call) if call.tid == Some(self.state.tid) && self.returned.is_none() => {
                Some(*call)
            }
            _ => None,
        }
    }

    /// Returns whether the thread has just returned from a call.
    fn has_left(&self) -> bool {
        if self.state.steps > 0 {
            return false;
        }
        let event = self.state.event();
        let is_own = |call: &CallHead| call.tid == Some(self.state.tid) && call.returned();
        self.returned.is_none() && matches!(&event, Ok(Event::Leave(call)) if is_own(call))
    }

    /// How many of the inlined calls that begin at the stop the thread has not made, according to the pause event.
    fn left_at_stop(&self) -> Option<usize> {
        let (timeline, seq) = (self.state.timeline, self.state.seq);
        let pause = timeline.marks.last_pause(self.state.tid, seq)?;
        if self.state.steps > 0 {
            return None;
        }
        if self.returned.is_some() || !self.state.is_held_since(pause).ok()? {
            return None;
        }
        let stop = timeline.pauses.state(pause).ok()?;
        let place = stop.file.as_deref().zip(stop.line);
        self.space
            .calls_to_come(stop.pc, stop.function.as_deref(), place)
    }

    /// Fills `bytes` with their content when the oldest of them were seen, if it is known; `runs` has their present
    /// content, seen at several events. Returns that event.
    fn at_one_moment(&self, address: u64, runs: &[Run], bytes: &mut [u8]) -> Option<u64> {
        let seen = runs.iter().map(|run| match run.bytes {
            Seen::Known { .. } => Some(self.state.seq),
            Seen::Stale { as_of, .. } => Some(as_of),
            Seen::Unknown(_) => None,
        });
        let oldest = seen.collect::<Option<Vec<_>>>()?.into_iter().min()?;
        self.read_at(oldest, address, bytes).map(|()| oldest)
    }

    /// Fills `bytes` with their content at event `then`, if it is known and belongs to the present object.
    fn read_at(&self, then: u64, address: u64, bytes: &mut [u8]) -> Option<()> {
        let end = address.checked_add(bytes.len() as u64)?;
        if !self.state.is_of_frame(end, then).ok()?
            || self.is_of_another_frame(&(address..end), then)
        {
            return None;
        }
        let then = State::new(self.state.timeline, then, self.state.tid).ok()?;
        let found = then.memory(address, bytes.len() as u64).ok()?;
        if !found.iter().all(|run| run.bytes.is_known()) {
            return None;
        }
        bytes.copy_from_slice(&self::bytes(&found)?);
        Some(())
    }

    /// Reads memory as of event `then`.
    fn pinned_memory(
        &self,
        then: u64,
        address: u64,
        bytes: &mut [u8],
        runs: &[Run],
    ) -> Result<Certainty, Unknown> {
        self.ages.set(Ages::One);
        // A block that was allocated since held something else then.
        let unknown = runs.iter().find_map(|run| match &run.bytes {
            Seen::Unknown(reason) => Some(reason.unknown()),
            Seen::Known { .. } | Seen::Stale { .. } => None,
        });
        match (unknown, self.read_at(then, address, bytes)) {
            (None, Some(())) => Ok(Certainty::Stale { as_of: then }),
            (Some(why), _) => Err(why),
            (None, None) => Err(Unknown::because(format!(
                "unknown: not seen at event {then}"
            ))),
        }
    }

    /// Reads memory at this moment, or at the event to which it is pinned.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        // A call that is on the stack has its return address in its slot all the time.
        if self.trust == Trust::KnownOnly
            && bytes.len() == 8
            && let Some(call) = self.certain_call_at(address)
            && let Some(found) = call.returns_to
        {
            bytes.copy_from_slice(&found.to_le_bytes());
            return Ok(Certainty::Known);
        }
        let runs = self.state.memory(address, bytes.len() as u64);
        let runs = runs.map_err(|error| Unknown::because(error.one_line()))?;
        if let Some(then) = self.pinned.get() {
            return self.pinned_memory(then, address, bytes, &runs);
        }
        let mut certainty = Certainty::Known;
        let mut ages = runs.iter().map(|run| match run.bytes {
            Seen::Stale { as_of, .. } => Some(as_of),
            Seen::Known { .. } | Seen::Unknown(_) => None,
        });
        let first = ages.next();
        let is_mixed = ages.any(|age| Some(age) != first);
        drop(ages);
        self.ages.set(match is_mixed {
            true => Ages::Several,
            false => Ages::One,
        });
        if is_mixed
            && self.trust == Trust::Stale
            && let Some(as_of) = self.at_one_moment(address, &runs, bytes)
        {
            self.ages.set(Ages::OneOfSeveral);
            return Ok(Certainty::Stale { as_of });
        }
        for run in runs {
            if let (Trust::Stale, Seen::Stale { as_of, .. }) = (self.trust, &run.bytes) {
                let range = run.address..run.address.saturating_add(run.len);
                let is_of_frame = self.state.is_of_frame(range.end, *as_of);
                if !is_of_frame.map_err(|error| Unknown::because(error.one_line()))? {
                    return Self::not_captured();
                }
                if self.is_of_another_frame(&range, *as_of) {
                    return Err(Unknown::because(
                        "unknown: its function is not recorded, and was not seen since it was called",
                    ));
                }
                if !self.is_of_unknown_block.get()
                    && self.may_be_in_heap(run.address)
                    && !self.is_of_one_block(&range, *as_of)?
                {
                    self.is_of_unknown_block.set(true);
                }
            }
            let (found, known) = self.trusted(&run.bytes)?;
            let at = (run.address - address) as usize;
            bytes[at..at + found.len()].copy_from_slice(&found);
            certainty = certainty.and(known);
        }
        Ok(certainty)
    }

    fn not_captured<T>() -> Result<T, Unknown> {
        Err(Reason::NotCaptured.unknown())
    }
}

impl Machine for StateMachine<'_> {
    fn extended(&self) -> Option<Vec<u8>> {
        self.state.extended().ok()?
    }

    fn first_argument(&self) -> Option<u64> {
        let Event::Leave(call) = self.state.event().ok()? else {
            return None;
        };
        let is_own =
            call.tid == Some(self.state.tid) && self.returned.is_none() && self.state.steps == 0;
        is_own.then(|| Some(self.state.timeline.call(call).ok()?.args[0]))?
    }

    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        if let Some(limit) = self.limit.get() {
            limit.left()?;
        }
        let read = self.read(address, bytes);
        // The first read may run every instruction up to the moment, which reports its progress and can be interrupted.
        self.limit.get_or_init(|| Limit::new(question_time()));
        read
    }

    fn ages(&self) -> Ages {
        self.ages.get()
    }

    fn pin(&self, event: Option<u64>) -> bool {
        self.pinned.set(event);
        true
    }

    fn is_of_unknown_block(&self) -> bool {
        self.is_of_unknown_block.get()
    }

    fn is_before_frame(&self, event: u64) -> bool {
        // Without its inputs nothing can be read.
        let since = self
            .since
            .get_or_init(|| self.frame_since().unwrap_or_default());
        since.is_some_and(|since| event < since)
    }

    fn was_same(&self, address: u64, len: u64, event: u64) -> bool {
        let then = State::new(self.state.timeline, event, self.state.tid);
        let (Ok(then), Ok(now)) = (
            then.and_then(|state| state.memory(address, len)),
            self.state.memory(address, len),
        ) else {
            return false;
        };
        then.iter().all(|run| run.bytes.is_known()) && bytes(&then) == bytes(&now)
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        match self.returned {
            None => self.trusted(&self.state.register(register)),
            Some((address, _)) if register == Register::RIP => Ok((address, Certainty::Known)),
            Some((_, sp)) if register == Register::RSP => Ok((sp, Certainty::Known)),
            Some((_, sp)) => match self.preserved_register(sp.wrapping_sub(8), register) {
                Some(value) => Ok((value, Certainty::Known)),
                None => Self::not_captured(),
            },
        }
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        if self.returned.is_some() {
            return Self::not_captured();
        }
        let (bytes, certainty) = self.trusted(&self.state.vector(register))?;
        match bytes.try_into() {
            Ok(bytes) => Ok((bytes, certainty)),
            Err(_) => Err(Unknown::because("unknown: only its low half was captured")),
        }
    }

    fn vector_low(&self, register: Register) -> Result<([u8; 8], Certainty), Unknown> {
        if self.returned.is_some() {
            return Self::not_captured();
        }
        let (bytes, certainty) = self.trusted(&self.state.vector(register))?;
        let (low, _) = bytes.split_at(8);
        Ok((low.try_into().expect("split at eight"), certainty))
    }

    fn frame_address(&self, lookup_pc: u64, sp: u64) -> Option<u64> {
        let timeline = self.state.timeline;
        if self.state.has_lost_events() {
            // A lost call may own the frame instead of the recorded call of that function.
            return None;
        }
        let entry = self.space.function_at(lookup_pc)?.entry;
        let links = self.open_calls_from(sp);
        for (index, link) in links.filter(|(_, link)| link.slot >= sp) {
            let here = timeline.entry_of(link.call.function, self.state.seq);
            match here == Some(entry) {
                // If rsp is unknown, at a logpoint, the call may have been left without an event.
                true if sp == 0 && !self.state.is_on_stack(self.space, index) => return None,
                true => return Some(link.slot.wrapping_add(8)),
                // Its frame lies between them: the question is not about a recorded call.
                false if self.state.is_on_stack(self.space, index) => return None,
                false => {}
            }
        }
        None
    }

    /// The registers captured at the entry of a call that is on the stack are its caller's.
    /// That fails if a user has written since: to the register, or to the memory where the callee saved it.
    fn preserved_register(&self, slot: u64, register: Register) -> Option<u64> {
        if !Register::PRESERVED.contains(&register) {
            return None;
        }
        let call = self.certain_call_at(slot)?.call;
        let timeline = self.state.timeline;
        let written = || {
            timeline
                .marks
                .between(Kind::Write, call.start + 1, self.state.seq)
        };
        if !written().is_empty() {
            return None;
        }
        let capture = timeline.captures.at(call.start).ok()??;
        Some(capture.registers()?[usize::from(register.0)])
    }

    fn register_at_entry(&self, lookup_pc: u64, cfa: u64, register: Register) -> Option<u64> {
        let entry = self.space.function_at(lookup_pc)?.entry;
        let call = self.state.call_of_frame(self.space, cfa, entry)?;
        let then = State::new(self.state.timeline, call.start, self.state.tid).ok()?;
        let value = then.register(register);
        value.is_known().then(|| value.value().copied())?
    }

    /// Inlined calls at a function's start are made after its entry; those at a return address are made after the
    /// return.
    fn calls_to_come(&self) -> usize {
        if let Some(to_come) = self.state.calls_to_come {
            return to_come;
        }
        if self.entered().is_some() {
            return usize::MAX;
        }
        if let Some(left) = self.left_at_stop() {
            return left;
        }
        match self.register(Register::RIP) {
            Ok((pc, _)) if self.has_left() => self.space.calls_beginning(pc),
            _ => 0,
        }
    }

    fn entry_parameter(&self, name: &str) -> Option<EntryPlace> {
        let call = self.entered()?;
        let function = self.state.timeline.function(call.function)?;
        let param = function.params.iter().find(|param| param.name == name)?;
        let registers = param.registers()?;
        Some(EntryPlace {
            first: Register(registers.first),
            second: registers.second.map(|(from, rest)| (from, Register(rest))),
            is_indirect: param.is_indirect,
        })
    }
}

/// The bytes of consecutive runs; `None` if some are unknown.
fn bytes(runs: &[Run]) -> Option<Vec<u8>> {
    let values = runs.iter().map(|run| run.bytes.value());
    values
        .collect::<Option<Vec<_>>>()
        .map(|parts| parts.into_iter().flatten().copied().collect())
}

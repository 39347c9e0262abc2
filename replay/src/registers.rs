//! Registers of a thread at a moment: for each the latest event that showed it, and whether that value still holds.
//!
//! | event | shows |
//! |---|---|
//! | enter | rdi rsi rdx rcx r8 r9, xmm registers as captured (low halves), rsp, rip; all general ones with `--regs`; fs_base with watched thread variables |
//! | leave by a return | rax, rdx, xmm0 and xmm1 as captured (low halves), rsp, rip; all general ones with `--regs` |
//! | pause | all |
//! | write to a register | that one |
//! | logged write | rip: the instruction that wrote; with `--regs` all general ones |
//! | passed logpoint | rip, if its probe was set in one place only; with `--regs` or `--stack` always, with `--regs` all general ones |
//!
//! If every instruction is recorded, all registers are known at every event up to where that ends.
//!
//! A leave that stands for an exception or longjmp shows nothing.

use debuginfo::Register;
use store::columns::{ReadCall, ReadState};
use store::control::{ParameterPlace, REGISTER_NAMES};

use crate::calls::CallHead;
use crate::error::Result;
use crate::event::{Event, Kind};
use crate::every::Every;
use crate::state::{Reason, Seen, State};
use crate::timeline::Timeline;

/// Registers by DWARF number: the general ones and rip, vectors, flags, segment bases.
const COUNT: usize = 60;
/// Most leaves that are searched for the last one that returned.
const MAX_UNWOUND: usize = 4096;

/// The content of a vector register, as far as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vector {
    pub bytes: [u8; 16],
    /// How many of them are known: 8 or 16.
    pub len: usize,
}

/// A value, the event that showed it, and whether it is still valid.
#[derive(Clone, Copy, Debug)]
struct Shown<T> {
    value: T,
    at: u64,
    is_known: bool,
}

impl<T> Shown<T> {
    fn seen(self) -> Seen<T> {
        Seen::at(self.value, self.at, self.is_known)
    }
}

/// All registers of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Registers {
    general: [Option<Shown<u64>>; COUNT],
    vectors: [Option<Shown<Vector>>; 16],
    /// The reason why the others are unknown.
    why: Reason,
}

impl State<'_> {
    /// Returns a general register, rip, the flags or a segment base.
    #[must_use]
    pub fn register(&self, register: Register) -> Seen<u64> {
        if let Some(value) = self.shown_register(register) {
            let seq = self.seq;
            return Seen::Known { value, seq };
        }
        match self.all_registers() {
            Ok(all) => all.get(register),
            Err(reason) => Seen::Unknown(reason),
        }
    }

    /// Returns the first 8 or 16 bytes of a vector register, xmm0 to xmm15: as many as were captured.
    #[must_use]
    pub fn vector(&self, register: Register) -> Seen<Vec<u8>> {
        let index = register.0.wrapping_sub(Register::XMM0.0);
        match self.all_registers() {
            Ok(all) => match all.vectors.get(usize::from(index)).copied().flatten() {
                Some(shown) => shown
                    .seen()
                    .map(|vector| vector.bytes[..vector.len].to_vec()),
                None => Seen::Unknown(all.why.clone()),
            },
            Err(reason) => Seen::Unknown(reason),
        }
    }

    /// Returns a general register, rip or a segment base if the event itself shows it, as enters and leaves do: it is
    /// then known without reading other events.
    pub(crate) fn shown_register(&self, register: Register) -> Option<u64> {
        if self.steps > 0 {
            return None;
        }
        let own = self.own.get_or_init(|| match Registers::own(self) {
            // The slower way reports the error.
            Ok(None) | Err(_) => None,
            Ok(own) => own,
        });
        let shown = own.as_ref()?.general.get(usize::from(register.0))?;
        Some((*shown)?.value)
    }
}

impl Registers {
    fn get(&self, register: Register) -> Seen<u64> {
        match self.general.get(usize::from(register.0)).copied().flatten() {
            Some(shown) => shown.seen(),
            None => Seen::Unknown(self.why.clone()),
        }
    }

    fn unknown(why: Reason) -> Self {
        Self {
            general: [None; COUNT],
            vectors: [None; 16],
            why,
        }
    }

    /// Finds the registers that the event shows, if it is an enter or leave of the thread.
    fn own(state: &State<'_>) -> Result<Option<Box<Self>>> {
        let (source, call) = match *state.event()? {
            Event::Enter(call) => (RegisterSource::Enter(call), call),
            Event::Leave(call) if call.returned() => (RegisterSource::Leave(call), call),
            _ => return Ok(None),
        };
        if call.tid != Some(state.tid) {
            return Ok(None);
        }
        let mut own = Box::new(Self::unknown(Reason::NotCaptured));
        own.apply(state.timeline, state.seq, &source, true)?;
        Ok(Some(own))
    }

    /// Finds all registers: applies the latest event of each kind, in order.
    pub(crate) fn find(state: &State<'_>) -> Result<Box<Self>> {
        if let Some((every, position)) = state.every()? {
            return Self::of_thread(every, position, state);
        }
        if let Some(reason) = state.gone()? {
            return Ok(Box::new(Self::unknown(reason)));
        }
        let (timeline, seq, born) = (state.timeline, state.seq, state.born());
        let mut sources = Vec::new();
        let pause = timeline.marks.last_pause(state.tid, seq);
        if let Some(pause) = pause.filter(|pause| *pause >= born) {
            sources.push((pause, RegisterSource::Pause(pause)));
            for write in timeline.marks.between(Kind::Write, pause + 1, seq) {
                if write.tid == Some(state.tid) {
                    sources.push((write.seq, RegisterSource::Write(write.seq)));
                }
            }
        }
        // The registers of a held thread were seen when it stopped: older calls show nothing newer.
        let floor = pause.unwrap_or(born).max(born);
        if let Some(call) = last_entered(timeline, state.tid, seq, floor)? {
            sources.push((call.start, RegisterSource::Enter(call)));
        }
        if let Some(call) = last_returned(timeline, state.tid, seq, floor)? {
            sources.push((call.end.unwrap_or(call.start), RegisterSource::Leave(call)));
        }
        if let Some(at) = last_logged(timeline, state.tid, seq, floor)? {
            sources.push((at, RegisterSource::Logpoint(at)));
        }
        sources.sort_by_key(|(at, _)| *at);
        let held = match pause {
            Some(pause) => state.is_held_since(pause)?,
            None => false,
        };
        let mut all = Box::new(Self::unknown(Reason::NotCaptured));
        for (at, source) in sources {
            let is_known = at == seq || held && at >= floor;
            all.apply(timeline, at, &source, is_known)?;
        }
        if let Event::Other(event) = state.event()?
            && event.tid == Some(state.tid)
            && matches!(
                Kind::of_name(&event.kind),
                Kind::Logpoint | Kind::LoggedWrite
            )
            && let Some(place) = timeline.place_of_logpoint(event)?
        {
            all.set(Register::RIP, place, seq, true);
        }
        Ok(all)
    }

    /// The registers of a thread in a recording of every instruction.
    fn of_thread(every: &Every, position: u64, state: &State<'_>) -> Result<Box<Self>> {
        let seq = state.seq;
        if every.is_over(position)? {
            return Ok(Box::new(Self::unknown(Reason::Unrecorded)));
        }
        let Some(found) = every.registers(position, state.tid)? else {
            return Ok(Box::new(Self::unknown(Reason::NoSuchThread)));
        };
        let mut all = Box::new(Self::unknown(Reason::NotCaptured));
        for (name, value) in REGISTER_NAMES.into_iter().zip(found.general) {
            if let Some(register) = Register::by_name(name) {
                all.set(register, value, seq, true);
            }
        }
        for (index, bytes) in found.vectors.into_iter().enumerate() {
            all.set_vector(index, Vector { bytes, len: 16 }, seq, true);
        }
        Ok(all)
    }

    fn apply(
        &mut self,
        timeline: &Timeline,
        at: u64,
        source: &RegisterSource,
        known: bool,
    ) -> Result<()> {
        match source {
            RegisterSource::Enter(head) => {
                self.enter(timeline, head, &timeline.call(head)?, known);
                self.captured(timeline, at, known)?;
            }
            RegisterSource::Leave(head) => {
                self.leave(timeline, head, &timeline.call(head)?, known)?;
                self.captured(timeline, at, known)?;
            }
            RegisterSource::Logpoint(seq) => {
                self.captured(timeline, at, known)?;
                if let Event::Other(event) = timeline.event(*seq)?
                    && let Some(place) = timeline.place_of_logpoint(&event)?
                {
                    self.set(Register::RIP, place, at, known);
                }
            }
            RegisterSource::Pause(seq) => {
                let state = timeline.pauses.state(*seq)?;
                self.pause(&state, known);
                // Registers after the cut of a core file are unknown.
                let core = timeline.core.as_ref().zip(state.tid);
                if core.is_some_and(|(core, tid)| !core.has_vectors(tid)) {
                    self.vectors = [None; 16];
                }
            }
            RegisterSource::Write(seq) => {
                if let Event::Other(event) = timeline.event(*seq)?
                    && let (Some(name), Some(bytes)) = (&event.aux, &event.bytes)
                {
                    self.write(at, name, bytes, known);
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, register: Register, value: u64, at: u64, is_known: bool) {
        self.general[usize::from(register.0)] = Some(Shown {
            value,
            at,
            is_known,
        });
    }

    fn forget(&mut self, register: Register) {
        self.general[usize::from(register.0)] = None;
    }

    fn set_vector(&mut self, index: usize, value: Vector, at: u64, is_known: bool) {
        self.vectors[index] = Some(Shown {
            value,
            at,
            is_known,
        });
    }

    fn set_low(&mut self, index: usize, value: u64, at: u64, known: bool) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&value.to_le_bytes());
        self.set_vector(index, Vector { bytes, len: 8 }, at, known);
    }

    fn enter(&mut self, timeline: &Timeline, head: &CallHead, call: &ReadCall, known: bool) {
        let at = head.start;
        for (number, value) in ParameterPlace::INT_REGISTERS.into_iter().zip(call.args) {
            self.set(Register(number), value, at, known);
        }
        for (index, value) in call.xmm.iter().enumerate() {
            if let Some(value) = value {
                self.set_low(index, *value, at, known);
            }
        }
        self.set(Register::RSP, call.sp, at, known);
        match timeline.entry_of(head.function, at) {
            Some(entry) => self.set(Register::RIP, entry, at, known),
            None => self.forget(Register::RIP),
        }
    }

    fn leave(
        &mut self,
        timeline: &Timeline,
        head: &CallHead,
        call: &ReadCall,
        known: bool,
    ) -> Result<()> {
        let at = head.end.unwrap_or(head.start);
        let results = [(Register::RAX, call.rax), (Register::RDX, call.rdx)];
        for (register, value) in results {
            if let Some(value) = value {
                self.set(register, value, at, known);
            }
        }
        for (index, value) in call.ret_xmm.iter().enumerate() {
            if let Some(value) = value {
                self.set_low(index, *value, at, known);
            }
        }
        self.set(Register::RSP, call.sp.wrapping_add(8), at, known);
        match timeline.return_address(head)? {
            Some(address) => self.set(Register::RIP, address, at, known),
            None => self.forget(Register::RIP),
        }
        Ok(())
    }

    /// Applies the capture of the enter or leave at `at`.
    fn captured(&mut self, timeline: &Timeline, at: u64, known: bool) -> Result<()> {
        let Some(capture) = timeline.captured_at(at)? else {
            return Ok(());
        };
        if let Some(thread) = capture.thread_pointer() {
            self.set(Register::FS_BASE, thread, at, known);
        }
        let registers = capture.registers();
        for (number, value) in registers.into_iter().flatten().enumerate() {
            self.set(Register(number as u16), value, at, known);
        }
        Ok(())
    }

    fn pause(&mut self, state: &ReadState, known: bool) {
        let at = state.seq;
        let Some(registers) = &state.registers else {
            self.set(Register::RIP, state.pc, at, known);
            return;
        };
        for (name, value) in REGISTER_NAMES.into_iter().zip(registers.general) {
            if let Some(register) = Register::by_name(name) {
                self.set(register, value, at, known);
            }
        }
        self.set(Register::RIP, state.pc, at, known);
        for (index, bytes) in registers.vectors.into_iter().enumerate() {
            self.set_vector(index, Vector { bytes, len: 16 }, at, known);
        }
    }

    /// Sets a register; fewer bytes than it has change the low ones.
    fn write(&mut self, at: u64, name: &str, bytes: &[u8], known: bool) {
        let Some(register) = Register::by_name(name) else {
            return;
        };
        let index = usize::from(register.0.wrapping_sub(Register::XMM0.0));
        if let Some(vector) = self.vectors.get(index) {
            let mut new = vector.map_or(
                Vector {
                    bytes: [0; 16],
                    len: 0,
                },
                |shown| shown.value,
            );
            let len = bytes.len().min(16);
            new.bytes[..len].copy_from_slice(&bytes[..len]);
            new.len = new.len.max(len);
            match new.len {
                8 | 16 => self.set_vector(index, new, at, known),
                _ => self.vectors[index] = None,
            }
            return;
        }
        let len = bytes.len().min(8);
        let before = match (self.general[usize::from(register.0)], len) {
            (_, 8) => 0,
            (Some(shown), _) => shown.value,
            (None, _) => return,
        };
        let mut new = before.to_le_bytes();
        new[..len].copy_from_slice(&bytes[..len]);
        self.set(register, u64::from_le_bytes(new), at, known);
    }
}

/// An event that showed registers.
enum RegisterSource {
    Enter(CallHead),
    Leave(CallHead),
    Logpoint(u64),
    Pause(u64),
    Write(u64),
}

/// The last call of a thread to begin, at or before `seq` and not before `floor`.
fn last_entered(timeline: &Timeline, tid: u32, seq: u64, floor: u64) -> Result<Option<CallHead>> {
    let calls = &timeline.calls;
    let open = calls
        .innermost(tid, seq)?
        .filter(|call| call.start >= floor);
    let floor = open.map_or(floor, |call| call.start);
    // Calls end from the inside out: the last call to end was the last to begin, or encloses it.
    let Some(mut last) = calls.last_ended(tid, seq, floor)? else {
        return Ok(open);
    };
    while let Some(end) = last.end
        && let Some(inner) = calls.last_ended(tid, end - 1, last.start)?
    {
        last = inner;
    }
    let last = Some(last).filter(|call| call.start >= floor);
    Ok(last.max_by_start(open))
}

/// The last call of a thread to return, at or before `seq` and not before `floor`.
fn last_returned(timeline: &Timeline, tid: u32, seq: u64, floor: u64) -> Result<Option<CallHead>> {
    let mut until = seq;
    for _ in 0..MAX_UNWOUND {
        let Some(call) = timeline.calls.last_ended(tid, until, floor)? else {
            return Ok(None);
        };
        match (call.returned(), call.end) {
            (true, _) => return Ok(Some(call)),
            (false, Some(end)) if end > 0 => until = end - 1,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// The last logpoint with a capture that a thread passed, at or before `seq` and not before `floor`.
fn last_logged(timeline: &Timeline, tid: u32, seq: u64, floor: u64) -> Result<Option<u64>> {
    let logged = timeline.logged()?.get(&tid).map_or(&[][..], Vec::as_slice);
    let until = logged.partition_point(|at| *at <= seq);
    let last = until.checked_sub(1).map(|at| logged[at]);
    Ok(last.filter(|at| *at >= floor))
}

trait Later {
    fn max_by_start(self, other: Self) -> Self;
}

impl Later for Option<CallHead> {
    fn max_by_start(self, other: Self) -> Self {
        match (self, other) {
            (Some(a), Some(b)) if a.start < b.start => Some(b),
            (None, b) => b,
            (a, _) => a,
        }
    }
}

impl Timeline {
    /// Returns the address of a function's first instruction in the process at event `seq`.
    #[must_use]
    pub fn entry_of(&self, function: u32, seq: u64) -> Option<u64> {
        let function = self.function(function)?;
        self.modules.address(function.module, function.svma, seq)
    }

    /// Returns the return address of a call. A tail call has that of the call it replaced.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn return_address(&self, call: &CallHead) -> Result<Option<u64>> {
        let mut call = *call;
        while call.tail {
            match self.calls.parent(&call)? {
                Some(replaced) if replaced.slot == call.slot => call = replaced,
                _ => return Ok(None),
            }
        }
        Ok(Some(call.ret_addr))
    }

    /// The same for a call whose inner call is known: chains of tail calls can be thousands long.
    pub(crate) fn return_address_around(
        &self,
        call: &CallHead,
        inside: Option<(CallHead, Option<u64>)>,
    ) -> Result<Option<u64>> {
        match inside {
            Some((inner, address)) if inner.tail && inner.slot == call.slot => Ok(address),
            _ => self.return_address(call),
        }
    }
}

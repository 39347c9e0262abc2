//! The calls of chosen functions, found by running a recording once.

use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

use rustc_hash::FxHashMap;

use super::notes::{BYTES, PAGE};
use super::stacks::{Frame, Parked, Stacks};
use super::{Replay, asked};
use crate::error::{Context as _, Error, Result};
use crate::ptrace;
use crate::tracee::Tracee;
use crate::translate::hooks::{Hook, Kind, VECTORS};
use crate::translate::{hooks, layout};

/// A call begins or ends, or the program meets the kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum Traced {
    /// The first instruction of a function is about to be executed.
    Enter {
        position: u64,
        tid: i32,
        /// Its number in the list of entries.
        function: usize,
        /// The stack pointer, which points to the return address.
        stack: u64,
        return_address: u64,
        /// rdi, rsi, rdx, rcx, r8, r9.
        arguments: [u64; 6],
        /// Another function has gone on in this one: a tail call.
        is_tail: bool,
        /// The lower halves of xmm0 to xmm7: as many as were asked for, the others are zero.
        vectors: [u64; VECTORS],
    },
    /// Its return instruction is about to be executed. That ends the calls that it replaced, too.
    Leave {
        position: u64,
        tid: i32,
        function: usize,
        stack: u64,
        /// rax, rdx, the lower halves of xmm0 and xmm1.
        results: [u64; 4],
    },
    /// The thread makes a system call.
    SystemCall {
        /// It is the next instruction, or was when other threads went on.
        position: u64,
        tid: i32,
        number: u64,
        arguments: [u64; 6],
        /// The instruction, and the stack pointer.
        address: u64,
        stack: u64,
        /// What the arguments point to, as far as it tells what the call does.
        memory: Vec<Region>,
    },
    /// It has returned.
    Answer {
        /// The instruction behind it is the next one.
        position: u64,
        tid: i32,
        number: u64,
        arguments: [u64; 6],
        result: i64,
        stack: u64,
        /// What the kernel has written for it.
        memory: Vec<Region>,
        /// What was written to descriptor 1 or 2.
        output: Option<Vec<u8>>,
    },
    /// The first instruction of a signal's handler is about to be executed.
    Signal {
        position: u64,
        tid: i32,
        number: i32,
    },
    /// The thread is about to go on on another stack.
    Switch {
        position: u64,
        tid: i32,
        /// The stack pointer before.
        stack: u64,
        /// The other stack's bounds, if they are known.
        to: Option<Range<u64>>,
    },
    /// It has been left in another way: by an exception, by longjmp(3), or because its thread ended. It was found at this position.
    Unwound {
        position: u64,
        tid: i32,
        function: usize,
        stack: u64,
    },
}

/// An instruction that is executed when the program is about to go on in another frame, without returns from the calls in
/// between: at the end of the unwinder, and of longjmp(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaver {
    pub address: u64,
    /// Which argument register has the stack pointer of that frame: of rdi, rsi, rdx, rcx, r8, r9, from 0.
    pub argument: usize,
    /// How many words of that stack are taken before the program goes on.
    pub words: u64,
}

/// A function that goes on on the stack of a `ucontext_t`: swapcontext(3), setcontext(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switcher {
    pub address: u64,
    /// Which argument is the context, from 0.
    pub argument: usize,
}

/// What else than entries tells how calls end and nest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    pub leavers: Vec<Leaver>,
    pub switchers: Vec<Switcher>,
}

/// Some memory of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub address: u64,
    pub bytes: Vec<u8>,
}

/// What is traced.
pub(super) struct Calls {
    buffer: u64,
    /// A copy of it.
    bytes: Vec<u8>,
    /// How many functions are traced. The leavers have the numbers after theirs, and the switchers those after them.
    functions: usize,
    hints: Hints,
    /// By thread.
    stacks: FxHashMap<i32, Stacks>,
    parked: Parked,
    pub(super) found: Vec<Traced>,
    pub(super) asked: asked::Asked,
    sender: SyncSender<Vec<Traced>>,
}

/// Calls that are passed on at once: few enough for the processor's cache.
const BATCH: usize = 1 << 9;
/// Batches that wait at most.
const WAITING: usize = 64;

/// Runs the recording in a folder once, and reports each call of the functions that begin at these addresses, in the order of
/// positions. It ends early when `report` returns false.
pub fn trace(
    folder: &Path,
    entries: &[Hook],
    hints: &Hints,
    report: &mut dyn FnMut(&Traced) -> bool,
) -> Result<()> {
    let (sender, batches) = sync_channel(WAITING);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| run(folder, entries, hints, sender));
        for batch in &batches {
            if !batch.iter().all(&mut *report) {
                break;
            }
        }
        drop(batches);
        run.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn run(
    folder: &Path,
    entries: &[Hook],
    hints: &Hints,
    sender: SyncSender<Vec<Traced>>,
) -> Result<()> {
    let mut replay = Replay::open(folder)?;
    replay.checkpoints.every = u64::MAX;
    replay.begin_trace(entries, hints, sender)?;
    let end = replay.end();
    let ran = replay.forward(end).and_then(|()| replay.trace_last_call());
    let closed = match &mut replay.calls {
        Some(calls) => !calls.pass_on(0),
        None => false,
    };
    // Nobody wants the rest.
    if closed { Ok(()) } else { ran }
}

impl Replay {
    fn begin_trace(
        &mut self,
        entries: &[Hook],
        hints: &Hints,
        sender: SyncSender<Vec<Traced>>,
    ) -> Result<()> {
        let own = self.registers()?;
        let at = self.buffer();
        self.process
            .set_word(self.block() + u64::from(layout::SLOT_RECORDS), at)?;
        self.calls = Some(Calls {
            buffer: at,
            bytes: Vec::new(),
            functions: entries.len(),
            hints: hints.clone(),
            stacks: FxHashMap::default(),
            parked: Parked::default(),
            found: Vec::new(),
            asked: asked::Asked::of(&self.recorded.entries, self.recorded.first),
            sender,
        });
        let leavers = hints.leavers.iter().map(|leaver| leaver.address);
        let switchers = hints.switchers.iter().map(|switcher| switcher.address);
        let others = leavers.chain(switchers);
        let others = others.map(|address| Hook {
            address,
            vectors: 0,
        });
        let hooked: Vec<Hook> = entries.iter().copied().chain(others).collect();
        self.translator.set_hooks(&hooked);
        self.process.flush(&mut self.translator)?;
        self.enter(&own)
    }

    /// Takes the records that there are.
    pub(super) fn drain(&mut self) -> Result<()> {
        let Some(calls) = &mut self.calls else {
            return self.drain_notes();
        };
        let slot = layout::block(self.translator.low(), 0) + u64::from(layout::SLOT_RECORDS);
        let length = self.process.word(slot)?.wrapping_sub(calls.buffer);
        let mut bytes = std::mem::take(&mut calls.bytes);
        bytes.resize(BYTES as usize, 0);
        let cut_off = || Error::Damaged(String::from("a record of a call is cut off"));
        let part = bytes.get_mut(..length as usize).ok_or_else(cut_off)?;
        let count = self.process.read(calls.buffer, part);
        let (tid, limit) = (self.now.running, self.limit);
        let mut rest = &bytes[..count];
        while let Some(kind) = rest.first_chunk::<4>() {
            let kind = Kind::of(*kind);
            let (record, behind) = rest.split_at_checked(kind.length()).ok_or_else(cut_off)?;
            let word = |index: usize| {
                let word = record.get(index * 8..).and_then(|rest| rest.first_chunk());
                word.map_or(0, |word| u64::from_le_bytes(*word))
            };
            let counter = limit.count(word(1));
            match calls.switcher(kind) {
                Some(switcher) => {
                    let to = stack_of(&self.process, word(4 + switcher.argument));
                    calls.switch(tid, counter, word(2), to);
                }
                None => calls.take(tid, kind, counter, &word),
            }
            rest = behind;
            if !calls.pass_on(BATCH) {
                return Err(Error::Damaged(String::from("the receiver is gone")));
            }
        }
        calls.bytes = bytes;
        let buffer = calls.buffer;
        self.process.set_word(slot, buffer)
    }

    /// The memory that the process could not use, if it has stopped because of that.
    pub(super) fn fault_address(&self) -> Result<Option<u64>> {
        let info = ptrace::signal_info(self.process.pid).context("read the signal")?;
        // SAFETY: a fault has an address.
        let address = unsafe { info.si_addr() } as u64;
        Ok((info.si_signo == libc::SIGSEGV).then_some(address))
    }

    /// Whether the process has stopped because it used memory there.
    pub(super) fn has_fault_in(&self, range: Range<u64>) -> Result<bool> {
        Ok(self.fault_address()?.is_some_and(|at| range.contains(&at)))
    }

    /// If a return fails because its stack cannot be read, its record fails first: the registers become those of the return.
    fn leave_record_of_return(&mut self) -> Result<()> {
        let pid = self.process.pid;
        let mut registers = ptrace::registers(pid).context("read registers")?;
        let code = self
            .process
            .bytes(registers.rip, hooks::POP_RETURN_ADDRESS.len());
        if code == hooks::POP_RETURN_ADDRESS {
            let scratch = self.block() + u64::from(layout::SLOT_SCRATCH_2);
            registers.r11 = self.process.word(scratch)?;
            ptrace::set_registers(pid, &registers).context("set registers")?;
        }
        Ok(())
    }

    /// Whether the process has come to the end of the buffer; then it goes on at the beginning of it.
    pub(super) fn emptied(&mut self) -> Result<bool> {
        let Some(calls) = &self.calls else {
            return self.emptied_notes();
        };
        let guard = calls.buffer + BYTES;
        let pid = self.process.pid;
        if !self.has_fault_in(guard..guard + PAGE)? {
            self.leave_record_of_return()?;
            return Ok(false);
        }
        self.drain()?;
        // The record is written anew, from the first instruction that was added for it.
        let mut registers = ptrace::registers(pid).context("read registers")?;
        let place = self
            .translator
            .place(registers.rip)
            .ok_or_else(|| self.diverged("it is not where it should be"))?;
        let block = self.block();
        registers.r11 = self
            .process
            .word(block + u64::from(layout::SLOT_SCRATCH_2))?;
        let is_entry = self
            .process
            .bytes(place.at + ENTRY_CODE.0, ENTRY_CODE.1.len())
            == ENTRY_CODE.1;
        if is_entry {
            registers.rax = self.process.word(block + u64::from(layout::SLOT_SCRATCH))?;
        }
        registers.rip = place.at;
        ptrace::set_registers(pid, &registers).context("set registers")?;
        Ok(true)
    }
}

/// What tells the code of an entry from that of a return: its second instruction saves rax.
const ENTRY_CODE: (u64, [u8; 5]) = (9, [0x65, 0x48, 0x89, 0x04, 0x25]);

impl Calls {
    /// What has become of open calls is not known.
    pub(super) fn lose(&mut self) {
        self.stacks.clear();
        self.parked.clear();
    }

    /// A handler begins.
    pub(super) fn signal(&mut self, position: u64, tid: i32, number: i32) {
        self.stacks.entry(tid).or_default().signalled();
        self.found.push(Traced::Signal {
            position,
            tid,
            number,
        });
    }

    /// Passes on what was found, if it is so many; returns whether anybody wants it.
    fn pass_on(&mut self, least: usize) -> bool {
        if self.found.len() < least {
            return true;
        }
        let next = Vec::with_capacity(self.found.len() + BATCH / 8);
        self.sender
            .send(std::mem::replace(&mut self.found, next))
            .is_ok()
    }

    #[inline]
    fn take(&mut self, tid: i32, kind: Kind, counter: u64, word: &impl Fn(usize) -> u64) {
        let function = match kind {
            // The counter is ahead by the return itself.
            Kind::Return => return self.returned(tid, counter.wrapping_sub(1), word),
            Kind::Entry { hook, .. } => hook,
        };
        let leaver = function.checked_sub(self.functions);
        match leaver.and_then(|index| self.hints.leavers.get(index)) {
            Some(leaver) => {
                let to = word(4 + leaver.argument).wrapping_add(8 * leaver.words);
                let Calls { stacks, found, .. } = self;
                let stacks = stacks.entry(tid).or_default();
                if let Some(frames) = stacks.left_by_handler(word(2), to) {
                    leave_while(frames, found, (tid, counter), |_| true);
                }
                self.left(tid, counter, to);
            }
            None => self.entered(tid, counter, function, word),
        }
    }

    /// Returns what a hook is, if a thread changes its stack there.
    fn switcher(&self, kind: Kind) -> Option<Switcher> {
        let Kind::Entry { hook, .. } = kind else {
            return None;
        };
        let first = self.functions + self.hints.leavers.len();
        self.hints.switchers.get(hook.checked_sub(first)?).copied()
    }

    fn switch(&mut self, tid: i32, position: u64, stack: u64, to: Option<Range<u64>>) {
        self.left(tid, position, stack);
        let stacks = self.stacks.entry(tid).or_default();
        stacks.switch(stack, to.clone(), &mut self.parked);
        self.found.push(Traced::Switch {
            position,
            tid,
            stack,
            to,
        });
    }

    /// The calls below `stack`, on the same stack, have ended without a return.
    fn left(&mut self, tid: i32, position: u64, stack: u64) {
        let Calls { stacks, found, .. } = self;
        if let Some(frames) = stacks.entry(tid).or_default().at_leave(stack) {
            leave_while(frames, found, (tid, position), |frame| frame.stack < stack);
        }
    }

    fn returned(&mut self, tid: i32, position: u64, word: &impl Fn(usize) -> u64) {
        let (stack, return_address) = (word(2), word(7));
        let Calls { stacks, found, .. } = self;
        let Some(frames) = stacks.entry(tid).or_default().at_leave(stack) else {
            return;
        };
        // A frame that an exception or longjmp has left does not return: others have their return addresses in its place.
        leave_while(frames, found, (tid, position), |frame| {
            frame.stack < stack || frame.stack == stack && frame.return_address != return_address
        });
        // One return ends a call and those that it replaced.
        let mut innermost = None;
        while let Some(frame) = frames.pop_if(|frame| frame.stack == stack) {
            _ = innermost.get_or_insert(frame.function);
        }
        found.extend(innermost.map(|function| Traced::Leave {
            position,
            tid,
            function,
            stack,
            results: [word(3), word(4), word(5), word(6)],
        }));
    }

    fn entered(&mut self, tid: i32, position: u64, function: usize, word: &impl Fn(usize) -> u64) {
        let (stack, return_address) = (word(2), word(3));
        // An entry above a frame: that one was left without a return. A tail call has the same stack pointer, and returns to the
        // same place. (So does a second call from one place after a frame was left unseen: the two are not told apart.)
        let Calls { stacks, found, .. } = self;
        let frames = stacks.entry(tid).or_default().at_enter(stack);
        leave_while(frames, found, (tid, position), |frame| {
            frame.stack < stack || frame.stack == stack && frame.return_address != return_address
        });
        // A loop that begins at the entry of the function. (A tail call of itself is one, too.)
        let is_it = |frame: &Frame| {
            (frame.function, frame.stack, frame.return_address) == (function, stack, return_address)
        };
        if frames.last().is_some_and(is_it) {
            return;
        }
        let is_tail = frames.last().is_some_and(|frame| frame.stack == stack);
        frames.push(Frame {
            function,
            stack,
            return_address,
        });
        self.found.push(Traced::Enter {
            position,
            tid,
            function,
            stack,
            return_address,
            arguments: std::array::from_fn(|index| word(4 + index)),
            is_tail,
            vectors: std::array::from_fn(|index| word(10 + index)),
        });
    }
}

/// Ends calls without a return, the innermost first.
fn leave_while(
    frames: &mut Vec<Frame>,
    found: &mut Vec<Traced>,
    (tid, position): (i32, u64),
    is_left: impl Fn(&Frame) -> bool,
) {
    while let Some(frame) = frames.pop_if(|frame| is_left(frame)) {
        found.push(Traced::Unwound {
            position,
            tid,
            function: frame.function,
            stack: frame.stack,
        });
    }
}

/// Words of a `ucontext_t`: its stack's lowest address and length, and rsp.
const CONTEXT: [u64; 3] = [2, 4, 20];

/// Returns the bounds of a context's stack. makecontext(3) needs them; in another context they may be anything, so its stack
/// pointer must be within them.
fn stack_of(process: &Tracee, context: u64) -> Option<Range<u64>> {
    let word = |index: u64| process.word(context.checked_add(8 * index)?).ok();
    let [low, size, rsp] = CONTEXT.map(word);
    let stack = low?..low?.checked_add(size?)?;
    let is_known = stack.start != 0 && stack.start < rsp? && rsp? <= stack.end;
    is_known.then_some(stack)
}

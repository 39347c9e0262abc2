//! Calls a function of the program in a stopped thread, and restores the thread afterwards.
//!
//! The call returns to our own trap. The function's changes to memory stay; those to registers, flags and vectors do
//! not.

pub(crate) mod syscall;

use std::{collections::BTreeMap, io, time::Instant};

use crossbeam::channel::Sender;
use debuginfo::Diagnostic;

use crate::{
    live::{
        breakpoints::sites::TRAP,
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::{Call, Reason, Returned, Tid},
        tracee::{
            Tracee,
            machine::{RED_ZONE, XMM_OFFSET},
            stopped::Stopped,
            threads::{Halt, State},
        },
    },
    stop::Registers,
};

/// Places in the program that calls need, and their deadlines.
#[derive(Debug, Default)]
pub(crate) struct RemoteCalls {
    /// Address of a `syscall` instruction in the program.
    syscall_at: Option<u64>,
    /// Return address of the functions that we call.
    return_at: Option<u64>,
    /// Deadlines of function calls.
    pub deadlines: BTreeMap<Tid, Instant>,
}

impl RemoteCalls {
    /// Forgets the places after the program has executed another program.
    pub fn forget_places(&mut self) {
        (self.syscall_at, self.return_at) = (None, None);
    }
}

/// A call that has not returned.
#[derive(Debug)]
pub(crate) struct Calling {
    /// The halt before the call, with the signal that was about to be delivered.
    stood: Halt,
    signal_info: Option<libc::siginfo_t>,
    registers: Registers,
    extended: Vec<u8>,
    reply: Sender<LiveResult<Returned>>,
    until: Instant,
    /// The thread was stopped in the function, and the stop was reported.
    pub was_stopped: bool,
}

impl Tracer {
    /// Starts a call. `reply` receives the result.
    pub fn call(&mut self, tid: Tid, call: &Call, reply: Sender<LiveResult<Returned>>) {
        if let Err(error) = self.begin_call(tid, call, reply.clone()) {
            let _ = reply.send(Err(error));
        }
    }

    fn begin_call(
        &mut self,
        tid: Tid,
        call: &Call,
        reply: Sender<LiveResult<Returned>>,
    ) -> LiveResult<()> {
        let thread = self
            .tracee
            .threads
            .get(&tid)
            .ok_or(LiveError::NoThread(tid))?;
        if thread.stop().is_none() {
            return Err(LiveError::Running(tid));
        }
        if call.integers.len() > 6 || call.floats.len() > 8 {
            let message = "a function is called with at most 6 whole numbers or pointers and 8 floating point numbers";
            return Err(LiveError::Call(message.into()));
        }
        let failed = |source| LiveError::System {
            action: "call a function",
            source,
        };
        let back = self.call_return()?;
        let stopped = self.tracee.stopped(tid)?;
        let saved = stopped.registers().map_err(failed)?;
        let extended = stopped.extended_state().map_err(failed)?;
        let mut registers = saved;
        let (integers, stack) = self.tracee.texts_on_stack(call, saved.rsp - RED_ZONE)?;
        let [rdi, rsi, rdx, rcx, r8, r9] =
            [0, 1, 2, 3, 4, 5].map(|index| integers.get(index).copied().unwrap_or_default());
        (registers.rdi, registers.rsi, registers.rdx) = (rdi, rsi, rdx);
        (registers.rcx, registers.r8, registers.r9) = (rcx, r8, r9);
        registers.rax = call.floats.len() as u64;
        registers.rip = call.function;
        registers.orig_rax = u64::MAX;
        registers.eflags &= !0x400; // the ABI requires DF to be clear at a call
        // Below the red zone and the texts. Once the return address is pushed, the stack pointer is 8 less than a multiple of 16.
        registers.rsp = (stack & !15) - 8;
        self.tracee
            .memory
            .write(registers.rsp, &back.to_le_bytes())
            .map_err(|_| LiveError::Memory {
                address: registers.rsp,
                len: 8,
            })?;
        let mut vectors = extended.clone();
        for (index, value) in call.floats.iter().enumerate() {
            let at = XMM_OFFSET + index * 16;
            if let Some(bytes) = vectors.get_mut(at..at + 8) {
                bytes.copy_from_slice(&value.to_le_bytes());
            }
        }
        let stopped = self.tracee.stopped(tid)?;
        if !call.floats.is_empty() {
            stopped.set_extended_state(&vectors).map_err(failed)?;
        }
        stopped.set_registers(&registers).map_err(failed)?;
        let Some(thread) = self.tracee.threads.get_mut(&tid) else {
            return Err(LiveError::Ended);
        };
        // Memory may change from here on.
        self.journal.call(tid, call.function);
        // The pending signal waits until the function has returned.
        let stood = thread.halt_mut().map(std::mem::take).unwrap_or_default();
        let signal_info = thread.signal_info.take();
        thread.calling = Some(Box::new(Calling {
            stood,
            signal_info,
            registers: saved,
            extended,
            reply,
            until: Instant::now() + call.timeout,
            was_stopped: false,
        }));
        self.calls
            .deadlines
            .insert(tid, Instant::now() + call.timeout);
        self.tracee.run_in_place(&self.probes, &self.journal, tid);
        Ok(())
    }

    pub fn call_returned(&mut self, tid: Tid) {
        let stopped = self.tracee.stopped(tid);
        let result = stopped.and_then(|stopped| {
            returned(&stopped).map_err(|source| LiveError::System {
                action: "read what the function returned",
                source,
            })
        });
        self.end_call(tid, result);
    }

    /// Ends a call whose function is about to receive a signal that would not have occurred without the call.
    pub fn call_failed(&mut self, tid: Tid, signal: i32) {
        let why = format!("the function did not return: it received signal {signal}");
        let why = Diagnostic::new(why).with_hint("the thread is as it was before the call");
        self.end_call(tid, Err(LiveError::Call(why)));
    }

    fn end_call(&mut self, tid: Tid, result: LiveResult<Returned>) {
        self.calls.deadlines.remove(&tid);
        let Some(calling) = self
            .tracee
            .threads
            .get_mut(&tid)
            .and_then(|thread| thread.calling.take())
        else {
            return;
        };
        let extended = calling.extended;
        // A failure here means that the thread was killed.
        if let Ok(stopped) = self.tracee.stopped(tid) {
            let _ = stopped.set_extended_state(&extended);
            let _ = stopped.set_registers(&calling.registers);
        }
        if let Some(thread) = self.tracee.threads.get_mut(&tid) {
            thread.state = State::Halted(calling.stood);
            thread.signal_info = calling.signal_info;
        }
        let _ = calling.reply.send(result);
        self.stops.wake();
        if calling.was_stopped {
            // The caller that resumed the thread waits for a stop.
            self.halt(tid, Reason::User, false);
        }
    }

    /// Ends calls that have exceeded their deadline.
    pub fn end_late_calls(&mut self) {
        if self.calls.deadlines.is_empty() {
            return;
        }
        let now = Instant::now();
        let late: Vec<Tid> = self
            .calls
            .deadlines
            .iter()
            .filter(|(_, until)| **until <= now)
            .map(|(tid, _)| *tid)
            .collect();
        for tid in late {
            self.calls.deadlines.remove(&tid);
            let is_late = self
                .tracee
                .threads
                .get(&tid)
                .and_then(|thread| thread.calling.as_ref())
                .is_some_and(|calling| calling.until <= now);
            if !is_late {
                continue;
            }
            if self.hold().is_ok() {
                let why = Diagnostic::new("the function did not return in time").with_hint(
                    "the thread is as it was before the call, what the function has changed in memory stays",
                );
                self.end_call(tid, Err(LiveError::Call(why)));
            }
            self.release();
        }
    }

    /// Returns the return address for calls: a trap in our memory.
    fn call_return(&mut self) -> LiveResult<u64> {
        if let Some(at) = self.calls.return_at {
            return Ok(at);
        }
        let at = self.spare(16)?;
        self.tracee
            .memory
            .write_raw(at, &[TRAP])
            .map_err(|_| LiveError::Memory {
                address: at,
                len: 1,
            })?;
        self.calls.return_at = Some(at);
        Ok(at)
    }

    /// Allocates memory for us in the program, near its code.
    pub fn spare(&mut self, len: u64) -> LiveResult<u64> {
        let near = self
            .tracee
            .space_now()
            .modules()
            .first()
            .map_or(0, |module| module.range.start);
        if let Some(at) = self.breakpoints.sites.spare_room(near, len) {
            return Ok(at);
        }
        self.make_room(near)?;
        self.breakpoints
            .sites
            .spare_room(near, len)
            .ok_or(LiveError::Ended)
    }
}

impl Tracee {
    /// Writes the texts of a call below `stack`. Returns its integers with their addresses, and the end of the stack.
    fn texts_on_stack(&mut self, call: &Call, mut stack: u64) -> LiveResult<(Vec<u64>, u64)> {
        let mut integers = call.integers.clone();
        for (index, bytes) in &call.texts {
            stack -= bytes.len() as u64;
            let written = self.memory.write(stack, bytes);
            written.map_err(|_| LiveError::Memory {
                address: stack,
                len: bytes.len(),
            })?;
            if let Some(integer) = integers.get_mut(*index) {
                *integer = stack;
            }
        }
        Ok((integers, stack))
    }

    pub fn has_call(&self, tid: Tid) -> bool {
        self.threads
            .get(&tid)
            .is_some_and(|thread| thread.calling.is_some())
    }
}

impl RemoteCalls {
    pub fn is_call_return(&self, address: u64) -> bool {
        self.return_at == Some(address)
    }
}

/// Returns the registers in which a function has returned its result.
fn returned(stopped: &Stopped<'_>) -> io::Result<Returned> {
    let registers = stopped.registers()?;
    let state = stopped.extended_state()?;
    let low = |index: usize| {
        let at = XMM_OFFSET + index * 16;
        state
            .get(at..at + 8)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u64::from_le_bytes)
    };
    Ok(Returned {
        rax: registers.rax,
        rdx: registers.rdx,
        xmm0: low(0),
        xmm1: low(1),
    })
}

//! Calls a function of the program in a stopped thread, and restores the thread afterwards.
//!
//! The call returns to our own trap. The function's changes to memory stay; those to registers, flags and vectors do
//! not.

mod ending;
pub(crate) mod syscall;

use std::{collections::BTreeMap, io, time::Instant};

use crossbeam::channel::Sender;
use debuginfo::Diagnostic;
use exact::abi::Arguments;

use self::syscall::is_at_event;
use crate::{
    live::{
        breakpoints::sites::TRAP,
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::{Call, Returned, Tid},
        tracee::{Tracee, threads::Halt},
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
    began: Instant,
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
        self.tracee.check_stopped(tid)?;
        if self.tracee.has_call(tid) {
            let what = Diagnostic::new("the thread runs a function that was called before");
            return Err(LiveError::Call(
                what.with_hint("abandon that call with \"pause\""),
            ));
        }
        if call.integers.len() > 6 || call.floats.len() > 8 {
            let message = "a function is called with at most 6 whole numbers or pointers and 8 floating point numbers";
            return Err(LiveError::Call(message.into()));
        }
        // The call that it is in would put its result into the function's registers, and lose it.
        if is_at_event(&self.tracee.stopped(tid)?) {
            let what = "the thread is in a system call that makes a process or executes a program";
            return Err(LiveError::Call(what.into()));
        }
        let back = self.call_return()?;
        let stopped = self.tracee.stopped(tid)?;
        let registers = stopped.registers().map_err(not_called)?;
        let extended = stopped.extended_state().map_err(not_called)?;
        self.tracee
            .enter_function(tid, call, back, &registers, &extended)?;
        let Some(thread) = self.tracee.threads.get_mut(&tid) else {
            return Err(LiveError::Ended);
        };
        // Memory may change from here on.
        self.journal.call(tid, call.function);
        let began = Instant::now();
        thread.calling = Some(Box::new(Calling {
            // The pending signal waits until the function has returned.
            stood: thread.halt_mut().map(std::mem::take).unwrap_or_default(),
            signal_info: thread.signal_info.take(),
            registers,
            extended,
            reply,
            began,
            was_stopped: false,
        }));
        self.calls.deadlines.insert(tid, began + call.timeout);
        self.tracee.run_in_place(&self.probes, &self.journal, tid);
        Ok(())
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
    /// Moves a halted thread to the beginning of a function, which is to return to `back`.
    fn enter_function(
        &self,
        tid: Tid,
        call: &Call,
        back: u64,
        before: &Registers,
        extended: &[u8],
    ) -> LiveResult<()> {
        let arguments = Arguments {
            integers: &call.integers,
            floats: &call.floats,
            texts: &call.texts,
        };
        let entry = arguments.entry(call.function, before, extended.to_vec());
        for (at, bytes) in entry.texts {
            self.put(at, bytes)?;
        }
        self.put(entry.registers.rsp, &back.to_le_bytes())?;
        let stopped = self.stopped(tid)?;
        if !call.floats.is_empty() {
            let set = stopped.set_extended_state(&entry.extended);
            set.map_err(not_called)?;
        }
        stopped.set_registers(&entry.registers).map_err(not_called)
    }

    fn put(&self, address: u64, bytes: &[u8]) -> LiveResult<()> {
        let written = self.memory.write(address, bytes);
        written.map_err(|_| LiveError::Memory {
            address,
            len: bytes.len(),
        })
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

fn not_called(source: io::Error) -> LiveError {
    LiveError::System {
        action: "call a function",
        source,
    }
}

//! Handles traps that outlive us: a handler in the program's runtime skips them until the guardian has removed them.
//!
//! While we live, we trace the program and no trap reaches the handler. A program that handles SIGTRAP itself keeps its
//! own handler, even one that it installs later. If we are killed, that handler receives the traps.

use debuginfo::Mapped;

use crate::{
    live::{
        breakpoints::Breakpoints,
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::Tid,
        remote_call::{RemoteCalls, syscall::is_within_call},
        tracee::{Tracee, machine::RED_ZONE},
    },
    process::status,
};

/// Size in bytes of the kernel's `struct sigaction`, and of the signal mask in it.
const ACTION_BYTES: usize = 32;
const MASK_BYTES: u64 = 8;

/// Addresses in the program of the runtime's handler and of the code it returns to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrapHandler {
    pub handler: u64,
    pub restorer: u64,
}

impl TrapHandler {
    /// Finds both in the runtime's library.
    pub fn find(runtime: &Mapped) -> Option<TrapHandler> {
        let symbols = runtime.module.symbols();
        let address = |name: &str| {
            let symbol = symbols.iter().find(|symbol| symbol.linkage == name)?;
            Some(runtime.address(symbol.svma))
        };
        Some(TrapHandler {
            handler: address("hs_on_trap")?,
            restorer: address("hs_trap_return")?,
        })
    }

    /// Returns the words of the kernel's `struct sigaction` that install it. It blocks all signals: a handler of the program that
    /// ran into a trap within it would find SIGTRAP blocked, and the kernel would end the program.
    fn action(self) -> [u64; 4] {
        const SA_SIGINFO: u64 = 4;
        const SA_RESTORER: u64 = 0x0400_0000;
        const SA_ONSTACK: u64 = 0x0800_0000;
        let flags = SA_SIGINFO | SA_RESTORER | SA_ONSTACK;
        [self.handler, flags, self.restorer, u64::MAX]
    }
}

fn words_of(bytes: &[u8; ACTION_BYTES]) -> [u64; 4] {
    let mut words = bytes.chunks_exact(8).map(|word| {
        let word = word.try_into().expect("chunks of 8 bytes");
        u64::from_le_bytes(word)
    });
    std::array::from_fn(|_| words.next().unwrap_or_default())
}

impl Tracer {
    /// Installs the handler for leftover traps, unless the program handles SIGTRAP itself.
    pub fn handle_orphan_traps(&mut self, handler: TrapHandler) -> LiveResult<()> {
        if self.tracee.handles(libc::SIGTRAP) {
            return Ok(());
        }
        self.set_action(handler.action())?;
        self.breakpoints.orphan_handler = Some(handler);
        Ok(())
    }

    /// Installs the handler again if it is gone: the kernel removes it when a thread that blocks SIGTRAP traps. `tid` is halted.
    pub fn keep_orphan_handler(&mut self, tid: Tid) {
        let Some(ours) = self.breakpoints.orphan_handler else {
            return;
        };
        let is_there = self.tracee.handles(libc::SIGTRAP) || self.tracee.ignores(libc::SIGTRAP);
        // A sandbox may kill the program for the call.
        if is_there || !status::may_sleep(self.tracee.pid, tid as u32) {
            return;
        }
        let stopped = self.tracee.stopped(tid);
        if stopped.is_ok_and(|stopped| !is_within_call(&stopped)) {
            // Without it the program works as well, as long as we live.
            let _ = self
                .calls
                .trap_action(&mut self.tracee, tid, Some(ours.action()));
        }
    }

    /// Sets the program's SIGTRAP action: the words of the kernel's `struct sigaction`.
    fn set_action(&mut self, words: [u64; 4]) -> LiveResult<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = self.spare(bytes.len() as u64)?;
        self.tracee
            .memory
            .write_raw(at, &bytes)
            .map_err(|_| LiveError::Memory {
                address: at,
                len: bytes.len(),
            })?;
        let arguments = [libc::SIGTRAP as u64, at, 0, MASK_BYTES, 0, 0];
        match self.system_call(libc::SYS_rt_sigaction as u64, arguments)? {
            0 => Ok(()),
            error => Err(LiveError::System {
                action: "make the program pass traps that outlive us",
                source: std::io::Error::from_raw_os_error((error as i64).unsigned_abs() as i32),
            }),
        }
    }
}

impl Breakpoints {
    /// Removes the handler once no traps are left. A handler that the program has installed since then stays.
    pub fn forget_orphan_traps(
        &mut self,
        calls: &mut RemoteCalls,
        tracee: &mut Tracee,
    ) -> LiveResult<()> {
        let Some(ours) = self.orphan_handler.take() else {
            return Ok(());
        };
        let tid = tracee.worker().ok_or(LiveError::NotStopping)?;
        if calls.trap_handler(tracee, tid)? == ours.handler {
            calls.trap_action(tracee, tid, Some([0; 4]))?;
        }
        Ok(())
    }

    /// Returns whether the SIGTRAP handler is the runtime's. `tid` is halted.
    ///
    /// The question is a system call, for which a sandbox may kill the program. In a sandbox, or if the call fails, the
    /// answer is true.
    pub fn is_trap_handler_ours(
        &mut self,
        calls: &mut RemoteCalls,
        tracee: &mut Tracee,
        tid: Tid,
    ) -> bool {
        let Some(ours) = self.orphan_handler else {
            return false;
        };
        if !status::may_sleep(tracee.pid, tid as u32) {
            return true;
        }
        let found = calls.trap_handler(tracee, tid);
        found.map_or(true, |handler| handler == ours.handler)
    }

    /// Restores the default action of SIGTRAP, if the runtime's handler is installed: that handler would do only this
    /// and trap again. `tid` is about to receive the signal.
    pub fn let_trap_end(&mut self, calls: &mut RemoteCalls, tracee: &mut Tracee, tid: Tid) {
        if self.orphan_handler.is_some() && self.is_trap_handler_ours(calls, tracee, tid) {
            // On failure the handler does it.
            let _ = calls.trap_action(tracee, tid, Some([0; 4]));
        }
    }
}

impl RemoteCalls {
    /// Returns the SIGTRAP handler according to the kernel. `tid` is halted.
    fn trap_handler(&mut self, tracee: &mut Tracee, tid: Tid) -> LiveResult<u64> {
        let [handler, ..] = self.trap_action(tracee, tid, None)?;
        Ok(handler)
    }

    /// Makes a halted thread query the program's SIGTRAP action, or set it: the words of the kernel's
    /// `struct sigaction`. They are kept below the thread's stack during the call.
    fn trap_action(
        &mut self,
        tracee: &mut Tracee,
        tid: Tid,
        new: Option<[u64; 4]>,
    ) -> LiveResult<[u64; 4]> {
        let stack = tracee.registers(tid)?.rsp;
        let at = (stack.wrapping_sub(RED_ZONE) & !15).wrapping_sub(ACTION_BYTES as u64);
        let failed = |_| LiveError::Memory {
            address: at,
            len: ACTION_BYTES,
        };
        let (mut before, mut action) = ([0; ACTION_BYTES], [0; ACTION_BYTES]);
        tracee.memory.read_raw(at, &mut before).map_err(failed)?;
        let (set, asked) = match new {
            Some(_) => (at, 0),
            None => (0, at),
        };
        let words = new.unwrap_or_default();
        for (bytes, word) in action.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        tracee.memory.write_raw(at, &action).map_err(failed)?;
        let arguments = [libc::SIGTRAP as u64, set, asked, MASK_BYTES, 0, 0];
        let result = self.system_call_of(tracee, tid, libc::SYS_rt_sigaction as u64, arguments)?;
        tracee.memory.read_raw(at, &mut action).map_err(failed)?;
        tracee.memory.write_raw(at, &before).map_err(failed)?;
        match result {
            0 => Ok(words_of(&action)),
            error => Err(LiveError::System {
                action: "ask for or set the program's handler of SIGTRAP",
                source: std::io::Error::from_raw_os_error((error as i64).unsigned_abs() as i32),
            }),
        }
    }
}

//! Makes threads of the program execute system calls for us, such as mapping memory within reach of code.

use std::{
    ops::Range,
    thread,
    time::{Duration, Instant},
};

use crate::{
    live::{
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::Tid,
        remote_call::RemoteCalls,
        tracee::{Tracee, hold::STOP_PATIENCE, stopped::Stopped},
    },
    process::Maps,
};

/// How long threads run on that were all within system calls of their own.
const PAUSE: Duration = Duration::from_millis(1);

/// Memory for slots, mapped at once; pages are allocated when touched.
const SLOT_REGION_BYTES: u64 = 16 << 20;

impl Tracer {
    /// Makes a thread of the program execute a system call.
    pub fn system_call(&mut self, number: u64, arguments: [u64; 6]) -> LiveResult<u64> {
        let at = self.calls.syscall_instruction(&self.tracee)?;
        let was_holding = self.tracee.is_held;
        let worker = self.hold_for_calls();
        let result = worker.and_then(|tid| self.tracee.system_call_in(tid, at, number, arguments));
        if !was_holding {
            self.release();
        }
        result
    }

    /// Halts all threads, and returns one that can make system calls for us. If each one is within a call of its own, they run
    /// on for a moment. They are held after a failure too.
    ///
    /// # Errors
    /// The program has ended, or its threads do not stop outside of system calls.
    pub fn hold_for_calls(&mut self) -> LiveResult<Tid> {
        let was_holding = self.tracee.is_held;
        let deadline = Instant::now() + STOP_PATIENCE;
        loop {
            if !was_holding {
                self.hold()?;
            }
            if let Some(tid) = self.tracee.worker() {
                return Ok(tid);
            }
            if self.done || self.tracee.threads.is_empty() {
                return Err(LiveError::Ended);
            }
            // Threads that are stopped for the user, or whose event is being handled, stay where they are.
            let (threads, busy) = (&self.tracee.threads, &self.tracee.busy);
            let mut held = threads.iter().filter(|(_, thread)| thread.is_held());
            let may_run_on = !was_holding && held.any(|(tid, _)| !busy.contains(tid));
            if !may_run_on || Instant::now() > deadline {
                return Err(LiveError::NotStopping);
            }
            self.release();
            thread::sleep(PAUSE);
        }
    }

    /// Maps memory for us within reach of `near`.
    pub fn map_near(&mut self, near: u64, len: u64, protection: i32) -> LiveResult<Range<u64>> {
        let system = |action| move |source| LiveError::System { action, source };
        let maps =
            Maps::read(self.tracee.pid).map_err(system("read what the program has mapped"))?;
        let anchor = near & !0xfff..(near & !0xfff) + 0x1000;
        let place = crate::displace::place_near(&maps.ranges(), &anchor, len);
        let none = LiveError::CannotStop {
            address: near,
            reason: "there is no room for its instruction within reach".to_owned(),
            nearest: near,
        };
        let Some(place) = place else {
            return Err(none);
        };
        if !self.map_at(place, len, protection)? {
            return Err(none);
        }
        let range = place..place + len;
        self.tracee.own_region(range.clone());
        Ok(range)
    }

    /// Maps memory at a free place. Returns whether it was free.
    pub fn map_at(&mut self, place: u64, len: u64, protection: i32) -> LiveResult<bool> {
        const MAP_PRIVATE_ANONYMOUS_NORESERVE_FIXED_NOREPLACE: u64 = 0x22 | 0x4000 | 0x10_0000;
        let arguments = [
            place,
            len,
            protection as u64,
            MAP_PRIVATE_ANONYMOUS_NORESERVE_FIXED_NOREPLACE,
            u64::MAX,
            0,
        ];
        Ok(self.system_call(libc::SYS_mmap as u64, arguments)? == place)
    }

    /// Maps memory for slots within reach of `near`.
    pub fn make_room(&mut self, near: u64) -> LiveResult<()> {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        let range = self.map_near(near, SLOT_REGION_BYTES, protection)?;
        self.breakpoints.sites.add_region(range);
        Ok(())
    }
}

impl RemoteCalls {
    /// As [`Self::system_call`], in a halted thread; the others keep running.
    pub fn system_call_of(
        &mut self,
        tracee: &mut Tracee,
        tid: Tid,
        number: u64,
        arguments: [u64; 6],
    ) -> LiveResult<u64> {
        let at = self.syscall_instruction(tracee)?;
        tracee.system_call_in(tid, at, number, arguments)
    }

    fn syscall_instruction(&mut self, tracee: &Tracee) -> LiveResult<u64> {
        if let Some(at) = self.syscall_at {
            return Ok(at);
        }
        let maps = Maps::read(tracee.pid).map_err(|source| LiveError::System {
            action: "read what the program has mapped",
            source,
        })?;
        // The last mappings are the dynamic linker's and the kernel's, which are never patched.
        let executable = maps
            .mappings
            .iter()
            .filter(|mapping| mapping.is_executable());
        for mapping in executable.rev() {
            let len = (mapping.range.end - mapping.range.start).min(4 << 20) as usize;
            let code = tracee.memory.read_up_to(mapping.range.start, len);
            if let Some(offset) = code.windows(2).position(|pair| pair == [0x0f, 0x05]) {
                let at = mapping.range.start + offset as u64;
                self.syscall_at = Some(at);
                return Ok(at);
            }
        }
        Err(LiveError::Ended)
    }
}

impl Tracee {
    /// Returns a halted thread that can make system calls for us.
    pub fn worker(&self) -> Option<Tid> {
        let tids = self.threads.keys();
        let mut halted = tids.filter_map(|tid| self.stopped(*tid).ok());
        let worker = halted.find(|stopped| !is_within_call(stopped))?;
        Some(worker.tid())
    }

    /// Makes a halted thread execute a system call. It is not within one: the end of its own would overwrite `rax`.
    fn system_call_in(
        &mut self,
        tid: Tid,
        at: u64,
        number: u64,
        arguments: [u64; 6],
    ) -> LiveResult<u64> {
        let failed = |source| LiveError::System {
            action: "make the program map memory",
            source,
        };
        let stopped = self.stopped(tid)?;
        let saved = stopped.registers().map_err(failed)?;
        let mut registers = saved;
        registers.rip = at;
        registers.rax = number;
        registers.orig_rax = u64::MAX;
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        (registers.rdi, registers.rsi, registers.rdx) = (rdi, rsi, rdx);
        (registers.r10, registers.r8, registers.r9) = (r10, r8, r9);
        stopped.set_registers(&registers).map_err(failed)?;
        let blocked = stopped.hear_traps();
        let mut result = Err(LiveError::Ended);
        while let Ok(step) = self.stopped(tid)?.step(0) {
            let signal = step.signal()?;
            let stopped = self.stopped(tid)?;
            let now = stopped.registers().map_err(failed)?;
            if now.rip != at {
                result = Ok(now.rax);
                break;
            }
            // A signal arrived first: deliver it once the thread is restored.
            let info = stopped.info().ok();
            if let Some(thread) = self.threads.get_mut(&tid)
                && signal != libc::SIGTRAP
            {
                thread.set_signal(signal);
                thread.signal_info = info;
            }
        }
        let stopped = self.stopped(tid)?;
        stopped.hear_as_before(blocked);
        stopped.set_registers(&saved).map_err(failed)?;
        result
    }

    /// Registers memory as ours.
    pub fn own_region(&self, range: Range<u64>) {
        let mut hooks = self
            .memory
            .hooks
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        hooks.add_region(range);
    }
}

/// Returns whether a halted thread has stopped inside a system call, such as one that makes a thread: its end will overwrite `rax`.
pub(crate) fn is_within_call(stopped: &Stopped<'_>) -> bool {
    // A stop before or after a call (ptrace(2)).
    const AT_CALL: i32 = libc::SIGTRAP | 0x80;
    stopped.info().is_ok_and(|info| match info.si_code {
        _ if info.si_signo != libc::SIGTRAP => false,
        AT_CALL => !stopped.has_left_call(),
        libc::SIGTRAP => true,
        code => is_event(code),
    })
}

/// Returns whether a halted thread has stopped inside a system call that makes a thread or a process, or executes a program.
pub(super) fn is_at_event(stopped: &Stopped<'_>) -> bool {
    let info = stopped.info();
    info.is_ok_and(|info| info.si_signo == libc::SIGTRAP && is_event(info.si_code))
}

/// Returns whether this is the code of a stop for an event other than `PTRACE_EVENT_STOP`, which comes after a call (ptrace(2)).
fn is_event(code: i32) -> bool {
    (1..=libc::PTRACE_EVENT_SECCOMP).contains(&(code >> 8))
}

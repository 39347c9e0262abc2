//! Threads take turns: what happens when one stops, begins, ends, or waits in the kernel.

use std::time::{Duration, Instant};

use super::{Ended, Recorder};
use crate::digest;
use crate::error::{Context as _, Error, Result};
use crate::log::{Bytes, Entry};
use crate::ptrace;
use crate::tracee::proc_text;
use crate::translate::Trap;

/// What becomes of a thread that has stopped.
pub(super) enum Next {
    /// It goes on.
    Resume,
    /// It has been resumed already.
    Running,
    /// It has stopped or ended again, with this status.
    Stopped(i32),
}

const EVENT_STOP: i32 = libc::PTRACE_EVENT_STOP;
/// How long a program that is ended by a signal may take for that.
const ENDING: Duration = Duration::from_secs(1);

impl Recorder {
    /// Waits until there is a thread to resume, which is the current one then, or the program has ended.
    pub(super) fn wait_for_current(&mut self) -> Result<Option<Ended>> {
        loop {
            if self.turns.current.is_none() && self.take_turn()? {
                return Ok(None);
            }
            if let Some(ended) = self.ended.take() {
                return Ok(Some(ended));
            }
            let Some((tid, status)) = self.next_event()? else {
                if self.turns.current.is_none() {
                    continue;
                }
                if self.give_turn_away()? {
                    return Ok(None);
                }
                continue;
            };
            if !libc::WIFSTOPPED(status) {
                if let Some(ended) = self.gone(tid, status)? {
                    return Ok(Some(ended));
                }
                continue;
            }
            if status >> 16 == libc::PTRACE_EVENT_EXEC {
                // All other threads are gone, and this one has the number of the first.
                let former = ptrace::event_message(tid).context("read an event")? as i32;
                return Ok(Some(Ended::Executed(former)));
            }
            if !self.threads.has(tid) {
                self.births.came_early(tid);
                continue;
            }
            if self.turns.current != Some(tid) {
                self.turns.arrived.push_back((tid, status));
                continue;
            }
            match self.stopped(tid, status)? {
                Ok(Next::Resume) if self.turns.current.is_some() => return Ok(None),
                Ok(Next::Stopped(status)) if libc::WIFSTOPPED(status) => {
                    self.turns.arrived.push_back((tid, status))
                }
                Ok(Next::Stopped(status)) => {
                    if let Some(ended) = self.gone(tid, status)? {
                        return Ok(Some(ended));
                    }
                }
                Ok(_) => {}
                Err(ended) => return Ok(Some(ended)),
            }
        }
    }

    /// The next event. `None`: the turn of the current thread is over, or it waits while others could run.
    fn next_event(&mut self) -> Result<Option<(i32, i32)>> {
        if let Some(event) = self.turns.arrived_again() {
            return Ok(Some(event));
        }
        let runs = |current: i32| self.threads[current].is_ready();
        let others = !self.turns.is_alone()
            || self.part.goal.is_some() && self.turns.current.is_some_and(runs);
        let Some(current) = self.turns.current.filter(|_| others) else {
            loop {
                if let Some(event) = ptrace::wait(-1, false).context("wait for the program")? {
                    return Ok(Some(event));
                }
            }
        };
        match self.threads[current].call() {
            Some(call) if !call.may_wait() => self.until_event(None),
            call => self.until_event(Some(self.turns.deadline(call.is_none()))),
        }
    }

    fn until_event(&self, deadline: Option<Instant>) -> Result<Option<(i32, i32)>> {
        let Some(deadline) = deadline else {
            return ptrace::wait(-1, false).context("wait for the program");
        };
        let mut spins = 0;
        loop {
            if let Some(event) = ptrace::wait(-1, true).context("wait for the program")? {
                return Ok(Some(event));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            spins += 1;
            if spins > 20 {
                std::thread::sleep(Duration::from_micros(20));
            }
        }
    }

    /// The current thread lets others run. Returns whether another one is to be resumed.
    fn give_turn_away(&mut self) -> Result<bool> {
        let Some(tid) = self.turns.current else {
            return Ok(false);
        };
        let is_alone = self.turns.is_alone();
        if is_alone && self.part.goal.is_none() {
            return Ok(false);
        }
        if let Some(call) = self.threads[tid].call() {
            if is_alone || !call.may_wait() {
                return Ok(false);
            }
            self.await_sleep(tid, call);
            self.turns.current = None;
            return self.take_turn();
        }
        self.turns.interrupt(self.process.pid, tid);
        Ok(false)
    }

    /// Chooses the next thread, if one can run.
    pub(super) fn take_turn(&mut self) -> Result<bool> {
        while let Some((tid, status)) = self.turns.arrived.pop_front() {
            if !self.threads.has(tid) {
                continue;
            }
            self.turns.current = Some(tid);
            match self.stopped(tid, status)? {
                Ok(Next::Resume) => self.turns.ready.push_back(tid),
                Ok(_) => {}
                Err(ended) => self.ended = Some(ended),
            }
            self.turns.current = None;
        }
        let Some(tid) = self.turns.next() else {
            return Ok(false);
        };
        if self.turns.running != tid {
            self.turns.running = tid;
            let registers = ptrace::registers(tid).context("read registers")?;
            let own = self.own(tid, &registers)?;
            let writes = self.awaited_locks();
            self.log.add(&Entry::Switch {
                at: self.count,
                tid,
                state: Some(digest::of_registers(&own, own.rip)),
                writes,
            })?;
        }
        self.set_counter(tid)?;
        Ok(true)
    }

    /// The current thread has stopped.
    fn stopped(&mut self, tid: i32, status: i32) -> Result<Result<Next, Ended>> {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 => {}
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.born(tid)?;
                return Ok(Ok(Next::Resume));
            }
            EVENT_STOP if signal != libc::SIGTRAP => {
                ptrace::listen(tid).context("resume the program")?;
                return Ok(Ok(Next::Running));
            }
            _ => return Ok(Ok(Next::Resume)),
        }
        if let Some(pc) = self.threads[tid].outside
            && let Some(next) = self.left_outside(tid, signal, pc)?
        {
            return Ok(next);
        }
        if signal == libc::SIGTRAP {
            let mut registers = ptrace::registers(tid).context("read registers")?;
            let at = registers.rip - 1;
            if let Some(trap) = self.translator.trap(at) {
                self.turns.asks();
                let ended = self.at_trap(tid, &mut registers, at, trap)?;
                self.turns.begin();
                if ended.is_none() && self.turns.is_over() {
                    self.turns.go_behind();
                    return Ok(Ok(Next::Running));
                }
                return Ok(ended.map_or(Ok(Next::Resume), Err));
            }
        }
        if self.turns.is_interrupt(tid, signal) {
            if self.threads[tid].is_ready() {
                self.finish_instruction(tid)?;
                let registers = ptrace::registers(tid).context("read registers")?;
                self.take_counter(tid, &registers, registers.rip)?;
                self.note_repeated(tid)?;
                self.turns.go_behind();
                return Ok(Ok(Next::Running));
            }
            return Ok(Ok(Next::Resume));
        }
        self.signal(tid).map(Ok)
    }

    /// A thread has made another one, or a process; it is stopped in the call.
    fn born(&mut self, parent: i32) -> Result<()> {
        let child = self.births.child_of(parent)?;
        let call = self.threads[parent].call();
        let call = call.expect("threads are made by calls").clone();
        let (flags, child_tid) = match i64::try_from(call.number).unwrap_or(-1) {
            libc::SYS_clone => (call.args[0], call.args[3]),
            libc::SYS_clone3 => (
                self.process.word(call.args[0])?,
                self.process.word(call.args[0] + 16)?,
            ),
            _ => (0, 0),
        };
        let mut own = ptrace::registers(child).context("read registers")?;
        own.rip = call.next;
        own.rcx = call.next;
        own.rax = 0;
        own.rdi = call.args[0];
        own.gs_base = 0;
        own.orig_rax = u64::MAX;
        if flags & libc::CLONE_THREAD as u64 == 0 {
            ptrace::set_registers(child, &own).context("set registers")?;
            if flags & libc::CLONE_VM as u64 == 0 {
                self.process_is_made();
            } else if flags & libc::CLONE_VFORK as u64 == 0 {
                self.process_runs_beside();
            }
            return ptrace::detach(child, 0).context("let a child go");
        }
        let mut writes = Vec::new();
        if flags & libc::CLONE_CHILD_SETTID as u64 != 0 {
            writes.push(Bytes {
                at: child_tid,
                bytes: self.process.bytes(child_tid, 4),
            });
        }
        let clears = match flags & libc::CLONE_CHILD_CLEARTID as u64 {
            0 => 0,
            _ => child_tid,
        };
        self.threads.add(child, clears);
        ptrace::set_registers(child, &own).context("set registers")?;
        let context = self.context(child)?;
        self.log.add(&Entry::Thread {
            at: self.count,
            tid: child,
            context,
            writes,
        })?;
        self.enter(child, &own)?;
        self.turns.ready.push_back(child);
        Ok(())
    }

    /// A thread has ended, or the program.
    fn gone(&mut self, tid: i32, status: i32) -> Result<Option<Ended>> {
        if tid == self.process.pid {
            return Ok(Some(match libc::WIFSIGNALED(status) {
                true => Ended::Killed(libc::WTERMSIG(status)),
                false => Ended::Exited(libc::WEXITSTATUS(status)),
            }));
        }
        self.threads.remove(tid);
        self.turns.forget(tid);
        if let Some(goal) = &mut self.part.goal {
            goal.end_of(tid);
        }
        Ok(None)
    }

    /// A thread ends the program: waits until the kernel has ended all others. None of them may be resumed.
    pub(super) fn end_of_program(&mut self) -> Result<Option<Ended>> {
        loop {
            let event = ptrace::wait(-1, false).context("wait for the program")?;
            let Some((tid, status)) = event else {
                continue;
            };
            if libc::WIFSTOPPED(status) {
                // It had stopped before.
                let _ = ptrace::cont(tid, 0);
            } else if let Some(ended) = self.gone(tid, status)? {
                return Ok(Some(ended));
            }
        }
    }

    /// Whether an error means that the program has been ended meanwhile, by a signal that cannot be caught: then it is waited for.
    pub(super) fn was_ended(&mut self, error: &Error) -> Option<Ended> {
        let Error::System { source, .. } = error else {
            return None;
        };
        if source.raw_os_error() != Some(libc::ESRCH) {
            return None;
        }
        let since = Instant::now();
        while !is_dead(self.process.pid) {
            if since.elapsed() > ENDING {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.end_of_program().ok().flatten()
    }

    /// Lets the program go on without us, and waits for its end; returns its exit code or signal.
    pub(super) fn release(&mut self) -> (Option<i32>, Option<i32>) {
        let tids: Vec<i32> = self.threads.tids().collect();
        for tid in tids {
            if ptrace::registers(tid).is_err() {
                let _ = ptrace::interrupt(tid);
                let _ = ptrace::wait(tid, false);
            }
            if let Ok(registers) = ptrace::registers(tid)
                && let Ok(mut own) = self.own(tid, &registers)
            {
                if let Some(call) = self.threads[tid].call()
                    && let Some(Trap::Returned { .. }) = self.translator.trap(registers.rip)
                {
                    own.rip = call.next;
                    own.rcx = call.next;
                }
                let _ = ptrace::set_registers(tid, &own);
            }
            let _ = ptrace::detach(tid, 0);
        }
        end_of(self.process.pid)
    }
}

/// Waits for the end of a process that is not traced any more; returns its exit code or signal.
pub(super) fn end_of(pid: i32) -> (Option<i32>, Option<i32>) {
    loop {
        // Of all: it does not end before those of its threads that were traced at their end are waited for.
        match ptrace::wait(-1, false) {
            Ok(Some((of, status))) if of == pid && libc::WIFEXITED(status) => {
                return (Some(libc::WEXITSTATUS(status)), None);
            }
            Ok(Some((of, status))) if of == pid && libc::WIFSIGNALED(status) => {
                return (None, Some(libc::WTERMSIG(status)));
            }
            Ok(_) => {}
            Err(_) => return (None, None),
        }
    }
}

/// Whether all threads of a process have ended, though they may not have been waited for.
fn is_dead(pid: i32) -> bool {
    let is_dead = |task: std::io::Result<std::fs::DirEntry>| {
        let stat = task.and_then(|task| proc_text(task.path().join("stat")));
        let stat = stat.unwrap_or_default();
        let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        state.is_none_or(|state| state.starts_with(['Z', 'X']))
    };
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    tasks.map_or(true, |mut tasks| tasks.all(is_dead))
}

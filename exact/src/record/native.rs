//! The program runs by itself, at its own speed: only signals, new threads and breakpoints stop it.

use std::fs;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use super::Ended;
use super::births::Births;
use super::breakpoints::Breakpoints;
use super::inject;
use crate::error::{Context, Result};
use crate::log::Fatal;
use crate::ptrace;

/// Pauses between looks at the program, where a moment must be met: from the first after something happened, to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

pub(super) struct Native {
    pid: i32,
    pub(super) tids: FxHashSet<i32>,
    births: Births,
    /// Those that are stopped as the program is (SIGSTOP and its like).
    stopped: FxHashSet<i32>,
    pub(super) breakpoints: Breakpoints,
    /// All threads are to stop.
    is_stopping: bool,
    /// The last signal.
    pub(super) fatal: Option<Fatal>,
}

/// Why the program does not run by itself any more.
pub(super) enum Until {
    Time,
    /// A thread has come to a breakpoint, and stands at it.
    Breakpoint(i32, u64),
    /// It is another program now, and stopped.
    Executed,
    Ended(Ended),
}

/// All threads are stopped, with the signals that were about to be delivered to them.
pub(super) type Came = FxHashMap<i32, Vec<libc::siginfo_t>>;

enum Event {
    Nothing,
    /// The thread has stopped as we wanted it.
    Stopped,
    Signal(libc::siginfo_t),
    Breakpoint(u64),
    Executed,
    Ended(Ended),
}

impl Native {
    /// The program is stopped, with one thread.
    pub(super) fn new(pid: i32) -> Native {
        Native {
            pid,
            tids: FxHashSet::from_iter([pid]),
            births: Births::default(),
            stopped: FxHashSet::default(),
            breakpoints: Breakpoints::new(pid),
            is_stopping: false,
            fatal: None,
        }
    }

    /// Lets all threads go on.
    pub(super) fn resume(&mut self) -> Result<()> {
        self.breakpoints.set()?;
        for tid in &self.tids {
            match ptrace::cont(*tid, 0) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                    return Err(error).context("resume the program");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits while all threads run.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> Result<Until> {
        let mut pause = PAUSES.0;
        loop {
            let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            // A program that is stopped is waited for.
            if is_late() && self.stopped.is_empty() && self.breakpoints.borrowers.is_empty() {
                return Ok(Until::Time);
            }
            let found = ptrace::wait(-1, deadline.is_some()).context("wait for the program")?;
            let Some((tid, status)) = found else {
                if deadline.is_some() {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSES.1);
                }
                continue;
            };
            pause = PAUSES.0;
            match self.event(tid, status)? {
                Event::Nothing => {}
                Event::Stopped => self.go_on(tid, 0)?,
                Event::Signal(info) => self.go_on(tid, info.si_signo)?,
                Event::Breakpoint(at) => return Ok(Until::Breakpoint(tid, at)),
                Event::Executed => return Ok(Until::Executed),
                Event::Ended(ended) => return Ok(Until::Ended(ended)),
            }
        }
    }

    /// Stops all threads but one that is stopped already. Each is where a signal would be delivered to it, and none will be.
    pub(super) fn stop(&mut self, but: Option<i32>) -> Result<Result<Came, Ended>> {
        let mut came = Came::default();
        let others = self.tids.iter().copied().filter(|tid| Some(*tid) != but);
        let mut waiting: FxHashSet<i32> = others.collect();
        let mut seen = self.tids.clone();
        self.is_stopping = true;
        for tid in &waiting {
            // One that has just ended says so itself.
            let _ = ptrace::interrupt(*tid);
        }
        while !waiting.is_empty() {
            let Some((tid, status)) = ptrace::wait(-1, false).context("wait for the program")?
            else {
                continue;
            };
            match self.event(tid, status)? {
                Event::Nothing => {}
                // It stops once more, for that, before it goes on.
                Event::Stopped if self.is_behind_breakpoint(tid)? => {
                    ptrace::cont(tid, 0).context("resume the program")?;
                }
                Event::Stopped => drop(waiting.remove(&tid)),
                Event::Breakpoint(_) => self.go_on(tid, 0)?,
                Event::Executed => {
                    seen.clear();
                    self.go_on(tid, 0)?;
                }
                Event::Signal(info) => {
                    came.entry(tid).or_default().push(info);
                    self.go_on(tid, 0)?;
                }
                Event::Ended(ended) => return Ok(Err(ended)),
            }
            for tid in self.tids.difference(&seen) {
                let _ = ptrace::interrupt(*tid);
                waiting.insert(*tid);
            }
            seen.clone_from(&self.tids);
            waiting.retain(|tid| seen.contains(tid));
        }
        self.is_stopping = false;
        self.breakpoints.take_away()?;
        Ok(Ok(came))
    }

    pub(super) fn go_on(&self, tid: i32, signal: i32) -> Result<()> {
        if self.is_stopping && self.tids.contains(&tid) {
            // The stop that it is in has made the kernel forget that it is to stop.
            let _ = ptrace::interrupt(tid);
        }
        match ptrace::cont(tid, signal) {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                Err(error).context("resume the program")
            }
            _ => Ok(()),
        }
    }

    /// Whether a thread has come to a breakpoint, but has stopped for something else first.
    fn is_behind_breakpoint(&self, tid: i32) -> Result<bool> {
        let at = ptrace::registers(tid).context("read registers")?.rip;
        Ok(self.breakpoints.has(at.wrapping_sub(1)) && inject::has_trap(tid))
    }

    fn event(&mut self, tid: i32, status: i32) -> Result<Event> {
        if !libc::WIFSTOPPED(status) {
            return self.gone(tid, status);
        }
        if self.breakpoints.borrowers.contains(&tid) {
            return self.borrower(tid, status);
        }
        if !self.tids.contains(&tid) {
            self.births.came_early(tid);
            return Ok(Event::Nothing);
        }
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 => {}
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.born(tid, status >> 16)?;
                self.go_on(tid, 0)?;
                return Ok(Event::Nothing);
            }
            libc::PTRACE_EVENT_EXEC => {
                self.breakpoints.forget();
                self.tids = FxHashSet::from_iter([self.pid]);
                return Ok(Event::Executed);
            }
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                self.stopped.insert(tid);
                ptrace::listen(tid).context("resume the program")?;
                return Ok(Event::Nothing);
            }
            libc::PTRACE_EVENT_STOP => {
                self.stopped.remove(&tid);
                return Ok(Event::Stopped);
            }
            _ => {
                self.go_on(tid, 0)?;
                return Ok(Event::Nothing);
            }
        }
        if signal == libc::SIGTRAP {
            let mut registers = ptrace::registers(tid).context("read registers")?;
            let at = registers.rip.wrapping_sub(1);
            if self.breakpoints.has(at) {
                registers.rip = at;
                ptrace::set_registers(tid, &registers).context("set registers")?;
                return Ok(Event::Breakpoint(at));
            }
        }
        let info = ptrace::signal_info(tid).context("read the signal")?;
        self.fatal = Some(Fatal::of(tid, &info));
        Ok(Event::Signal(info))
    }

    fn gone(&mut self, tid: i32, status: i32) -> Result<Event> {
        if self.breakpoints.borrowers.remove(&tid) {
            self.breakpoints.set()?;
            return Ok(Event::Nothing);
        }
        if tid == self.pid {
            return Ok(Event::Ended(match libc::WIFSIGNALED(status) {
                true => Ended::Killed(libc::WTERMSIG(status)),
                false => Ended::Exited(libc::WEXITSTATUS(status)),
            }));
        }
        self.tids.remove(&tid);
        self.stopped.remove(&tid);
        Ok(Event::Nothing)
    }

    /// A thread has made another one, or a process.
    fn born(&mut self, parent: i32, how: i32) -> Result<()> {
        let child = self.births.child_of(parent)?;
        if fs::exists(format!("/proc/{}/task/{child}", self.pid)).unwrap_or(false) {
            self.tids.insert(child);
            return self.go_on(child, 0);
        }
        if how == libc::PTRACE_EVENT_VFORK {
            // The memory is the program's.
            self.breakpoints.take_away()?;
            self.breakpoints.borrowers.insert(child);
            return self.go_on(child, 0);
        }
        self.breakpoints.clean(child)?;
        ptrace::detach(child, 0).context("let a child go")
    }

    /// A process that shares the memory has stopped.
    fn borrower(&mut self, tid: i32, status: i32) -> Result<Event> {
        match status >> 16 {
            libc::PTRACE_EVENT_EXEC => {
                self.breakpoints.borrowers.remove(&tid);
                ptrace::detach(tid, 0).context("let a child go")?;
                self.breakpoints.set()?;
            }
            libc::PTRACE_EVENT_STOP if libc::WSTOPSIG(status) != libc::SIGTRAP => {
                ptrace::listen(tid).context("resume the program")?;
            }
            0 => self.go_on(tid, libc::WSTOPSIG(status))?,
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                let child = self.births.child_of(tid)?;
                ptrace::detach(child, 0).context("let a child go")?;
                self.go_on(tid, 0)?;
            }
            _ => self.go_on(tid, 0)?,
        }
        Ok(Event::Nothing)
    }
}

//! Taking over a program in the middle of its run: all of its threads are stopped, and go on in translated code.

use std::fs;

use libc::user_regs_struct;

use super::inject::{self, Quiet};
use super::known::{self, Changes, Known};
use super::native::Came;
use super::{Recorder, State};
use crate::error::{Context as _, Result};
use crate::log::{Bytes, Context, Entry, Registers};
use crate::ptrace;
use crate::tracee::own_extended;
use crate::translate::layout;

/// Bytes of the instruction `syscall`.
const SYSCALL: u64 = 2;
/// A call that a signal would interrupt, and that is made again if none is delivered (ERESTARTNOHAND in the kernel's errno.h).
pub(super) const UNLESS_HANDLED: i64 = -514;
/// A call that is always made again (ERESTARTNOINTR).
const ANEW: i64 = -513;
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

/// How recording begins.
pub(super) enum Beginning<'a> {
    First {
        command: Vec<String>,
        nanoseconds: u64,
    },
    Again {
        known: &'a Known,
        nanoseconds: u64,
    },
}

/// Whether a stopped thread waits in a system call, which goes on when the thread does. Some calls give up with EINTR when a thread
/// is stopped, though no signal is delivered (signal(7)): these are made to go on, too.
pub(super) fn is_waiting(registers: &mut user_regs_struct) -> bool {
    let number = registers.orig_rax as i64;
    if number < 0 {
        return false;
    }
    let gives_up = matches!(
        number,
        libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_semop
            | libc::SYS_semtimedop
            | libc::SYS_rt_sigtimedwait
            | libc::SYS_io_getevents
            | libc::SYS_msgrcv
            | libc::SYS_msgsnd
    );
    if gives_up && registers.rax as i64 == -i64::from(libc::EINTR) {
        registers.rax = UNLESS_HANDLED as u64;
    }
    RESTARTS.contains(&(registers.rax as i64))
}

/// A thread that is taken over.
struct Taken {
    tid: i32,
    registers: user_regs_struct,
    /// The number of the call in which it waits.
    waits: Option<u64>,
}

impl Taken {
    /// What is recorded of it: a call that has begun is still to be made.
    fn own(&self) -> user_regs_struct {
        let mut own = self.registers;
        if let Some(number) = self.waits {
            own.rip -= SYSCALL;
            own.rax = number;
        }
        own.orig_rax = u64::MAX;
        own
    }
}

impl Recorder {
    /// Memory of ours for what a call reads or writes.
    pub(super) fn scratch(&self) -> u64 {
        layout::block(self.translator.low(), layout::BLOCKS - 2)
    }

    /// Takes over all threads, which are stopped by themselves; `first` runs first, if it can. Returns a reason against it.
    pub(super) fn take_over(
        &mut self,
        tids: &[i32],
        first: i32,
        came: &Came,
        beginning: Beginning,
    ) -> Result<Option<String>> {
        let quiet: Vec<Quiet> = tids
            .iter()
            .map(|tid| Quiet::new(*tid))
            .collect::<Result<_>>()?;
        let mut taken = Vec::new();
        self.threads.clear();
        self.part.is_taken = true;
        for tid in tids {
            self.step_out(*tid)?;
            self.prepare(*tid)?;
            taken.push(self.taken(*tid)?);
        }
        self.space.brk = self.process.call(first, libc::SYS_brk, [0; 6])? as u64;
        self.note_beginning(&taken, first, beginning)?;
        if taken.iter().any(|thread| thread.registers.gs_base != 0) {
            self.end_quiet(quiet, came)?;
            return Ok(Some(String::from(
                "the program uses the gs register itself",
            )));
        }
        self.turns.clear(first);
        let mut waiting = Vec::new();
        for thread in &taken {
            if thread.waits.is_some() {
                if self.wait_again(thread)? {
                    waiting.push(thread.tid);
                }
            } else {
                self.enter(thread.tid, &thread.own())?;
                match thread.tid == first {
                    true => self.turns.ready.push_front(first),
                    false => self.turns.ready.push_back(thread.tid),
                }
            }
        }
        self.end_quiet(quiet, came)?;
        for tid in waiting {
            ptrace::cont(tid, 0).context("resume the program")?;
        }
        self.take_turn()?;
        Ok(None)
    }

    /// Threads get signals again, and first those that have come already.
    pub(super) fn end_quiet(&mut self, all: Vec<Quiet>, came: &Came) -> Result<()> {
        let scratch = self.scratch();
        for quiet in &all {
            for info in came.get(&quiet.tid).into_iter().flatten() {
                if !inject::comes_again(info) {
                    quiet.send(&mut self.process, scratch, info)?;
                }
            }
        }
        all.into_iter().try_for_each(Quiet::end)
    }

    /// A thread of a program that has begun unrecorded registers restartable sequences, as all of them do there: the C library ends a
    /// program whose threads differ. It is told that it may, and that its processor is not known, with which no sequence is gone through; the
    /// kernel is told when recording is over.
    pub(super) fn restartable_call(&mut self, tid: i32, args: &[u64; 6]) -> Result<i64> {
        const NO_PROCESSOR: [u8; 8] = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        self.part.note_restartable(tid, args);
        self.process.write(args[0], &NO_PROCESSOR)?;
        Ok(0)
    }

    /// Asks a thread what only it knows.
    fn prepare(&mut self, tid: i32) -> Result<()> {
        if let Some(was) = inject::end_restartable(&mut self.process, tid)? {
            self.part.restartable.insert(tid, was);
        }
        let scratch = self.scratch();
        let (alternate, clears) = inject::asked(&mut self.process, tid, scratch)?;
        self.threads.add(tid, clears).alternate = alternate;
        Ok(())
    }

    fn taken(&self, tid: i32) -> Result<Taken> {
        let mut registers = self.process.registers_after_step(tid)?;
        let waits = is_waiting(&mut registers);
        let waits = waits.then(|| self.part.call_of(tid, &registers));
        Ok(Taken {
            tid,
            registers,
            waits,
        })
    }

    /// Notes the state of everything.
    fn note_beginning(&mut self, taken: &[Taken], first: i32, beginning: Beginning) -> Result<()> {
        let mut now = Known::of(&self.process, &|at| self.translator.owns(at))?;
        let contexts = taken.iter().map(|thread| {
            let extended = ptrace::extended_state(thread.tid).context("read registers")?;
            let context = Context {
                registers: Registers::from(&thread.own()),
                extended: own_extended(&self.translator, extended),
            };
            Ok((thread.tid, context))
        });
        let mut contexts: Vec<(i32, Context)> = contexts.collect::<Result<_>>()?;
        match beginning {
            Beginning::First {
                command,
                nanoseconds,
            } => {
                let mut memory = known::all(&self.process, &now);
                self.lay_over(&mut memory);
                let pid = self.process.pid;
                let index = contexts.iter().position(|(tid, _)| *tid == pid);
                let (tid, context) = contexts.remove(index.unwrap_or(0));
                self.log.add(&Entry::Start {
                    tid,
                    command,
                    context,
                    spans: now.spans(),
                    memory,
                    files: now.files(),
                })?;
                let program = fs::read_link(format!("/proc/{pid}/exe"))
                    .map(|path| path.to_string_lossy().into_owned());
                self.log.add(&Entry::Before {
                    nanoseconds,
                    program: program.unwrap_or_default(),
                })?;
                for (tid, context) in contexts {
                    let writes = Vec::new();
                    self.log.add(&Entry::Thread {
                        at: 0,
                        tid,
                        context,
                        writes,
                    })?;
                }
                if tid != first {
                    self.log.add(&Entry::Switch {
                        at: 0,
                        tid: first,
                        state: None,
                        writes: Vec::new(),
                    })?;
                }
            }
            Beginning::Again { known, nanoseconds } => {
                now.look(&self.process)?;
                let Changes {
                    spaces,
                    mut writes,
                    files,
                } = known.changes(&self.process, &now);
                self.lay_over(&mut writes);
                self.forget_changed(known::touched(&spaces, &writes))?;
                self.log.add(&Entry::Resumed {
                    at: self.count,
                    nanoseconds,
                    running: first,
                    threads: contexts,
                    spaces,
                    writes,
                    files,
                })?;
                self.count += 1;
            }
        }
        self.space.set(&now.spans());
        self.space.has_shared_before |= now.has_shared();
        Ok(())
    }

    /// No translation is left of code that has changed.
    fn forget_changed(&mut self, ranges: impl Iterator<Item = (u64, u64)>) -> Result<()> {
        for (start, end) in ranges {
            if self.translator.has_code_in(start, end) {
                self.translator.forget_range(start, end);
            }
        }
        self.process.flush(&mut self.translator)
    }

    pub(super) fn lay_over(&self, memory: &mut [Bytes]) {
        for Bytes { at, bytes } in memory {
            self.process.lay_over(*at, bytes);
        }
    }

    /// A thread goes on to wait in the call where it did, but in translated code; or makes it anew. Returns whether it waits.
    fn wait_again(&mut self, thread: &Taken) -> Result<bool> {
        let own = thread.own();
        let body = self.translated(thread.tid, own.rip)?;
        let mut registers = thread.registers;
        let number = thread.waits.unwrap_or(registers.orig_rax);
        let call = self.waiting_call(&registers, number);
        // One that did nothing yet is made anew, and so is what cannot wait while others run: it might make threads.
        let is_anew = registers.rax as i64 == ANEW || !call.may_wait();
        let at = body.and_then(|body| self.translator.in_call(body));
        let Some(at) = at.filter(|_| !is_anew) else {
            self.turns.ready.push_back(thread.tid);
            return self.enter(thread.tid, &own).map(|()| false);
        };
        let state = &mut self.threads[thread.tid].state;
        *state = State::InCall(call);
        let block = self.threads[thread.tid].block;
        registers.rip = at;
        registers.gs_base = block;
        ptrace::set_registers(thread.tid, &registers)
            .context("set registers")
            .map(|()| true)
    }
}

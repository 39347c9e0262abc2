//! What was recorded becomes true in the process.

use libc::user_regs_struct;

use super::Replay;
use crate::error::{Error, Result};
use crate::log::{Bytes, Context, Entry, Registers, Space, Span};

/// Bytes of the instruction `syscall`.
const SYSCALL: u64 = 2;
/// In eflags (RF): a fault has stopped the thread before its instruction, or something in the middle of one that repeats. What a
/// handler returns to has it then.
pub(super) const RESUME: u64 = 1 << 16;
/// Bytes that are told apart where only pages are known to have changed.
const WORD: usize = 8;
/// arch_prctl(2): sets the base of thread-local storage.
const ARCH_SET_FS: u64 = 0x1002;

impl Replay {
    /// Applies the next entry; the process has come to its moment.
    pub(super) fn apply(&mut self) -> Result<()> {
        let Some(entry) = self.recorded.entries.get(self.now.next) else {
            return Err(Error::AfterEnd {
                end: self.now.count,
            });
        };
        self.refused_call(&entry)?;
        self.repeated_until(&entry)?;
        self.compare(&entry)?;
        self.now.next += 1;
        self.note_kernel(&entry);
        self.found_entry(&entry)?;
        self.take_effect(&entry)?;
        self.changes.applied(self.now.next);
        Ok(())
    }

    fn take_effect(&mut self, entry: &Entry) -> Result<()> {
        match entry {
            Entry::SystemCall {
                tid,
                result,
                writes,
                space,
                number,
                shared,
                emptied,
                ..
            } => {
                self.trace_call_begins(*tid)?;
                let output = self.trace_output(*tid, *number, *result)?;
                let shared = self.shared_mapping(self.now.next - 1, *shared)?;
                self.effects(*tid, (*space, shared), emptied, writes)?;
                self.trace_system_call(*tid, *result, output)?;
                self.now.count += 1;
                self.answer(*tid, *number, *result)
            }
            Entry::Chance {
                registers, writes, ..
            } => self.chance(registers, writes),
            Entry::Repeated { tid, left, .. } => self.repeated(*tid, *left),
            Entry::Signal {
                tid,
                number,
                call_done,
                context,
                writes,
                ..
            } => self.signal((*tid, *number), *call_done, context, writes),
            Entry::Return {
                context, writes, ..
            } => {
                self.trace_call_begins(self.now.running)?;
                self.kernel_writes(self.now.running, writes)?;
                self.now.count += 1;
                self.trace_call_is_left(self.now.running);
                self.load(context)
            }
            Entry::Thread {
                tid,
                context,
                writes,
                ..
            } => {
                self.kernel_writes(*tid, writes)?;
                self.now.others.insert(*tid, context.clone());
                Ok(())
            }
            Entry::Code { start, end, .. } => self.code_changes(*start, *end),
            Entry::Switch { tid, writes, .. } => {
                self.trace_waiting()?;
                self.kernel_writes(self.now.running, writes)?;
                self.switch(*tid)
            }
            Entry::End { tid, writes, .. } => {
                self.trace_call_begins(*tid)?;
                self.trace_call_is_left(*tid);
                self.kernel_writes(*tid, writes)?;
                self.now.others.remove(tid);
                Ok(())
            }
            Entry::Check { .. } => Ok(()),
            Entry::Before { .. } | Entry::Gap { .. } => Ok(()),
            Entry::Resumed {
                running,
                threads,
                spaces,
                writes,
                ..
            } => {
                self.effects_of_gap(*running, spaces, writes)?;
                self.resumed(*running, threads)
            }
            Entry::Start { .. }
            | Entry::Exit { .. }
            | Entry::Lost { .. }
            | Entry::Executed { .. } => Err(Error::AfterEnd {
                end: self.now.count,
            }),
        }
    }

    /// All threads stand where they were when recording began again.
    fn resumed(&mut self, running: i32, threads: &[(i32, Context)]) -> Result<()> {
        self.now.count += 1;
        self.now.running = running;
        self.now.others = threads.iter().cloned().collect();
        if let Some(calls) = &mut self.calls {
            calls.lose();
        }
        match self.now.others.remove(&running) {
            Some(context) => self.load(&context),
            None => Err(self.diverged("an unknown thread resumes")),
        }
    }

    /// What has happened to the memory while nothing was recorded.
    fn effects_of_gap(&mut self, tid: i32, spaces: &[Space], writes: &[Bytes]) -> Result<()> {
        // Pages are recorded as a whole.
        let changed = self.changed(writes);
        let old = self.before_kernel(&changed);
        for space in spaces {
            let before = self.before_space(*space);
            self.space(*space)?;
            self.found_space(tid, *space, &before);
        }
        if self.write(writes).is_err() {
            return Err(self.diverged("there is no memory where something has changed"));
        }
        self.found_kernel(tid, &changed, &old);
        self.code_written(writes)
    }

    /// The words among these that are about to change.
    fn changed(&self, writes: &[Bytes]) -> Vec<Bytes> {
        let mut changed: Vec<Bytes> = Vec::new();
        for Bytes { at, bytes } in writes {
            let old = self.process.bytes(*at, bytes.len());
            for (index, word) in bytes.chunks(WORD).enumerate() {
                let here = index * WORD;
                if old.get(here..here + word.len()) == Some(word) {
                    continue;
                }
                let at = at + here as u64;
                match changed.last_mut() {
                    Some(last) if last.at + last.bytes.len() as u64 == at => {
                        last.bytes.extend_from_slice(word)
                    }
                    _ => changed.push(Bytes {
                        at,
                        bytes: word.to_vec(),
                    }),
                }
            }
        }
        changed
    }

    /// A handler begins.
    fn signal(
        &mut self,
        (tid, number): (i32, i32),
        call_done: bool,
        context: &Context,
        writes: &[Bytes],
    ) -> Result<()> {
        if call_done {
            self.trace_call_begins(tid)?;
        }
        self.kernel_writes(tid, writes)?;
        match call_done {
            true => self.trace_system_call(tid, -i64::from(libc::EINTR), None)?,
            false => self.trace_call_is_left(tid),
        }
        self.now.count += u64::from(call_done);
        if let Some(calls) = &mut self.calls {
            calls.signal(self.now.count, tid, number);
        }
        if tid == self.now.running {
            return self.load(context);
        }
        self.now.others.insert(tid, context.clone());
        Ok(())
    }

    /// What a system call did to the memory.
    fn effects(
        &mut self,
        tid: i32,
        (space, shared): (Option<Space>, Option<(i64, u64)>),
        emptied: &[Space],
        writes: &[Bytes],
    ) -> Result<()> {
        for space in space.iter().chain(emptied).copied() {
            let before = self.before_space(space);
            match (space, shared) {
                (Space::Map(span), Some(from)) => self.map_shared(span, from)?,
                (Space::Discard(span), _) if self.is_shared(span) => self.empty(span)?,
                _ => self.space(space)?,
            }
            self.found_space(tid, space, &before);
        }
        self.kernel_writes(tid, writes)?;
        self.code_written(writes)
    }

    /// Something may have been written over code.
    fn code_written(&mut self, writes: &[Bytes]) -> Result<()> {
        for bytes in writes {
            self.code_changed(Space::Discard(Span {
                start: bytes.at,
                end: bytes.at + bytes.bytes.len() as u64,
                protection: 0,
            }))?;
        }
        Ok(())
    }

    fn kernel_writes(&mut self, tid: i32, writes: &[Bytes]) -> Result<()> {
        let before = self.before_kernel(writes);
        if self.write(writes).is_err() {
            return Err(self.diverged("there is no memory where the kernel wrote"));
        }
        self.found_kernel(tid, writes, &before);
        Ok(())
    }

    /// What the kernel wrote is written, too.
    fn note_kernel(&mut self, entry: &Entry) {
        if let (Entry::SystemCall { space, emptied, .. }, Some(watch)) = (entry, &mut self.watch) {
            let spaces = space.iter().chain(emptied);
            spaces.for_each(|space| watch.mapped(self.now.count, *space));
        }
        let (Entry::SystemCall { writes, .. }
        | Entry::Signal { writes, .. }
        | Entry::Thread { writes, .. }
        | Entry::Return { writes, .. }
        | Entry::Chance { writes, .. }
        | Entry::Switch { writes, .. }
        | Entry::End { writes, .. }) = entry
        else {
            if let Entry::Resumed { writes, .. } = entry
                && self.watch.is_some()
            {
                let changed = self.changed(writes);
                self.note_writes(&changed);
            }
            return;
        };
        self.note_writes(writes);
    }

    fn note_writes(&mut self, writes: &[Bytes]) {
        if let Some(watch) = &mut self.watch {
            for bytes in writes {
                watch.kernel(self.now.count, bytes.at, bytes.bytes.len() as u64);
            }
        }
    }

    /// A system call returns.
    fn answer(&mut self, tid: i32, number: u64, result: i64) -> Result<()> {
        let answered = |mut registers: user_regs_struct| {
            if number == libc::SYS_arch_prctl as u64 && registers.rdi == ARCH_SET_FS && result == 0
            {
                registers.fs_base = registers.rsi;
            }
            return_from_call(&mut registers, result);
            registers
        };
        if tid == self.now.running {
            let registers = self.registers()?;
            if registers.rax != number {
                return Err(self.diverged(&format!(
                    "system call {} instead of {number}",
                    registers.rax
                )));
            }
            return self.enter(&answered(registers));
        }
        let Some(context) = self.now.others.get(&tid) else {
            return Err(self.diverged("an unknown thread gets an answer"));
        };
        let registers = user_regs_struct::from(&context.registers);
        if registers.rax != number {
            return Err(self.diverged(&format!(
                "system call {} of a thread that waits, instead of {number}",
                registers.rax
            )));
        }
        let Some(context) = self.now.others.get_mut(&tid) else {
            return Ok(());
        };
        let registers = answered(user_regs_struct::from(&context.registers));
        context.registers = Registers::from(&registers);
        Ok(())
    }

    fn switch(&mut self, tid: i32) -> Result<()> {
        // The entry before this one says so.
        let before = self.now.next.checked_sub(2);
        let before = before.and_then(|before| self.recorded.entries.get(before));
        let ended = matches!(
            before.as_deref(),
            Some(Entry::End { tid, .. }) if *tid == self.now.running
        );
        if !ended {
            let context = self.save()?;
            self.now.others.insert(self.now.running, context);
        }
        let Some(context) = self.now.others.remove(&tid) else {
            return Err(self.diverged("an unknown thread resumes"));
        };
        self.now.running = tid;
        self.load(&context)
    }

    /// Memory is always readable and writable here: where the program had a fault, it is recorded.
    pub(super) fn space(&mut self, space: Space) -> Result<()> {
        let length = |span: Span| span.end - span.start;
        let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags =
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE)
                as u64;
        let (number, args) = match space {
            Space::Map(span) => (
                libc::SYS_mmap,
                [span.start, length(span), both, flags, u64::MAX, 0],
            ),
            Space::Unmap(span) => (libc::SYS_munmap, [span.start, length(span), 0, 0, 0, 0]),
            Space::Protect(_) => return self.code_changed(space),
            Space::Move { from, to } => {
                let how = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
                if from.start == to.start {
                    (
                        libc::SYS_mremap,
                        [from.start, length(from), length(to), 0, 0, 0],
                    )
                } else {
                    (
                        libc::SYS_mremap,
                        [from.start, length(from), length(to), how, to.start, 0],
                    )
                }
            }
            Space::Discard(span) => (
                libc::SYS_madvise,
                [
                    span.start,
                    length(span),
                    libc::MADV_DONTNEED as u64,
                    0,
                    0,
                    0,
                ],
            ),
        };
        if number != libc::SYS_munmap && length_of(&args) == 0 {
            return Ok(());
        }
        self.code_changed(space)?;
        let pid = self.process.pid;
        let result = self.process.call(pid, number, args)?;
        if (-4095..0).contains(&result) {
            return Err(self.diverged(&format!(
                "its memory cannot be arranged as it was: {}",
                std::io::Error::from_raw_os_error(-result as i32)
            )));
        }
        Ok(())
    }

    /// Maps memory that is mapped elsewhere, too: a file, from an offset on.
    fn map_shared(&mut self, span: Span, (descriptor, offset): (i64, u64)) -> Result<()> {
        self.space(Space::Map(span))?;
        let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
        let length = span.end - span.start;
        let args = [span.start, length, both, flags, descriptor as u64, offset];
        let (pid, number) = (self.process.pid, libc::SYS_mmap);
        match self.process.call(pid, number, args)? {
            at if at as u64 == span.start => Ok(()),
            _ => Err(self.diverged("memory that it shares cannot be mapped")),
        }
    }

    /// Memory that may be shared is empty from now on.
    fn empty(&mut self, span: Span) -> Result<()> {
        let args = [
            span.start,
            span.end - span.start,
            libc::MADV_REMOVE as u64,
            0,
            0,
            0,
        ];
        let (pid, number) = (self.process.pid, libc::SYS_madvise);
        self.process.call(pid, number, args)?;
        self.space(Space::Discard(span))
    }

    fn code_changed(&mut self, space: Space) -> Result<()> {
        let (span, other) = match space {
            Space::Map(span) | Space::Unmap(span) | Space::Protect(span) | Space::Discard(span) => {
                (span, None)
            }
            Space::Move { from, to } => (from, Some(to)),
        };
        [Some(span), other]
            .into_iter()
            .flatten()
            .try_for_each(|span| self.code_may_change(span.start..span.end))
    }

    /// The program's code in this range is another one from now on.
    fn code_changes(&mut self, start: u64, end: u64) -> Result<()> {
        let own = self.registers()?;
        self.code_is_another(&(start..end))?;
        self.enter(&own)
    }
}

/// A thread that stands before a system call stands behind it, with this result. The processor keeps where it returns to in rcx, and
/// the flags in r11, but for RF: that is clear behind any instruction, and SYSCALL clears it before it keeps them.
pub(super) fn return_from_call(registers: &mut user_regs_struct, result: i64) {
    registers.rip += SYSCALL;
    registers.rax = result as u64;
    registers.eflags &= !RESUME;
    (registers.rcx, registers.r11) = (registers.rip, registers.eflags);
}

fn length_of(args: &[u64; 6]) -> u64 {
    args[1]
}

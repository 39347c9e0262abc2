//! System calls: the program's own threads make them, between two traps.

use libc::user_regs_struct;

use super::known::Known;
use super::{Ended, Recorder, State, locks};
use crate::digest;
use crate::error::{Context as _, Result};
use crate::log::{Bytes, Entry};
use crate::ptrace;
use crate::system_calls::written::{Finished, Written, written};

/// Microseconds between two signals of a timer, at least: it takes some tenths of that until a handler begins.
const BETWEEN: u64 = 1000;
/// Bytes that are compared at each argument of a call whose writes are not known.
const COMPARED: usize = 4096;
/// arch_prctl(2): tells the base of gs.
const ARCH_GET_GS: u64 = 0x1004;

/// A system call that has begun.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) number: u64,
    pub(super) args: [u64; 6],
    /// The instruction after it.
    pub(super) next: u64,
    /// What lay at the arguments of a call whose writes are not known, or in the lock that it is to wait for.
    before: Vec<Bytes>,
    /// The program's memory before a child that shares it until it executes a program.
    shared: Option<Box<Known>>,
    /// Stands for the registers before it, if it was seen to begin.
    state: Option<u32>,
    /// rcx and r11 before it, which it changes.
    pub(super) changes: (u64, u64),
    /// Which translations were valid.
    pub(super) epoch: u64,
}

impl Call {
    /// What lay in the lock for which it waits. It is told once.
    pub(super) fn take_lock(&mut self) -> Option<Bytes> {
        locks::awaited(self.number, &self.args)?;
        self.before.pop()
    }

    /// Whether other threads shall run if it does not return at once.
    pub(super) fn may_wait(&self) -> bool {
        matches!(
            i64::try_from(self.number).unwrap_or(-1),
            libc::SYS_read
                | libc::SYS_write
                | libc::SYS_readv
                | libc::SYS_writev
                | libc::SYS_poll
                | libc::SYS_ppoll
                | libc::SYS_select
                | libc::SYS_pselect6
                | libc::SYS_epoll_wait
                | libc::SYS_epoll_pwait
                | libc::SYS_epoll_pwait2
                | libc::SYS_futex
                | libc::SYS_futex_waitv
                | libc::SYS_nanosleep
                | libc::SYS_clock_nanosleep
                | libc::SYS_pause
                | libc::SYS_rt_sigsuspend
                | libc::SYS_rt_sigtimedwait
                | libc::SYS_wait4
                | libc::SYS_waitid
                | libc::SYS_accept
                | libc::SYS_accept4
                | libc::SYS_connect
                | libc::SYS_recvfrom
                | libc::SYS_recvmsg
                | libc::SYS_recvmmsg
                | libc::SYS_sendto
                | libc::SYS_sendmsg
                | libc::SYS_sendmmsg
                | libc::SYS_sendfile
                | libc::SYS_splice
                | libc::SYS_open
                | libc::SYS_openat
                | libc::SYS_flock
                | libc::SYS_fcntl
                | libc::SYS_fsync
                | libc::SYS_fdatasync
                | libc::SYS_sched_yield
                | libc::SYS_msgrcv
                | libc::SYS_msgsnd
                | libc::SYS_semop
                | libc::SYS_semtimedop
                | libc::SYS_ioctl
                | libc::SYS_getrandom
                | libc::SYS_restart_syscall
        )
    }
}

/// What a system call gets as its answer if it is refused. With most of these, the kernel would write into memory at any moment, or past
/// us.
fn refusal(number: u64, args: &[u64; 6]) -> Option<i32> {
    // Of registers that must be asked for, such as AMX's tiles: copies of a process that are made by fork(2) do not get them.
    const ARCH_REQ_XCOMP: [u64; 2] = [0x1023, 0x1025];
    match i64::try_from(number).unwrap_or(-1) {
        libc::SYS_rseq
        | libc::SYS_io_uring_setup
        | libc::SYS_io_uring_enter
        | libc::SYS_io_uring_register
        | libc::SYS_io_setup
        | libc::SYS_userfaultfd => Some(libc::ENOSYS),
        libc::SYS_arch_prctl if ARCH_REQ_XCOMP.contains(&args[0]) => Some(libc::EOPNOTSUPP),
        _ => None,
    }
}

/// Why a call ends the recording before it is made, if it does.
pub(super) fn ends_recording(number: u64, args: &[u64; 6]) -> Option<&'static str> {
    const ARCH_SET_GS: u64 = 0x1001;
    const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
    match i64::try_from(number).unwrap_or(-1) {
        libc::SYS_arch_prctl if args[0] == ARCH_SET_GS => {
            Some("the program uses the gs register itself")
        }
        // The calls that we have it make would come back, too.
        libc::SYS_prctl if args[0] as i32 == PR_SET_SYSCALL_USER_DISPATCH && args[1] != 0 => Some(
            "the program has its system calls come back as signals (PR_SET_SYSCALL_USER_DISPATCH)",
        ),
        _ => None,
    }
}

fn arguments(r: &user_regs_struct) -> [u64; 6] {
    [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]
}

impl Recorder {
    /// A call that has begun while the program was not recorded, with these registers of its thread.
    pub(super) fn waiting_call(&self, registers: &user_regs_struct, number: u64) -> Call {
        let args = arguments(registers);
        Call {
            number,
            args,
            next: registers.rip,
            before: self.before(number, args),
            shared: None,
            state: None,
            changes: (registers.rcx, registers.r11),
            epoch: self.epoch,
        }
    }

    /// What lies at the arguments of a call whose writes are not known, or in the lock that it is to wait for.
    fn before(&self, number: u64, args: [u64; 6]) -> Vec<Bytes> {
        if let Some(at) = locks::awaited(number, &args) {
            let bytes = self.process.bytes(at, locks::WORD);
            return vec![Bytes { at, bytes }];
        }
        let probe = Finished {
            number,
            args,
            result: 0,
        };
        match written(&probe, &self.process) {
            Written::Exactly(_) => Vec::new(),
            Written::Unknown => self.around(&args),
        }
    }

    /// The thread is about to make a call; it is stopped behind the trap at `at`.
    pub(super) fn system_call(
        &mut self,
        tid: i32,
        registers: &mut user_regs_struct,
        at: u64,
        next: u64,
    ) -> Result<Option<Ended>> {
        self.take_counter(tid, registers, at)?;
        let (number, args) = (registers.rax, arguments(registers));
        if number == libc::SYS_rt_sigreturn as u64 {
            return self.sigreturn(tid).map(|()| None);
        }
        if let Some(why) = ends_recording(number, &args) {
            registers.rip = at;
            ptrace::set_registers(tid, registers).context("set registers")?;
            return Ok(Some(Ended::Lost(why.to_owned())));
        }
        let epoch = self.epoch;
        self.signals
            .trap_action
            .call_begins(&self.process, number, &args);
        self.open_for_call(tid, number, &args)?;
        let call = Call {
            number,
            args,
            next,
            before: self.before(number, args),
            shared: self.shared_with_child(number, args[0])?,
            state: Some(digest::of_registers(registers, next - 2)),
            changes: (registers.rcx, registers.r11),
            epoch,
        };
        self.threads[tid].state = State::InCall(call);
        if let Some(answer) = self.answer_of_ours(tid, number, &args)? {
            // Over the instruction, to the trap behind it.
            registers.rip = at + 3;
            registers.rax = answer as u64;
            registers.rcx = next;
            registers.r11 = registers.eflags;
            ptrace::set_registers(tid, registers).context("set registers")?;
        }
        if number == libc::SYS_clone as u64 && args[0] & libc::CLONE_UNTRACED as u64 != 0 {
            // Nobody would take our traps out of its way.
            registers.rdi = args[0] & !(libc::CLONE_UNTRACED as u64);
            ptrace::set_registers(tid, registers).context("set registers")?;
        }
        let ends = number == libc::SYS_exit as u64 && self.threads.count() == 1;
        if ends || number == libc::SYS_exit_group as u64 {
            let mut own = *registers;
            own.rip = next - 2;
            self.check_at_end(tid, &own)?;
        }
        if number == libc::SYS_exit_group as u64 {
            ptrace::cont(tid, 0).context("resume the program")?;
            return self.end_of_program();
        }
        if number == libc::SYS_exit as u64 {
            self.exit_of_thread(tid)?;
        }
        Ok(None)
    }

    /// What a call returns that the program does not make by itself.
    fn answer_of_ours(&mut self, tid: i32, number: u64, args: &[u64; 6]) -> Result<Option<i64>> {
        if number == libc::SYS_rseq as u64 && self.part.is_taken {
            return self.restartable_call(tid, args).map(Some);
        }
        if number == libc::SYS_setitimer as u64 {
            return self.slower_timer(tid, args);
        }
        if number == libc::SYS_arch_prctl as u64 && args[0] == ARCH_GET_GS {
            // It is ours while the program is recorded, and the program's is zero.
            let written = self.process.set_word(args[1], 0);
            return Ok(Some(written.map_or(-i64::from(libc::EFAULT), |()| 0)));
        }
        Ok(refusal(number, args).map(|error| -i64::from(error)))
    }

    /// If a timer would fire so often that the program does nothing but handle its signals, it is set to fire less often.
    fn slower_timer(&mut self, tid: i32, args: &[u64; 6]) -> Result<Option<i64>> {
        let mut timer = self.process.bytes(args[1], size_of::<libc::itimerval>());
        // It begins with the time between two signals: seconds, and microseconds.
        let Some((seconds, rest)) = timer.split_first_chunk_mut() else {
            return Ok(None);
        };
        let Some(microseconds) = rest.first_chunk_mut() else {
            return Ok(None);
        };
        let is_fast = (1..BETWEEN).contains(&u64::from_le_bytes(*microseconds));
        if u64::from_le_bytes(*seconds) != 0 || !is_fast {
            return Ok(None);
        }
        *microseconds = BETWEEN.to_le_bytes();
        let at = self.scratch();
        self.process.write(at, &timer)?;
        let args = [args[0], at, args[2], 0, 0, 0];
        self.call(tid, libc::SYS_setitimer, args).map(Some)
    }

    fn around(&self, args: &[u64; 6]) -> Vec<Bytes> {
        let pointers = args.iter().filter(|arg| **arg > 0xffff);
        pointers
            .map(|arg| Bytes {
                at: *arg,
                bytes: self.process.bytes(*arg, COMPARED),
            })
            .filter(|bytes| !bytes.bytes.is_empty())
            .collect()
    }

    /// A call has returned; the thread is stopped behind the trap at `at`, or that is what it means.
    pub(super) fn returned(
        &mut self,
        tid: i32,
        registers: &mut user_regs_struct,
        at: u64,
        next: u64,
    ) -> Result<()> {
        if let Some(call) = self.threads[tid].call() {
            // It may have been made with another argument.
            registers.rdi = call.args[0];
        }
        let number = self.threads[tid].call().map(|call| call.number);
        let epoch = self.answered(tid, registers.rax as i64)?;
        self.turns.answered(number);
        registers.rcx = next;
        if epoch != self.epoch {
            let mut own = *registers;
            own.rip = next;
            return self.enter(tid, &own);
        }
        registers.rip = at + 1;
        registers.orig_rax = u64::MAX;
        ptrace::set_registers(tid, registers).context("set registers")
    }

    /// Notes the answer to a call; returns which translations were valid before it.
    pub(super) fn answered(&mut self, tid: i32, result: i64) -> Result<u64> {
        let call = self.threads[tid].leave_call().expect("only a call returns");
        self.signals
            .trap_action
            .call_ends(&self.process, &call, result)?;
        let mut writes = self.writes_of(tid, &call, result);
        let space = self.space_of_call(&call, result, &mut writes)?;
        let shared = match space {
            Some(space) => self.follow_files(tid, &call, space)?,
            None => None,
        };
        let mut emptied = self.beside_call(tid, &call, result, &mut writes)?;
        emptied.extend(self.file_changes(&call, result, &mut writes));
        writes.extend(self.written_by_file(&call, result));
        self.others_wrote(&mut writes);
        for bytes in &writes {
            let end = bytes.at + bytes.bytes.len() as u64;
            if space.is_none() && self.translator.has_code_in(bytes.at, end) {
                self.forget(bytes.at, end)?;
            }
        }
        let file = self.mapped_file(&call, result);
        self.log.add(&Entry::SystemCall {
            at: self.count,
            tid,
            number: call.number,
            result,
            writes,
            space,
            file,
            state: call.state,
            shared,
            emptied,
        })?;
        self.count += 1;
        Ok(call.epoch)
    }

    /// What the kernel wrote with a call that returned this.
    pub(super) fn writes_of(&mut self, tid: i32, call: &Call, result: i64) -> Vec<Bytes> {
        let finished = Finished {
            number: call.number,
            args: call.args,
            result,
        };
        match i64::try_from(call.number).unwrap_or(-1) {
            libc::SYS_set_tid_address => self.threads[tid].clears = call.args[0],
            libc::SYS_sigaltstack if result == 0 && call.args[0] != 0 => {
                let start = self.process.word(call.args[0]).unwrap_or(0);
                let size = self.process.word(call.args[0] + 16).unwrap_or(0);
                self.threads[tid].alternate = (start, start + size);
            }
            libc::SYS_process_vm_writev if !self.is_own(call.args[0]) => return Vec::new(),
            _ if self.shares_memory(call.number, call.args[0]) => {
                return match &call.shared {
                    Some(before) => self.written_by_child(before).unwrap_or_default(),
                    None => self.stack_of(tid),
                };
            }
            _ => {}
        }
        let bytes = |(at, length): (u64, u64)| Bytes {
            at,
            bytes: self.process.bytes(at, length as usize),
        };
        match written(&finished, &self.process) {
            Written::Exactly(spans) => spans.into_iter().map(bytes).collect(),
            Written::Unknown => {
                let changed = call.before.iter().filter_map(|before| {
                    let after = bytes((before.at, before.bytes.len() as u64));
                    (after != *before).then_some(after)
                });
                changed.collect()
            }
        }
    }

    /// Whether this is the number of the program or of one of its threads.
    pub(super) fn is_own(&self, number: u64) -> bool {
        let number = number as i32;
        number == self.process.pid || self.threads.has(number)
    }

    /// Returns whether a call makes a child that shares the memory, and that its parent waits for: vfork(2), posix_spawn(3).
    fn shares_memory(&self, number: u64, flags: u64) -> bool {
        const SHARES: u64 = (libc::CLONE_VFORK | libc::CLONE_VM) as u64;
        let has = |flags: u64| flags & SHARES == SHARES;
        match i64::try_from(number).unwrap_or(-1) {
            libc::SYS_vfork => true,
            libc::SYS_clone => has(flags),
            libc::SYS_clone3 => self.process.word(flags).is_ok_and(has),
            _ => false,
        }
    }

    /// Notes what the memory holds before such a call.
    fn shared_with_child(&self, number: u64, flags: u64) -> Result<Option<Box<Known>>> {
        if !self.shares_memory(number, flags) {
            return Ok(None);
        }
        let mut known = Known::of(&self.process, &|at| self.translator.owns(at))?;
        known.look(&self.process)?;
        Ok(Some(Box::new(known)))
    }

    /// What the child has changed by the time its parent goes on.
    fn written_by_child(&self, before: &Known) -> Result<Vec<Bytes>> {
        let mut now = Known::of(&self.process, &|at| self.translator.owns(at))?;
        now.look(&self.process)?;
        let mut writes = before.changes(&self.process, &now).writes;
        self.lay_over(&mut writes);
        Ok(writes)
    }

    /// A child that shared the memory until it executed a program may have written near the stack pointer of its parent.
    fn stack_of(&self, tid: i32) -> Vec<Bytes> {
        const NEAR: u64 = 32 << 10;
        let Ok(registers) = ptrace::registers(tid) else {
            return Vec::new();
        };
        let at = registers.rsp.saturating_sub(4096);
        let mut bytes = self.process.bytes(at, (NEAR + 4096) as usize);
        if bytes.is_empty() {
            return Vec::new();
        }
        bytes.truncate(bytes.len());
        vec![Bytes { at, bytes }]
    }

    /// rt_sigreturn(2) loads all registers from the stack.
    fn sigreturn(&mut self, tid: i32) -> Result<()> {
        // To its beginning, and to its end.
        let mut left = 2;
        while left > 0 {
            ptrace::to_system_call(tid).context("resume the program")?;
            let status = loop {
                if let Some((_, status)) =
                    ptrace::wait(tid, false).context("wait for the program")?
                {
                    break status;
                }
            };
            match status >> 8 {
                stop if stop == libc::SIGTRAP | 0x80 => left -= 1,
                stop if stop >> 8 == 0 && libc::WIFSTOPPED(status) => self.hold(tid)?,
                _ => {}
            }
        }
        let writes = self.step_out(tid)?;
        let context = self.context(tid)?;
        let registers = user_regs_struct::from(&context.registers);
        self.log.add(&Entry::Return {
            at: self.count,
            context,
            writes,
        })?;
        self.count += 1;
        self.enter(tid, &registers)
    }

    /// exit(2): the thread ends without coming back.
    fn exit_of_thread(&mut self, tid: i32) -> Result<()> {
        if self.threads.count() == 1 {
            return Ok(());
        }
        let thread = self.threads.remove(tid).expect("it is about to end");
        let state = thread.call().and_then(|call| call.state);
        if tid == self.process.shown {
            self.process.shown = self.threads.tids().next().unwrap_or(tid);
        }
        if let Some(goal) = &mut self.part.goal {
            goal.end_of(tid);
        }
        let mut writes = self.left_locks(tid);
        ptrace::cont(tid, 0).context("resume the program")?;
        if tid != self.process.pid {
            loop {
                match ptrace::wait(tid, false) {
                    Ok(Some((_, status))) if libc::WIFSTOPPED(status) => {
                        ptrace::cont(tid, 0).context("resume the program")?
                    }
                    Ok(None) => {}
                    Ok(Some(_)) | Err(_) => break,
                }
            }
        }
        if thread.clears != 0 {
            writes.push(Bytes {
                at: thread.clears,
                bytes: vec![0; 4],
            });
        }
        self.log.add(&Entry::End {
            at: self.count,
            tid,
            writes,
            state,
        })?;
        self.turns.current = None;
        Ok(())
    }
}

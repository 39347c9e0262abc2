//! System calls of a thread that is stepped.

use libc::user_regs_struct;

use super::{Ahead, Begun, Kind, SYSCALL, Stepped};
use crate::digest;
use crate::error::{Context as _, Result};
use crate::log::{Bytes, Entry, MappedFile, Space};
use crate::ptrace;
use crate::record::address_space::PAGE;
use crate::record::known::Known;
use crate::record::space::{MREMAP_DONTUNMAP, beside, stated, whole};
use crate::record::system_call::ends_recording;
use crate::system_calls::written::{Finished, Written, written};

/// Results of calls that a signal has interrupted (ERESTARTSYS to ERESTART_RESTARTBLOCK in the kernel's errno.h).
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;
const ERRORS: std::ops::Range<i64> = -4095..0;
/// The flag by which the processor steps (TF).
const TRAP_FLAG: u64 = 1 << 8;

/// A system call that has begun.
pub(super) struct Call {
    number: u64,
    args: [u64; 6],
    /// The mappings before it, if it moves the end of the heap.
    before: Option<Known>,
}

/// Why a call ends a recording by steps.
fn refused(number: i64, args: &[u64; 6]) -> Option<&'static str> {
    let is_shared = args[3] & libc::MAP_SHARED as u64 != 0;
    Some(match number {
        libc::SYS_clone | libc::SYS_clone3 => "it makes a thread or a process",
        libc::SYS_fork | libc::SYS_vfork => "it makes a process",
        libc::SYS_execve | libc::SYS_execveat => "it executes another program",
        libc::SYS_exit => "the thread ends",
        libc::SYS_mmap if is_shared => "it maps shared memory",
        libc::SYS_shmat | libc::SYS_shmdt => "it maps shared memory",
        libc::SYS_mremap if args[1] == 0 || args[3] & MREMAP_DONTUNMAP != 0 => {
            "it maps memory once more"
        }
        libc::SYS_remap_file_pages | libc::SYS_userfaultfd | libc::SYS_rseq => {
            "the kernel writes its memory at any moment"
        }
        libc::SYS_io_setup
        | libc::SYS_io_uring_setup
        | libc::SYS_io_uring_enter
        | libc::SYS_io_uring_register => "the kernel writes its memory at any moment",
        libc::SYS_ptrace | libc::SYS_process_vm_writev => "it changes another process",
        _ => return ends_recording(number as u64, args),
    })
}

impl Stepped {
    /// A thread is about to make a call, by the instruction at `by`. In what is recorded it is where the thread is.
    pub(super) fn call_ahead(&mut self, before: &user_regs_struct, by: u64) -> Result<Ahead> {
        let number = before.rax;
        let args = [
            before.rdi, before.rsi, before.rdx, before.r10, before.r8, before.r9,
        ];
        let signed = i64::try_from(number).unwrap_or(-1);
        if signed == libc::SYS_exit_group {
            return Ok(Ahead::Exit(args[0] as u8 as i32));
        }
        let name = || format!("system call {number}");
        if let Some(why) = refused(signed, &args) {
            return Ok(Ahead::Unrecorded(format!("{why} ({})", name())));
        }
        let kind = match signed {
            libc::SYS_rt_sigreturn => Kind::Return,
            _ => Kind::Call(Box::new(Call {
                number,
                args,
                before: match signed {
                    libc::SYS_brk => Some(Known::of(&self.process, &|_| false)?),
                    _ => None,
                },
            })),
        };
        if let Kind::Call(call) = &kind
            && self.may_write_unknown(call)
        {
            let why = format!("it is not known what {} writes", name());
            return Ok(Ahead::Unrecorded(why));
        }
        self.begun = Some(Begun {
            pc: by,
            before: *before,
            next: by + SYSCALL,
            kind,
        });
        Ok(Ahead::Call)
    }

    /// Whether it is not known what a call writes if it succeeds.
    fn may_write_unknown(&self, call: &Call) -> bool {
        let finished = Finished {
            number: call.number,
            args: call.args,
            result: 0,
        };
        written(&finished, &self.process) == Written::Unknown
    }

    /// Notes what a call has returned. Returns false if it has not: a signal has come.
    pub(super) fn call_has_ended(
        &mut self,
        call: &Call,
        begun: &Begun,
        after: &mut user_regs_struct,
    ) -> Result<bool> {
        let result = after.rax as i64;
        let is_interrupted = after.orig_rax as i64 >= 0 && RESTARTS.contains(&result);
        if is_interrupted || after.rip != begun.next {
            return Ok(false);
        }
        let mut writes = self.written_by(call, result);
        let (space, emptied) = self.space_of(call, result, &mut writes)?;
        self.log.add(&Entry::SystemCall {
            at: self.count,
            tid: self.tid,
            number: call.number,
            result,
            writes,
            space,
            file: self.mapped_file(call, result),
            state: Some(digest::of_registers(&begun.before, begun.before.rip)),
            shared: None,
            emptied,
        })?;
        after.rip = begun.before.rip + SYSCALL;
        after.rcx = after.rip;
        // The processor has noted there that it steps.
        after.r11 = after.eflags & !TRAP_FLAG;
        after.orig_rax = u64::MAX;
        ptrace::set_registers(self.tid, after).context("set registers")?;
        Ok(true)
    }

    /// What the kernel wrote with a call that returned this.
    pub(super) fn written_by(&self, call: &Call, result: i64) -> Vec<Bytes> {
        let finished = Finished {
            number: call.number,
            args: call.args,
            result,
        };
        match written(&finished, &self.process) {
            Written::Exactly(spans) => {
                let spans = spans.into_iter();
                spans.map(|(at, size)| self.bytes(at, size)).collect()
            }
            // It has failed at an address that it could not use.
            Written::Unknown => self.around(&call.args),
        }
    }

    /// What lies at arguments that may be addresses.
    fn around(&self, args: &[u64; 6]) -> Vec<Bytes> {
        let pointers = args.iter().filter(|arg| **arg > 0xffff);
        let found = pointers.map(|arg| self.bytes(*arg, PAGE));
        found.filter(|bytes| !bytes.bytes.is_empty()).collect()
    }

    /// What a call did to the address space. What is in new memory is added to `writes`.
    fn space_of(
        &mut self,
        call: &Call,
        result: i64,
        writes: &mut Vec<Bytes>,
    ) -> Result<(Option<Space>, Vec<Space>)> {
        let beside = beside(&self.process, call.number, call.args, result, writes)?;
        if ERRORS.contains(&result) {
            if !beside.is_empty() {
                self.find_written_code(&Known::of(&self.process, &|_| false)?);
            }
            return Ok((None, beside));
        }
        if call.number == libc::SYS_brk as u64 {
            let Some(before) = &call.before else {
                return Ok((None, Vec::new()));
            };
            let now = Known::of(&self.process, &|_| false)?;
            let changes = before.changes(&self.process, &now);
            writes.extend(changes.writes);
            return Ok((None, changes.spaces));
        }
        let space = stated(&self.process, call.number, call.args, result, writes)?;
        if space.is_some() || !beside.is_empty() {
            self.find_written_code(&Known::of(&self.process, &|_| false)?);
        }
        Ok((space, beside))
    }

    /// The file that a call has mapped.
    fn mapped_file(&self, call: &Call, result: i64) -> Option<MappedFile> {
        let [_, length, protection, flags, descriptor, offset] = call.args;
        let maps = call.number == libc::SYS_mmap as u64 && !ERRORS.contains(&result);
        if !maps || flags & libc::MAP_ANONYMOUS as u64 != 0 {
            return None;
        }
        let link = format!("/proc/{}/fd/{}", self.process.pid, descriptor as i32);
        let path = std::fs::read_link(link).ok()?;
        let span = whole(result as u64, length, protection as u32);
        Some(MappedFile {
            start: span.start,
            end: span.end,
            offset,
            protection: span.protection,
            path: path.to_string_lossy().into_owned(),
        })
    }
}

//! What a thread of the stopped program does for the loader: system calls, and one call of the runtime.

use std::{fs, mem, ops::Range, path::Path};

use agent::shared;
use debuginfo::Diagnostic;

use super::{Failure, SCRATCH_BYTES};
use crate::{
    process::{
        Mapping, Maps,
        status::{may_as_we, why_not_loaded},
    },
    stop::{
        Registers, StoppedProcess,
        filters::{self, SystemCall},
    },
};

pub(super) const READ: i32 = libc::PROT_READ;
pub(super) const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
pub(super) const READ_EXECUTE: i32 = libc::PROT_READ | libc::PROT_EXEC;
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
const NO_FILE: (u64, u64) = (u64::MAX, 0);
/// Search at most this many bytes of a mapping for a system call instruction.
const SEARCHED_BYTES: u64 = 4 << 20;
const LONGEST_NAME: usize = 64;
/// The kernel counts the pages that one munlock covers in 32 bits.
const UNLOCKED_AT_ONCE: u64 = 1 << 42;

/// The system calls that loading takes, as far as filters may tell them apart: addresses, lengths and descriptors are not known before.
const CALLS: [SystemCall; 18] = [
    call(libc::SYS_openat, 2, libc::O_RDWR | libc::O_CLOEXEC),
    call(libc::SYS_openat, 2, libc::O_RDONLY | libc::O_CLOEXEC),
    call(libc::SYS_mmap, 2, libc::PROT_NONE),
    call(libc::SYS_mmap, 2, READ),
    call(libc::SYS_mmap, 2, READ_WRITE),
    call(libc::SYS_mmap, 2, READ_EXECUTE),
    call(libc::SYS_mprotect, 2, READ_WRITE),
    call(libc::SYS_munlock, 0, 0),
    call(libc::SYS_munmap, 0, 0),
    call(libc::SYS_madvise, 2, libc::MADV_DONTDUMP),
    call(libc::SYS_madvise, 2, libc::MADV_WIPEONFORK),
    call(libc::SYS_close, 0, 0),
    call(libc::SYS_getpid, 0, 0),
    call(libc::SYS_gettid, 0, 0),
    call(libc::SYS_prctl, 0, libc::PR_GET_TSC),
    call(libc::SYS_prlimit64, 0, 0),
    call(libc::SYS_rt_sigaction, 3, 8),
    call(libc::SYS_sigaltstack, 0, 0),
];

/// A call with one known argument.
const fn call(number: i64, argument: usize, value: i32) -> SystemCall {
    let mut arguments = [0; 6];
    arguments[argument] = value as u64;
    SystemCall { number, arguments }
}

/// A stopped program, and the thread that does the work.
pub(super) struct Inside<'a> {
    process: &'a mut StoppedProcess,
    tid: i32,
    syscall_at: u64,
    /// Addresses and lengths of what it has mapped for us.
    mapped: Vec<(u64, u64)>,
    /// Descriptors that it has opened for us.
    opened: Vec<u64>,
}

impl<'a> Inside<'a> {
    pub fn of(process: &'a mut StoppedProcess) -> Result<Self, Failure> {
        let pid = process.pid();
        let may = |tid| may_as_we(pid, tid) || filters::allow(tid, &CALLS);
        let tid = process
            .worker(may)?
            .ok_or_else(|| Failure::Runtime(why_not_loaded()))?;
        let syscall_at = syscall_instruction(process)?;
        Ok(Self {
            process,
            tid,
            syscall_at,
            mapped: Vec::new(),
            opened: Vec::new(),
        })
    }

    /// Closes and unmaps what was opened and mapped, except what is to be [kept](Self::keep).
    ///
    /// # Errors
    /// If the thread is gone.
    pub fn undo(&mut self) -> Result<(), Failure> {
        for fd in mem::take(&mut self.opened) {
            self.close(fd)?;
        }
        for (at, bytes) in mem::take(&mut self.mapped) {
            self.unmap(at, bytes)?;
        }
        Ok(())
    }

    /// Makes what is mapped at `at` stay whatever happens.
    pub fn keep(&mut self, at: u64) {
        self.mapped.retain(|(mapped, _)| *mapped != at);
    }

    /// Makes threads forget where a runtime of an earlier recording, at `earlier`, keeps their data. The new runtime
    /// gives them another place, unless the program uses gs itself.
    pub fn forget(&mut self, earlier: &[Range<u64>]) -> Result<(), Failure> {
        for tid in self.process.tids() {
            let registers = self.process.regs(tid)?;
            let is_ours = |range: &Range<u64>| range.contains(&registers.gs_base);
            if registers.gs_base != 0 && earlier.iter().any(is_ours) {
                let without = Registers {
                    gs_base: 0,
                    ..registers
                };
                self.process.set_regs(tid, &without)?;
            }
        }
        Ok(())
    }

    /// Clears a word of every thread's block; `offset` is its distance from the base of fs, in bytes.
    pub fn clear_in_blocks(&mut self, offset: u64) -> Result<(), Failure> {
        for tid in self.process.tids() {
            let block = self.process.regs(tid)?.fs_base;
            // A thread that glibc did not make may have a block of another kind. glibc's has its address in two places.
            let is_of_glibc = self
                .words(block, 3)
                .is_ok_and(|words| words[0] == block && words[2] == block);
            if is_of_glibc {
                self.process.write(block + offset, &[0; 8])?;
            }
        }
        Ok(())
    }

    /// Returns the result of the system call, or its error number.
    fn call(&mut self, number: i64, arguments: [u64; 6]) -> Result<Result<u64, i32>, Failure> {
        let result = self
            .process
            .system_call(self.tid, self.syscall_at, number, arguments)?;
        let error = -(result as i64);
        Ok(match error {
            1..=4095 => Err(error as i32),
            _ => Ok(result),
        })
    }

    fn mmap(
        &mut self,
        at: u64,
        bytes: u64,
        access: i32,
        flags: i32,
        (fd, offset): (u64, u64),
    ) -> Result<Result<u64, i32>, Failure> {
        let arguments = [at, bytes, access as u64, flags as u64, fd, offset];
        let mapped = self.call(libc::SYS_mmap, arguments)?;
        let is_over_ours = flags & libc::MAP_FIXED != 0;
        self.mapped
            .extend(mapped.ok().filter(|_| !is_over_ours).map(|at| (at, bytes)));
        Ok(mapped)
    }

    fn advise(&mut self, at: u64, bytes: u64, advice: i32) -> Result<(), Failure> {
        // If the advice is refused, everything works without it.
        let _ = self.call(libc::SYS_madvise, [at, bytes, advice as u64, 0, 0, 0])?;
        Ok(())
    }

    /// Maps memory at any address.
    pub fn map(&mut self, bytes: u64, access: i32, what: &str) -> Result<u64, Failure> {
        let mapped = self.mmap(0, bytes, access, PRIVATE, NO_FILE)?;
        mapped.map_err(|error| cannot_map(what, error))
    }

    /// Maps memory at `at`, unless something is mapped there. Returns the address.
    pub fn map_at(&mut self, at: u64, bytes: u64, access: i32) -> Result<Option<u64>, Failure> {
        let flags = PRIVATE | libc::MAP_FIXED_NOREPLACE;
        Ok(self.mmap(at, bytes, access, flags, NO_FILE)?.ok())
    }

    /// Maps a part of a file over our own memory.
    pub fn map_file(
        &mut self,
        at: u64,
        bytes: u64,
        access: i32,
        (fd, offset): (u64, u64),
    ) -> Result<(), Failure> {
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
        let mapped = self.mmap(at, bytes, access, flags, (fd, offset))?;
        mapped
            .map(drop)
            .map_err(|error| cannot_map("the runtime", error))
    }

    /// Maps zeroes over our own memory.
    pub fn map_zeroes(&mut self, at: u64, bytes: u64) -> Result<(), Failure> {
        let mapped = self.mmap(at, bytes, READ_WRITE, PRIVATE | libc::MAP_FIXED, NO_FILE)?;
        mapped
            .map(drop)
            .map_err(|error| cannot_map("the runtime", error))
    }

    pub fn unmap(&mut self, at: u64, bytes: u64) -> Result<(), Failure> {
        self.keep(at);
        let _ = self.call(libc::SYS_munmap, [at, bytes, 0, 0, 0, 0])?;
        Ok(())
    }

    /// Maps memory to read and write, of which no page is loaded yet. If the program has locked its future mappings
    /// (`mlockall(2)`), the kernel loads every page at once, except inaccessible ones and those that are unlocked before
    /// they become accessible.
    fn map_unlocked(
        &mut self,
        at: u64,
        bytes: u64,
        flags: i32,
        file: (u64, u64),
    ) -> Result<Result<u64, i32>, Failure> {
        let at = match self.mmap(at, bytes, libc::PROT_NONE, flags, file)? {
            Ok(at) => at,
            refused => return Ok(refused),
        };
        for from in (at..at + bytes).step_by(UNLOCKED_AT_ONCE as usize) {
            let len = UNLOCKED_AT_ONCE.min(at + bytes - from);
            let _ = self.call(libc::SYS_munlock, [from, len, 0, 0, 0, 0])?;
        }
        let access = READ_WRITE as u64;
        let opened = self.call(libc::SYS_mprotect, [at, bytes, access, 0, 0, 0])?;
        if opened.is_err() {
            self.unmap(at, bytes)?;
        }
        Ok(opened.map(|_| at))
    }

    /// Maps the memory of the rings.
    pub fn map_shared(&mut self, fd: u64, bytes: u64) -> Result<u64, Failure> {
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        let mapped = self.map_unlocked(0, bytes, flags, (fd, 0))?;
        let at = mapped.map_err(|error| cannot_map("the shared memory", error))?;
        self.advise(at, bytes, libc::MADV_DONTDUMP)?;
        self.advise(at, bytes, libc::MADV_DONTFORK)?;
        Ok(at)
    }

    /// Maps the shadows for return addresses, unless an earlier recording of the process has done so. Returns the
    /// missing ones as bits. Without the first, nothing works; without the others, calls on such stacks have no leave.
    pub fn map_shadows(&mut self) -> Result<u64, Failure> {
        let mut missing = 0;
        for (number, shadow) in shared::SHADOWS.iter().enumerate() {
            // The kernel counts a mapping that grows down as stack and not as data, on which the program may have a
            // limit.
            let flags = PRIVATE | libc::MAP_FIXED_NOREPLACE | libc::MAP_GROWSDOWN;
            let mapped = self.map_unlocked(shadow.base, shadow.bytes, flags, NO_FILE)?;
            match mapped {
                Ok(_) => self.advise(shadow.base, shadow.bytes, libc::MADV_DONTDUMP)?,
                Err(_) if self.is_mapped_whole(shadow.base, shadow.bytes) => {}
                Err(error) if number == 0 => {
                    return Err(cannot_map("the shadow of the stacks", error));
                }
                Err(_) => missing |= 1 << number,
            }
        }
        Ok(missing)
    }

    fn is_mapped_whole(&self, at: u64, bytes: u64) -> bool {
        let maps = Maps::read(self.process.pid()).unwrap_or_default();
        let holds = |mapping: &Mapping| {
            let range = &mapping.range;
            mapping.path.is_empty() && range.start <= at && at + bytes <= range.end
        };
        maps.mappings.iter().any(holds)
    }

    /// Opens a file. Its path is written to `scratch`.
    pub fn open(&mut self, scratch: u64, path: &str, flags: i32) -> Result<u64, Failure> {
        let bytes = [path.as_bytes(), &[0]].concat();
        assert!(
            bytes.len() as u64 <= SCRATCH_BYTES,
            "paths are shorter than the memory for them"
        );
        self.write(scratch, &bytes)?;
        let here = libc::AT_FDCWD as i64 as u64;
        let opened = self.call(libc::SYS_openat, [here, scratch, flags as u64, 0, 0, 0])?;
        self.opened.extend(opened.ok());
        opened.map_err(|error| {
            let why = format!("the program cannot open {path} (errno {error})");
            let root = fs::read_link(format!("/proc/{}/root", self.process.pid()));
            let hint = match root {
                Ok(root) if root != Path::new("/") => {
                    "it has another root directory (chroot), which does not have that file"
                }
                _ => "does it run in another container, or as another user?",
            };
            Failure::Runtime(Diagnostic::new(why).with_hint(hint))
        })
    }

    pub fn close(&mut self, fd: u64) -> Result<(), Failure> {
        self.opened.retain(|opened| *opened != fd);
        let _ = self.call(libc::SYS_close, [fd, 0, 0, 0, 0, 0])?;
        Ok(())
    }

    /// Runs our code up to its trap.
    pub fn run(&mut self, start: u64, argument: u64, stack_end: u64) -> Result<u64, Failure> {
        let result = self
            .process
            .run_to_trap(self.tid, start, argument, stack_end);
        Ok(result?)
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.process.write(at, bytes)?)
    }

    pub fn write_words(&mut self, at: u64, words: &[u64]) -> Result<(), Failure> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(at, &bytes)
    }

    pub fn bytes(&self, from: u64, to: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; (to - from) as usize];
        self.process.read(from, &mut bytes)?;
        Ok(bytes)
    }

    pub fn words(&self, at: u64, count: usize) -> Result<Vec<u64>, Failure> {
        let bytes = self.bytes(at, at + count as u64 * 8)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Reads a name up to its NUL.
    pub fn text(&self, at: u64) -> Result<String, Failure> {
        let bytes = self.process.read_up_to(at, LONGEST_NAME);
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }
}

fn cannot_map(what: &str, error: i32) -> Failure {
    let why = Diagnostic::new(format!("cannot map {what} (errno {error})"));
    let hint = match error {
        libc::EEXIST => {
            "the program has memory there: does it use the legacy layout of addresses (setarch -L)?"
        }
        _ => "is there a limit on virtual memory (ulimit -v)?",
    };
    Failure::Runtime(why.with_hint(hint))
}

/// Finds a `syscall` instruction; the kernel's own code has one.
fn syscall_instruction(process: &StoppedProcess) -> Result<u64, Failure> {
    let failed = |detail: String| Failure::Runtime(detail.into());
    let maps = Maps::read(process.pid()).map_err(|error| failed(error.to_string()))?;
    let executable = maps
        .mappings
        .iter()
        .filter(|mapping| mapping.is_executable());
    for mapping in executable.rev() {
        let len = (mapping.range.end - mapping.range.start).min(SEARCHED_BYTES) as usize;
        let code = process.read_up_to(mapping.range.start, len);
        if let Some(offset) = code.windows(2).position(|pair| pair == [0x0f, 0x05]) {
            return Ok(mapping.range.start + offset as u64);
        }
    }
    Err(failed(
        "the program has no instruction that makes system calls".to_owned(),
    ))
}

//! A process whose memory is compared before and after each of its system calls, as a tracer sees them.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::Command;

use exact::system_calls::written::{Finished, Memory, Written, written};

/// Calls after which memory is another one, by mappings or by a child that shares it.
const CHANGE_MAPPINGS: [i64; 11] = [
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_execve,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_vfork,
    libc::SYS_clone,
    libc::SYS_clone3,
];

/// What was seen of a call by its number and result: how often, and how often nothing could be said.
#[derive(Default)]
pub struct Seen {
    pub times: u64,
    pub unknown: u64,
}

pub type Calls = BTreeMap<(i64, i64), Seen>;

struct Process {
    id: i32,
    /// Of all memory, only what has one of these addresses.
    only: Range<u64>,
}

impl Memory for Process {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let local = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut _,
            iov_len: into.len(),
        };
        // SAFETY: the kernel checks the remote address; the local one is that of a slice.
        let read = unsafe { libc::process_vm_readv(self.id, &local, 1, &remote, 1, 0) };
        usize::try_from(read).unwrap_or(0)
    }
}

impl Process {
    /// All that the program can write, and nobody else.
    fn contents(&self) -> Vec<(u64, Vec<u8>)> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.id)).unwrap();
        let own = maps.lines().filter(|line| line.contains(" rw-p "));
        let ranges = own.map(|line| {
            let (start, rest) = line.split_once('-').unwrap();
            let (end, _) = rest.split_once(' ').unwrap();
            [start, end].map(|number| u64::from_str_radix(number, 16).unwrap())
        });
        let ranges = ranges.filter(|[start, end]| *start < self.only.end && self.only.start < *end);
        let contents = ranges.map(|[start, end]| {
            let mut bytes = vec![0; (end - start) as usize];
            let len = self.read(start, &mut bytes);
            bytes.truncate(len);
            (start, bytes)
        });
        contents.collect()
    }

    fn registers(&self) -> libc::user_regs_struct {
        // SAFETY: the process is stopped; there is room for the registers.
        unsafe {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            let to = &raw mut registers;
            assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, self.id, 0, to), 0);
            registers
        }
    }

    /// Lets it run to the next stop. Gives the status.
    fn resume(&self, signal: i32) -> i32 {
        let mut status = 0;
        // SAFETY: the process is stopped, and this thread traces it.
        unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_SYSCALL, self.id, 0, signal), 0);
            assert_eq!(libc::waitpid(self.id, &mut status, libc::__WALL), self.id);
        }
        status
    }

    /// Compares what the call before this stop changed with what is said of it.
    fn compare(&self, number: i64, args: [u64; 6], before: &[(u64, Vec<u8>)], calls: &mut Calls) {
        let result = self.registers().rax as i64;
        let finished = Finished {
            number: number as u64,
            args,
            result,
        };
        let said = written(&finished, self);
        let seen = calls.entry((number, result.min(0))).or_default();
        seen.times += 1;
        let Written::Exactly(ranges) = said else {
            seen.unknown += 1;
            return;
        };
        for (start, before) in before {
            let mut after = vec![0; before.len()];
            let len = self.read(*start, &mut after);
            if before[..len] == after[..len] {
                continue;
            }
            for at in (0..len).filter(|&at| before[at] != after[at]) {
                let address = start + at as u64;
                assert!(
                    ranges
                        .iter()
                        .any(|&(from, len)| (from..from + len).contains(&address)),
                    "call {number} ({args:x?}) = {result} wrote at {address:x}, not in {ranges:x?}"
                );
            }
        }
    }
}

/// Follows a stopped child to its end.
fn follow(id: i32, only: Range<u64>) -> Calls {
    let process = Process { id, only };
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    // SAFETY: the process is stopped, and this thread traces it.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_SETOPTIONS, id, 0, options), 0);
    }
    let mut calls = Calls::new();
    let mut entered = None;
    let mut signal = 0;
    loop {
        let status = process.resume(signal);
        signal = 0;
        if !libc::WIFSTOPPED(status) {
            assert_eq!(status, 0, "it did not end well");
            return calls;
        }
        match libc::WSTOPSIG(status) {
            stop if stop == libc::SIGTRAP | 0x80 => match entered.take() {
                None => {
                    let r = process.registers();
                    let args = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
                    let number = r.orig_rax as i64;
                    let before = match CHANGE_MAPPINGS.contains(&number) {
                        true => Vec::new(),
                        false => process.contents(),
                    };
                    entered = Some((number, args, before));
                }
                Some((number, args, before)) => {
                    process.compare(number, args, &before, &mut calls);
                }
            },
            libc::SIGTRAP | libc::SIGSTOP => {}
            other => signal = other,
        }
    }
}

fn trace_me() -> std::io::Result<()> {
    // SAFETY: the parent follows this process.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
    Ok(())
}

/// A program, from its first instruction to its end.
pub fn program(command: &mut Command) -> Calls {
    // The kernel writes the processor's number at any time to who asks for it so.
    command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    // SAFETY: it makes one system call.
    let child = unsafe { command.pre_exec(trace_me).spawn().unwrap() };
    let id = child.id() as i32;
    let mut status = 0;
    // SAFETY: it waits for the stop after exec.
    assert_eq!(unsafe { libc::waitpid(id, &mut status, 0) }, id);
    assert!(libc::WIFSTOPPED(status));
    follow(id, 0..u64::MAX)
}

/// A copy of this process that does so much and ends. It may make system calls, and nothing that takes a lock. Only the mappings of
/// these addresses are compared: the process is large.
pub fn forked(only: Range<u64>, what: impl FnOnce()) -> Calls {
    // SAFETY: the child makes system calls only.
    unsafe {
        let id = libc::fork();
        if id == 0 {
            let _ = trace_me();
            libc::raise(libc::SIGSTOP);
            what();
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(id, &mut status, 0), id);
        follow(id, only)
    }
}

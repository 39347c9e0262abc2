//! Calls a function of the program at a moment of the recording. Nothing that the function does stays: the process ends with the call,
//! and a copy that was made of it before goes on.
//!
//! System calls are not made, because what they would have answered is not known, but for those on the process's own memory. What it
//! prints is kept.

use std::time::Instant;

use libc::user_regs_struct;

use super::apply::return_from_call;
use super::limit::Limit;
use super::run::Halt;
use super::{Moment, Replay, checkpoint, search, seek, trace};
use crate::abi::{Arguments, float_results};
use crate::error::{Context as _, Result};
use crate::log::Context;
use crate::maps;
use crate::ptrace;
use crate::tracee::Tracee;
use crate::translate::Trap;

/// Where the function returns to: the last address of user space's lower half page, where no code ever is.
const RETURN: u64 = 0x7fff_ffff_f000;
/// Instructions between two looks at the clock.
const SLICE: u64 = 20_000_000;
/// Stack that is mapped below what the program had used, as the kernel would when it grows.
const GROWTH: u64 = 1 << 20;
/// What is kept of the function's output.
const MOST_OUTPUT: usize = 1 << 16;
/// What is kept of memory that the result points to.
const POINTED: usize = 256;
const PAGE: u64 = 4096;

/// A function to call.
#[derive(Debug, Clone)]
pub struct Call {
    pub function: u64,
    /// For rdi, rsi, rdx, rcx, r8 and r9.
    pub integers: Vec<u64>,
    /// For xmm0 to xmm7.
    pub floats: Vec<u64>,
    /// Bytes to put into memory; the integer of that index becomes their address.
    pub texts: Vec<(usize, Vec<u8>)>,
    /// When it must have returned.
    pub until: Instant,
}

/// What became of a call.
#[derive(Debug, Clone)]
pub enum Called {
    Returned(Returned),
    /// It came to a system call that is not made.
    Asked {
        number: u64,
    },
    /// It would have received a signal.
    Signal {
        number: i32,
        at: u64,
    },
    /// It took too long.
    Late,
    /// There is no such thread.
    NoThread,
}

/// The registers after a call, and what is known of its effects.
#[derive(Debug, Clone)]
pub struct Returned {
    pub rax: u64,
    pub rdx: u64,
    pub xmm0: u64,
    pub xmm1: u64,
    /// What it wrote to descriptors 1 and 2.
    pub output: Vec<u8>,
    /// Memory from rax on, where the call has changed it.
    pub pointed: Option<Vec<u8>>,
}

/// What a call must not change.
struct Kept {
    now: Moment,
    limit: Limit,
    watch: Option<search::Watch>,
    calls: Option<trace::Calls>,
    found: Option<seek::Found>,
}

impl Replay {
    /// Calls a function in a thread, at this moment.
    pub fn call(&mut self, tid: i32, call: &Call) -> Result<Called> {
        let Some(context) = self.context_of(tid)? else {
            return Ok(Called::NoThread);
        };
        let own = self.registers()?;
        let shared = self.shared_content()?;
        let translations = self.set_translations_aside()?;
        // The copy is what goes on. If it made the call, the process would be sent a signal at its end.
        let copy = self.fork()?;
        let kept = Kept {
            now: self.now.clone(),
            limit: self.limit,
            watch: self.watch.take(),
            calls: self.calls.take(),
            found: self.found.take(),
        };
        let called = self.call_here(tid, &context, call);
        let called = called.map(|called| self.with_what_differs(called, &copy));
        let caller = std::mem::replace(&mut self.process, copy);
        checkpoint::end(caller.pid);
        (self.now, self.limit) = (kept.now, kept.limit);
        (self.watch, self.calls, self.found) = (kept.watch, kept.calls, kept.found);
        self.take_translations_back(translations)?;
        self.set_shared_content(&shared)?;
        self.enter(&own)?;
        called
    }

    fn context_of(&self, tid: i32) -> Result<Option<Context>> {
        if tid == self.now.running {
            return self.save().map(Some);
        }
        Ok(self.now.others.get(&tid).cloned())
    }

    fn call_here(&mut self, tid: i32, context: &Context, call: &Call) -> Result<Called> {
        self.begin_call(context, call)?;
        if self.translated_at(call.function)?.is_none() {
            return Ok(Called::Signal {
                number: libc::SIGSEGV,
                at: call.function,
            });
        }
        let mut output = Vec::new();
        loop {
            self.ask_overseer()?;
            if Instant::now() >= call.until {
                return Ok(Called::Late);
            }
            match self.run_fast(self.now.count + SLICE)? {
                Halt::Limit | Halt::Stop => {}
                Halt::Asked => {
                    if let Some(number) = self.answer_call(tid, &mut output)? {
                        return Ok(Called::Asked { number });
                    }
                }
                Halt::Fault(libc::SIGSEGV) if self.writes_code()? => {}
                Halt::Fault(number) => {
                    let at = self.registers()?.rip;
                    return Ok(Called::Signal { number, at });
                }
                Halt::Nowhere => {
                    let registers = self.registers()?;
                    if registers.rip != RETURN {
                        return Ok(Called::Signal {
                            number: libc::SIGSEGV,
                            at: registers.rip,
                        });
                    }
                    return self.returned(&registers, output).map(Called::Returned);
                }
            }
        }
    }

    fn begin_call(&mut self, context: &Context, call: &Call) -> Result<()> {
        let before = user_regs_struct::from(&context.registers);
        self.grow_stack(before.rsp)?;
        let arguments = Arguments {
            integers: &call.integers,
            floats: &call.floats,
            texts: &call.texts,
        };
        let entry = arguments.entry(call.function, &before, context.extended.clone());
        for (at, bytes) in entry.texts {
            self.process.write(at, bytes)?;
        }
        self.process.set_word(entry.registers.rsp, RETURN)?;
        self.load(&Context {
            registers: (&entry.registers).into(),
            extended: entry.extended,
        })
    }

    /// Maps more stack below the part of it that the program has used, if nothing is there.
    fn grow_stack(&mut self, rsp: u64) -> Result<()> {
        let pid = self.process.pid;
        let maps = maps::read(pid).context("read the mappings of a process")?;
        let stack = maps.iter().find(|mapping| mapping.range.contains(&rsp));
        let Some(start) = stack.map(|stack| stack.range.start) else {
            return Ok(());
        };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let args = [
            start.saturating_sub(GROWTH),
            GROWTH,
            both,
            flags as u64,
            u64::MAX,
            0,
        ];
        // Where something else is mapped, as below a thread's stack, there is no more.
        self.process.call(pid, libc::SYS_mmap, args).map(drop)
    }

    /// The function has come to a system call or to an instruction with results of its own. Returns the number of a call that cannot
    /// be answered.
    fn answer_call(&mut self, tid: i32, output: &mut Vec<u8>) -> Result<Option<u64>> {
        let at = ptrace::registers(self.process.pid)
            .context("read registers")?
            .rip;
        if !matches!(self.translator.trap(at), Some(Trap::SystemCall { .. })) {
            self.execute()?;
            let own = self.registers()?;
            return self.enter(&own).map(|()| None);
        }
        let mut registers = self.registers()?;
        let Some(result) = self.answer_of(tid, &registers, output)? else {
            return Ok(Some(registers.rax));
        };
        return_from_call(&mut registers, result);
        self.enter(&registers).map(|()| None)
    }

    /// What the kernel answers to a call that concerns nothing but the process.
    fn answer_of(
        &mut self,
        tid: i32,
        registers: &user_regs_struct,
        output: &mut Vec<u8>,
    ) -> Result<Option<i64>> {
        let pid = self.process.pid;
        let number = registers.rax as i64;
        let args = [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
            registers.r9,
        ];
        Ok(match number {
            libc::SYS_mmap if registers.r10 & libc::MAP_ANONYMOUS as u64 != 0 => {
                Some(self.process.call(pid, number, args)?)
            }
            libc::SYS_munmap | libc::SYS_mremap | libc::SYS_madvise => {
                Some(self.process.call(pid, number, args)?)
            }
            // All of the program's memory can be written here.
            libc::SYS_mprotect => Some(0),
            // The process's own break is elsewhere: the allocator maps memory instead.
            libc::SYS_brk => Some(0),
            libc::SYS_rt_sigprocmask => Some(0),
            libc::SYS_getpid => Some(i64::from(self.recorded.first)),
            libc::SYS_gettid => Some(i64::from(tid)),
            libc::SYS_futex if is_wake(registers.rsi) => Some(0),
            libc::SYS_write if is_output(registers.rdi) => {
                Some(self.print(registers.rsi, registers.rdx, output))
            }
            libc::SYS_writev if is_output(registers.rdi) => {
                let vectors = self
                    .process
                    .bytes(registers.rsi, registers.rdx as usize * 16);
                let words = vectors.chunks_exact(8);
                let words: Vec<u64> = words
                    .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
                    .collect();
                let printed = words
                    .chunks_exact(2)
                    .map(|part| self.print(part[0], part[1], output));
                Some(printed.sum())
            }
            // The C library asks what its output is: no terminal.
            libc::SYS_fstat | libc::SYS_newfstatat if is_output(registers.rdi) => {
                Some(-i64::from(libc::EBADF))
            }
            libc::SYS_ioctl if is_output(registers.rdi) => Some(-i64::from(libc::ENOTTY)),
            _ => None,
        })
    }

    fn print(&self, from: u64, length: u64, output: &mut Vec<u8>) -> i64 {
        let room = MOST_OUTPUT.saturating_sub(output.len());
        output.extend(self.process.bytes(from, room.min(length as usize)));
        length as i64
    }

    fn returned(&self, registers: &user_regs_struct, output: Vec<u8>) -> Result<Returned> {
        let extended = self.extended()?;
        let [xmm0, xmm1] = float_results(&extended);
        Ok(Returned {
            rax: registers.rax,
            rdx: registers.rdx,
            xmm0,
            xmm1,
            output,
            pointed: None,
        })
    }

    /// The result may point to what the call has written; `before` is the process without the call.
    fn with_what_differs(&self, called: Called, before: &Tracee) -> Called {
        let Called::Returned(mut returned) = called else {
            return called;
        };
        let to_end_of_page = (PAGE - returned.rax % PAGE) as usize;
        let here = self
            .process
            .bytes(returned.rax, POINTED.min(to_end_of_page));
        let differs = !here.is_empty() && here != before.bytes(returned.rax, here.len());
        returned.pointed = differs.then_some(here);
        Called::Returned(returned)
    }
}

fn is_output(descriptor: u64) -> bool {
    matches!(descriptor as i32, libc::STDOUT_FILENO | libc::STDERR_FILENO)
}

fn is_wake(operation: u64) -> bool {
    operation as i32 & libc::FUTEX_CMD_MASK == libc::FUTEX_WAKE
}

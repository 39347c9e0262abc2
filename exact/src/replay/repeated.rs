//! An instruction that repeats, and has a fault in the middle: what it did before that is done. It counts as an instruction; in logs
//! before version 6, it counts as not executed.

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use libc::user_regs_struct;

use super::Replay;
use crate::error::{Context as _, Result};
use crate::log::Entry;
use crate::operands::{goes_down, repeats};
use crate::ptrace;
use crate::translate::Trap;

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

impl Replay {
    /// The instruction before which the process stands was repeated until it was still to be repeated `left` times.
    pub(super) fn repeated(&mut self, tid: i32, left: u64) -> Result<()> {
        let own = self.registers()?;
        let is_there = tid == self.now.running && left <= own.rcx;
        if !is_there || self.repeated_at(own.rip).is_none() {
            return Err(self.diverged("an instruction that repeats had a fault here"));
        }
        if left < own.rcx {
            self.repeat_until(&own, left)?;
        }
        self.now.count += 1;
        let rest = self.registers()?;
        self.enter(&rest)
    }

    /// The instruction at `at`, if it repeats.
    fn repeated_at(&self, at: u64) -> Option<Instruction> {
        let code = self.process.bytes(at, LONGEST);
        let instruction = Decoder::with_ip(64, &code, at, DecoderOptions::NONE).decode();
        repeats(&instruction).then_some(instruction)
    }

    /// In an old log, the entry may be such a fault of the instruction before which the process stands.
    pub(super) fn repeated_until(&mut self, entry: &Entry) -> Result<()> {
        let tid = match entry {
            Entry::Signal {
                tid,
                call_done: false,
                ..
            }
            | Entry::Check { tid, .. } => *tid,
            _ => return Ok(()),
        };
        let last = self.now.next.checked_sub(1);
        let last = last.and_then(|last| self.recorded.entries.get(last));
        if tid != self.now.running || matches!(last.as_deref(), Some(Entry::Repeated { .. })) {
            return Ok(());
        }
        let own = self.registers()?;
        let Some(instruction) = self.repeated_at(own.rip) else {
            return Ok(());
        };
        let left = match entry {
            // What a handler gets in rcx is what was there.
            Entry::Signal { context, .. } => Some(user_regs_struct::from(&context.registers).rcx),
            _ => self.left_at_end(&instruction, &own),
        };
        match left.filter(|left| *left < own.rcx) {
            Some(left) => self.repeat_until(&own, left),
            None => Ok(()),
        }
    }

    /// How often the instruction is still to be repeated when it has the fault that ends the program.
    fn left_at_end(&self, instruction: &Instruction, own: &user_regs_struct) -> Option<u64> {
        let next = self.recorded.entries.get(self.now.next + 1)?;
        let Entry::Exit {
            fatal: Some(fatal), ..
        } = &*next
        else {
            return None;
        };
        let of_memory = matches!(fatal.signal, libc::SIGSEGV | libc::SIGBUS) && fatal.code > 0;
        if !of_memory || fatal.tid != self.now.running {
            return None;
        }
        let size = instruction.memory_size().size().max(1) as u64;
        let done = (0..instruction.op_count()).filter_map(|op| {
            let first = match instruction.op_kind(op) {
                OpKind::MemoryESRDI => own.rdi,
                OpKind::MemorySegRSI => own.rsi,
                _ => return None,
            };
            let distance = match goes_down(own) {
                true => (first + size - 1).checked_sub(fatal.address)?,
                false => fatal.address.checked_sub(first)?,
            };
            Some(distance / size).filter(|done| *done < own.rcx)
        });
        done.min().map(|done| own.rcx - done)
    }

    /// Repeats it as often as it was, so that it is still to be repeated `left` times. A fault leaves the flags as they were before.
    fn repeat_until(&mut self, own: &user_regs_struct, left: u64) -> Result<()> {
        let pid = self.process.pid;
        let mut part = *own;
        part.rcx -= left;
        let told = self.records_end()?;
        self.lift_limit();
        self.enter(&part)?;
        let mut is_done = false;
        while !is_done {
            let mut registers = self.process.registers_after_step(pid)?;
            let at = registers.rip;
            if let Some(trap) = self.translator.trap(at) {
                registers.rip = at + 1;
                ptrace::set_registers(pid, &registers).context("set registers")?;
                match trap {
                    Trap::Stop { .. } => {}
                    Trap::Before { .. } => {
                        // What is executed is told once, when it is.
                        self.set_records_end(told)?;
                        self.noted_trap(at, trap, registers.r15)?;
                    }
                    _ => return Err(self.asks()),
                }
                continue;
            }
            let place = self.translator.place(at);
            let end = self.process.end_of_repeated(at);
            let end = end.filter(|_| place.is_some_and(|place| place.pc == own.rip));
            is_done = end.is_some();
            let signal = match end {
                Some(end) => self.run_over(end)?,
                None => self.step_on()?,
            };
            if signal != libc::SIGTRAP && !(signal == libc::SIGSEGV && self.emptied()?) {
                return Err(self.not_recorded(signal));
            }
        }
        let registers = ptrace::registers(pid).context("read registers")?;
        match self.translator.trap(registers.rip) {
            Some(trap @ Trap::After { .. }) => {
                self.noted_trap(registers.rip, trap, registers.r15)?
            }
            _ => self.set_records_end(told)?,
        }
        let mut rest = self.registers()?;
        (rest.rip, rest.rcx, rest.eflags) = (own.rip, left, own.eflags);
        self.enter(&rest)
    }
}

#[cfg(test)]
mod tests {
    //! Goal: what an instruction has written before its fault is a write of that instruction, however the program goes on. Method: a
    //! program fills memory up to a page that it cannot write; a handler makes it writable, or there is none.

    use tempfile::TempDir;

    use super::*;
    use crate::replay::tested::run;
    use crate::replay::{Access, Seek, verify};

    const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
char to[8192] __attribute__((aligned(4096)));
extern char fill[];
__attribute__((noinline)) void open_page(int signal) { mprotect(to + 4096, 4096, PROT_READ | PROT_WRITE); }
int main(void) {
  if (HANDLED) signal(SIGSEGV, open_page);
  mprotect(to + 4096, 4096, PROT_NONE);
  printf("%p %p\n", (void *)to, (void *)fill);
  fflush(stdout);
  void *at = to;
  long count = 8000;
  __asm__ volatile(".globl fill\nfill: rep stosb" : "+D"(at), "+c"(count) : "a"(1) : "memory");
  return count;
}
"#;

    fn byte(replay: &Replay, at: u64) -> u8 {
        let mut byte = [0];
        assert_eq!(replay.read(at, &mut byte), 1);
        byte[0]
    }

    /// The instruction that wrote this byte was the one at `fill`: in all answers.
    fn written_once(replay: &mut Replay, at: u64, fill: u64) -> u64 {
        let end = replay.end();
        let wrote = replay.last_write(at, 1, end).unwrap().unwrap();
        assert_eq!((replay.position(), byte(replay, at)), (end, 1));
        replay.goto(wrote).unwrap();
        assert_eq!(
            (replay.registers().unwrap().rip, byte(replay, at)),
            (fill, 0)
        );
        replay.goto(wrote + 1).unwrap();
        assert_eq!(byte(replay, at), 1);
        replay.goto(0).unwrap();
        assert_eq!(replay.writes(at, 1, end, 9).unwrap(), [wrote]);
        let seek = Seek {
            instructions: true,
            writes: true,
            ..Seek::default()
        };
        let (mut executed, mut written) = (Vec::new(), Vec::new());
        replay
            .seek(wrote..end, &seek, &mut |batch| {
                let address = |number: u32| batch.instructions[number as usize].address;
                let all = batch.executed.iter();
                executed.extend(all.map(|one| (one.position, address(one.instruction))));
                let touches = batch
                    .accesses
                    .iter()
                    .filter(|access| access.address <= at && at < access.address + access.size);
                let by = |access: &Access| access.instruction.map(address);
                written.extend(touches.map(|access| (access.position, by(access))));
                true
            })
            .unwrap();
        assert_eq!(executed[0], (wrote, fill));
        let positions = executed.iter().map(|(position, _)| *position);
        assert!(positions.eq(wrote..end));
        assert_eq!(written, [(wrote, Some(fill))]);
        wrote
    }

    fn addresses(output: &str) -> [u64; 2] {
        let words = output.split_whitespace();
        let words = words.map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16));
        words
            .collect::<Result<Vec<u64>, _>>()
            .unwrap()
            .try_into()
            .unwrap()
    }

    #[test]
    fn a_fault_in_the_middle_that_ends_the_program() {
        let folder = TempDir::new().unwrap();
        let (summary, output) = run(&SOURCE.replace("HANDLED", "0"), folder.path());
        assert_eq!(summary.signal, Some(libc::SIGSEGV));
        let [to, fill] = addresses(&output);
        let verdict = verify(folder.path(), &mut |_, _| true).unwrap();
        assert!(
            verdict.contradiction.is_none() && verdict.memory > 0,
            "{verdict:?}"
        );
        let mut replay = Replay::open(folder.path()).unwrap();
        let wrote = written_once(&mut replay, to + 1000, fill);
        assert_eq!(wrote + 1, replay.end());
        let end = replay.registers().unwrap();
        assert_eq!((end.rip, end.rdi, end.rcx), (fill, to + 4096, 8000 - 4096));
    }

    #[test]
    fn a_fault_in_the_middle_that_a_handler_mends() {
        let folder = TempDir::new().unwrap();
        let (summary, output) = run(&SOURCE.replace("HANDLED", "1"), folder.path());
        assert_eq!(summary.code, Some(0));
        let [to, fill] = addresses(&output);
        let verdict = verify(folder.path(), &mut |_, _| true).unwrap();
        assert_eq!(verdict.contradiction, None);
        let mut replay = Replay::open(folder.path()).unwrap();
        let first = written_once(&mut replay, to + 1000, fill);
        let rest = written_once(&mut replay, to + 7999, fill);
        assert!(first < rest);
    }
}

//! Running a whole recording again, and comparing what comes out with what was recorded.

use std::path::Path;

use iced_x86::{Decoder, DecoderOptions};
use libc::user_regs_struct;

use super::Replay;
use crate::digest::{self, PAGE};
use crate::error::{Error, Result};
use crate::log::{Context, Entry, Hashed};
use crate::translate::changes_registers_alone;

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

/// Instructions between two questions whether to go on.
const STRETCH: u64 = 50_000_000;
/// Where a signal's frame has the general registers, from the stack pointer of rt_sigreturn(2) on (ucontext_t).
const FRAME_REGISTERS: u64 = 40;

/// Something that comes out otherwise than it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// Where it was found, in instructions.
    pub position: u64,
    /// The registers that were compared up to this position were as recorded. The cause may lie before it: memory is compared at
    /// the end only.
    pub agreed: u64,
    pub tid: i32,
    /// What was compared.
    pub what: String,
    /// What was recorded.
    pub expected: String,
    /// What comes out.
    pub found: String,
}

/// What a comparison has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The first contradiction. `None`: there is none as far as it was run.
    pub contradiction: Option<Contradiction>,
    /// Instructions that were run.
    pub instructions: u64,
    /// How often registers were compared. Recordings of older versions have nothing to compare them with.
    pub registers: u64,
    /// Bytes of memory that were compared.
    pub memory: u64,
    /// Whether it was run to the end.
    pub whole: bool,
}

/// A comparison that is under way.
#[derive(Default)]
pub(super) struct Verifying {
    verdict: Verdict,
    agreed: u64,
}

/// Runs the recording in a folder from its start to its end, and compares. `progress` gets the position and the end, and ends it
/// when it returns false.
pub fn verify(folder: &Path, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<Verdict> {
    let mut replay = Replay::open(folder)?;
    replay.checkpoints.every = u64::MAX;
    replay.verifying = Some(Verifying::default());
    let ran = replay.run_and_compare(progress);
    let position = replay.now.count;
    let tid = replay.now.running;
    let next = replay.next_entry();
    let Verifying {
        mut verdict,
        agreed,
    } = replay.verifying.take().unwrap_or_default();
    verdict.instructions = position;
    match ran {
        Ok(whole) => verdict.whole = whole,
        // The comparison itself ends the run in this way.
        Err(Error::Diverged { .. }) if verdict.contradiction.is_some() => {}
        Err(Error::Diverged { at, what }) => {
            verdict.contradiction = Some(Contradiction {
                position: at,
                agreed,
                tid,
                what: String::from("what comes next"),
                expected: next,
                found: what,
            });
        }
        Err(error) => return Err(error),
    }
    Ok(verdict)
}

impl Replay {
    fn run_and_compare(&mut self, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<bool> {
        let end = self.end();
        loop {
            let position = self.now.count;
            if !progress(position, end) {
                return Ok(false);
            }
            if position >= end {
                break;
            }
            self.forward(end.min(position + STRETCH))?;
        }
        self.compare_end()?;
        Ok(true)
    }

    /// What the recording has next, in words.
    fn next_entry(&self) -> String {
        let next = self.recorded.entries.get(self.now.next);
        next.map_or_else(|| String::from("nothing"), |entry| told(&entry))
    }

    fn contradicts(&mut self, tid: i32, what: &str, expected: String, found: String) -> Error {
        let position = self.now.count;
        if let Some(verifying) = &mut self.verifying {
            verifying.verdict.contradiction = Some(Contradiction {
                position,
                agreed: verifying.agreed,
                tid,
                what: what.to_owned(),
                expected,
                found,
            });
        }
        self.diverged(what)
    }

    /// Compares what is there with what an entry says, before it is applied.
    pub(super) fn compare(&mut self, entry: &Entry) -> Result<()> {
        if self.verifying.is_none() {
            return Ok(());
        }
        let running = self.now.running;
        match entry {
            Entry::SystemCall {
                tid, state, number, ..
            } => self.compare_state(
                *tid,
                *state,
                &format!("registers before system call {number}"),
            ),
            Entry::Chance {
                state, registers, ..
            } => {
                self.compare_state(running, *state, "registers before an instruction")?;
                self.compare_chance(&user_regs_struct::from(registers))
            }
            Entry::Signal {
                tid,
                number,
                state,
                context,
                ..
            } => {
                self.compare_state(*tid, *state, &format!("registers before signal {number}"))?;
                let argument = user_regs_struct::from(&context.registers).rdi;
                self.same(*tid, "a handler's argument", *number as u64, argument)
            }
            Entry::Return { context, .. } => self.compare_frame(context),
            Entry::Switch { tid, .. } if *tid == running => Err(self.contradicts(
                running,
                "which thread runs next",
                String::from("another one"),
                format!("thread {running}"),
            )),
            Entry::Switch { tid, state, .. } => {
                self.compare_state(*tid, *state, "registers of the thread that runs next")
            }
            Entry::End { tid, state, .. } => {
                self.compare_state(*tid, *state, "registers at the end of a thread")
            }
            Entry::Check {
                tid,
                state,
                extended,
                memory,
                ..
            } => {
                self.compare_state(*tid, Some(*state), "registers at the end")?;
                if self.ends_with_arithmetic(*tid) {
                    self.fault(*tid)?;
                }
                self.compare_extended(*tid, *extended)?;
                memory
                    .iter()
                    .try_for_each(|hashed| self.compare_memory(*tid, hashed))
            }
            _ => Ok(()),
        }
    }

    fn same(&mut self, tid: i32, what: &str, expected: u64, found: u64) -> Result<()> {
        if expected == found {
            return Ok(());
        }
        Err(self.contradicts(tid, what, format!("{expected:#x}"), format!("{found:#x}")))
    }

    fn state_of(&mut self, tid: i32, what: &str) -> Result<user_regs_struct> {
        if tid == self.now.running {
            return self.registers();
        }
        match self.registers_of(tid) {
            Some(registers) => Ok(registers),
            None => Err(self.contradicts(
                tid,
                what,
                format!("thread {tid}"),
                String::from("no such thread"),
            )),
        }
    }

    fn compare_state(&mut self, tid: i32, state: Option<u32>, what: &str) -> Result<()> {
        let Some(expected) = state else {
            return Ok(());
        };
        let registers = self.state_of(tid, what)?;
        let found = digest::of_registers(&registers, registers.rip);
        if expected != found {
            let found = format!(
                "others before the instruction at {:#x} (digest {found:08x}){}",
                registers.rip,
                difference(&registers, expected)
            );
            let expected = format!("registers whose digest is {expected:08x}");
            return Err(self.contradicts(tid, what, expected, found));
        }
        let count = self.now.count;
        if let Some(verifying) = &mut self.verifying {
            verifying.verdict.registers += 1;
            verifying.agreed = count;
        }
        Ok(())
    }

    /// The registers that such an instruction never changes.
    fn compare_chance(&mut self, after: &user_regs_struct) -> Result<()> {
        let (tid, before) = (self.now.running, self.registers()?);
        let code = self.process.bytes(before.rip, LONGEST);
        let instruction = Decoder::new(64, &code, DecoderOptions::NONE).decode();
        if changes_registers_alone(&instruction) {
            // It may go anywhere.
            return Ok(());
        }
        for (name, expected, found) in [
            ("rsp", after.rsp, before.rsp),
            ("rbp", after.rbp, before.rbp),
            ("fs_base", after.fs_base, before.fs_base),
        ] {
            let what = format!("{name} after an instruction that leaves it");
            // rdrand may have any destination.
            if name == "fs_base" || before.rip.wrapping_add(2) == after.rip {
                self.same(tid, &what, expected, found)?;
            }
        }
        if !(before.rip + 1..before.rip + 16).contains(&after.rip) {
            return self.same(tid, "the next instruction", after.rip, before.rip);
        }
        Ok(())
    }

    /// What a handler returns to is what lies in its frame.
    fn compare_frame(&mut self, context: &Context) -> Result<()> {
        let (tid, now) = (self.now.running, self.registers()?);
        self.same(
            tid,
            "the system call that ends a handler",
            libc::SYS_rt_sigreturn as u64,
            now.rax,
        )?;
        let r = user_regs_struct::from(&context.registers);
        // The order of gregs in ucontext_t.
        let recorded = [
            r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rdi, r.rsi, r.rbp, r.rbx,
            r.rdx, r.rax, r.rcx, r.rsp, r.rip,
        ];
        for (at, expected) in (now.rsp + FRAME_REGISTERS..).step_by(8).zip(recorded) {
            let found = self.process.word(at).unwrap_or(0);
            self.same(tid, "a register in the frame of a signal", expected, found)?;
        }
        Ok(())
    }

    /// Whether the instruction before which a thread stands ends the program, by a fault of arithmetic.
    fn ends_with_arithmetic(&self, tid: i32) -> bool {
        let next = self.recorded.entries.get(self.now.next + 1);
        let Some(Entry::Exit {
            fatal: Some(fatal), ..
        }) = next.as_deref()
        else {
            return false;
        };
        let of_instruction = fatal.signal == libc::SIGFPE && fatal.code > 0;
        of_instruction && fatal.tid == tid && tid == self.now.running
    }

    /// Has the process execute that instruction: the processor tells in MXCSR what was wrong.
    fn fault(&mut self, tid: i32) -> Result<()> {
        let (pid, own) = (self.process.pid, self.registers()?);
        self.lift_limit();
        self.enter(&own)?;
        loop {
            let signal = self.step_on()?;
            let here = self.process.registers_after_step(pid)?.rip;
            let is_there = self.translator.place(here).map(|place| place.pc) == Some(own.rip);
            match signal {
                libc::SIGFPE => return Ok(()),
                libc::SIGTRAP if is_there => {}
                _ => {
                    let (expected, found) = (libc::SIGFPE as u64, signal as u64);
                    return self.same(tid, "the signal at the end", expected, found);
                }
            }
        }
    }

    fn compare_extended(&mut self, tid: i32, expected: u32) -> Result<()> {
        let extended = match self.extended_of(tid) {
            Some(extended) => extended.to_vec(),
            None => self.extended()?,
        };
        let found = digest::of_extended(&extended);
        self.same(
            tid,
            "the digest of the vector registers at the end",
            u64::from(expected),
            u64::from(found),
        )
    }

    fn compare_memory(&mut self, tid: i32, hashed: &Hashed) -> Result<()> {
        let mut state = 0;
        let mut bytes = vec![0; 64 * PAGE];
        let mut at = hashed.start;
        while at < hashed.end {
            let wanted = bytes.len().min((hashed.end - at) as usize);
            let part = &mut bytes[..wanted];
            let count = self.process.read(at, part);
            for (number, page) in (at / PAGE as u64..).zip(part[..count].chunks_exact(PAGE)) {
                state = digest::add_page(state, number, page);
            }
            if count < wanted {
                let what = format!("memory at {:#x}", at + count as u64);
                return Err(self.contradicts(
                    tid,
                    &what,
                    String::from("memory"),
                    String::from("none"),
                ));
            }
            at += wanted as u64;
        }
        let what = format!(
            "the digest of the memory from {:#x} to {:#x} at the end",
            hashed.start, hashed.end
        );
        self.same(tid, &what, hashed.hash, state)?;
        if let Some(verifying) = &mut self.verifying {
            verifying.verdict.memory += hashed.end - hashed.start;
        }
        Ok(())
    }

    /// How the program ended is what it asked for.
    fn compare_end(&mut self) -> Result<()> {
        let last = self.recorded.entries.last_but(0);
        let Some(Entry::Exit {
            at,
            code,
            signal: 0,
            ..
        }) = last.as_deref()
        else {
            return Ok(());
        };
        let (tid, count) = (self.now.running, self.now.count);
        self.same(tid, "the position of the end", *at, count)?;
        let before = self.recorded.entries.last_but(1);
        if matches!(
            before.as_deref(),
            Some(Entry::Gap { .. } | Entry::Lost { .. } | Entry::Executed { .. })
        ) {
            // It ended after what was recorded.
            return Ok(());
        }
        let r = self.registers()?;
        let ends = [libc::SYS_exit_group, libc::SYS_exit].map(|number| number as u64);
        if !ends.contains(&r.rax) {
            return self.same(tid, "the system call that ends the program", ends[0], r.rax);
        }
        self.same(tid, "the exit code", *code as u64 & 0xff, r.rdi & 0xff)
    }
}

/// Which register makes the difference to the recorded digest, in words, where one bit would.
fn difference(registers: &user_regs_struct, recorded: u32) -> String {
    let off = digest::one_bit_off(registers, recorded);
    off.map_or_else(String::new, |(name, found, other)| {
        format!(", which would have the recorded digest if {name} were {other:#x}, not {found:#x}")
    })
}

/// What an entry stands for, in words.
fn told(entry: &Entry) -> String {
    let at = entry.at();
    match entry {
        Entry::SystemCall { tid, number, .. } => {
            format!("system call {number} of thread {tid} at instruction {at}")
        }
        Entry::Chance { .. } => {
            format!("an instruction whose result was noted (such as rdtsc) at instruction {at}")
        }
        Entry::Repeated { tid, left, .. } => format!(
            "an instruction of thread {tid} that was to be repeated {left} times more at instruction {at}"
        ),
        Entry::Signal { tid, number, .. } => {
            format!("signal {number} to thread {tid} at instruction {at}")
        }
        Entry::Return { .. } => format!("the end of a handler at instruction {at}"),
        Entry::Thread { tid, .. } => format!("the new thread {tid} at instruction {at}"),
        Entry::Code { .. } => format!("a change of code at instruction {at}"),
        Entry::Switch { tid, .. } => format!("thread {tid} going on at instruction {at}"),
        Entry::End { tid, .. } => format!("the end of thread {tid} at instruction {at}"),
        _ => format!("the end at instruction {at}"),
    }
}

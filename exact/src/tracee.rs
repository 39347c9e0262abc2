//! A traced process: its memory, and system calls that it is made to do.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use iced_x86::{Decoder, DecoderOptions, Instruction};
use libc::user_regs_struct;

use crate::error::{Context, Error, Result};
use crate::log::Bytes;
use crate::operands::repeats;
use crate::ptrace;
use crate::system_calls::written::Memory;
use crate::translate::{Code, Translator, layout};

/// Reads a text of /proc. The names of threads and mapped files in it are bytes that need not be UTF-8.
pub(crate) fn proc_text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

const INT3: u8 = 0xcc;
/// Most bytes of an instruction.
const LONGEST: usize = 15;
/// `syscall; int3`
const CALL: [u8; 3] = [0x0f, 0x05, 0xcc];

/// The flag by which the processor steps (TF).
const STEPS: u64 = 1 << 8;

/// What the memory that we add has in common with that of processes made by fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// They do not even get it.
    Nothing,
    /// Translated code, and the table.
    Code,
}

/// A process whose threads are stopped when these functions are used.
pub(crate) struct Tracee {
    pub(crate) pid: i32,
    /// The thread by whose folder /proc shows the process. The first one shows no memory once it has ended.
    pub(crate) shown: i32,
    memory: File,
    /// Where `syscall; int3` lies in its memory, once there is a place of ours.
    call_at: Option<u64>,
    /// Signals that came while it made a system call for us.
    pub(crate) came: Vec<libc::siginfo_t>,
    sharing: Sharing,
    /// What is translated, and recorded, instead of what lies there.
    pub(crate) overlay: Vec<Bytes>,
}

impl Memory for Tracee {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            match self
                .memory
                .read_at(&mut into[done..], address.wrapping_add(done as u64))
            {
                Ok(0) | Err(_) => break,
                Ok(count) => done += count,
            }
        }
        done
    }
}

impl Code for Tracee {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let count = Memory::read(self, address, into);
        self.lay_over(address, &mut into[..count]);
        count
    }
}

impl Tracee {
    pub(crate) fn new(pid: i32, sharing: Sharing) -> Result<Tracee> {
        let path = format!("/proc/{pid}/mem");
        let memory = File::options()
            .read(true)
            .write(true)
            .open(path)
            .context("open the program's memory")?;
        Ok(Tracee {
            pid,
            shown: pid,
            memory,
            call_at: None,
            came: Vec::new(),
            sharing,
            overlay: Vec::new(),
        })
    }

    /// Puts what is recorded instead of it in place of what was read at an address.
    pub(crate) fn lay_over(&self, address: u64, read: &mut [u8]) {
        for Bytes { at, bytes } in &self.overlay {
            for (byte, at) in bytes.iter().zip(*at..) {
                let index = at.wrapping_sub(address) as usize;
                if let Some(place) = read.get_mut(index) {
                    *place = *byte;
                }
            }
        }
    }

    /// From now on calls are made where the thread stands: what is ours is about to go.
    pub(crate) fn give_up_place(&mut self) {
        self.call_at = None;
    }

    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> usize {
        Memory::read(self, address, into)
    }

    pub(crate) fn bytes(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let count = self.read(address, &mut bytes);
        bytes.truncate(count);
        bytes
    }

    pub(crate) fn word(&self, address: u64) -> Result<u64> {
        let mut word = [0; 8];
        match self.read(address, &mut word) {
            8 => Ok(u64::from_le_bytes(word)),
            _ => {
                Err(io::Error::from_raw_os_error(libc::EFAULT)).context("read the program's memory")
            }
        }
    }

    /// Writes, also where the program itself may not.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.memory
            .write_all_at(bytes, address)
            .context("write the program's memory")
    }

    pub(crate) fn set_word(&self, address: u64, word: u64) -> Result<()> {
        self.write(address, &word.to_le_bytes())
    }

    /// Brings the translations of late into the program.
    pub(crate) fn flush(&self, translator: &mut Translator) -> Result<()> {
        for (address, bytes) in translator.take_writes() {
            self.write(address, &bytes)?;
        }
        Ok(())
    }

    /// Has a stopped thread do a system call; returns what the kernel returns.
    pub(crate) fn call(&mut self, tid: i32, number: i64, args: [u64; 6]) -> Result<i64> {
        let before = ptrace::registers(tid).context("read registers")?;
        let at = self.call_at.unwrap_or(before.rip);
        let displaced = match self.call_at {
            Some(_) => None,
            None => {
                let bytes = self.bytes(at, CALL.len());
                self.write(at, &CALL)?;
                Some(bytes)
            }
        };
        let mut registers = before;
        registers.rip = at;
        registers.rax = number as u64;
        registers.orig_rax = u64::MAX;
        [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
            registers.r9,
        ] = args;
        ptrace::set_registers(tid, &registers).context("set registers")?;
        let result = self.wait_for_call(tid, at)?;
        if let Some(bytes) = displaced {
            self.write(at, &bytes)?;
        }
        ptrace::set_registers(tid, &before).context("set registers")?;
        Ok(result)
    }

    fn wait_for_call(&mut self, tid: i32, at: u64) -> Result<i64> {
        loop {
            ptrace::cont(tid, 0).context("resume the program")?;
            let status = loop {
                if let Some((_, status)) =
                    ptrace::wait(tid, false).context("wait for the program")?
                {
                    break status;
                }
            };
            if !libc::WIFSTOPPED(status) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH))
                    .context("have the program make a system call");
            }
            let registers = ptrace::registers(tid).context("read registers")?;
            if libc::WSTOPSIG(status) == libc::SIGTRAP && registers.rip == at + CALL.len() as u64 {
                return Ok(registers.rax as i64);
            }
            if status >> 16 == 0 {
                self.came
                    .push(ptrace::signal_info(tid).context("read the signal")?);
            }
        }
    }

    /// Maps memory at exactly this place, or says that something is there.
    fn map(&mut self, tid: i32, at: u64, length: u64, protection: i32, kind: i32) -> Result<bool> {
        let flags = kind | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        let args = [at, length, protection as u64, flags as u64, u64::MAX, 0];
        let result = self.call(tid, libc::SYS_mmap, args)?;
        if result as u64 == at && self.sharing == Sharing::Nothing {
            // A child made by fork has no use for it.
            self.call(
                tid,
                libc::SYS_madvise,
                [at, length, libc::MADV_DONTFORK as u64, 0, 0, 0],
            )?;
        }
        Ok(result as u64 == at)
    }

    fn code_kind(&self) -> (i32, i32) {
        match self.sharing {
            Sharing::Nothing => (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE),
            // What is shared is written as the program writes.
            Sharing::Code => (
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
                libc::MAP_SHARED,
            ),
        }
    }

    /// Maps the table and the blocks of threads; returns where.
    pub(crate) fn map_low(&mut self, tid: i32, free: &dyn Fn(u64, u64) -> bool) -> Result<u64> {
        let (_, kind) = self.code_kind();
        let both = libc::PROT_READ | libc::PROT_WRITE;
        for at in (0x10..0x7fu64).rev().map(|step| step << 24) {
            let blocks = layout::block(at, 0);
            if free(at, layout::LOW_BYTES)
                && self.map(tid, at, blocks - at, both, kind)?
                && self.map(
                    tid,
                    blocks,
                    at + layout::LOW_BYTES - blocks,
                    both,
                    libc::MAP_PRIVATE,
                )?
            {
                return Ok(at);
            }
        }
        Err(Error::NoRoom)
    }

    /// Maps a cache near `pc`, where `free` does not object, and gives it to the translator.
    pub(crate) fn add_cache(
        &mut self,
        tid: i32,
        translator: &mut Translator,
        pc: u64,
        free: &dyn Fn(u64, u64) -> bool,
    ) -> Result<()> {
        const STEP: u64 = 64 << 20;
        let place = pc & !(STEP - 1);
        let below = (1..15).map(|step| place.wrapping_sub(step * STEP));
        let above = (1..15).map(|step| place.wrapping_add(step * STEP));
        // Below comes first where the program's heap lies above its code, and libraries are mapped downwards from theirs.
        let near: Vec<u64> = match pc {
            0..0x1_0000_0000 => above.rev().collect(),
            0x7000_0000_0000.. => below.rev().chain(above).collect(),
            _ => below.chain(above).collect(),
        };
        // Without randomisation of addresses all libraries lie in the last 4 GiB, below the 128 MiB that are left to the stack.
        const STACK: u64 = 0x7fff_f800_0000;
        let (protection, kind) = self.code_kind();
        for at in near {
            let ok = (0x10000..=STACK - layout::CACHE_BYTES).contains(&at)
                && free(at, layout::CACHE_BYTES);
            if ok && self.map(tid, at, layout::CACHE_BYTES, protection, kind)? {
                translator.add_cache(at);
                self.flush(translator)?;
                self.write(at + 8, &CALL)?;
                self.call_at = Some(at + 8);
                return Ok(());
            }
        }
        Err(Error::NoRoom)
    }

    /// Whether the instruction at `at` is pushf or pushfq.
    pub(crate) fn pushes_flags(&self, at: u64) -> bool {
        let mut code = [0; 3];
        let count = self.read(at, &mut code);
        let prefixes = code[..count]
            .iter()
            .take_while(|byte| matches!(byte, 0x66 | 0x40..=0x4f))
            .count();
        code[..count].get(prefixes) == Some(&0x9c)
    }

    /// The end of the instruction at `at`, if that is one of those on strings that repeat.
    pub(crate) fn end_of_repeated(&self, at: u64) -> Option<u64> {
        self.repeated(at).map(|instruction| instruction.next_ip())
    }

    /// The instruction at `at`, if that is one of those on strings that repeat.
    pub(crate) fn repeated(&self, at: u64) -> Option<Instruction> {
        let mut code = [0; LONGEST];
        let count = self.read(at, &mut code);
        if !code[..count.min(4)]
            .iter()
            .any(|byte| matches!(byte, 0xf2 | 0xf3))
        {
            return None;
        }
        let instruction = Decoder::with_ip(64, &code[..count], at, DecoderOptions::NONE).decode();
        repeats(&instruction).then_some(instruction)
    }

    /// Puts a trap into the code, and returns what it has displaced.
    pub(crate) fn put_trap(&self, at: u64) -> Result<Vec<u8>> {
        let displaced = self.bytes(at, 1);
        self.write(at, &[INT3])?;
        Ok(displaced)
    }

    /// What a step over that instruction pushed has the flag by which the processor steps.
    pub(crate) fn hide_step(&self, tid: i32) -> Result<()> {
        let at = ptrace::registers(tid).context("read registers")?.rsp;
        let mut flags = [0; 2];
        self.read(at, &mut flags);
        self.write(
            at,
            &(u16::from_le_bytes(flags) & !(STEPS as u16)).to_le_bytes(),
        )
    }

    /// The registers. Once popf has been stepped, the kernel takes the flag by which the processor steps for one that the program
    /// has set, until the thread has run without steps; it is taken away here.
    pub(crate) fn registers_after_step(&self, tid: i32) -> Result<user_regs_struct> {
        let mut registers = ptrace::registers(tid).context("read registers")?;
        if registers.eflags & STEPS != 0 {
            registers.eflags &= !STEPS;
            ptrace::set_registers(tid, &registers).context("set registers")?;
        }
        Ok(registers)
    }

    /// The copy of the process that a stopped thread has made by fork(2).
    pub(crate) fn copy(&self, pid: i32) -> Result<Tracee> {
        let mut copy = Tracee::new(pid, self.sharing)?;
        copy.call_at = self.call_at;
        Ok(copy)
    }
}

/// The registers of a thread whose next instruction is at `pc` when nothing of ours is in the way.
pub(crate) fn own_registers(
    process: &Tracee,
    translator: &Translator,
    registers: &user_regs_struct,
    block: u64,
) -> Result<user_regs_struct> {
    let mut own = *registers;
    if own.gs_base == block {
        own.gs_base = 0;
    }
    let Some(place) = translator.place(registers.rip) else {
        return Ok(own);
    };
    own.rip = place.pc;
    if !place.swapped {
        own.r15 = process.word(block + u64::from(layout::SLOT_R15))?;
    }
    if place.saved {
        own.rax = process.word(block + u64::from(layout::SLOT_RAX))?;
        own.rcx = process.word(block + u64::from(layout::SLOT_RCX))?;
    }
    Ok(own)
}

/// Where the x87 unit keeps the address of its last instruction, from the start of XSAVE's layout.
pub(crate) const X87_INSTRUCTION: usize = 8;

/// The x87, SSE and later registers of a thread as they are when nothing of ours is in the way: the x87 unit's last instruction was one
/// of the program.
pub(crate) fn own_extended(translator: &Translator, mut extended: Vec<u8>) -> Vec<u8> {
    if let Some(field) = extended
        .get_mut(X87_INSTRUCTION..)
        .and_then(|rest| rest.first_chunk_mut())
        && let Some(place) = translator.place(u64::from_le_bytes(*field))
    {
        *field = place.pc.to_le_bytes();
    }
    extended
}

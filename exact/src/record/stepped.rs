//! Recording one thread of a program while its tracer single-steps it: all other threads stand still.
//!
//! The tracer keeps the program. It tells here what the thread is about to execute, has it execute that, and tells when it is done. The
//! log is that of any recording; what it cannot hold ends the recording before it happens.

mod call;
mod vdso;

use std::fs;
use std::path::{Path, PathBuf};

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, Register};
use libc::user_regs_struct;

use self::call::Call;
use self::vdso::Overlay;
use super::known::{self, Known};
use super::take::is_waiting;
use crate::abi::RED_ZONE;
use crate::digest;
use crate::error::{Context as _, Result};
use crate::log::{Bytes, Context, Entry, Fatal, Registers, Span, Writer};
use crate::operands::{State, operands, repeats};
use crate::ptrace;
use crate::tracee::{Sharing, Tracee};
use crate::translate::{is_chance, is_unsupported, saves_state, tells_tables, traps_by_number};

/// Registers are compared when it runs again after so many instructions, and at the end.
const CHECKED_EVERY: u64 = 4096;
/// Most bytes of an instruction.
pub const LONGEST_INSTRUCTION: usize = 15;
/// Bytes of the instruction `syscall`.
const SYSCALL: u64 = 2;
/// No frame of a signal is larger (AMX included).
const MOST_FRAME: u64 = 16 << 10;
/// Where the frame of a signal has the instruction pointer (rt_sigframe: return address, then ucontext_t).
const FRAME_RIP: u64 = 8 + 40 + 16 * 8;
/// A call that is made again by restart_syscall(2) (ERESTART_RESTARTBLOCK in the kernel's errno.h).
const RESTART_BLOCK: i64 = -516;

/// A program all of whose threads are stopped by their tracer, the calling thread.
pub struct Standing<'a> {
    pub pid: i32,
    /// The thread that is recorded.
    pub tid: i32,
    /// All threads, with their registers as they are when nothing of the tracer's is in the way.
    pub threads: Vec<(i32, user_regs_struct)>,
    pub command: Vec<String>,
    /// How long it has run unrecorded, in nanoseconds.
    pub ran: u64,
    /// Whether memory at an address is the tracer's own: it is not recorded.
    pub is_hidden: &'a dyn Fn(u64) -> bool,
    /// Whether the file that is mapped at an address is the tracer's own: the program sees its memory, but it is none of its files.
    pub is_own_file: &'a dyn Fn(u64) -> bool,
    /// Puts the program's own bytes in place of the tracer's in what was read at an address, a multiple of 8.
    pub own: &'a dyn Fn(u64, &mut [u8]),
}

/// What a thread is about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ahead {
    /// An instruction. It ends at once.
    Instruction,
    /// A system call, which may wait.
    Call,
    /// It was done already: the thread has moved on.
    Done,
    /// The program ends with this exit code.
    Exit(i32),
    /// Something that cannot be recorded, in words.
    Unrecorded(String),
}

/// What a step has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepping {
    /// The instruction is done.
    Done,
    /// It goes on with the next step: an instruction that repeats, or a system call that was interrupted.
    GoesOn,
}

/// How recording ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The program goes on unrecorded; why, in words.
    GoesOn(String),
    /// The program exits with this code.
    Exit(i32),
    /// A signal ends the program.
    Signal(i32),
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub instructions: u64,
    pub ending: Ending,
    /// Why the log is not whole, if it is not: what the disk said.
    pub refused: Option<String>,
}

/// A recording by single steps.
pub struct Stepped {
    process: Tracee,
    log: Writer,
    tid: i32,
    /// Instructions executed.
    count: u64,
    overlay: Overlay,
    begun: Option<Begun>,
    checked: u64,
    /// Memory that the program can both write and execute.
    written_code: Vec<Span>,
}

/// An instruction that has begun.
struct Begun {
    pc: u64,
    /// The registers before it.
    before: user_regs_struct,
    /// Where it leads if it only goes on.
    next: u64,
    kind: Kind,
}

enum Kind {
    Plain,
    Repeats,
    /// It pushes the flags.
    Flags,
    /// Its results are not seen again: what it stores.
    Chance(Vec<(u64, u64)>),
    Call(Box<Call>),
    /// rt_sigreturn(2)
    Return,
}

impl Stepped {
    /// Begins in a folder that exists. `spare`: a file that is removed when the disk is full. The thread's registers are those that are
    /// given; a call in which it waits is still to be made.
    pub fn begin(from: &Standing<'_>, folder: &Path, spare: Option<PathBuf>) -> Result<Stepped> {
        let mut process = Tracee::new(from.pid, Sharing::Nothing)?;
        let vdso = Known::vdso(from.pid);
        let overlay = vdso.map(|span| Overlay::new(&process, span));
        let overlay = overlay.unwrap_or_default();
        process.overlay = overlay.parts.clone();
        let mut stepped = Stepped {
            process,
            log: Writer::create(folder, spare)?,
            tid: from.tid,
            count: 0,
            overlay,
            begun: None,
            checked: 0,
            written_code: Vec::new(),
        };
        stepped.note_beginning(from)?;
        Ok(stepped)
    }

    /// How many instructions are recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether the thread stands between two instructions of the program's: not in what stands for a function of the vDSO, nor in the
    /// middle of an instruction.
    pub fn is_between(&self, pc: u64) -> bool {
        self.begun.is_none() && !self.overlay.is_inside(pc)
    }

    /// Whether an instruction has begun and is not done: a step of it has not ended, or more are needed.
    pub fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Whether code of the vDSO, in whose middle nothing can begin, lies at an address.
    pub fn is_in_vdso(pid: i32, pc: u64) -> bool {
        let Some(span) = Known::vdso(pid).filter(|span| (span.start..span.end).contains(&pc))
        else {
            return false;
        };
        let process = Tracee::new(pid, Sharing::Nothing);
        process.is_ok_and(|process| !Overlay::new(&process, span).begins_at(pc))
    }

    /// What the disk has said, if it takes no more.
    pub fn is_full(&self) -> bool {
        self.log.refused().is_some()
    }

    fn note_beginning(&mut self, from: &Standing<'_>) -> Result<()> {
        let now = Known::of(&self.process, from.is_hidden)?;
        let mut memory = known::all(&self.process, &now);
        for Bytes { at, bytes } in &mut memory {
            (from.own)(*at, bytes);
            self.process.lay_over(*at, bytes);
        }
        let mut contexts = Vec::new();
        for (tid, registers) in &from.threads {
            let mut own = *registers;
            if is_waiting(&mut own) {
                own.rip -= SYSCALL;
                own.rax = match own.rax as i64 {
                    RESTART_BLOCK => libc::SYS_restart_syscall as u64,
                    _ => own.orig_rax,
                };
                if *tid == self.tid {
                    own.orig_rax = u64::MAX;
                    ptrace::set_registers(*tid, &own).context("set registers")?;
                }
            }
            contexts.push((*tid, context(*tid, &own)?));
        }
        self.find_written_code(&now);
        let mut files = now.files();
        files.retain(|file| !(from.is_own_file)(file.start));
        let first = contexts.iter().position(|(tid, _)| *tid == from.pid);
        let (tid, context) = contexts.remove(first.unwrap_or(0));
        self.log.add(&Entry::Start {
            tid,
            command: from.command.clone(),
            context,
            spans: now.spans(),
            memory,
            files,
        })?;
        let program = fs::read_link(format!("/proc/{}/exe", from.pid))
            .map(|path| path.to_string_lossy().into_owned());
        self.log.add(&Entry::Before {
            nanoseconds: from.ran,
            program: program.unwrap_or_default(),
        })?;
        for (other, context) in contexts {
            self.log.add(&Entry::Thread {
                at: 0,
                tid: other,
                context,
                writes: Vec::new(),
            })?;
        }
        if tid != self.tid {
            self.log.add(&Entry::Switch {
                at: 0,
                tid: self.tid,
                state: None,
                writes: Vec::new(),
            })?;
        }
        Ok(())
    }

    /// The thread is about to execute `code`, which is the program's own at its instruction pointer.
    pub fn ahead(&mut self, code: &[u8]) -> Result<Ahead> {
        let before = self.process.registers_after_step(self.tid)?;
        if let Some(begun) = &self.begun {
            return Ok(match begun.kind {
                Kind::Call(_) | Kind::Return => Ahead::Call,
                _ => Ahead::Instruction,
            });
        }
        if let Some(ahead) = self.ahead_in_overlay(&before)? {
            return Ok(ahead);
        }
        let pc = before.rip;
        let instruction = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
        if let Some(why) = refused(&instruction) {
            return Ok(Ahead::Unrecorded(why));
        }
        let kind = match instruction.mnemonic() {
            Mnemonic::Syscall => return self.call_ahead(&before, pc),
            Mnemonic::Pushf | Mnemonic::Pushfq => Kind::Flags,
            _ if saves_state(&instruction) || tells_tables(&instruction) => {
                Kind::Chance(self.stores(&instruction, &before)?)
            }
            _ if is_chance(&instruction) => Kind::Chance(Vec::new()),
            _ if repeats(&instruction) => Kind::Repeats,
            _ => Kind::Plain,
        };
        self.note_code(&instruction, &before)?;
        self.begun = Some(Begun {
            pc,
            before,
            next: instruction.next_ip(),
            kind,
        });
        Ok(Ahead::Instruction)
    }

    fn find_written_code(&mut self, now: &Known) {
        let both = (libc::PROT_WRITE | libc::PROT_EXEC) as u32;
        self.written_code = now.spans();
        self.written_code
            .retain(|span| span.protection & both == both);
    }

    /// If an instruction writes where code may be, the log says so before it does.
    fn note_code(&mut self, instruction: &Instruction, before: &user_regs_struct) -> Result<()> {
        if self.written_code.is_empty() {
            return Ok(());
        }
        for (start, size) in self.stores(instruction, before)? {
            let end = start.saturating_add(size);
            let mut spans = self.written_code.iter();
            if spans.any(|span| span.start < end && start < span.end) {
                let at = self.count;
                self.log.add(&Entry::Code { at, start, end })?;
            }
        }
        Ok(())
    }

    /// A step has ended, and no signal has come.
    pub fn stepped(&mut self) -> Result<Stepping> {
        let Some(begun) = self.begun.take() else {
            return Ok(Stepping::GoesOn);
        };
        let mut after = self.process.registers_after_step(self.tid)?;
        let is_done = match &begun.kind {
            Kind::Plain => true,
            Kind::Repeats => after.rip != begun.pc,
            Kind::Flags => self.process.hide_step(self.tid).map(|()| true)?,
            Kind::Chance(stores) => self.note_chance(&begun, stores, &after).map(|()| true)?,
            Kind::Call(call) => self.call_has_ended(call, &begun, &mut after)?,
            Kind::Return => {
                let context = context(self.tid, &after)?;
                self.log.add(&Entry::Return {
                    at: self.count,
                    context,
                    writes: Vec::new(),
                })?;
                true
            }
        };
        if !is_done {
            self.begun = Some(begun);
            return Ok(Stepping::GoesOn);
        }
        self.count += 1;
        if self.count - self.checked >= CHECKED_EVERY && !self.overlay.is_inside(after.rip) {
            self.check(&after)?;
        }
        Ok(Stepping::Done)
    }

    /// Whether a signal can be delivered now: the thread is not in what stands for a function of the vDSO.
    pub fn takes_signals(&self) -> Result<bool> {
        let now = ptrace::registers(self.tid).context("read registers")?;
        Ok(self.begun.is_some() || !self.overlay.is_inside(now.rip))
    }

    /// A handler is about to begin.
    pub fn signal_ahead(&mut self) -> Result<user_regs_struct> {
        let now = ptrace::registers(self.tid).context("read registers")?;
        self.note_repeated(&now)?;
        if !matches!(&self.begun, Some(begun) if matches!(begun.kind, Kind::Call(_))) {
            self.begun = None;
        }
        Ok(now)
    }

    /// If the thread is in the middle of an instruction that repeats, what was done before counts as an instruction.
    fn note_repeated(&mut self, now: &user_regs_struct) -> Result<()> {
        let is_in_it = |begun: &mut Begun| {
            matches!(begun.kind, Kind::Repeats) && now.rip == begun.pc && now.rcx < begun.before.rcx
        };
        if self.begun.take_if(is_in_it).is_none() {
            return Ok(());
        }
        self.log.add(&Entry::Repeated {
            at: self.count,
            tid: self.tid,
            left: now.rcx,
        })?;
        self.count += 1;
        Ok(())
    }

    /// The handler of a signal has begun: the thread is at its first instruction. `before`: what [`Self::signal_ahead`] has returned.
    pub fn handler(&mut self, number: i32, before: &user_regs_struct) -> Result<()> {
        let after = self.process.registers_after_step(self.tid)?;
        let top = before.rsp.wrapping_sub(RED_ZONE);
        let length = match top.checked_sub(after.rsp) {
            Some(length) if length <= MOST_FRAME => length,
            // On a stack of its own.
            _ => MOST_FRAME,
        };
        let mut writes = vec![Bytes {
            at: after.rsp,
            bytes: self.process.bytes(after.rsp, length as usize),
        }];
        let interrupted = self.process.word(after.rsp + FRAME_RIP)?;
        let begun = self.begun.take();
        let mut call_done = false;
        if let Some(begun) = &begun
            && let Kind::Call(call) = &begun.kind
        {
            call_done = interrupted == begun.next;
            // What is left of a time to sleep, for example.
            writes.extend(self.written_by(call, before.rax as i64));
        }
        let state = begun
            .is_none()
            .then(|| digest::of_registers(before, before.rip));
        self.log.add(&Entry::Signal {
            at: self.count,
            tid: self.tid,
            number,
            call_done,
            context: context(self.tid, &after)?,
            writes,
            state,
        })?;
        self.count += u64::from(call_done);
        Ok(())
    }

    /// Recording ends here.
    pub fn end(mut self, ending: Ending) -> Result<Recorded> {
        self.leave_overlay()?;
        if let Ok(now) = ptrace::registers(self.tid) {
            self.note_repeated(&now)?;
            if self.begun.is_none() {
                self.check(&now)?;
            }
        }
        let at = self.count;
        let fatal = |signal| Fatal {
            tid: self.tid,
            signal,
            code: 0,
            address: 0,
        };
        let last = match &ending {
            Ending::GoesOn(why) => Entry::Lost {
                at,
                why: why.clone(),
            },
            Ending::Exit(code) => Entry::Exit {
                at,
                code: *code,
                signal: 0,
                fatal: None,
            },
            Ending::Signal(signal) => Entry::Exit {
                at,
                code: 0,
                signal: *signal,
                fatal: Some(fatal(*signal)),
            },
        };
        self.log.add(&last)?;
        let refused = self.log.refused().map(ToString::to_string);
        let is_whole = self.log.finish()?;
        Ok(Recorded {
            instructions: at,
            ending,
            refused: refused.filter(|_| !is_whole),
        })
    }

    /// Notes what the registers are, to compare with when it runs again.
    fn check(&mut self, now: &user_regs_struct) -> Result<()> {
        let extended = ptrace::extended_state(self.tid).context("read registers")?;
        self.checked = self.count;
        self.log.add(&Entry::Check {
            at: self.count,
            tid: self.tid,
            state: digest::of_registers(now, now.rip),
            extended: digest::of_extended(&extended),
            memory: Vec::new(),
        })
    }

    fn note_chance(
        &mut self,
        begun: &Begun,
        stores: &[(u64, u64)],
        after: &user_regs_struct,
    ) -> Result<()> {
        let writes = stores.iter().map(|(at, size)| self.bytes(*at, *size));
        let writes = writes.collect();
        self.log.add(&Entry::Chance {
            at: self.count,
            registers: Registers::from(&plain(after)),
            state: Some(digest::of_registers(&begun.before, begun.pc)),
            writes,
        })
    }

    fn bytes(&self, at: u64, size: u64) -> Bytes {
        Bytes {
            at,
            bytes: self.process.bytes(at, size as usize),
        }
    }

    /// Where an instruction writes.
    fn stores(
        &self,
        instruction: &Instruction,
        before: &user_regs_struct,
    ) -> Result<Vec<(u64, u64)>> {
        let state = State {
            general: *before,
            extended: ptrace::extended_state(self.tid).context("read registers")?,
        };
        let mut info = InstructionInfoFactory::new();
        let word = |at| self.process.word(at).ok();
        let found = operands(&mut info, instruction, &state, &word).into_iter();
        let stores = found.filter(|operand| operand.writes);
        Ok(stores
            .map(|operand| (operand.address, operand.size))
            .collect())
    }
}

/// Registers in which nothing is the tracer's or the kernel's.
fn plain(registers: &user_regs_struct) -> user_regs_struct {
    user_regs_struct {
        orig_rax: u64::MAX,
        gs_base: 0,
        ..*registers
    }
}

fn context(tid: i32, registers: &user_regs_struct) -> Result<Context> {
    Ok(Context {
        registers: Registers::from(&plain(registers)),
        extended: ptrace::extended_state(tid).context("read registers")?,
    })
}

/// Why an instruction cannot be recorded by steps.
fn refused(instruction: &Instruction) -> Option<String> {
    let loads_stack_segment = (0..instruction.op_count())
        .any(|op| instruction.op_register(op) == Register::SS)
        && matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Pop);
    let is_trap = matches!(
        instruction.mnemonic(),
        Mnemonic::Int3 | Mnemonic::Int1 | Mnemonic::Xbegin
    ) || traps_by_number(instruction);
    let is_refused = is_unsupported(instruction) || loads_stack_segment || is_trap;
    is_refused.then(|| {
        let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
        format!("the instruction {name} cannot be recorded")
    })
}

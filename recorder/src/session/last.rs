//! Records the program's last moment: a fatal signal that the program does not handle, or its exit. The thread waits
//! until its registers, its stack and the program's memory are in the recording.
//!
//! The records are those of live control for such a signal: the exception, a memory snapshot, the stop. They hide that
//! the thread is in our code: the registers are those that the signal interrupted.

use std::{fs::File, os::unix::fs::FileExt};

use agent::shared::Last;
use exact::abi::{RED_ZONE, XMM_OFFSET};
use store::control::{
    ByteBuf, Control, Exception, ExceptionPhase, MAX_STACK_LEN, Pause, PauseReason, SavedRegisters,
    SnapshotReason,
};

use super::{STOP_PATIENCE, Session, entering::Entering, space_of};
use crate::arm::{LoadedModule, patch::Prepared};
use crate::{
    Death, Exit, SnapshotTimes, clock,
    drain::Drain,
    process::status::may_sleep,
    return_trampoline::{ReturnTrampoline, unhook},
    snapshot::{self, SharedSnapshots},
    stop::{StoppedProcess, interrupted, memory::read_up_to},
};

/// If a program uses more memory, it is copied at its end only if that takes a small share of its time.
const LARGE: u64 = 1 << 30;
/// Length in bytes of a `ucontext_t` up to and including the pointer to the vector registers (asm/ucontext.h and
/// asm/sigcontext.h).
const CONTEXT_LEN: usize = 232;
/// Offset of the general registers in it.
const GENERAL_AT: usize = 40;
/// Number of bytes of a `siginfo_t` to read.
const INFO_LEN: usize = 24;
/// Sent by the kernel, which does not know the address (asm-generic/siginfo.h).
const SI_KERNEL: i32 = 0x80;

/// A function that every C library calls at a program's end: a static program without it has no symbols.
const ALWAYS_THERE: &str = "_Exit";
/// Functions by which a program without glibc's dynamic linker asks about signals, each with its names.
const ASKS: [&[&str]; 2] = [&["__libc_sigaction", "sigaction"], &["sigaltstack"]];

/// Returns whether a program without glibc's dynamic linker does not notice a handler of ours: each function that could tell it
/// is replaced, or is known not to be there.
pub(super) fn hides_handlers(modules: &[LoadedModule], prepared: &[Prepared]) -> bool {
    let is_replaced = |name: &&str| prepared.iter().any(|prepared| prepared.replaces(name));
    let exists = |name: &&str| {
        let mut files = modules.iter().filter_map(|module| module.elf.as_ref());
        files.any(|file| file.address_of(name).is_some())
    };
    is_replaced(&ALWAYS_THERE)
        && ASKS
            .iter()
            .all(|names| names.iter().any(is_replaced) || !names.iter().any(exists))
}

/// The captured state of a thread.
struct Seen {
    registers: SavedRegisters,
    stack_addr: u64,
    stack: Vec<u8>,
}

/// What the kernel reports about a signal.
struct Told {
    addr: Option<u64>,
    /// The sender, if it is another process.
    sender: Option<i32>,
}

impl Session {
    /// Records the program's last moment, if it has come.
    pub(super) fn look_at_the_end(
        &mut self,
        drain: &mut Drain<'_>,
        incomplete: &mut Option<String>,
        observer: &dyn crate::Observer,
    ) {
        let Some(last) = self.shared.take_last() else {
            return;
        };
        // The copy of memory takes a while. It is not part of the calls that were open.
        let came = clock::ticks();
        self.shared
            .last_taken(!may_sleep(self.target.pid, last.tid));
        // Earlier records are still in the rings.
        self.pass(drain, incomplete, observer);
        if incomplete.is_none() {
            let written = match last.signal {
                Some(signal) => self.write_down_death(last, signal, came),
                None => self.copy_at_exit(),
            };
            *incomplete = written.err().map(|error| error.one_line());
        }
        self.shared.last_done();
    }

    /// Records how the program ended if it did not wait for that. For example, nothing in it can see a SIGKILL.
    pub(super) fn note_death(&mut self, exit: Exit) -> store::Result<()> {
        let Exit::Signal(signal) = exit else {
            return Ok(());
        };
        if self
            .death
            .as_ref()
            .is_some_and(|death| death.signal == signal)
        {
            return Ok(());
        }
        if self.writing.log.fatal() == Some(signal) {
            return Ok(());
        }
        self.death = None;
        self.writing
            .log
            .append_control(&Control::Exception(exception(
                clock::ticks(),
                0,
                signal,
                None,
                None,
            )))
    }

    fn write_down_death(&mut self, last: Last, signal: i32, came: u64) -> store::Result<()> {
        let pid = self.target.pid;
        let told = told(pid, &last, signal);
        let snapshots = self.snapshots_at_end();
        let leave = self.runtime.code.leave;
        let looked = self
            .stopper
            .while_stopped(pid, STOP_PATIENCE, move |process| {
                let copied = snapshots.map(|all| snapshot::take(&all, SnapshotReason::Pause));
                (copied, look(process, &last, &leave))
            });
        let (copied, seen) = match looked {
            Ok((copied, seen)) => (copied, seen),
            // Another tracer holds the program. The signal is still known.
            Err(_) => (None, None),
        };
        let message = told
            .sender
            .map(|sender| format!("sent by process {sender}"));
        let tid = last.tid;
        self.writing
            .log
            .append_control(&Control::Exception(exception(
                came, tid, signal, told.addr, message,
            )))?;
        let made = u64::from(matches!(copied, Some(Ok(_))));
        self.note_copy(copied)?;
        self.account_for_copies(made)?;
        let mut death = Death {
            signal,
            tid,
            addr: told.addr,
            function: None,
            file: None,
            line: None,
        };
        if let Some(mut seen) = seen {
            self.undo_hooks(&mut seen, memory_of(pid, tid).as_ref());
            let pc = seen.registers.general[RIP];
            let space = space_of(&self.arming.modules);
            let line = space.line_at(pc);
            death.function = space.function_at(pc).map(|function| function.name);
            death.file = line.as_ref().map(|line| line.file.to_string());
            death.line = line.as_ref().map(|line| line.line);
            let pause = pause(&death, pc, seen);
            self.writing
                .log
                .append_control(&Control::Pause(Box::new(pause)))?;
        }
        self.death = Some(death);
        Ok(())
    }

    /// Takes the last snapshot.
    fn copy_at_exit(&mut self) -> store::Result<()> {
        let is_regular = matches!(
            self.options.snapshots,
            SnapshotTimes::Every(_) | SnapshotTimes::EveryEvents(_)
        );
        let snapshots = self.copies.snapshots.clone();
        let Some(snapshots) = snapshots.filter(|all| is_regular || snapshot::is_due(all)) else {
            return Ok(());
        };
        let copied = self
            .stopper
            .while_stopped(self.target.pid, STOP_PATIENCE, move |_| {
                snapshot::take(&snapshots, SnapshotReason::Exit)
            });
        let copied = copied.ok();
        let made = u64::from(matches!(copied, Some(Ok(_))));
        self.note_copy(copied)?;
        self.account_for_copies(made)
    }

    fn note_copy(
        &mut self,
        copied: Option<std::io::Result<store::control::Snapshot>>,
    ) -> store::Result<()> {
        match copied {
            None => Ok(()),
            Some(Ok(snapshot)) => self
                .writing
                .log
                .append_control(&Control::Snapshot(snapshot)),
            Some(Err(error)) => self.writing.log.append_control(&Control::Warning {
                ticks: clock::ticks(),
                message: format!("memory could not be copied at the end: {error}"),
            }),
        }
    }

    fn snapshots_at_end(&self) -> Option<SharedSnapshots> {
        let is_small = snapshot::resident(self.target.pid).is_ok_and(|bytes| bytes <= LARGE);
        self.copies
            .snapshots
            .clone()
            .filter(|all| is_small || snapshot::is_due(all))
    }

    /// Restores a thread, and the code that its signal handlers have interrupted, to where they would be without our
    /// hooks.
    fn undo_hooks(&self, seen: &mut Seen, memory: Option<&File>) {
        let Seen {
            registers,
            stack_addr,
            stack,
        } = seen;
        self.undo_in(&mut registers.general, *stack_addr, stack, memory);
        for found in interrupted(stack, *stack_addr) {
            let at = (found.slot - *stack_addr) as usize;
            let context = at.checked_sub(GENERAL_AT + 8 * RIP_IN_CONTEXT);
            let Some(kept) = context.and_then(|from| stack.get(from..from + CONTEXT_LEN)) else {
                continue;
            };
            let mut general = general(kept, [0; 8]);
            self.undo_in(&mut general, *stack_addr, stack, memory);
            if general[RIP] != found.rip {
                let first = at - 8 * RIP_IN_CONTEXT;
                for (register, number) in CHANGED {
                    let slot = first + 8 * number;
                    stack[slot..slot + 8].copy_from_slice(&general[register].to_le_bytes());
                }
            }
        }
    }

    fn undo_in(
        &self,
        general: &mut [u64; store::control::GENERAL_REGISTERS],
        stack_addr: u64,
        stack: &[u8],
        memory: Option<&File>,
    ) {
        let armer = self.armer();
        if let Some(original) = armer.original_pc(general[RIP]) {
            general[RIP] = original;
            return;
        }
        let entering = Entering {
            entry_of_stub: &|at| armer.entry_of_stub(at),
            enter: &self.runtime.code.enter,
        };
        // A handler on an alternate stack has interrupted code on another stack.
        entering.undo(general, &|address| {
            let kept = address.checked_sub(stack_addr).map(|at| at as usize);
            let kept = kept.and_then(|at| stack.get(at..at.checked_add(8)?));
            let mut word = [0; 8];
            match kept {
                Some(bytes) => word.copy_from_slice(bytes),
                None => memory?.read_exact_at(&mut word, address).ok()?,
            }
            Some(u64::from_le_bytes(word))
        });
    }
}

/// Index of rip among the general registers of a `ucontext_t`.
const RIP_IN_CONTEXT: usize = 16;
/// The registers that undoing a hook changes: index in [`SavedRegisters::general`], and in a `ucontext_t`.
const CHANGED: [(usize, usize); 6] = [
    (R11, 3),
    (RDX, 12),
    (RAX, 13),
    (RCX, 14),
    (RSP, 15),
    (RIP, RIP_IN_CONTEXT),
];

/// Indices in [`SavedRegisters::general`].
pub(super) const RAX: usize = 10;
pub(super) const RCX: usize = 11;
pub(super) const RDX: usize = 12;
pub(super) const RIP: usize = 16;
pub(super) const R11: usize = 6;
pub(super) const RSP: usize = 19;

fn exception(
    ticks: u64,
    tid: u32,
    signal: i32,
    addr: Option<u64>,
    message: Option<String>,
) -> Exception {
    Exception {
        ticks,
        tid,
        signal: Some(signal),
        type_name: None,
        phase: ExceptionPhase::Unhandled,
        addr,
        message,
    }
}

fn pause(death: &Death, pc: u64, seen: Seen) -> Pause {
    Pause {
        ticks: clock::ticks(),
        tid: death.tid,
        reason: PauseReason::Signal,
        probe: None,
        hits: None,
        pc,
        function: death.function.clone(),
        file: death.file.clone(),
        line: death.line,
        registers: Some(seen.registers),
        stack_addr: seen.stack_addr,
        stack: ByteBuf::from(seen.stack),
        values: Vec::new(),
        watched: None,
    }
}

fn memory_of(pid: i32, tid: u32) -> Option<File> {
    File::open(format!("/proc/{pid}/task/{tid}/mem")).ok()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Reads what the kernel has reported to the thread about the signal.
fn told(pid: i32, last: &Last, signal: i32) -> Told {
    let nothing = Told {
        addr: None,
        sender: None,
    };
    let mut info = [0; INFO_LEN];
    let read = memory_of(pid, last.tid).is_some_and(|memory| {
        last.info <= i64::MAX as u64 && memory.read_exact_at(&mut info, last.info).is_ok()
    });
    if !read {
        return nothing;
    }
    let code = word(&info, 8) as i32;
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
    if code > 0 {
        let has_address = faults.contains(&signal) && code != SI_KERNEL;
        return Told {
            addr: has_address.then(|| word(&info, 16)),
            ..nothing
        };
    }
    let sender = word(&info, 16) as i32;
    Told {
        sender: (sender != pid && sender > 0).then_some(sender),
        ..nothing
    }
}

/// Reads the registers that the signal interrupted, and the stack from there on.
fn look(process: &StoppedProcess, last: &Last, leave: &ReturnTrampoline) -> Option<Seen> {
    let memory = memory_of(process.pid(), last.tid)?;
    let mut context = [0; CONTEXT_LEN];
    memory.read_exact_at(&mut context, last.context).ok()?;
    let now = process.regs(last.tid as i32).ok()?;
    let mut vectors = [[0; 16]; 16];
    let state = word(&context, CONTEXT_LEN - 8);
    for (number, vector) in vectors.iter_mut().enumerate() {
        let at = state.checked_add((XMM_OFFSET + 16 * number) as u64)?;
        memory.read_exact_at(vector, at).ok()?;
    }
    let others = [
        now.cs,
        now.ss,
        now.fs_base,
        now.gs_base,
        now.ds,
        now.es,
        now.fs,
        now.gs,
    ];
    let general = general(&context, others);
    let (stack_addr, stack) = stack(&memory, general[RSP], leave);
    Some(Seen {
        registers: SavedRegisters { general, vectors },
        stack_addr,
        stack,
    })
}

/// Orders the registers of a `ucontext_t`. `others` are cs, ss, the bases of fs and gs, ds, es, fs and gs, which a
/// handler shares with the code it interrupts.
fn general(context: &[u8], others: [u64; 8]) -> [u64; store::control::GENERAL_REGISTERS] {
    let [cs, ss, fs_base, gs_base, ds, es, fs, gs] = others;
    let at = |number: usize| word(context, GENERAL_AT + 8 * number);
    let [r8, r9, r10, r11, r12, r13, r14, r15] = std::array::from_fn(at);
    let [rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags] =
        std::array::from_fn(|number| at(8 + number));
    [
        r15,
        r14,
        r13,
        r12,
        rbp,
        rbx,
        r11,
        r10,
        r9,
        r8,
        rax,
        rcx,
        rdx,
        rsi,
        rdi,
        u64::MAX,
        rip,
        cs,
        eflags,
        rsp,
        ss,
        fs_base,
        gs_base,
        ds,
        es,
        fs,
        gs,
    ]
}

/// Reads the stack from the red zone on, as far as it is mapped: after a stack overflow it begins above the stack
/// pointer.
fn stack(memory: &File, sp: u64, leave: &ReturnTrampoline) -> (u64, Vec<u8>) {
    const PAGE: u64 = 4096;
    let first = sp.saturating_sub(RED_ZONE) & !7;
    let next_page = (first & !(PAGE - 1)).saturating_add(PAGE);
    for start in [first, sp & !7, next_page] {
        let mut bytes = read_up_to(memory, start, MAX_STACK_LEN);
        if !bytes.is_empty() {
            unhook(memory, leave, start, &mut bytes);
            return (start, bytes);
        }
    }
    (0, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::control::REGISTER_NAMES;

    #[test]
    fn registers_of_a_context_get_to_their_names() {
        let mut context = [0; CONTEXT_LEN];
        for number in 0..17 {
            let at = GENERAL_AT + 8 * number;
            context[at..at + 8].copy_from_slice(&(number as u64 + 1).to_le_bytes());
        }
        let fs_base_of_others = 2;
        let mut others = [0; 8];
        others[fs_base_of_others] = 77;
        let general = general(&context, others);
        let named = |name: &str| {
            let at = REGISTER_NAMES.iter().position(|other| *other == name);
            general[at.unwrap()]
        };
        let order = [
            "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx",
            "rdx", "rax", "rcx", "rsp", "rip",
        ];
        for (number, name) in order.into_iter().enumerate() {
            assert_eq!(named(name), number as u64 + 1, "{name}");
        }
        assert_eq!(named("fs_base"), 77);
        for (at, name) in [
            (RAX, "rax"),
            (RCX, "rcx"),
            (RDX, "rdx"),
            (RIP, "rip"),
            (R11, "r11"),
            (RSP, "rsp"),
        ] {
            assert_eq!(REGISTER_NAMES[at], name);
        }
    }
}

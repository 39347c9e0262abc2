//! Decodes what the kernel reports of a halted thread.

use crate::{
    live::{event_loop::Tracer, model::Tid, probes::happenings::Done},
    stop::ptrace,
};

/// Why a thread has halted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It hit the trap of the site at `address`.
    Trap { address: u64 },
    /// It executed one instruction.
    Stepped,
    /// Debug registers fired: one bit each.
    Watch { bits: u64 },
    /// It is about to receive a signal.
    Signal {
        signal: i32,
        fault_address: Option<u64>,
    },
    /// A function that we called has returned.
    CallReturned,
    /// It was moved within our code, and continues there.
    Redirected,
    /// It is before a system call that is caught.
    Call { number: u64 },
    /// It has created a process or executed a program.
    Done(Done),
}

// Codes of SIGTRAP (asm-generic/siginfo.h).
const SI_KERNEL: i32 = 0x80;
const TRAP_BRKPT: i32 = 1;
const TRAP_TRACE: i32 = 2;
const TRAP_HWBKPT: i32 = 4;
/// A single-step has entered a signal handler (`signal_setup_done` in kernel/signal.c).
const ENTERED_HANDLER: i32 = libc::SIGTRAP;

/// INT1, which raises a debug trap (Intel SDM volume 2, INT n/INTO/INT3/INT1).
const INT1: u8 = 0xf1;

/// Decodes a signal-delivery-stop with `signal`. Resets the pc of a thread at a trap to the trap's address.
pub(crate) fn decode(tracer: &mut Tracer, tid: Tid, signal: i32) -> Event {
    let info = ptrace::stop_info(tid).ok();
    let code = info.map_or(0, |info| info.si_code);
    let plain = Event::Signal {
        signal,
        fault_address: info
            .filter(|_| is_fault(signal) && code > 0 && code != SI_KERNEL)
            .map(|info| {
                // SAFETY: the kernel fills the address for these signals.
                unsafe { info.si_addr() as u64 }
            }),
    };
    if pass_touch(tracer, tid, signal) {
        return Event::Redirected;
    }
    if redirect(tracer, tid, signal) {
        tracer.breakpoints.compiling.has_faulted(tid);
        return Event::Redirected;
    }
    if signal != libc::SIGTRAP {
        return plain;
    }
    let debug_status = ptrace::debug_register(tid, 6).unwrap_or(0);
    let bits = debug_status & 0xf;
    match code {
        TRAP_HWBKPT | TRAP_TRACE if bits != 0 && tracer.probes.watchpoints.are_set() => {
            let _ = ptrace::set_debug_register(tid, 6, 0);
            // Accesses by our own code are not the program's.
            match tracer.is_judging(tid) {
                true => Event::Redirected,
                false => Event::Watch { bits },
            }
        }
        TRAP_TRACE | TRAP_HWBKPT | ENTERED_HANDLER => Event::Stepped,
        SI_KERNEL => trap(tracer, tid).unwrap_or(plain),
        TRAP_BRKPT => without_reason(tracer, tid).unwrap_or(plain),
        _ => plain,
    }
}

/// Determines the cause of a debug trap whose reason is lost.
///
/// If DR6 is empty, the kernel reports `TRAP_BRKPT`: it takes the trap for the instruction `int1` (`exc_debug_user` in
/// arch/x86/kernel/traps.c). Under a hypervisor DR6 is also empty after about one single-step in 300,000.
fn without_reason(tracer: &Tracer, tid: Tid) -> Option<Event> {
    let pc = ptrace::registers(tid).ok()?.rip;
    let mut before = [0];
    if tracer
        .tracee
        .memory
        .read(pc.wrapping_sub(1), &mut before)
        .is_ok()
        && before == [INT1]
    {
        return None;
    }
    let is_stepping = tracer.tracee.threads.get(&tid)?.is_stepping;
    if !tracer.probes.watchpoints.are_set() {
        return is_stepping.then_some(Event::Stepped);
    }
    if tracer.is_judging(tid) {
        return Some(Event::Redirected);
    }
    // A single-step traps by itself: then only a changed watched value proves an access.
    let bits = match is_stepping {
        true => tracer.probes.watchpoints.of_writes(),
        false => tracer.probes.watchpoints.all(),
    };
    Some(Event::Watch { bits })
}

fn trap(tracer: &Tracer, tid: Tid) -> Option<Event> {
    let registers = ptrace::registers(tid).ok()?;
    let at = registers.rip.wrapping_sub(1);
    if tracer.is_call_return(at) {
        return Some(Event::CallReturned);
    }
    let site = tracer.breakpoints.sites.by_trap(at)?;
    ptrace::set_rip(tid, site.patched_at).ok()?;
    Some(Event::Trap {
        address: site.address,
    })
}

/// Handles a fault of the runtime's load that finds out whether memory of the program can be read.
fn pass_touch(tracer: &Tracer, tid: Tid, signal: i32) -> bool {
    let runtime = tracer.breakpoints.compiling.runtime;
    let Some((load, fault)) = runtime.and_then(|runtime| runtime.touch) else {
        return false;
    };
    matches!(signal, libc::SIGSEGV | libc::SIGBUS)
        && ptrace::registers(tid).is_ok_and(|registers| registers.rip == load)
        && ptrace::set_rip(tid, fault).is_ok()
}

/// Handles a fault of a load in compiled code: the code continues where there is no answer.
pub(crate) fn redirect(tracer: &Tracer, tid: Tid, signal: i32) -> bool {
    if !matches!(signal, libc::SIGSEGV | libc::SIGBUS) {
        return false;
    }
    let Ok(registers) = ptrace::registers(tid) else {
        return false;
    };
    let target = tracer.breakpoints.sites.no_answer_at(registers.rip);
    let target = target.or_else(|| tracer.breakpoints.compiling.after_fault(registers.rip));
    target.is_some_and(|target| ptrace::set_rip(tid, target).is_ok())
}

fn is_fault(signal: i32) -> bool {
    matches!(
        signal,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE
    )
}

//! Decodes what the kernel reports of a halted thread.

use super::{Tracee, stopped::Stopped};
use crate::live::{
    breakpoints::Breakpoints,
    model::Tid,
    probes::{happenings::Done, watchpoints::Watchpoints},
    remote_call::RemoteCalls,
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

/// What a report is decoded with.
pub(crate) struct Decoding<'a> {
    pub breakpoints: &'a mut Breakpoints,
    pub tracee: &'a Tracee,
    pub watchpoints: &'a Watchpoints,
    pub calls: &'a RemoteCalls,
}

impl Decoding<'_> {
    /// Decodes a signal-delivery-stop with `signal`. Resets the pc of a thread at a trap to the trap's address.
    pub fn decode(self, tid: Tid, signal: i32) -> Event {
        let tracee = self.tracee;
        let Ok(stopped) = tracee.stopped(tid) else {
            return Event::Signal {
                signal,
                fault_address: None,
            };
        };
        let info = stopped.info().ok();
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
        if self.breakpoints.passes_fault(&stopped, signal) {
            return Event::Redirected;
        }
        if signal != libc::SIGTRAP {
            return plain;
        }
        let debug_status = stopped.debug_register(6).unwrap_or(0);
        let bits = debug_status & 0xf;
        match code {
            TRAP_HWBKPT | TRAP_TRACE if bits != 0 && self.watchpoints.are_set() => {
                let _ = stopped.set_debug_register(6, 0);
                // Accesses by our own code are not the program's.
                match self.breakpoints.is_judging(&stopped) {
                    true => Event::Redirected,
                    false => Event::Watch { bits },
                }
            }
            TRAP_TRACE | TRAP_HWBKPT | ENTERED_HANDLER => Event::Stepped,
            SI_KERNEL => {
                let event = self.trap(&stopped).unwrap_or(plain);
                if let (Event::Trap { .. }, Some(info)) = (&event, info) {
                    settle(&stopped, info);
                }
                event
            }
            TRAP_BRKPT => self.without_reason(tid, &stopped).unwrap_or(plain),
            _ => plain,
        }
    }

    /// Determines the cause of a debug trap whose reason is lost.
    ///
    /// If DR6 is empty, the kernel reports `TRAP_BRKPT`: it takes the trap for the instruction `int1` (`exc_debug_user`
    /// in arch/x86/kernel/traps.c). Under a hypervisor DR6 is also empty after about one single-step in 300,000.
    fn without_reason(&self, tid: Tid, stopped: &Stopped<'_>) -> Option<Event> {
        let pc = stopped.registers().ok()?.rip;
        let mut before = [0];
        let read = self.tracee.memory.read(pc.wrapping_sub(1), &mut before);
        if read.is_ok() && before == [INT1] {
            return None;
        }
        let is_stepping = self.tracee.threads.get(&tid)?.is_stepping;
        if !self.watchpoints.are_set() {
            return is_stepping.then_some(Event::Stepped);
        }
        if self.breakpoints.is_judging(stopped) {
            return Some(Event::Redirected);
        }
        // A single-step traps by itself: then only a changed watched value proves an access.
        let bits = match is_stepping {
            true => self.watchpoints.of_writes(),
            false => self.watchpoints.all(),
        };
        Some(Event::Watch { bits })
    }

    fn trap(&self, stopped: &Stopped<'_>) -> Option<Event> {
        let registers = stopped.registers().ok()?;
        let at = registers.rip.wrapping_sub(1);
        if self.calls.is_call_return(at) {
            return Some(Event::CallReturned);
        }
        let site = self.breakpoints.sites.by_trap(at)?;
        stopped.set_pc(site.patched_at).ok()?;
        Some(Event::Trap {
            address: site.address,
        })
    }
}

/// Makes the SIGTRAP of a trap that was handled one of a step. If we die, the thread receives it, and the runtime's handler would move
/// the thread back to the trap, where it already is.
fn settle(stopped: &Stopped<'_>, mut info: libc::siginfo_t) {
    info.si_code = TRAP_TRACE;
    // On failure the thread was killed; its end will be reported.
    let _ = stopped.set_info(&info);
}

fn is_fault(signal: i32) -> bool {
    matches!(
        signal,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE
    )
}

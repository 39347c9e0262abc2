//! Why the process has stopped. The kernel tells it by the signal's code (sigaction(2)), the processor by debug register 6 (Intel, volume
//! 3, 19.2.3: DR6). In a virtual machine DR6 may be lost, or be that of an earlier stop: Linux's KVM did so before version 6.14, if the
//! host was busy at that moment. What remains then is that there was a debug exception.

use std::io;

use super::Replay;
use super::search::{CONTROL, STATUS};
use crate::error::{Context as _, Error, Result};
use crate::ptrace;

/// The bits of DR6 that tell which debug registers were hit.
const HITS: u64 = 0xf;
/// The one byte of the instruction int1.
const INT1: u8 = 0xf1;

/// What is known of a stop with SIGTRAP.
#[derive(Debug, Clone, Copy)]
struct Stop {
    /// The signal's code (`si_code`).
    code: i32,
    /// DR6.
    status: u64,
    /// Whether it was to execute one instruction.
    stepped: bool,
    /// Whether bytes are watched.
    watched: bool,
    /// Whether it stands behind an int1 of the program.
    behind_int1: bool,
}

/// Why the process has stopped with SIGTRAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// It has executed the one instruction that it was to execute.
    Step,
    /// It has written watched bytes.
    Write,
    /// It may have done so: nothing else is known that would have stopped it, and DR6 does not tell.
    Unsure,
    /// Bytes that nobody watches any more were written.
    Late,
    /// By an instruction that traps, or for a reason that is not known.
    Trap,
}

fn cause(stop: Stop) -> Cause {
    let told = stop.watched && stop.status & HITS != 0;
    match (stop.code, stop.stepped) {
        (libc::TRAP_BRKPT, false) if stop.behind_int1 => Cause::Trap,
        // DR6 is right if it tells of the step: a step and a hit are one exception.
        (libc::TRAP_TRACE, true) if !told => Cause::Step,
        (libc::TRAP_TRACE, _) | (libc::TRAP_HWBKPT, false) if told => Cause::Write,
        // Without any bit in DR6 the kernel takes it for int1.
        (libc::TRAP_TRACE | libc::TRAP_HWBKPT | libc::TRAP_BRKPT, _) if stop.watched => {
            Cause::Unsure
        }
        (libc::TRAP_HWBKPT | libc::TRAP_BRKPT, true) => Cause::Step,
        (libc::TRAP_HWBKPT, false) => Cause::Late,
        _ => Cause::Trap,
    }
}

/// Whether an instruction has raised the signal, and not somebody who has sent it (sigaction(2): such codes are not positive).
fn is_of_instruction(signal: i32, code: i32) -> bool {
    let kinds = [
        libc::SIGTRAP,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
    ];
    kinds.contains(&signal) && code > 0
}

/// In words, what may have failed.
fn words(known: io::Result<String>) -> String {
    known.unwrap_or_else(|error| format!("unknown ({error})"))
}

impl Replay {
    /// Lets the process run up to a signal of one of its instructions; returns that.
    pub(super) fn run_on(&self) -> Result<i32> {
        self.resume(ptrace::cont)
    }

    /// Has the process execute one instruction; returns the signal with which it stops.
    pub(super) fn step_on(&self) -> Result<i32> {
        self.resume(ptrace::step)
    }

    /// Other stops are passed: signals that were sent to it, which no program that is run again gets, and what ptrace(2) calls events,
    /// as by SIGCONT.
    fn resume(&self, request: fn(i32, i32) -> io::Result<()>) -> Result<i32> {
        let pid = self.process.pid;
        loop {
            request(pid, 0).context("resume the replay")?;
            let status = self.wait()?;
            if status >> 16 != 0 {
                continue;
            }
            let signal = libc::WSTOPSIG(status);
            let info = ptrace::signal_info(pid).context("read the signal")?;
            if is_of_instruction(signal, info.si_code) {
                return Ok(signal);
            }
        }
    }

    fn wait(&self) -> Result<i32> {
        loop {
            if let Some((_, status)) =
                ptrace::wait(self.process.pid, false).context("wait for the replay")?
            {
                if !libc::WIFSTOPPED(status) {
                    return Err(self.diverged("the process has ended"));
                }
                return Ok(status);
            }
        }
    }

    /// Why the process has stopped with SIGTRAP, before the instruction at `rip`.
    pub(super) fn cause(&self, rip: u64, stepped: bool) -> Result<Cause> {
        let pid = self.process.pid;
        let info = ptrace::signal_info(pid).context("read the signal")?;
        let status = ptrace::debug_register(pid, STATUS).context("read a debug register")?;
        Ok(cause(Stop {
            code: info.si_code,
            status,
            stepped,
            watched: self.watch.is_some(),
            behind_int1: info.si_code == libc::TRAP_BRKPT && self.is_behind_int1(rip),
        }))
    }

    /// Other instructions may end with the same byte.
    fn is_behind_int1(&self, rip: u64) -> bool {
        let last = rip.wrapping_sub(1);
        let place = self.translator.place(last);
        place.is_some_and(|place| place.at == last) && self.process.bytes(last, 1) == [INT1]
    }

    /// The process has stopped with a signal for which there is no reason.
    pub(super) fn not_recorded(&self, signal: i32) -> Error {
        let pid = self.process.pid;
        let debug = |number| ptrace::debug_register(pid, number).map(|value| format!("{value:#x}"));
        let code = ptrace::signal_info(pid).map(|info| info.si_code.to_string());
        let rip = ptrace::registers(pid).map(|registers| format!("{:#x}", registers.rip));
        let own = self
            .registers()
            .map(|registers| format!("{:#x}", registers.rip));
        let watched = match &self.watch {
            Some(watch) => format!("{} bytes at {:#x}", watch.length, watch.address),
            None => String::from("nothing"),
        };
        self.diverged(&format!(
            "signal {signal}, which was not recorded (code {}, at address {}, in translated code {}; DR6 {}, DR7 {}, watched: {watched})",
            words(code),
            own.unwrap_or_else(|_| String::from("unknown")),
            words(rip),
            words(debug(STATUS)),
            words(debug(CONTROL)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DR6 with its bits that are always set.
    const EMPTY: u64 = 0xffff_0ff0;
    const STEP: u64 = 1 << 14;

    fn watched(code: i32, status: u64, stepped: bool) -> Cause {
        cause(Stop {
            code,
            status,
            stepped,
            watched: true,
            behind_int1: false,
        })
    }

    fn unwatched(code: i32, status: u64, stepped: bool) -> Cause {
        cause(Stop {
            code,
            status,
            stepped,
            watched: false,
            behind_int1: false,
        })
    }

    #[test]
    fn what_debug_register_6_tells_is_believed() {
        for bit in 0..4 {
            let hit = EMPTY | 1 << bit;
            assert_eq!(watched(libc::TRAP_HWBKPT, hit, false), Cause::Write);
            assert_eq!(watched(libc::TRAP_TRACE, hit | STEP, false), Cause::Write);
            assert_eq!(watched(libc::TRAP_TRACE, hit | STEP, true), Cause::Write);
        }
        assert_eq!(watched(libc::TRAP_TRACE, EMPTY | STEP, true), Cause::Step);
    }

    #[test]
    fn a_debug_exception_without_its_bits_may_be_a_write() {
        for code in [libc::TRAP_BRKPT, libc::TRAP_HWBKPT, libc::TRAP_TRACE] {
            for status in [0, EMPTY, EMPTY | STEP] {
                assert_eq!(watched(code, status, false), Cause::Unsure, "{code}");
            }
        }
        assert_eq!(watched(libc::TRAP_BRKPT, EMPTY, true), Cause::Unsure);
        // The bits of an earlier hit, without that of the step.
        assert_eq!(watched(libc::TRAP_HWBKPT, EMPTY | 1, true), Cause::Unsure);
    }

    #[test]
    fn a_watch_that_is_gone_concerns_nobody() {
        assert_eq!(unwatched(libc::TRAP_HWBKPT, EMPTY | 1, false), Cause::Late);
        assert_eq!(unwatched(libc::TRAP_HWBKPT, EMPTY, false), Cause::Late);
        for code in [libc::TRAP_BRKPT, libc::TRAP_HWBKPT, libc::TRAP_TRACE] {
            assert_eq!(unwatched(code, EMPTY, true), Cause::Step, "{code}");
        }
    }

    #[test]
    fn instructions_that_trap_are_the_program_s() {
        assert_eq!(watched(libc::SI_KERNEL, EMPTY, false), Cause::Trap);
        // What was hit before does not matter.
        assert_eq!(watched(libc::SI_KERNEL, EMPTY | 1, false), Cause::Trap);
        assert_eq!(unwatched(libc::SI_KERNEL, EMPTY, false), Cause::Trap);
        assert_eq!(unwatched(libc::TRAP_BRKPT, EMPTY, false), Cause::Trap);
        assert_eq!(
            unwatched(libc::TRAP_TRACE, EMPTY | STEP, false),
            Cause::Trap
        );
        let int1 = Stop {
            code: libc::TRAP_BRKPT,
            status: EMPTY,
            stepped: false,
            watched: true,
            behind_int1: true,
        };
        assert_eq!(cause(int1), Cause::Trap);
    }

    #[test]
    fn signals_that_are_sent_are_of_no_instruction() {
        for signal in [libc::SIGTRAP, libc::SIGSEGV] {
            assert!(is_of_instruction(signal, libc::SI_KERNEL));
            assert!(is_of_instruction(signal, 1));
            assert!(!is_of_instruction(signal, libc::SI_USER));
            assert!(!is_of_instruction(signal, libc::SI_TKILL));
        }
        assert!(!is_of_instruction(libc::SIGINT, libc::SI_KERNEL));
        assert!(!is_of_instruction(libc::SIGCHLD, libc::CLD_KILLED));
    }
}

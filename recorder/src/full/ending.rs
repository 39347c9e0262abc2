//! The state of a program at its end, as it is when its instructions have been run again.

use debuginfo::AddressSpace;
use exact::{Fatal, Outline, Registers, Replay, abi::vectors};
use store::control::{Exception, ExceptionPhase, Pause, PauseReason, SavedRegisters};

use crate::{Death, Result};

/// Returns whether the program was recorded up to its end.
pub(super) fn is_recorded(outline: &Outline) -> bool {
    let gap = outline.gaps.last();
    let has_left = gap.is_some_and(|gap| gap.nanoseconds.is_none());
    !has_left && outline.lost.is_none() && outline.executed.is_none()
}

/// Returns when the program ended. What was not recorded before counts as one instruction: nothing is known of it.
pub(super) fn ticks(outline: &Outline) -> u64 {
    outline.end + u64::from(!is_recorded(outline))
}

/// Runs to the end and describes the thread that a signal ended there.
pub(super) fn stop(
    replay: &mut Replay,
    outline: &Outline,
    space: impl FnOnce(u64) -> AddressSpace,
) -> Result<(Death, Pause)> {
    let end = outline.end;
    replay.goto(end)?;
    let registers = replay.registers()?;
    let extended = replay.extended()?;
    let standing = space(end).standing(registers.rip, 0);
    let tid = replay.thread().cast_unsigned();
    let death = Death {
        signal: outline.signal.unwrap_or(0),
        tid,
        addr: outline.fatal.as_ref().and_then(fault),
        function: standing.function.map(|name| name.to_string()),
        file: standing.source.as_ref().map(|place| place.file.to_string()),
        line: standing.source.as_ref().map(|place| place.line),
    };
    let pause = Pause {
        ticks: end,
        tid,
        reason: PauseReason::Signal,
        probe: None,
        hits: None,
        pc: registers.rip,
        function: death.function.clone(),
        file: death.file.clone(),
        line: death.line,
        registers: Some(SavedRegisters {
            general: Registers::from(&registers).0,
            vectors: vectors(&extended),
        }),
        stack_addr: registers.rsp,
        stack: Vec::new().into(),
        values: Vec::new(),
        watched: None,
    };
    Ok((death, pause))
}

/// What is known of a signal that ended the program.
pub(super) fn exception(outline: &Outline, signal: i32) -> Exception {
    let fatal = outline.fatal.as_ref();
    Exception {
        ticks: ticks(outline),
        tid: fatal.map_or(0, |fatal| fatal.tid.cast_unsigned()),
        signal: Some(signal),
        type_name: None,
        phase: ExceptionPhase::Unhandled,
        addr: fatal.and_then(fault),
        message: fatal
            .and_then(sender)
            .map(|pid| format!("sent by process {pid}")),
    }
}

/// The address whose use was the fault, if the signal is of one. The kernel does not always know it.
fn fault(fatal: &Fatal) -> Option<u64> {
    let is_fault = matches!(
        fatal.signal,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGTRAP
    );
    (is_fault && fatal.code > 0 && fatal.code != libc::SI_KERNEL).then_some(fatal.address)
}

/// The process that sent the signal, if one did.
fn sender(fatal: &Fatal) -> Option<u64> {
    let is_sent = matches!(fatal.code, libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL);
    is_sent.then_some(fatal.address)
}

//! Copies of the process, made by fork(2), so that going back is short.

use libc::user_regs_struct;

use super::pages::Pages;
use super::{Moment, Replay};
use crate::error::{Context as _, Result};
use crate::ptrace;
use crate::tracee::Tracee;

/// Instructions between two copies, at first: some 50 ms of running.
pub(super) const EVERY: u64 = 50_000_000;
/// Copies at most.
const MOST: usize = 64;

/// A copy of the process at a moment. It is stopped, and runs never: it is copied again.
pub(super) struct Checkpoint {
    pub(super) process: Tracee,
    pub(super) moment: Moment,
    registers: user_regs_struct,
    translated: usize,
    /// What was written since the copy before; `None`: that is not known.
    pub(super) written: Option<Pages>,
}

impl Replay {
    /// Keeps a copy of the process as it is.
    pub(super) fn keep(&mut self) -> Result<()> {
        let written = self.written_pages()?;
        let process = self.fork()?;
        let checkpoint = Checkpoint {
            process,
            written,
            moment: self.now.clone(),
            registers: self.registers()?,
            translated: self.translated,
        };
        let index = self
            .checkpoints
            .partition_point(|other| other.moment.count < self.now.count);
        self.checkpoints.insert(index, checkpoint);
        Ok(())
    }

    /// Keeps a copy if the last one is far away.
    pub(super) fn keep_some(&mut self) -> Result<()> {
        let before = self
            .checkpoints
            .partition_point(|other| other.moment.count <= self.now.count);
        let last = self.checkpoints[..before]
            .last()
            .map_or(0, |other| other.moment.count);
        if self.now.count - last < self.every {
            return Ok(());
        }
        if self.checkpoints.len() >= MOST {
            self.thin_out();
        }
        self.keep()
    }

    /// Gives up every second copy.
    fn thin_out(&mut self) {
        self.every *= 2;
        let mut kept: Vec<Checkpoint> = Vec::new();
        let mut gone = Some(Pages::default());
        for (index, mut checkpoint) in self.checkpoints.drain(..).enumerate() {
            if index % 2 == 1 {
                end(checkpoint.process.pid);
                gone = checkpoint.written;
                continue;
            }
            // What was written up to the copy that is gone was written up to this one.
            checkpoint.written = match (checkpoint.written, &gone) {
                (Some(mut written), Some(gone)) => {
                    written.join(gone);
                    Some(written)
                }
                _ => None,
            };
            kept.push(checkpoint);
        }
        self.checkpoints = kept;
    }

    /// The position of the last copy before this one.
    pub(super) fn checkpoint_before(&self, position: u64) -> u64 {
        let before = self
            .checkpoints
            .partition_point(|other| other.moment.count < position);
        self.checkpoints[..before]
            .last()
            .map_or(0, |other| other.moment.count)
    }

    /// Has the process make a copy of itself.
    fn fork(&mut self) -> Result<Tracee> {
        let pid = self.process.pid;
        let child = self.process.call(pid, libc::SYS_fork, [0; 6])? as i32;
        while ptrace::wait(child, false)
            .context("wait for a copy")?
            .is_none()
        {}
        let registers = ptrace::registers(pid).context("read registers")?;
        ptrace::set_registers(child, &registers).context("set registers")?;
        self.process.copy(child)
    }

    /// Goes back, if `goal` lies before now; or forwards, where a copy is nearer.
    pub(super) fn return_to(&mut self, goal: u64) -> Result<()> {
        let before = self
            .checkpoints
            .partition_point(|other| other.moment.count <= goal);
        let Some(index) = before.checked_sub(1) else {
            return Ok(());
        };
        let checkpoint = &self.checkpoints[index];
        if self.now.count <= goal && self.now.count >= checkpoint.moment.count {
            return Ok(());
        }
        self.restore(index)
    }

    /// Goes on from a copy.
    pub(super) fn restore(&mut self, index: usize) -> Result<()> {
        let checkpoint = &self.checkpoints[index];
        let (moment, own, translated) = (
            checkpoint.moment.clone(),
            checkpoint.registers,
            checkpoint.translated,
        );
        let place = self.checkpoints[index].process.pid;
        // The copy makes the process that goes on; the one until now ends.
        let copy = self.checkpoints[index].process.copy(place)?;
        let now = std::mem::replace(&mut self.process, copy);
        end(now.pid);
        let next = self.fork()?;
        self.process = next;
        self.now = moment;
        if translated != self.translated {
            self.translator.forget();
            self.process.flush(&mut self.translator)?;
            self.translated = translated;
        }
        self.enter(&own)
    }
}

/// Ends a process of ours.
fn end(pid: i32) {
    // SAFETY: nobody has waited for it yet.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    while let Ok(Some((_, status))) = ptrace::wait(pid, false) {
        if !libc::WIFSTOPPED(status) {
            break;
        }
    }
}

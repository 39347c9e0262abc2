//! Copies of the process, made by fork(2), so that going back is short.

use libc::user_regs_struct;

use super::pages::Pages;
use super::shared::Content;
use super::{Moment, Replay};
use crate::error::{Context as _, Result};
use crate::ptrace;
use crate::tracee::Tracee;

/// Instructions between two copies, at first: some 25 to 50 ms of running.
const EVERY: u64 = 50_000_000;
/// As many instructions take as long as an entry of the log, which stops the process: some 25 us (system calls and rdtsc, on an AMD EPYC).
const ENTRY: u64 = 50_000;
/// Copies at most.
const MOST: usize = 64;
/// Instructions from a copy near a moment to the moment: steps back from there are short.
const NEAR: u64 = 500_000;
/// So many more instructions that are to run to a moment are worth a copy near it.
const WORTH: u64 = 2_000_000;
/// Copies near moments at most; the oldest goes first.
const MOST_NEAR: usize = 8;

/// A copy of the process at a moment. It is stopped, and runs never: it is copied again.
pub(super) struct Checkpoint {
    pub(super) process: Tracee,
    pub(super) moment: Moment,
    registers: user_regs_struct,
    translated: usize,
    /// What is in memory that all copies share.
    shared: Content,
    /// What was written since the copy before; `None`: that is not known.
    written: Option<Pages>,
}

impl Checkpoint {
    /// Whether nothing since the copy before has written any of these bytes.
    fn is_untouched(&self, address: u64, length: u64) -> bool {
        let written = self.written.as_ref();
        written.is_some_and(|written| !written.touch(address, length))
    }
}

/// All copies, the first one first.
pub(super) struct Checkpoints {
    kept: Vec<Checkpoint>,
    /// Instructions between two of them.
    pub(super) every: u64,
    /// Instructions that an entry counts for.
    pub(super) entry: u64,
    /// Those near moments that were gone to, the oldest one first.
    near: Vec<Checkpoint>,
    /// The process has made one of them, or was made from one, since the last of the others: the kernel does not tell all pages that
    /// were written since then.
    was_near: bool,
}

impl Default for Checkpoints {
    fn default() -> Checkpoints {
        Checkpoints {
            kept: Vec::new(),
            every: EVERY,
            entry: ENTRY,
            near: Vec::new(),
            was_near: false,
        }
    }
}

impl Checkpoints {
    /// How many lie before a position; with those at it, if `at` is set.
    fn count(&self, position: u64, at: bool) -> usize {
        let is_at = |count: u64| at && count == position;
        self.kept
            .partition_point(|kept| kept.moment.count < position || is_at(kept.moment.count))
    }

    /// The number of the last one up to a position.
    pub(super) fn number(&self, position: u64) -> Option<usize> {
        self.count(position, true).checked_sub(1)
    }

    /// The last one up to a position.
    pub(super) fn up_to(&self, position: u64) -> Option<&Checkpoint> {
        self.kept.get(self.number(position)?)
    }

    /// The position of the last one before this one.
    pub(super) fn before(&self, position: u64) -> u64 {
        let last = self.count(position, false).checked_sub(1);
        last.map_or(0, |last| self.kept[last].moment.count)
    }

    /// The first one after a position.
    fn next(&self, position: u64) -> Option<&Checkpoint> {
        self.kept.get(self.count(position, true))
    }

    /// The position of the first one after this one.
    pub(super) fn after(&self, position: u64) -> u64 {
        self.next(position)
            .map_or(u64::MAX, |checkpoint| checkpoint.moment.count)
    }

    /// Whether nothing from the copy before up to this position, where there is a copy, writes any of these bytes.
    pub(super) fn is_untouched(&self, position: u64, address: u64, length: u64) -> bool {
        let checkpoint = self.kept.get(self.count(position, false));
        checkpoint.is_some_and(|checkpoint| {
            checkpoint.moment.count == position && checkpoint.is_untouched(address, length)
        })
    }

    /// If what comes next after a position, up to a copy, writes none of these bytes: where that copy is.
    pub(super) fn untouched_until(&self, position: u64, address: u64, length: u64) -> Option<u64> {
        let checkpoint = self.next(position)?;
        let is_untouched = checkpoint.is_untouched(address, length);
        is_untouched.then_some(checkpoint.moment.count)
    }

    /// How long it takes to run from the start to a moment, in instructions.
    fn cost(&self, moment: &Moment) -> u64 {
        let entries = (moment.next as u64).saturating_mul(self.entry);
        moment.count.saturating_add(entries)
    }

    /// Whether a moment is far from the last copy up to it.
    fn is_far(&self, moment: &Moment) -> bool {
        let Some(last) = self.up_to(moment.count) else {
            return self.cost(moment) >= self.every;
        };
        let since = self.cost(moment).saturating_sub(self.cost(&last.moment));
        last.moment.count < moment.count && since >= self.every
    }

    fn insert(&mut self, checkpoint: Checkpoint) {
        let index = self.count(checkpoint.moment.count, false);
        self.kept.insert(index, checkpoint);
    }

    /// Gives up every second copy.
    fn thin_out(&mut self) {
        self.every *= 2;
        let mut kept: Vec<Checkpoint> = Vec::new();
        let mut gone = Some(Pages::default());
        for (index, mut checkpoint) in self.kept.drain(..).enumerate() {
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
        self.kept = kept;
        // The last one may be gone; what was not known to be written up to it is not known up to the next one either.
        self.was_near |= gone.is_none();
    }

    /// Ends them.
    pub(super) fn end(&mut self) {
        for checkpoint in self.kept.drain(..).chain(self.near.drain(..)) {
            end(checkpoint.process.pid);
        }
    }

    /// Where to go on from to come to a position.
    fn nearest(&self, position: u64) -> Option<Chosen> {
        let is_before = |(_, near): &(usize, &Checkpoint)| near.moment.count <= position;
        let near = self.near.iter().enumerate().filter(is_before);
        let near = near.max_by_key(|(_, near)| near.moment.count);
        let kept = self.number(position)?;
        Some(match near {
            Some((index, near)) if near.moment.count > self.kept[kept].moment.count => {
                Chosen::Near(index)
            }
            _ => Chosen::Kept(kept),
        })
    }

    fn get(&self, chosen: Chosen) -> &Checkpoint {
        match chosen {
            Chosen::Kept(index) => &self.kept[index],
            Chosen::Near(index) => &self.near[index],
        }
    }

    fn insert_near(&mut self, checkpoint: Checkpoint) {
        if self.near.len() >= MOST_NEAR {
            end(self.near.remove(0).process.pid);
        }
        self.near.push(checkpoint);
    }
}

/// One of the copies, by its number.
#[derive(Clone, Copy)]
enum Chosen {
    Kept(usize),
    Near(usize),
}

impl Replay {
    /// Keeps a copy of the process as it is.
    pub(super) fn keep(&mut self) -> Result<()> {
        let written = match self.checkpoints.was_near {
            true => None,
            false => self.written_pages()?,
        };
        let checkpoint = self.checkpoint(written)?;
        self.checkpoints.insert(checkpoint);
        self.checkpoints.was_near = false;
        Ok(())
    }

    fn checkpoint(&mut self, written: Option<Pages>) -> Result<Checkpoint> {
        Ok(Checkpoint {
            process: self.fork()?,
            shared: self.shared_content()?,
            written,
            moment: self.now.clone(),
            registers: self.registers()?,
            translated: self.changes.translated,
        })
    }

    /// Goes to shortly before a moment that lies far ahead, and keeps a copy there.
    pub(super) fn keep_near(&mut self, goal: u64) -> Result<()> {
        // A search in code that notes what it does is not interrupted.
        if self.found.is_some() || goal < self.now.count.saturating_add(NEAR + WORTH) {
            return Ok(());
        }
        self.forward(goal - NEAR)?;
        let checkpoint = self.checkpoint(None)?;
        self.checkpoints.insert_near(checkpoint);
        self.checkpoints.was_near = true;
        Ok(())
    }

    /// Keeps a copy if the last one is far away.
    pub(super) fn keep_some(&mut self) -> Result<()> {
        if !self.checkpoints.is_far(&self.now) {
            return Ok(());
        }
        // Before the copy: its pages are compared with the last one that is left.
        if self.checkpoints.kept.len() >= MOST {
            self.checkpoints.thin_out();
        }
        self.keep()
    }

    /// Has the process make a copy of itself.
    pub(super) fn fork(&mut self) -> Result<Tracee> {
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
        let Some(chosen) = self.checkpoints.nearest(goal) else {
            return Ok(());
        };
        if (self.checkpoints.get(chosen).moment.count..=goal).contains(&self.now.count) {
            return Ok(());
        }
        self.restore_from(chosen)
    }

    /// Goes on from the last copy up to `goal`, wherever the process is.
    pub(super) fn return_anew(&mut self, goal: u64) -> Result<()> {
        match self.checkpoints.nearest(goal) {
            Some(chosen) => self.restore_from(chosen),
            None => Ok(()),
        }
    }

    /// Goes on from a copy.
    pub(super) fn restore(&mut self, index: usize) -> Result<()> {
        self.restore_from(Chosen::Kept(index))
    }

    fn restore_from(&mut self, chosen: Chosen) -> Result<()> {
        self.checkpoints.was_near = matches!(chosen, Chosen::Near(_));
        let checkpoint = self.checkpoints.get(chosen);
        let (moment, own, translated) = (
            checkpoint.moment.clone(),
            checkpoint.registers,
            checkpoint.translated,
        );
        let shared = std::sync::Arc::clone(&checkpoint.shared);
        // The copy makes the process that goes on; the one until now ends.
        let copy = checkpoint.process.copy(checkpoint.process.pid)?;
        let now = std::mem::replace(&mut self.process, copy);
        end(now.pid);
        let next = self.fork()?;
        self.process = next;
        self.now = moment;
        self.set_shared_content(&shared)?;
        let of = std::mem::replace(&mut self.changes.translated, translated);
        self.renew_translations(of)?;
        self.enter(&own)
    }
}

/// Ends a process of ours.
pub(super) fn end(pid: i32) {
    // SAFETY: nobody has waited for it yet.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    while let Ok(Some((_, status))) = ptrace::wait(pid, false) {
        if !libc::WIFSTOPPED(status) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: what was written is known though a copy near a moment was made before every second of the others was given up. Method: a
    //! program writes once to a page of its own. The copies lie so that the one near a moment is made between the write and the last
    //! copy that is given up.

    use tempfile::TempDir;

    use super::*;
    use crate::replay::tested::recorded;

    const SOURCE: &str = r#"
#include <stdio.h>
_Alignas(4096) volatile int once;
_Alignas(4096) volatile unsigned long sum;
int main(void) {
  printf("%p\n", (void *)&once);
  for (unsigned long i = 0; i < 20000000; i++) { sum += i; if (i == 19000000) once = 1; }
}
"#;

    #[test]
    fn copies_that_are_given_up_hide_no_write() {
        let folder = TempDir::new().unwrap();
        let once = recorded(SOURCE, folder.path());
        let open = || Replay::open(folder.path()).unwrap();
        let mut replay = open();
        let end = replay.end();
        let writes = open().writes(once, 4, end, usize::MAX).unwrap();
        let [write] = writes[..] else {
            panic!("{writes:?}")
        };
        // It lies shortly behind the last but one of the copies that there are at most.
        let before = MOST as u64 - 2;
        replay.checkpoints.every = write * 4 / (4 * before + 1);
        replay.checkpoints.entry = 0;
        replay.goto(write + 600_000 + NEAR).unwrap();
        let near: Vec<u64> = (replay.checkpoints.near.iter())
            .map(|near| near.moment.count)
            .collect();
        assert_eq!(near, [write + 600_000]);
        assert_eq!(replay.checkpoints.number(write), Some(MOST - 2));
        replay.goto(end).unwrap();
        assert!(replay.checkpoints.kept.len() < MOST);
        assert_eq!(replay.last_write(once, 4, end).unwrap(), Some(write));
    }

    const CALLS: &str = r#"
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int number;
int main(void) {
  printf("%p\n", (void *)&number);
  for (int i = 0; i < 10000; i++) syscall(SYS_getppid);
}
"#;

    #[test]
    fn copies_lie_between_many_calls() {
        let folder = TempDir::new().unwrap();
        recorded(CALLS, folder.path());
        let mut replay = Replay::open(folder.path()).unwrap();
        let end = replay.end();
        assert!(end < EVERY);
        replay.goto(end).unwrap();
        let kept = replay.checkpoints.kept.iter();
        let entries: Vec<usize> = kept.map(|kept| kept.moment.next).collect();
        assert!(entries.len() >= 10, "{entries:?}");
        let mut apart = entries.windows(2).map(|two| two[1] - two[0]);
        assert!(apart.all(|entries| entries <= 1100), "{entries:?}");
    }
}

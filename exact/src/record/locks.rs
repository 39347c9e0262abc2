//! Locks in whose words the kernel writes at other moments than the ends of calls: when a thread begins to wait for one that inherits
//! priorities (futex(2)), and when a thread ends that holds one (get_robust_list(2)).

use std::time::{Duration, Instant};

use super::Recorder;
use super::system_call::Call;
use crate::log::Bytes;
use crate::ptrace;
use crate::tracee::proc_text;

/// Bytes of a lock's word.
pub(super) const WORD: usize = 4;
/// The kernel looks at no more locks of a thread than these (`ROBUST_LIST_LIMIT`).
const MOST: usize = 2048;
/// In a word: the thread that has the lock; somebody waits for it; the thread has ended.
const OWNER: u32 = 0x3fff_ffff;
const WAITERS: u32 = 0x8000_0000;
const OWNER_DIED: u32 = 0x4000_0000;
/// How long a thread may take until it sleeps in the kernel.
const FALLING_ASLEEP: Duration = Duration::from_millis(100);

/// Where the lock is for which a call waits, if the kernel says in it that somebody does.
pub(super) fn awaited(number: u64, args: &[u64; 6]) -> Option<u64> {
    const FUTEX_LOCK_PI2: i32 = 13;
    let command = args[1] as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    let waits = matches!(command, libc::FUTEX_LOCK_PI | FUTEX_LOCK_PI2);
    (number == libc::SYS_futex as u64 && waits).then_some(args[0])
}

/// The word of a lock once its owner has ended; `None`: another thread has it.
fn left_by(tid: i32, word: u32) -> Option<u32> {
    (word & OWNER == tid as u32).then_some(word & WAITERS | OWNER_DIED)
}

impl Recorder {
    /// A thread is about to let others run while it waits for a lock: returns when the kernel has said so in the lock.
    pub(super) fn await_sleep(&self, tid: i32, call: &Call) {
        if awaited(call.number, &call.args).is_none() {
            return;
        }
        let since = Instant::now();
        let runs = || {
            let stat = proc_text(format!("/proc/{tid}/stat")).unwrap_or_default();
            let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
            state.is_some_and(|state| state.starts_with(['R', 'D']))
        };
        while since.elapsed() < FALLING_ASLEEP && runs() {
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    /// What the kernel has written into locks for which threads have begun to wait. It is told once.
    pub(super) fn awaited_locks(&mut self) -> Vec<Bytes> {
        let mut written = Vec::new();
        for before in self.threads.take_locks() {
            let now = self.process.bytes(before.at, WORD);
            if now.len() == WORD && now != before.bytes {
                written.push(Bytes {
                    at: before.at,
                    bytes: now,
                });
            }
        }
        written
    }

    /// What the kernel writes into the locks of a thread that is about to end.
    pub(super) fn left_locks(&self, tid: i32) -> Vec<Bytes> {
        let Ok(head @ 1..) = ptrace::robust_list(tid) else {
            return Vec::new();
        };
        let left = self.robust_locks(head).into_iter().filter_map(|at| {
            let word = self.process.bytes(at, WORD).try_into().ok()?;
            let left = left_by(tid, u32::from_le_bytes(word))?;
            Some(Bytes {
                at,
                bytes: left.to_le_bytes().to_vec(),
            })
        });
        left.collect()
    }

    /// The locks in a thread's list: it begins with its first entry, the distance of a lock from its entry, and the entry that is being
    /// added or removed. The lowest bit of an address is a flag.
    fn robust_locks(&self, head: u64) -> Vec<u64> {
        let word = |at: u64| self.process.word(at & !1).unwrap_or(0);
        let (distance, pending) = (word(head.wrapping_add(8)), word(head.wrapping_add(16)));
        let mut entries = Vec::new();
        let mut entry = word(head);
        while entry & !1 != 0 && entry & !1 != head && entries.len() < MOST {
            entries.push(entry & !1);
            entry = word(entry);
        }
        if pending & !1 != 0 && !entries.contains(&(pending & !1)) {
            entries.push(pending & !1);
        }
        let locks = entries.into_iter();
        locks.map(|entry| entry.wrapping_add(distance)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waiting_for_a_lock_with_priorities_changes_its_word() {
        let futex = libc::SYS_futex as u64;
        let of = |command: i32| awaited(futex, &[0x1000, command as u64, 0, 0, 0, 0]);
        assert_eq!(of(libc::FUTEX_LOCK_PI), Some(0x1000));
        let private = libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG;
        assert_eq!(of(private), Some(0x1000));
        assert_eq!(of(libc::FUTEX_WAIT), None);
        assert_eq!(of(libc::FUTEX_UNLOCK_PI), None);
        assert_eq!(awaited(0, &[0x1000, 6, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_lock_is_left_by_its_owner_alone() {
        assert_eq!(left_by(7, 7), Some(OWNER_DIED));
        assert_eq!(left_by(7, 7 | WAITERS), Some(WAITERS | OWNER_DIED));
        assert_eq!(left_by(7, 8), None);
        assert_eq!(left_by(7, 0), None);
    }
}

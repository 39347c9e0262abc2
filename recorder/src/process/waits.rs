//! How long threads waited for a processor, as the kernel counts it (`schedstat` in proc(5)).

use std::collections::BTreeMap;

use crate::stop::procfs;

/// The threads that have a ring, by its number.
#[derive(Debug, Default)]
pub struct ProcessorWaits {
    threads: BTreeMap<usize, Wait>,
}

#[derive(Debug)]
struct Wait {
    tid: u32,
    /// When it was first looked at, and last.
    first_ns: u64,
    last_ns: u64,
}

impl ProcessorWaits {
    /// Returns whether the thread of a ring has been looked at.
    pub fn knows(&self, ring: usize) -> bool {
        self.threads.contains_key(&ring)
    }

    /// Looks at the thread of a ring. A kernel that does not count, and a thread that is gone, change nothing.
    pub fn look(&mut self, pid: i32, ring: usize, tid: u32) {
        let text = procfs::text(format!("/proc/{pid}/task/{tid}/schedstat"));
        let Some(now_ns) = text.ok().and_then(|text| waited_ns(&text)) else {
            return;
        };
        let wait = self.threads.entry(ring).or_insert(Wait {
            tid,
            first_ns: now_ns,
            last_ns: now_ns,
        });
        wait.last_ns = now_ns;
    }

    /// Forgets the thread of a ring, which has ended, and returns how long it waited in all, in ns.
    pub fn end(&mut self, ring: usize) -> Option<u64> {
        let wait = self.threads.remove(&ring)?;
        Some(wait.ns()).filter(|ns| *ns > 0)
    }

    /// Returns how long each of the others waited.
    pub fn rest(&self) -> impl Iterator<Item = (u32, u64)> {
        let all = self.threads.values().map(|wait| (wait.tid, wait.ns()));
        all.filter(|(_, ns)| *ns > 0)
    }
}

impl Wait {
    fn ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}

/// Reads the second number of the file: the time in which the thread was ready and did not run.
fn waited_ns(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waits_from_the_first_look_to_the_last() {
        assert_eq!(waited_ns("77697 2901615 2\n"), Some(2_901_615));
        assert_eq!(waited_ns(""), None);
        let mut waits = ProcessorWaits::default();
        let (pid, tid) = (std::process::id(), std::process::id());
        waits.look(pid.cast_signed(), 3, tid);
        assert!(waits.knows(3) && !waits.knows(4));
        let wait = waits.threads.get_mut(&3).expect("it was looked at");
        wait.last_ns = wait.first_ns + 70;
        assert_eq!(waits.rest().collect::<Vec<_>>(), [(tid, 70)]);
        assert_eq!((waits.end(3), waits.end(3)), (Some(70), None));
    }
}

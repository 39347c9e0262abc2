//! Other processes that write to the program's memory: children with which it shares some. What they have written is seen when a system
//! call of the program returns, and nowhere between.

use rustc_hash::FxHashMap;

use super::Recorder;
use super::address_space::PAGE;
use crate::log::Bytes;

/// Only so many pages are looked at.
const MOST: usize = 256;

/// What is known of memory that other processes may write to.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Where the first of them began.
    since: Option<u64>,
    /// Where the first began that shares all memory and runs beside the program.
    beside: Option<u64>,
    pages: FxHashMap<u64, Vec<u8>>,
}

impl Others {
    /// Why it may be impossible to run the recording again, if it may.
    pub(super) fn doubt(&self) -> Option<String> {
        if let Some(since) = self.beside {
            return Some(format!(
                "from instruction {since} on the program shares all of its memory with another process (clone with CLONE_VM), which is not \
                 recorded: what that writes is not noted, and a run that has read it cannot be run again from there"
            ));
        }
        let since = self.since?;
        Some(format!(
            "from instruction {since} on the program shares memory with another process, which is not recorded: what that writes is noted when \
             a system call of the program returns, and a run that has read it earlier cannot be run again from there"
        ))
    }
}

impl Recorder {
    /// The program has made another process, which has its own memory but for what both share.
    pub(super) fn process_is_made(&mut self) {
        if self.space.files.has_shared() && self.space.others.since.is_none() {
            self.space.others.since = Some(self.count);
            self.others_wrote(&mut Vec::new());
        }
    }

    /// The program has made a process that shares all of its memory, and does not wait for it as it does with vfork(2).
    pub(super) fn process_runs_beside(&mut self) {
        self.space.others.beside.get_or_insert(self.count);
    }

    /// Adds what has changed in memory that other processes may write to. The program may have written it itself.
    pub(super) fn others_wrote(&mut self, writes: &mut Vec<Bytes>) {
        if self.space.others.since.is_none() {
            return;
        }
        let spans = self.space.files.shared().into_iter();
        let pages = spans.flat_map(|span| span.start / PAGE..span.end / PAGE);
        for page in pages.take(MOST) {
            let bytes = self.process.bytes(page * PAGE, PAGE as usize);
            let known = self.space.others.pages.entry(page).or_default();
            if *known != bytes {
                known.clone_from(&bytes);
                writes.push(Bytes {
                    at: page * PAGE,
                    bytes,
                });
            }
        }
    }
}

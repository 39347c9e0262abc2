//! Values by which running again can be compared with what was recorded.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use libc::user_regs_struct;

use super::Recorder;
use crate::digest::{self, PAGE};
use crate::error::{Context as _, Result};
use crate::log::{Entry, Hashed};
use crate::maps;
use crate::ptrace;

/// Longer stretches of memory are left out, and so is what comes when this much has been read.
const LONGEST: u64 = 4 << 30;
const MOST: usize = 1 << 30;
/// Pages that are asked about at once.
const PAGES: usize = 8192;
/// In pagemap: the page is in memory, or swapped out (Linux's Documentation/admin-guide/mm/pagemap.rst).
const THERE: u64 = 3 << 62;

impl Recorder {
    /// Notes what the thread that is about to end the program has in its registers, and what is in memory.
    pub(super) fn check_at_end(&mut self, tid: i32, own: &user_regs_struct) -> Result<()> {
        let extended = ptrace::extended_state(tid).context("read registers")?;
        // Once: a timer may be faster than this, and its handler comes before the end each time.
        let memory = if self.memory_is_quiet(tid) && !std::mem::replace(&mut self.hashed, true) {
            self.hash_memory()?
        } else {
            Vec::new()
        };
        self.log.add(&Entry::Check {
            at: self.count,
            tid,
            state: digest::of_registers(own, own.rip),
            extended: digest::of_extended(&extended),
            memory,
        })
    }

    /// Whether no other thread is in a call that may have written already what will never be recorded.
    fn memory_is_quiet(&self, tid: i32) -> bool {
        self.threads.in_calls().all(|(other, call)| {
            other == tid
                || matches!(
                    i64::try_from(call.number).unwrap_or(-1),
                    libc::SYS_futex
                        | libc::SYS_pause
                        | libc::SYS_nanosleep
                        | libc::SYS_clock_nanosleep
                        | libc::SYS_rt_sigsuspend
                )
        })
    }

    /// Private memory that the program can write.
    fn hash_memory(&self) -> Result<Vec<Hashed>> {
        let pid = self.process.shown;
        let maps = maps::read(pid).context("read the program's mappings")?;
        let pagemap =
            File::open(format!("/proc/{pid}/pagemap")).context("read the program's pages")?;
        let mut left = MOST;
        let found = maps.iter().filter_map(|mapping| {
            let Range { start, end } = mapping.range;
            let is_private = mapping.access == "rw-p";
            let is_file = mapping.file.1 != 0;
            if !is_private || end - start > LONGEST || self.translator.owns(start) {
                return None;
            }
            let hash = self.hash(start, end, (!is_file).then_some(&pagemap), &mut left)?;
            Some(Hashed { start, end, hash })
        });
        Ok(found.collect())
    }

    /// `None`: too much has been read, or it cannot be read. Only pages that are there, if `pagemap` tells which: others are zeros.
    fn hash(&self, start: u64, end: u64, pagemap: Option<&File>, left: &mut usize) -> Option<u64> {
        let (mut state, mut at) = (0, start);
        let mut bytes = vec![0; 64 * PAGE];
        while at < end {
            let count = PAGES.min((end - at) as usize / PAGE);
            let mut flags = vec![0xff; count * 8];
            if let Some(pagemap) = pagemap {
                pagemap
                    .read_exact_at(&mut flags, at / PAGE as u64 * 8)
                    .ok()?;
            }
            let there: Vec<bool> = flags
                .chunks_exact(8)
                .map(|flags| flags.try_into().map_or(0, u64::from_le_bytes) & THERE != 0)
                .collect();
            let mut index = 0;
            while index < count {
                let run = there[index..]
                    .iter()
                    .take(64)
                    .take_while(|there| **there)
                    .count();
                if run == 0 {
                    index += 1;
                    continue;
                }
                *left = left.checked_sub(run * PAGE)?;
                let from = at + (index * PAGE) as u64;
                let part = &mut bytes[..run * PAGE];
                if self.process.read(from, part) < part.len() {
                    return None;
                }
                for (number, page) in (from / PAGE as u64..).zip(part.chunks(PAGE)) {
                    state = digest::add_page(state, number, page);
                }
                index += run;
            }
            at += (count * PAGE) as u64;
        }
        Some(state)
    }
}

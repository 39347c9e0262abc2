//! Sweeps all code of a module for branches past the first byte of something that might be patched.
//!
//! No branch is missed where instructions are contiguous from one known start to the next. Decoding restarts at each
//! start, so that data or padding puts at most one piece out of step. If a piece holds bytes that are not instructions,
//! or its last instruction extends into the next piece, every offset is tried as the beginning of a branch. This yields
//! a few false branches, and refuses patches that would have been sound.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use iced_x86::Instruction;
use serde::{Deserialize, Serialize};

use super::{
    Branches, PATCH_BYTES,
    scan::{Branch, Step, branch, decode_at, decoder, walk},
};

/// Amount of code that a thread takes at a time.
const JOB_BYTES: u64 = 512 << 10;
/// More threads than this only wait for memory.
const MAX_THREADS: usize = 8;

/// The result of a sweep. Addresses are in the same space as the input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// Branches past a start by less than the length of a patch, lowest target first.
    pub inside: Vec<Branch>,
    /// Those of the `asked` addresses that are called directly, lowest first.
    pub called: Vec<u64>,
}

/// Sweeps `code`: non-overlapping ranges, each with its first address. `starts` holds the addresses at which code is
/// known to begin, lowest first. `asked` holds, lowest first, those starts for which it matters whether they are
/// called.
pub fn sweep(code: &[(u64, &[u8])], starts: &[u64], asked: &[u64]) -> Swept {
    let behind = starts
        .iter()
        .map(|start| start + 1..start.saturating_add(PATCH_BYTES as u64));
    swept(code, starts, asked, PatchMap::new(code, behind))
}

/// Sweeps `code` as [`sweep`] does, for the branches into `ranges`.
pub fn branches_into(
    code: &[(u64, &[u8])],
    starts: &[u64],
    ranges: impl Iterator<Item = Range<u64>>,
) -> Branches {
    let found = swept(code, starts, &[], PatchMap::new(code, ranges));
    Branches::from_list(found.inside)
}

fn swept(code: &[(u64, &[u8])], starts: &[u64], asked: &[u64], map: PatchMap) -> Swept {
    let jobs = jobs(code, starts);
    let next = AtomicUsize::new(0);
    let run = || {
        let mut worker = Worker {
            map: &map,
            asked,
            inside: Vec::new(),
            called: Vec::new(),
        };
        while let Some(job) = jobs.get(next.fetch_add(1, Relaxed)) {
            worker.job(code[job.range], &starts[job.starts.clone()], &job.bytes);
        }
        (worker.inside, worker.called)
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(MAX_THREADS).min(jobs.len()).max(1);
    let mut swept = Swept::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut add = |(mut inside, mut called): (Vec<Branch>, Vec<u64>)| {
            swept.inside.append(&mut inside);
            swept.called.append(&mut called);
        };
        add(run());
        for worker in workers {
            add(worker.join().expect("a sweep does not panic"));
        }
    });
    swept.inside = Branches::from_list(swept.inside).list().to_vec();
    swept.called.sort_unstable();
    swept.called.dedup();
    swept
}

/// Part of a range: its addresses, and which starts lie after its first address.
struct Job {
    range: usize,
    bytes: Range<u64>,
    starts: Range<usize>,
}

/// Cuts the code at starts into jobs of about the same size.
fn jobs(code: &[(u64, &[u8])], starts: &[u64]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (range, (first, bytes)) in code.iter().enumerate() {
        let end = first + bytes.len() as u64;
        let mut at = *first;
        while at < end {
            let from = starts.partition_point(|start| *start <= at);
            let cut = starts.partition_point(|start| *start < at.saturating_add(JOB_BYTES));
            let stop = starts.get(cut).map_or(end, |start| (*start).min(end));
            jobs.push(Job {
                range,
                bytes: at..stop,
                starts: from..cut.max(from),
            });
            at = stop;
        }
    }
    jobs
}

struct Worker<'a> {
    map: &'a PatchMap,
    asked: &'a [u64],
    inside: Vec<Branch>,
    called: Vec<u64>,
}

impl Worker<'_> {
    fn job(&mut self, (first, code): (u64, &[u8]), starts: &[u64], bytes: &Range<u64>) {
        let inner = starts.iter().copied().filter(|start| *start < bytes.end);
        let mut from = bytes.start;
        for to in inner.chain([bytes.end]) {
            let piece = &code[(from - first) as usize..(to - first) as usize];
            self.piece(piece, from);
            from = to;
        }
    }

    fn piece(&mut self, code: &[u8], start: u64) {
        let mut in_step = true;
        walk(code, start, |step| match step {
            Step::Instruction(instruction) => self.note(instruction),
            Step::Undecodable => in_step = false,
        });
        if in_step {
            return;
        }
        let mut decoder = decoder(code, start);
        for offset in 0..code.len() {
            let instruction = decode_at(&mut decoder, start, offset);
            if !instruction.is_invalid() {
                self.note(&instruction);
            }
        }
    }

    fn note(&mut self, instruction: &Instruction) {
        let Some(branch) = branch(instruction) else {
            return;
        };
        if self.map.holds(branch.to) {
            self.inside.push(branch);
        }
        if branch.is_call && self.asked.binary_search(&branch.to).is_ok() {
            self.called.push(branch.to);
        }
    }
}

/// One bit for each byte of code: whether branches to it are looked for.
struct PatchMap {
    first: u64,
    bits: Vec<u64>,
}

impl PatchMap {
    fn new(code: &[(u64, &[u8])], ranges: impl Iterator<Item = Range<u64>>) -> PatchMap {
        let first = code.iter().map(|(first, _)| *first).min().unwrap_or(0);
        let ends = code.iter().map(|(first, bytes)| first + bytes.len() as u64);
        let len = ends.max().unwrap_or(0).saturating_sub(first);
        let mut map = PatchMap {
            first,
            bits: Vec::new(),
        };
        map.bits.resize(len.div_ceil(64) as usize, 0);
        for range in ranges {
            for at in range {
                if let Some((word, bit)) = map.place(at) {
                    map.bits[word] |= bit;
                }
            }
        }
        map
    }

    fn place(&self, address: u64) -> Option<(usize, u64)> {
        let offset = address.checked_sub(self.first)?;
        let word = (offset / 64) as usize;
        (word < self.bits.len()).then_some((word, 1 << (offset % 64)))
    }

    fn holds(&self, address: u64) -> bool {
        self.place(address)
            .is_some_and(|(word, bit)| self.bits[word] & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `jmp rel32` at `from`.
    fn jump(from: u64, to: u64) -> [u8; 5] {
        let [a, b, c, d] = (to.wrapping_sub(from + 5) as i32).to_le_bytes();
        [0xe9, a, b, c, d]
    }

    fn inside(swept: &Swept) -> Vec<(u64, u64)> {
        swept.inside.iter().map(|b| (b.from, b.to)).collect()
    }

    #[test]
    fn only_branches_behind_starts_are_kept() {
        let mut code = vec![0x90; 0x40];
        code[..5].copy_from_slice(&jump(0x1000, 0x1022));
        code[5..10].copy_from_slice(&jump(0x1005, 0x1020));
        code[10..15].copy_from_slice(&jump(0x100a, 0x1025));
        let swept = sweep(&[(0x1000, &code)], &[0x1000, 0x1020], &[]);
        assert_eq!(inside(&swept), [(0x1000, 0x1022)]);
    }

    #[test]
    fn calls_are_told_of_what_was_asked_about() {
        // call 1010; jmp 1020
        let mut code = vec![0x90; 0x40];
        code[..5].copy_from_slice(&jump(0x1000, 0x1010));
        code[0] = 0xe8;
        code[5..10].copy_from_slice(&jump(0x1005, 0x1020));
        let starts = [0x1000, 0x1010, 0x1020];
        let swept = sweep(&[(0x1000, &code)], &starts, &[0x1010, 0x1020]);
        assert_eq!(swept.called, [0x1010]);
    }

    #[test]
    fn data_before_a_start_hides_no_branch_behind_it() {
        // The first two bytes of `mov $imm64, %rax` are data. Decoding on from them would swallow the jump.
        let mut code = vec![0x90; 0x20];
        code[..2].copy_from_slice(&[0x48, 0xb8]);
        code[2..7].copy_from_slice(&jump(0x1002, 0x1012));
        let starts = [0x1000, 0x1002, 0x1010];
        let swept = sweep(&[(0x1000, &code)], &starts, &[]);
        assert_eq!(inside(&swept), [(0x1002, 0x1012)]);
    }

    #[test]
    fn a_piece_with_bytes_that_are_no_instructions_is_read_from_every_offset() {
        // 06 is not an instruction in 64-bit code; 48 b8 after it swallows the jump.
        let mut code = vec![0x90; 0x20];
        code[..3].copy_from_slice(&[0x06, 0x48, 0xb8]);
        code[3..8].copy_from_slice(&jump(0x1003, 0x1012));
        let swept = sweep(&[(0x1000, &code)], &[0x1000, 0x1010], &[]);
        assert!(inside(&swept).contains(&(0x1003, 0x1012)));
    }

    #[test]
    fn ranges_longer_than_a_job_are_swept_whole() {
        let len = 3 * JOB_BYTES as usize + 7;
        let mut code = vec![0x90; len];
        let starts: Vec<u64> = (0x10_0000..0x10_0000 + len as u64)
            .step_by(0x1000)
            .collect();
        let last = *starts.last().expect("there are starts");
        for from in &starts {
            let at = (from - 0x10_0000) as usize;
            if at + 5 <= len {
                code[at..at + 5].copy_from_slice(&jump(*from, last + 1));
            }
        }
        let swept = sweep(&[(0x10_0000, &code)], &starts, &[]);
        assert_eq!(swept.inside.len(), starts.len());
        assert!(sweep(&[], &[], &[]).inside.is_empty());
    }
}

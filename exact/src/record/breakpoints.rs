//! Where a program stops while it runs unrecorded: at the entries of functions.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Context, Result};

const INT3: u8 = 0xcc;
const AT_ENTRY: u64 = 9;

/// They are there only while the program runs unrecorded.
pub(super) struct Breakpoints {
    pid: i32,
    /// By address: the byte that belongs there.
    known: FxHashMap<u64, u8>,
    are_set: bool,
    /// Processes that share the memory until they execute a program; there are no breakpoints meanwhile.
    pub(super) borrowers: FxHashSet<i32>,
}

impl Breakpoints {
    pub(super) fn new(pid: i32) -> Breakpoints {
        Breakpoints {
            pid,
            known: FxHashMap::default(),
            are_set: false,
            borrowers: FxHashSet::default(),
        }
    }

    /// Makes these the addresses where it stops; those where nothing can be read are left out. What stays is not touched: other
    /// threads may run.
    pub(super) fn choose(&mut self, addresses: &[u64]) -> Result<()> {
        let memory = memory(self.pid)?;
        let wanted: FxHashSet<u64> = addresses.iter().copied().collect();
        let are_set = self.are_set;
        self.known.retain(|address, byte| {
            let stays = wanted.contains(address);
            let mut now = [0];
            if !stays
                && are_set
                && matches!(memory.read_at(&mut now, *address), Ok(1))
                && now[0] == INT3
            {
                let _ = memory.write_all_at(&[*byte], *address);
            }
            stays
        });
        for address in wanted {
            let mut byte = [0];
            if !self.known.contains_key(&address)
                && matches!(memory.read_at(&mut byte, address), Ok(1))
            {
                self.known.insert(address, byte[0]);
                if are_set {
                    let _ = memory.write_all_at(&[INT3], address);
                }
            }
        }
        Ok(())
    }

    pub(super) fn has(&self, address: u64) -> bool {
        self.known.contains_key(&address)
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.known.keys().copied()
    }

    /// The program has executed another one.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.are_set = false;
    }

    pub(super) fn set(&mut self) -> Result<()> {
        if self.are_set || self.known.is_empty() || !self.borrowers.is_empty() {
            return Ok(());
        }
        self.are_set = true;
        let memory = memory(self.pid)?;
        for (address, byte) in &mut self.known {
            let mut now = [0];
            // Where nothing is any more, nothing can be called.
            if matches!(memory.read_at(&mut now, *address), Ok(1)) {
                *byte = now[0];
                let _ = memory.write_all_at(&[INT3], *address);
            }
        }
        Ok(())
    }

    pub(super) fn take_away(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.are_set) {
            return Ok(());
        }
        self.clean(self.pid)
    }

    /// Takes them out of the memory of a process that was copied from the program.
    pub(super) fn clean(&self, pid: i32) -> Result<()> {
        let memory = memory(pid)?;
        for (address, byte) in &self.known {
            let mut now = [0];
            if matches!(memory.read_at(&mut now, *address), Ok(1)) && now[0] == INT3 {
                memory
                    .write_all_at(&[*byte], *address)
                    .context("write the program's memory")?;
            }
        }
        Ok(())
    }
}

fn memory(pid: i32) -> Result<File> {
    let mut options = File::options();
    options.read(true).write(true);
    options
        .open(format!("/proc/{pid}/mem"))
        .context("open the program's memory")
}

/// The first instruction of the program itself: the dynamic linker has mapped its libraries by then.
pub(super) fn entry_point(pid: i32) -> Result<Option<u64>> {
    let vector = fs::read(format!("/proc/{pid}/auxv")).context("read the program's state")?;
    let words = vector.as_chunks::<8>().0;
    let mut pairs = words.chunks_exact(2).map(|pair| {
        let [key, value] = [pair[0], pair[1]].map(u64::from_le_bytes);
        (key, value)
    });
    Ok(pairs.find(|(key, _)| *key == AT_ENTRY).map(|(_, at)| at))
}

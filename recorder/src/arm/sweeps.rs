//! Provides the branches of a module that forbid patches. A build is swept once; the result is cached for the user.
//!
//! A cached result is used only if it is undamaged and matches the build id and the list of starts. A module without a
//! build id (such as rustc's compiler library) is identified by its file: device, inode, length and time of change. A
//! module with little code is swept each time, which takes a millisecond.

use std::{fs, io, os::unix::fs::MetadataExt, path::PathBuf};

use debuginfo::Module;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::displace::{Branches, Swept, sweep};

/// Sweeping less code than this is faster than looking for a cached file.
const WORTH_KEEPING_BYTES: u64 = 1 << 20;
/// Incremented when the cached format or the sweep changes.
const VERSION: u32 = 1;
/// Length of the CRC-32C at the end of a cached file.
const CHECKSUM_BYTES: usize = 4;

/// What the branches of a module forbid to patch. Addresses are those in the file.
#[derive(Debug, Default)]
pub struct Sweep {
    inside: Branches,
    parts: Vec<u64>,
    called: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    version: u32,
    digest: u128,
    swept: Swept,
}

impl Sweep {
    /// Sweeps `elf`, or loads the cached result. `more` holds starts, lowest first, that may be missing in the module's
    /// tables.
    pub fn of(elf: &Module, more: &[u64]) -> Sweep {
        let starts = with(elf.code_starts(), more);
        let parts = elf.starts_of_parts();
        let ranges = elf.code_ranges();
        let code: Vec<(u64, &[u8])> = ranges
            .iter()
            .filter_map(|range| Some((range.start.0, elf.code(range.start, range.len())?)))
            .collect();
        let bytes: u64 = code.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let digest = digest(&starts, &parts);
        let path = (bytes >= WORTH_KEEPING_BYTES)
            .then(|| path_of(elf))
            .flatten();
        let kept = path.as_ref().and_then(|path| read(path, digest));
        let swept = kept.unwrap_or_else(|| {
            let swept = sweep(&code, &starts, &parts);
            if let Some(path) = &path
                && let Err(error) = write(path, digest, &swept)
            {
                // Not fatal: the next recording sweeps again.
                tracing::debug!("{} cannot be kept: {error}", path.display());
            }
            swept
        });
        Sweep {
            inside: Branches::from_list(swept.inside),
            parts,
            called: swept.called,
        }
    }

    /// Returns the branches that lead past a start, with addresses in a process.
    pub fn inside(&self, bias: u64) -> Branches {
        self.inside.moved_up(bias)
    }

    /// Returns why `svma` is not the start of a function: GCC split it off one, and nothing calls it.
    pub fn refuses(&self, svma: u64) -> Option<&'static str> {
        let is_part = self.parts.binary_search(&svma).is_ok();
        let is_called = self.called.binary_search(&svma).is_ok();
        (is_part && !is_called).then_some("it is a part of another function, and nothing calls it")
    }
}

fn with(starts: &[u64], more: &[u64]) -> Vec<u64> {
    let unknown = more
        .iter()
        .filter(|svma| starts.binary_search(svma).is_err());
    let mut all: Vec<u64> = starts.iter().chain(unknown).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn digest(starts: &[u64], parts: &[u64]) -> u128 {
    let mut hasher = Xxh3::new();
    for list in [starts, parts] {
        hasher.update(&(list.len() as u64).to_le_bytes());
        list.iter()
            .for_each(|word| hasher.update(&word.to_le_bytes()));
    }
    hasher.digest128()
}

fn path_of(elf: &Module) -> Option<PathBuf> {
    let folder = agent::wheel::cache_folder().ok()?.join("branches");
    if let Some(build_id) = elf.build_id() {
        return Some(folder.join(build_id));
    }
    let file = fs::metadata(elf.path()).ok()?;
    let words = [
        file.dev(),
        file.ino(),
        file.size(),
        file.ctime() as u64,
        file.ctime_nsec() as u64,
    ];
    let mut hasher = Xxh3::new();
    words
        .iter()
        .for_each(|word| hasher.update(&word.to_le_bytes()));
    Some(folder.join(format!("file-{:032x}", hasher.digest128())))
}

fn read(path: &PathBuf, digest: u128) -> Option<Swept> {
    let bytes = fs::read(path).ok()?;
    let (kept, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
    if crc32c::crc32c(kept).to_le_bytes() != checksum {
        return None;
    }
    let kept: Kept = rmp_serde::from_slice(kept).ok()?;
    (kept.version == VERSION && kept.digest == digest).then_some(kept.swept)
}

/// Writes atomically: readers see the whole file or none.
fn write(path: &PathBuf, digest: u128, swept: &Swept) -> io::Result<()> {
    let kept = Kept {
        version: VERSION,
        digest,
        swept: swept.clone(),
    };
    let mut bytes = rmp_serde::to_vec(&kept).map_err(io::Error::other)?;
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    fs::write(&partial, bytes)?;
    fs::rename(&partial, path)
}

#[cfg(test)]
mod tests {
    use e2e::Scratch;

    use super::*;
    use crate::displace::Branch;

    #[test]
    fn what_is_kept_is_read_again_for_the_same_starts_alone() {
        let scratch = Scratch::new("sweeps");
        let path = scratch.join("branches").join("build-id");
        let (starts, parts) = ([0x1000, 0x1040], [0x1040]);
        let own = digest(&starts, &parts);
        let swept = Swept {
            inside: vec![Branch {
                to: 0x1002,
                from: 0x1050,
                is_call: false,
            }],
            called: vec![0x1040],
        };
        assert_eq!(read(&path, own), None, "there is nothing yet");
        write(&path, own, &swept).expect("the folder is writable");
        assert_eq!(read(&path, own), Some(swept));
        // The same addresses in other lists are another module, too.
        for other in [digest(&starts, &[]), digest(&[0x1000], &[0x1040, 0x1040])] {
            assert_eq!(read(&path, other), None);
        }
        let mut bytes = fs::read(&path).expect("it is there");
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            fs::write(&path, &bytes).expect("the folder is writable");
            assert_eq!(read(&path, own), None, "damaged at byte {at}");
            bytes[at] ^= 1;
        }
        fs::write(&path, &bytes[..bytes.len() - 1]).expect("the folder is writable");
        assert_eq!(read(&path, own), None, "cut");
    }
}

//! The resources that queries may use.

use std::path::PathBuf;

/// Memory of queries if the size of the machine's memory is unknown, in bytes.
const FALLBACK_MEMORY_BYTES: usize = 1 << 30;

/// How queries use the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Most bytes that sorts, groups and joins hold together before they spill, or fail if they cannot.
    /// By default a quarter of the machine's memory. Buffers of scans and of answers come on top: some ten MiB a core.
    pub memory_bytes: usize,
    /// The folder for spilling and for sealing the unsealed rest of a recording; cleaned when the session ends.
    /// By default `$TMPDIR`, else `/var/tmp`, which is on a disk where `/tmp` may be in memory.
    pub temp_dir: PathBuf,
    /// How many cores one query uses. By default all.
    pub cores: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_bytes: machine_memory_bytes().map_or(FALLBACK_MEMORY_BYTES, |all| all / 4),
            temp_dir: store::temp_dir(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

fn machine_memory_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

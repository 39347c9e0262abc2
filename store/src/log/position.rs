//! Positions in the log and the file names of its segments.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::SEGMENT_SUFFIX;

/// A place between two frames of the log. Later places compare greater.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct LogPosition {
    /// Number of the segment, from 0.
    pub segment: u32,
    /// Bytes from the segment's start; 0 also stands for its first frame.
    pub offset: u64,
}

impl LogPosition {
    /// Returns the place before the first frame of `segment`.
    pub fn start_of(segment: u32) -> Self {
        Self { segment, offset: 0 }
    }
}

/// Returns the path of segment `number` in the log folder `dir`.
pub fn segment_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:06}{SEGMENT_SUFFIX}"))
}

/// Returns the numbers of the segments in the log folder `dir`, ascending. Ignores other files.
///
/// # Errors
/// [`Error::Io`] when the folder cannot be read.
pub fn segments(dir: &Path) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(Error::io("read", dir))? {
        let name = entry.map_err(Error::io("read", dir))?.file_name();
        let number = name.to_str().and_then(number_from_name);
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn number_from_name(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(SEGMENT_SUFFIX)?;
    let plain = digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        for number in [0, 7, 999_999, 1_000_000, u32::MAX] {
            let path = segment_path(Path::new("log"), number);
            let name = path.file_name().and_then(|n| n.to_str()).unwrap();
            assert_eq!(number_from_name(name), Some(number));
        }
        for name in ["1.seg", "00000a.seg", "000001.seg.tmp", "+00001.seg"] {
            assert_eq!(number_from_name(name), None, "{name}");
        }
    }
}

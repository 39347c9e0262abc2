//! Cutting off the end of a log that cannot be run again.

use std::path::Path;

use super::{Entries, Entry, Reader, Writer};
use crate::error::Result;

/// Leaves what the log in a folder has before a position, and says why it ends there.
pub fn cut(folder: &Path, at: u64, why: &str) -> Result<()> {
    let mut reader = Reader::open(folder)?;
    let entries = Entries::read(&mut reader, &mut |_, _| {})?;
    let mut writer = Writer::create(folder, None)?;
    let is_kept = |entry: &Entry| entry.at() < at || matches!(entry, Entry::Start { .. });
    for entry in entries.iter().filter(is_kept) {
        writer.add(&entry)?;
    }
    writer.add(&Entry::Lost {
        at,
        why: why.to_owned(),
    })?;
    writer.finish().map(drop)
}

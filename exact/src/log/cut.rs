//! Cutting off the end of a log that cannot be run again.

use std::path::Path;

use super::{Entry, Reader, Writer};
use crate::error::Result;

/// Leaves what the log in a folder has before a position, and says why it ends there.
pub fn cut(folder: &Path, at: u64, why: &str) -> Result<()> {
    let mut reader = Reader::open(folder)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next()? {
        if entry.at() < at || matches!(entry, Entry::Start { .. }) {
            entries.push(entry);
        }
    }
    let mut writer = Writer::create(folder, None)?;
    for entry in &entries {
        writer.add(entry)?;
    }
    writer.add(&Entry::Lost {
        at,
        why: why.to_owned(),
    })?;
    writer.finish().map(drop)
}

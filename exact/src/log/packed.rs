//! The entries of a log in memory. They are packed: there may be millions of them, and each signal has all registers of the processor
//! more than once.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Entry, Reader};
use crate::error::{Context as _, Error, Result};

/// Entries are packed together until they have so many bytes. A part is unpacked as a whole.
const PART: usize = 128 << 10;
/// Fast enough not to delay the opening of a long recording.
const LEVEL: i32 = 1;
const OWN: &str = "what was packed here can be unpacked";

/// Entries that follow one another.
struct Part {
    /// The number of the entry after the last one.
    end: usize,
    packed: Box<[u8]>,
}

/// All of them, by their numbers from zero on.
#[derive(Default)]
pub(crate) struct Entries {
    parts: Vec<Part>,
    /// How many instructions are executed before the last one.
    at: u64,
    /// The part that was used last: the number of its first entry, and all its entries.
    used: Mutex<(usize, Vec<Arc<Entry>>)>,
}

impl Entries {
    /// Packs what a log still has. `see` gets each entry with its number.
    pub(crate) fn read(reader: &mut Reader, see: &mut dyn FnMut(usize, &Entry)) -> Result<Entries> {
        let (mut entries, mut bytes, mut count) = (Entries::default(), Vec::new(), 0);
        while let Some(entry) = reader.next()? {
            see(count, &entry);
            count += 1;
            entries.at = entry.at();
            rmp_serde::encode::write(&mut bytes, &entry)
                .map_err(|error| Error::Damaged(error.to_string()))?;
            if bytes.len() >= PART {
                entries.pack(count, &mut bytes)?;
            }
        }
        entries.pack(count, &mut bytes)?;
        Ok(entries)
    }

    fn pack(&mut self, end: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let packed = zstd::encode_all(bytes.as_slice(), LEVEL).context("pack the log")?;
        bytes.clear();
        self.parts.push(Part {
            end,
            packed: packed.into_boxed_slice(),
        });
        Ok(())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.parts.last().map_or(0, |part| part.end)
    }

    /// How many instructions are executed before the last one.
    pub(crate) fn end(&self) -> u64 {
        self.at
    }

    /// The one with a number. Near to the one that was asked for before, it is there at once.
    pub(crate) fn get(&self, index: usize) -> Option<Arc<Entry>> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, entries) = &mut *used;
        if !(*first..*first + entries.len()).contains(&index) {
            let number = self.parts.partition_point(|part| part.end <= index);
            let part = self.parts.get(number)?;
            *entries = part.unpacked().into_iter().map(Arc::new).collect();
            *first = part.end - entries.len();
        }
        entries.get(index - *first).cloned()
    }

    /// The one that so many others follow.
    pub(crate) fn last_but(&self, others: usize) -> Option<Arc<Entry>> {
        self.get(self.count().checked_sub(others + 1)?)
    }

    /// All of them, which are unpacked one part after another.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry> {
        self.parts.iter().flat_map(Part::unpacked)
    }
}

impl Part {
    fn unpacked(&self) -> Vec<Entry> {
        let bytes = zstd::decode_all(&*self.packed).expect(OWN);
        let (mut rest, mut entries) = (bytes.as_slice(), Vec::new());
        while !rest.is_empty() {
            entries.push(rmp_serde::decode::from_read(&mut rest).expect(OWN));
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    //! Goal: entries are as they were, in whatever order they are asked for, and take little memory. Method: a log of many that have
    //! as many bytes as a signal's.

    use tempfile::TempDir;

    use super::*;
    use crate::log::{Bytes, Writer};

    const COUNT: u64 = 1_000;
    const BYTES: usize = 11_008;

    fn entry(number: u64) -> Entry {
        let mut bytes = vec![0; BYTES];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Entry::Return {
            at: number,
            context: crate::log::Context {
                registers: crate::log::Registers([number; 27]),
                extended: bytes.clone(),
            },
            writes: vec![Bytes { at: number, bytes }],
        }
    }

    fn read(count: u64) -> Entries {
        let folder = TempDir::new().unwrap();
        let mut writer = Writer::create(folder.path(), None).unwrap();
        (0..count).for_each(|number| writer.add(&entry(number)).unwrap());
        assert!(writer.finish().unwrap());
        let mut reader = Reader::open(folder.path()).unwrap();
        let mut seen = Vec::new();
        let entries = Entries::read(&mut reader, &mut |index, entry: &Entry| {
            seen.push((index as u64, entry.at()));
        });
        assert!(
            seen.into_iter()
                .eq((0..count).map(|number| (number, number)))
        );
        entries.unwrap()
    }

    #[test]
    fn entries_are_as_they_were_in_any_order() {
        let entries = read(COUNT);
        assert_eq!((entries.count(), entries.end()), (1_000, 999));
        assert!(entries.parts.len() > 100);
        let text = |entry: &Entry| format!("{entry:?}");
        let all = (0..COUNT).map(|number| text(&entry(number)));
        assert!(all.eq(entries.iter().map(|entry| text(&entry))));
        for index in (0..1_000).rev().chain([3, 997, 4, 500, 499]) {
            let found = entries.get(index).unwrap();
            assert_eq!(text(&found), text(&entry(index as u64)));
        }
        assert!(entries.get(1_000).is_none() && entries.last_but(1_000).is_none());
        assert_eq!(entries.last_but(0).unwrap().at(), 999);
        assert_eq!(entries.last_but(999).unwrap().at(), 0);
    }

    #[test]
    fn packed_entries_take_little_memory() {
        let entries = read(COUNT);
        let packed: usize = entries.parts.iter().map(|part| part.packed.len()).sum();
        assert!(packed < 512 * COUNT as usize, "{packed} bytes");
    }

    #[test]
    fn a_log_without_entries_has_none() {
        let entries = read(0);
        assert_eq!((entries.count(), entries.end()), (0, 0));
        assert!(entries.get(0).is_none() && entries.last_but(0).is_none());
        assert_eq!(entries.iter().count(), 0);
    }
}

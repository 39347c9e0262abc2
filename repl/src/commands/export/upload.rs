//! An upload to a bucket. The object appears when it is complete: a small one takes one request, a large one has parts,
//! which are discarded if the upload is not finished. Memory holds one part.

use std::io::{self, Write};
use std::sync::Arc;

use super::bucket::Bucket;
use crate::error::Error;

/// The length of the first parts in bytes; a store accepts none below 5 MiB except the last.
const PART: usize = 8 << 20;
/// After this many parts, the length doubles: a store accepts 10,000 parts, so objects up to 500 GB fit.
const SAME_LEN: usize = 2000;

/// An object that is being written.
pub struct Upload<'a> {
    bucket: &'a mut Bucket,
    key: String,
    buffer: Vec<u8>,
    len: u64,
    /// The number of the upload at the store, and the tags of the uploaded parts.
    begun: Option<Begun>,
    failure: Option<Error>,
}

struct Begun {
    id: String,
    tags: Vec<String>,
}

impl<'a> Upload<'a> {
    /// Begins an object; the store learns of it with the first part.
    pub fn new(bucket: &'a mut Bucket, key: &str) -> Upload<'a> {
        Upload {
            bucket,
            key: key.to_owned(),
            buffer: Vec::new(),
            len: 0,
            begun: None,
            failure: None,
        }
    }

    /// Takes the error of the last write.
    pub fn failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// Completes the object and returns its length in bytes.
    ///
    /// # Errors When the store does not accept it, or a signal comes; then there is no object.
    pub fn finish(mut self) -> Result<u64, Error> {
        if self.begun.is_none() {
            let bytes = Arc::new(std::mem::take(&mut self.buffer));
            self.bucket.put(&self.key, &bytes)?;
            return Ok(self.len);
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        if let Some(begun) = &self.begun {
            self.bucket.complete(&self.key, &begun.id, &begun.tags)?;
            self.begun = None;
        }
        Ok(self.len)
    }

    fn send_part(&mut self) -> Result<(), Error> {
        let begun = match &mut self.begun {
            Some(begun) => begun,
            none => none.insert(Begun {
                id: self.bucket.begin(&self.key)?,
                tags: Vec::new(),
            }),
        };
        let bytes = Arc::new(std::mem::take(&mut self.buffer));
        let number = begun.tags.len() + 1;
        let tag = self.bucket.part(&self.key, &begun.id, number, &bytes)?;
        begun.tags.push(tag);
        // No other owner is left, and the buffer is reused.
        self.buffer = Arc::try_unwrap(bytes).unwrap_or_default();
        self.buffer.clear();
        Ok(())
    }
}

/// Returns the length in bytes of the part after `parts` others.
fn part_len(parts: usize) -> usize {
    PART << (parts / SAME_LEN)
}

impl Write for Upload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let parts = self.begun.as_ref().map_or(0, |begun| begun.tags.len());
        let room = part_len(parts) - self.buffer.len();
        let taken = &bytes[..bytes.len().min(room)];
        self.buffer.extend_from_slice(taken);
        self.len += taken.len() as u64;
        if taken.len() == room {
            self.send_part().map_err(|error| {
                let told = io::Error::other(error.to_string());
                self.failure = Some(error);
                told
            })?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Parts have a fixed length; the rest follows at the end.
        Ok(())
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.bucket.abort(&self.key, &begun.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_parts_as_a_store_takes_hold_half_a_terabyte() {
        assert_eq!(part_len(0), PART);
        assert_eq!(part_len(1999), PART);
        assert_eq!(part_len(2000), 2 * PART);
        let all: usize = (0..10_000).map(part_len).sum();
        assert!(all > 500_000_000_000, "{all}");
        assert!(part_len(9_999) <= 128 << 20);
    }
}

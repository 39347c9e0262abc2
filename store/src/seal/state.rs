//! Keeps the progress of sealing in the file `seal.state`, replaced as a whole after each part.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::merge::Merge;
use super::outline::Outline;
use super::part::Part;
use crate::document;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::MAX_PAYLOAD_LEN;
use crate::log::LogPosition;

const LEVEL: i32 = 1;

/// Most bytes of open calls and waiting records in a state; the rest of a frame is for the parts.
const MAX_PENDING_LEN: usize = MAX_PAYLOAD_LEN / 2;

/// The data with which sealing resumes, and the data that readers of the columns need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SealState {
    /// The parts so far, in order.
    pub parts: Vec<Part>,
    /// The number of the next event.
    pub next_seq: u64,
    /// Time of the last numbered event, in nanoseconds.
    pub last_ts_ns: i64,
    /// Where in the log sealing resumes.
    pub position: LogPosition,
    /// Everything older than this many ticks is numbered.
    pub watermark: u64,
    /// Length of the valid part of `definitions.seg`, in bytes; 0 when the file does not exist.
    pub definitions_len: u64,
    /// Whether everything is sealed: the log is no longer needed.
    pub closed: bool,
    /// How the program ended and what it consisted of, as far as that is sealed; `None` in files of older releases.
    #[serde(default)]
    pub outline: Option<Outline>,
    /// Open calls and waiting records, compressed.
    pending: Pending,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Pending {
    #[serde(with = "serde_bytes")]
    compressed: Vec<u8>,
    /// Length before compression, in bytes.
    len: usize,
}

impl SealState {
    /// Reads the state, or returns the initial one if there is none yet.
    ///
    /// # Errors
    /// When the file is damaged, or belongs to another recording.
    pub fn read(path: &Path, header: FileHeader) -> Result<Self> {
        match document::read::<Self>(path) {
            Ok((found, state)) => {
                header.expect(&found, path)?;
                Ok(state)
            }
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(Self {
                outline: Some(Outline::default()),
                ..Self::default()
            }),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file by this state.
    ///
    /// # Errors
    /// Those of [`document::write`]; the old state is then still there.
    pub(super) fn write(&self, path: &Path, header: FileHeader) -> Result<()> {
        document::write(path, header, self)
    }

    /// Stores the waiting records and open calls. Returns whether they fit a state.
    pub(super) fn set_pending(&mut self, merge: &mut Merge) -> Result<bool> {
        merge.trim();
        let what = "open calls";
        let bytes = rmp_serde::to_vec(merge).map_err(|source| Error::Encode { what, source })?;
        let compressed = zstd::bulk::compress(&bytes, LEVEL);
        self.pending = Pending {
            compressed: compressed.map_err(Error::io("compress", Path::new(what)))?,
            len: bytes.len(),
        };
        Ok(self.pending.compressed.len() <= MAX_PENDING_LEN)
    }

    /// Returns the data that [`Self::set_pending`] stored. `path` names the file in errors.
    pub(super) fn pending(&self, path: &Path) -> Result<Merge> {
        if self.pending.len == 0 {
            return Ok(Merge::default());
        }
        let bad = |what: String| Error::corrupt(path, 0, format!("open calls: {what}"));
        let bytes = zstd::bulk::decompress(&self.pending.compressed, self.pending.len)
            .map_err(|error| bad(error.to_string()))?;
        let mut merge: Merge =
            rmp_serde::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        merge.restore();
        Ok(merge)
    }
}

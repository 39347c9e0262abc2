//! Encodes and checks the 64 bytes that begin every file of a recording.
//!
//! Their layout and checksum are the same in every version of the format, so that any release can tell
//! a newer file from a damaged one.

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::{FILE_HEADER_LEN, FORMAT_VERSION, FileKind, MAGIC, OLDEST_FORMAT_VERSION};
use crate::manifest::RecordingId;

/// Offset of the format version.
pub const VERSION_AT: usize = 8;
/// Offset of the file kind.
pub const KIND_AT: usize = 12;
/// Offset of the recording id.
pub const ID_AT: usize = 16;
/// Offset of the file's number.
pub const NUMBER_AT: usize = 32;
/// Offset of the checksum, which covers all bytes before it.
pub const CRC_AT: usize = 60;

/// The fields of a file's first 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The kind of the file's content.
    pub kind: FileKind,
    /// The recording it belongs to.
    pub recording_id: RecordingId,
    /// Segment number, 0 for other files.
    pub number: u32,
}

impl FileHeader {
    /// Returns the header as bytes.
    pub fn encode(&self) -> [u8; FILE_HEADER_LEN] {
        let mut bytes = [0; FILE_HEADER_LEN];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, VERSION_AT, &FORMAT_VERSION.to_le_bytes());
        put(&mut bytes, KIND_AT, &(self.kind as u32).to_le_bytes());
        put(&mut bytes, ID_AT, &self.recording_id.0);
        put(&mut bytes, NUMBER_AT, &self.number.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        put(&mut bytes, CRC_AT, &crc.to_le_bytes());
        bytes
    }

    /// Reads the header of a file; `bytes` is its beginning, `path` names it in errors.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Foreign`], [`Error::Corrupt`], [`Error::NewerFormat`] or [`Error::OlderFormat`].
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Self> {
        let head = &bytes[..bytes.len().min(MAGIC.len())];
        if !MAGIC.starts_with(head) {
            return Err(foreign(path, 0, "it does not begin with HNDSIGHT".into()));
        }
        let header = bytes
            .first_chunk::<FILE_HEADER_LEN>()
            .ok_or_else(|| truncated(path, bytes.len()))?;
        let crc = u32_at(header, CRC_AT);
        if crc != crc32c::crc32c(&header[..CRC_AT]) {
            return Err(Error::corrupt(
                path,
                0,
                "the file header's checksum differs",
            ));
        }
        check_version(u32_at(header, VERSION_AT), path)?;
        let kind = u32_at(header, KIND_AT);
        let kind = FileKind::from_code(kind).ok_or_else(|| {
            Error::corrupt(path, KIND_AT as u64, format!("unknown file kind {kind}"))
        })?;
        let mut id = [0; 16];
        id.copy_from_slice(&header[ID_AT..NUMBER_AT]);
        Ok(Self {
            kind,
            recording_id: RecordingId(id),
            number: u32_at(header, NUMBER_AT),
        })
    }

    /// Checks that the header `found` in `path` is this one.
    ///
    /// # Errors
    /// [`Error::Foreign`] naming the first field that differs.
    pub fn expect(&self, found: &Self, path: &Path) -> Result<()> {
        if found.kind != self.kind {
            let what = format!("it holds {:?}, not {:?}", found.kind, self.kind);
            return Err(foreign(path, KIND_AT, what));
        }
        if found.recording_id != self.recording_id {
            let what = format!("it belongs to recording {}", found.recording_id);
            return Err(foreign(path, ID_AT, what));
        }
        if found.number != self.number {
            let what = format!("it is number {}, not {}", found.number, self.number);
            return Err(foreign(path, NUMBER_AT, what));
        }
        Ok(())
    }
}

/// Returns the checksum in the header `bytes`, the start value for the checksums of the file's frames.
/// Returns 0 if `bytes` is too short for a header.
pub fn stored_crc(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |header| u32_at(header, CRC_AT))
}

fn check_version(found: u32, path: &Path) -> Result<()> {
    let path = || path.to_path_buf();
    if found > FORMAT_VERSION {
        return Err(Error::NewerFormat {
            path: path(),
            found,
            supported: FORMAT_VERSION,
        });
    }
    if found < OLDEST_FORMAT_VERSION {
        return Err(Error::OlderFormat {
            path: path(),
            found,
            supported: OLDEST_FORMAT_VERSION,
        });
    }
    Ok(())
}

fn truncated(path: &Path, len: usize) -> Error {
    let what = match len {
        0 => "the file is empty".to_string(),
        _ => format!("the file header has {FILE_HEADER_LEN} bytes"),
    };
    Error::Truncated {
        path: path.to_path_buf(),
        offset: len as u64,
        what,
    }
}

fn foreign(path: &Path, offset: usize, what: String) -> Error {
    Error::Foreign {
        path: path.to_path_buf(),
        offset: offset as u64,
        what,
    }
}

fn put(bytes: &mut [u8; FILE_HEADER_LEN], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

fn u32_at(bytes: &[u8; FILE_HEADER_LEN], at: usize) -> u32 {
    let field = bytes[at..]
        .first_chunk()
        .expect("fields end before byte 64");
    u32::from_le_bytes(*field)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: FileHeader = FileHeader {
        kind: FileKind::Log,
        recording_id: RecordingId([7; 16]),
        number: 3,
    };

    fn decode(bytes: &[u8]) -> String {
        match FileHeader::decode(bytes, Path::new("log/000003.seg")) {
            Ok(header) => format!("{header:?}"),
            Err(error) => {
                let hint = error.hint().expect("each says what to do");
                format!("{error}; {hint}")
            }
        }
    }

    fn with_version(version: u32) -> [u8; FILE_HEADER_LEN] {
        let mut bytes = HEADER.encode();
        put(&mut bytes, VERSION_AT, &version.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        put(&mut bytes, CRC_AT, &crc.to_le_bytes());
        bytes
    }

    #[test]
    fn a_header_survives_encoding() {
        assert_eq!(decode(&HEADER.encode()), format!("{HEADER:?}"));
        assert_eq!(
            stored_crc(&HEADER.encode()).to_le_bytes(),
            HEADER.encode()[CRC_AT..]
        );
    }

    #[test]
    fn each_kind_of_bad_file_is_refused_by_name() {
        let mut flipped = HEADER.encode();
        flipped[40] ^= 1;
        let answers = [
            decode(b""),
            decode(b"HNDS"),
            decode(b"SQLite format 3"),
            decode(&flipped),
            decode(&with_version(FORMAT_VERSION + 1)),
            decode(&with_version(0)),
        ];
        expect_test::expect![[r#"
            log/000003.seg is cut short at offset 0: the file is empty; restore the file from a copy
            log/000003.seg is cut short at offset 4: the file header has 64 bytes; restore the file from a copy
            log/000003.seg is not a file of a recording: at offset 0: it does not begin with HNDSIGHT; remove it or restore the recording from a copy
            log/000003.seg is damaged at offset 0: the file header's checksum differs; run "hindsight check" for a full report and restore the file from a copy
            log/000003.seg has format version 3, this build reads up to 2; use a newer hindsight
            log/000003.seg has format version 0, this build reads from 1 on; use an older hindsight"#]]
        .assert_eq(&answers.join("\n"));
    }

    #[test]
    fn every_version_since_the_oldest_is_read() {
        for version in OLDEST_FORMAT_VERSION..=FORMAT_VERSION {
            assert_eq!(decode(&with_version(version)), format!("{HEADER:?}"));
        }
    }

    #[test]
    fn a_file_of_another_recording_is_refused() {
        let other = FileHeader {
            recording_id: RecordingId([8; 16]),
            ..HEADER
        };
        let refused = HEADER.expect(&other, Path::new("x"));
        assert!(matches!(refused, Err(Error::Foreign { offset: 16, .. })));
        assert!(HEADER.expect(&HEADER, Path::new("x")).is_ok());
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for bit in 0..FILE_HEADER_LEN * 8 {
            let mut bytes = HEADER.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let decoded = FileHeader::decode(&bytes, Path::new("x"));
            assert!(decoded.is_err(), "bit {bit}: {decoded:?}");
        }
    }
}

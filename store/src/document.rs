//! Keeps one value per file: a file header and one checksummed frame of MessagePack, replaced as a whole or not at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::{FILE_HEADER_LEN, FrameKind};
use crate::log::frame::FrameFault;
use crate::log::frame_reader::FrameReader;
use crate::log::frame_writer::FrameWriter;
use crate::storage::Disk;

/// Writes `value` to `path`, replacing the old content. After a crash the file holds the old value or the new one.
///
/// # Errors
/// [`Error::Encode`], [`Error::Io`], [`Error::Append`] or [`Error::Sync`]; the old value is then still there.
pub fn write<T: Serialize>(path: &Path, header: FileHeader, value: &T) -> Result<()> {
    let what = "a document";
    let bytes = rmp_serde::to_vec_named(value).map_err(|source| Error::Encode { what, source })?;
    let draft = draft_path(path);
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("save", path)(error));
        }
        _ => {}
    }
    let mut writer = FrameWriter::create(&Disk, &draft, header)?;
    writer.append(FrameKind::Document, 0, [&bytes, &[]])?;
    writer.sync()?;
    fs::rename(&draft, path).map_err(Error::io("rename to", path))?;
    sync_parent(path)
}

/// Reads the value of the file `path` and the header it was written with; the caller checks the header's fields.
///
/// # Errors
/// Those of [`FileHeader::decode`]; [`Error::Corrupt`] or [`Error::Truncated`] naming the offset.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<(FileHeader, T)> {
    let (mut reader, header) = FrameReader::open_any(path)?;
    let value = match reader.next_frame()? {
        Ok(frame) if frame.header.kind == FrameKind::Document => {
            rmp_serde::from_slice(frame.payload).map_err(|e| bad(path, &e.to_string()))?
        }
        Ok(_) => return Err(bad(path, "another kind of frame")),
        Err(FrameFault::Short) => {
            return Err(Error::Truncated {
                path: path.to_path_buf(),
                offset: reader.file_len()?,
                what: "the value is not whole".into(),
            });
        }
        Err(fault) => return Err(bad(path, &fault.to_string())),
    };
    let end = reader.offset();
    if reader.file_len()? != end {
        return Err(Error::corrupt(path, end, "something follows the value"));
    }
    Ok((header, value))
}

fn bad(path: &Path, what: &str) -> Error {
    Error::corrupt(path, FILE_HEADER_LEN as u64, what)
}

/// Where the new value is written before it takes the old one's name.
pub(crate) fn draft_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(".draft");
    PathBuf::from(name)
}

fn sync_parent(path: &Path) -> Result<()> {
    let Some(dir) = path.parent() else {
        return Ok(());
    };
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(Error::io("sync", dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::FileKind;
    use crate::manifest::RecordingId;

    const HEADER: FileHeader = FileHeader {
        kind: FileKind::SealState,
        recording_id: RecordingId([1; 16]),
        number: 0,
    };

    #[test]
    fn a_value_is_replaced_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("value");
        for value in [vec![1u32, 2], vec![3]] {
            write(&path, HEADER, &value).unwrap();
            assert_eq!(read::<Vec<u32>>(&path).unwrap(), (HEADER, value));
        }
        let names = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(names, 1, "no draft stays behind");
    }

    #[test]
    fn a_draft_left_by_a_crash_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("value");
        fs::write(draft_path(&path), b"half").unwrap();
        write(&path, HEADER, &7u8).unwrap();
        assert_eq!(read::<u8>(&path).unwrap().1, 7);
    }

    #[test]
    fn a_value_cut_lengthened_or_changed_anywhere_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("value");
        write(&path, HEADER, &"a value").unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            fs::write(&path, &whole[..at]).unwrap();
            let cut = read::<String>(&path);
            assert!(
                matches!(cut, Err(Error::Truncated { .. })),
                "cut at {at}: {cut:?}"
            );
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            fs::write(&path, &changed).unwrap();
            assert!(read::<String>(&path).is_err(), "changed at {at}");
        }
        fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
        let longer = read::<String>(&path);
        assert!(matches!(longer, Err(Error::Corrupt { .. })), "{longer:?}");
    }
}

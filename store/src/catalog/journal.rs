//! The journal of the paths of new recordings: it is append-only, so that adding a path costs one system call.
//!
//! A record is a zero byte, `+` or `-`, the path, and a zero byte. A record cut by a crash has no second zero, and the
//! next record begins with one: it damages nothing but itself, and names no recording.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::storage::{DIR_MODE, FILE_MODE};

/// The journal, in the catalog's folder.
const FILE: &str = "paths";

/// Creates the catalog's folder.
///
/// # Errors
/// [`Error::Io`].
pub fn prepare(folder: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(DIR_MODE);
    builder.create(folder).map_err(Error::io("create", folder))
}

/// Adds a path.
///
/// # Errors
/// [`Error::Io`].
pub fn add(folder: &Path, path: &Path) -> Result<()> {
    append(folder, b'+', path)
}

/// Removes a path.
///
/// # Errors
/// [`Error::Io`].
pub fn take_away(folder: &Path, path: &Path) -> Result<()> {
    append(folder, b'-', path)
}

fn append(folder: &Path, sign: u8, path: &Path) -> Result<()> {
    prepare(folder)?;
    let file = folder.join(FILE);
    let written = opened(&file).and_then(|mut journal| {
        // Waits only while the file is being rewritten, which takes no longer than writing it.
        journal.lock_shared()?;
        journal.write_all(&record(sign, path))
    });
    written.map_err(Error::io("append to", &file))
}

fn opened(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(FILE_MODE);
    options.open(file)
}

fn record(sign: u8, path: &Path) -> Vec<u8> {
    [&[0, sign], path.as_os_str().as_bytes(), &[0]].concat()
}

/// Returns the paths that were added and not removed.
///
/// # Errors
/// [`Error::Io`].
pub fn read(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let file = folder.join(FILE);
    let bytes = match fs::read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(Error::io("read", &file))?,
    };
    let mut paths = BTreeSet::new();
    for record in bytes.split(|byte| *byte == 0) {
        let Some((sign, path)) = record.split_first() else {
            continue;
        };
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        match sign {
            b'+' => paths.insert(path),
            b'-' => paths.remove(&path),
            _ => continue,
        };
    }
    Ok(paths)
}

/// Replaces the journal by one that has these paths, and those that were added meanwhile.
///
/// # Errors
/// [`Error::Io`].
pub fn replace(folder: &Path, paths: &BTreeSet<PathBuf>) -> Result<()> {
    let file = folder.join(FILE);
    let bytes: Vec<u8> = paths.iter().flat_map(|path| record(b'+', path)).collect();
    let written = opened(&file).and_then(|mut journal| {
        journal.lock()?;
        journal.set_len(0)?;
        journal.write_all(&bytes)
    });
    written.map_err(Error::io("replace", &file))
}

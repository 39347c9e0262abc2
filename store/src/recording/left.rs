//! Folders that a recorder has left because it was killed before they were recordings.
//!
//! A recorder has locked the marker before it gives it its name, and writes the manifest last. So nobody makes a recording of a
//! folder that has no manifest, and a marker that is not locked. Of an empty folder nothing is known: its recorder may just begin.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::document::draft_path;
use crate::format::{COLUMNS_DIR, FILE_HEADER_LEN, INCOMPLETE_FILE, LOG_DIR, MANIFEST_FILE};

/// Returns whether the folder `dir` would be a recording if its recorder had not been killed as it began.
#[must_use]
pub fn is_left(dir: &Path) -> bool {
    let marker = File::open(dir.join(INCOMPLETE_FILE));
    marker.is_ok_and(|marker| marker.try_lock_shared().is_ok() && is_only_begun(dir, &marker))
}

/// Deletes such a folder. `false`: it is none, or cannot be deleted.
pub(super) fn clear(dir: &Path) -> bool {
    let path = dir.join(INCOMPLETE_FILE);
    let Ok(marker) = File::open(&path) else {
        return false;
    };
    // Locked until the end: another recorder may want the name, too.
    if marker.try_lock().is_err() || !is_only_begun(dir, &marker) {
        return false;
    }
    for part in [LOG_DIR, COLUMNS_DIR] {
        let _ = fs::remove_dir_all(dir.join(part));
    }
    let _ = fs::remove_file(draft_path(&dir.join(MANIFEST_FILE)));
    // The marker goes last: without it, what is left could not be told from what has just begun.
    fs::remove_file(&path).is_ok() && fs::remove_dir(dir).is_ok()
}

/// Returns whether `marker`, which is locked, is still the marker of the folder `dir`, and that has no more than a recorder makes
/// before the manifest: no event.
fn is_only_begun(dir: &Path, marker: &File) -> bool {
    let named = dir.join(INCOMPLETE_FILE).symlink_metadata();
    let is_same = named.is_ok_and(|named| {
        let locked = marker.metadata();
        locked.is_ok_and(|locked| (named.dev(), named.ino()) == (locked.dev(), locked.ino()))
    });
    let is_folder = dir.symlink_metadata().is_ok_and(|found| found.is_dir());
    is_same && is_folder && has_no_event(dir).unwrap_or(false)
}

fn has_no_event(dir: &Path) -> io::Result<bool> {
    let draft = draft_path(Path::new(MANIFEST_FILE));
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (name, is_dir) = (entry.file_name(), entry.file_type()?.is_dir());
        let is_empty = match name.to_str() {
            Some(INCOMPLETE_FILE) => !is_dir,
            Some(LOG_DIR | COLUMNS_DIR) => is_dir && has_headers_alone(&entry.path())?,
            _ => !is_dir && name == draft.as_os_str(),
        };
        if !is_empty {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_headers_alone(part: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(part)? {
        if entry?.metadata()?.len() > FILE_HEADER_LEN as u64 {
            return Ok(false);
        }
    }
    Ok(true)
}

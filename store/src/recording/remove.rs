//! Deletes a recording: the files that belong to one, and nothing else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Recording, RecordingState};
use crate::error::{Error, Result};
use crate::format::{
    COLUMNS_DIR, CORE_LINK_FILE, DEFINITIONS_FILE, INCOMPLETE_FILE, INSTRUCTIONS_DIR,
    INSTRUCTIONS_FILE, LABELS_FILE, LOG_DIR, MANIFEST_FILE, MEMORY_DIR, MEMORY_SUFFIX, MODULES_DIR,
    MODULES_INDEX_FILE, NOTES_FILE, PACKED_FILE, SEAL_STATE_FILE, SEGMENT_SUFFIX, SPARE_FILES,
};

/// The ending of a document that was being written when its writer died.
const DRAFT_SUFFIX: &str = ".draft";
/// The folder with the index of older versions.
const OLD_CATALOG_DIR: &str = "catalog";

/// The folders of a recording, and the names of their files.
const PARTS: [(&str, fn(&str) -> bool); 4] = [
    (LOG_DIR, is_segment),
    (COLUMNS_DIR, is_column),
    (MEMORY_DIR, is_snapshot),
    (INSTRUCTIONS_DIR, is_of_instructions),
];
/// The files beside them, the manifest last.
const BESIDE: [&str; 6] = [
    NOTES_FILE,
    LABELS_FILE,
    PACKED_FILE,
    CORE_LINK_FILE,
    INCOMPLETE_FILE,
    MANIFEST_FILE,
];

/// What was deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Bytes of the deleted files.
    pub len_bytes: u64,
    /// Files in the folder that belong to no recording: they remain, and so does the folder.
    pub left: Vec<PathBuf>,
}

/// Deletes a recording. The manifest goes last, so that what is left after a failure is still a recording that can be
/// deleted.
///
/// # Errors
/// [`Error::BeingRecorded`], or [`Error::Io`] with the first file that cannot be deleted.
pub fn remove(recording: &Recording) -> Result<Removed> {
    // It may have changed since it was opened.
    let recording = Recording::open_exact(recording.dir())?;
    if recording.state() == RecordingState::Live {
        return Err(Error::BeingRecorded {
            path: recording.dir().to_path_buf(),
        });
    }
    let dir = recording.dir();
    let mut removed = Removed::default();
    for (part, is_own) in PARTS {
        removed.folder(&dir.join(part), is_own)?;
    }
    let modules = dir.join(MODULES_DIR);
    for entry in entries(&modules)? {
        if entry.is_dir() && is_folder_of_copies(&name(&entry)) {
            removed.whole(&entry)?;
        }
    }
    removed.folder(&modules, |name| is_document(name, MODULES_INDEX_FILE))?;
    removed.whole(&dir.join(OLD_CATALOG_DIR))?;
    for file in BESIDE {
        for file in [format!("{file}{DRAFT_SUFFIX}"), file.to_owned()] {
            removed.file(&dir.join(file))?;
        }
    }
    removed.folder(dir, |_| false)?;
    Ok(removed)
}

/// Returns the files and folders in a recording's folder that belong to no recording, by their names: those that [`remove`] leaves.
///
/// # Errors
/// [`Error::Io`] with the first folder that cannot be read.
pub fn foreign(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut foreign = Vec::new();
    for path in entries(dir)? {
        let found = path.symlink_metadata();
        let is_dir = found.as_ref().is_ok_and(fs::Metadata::is_dir);
        let own = name(&path);
        let part = PARTS.iter().find(|(part, _)| *part == own && is_dir);
        let is_own = match is_dir {
            true => own == MODULES_DIR || own == OLD_CATALOG_DIR,
            false => BESIDE.iter().any(|document| is_document(&own, document)),
        };
        if let Some((_, is_own)) = part {
            let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|f| f.is_file());
            let inside = entries(&path)?.into_iter();
            foreign.extend(inside.filter(|path| !(is_file(path) && is_own(&name(path)))));
        } else if !is_own {
            foreign.push(path);
        }
    }
    Ok(foreign)
}

impl Removed {
    /// Deletes the files of `folder` that `is_own` names, and the folder if nothing is left in it.
    fn folder(&mut self, folder: &Path, is_own: impl Fn(&str) -> bool) -> Result<()> {
        let mut is_empty = true;
        for path in entries(folder)? {
            let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
            match is_file && is_own(&name(&path)) {
                true => self.file(&path)?,
                false => {
                    is_empty = false;
                    if !self.left.iter().any(|left| left.starts_with(&path)) {
                        self.left.push(path);
                    }
                }
            }
        }
        match is_empty {
            true => gone(folder, fs::remove_dir(folder)),
            false => Ok(()),
        }
    }

    fn file(&mut self, path: &Path) -> Result<()> {
        let len = path.symlink_metadata().map_or(0, |found| found.len());
        gone(path, fs::remove_file(path))?;
        self.len_bytes += len;
        Ok(())
    }

    /// Deletes a folder with everything in it; it does not follow symbolic links.
    fn whole(&mut self, folder: &Path) -> Result<()> {
        if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Ok(());
        }
        for path in entries(folder)? {
            match path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                true => self.whole(&path)?,
                false => self.file(&path)?,
            }
        }
        gone(folder, fs::remove_dir(folder))
    }
}

/// What is already gone need not be deleted.
fn gone(path: &Path, result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::io("read", folder))?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths
        .collect::<io::Result<_>>()
        .map_err(Error::io("read", folder))?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn is_number(text: &str) -> bool {
    text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_segment(name: &str) -> bool {
    name.strip_suffix(SEGMENT_SUFFIX).is_some_and(is_number)
}

fn is_snapshot(name: &str) -> bool {
    let name = name.strip_suffix(DRAFT_SUFFIX).unwrap_or(name);
    name.strip_suffix(MEMORY_SUFFIX).is_some_and(is_number)
}

fn is_column(name: &str) -> bool {
    crate::seal::is_part_file(name)
        || name == DEFINITIONS_FILE
        || is_document(name, SEAL_STATE_FILE)
}

/// An interrupted recorder leaves those that keep room.
fn is_of_instructions(name: &str) -> bool {
    name == INSTRUCTIONS_FILE || SPARE_FILES.contains(&name)
}

fn is_document(name: &str, document: &str) -> bool {
    name.strip_suffix(DRAFT_SUFFIX).unwrap_or(name) == document
}

/// `000000` and so on hold modules, `debug` and `sources` what belongs to them.
fn is_folder_of_copies(name: &str) -> bool {
    is_number(name) || name == "debug" || name == "sources"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Created, OnTaken, OpenRecording};
    use crate::synth::{debugged, manifest};

    #[test]
    fn a_recording_is_deleted_with_all_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let recording = debugged().record(&dir.path().join("x")).unwrap();
        crate::notes::add(&recording, 1, "a note").unwrap();
        crate::labels::change(&recording, &[("a".into(), Some("b".into()))].into()).unwrap();
        let instructions = recording.dir().join(INSTRUCTIONS_DIR);
        fs::create_dir_all(&instructions).unwrap();
        for file in SPARE_FILES.into_iter().chain([INSTRUCTIONS_FILE]) {
            fs::write(instructions.join(file), "123").unwrap();
        }
        let copies = recording.dir().join("modules/000000");
        fs::create_dir_all(&copies).unwrap();
        fs::write(copies.join("libx.so"), "12345").unwrap();
        assert_eq!(foreign(recording.dir()).unwrap(), Vec::<PathBuf>::new());
        let removed = remove(&recording).unwrap();
        assert!(removed.len_bytes > 100);
        assert_eq!(removed.left, Vec::<PathBuf>::new());
        assert!(!recording.dir().exists());
    }

    #[test]
    fn other_files_stay_and_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let recording = debugged().record(&dir.path().join("x")).unwrap();
        let outside = dir.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        let mine = recording.dir().join("columns/thesis.txt");
        let link = recording.dir().join("log/000009.seg");
        fs::write(&mine, "mine").unwrap();
        assert_eq!(
            foreign(recording.dir()).unwrap(),
            std::slice::from_ref(&mine)
        );
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let removed = remove(&recording).unwrap();
        assert_eq!(removed.left, [link.clone(), mine.clone()]);
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
        assert!(!recording.dir().join(MANIFEST_FILE).exists());
    }

    #[test]
    fn a_recording_that_is_being_made_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let made = OpenRecording::create(&dir.path().join("x"), OnTaken::Refuse, manifest());
        let Created { open, log } = made.unwrap();
        let refused = remove(open.recording());
        assert!(matches!(refused, Err(Error::BeingRecorded { .. })));
        drop((open, log));
        let path = dir.path().join("x.hindsight");
        remove(&Recording::open(&path).unwrap()).unwrap();
        assert!(!path.exists());
    }
}

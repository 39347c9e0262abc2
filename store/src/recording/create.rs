//! Creates recordings and closes them cleanly.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::left::{clear, is_left};
use super::{Recording, with_suffix};
use crate::clock::Clock;
use crate::document::{self, draft_path};
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::{
    COLUMNS_DIR, FORMAT_VERSION, FileKind, INCOMPLETE_FILE, LOG_DIR, MANIFEST_FILE,
    RECORDING_SUFFIX,
};
use crate::log::{ClosedLog, LogWriter};
use crate::manifest::{Lineage, Manifest};
use crate::recording::RecordingState;
use crate::storage::{self, FILE_MODE};

/// The action when the name of a new recording is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTaken {
    /// Return [`Error::Exists`].
    Refuse,
    /// Try `NAME-2`, `NAME-3` and so on.
    Number,
}

/// A recording that was just created.
pub struct Created {
    /// The recording and its marker.
    pub open: OpenRecording,
    /// The one writer of its log.
    pub log: LogWriter,
}

/// A recording being made. Dropping it leaves the recording interrupted; [`Self::close`] ends it cleanly.
#[derive(Debug)]
pub struct OpenRecording {
    recording: Recording,
    /// Locked as long as the recorder lives.
    marker: File,
}

impl OpenRecording {
    /// Creates the folder of a recording, which must not exist, with its manifest, its marker and an empty log.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::Exists`], [`Error::NotCreated`], [`Error::BadClock`], [`Error::Io`] and those of
    /// [`document::write`].
    ///
    /// # Panics
    /// When the manifest does not state the version of the format written here.
    pub fn create(path: &Path, on_taken: OnTaken, mut manifest: Manifest) -> Result<Created> {
        assert_eq!(
            manifest.format_version, FORMAT_VERSION,
            "the manifest states the format written"
        );
        let clock = Clock::new(manifest.clock)?;
        let wanted = named(path)?;
        let dir = create_dir(&wanted, on_taken)?;
        if dir != wanted {
            let name = wanted.file_stem().map(|name| name.to_string_lossy());
            manifest.run_of = name.map(Into::into);
        }
        let filled = fill(&dir, &manifest);
        if filled.is_err() {
            // The folder is ours alone: on a full disk it would only take space.
            let _ = fs::remove_dir_all(&dir);
        }
        let (marker, log) = filled?;
        let recording = Recording {
            dir,
            manifest,
            clock,
            state: RecordingState::Live,
        };
        let open = Self { recording, marker };
        Ok(Created { open, log })
    }

    /// Takes over a recording whose recorder died: its log and its columns begin anew. `None`: it is being written, or was closed.
    ///
    /// # Errors
    /// The fault of the manifest; [`Error::Io`], [`Error::Append`].
    pub fn begin_anew(dir: &Path) -> Result<Option<Created>> {
        let recording = Recording::open_exact(dir)?;
        let path = dir.join(INCOMPLETE_FILE);
        let marker = match OpenOptions::new().write(true).open(&path) {
            Ok(marker) => marker,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", &path)(error)),
        };
        match marker.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error)),
        }
        // Another process may have closed it since it was opened here.
        if !path.exists() {
            return Ok(None);
        }
        for part in [LOG_DIR, COLUMNS_DIR] {
            let part = dir.join(part);
            match fs::remove_dir_all(&part) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", &part)(error));
                }
                _ => {}
            }
            storage::create_dir(&part).map_err(Error::io("create", &part))?;
        }
        let log = LogWriter::create(&dir.join(LOG_DIR), recording.manifest.recording_id)?;
        let recording = Recording {
            state: RecordingState::Live,
            ..recording
        };
        Ok(Some(Created {
            open: Self { recording, marker },
            log,
        }))
    }

    /// Returns the recording as readers see it while it is being made.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Notes why the recording ends before the program, for [`Recording::why_incomplete`]. A full disk takes the note too: it has
    /// its room since the recording began.
    pub fn ended_early(&self, why: &str) {
        let mut note = [b' '; MARKER_LEN];
        let len = why.floor_char_boundary(MARKER_LEN);
        note[..len].copy_from_slice(&why.as_bytes()[..len]);
        // Without the note, the recording is incomplete all the same.
        let _ = self.marker.write_all_at(&note, 0);
    }

    /// Ends the recording cleanly: removes its marker. `_log` proves that its log is whole.
    ///
    /// # Errors
    /// [`Error::Io`]; the recording then stays marked as unfinished.
    pub fn close(self, _log: ClosedLog) -> Result<Recording> {
        let dir = &self.recording.dir;
        let marker = dir.join(INCOMPLETE_FILE);
        fs::remove_file(&marker).map_err(Error::io("remove", &marker))?;
        sync_dir(dir)?;
        drop(self.marker);
        Ok(Recording {
            state: RecordingState::Closed,
            ..self.recording
        })
    }
}

/// Notes in the manifest of the recording in the folder `dir` which process it is of.
///
/// # Errors
/// Those of [`Recording::open_exact`] and of [`document::write`]; the manifest is then as before.
pub fn set_process(dir: &Path, process: Lineage) -> Result<()> {
    let mut manifest = Recording::open_exact(dir)?.manifest;
    manifest.lineage = Some(process);
    write_manifest(dir, &manifest)
}

/// Checks in advance whether a recording of that name can be made; returns its folder, with the ending.
///
/// # Errors
/// [`Error::BadName`], [`Error::Exists`], or [`Error::NotCreated`] if the parent folder is missing or read-only.
pub fn may_be_created(path: &Path) -> Result<PathBuf> {
    check_free(named(path)?)
}

/// Checks that nothing has the name of a folder to be made, and that it can be made. Returns it.
///
/// # Errors
/// [`Error::Exists`] or [`Error::NotCreated`].
pub(crate) fn check_free(dir: PathBuf) -> Result<PathBuf> {
    if dir.symlink_metadata().is_ok() && !is_left(&dir) {
        return Err(Error::Exists { path: dir });
    }
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let around = parent(&dir).metadata().and_then(|found| {
        if !found.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(rustix::fs::access(parent(&dir), access)?)
    });
    match around {
        Ok(()) => Ok(dir),
        Err(source) => Err(Error::NotCreated { path: dir, source }),
    }
}

/// Returns the folder of a recording to be called `path`: with the ending, which needs a name before it.
fn named(path: &Path) -> Result<PathBuf> {
    check_name(path, RECORDING_SUFFIX)?;
    Ok(with_suffix(path))
}

/// Checks that `path` can name a folder with the ending `suffix`, which is appended if it is missing.
///
/// # Errors
/// [`Error::BadName`].
pub(crate) fn check_name(path: &Path, suffix: &str) -> Result<()> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/');
    let given = &bytes[..end.map_or(0, |end| end + 1)];
    let name = given
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    let why = match name {
        b"" if bytes.is_empty() => "it is empty",
        b"" | b"." | b".." => "it is a folder that is there already",
        _ if name == suffix.as_bytes() => "there is nothing before the ending",
        // Otherwise the new folder would come beside that one.
        _ if given.len() < bytes.len() && !name.ends_with(suffix.as_bytes()) && path.is_dir() => {
            "it is a folder that is there already"
        }
        _ => return Ok(()),
    };
    Err(Error::BadName {
        path: path.to_path_buf(),
        why,
    })
}

fn parent(dir: &Path) -> &Path {
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Creates the content of a new recording's folder, and locks its marker.
fn fill(dir: &Path, manifest: &Manifest) -> Result<(File, LogWriter)> {
    let marker = create_marker(dir)?;
    for part in [LOG_DIR, COLUMNS_DIR] {
        let part = dir.join(part);
        storage::create_dir(&part).map_err(Error::io("create", &part))?;
    }
    let log = LogWriter::create(&dir.join(LOG_DIR), manifest.recording_id)?;
    // Last, because a folder with a manifest is a recording.
    write_manifest(dir, manifest)?;
    sync_dir(parent(dir))?;
    Ok((marker, log))
}

fn write_manifest(dir: &Path, manifest: &Manifest) -> Result<()> {
    let header = FileHeader {
        kind: FileKind::Manifest,
        recording_id: manifest.recording_id,
        number: 0,
    };
    document::write(&dir.join(MANIFEST_FILE), header, manifest)
}

fn sync_dir(dir: &Path) -> Result<()> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(Error::io("sync", dir))
}

/// Creates the folder under the first name that is free, or that a killed recorder has not used.
fn create_dir(path: &Path, on_taken: OnTaken) -> Result<PathBuf> {
    let mut number = 1;
    loop {
        let dir = numbered(path, number);
        match storage::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::NotCreated {
                    path: dir,
                    source: error,
                });
            }
            Err(_) if clear(&dir) => {}
            Err(_) if on_taken == OnTaken::Refuse => return Err(Error::Exists { path: dir }),
            Err(_) => number += 1,
        }
    }
}

/// Returns `NAME.hindsight` for 1, `NAME-2.hindsight` for 2 and so on.
fn numbered(path: &Path, number: u32) -> PathBuf {
    match (number, path.file_stem()) {
        (2.., Some(stem)) => {
            let mut name = stem.to_os_string();
            name.push(format!("-{number}"));
            with_suffix(&path.with_file_name(name))
        }
        _ => path.to_path_buf(),
    }
}

/// Room for the note in the marker, in bytes.
const MARKER_LEN: usize = 512;

fn create_marker(dir: &Path) -> Result<File> {
    let path = dir.join(INCOMPLETE_FILE);
    let draft = draft_path(&path);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(FILE_MODE);
    let file = options.open(&draft).map_err(Error::io("create", &draft))?;
    file.lock().map_err(Error::io("lock", &draft))?;
    let room = file.write_all_at(&[b' '; MARKER_LEN], 0);
    room.map_err(Error::io("write", &draft))?;
    // It has its name only now: a marker that is not locked has no recorder.
    fs::rename(&draft, &path).map_err(Error::io("rename to", &path))?;
    Ok(file)
}

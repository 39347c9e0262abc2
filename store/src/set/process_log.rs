//! Recorders add facts to the list.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::{
    Fact, PROCESSES_FILE, Process, SET_SUFFIX,
    list::{CUT_FILE, is_cut},
    names::folder,
};
use crate::{
    error::{Error, Result},
    recording::check_name,
    storage::{self, FILE_MODE},
};

/// A set that recorders write to.
#[derive(Debug)]
pub struct ProcessLog {
    pub(super) dir: PathBuf,
    pub(super) file: File,
}

impl ProcessLog {
    /// Creates a set's folder: `NAME.children`, or if that is taken and `is_numbered`, `NAME-2.children` and so on.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::Exists`], [`Error::NotCreated`] or [`Error::Io`].
    pub fn create(name: &Path, is_numbered: bool) -> Result<Self> {
        check_name(name, SET_SUFFIX)?;
        let mut number = 1;
        let dir = loop {
            let dir = folder(name, number);
            match storage::create_dir(&dir) {
                Ok(()) => break dir,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    if !is_numbered {
                        return Err(Error::Exists { path: dir });
                    }
                    number += 1;
                }
                Err(source) => return Err(Error::NotCreated { path: dir, source }),
            }
        };
        Self::open(&dir)
    }

    /// Opens the set in `dir` to add to it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize().map_err(Error::io("find", dir))?;
        let path = dir.join(PROCESSES_FILE);
        let mut options = OpenOptions::new();
        let file = options
            .append(true)
            .create(true)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        Ok(Self { dir, file })
    }

    /// Returns the set's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Removes the recording of a process.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn prune(&self, process: &Process) -> Result<()> {
        let Some(name) = &process.recording else {
            return Ok(());
        };
        let path = self.dir.join(name);
        fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        self.add(&Fact::Pruned {
            pid: process.pid,
            recording: name.clone(),
        })
    }

    /// Adds a fact. If that fails, readers learn that the list lacks some, as far as the disk takes even that.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn add(&self, fact: &Fact) -> Result<()> {
        let path = self.dir.join(PROCESSES_FILE);
        let line =
            serde_json::to_string(fact).map_err(|error| Error::io("write", &path)(error.into()))?;
        // The last line may have been cut.
        let before = if is_cut(&self.dir) { "\n" } else { "" };
        let added = (&self.file).write_all(format!("{before}{line}\n").as_bytes());
        added.map_err(|error| {
            // An empty file usually has room on a full disk.
            let mut options = OpenOptions::new();
            options.write(true).create(true).mode(FILE_MODE);
            let _ = options.open(self.dir.join(CUT_FILE));
            Error::io("write", &path)(error)
        })
    }
}

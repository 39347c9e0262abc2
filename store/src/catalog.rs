//! The catalog of a user's runs: the recordings of this machine that it knows.
//!
//! The recordings are the truth, and the catalog is rebuilt from them when it is lost or damaged. Recorders append
//! paths to a journal, which never waits; opening the catalog takes over the new paths. sled keeps the entries. It
//! admits one process at a time, and may lose the latest entries when a process is killed: the journal still has
//! their paths.

mod journal;

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::labels::Labels;
use crate::recording::RecordingState;
use crate::set::PROCESSES_FILE;
use crate::storage::FILE_MODE;
use crate::summary::{Summary, Totals};

/// The folder of sled's files, in the catalog's.
const DB_DIR: &str = "entries";
/// The file in it that sled locks.
const DB_FILE: &str = "db";
/// The file that is locked while a process has the catalog open.
const LOCK_FILE: &str = "lock";
/// How long to wait between two attempts to take a lock.
const RETRY: Duration = Duration::from_millis(20);
/// How often a database that cannot be read is tried before it is made again.
const TRIES: u32 = 5;
/// Memory for sled's pages, in bytes.
const CACHE_BYTES: u64 = 16 << 20;

/// A recording in the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its folder, an absolute path without links.
    #[serde(with = "crate::os_path")]
    pub path: PathBuf,
    /// The id in its manifest.
    pub recording_id: [u8; 16],
    /// The command line of the program.
    pub argv: Vec<String>,
    /// When it began, in ns since 1970.
    pub start_unix_ns: i64,
    /// Whether its recorder had closed it when it was last read.
    pub closed: bool,
    /// Its labels.
    pub labels: Labels,
    /// What is known since it was closed.
    pub totals: Option<Totals>,
}

impl Entry {
    fn of(path: &Path, summary: &Summary) -> Self {
        let manifest = summary.manifest();
        Self {
            path: path.to_path_buf(),
            recording_id: manifest.recording_id.0,
            argv: manifest.argv.clone(),
            start_unix_ns: manifest.start_unix_ns,
            closed: summary.recording.state() == RecordingState::Closed,
            labels: summary.labels.clone(),
            totals: summary.totals.clone(),
        }
    }

    /// Returns whether the recording still exists at its path.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.path.join(crate::format::MANIFEST_FILE).is_file()
    }
}

/// Returns the folder of the user's catalog: `$XDG_DATA_HOME/hindsight/runs`, else `~/.local/share/hindsight/runs`. `None`
/// without a home.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("hindsight/runs"))
}

/// Tells the user's catalog about a recording, or a set as a whole. It opens no database and does not wait.
///
/// # Errors
/// [`Error::Io`] when the journal cannot be written; nothing depends on it.
pub fn tell(recording: &Path) -> Result<()> {
    match folder() {
        Some(folder) => journal::add(&folder, &real(recording)),
        None => Ok(()),
    }
}

fn is_set(path: &Path) -> bool {
    path.join(PROCESSES_FILE).is_file()
}

/// Returns the one path of a recording, by whatever links and `..` it was named: it is one entry.
fn real(path: &Path) -> PathBuf {
    let real = path.canonicalize().or_else(|_| std::path::absolute(path));
    real.unwrap_or_else(|_| path.to_path_buf())
}

/// The opened catalog.
#[derive(Debug)]
pub struct Catalog {
    folder: PathBuf,
    db: sled::Db,
    /// Is closed, and released, after the database.
    _lock: File,
}

impl Catalog {
    /// Opens the catalog in `folder`, waiting up to `patience` for another process to close it, and takes over the new
    /// paths. A damaged catalog is rebuilt.
    ///
    /// # Errors
    /// [`Error::CatalogInUse`], or [`Error::Io`] if the folder cannot be written.
    pub fn open(folder: &Path, patience: Duration) -> Result<Self> {
        journal::prepare(folder)?;
        let path = folder.join(DB_DIR);
        let lock = locked(folder, patience)?;
        let mut again = false;
        let mut tries = 0;
        let db = loop {
            match open_db(&path) {
                Ok(db) => break db,
                Err(sled::Error::Io(error)) if again => {
                    return Err(Error::io("open", &path)(error));
                }
                Err(error) if again => {
                    return Err(Error::io("open", &path)(std::io::Error::other(error)));
                }
                // Another version may have opened it meanwhile, and what is open must not be removed.
                Err(sled::Error::Io(_)) if tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(RETRY);
                    wait_for_sled(folder, Instant::now() + patience)?;
                }
                Err(_) => {
                    again = true;
                    std::fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
                }
            }
        };
        let catalog = Self {
            folder: folder.to_path_buf(),
            db,
            _lock: lock,
        };
        catalog.take_over()?;
        Ok(catalog)
    }

    /// Returns all entries, the newest first, including those whose recordings are gone.
    ///
    /// # Errors
    /// When sled cannot read them.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for pair in self.db.iter() {
            let (_, value) = pair.map_err(|error| self.failed(error))?;
            // An entry from an older or newer version is rebuilt.
            entries.extend(rmp_serde::from_slice::<Entry>(&value));
        }
        entries.sort_by(|a: &Entry, b: &Entry| {
            (b.start_unix_ns, &a.path).cmp(&(a.start_unix_ns, &b.path))
        });
        Ok(entries)
    }

    /// Adds recordings, or reads them again.
    ///
    /// # Errors
    /// When sled or the journal cannot be written, or one is not a recording.
    pub fn add(&self, recording: &Path) -> Result<Entry> {
        let path = real(recording);
        let entry = Entry::of(&path, &Summary::read(&path)?);
        if self.get(&path)?.is_none() {
            journal::add(&self.folder, &path)?;
        }
        self.put(&entry)?;
        Ok(entry)
    }

    /// Returns the folders of the sets that were told as such: one of them may have no recording any more.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn sets(&self) -> Result<Vec<PathBuf>> {
        let told = journal::read(&self.folder)?.into_iter();
        Ok(told.filter(|path| is_set(path)).collect())
    }

    /// Adds a set, which need not have recordings. Returns whether it is new.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub fn add_set(&self, set: &Path) -> Result<bool> {
        let path = real(set);
        let is_new = !journal::read(&self.folder)?.contains(&path);
        if is_new {
            journal::add(&self.folder, &path)?;
        }
        Ok(is_new)
    }

    /// Removes recordings and sets from the catalog; they themselves stay.
    ///
    /// # Errors
    /// When sled or the journal cannot be written.
    pub fn forget(&self, paths: &[PathBuf]) -> Result<()> {
        for path in paths {
            journal::take_away(&self.folder, path)?;
            self.db
                .remove(key(path))
                .map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Compacts the journal to the paths of all entries and sets.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn compact(&self) -> Result<()> {
        let paths = self.entries()?.into_iter().map(|entry| entry.path);
        let paths: BTreeSet<PathBuf> = paths.chain(self.sets()?).collect();
        self.db.flush().map_err(|error| self.failed(error))?;
        journal::replace(&self.folder, &paths)
    }

    /// Adds what the journal has and the entries lack, and rereads recordings that were not closed.
    fn take_over(&self) -> Result<()> {
        let mut known: BTreeSet<PathBuf> = BTreeSet::new();
        for entry in self.entries()? {
            if !entry.closed && entry.is_there() {
                self.look(&entry.path)?;
            }
            known.insert(entry.path);
        }
        let told = journal::read(&self.folder)?;
        for path in told.difference(&known).filter(|path| !is_set(path)) {
            self.look(path)?;
        }
        Ok(())
    }

    /// Reads a recording; an unreadable one gives no entry.
    fn look(&self, path: &Path) -> Result<()> {
        match Summary::read(path) {
            Ok(summary) => self.put(&Entry::of(path, &summary)),
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "not in the catalog");
                Ok(())
            }
        }
    }

    fn get(&self, path: &Path) -> Result<Option<Entry>> {
        let found = self.db.get(key(path)).map_err(|error| self.failed(error))?;
        Ok(found.and_then(|value| rmp_serde::from_slice(&value).ok()))
    }

    fn put(&self, entry: &Entry) -> Result<()> {
        let what = "an entry of the catalog";
        let value =
            rmp_serde::to_vec_named(entry).map_err(|source| Error::Encode { what, source })?;
        self.db
            .insert(key(&entry.path), value)
            .map_err(|error| self.failed(error))?;
        Ok(())
    }

    fn failed(&self, error: sled::Error) -> Error {
        Error::io("use the catalog", &self.folder)(std::io::Error::other(error))
    }
}

/// Entries are found by their path.
fn key(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// sled panics on some damage.
fn open_db(path: &Path) -> sled::Result<sled::Db> {
    let config = sled::Config::new().path(path).cache_capacity(CACHE_BYTES);
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let db = config.open()?;
        // Damage shows when the entries are read.
        for pair in db.iter() {
            pair?;
        }
        Ok(db)
    }));
    opened.unwrap_or(Err(sled::Error::Corruption { at: None, bt: () }))
}

/// Locks the catalog, and waits until sled's own lock is free: a process that forks shares both until its child executes a
/// program, and other versions take sled's alone.
fn locked(folder: &Path, patience: Duration) -> Result<File> {
    let until = Instant::now() + patience;
    let own = folder.join(LOCK_FILE);
    let mut options = OpenOptions::new();
    let opened = options.append(true).create(true).mode(FILE_MODE).open(&own);
    let lock = take(
        folder,
        &own,
        opened.map_err(Error::io("open", &own))?,
        until,
    )?;
    wait_for_sled(folder, until)?;
    Ok(lock)
}

/// Waits until nobody has the database open.
fn wait_for_sled(folder: &Path, until: Instant) -> Result<()> {
    let theirs = folder.join(DB_DIR).join(DB_FILE);
    match File::open(&theirs) {
        Ok(file) => take(folder, &theirs, file, until).map(drop),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("open", &theirs)(error)),
    }
}

fn take(folder: &Path, path: &Path, file: File, until: Instant) -> Result<File> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                return Err(Error::CatalogInUse {
                    path: folder.to_path_buf(),
                });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(RETRY),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path)(error)),
        }
    }
}

#[cfg(test)]
mod tests;

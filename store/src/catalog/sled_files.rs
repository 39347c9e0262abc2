//! Keeps a catalog in sled, whose failures (panics too) all become [`Error::Catalog`].

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Contents, Fingerprint, ModuleInfo};
use crate::control::FunctionDef;
use crate::error::{Error, Result};
use crate::seal::Part;
use crate::storage::{self, FILE_MODE};

/// Changes when the catalog's own layout does; an older catalog is then left aside and built again.
const LAYOUT: u64 = 1;
const FUNCTIONS: &str = "functions";
const MODULES: &str = "modules";
const PARTS: &str = "parts";
/// In the default tree: layout and fingerprint. Written last, so that a catalog with it is whole.
const STAMP: &[u8] = b"stamp";
const CACHE_BYTES: u64 = 16 << 20;
/// sled's background threads hold the lock of a database for a moment after it was dropped.
const UNLOCKED_AFTER_BUILDING: Duration = Duration::from_secs(1);
/// Another reader may hold the lock for good; then the recording itself answers, and should soon.
const UNLOCKED_BEFORE_READING: Duration = Duration::from_millis(100);

/// An open catalog.
pub(super) struct SledFiles {
    dir: PathBuf,
    db: sled::Db,
}

pub(super) fn build(dir: &Path, fingerprint: Fingerprint, contents: &Contents) -> Result<()> {
    let draft = dir.with_extension("draft");
    remove_dir(&draft)?;
    storage::create_dir(&draft).map_err(Error::io("create", &draft))?;
    guarded(&draft, || fill(&draft, fingerprint, contents))?;
    await_lock(&draft, UNLOCKED_AFTER_BUILDING);
    restrict(&draft).map_err(Error::io("restrict", &draft))?;
    remove_dir(dir)?;
    fs::rename(&draft, dir).map_err(Error::io("rename to", dir))
}

fn fill(dir: &Path, fingerprint: Fingerprint, contents: &Contents) -> Result<()> {
    let db = open_db(dir)?;
    let functions = tree(dir, &db, FUNCTIONS)?;
    for (id, function) in &contents.functions {
        insert(dir, &functions, *id, function)?;
    }
    let modules = tree(dir, &db, MODULES)?;
    for (id, module) in &contents.modules {
        insert(dir, &modules, *id, module)?;
    }
    let parts = tree(dir, &db, PARTS)?;
    for (number, part) in contents.parts.iter().enumerate() {
        insert(dir, &parts, number as u32, part)?;
    }
    db.insert(STAMP, &stamp(fingerprint)).map_err(failed(dir))?;
    db.flush().map_err(failed(dir))?;
    Ok(())
}

impl SledFiles {
    pub(super) fn open(dir: &Path, fingerprint: Fingerprint) -> Result<Self> {
        if !dir.is_dir() {
            return Err(unusable(dir, "there is none"));
        }
        await_lock(dir, UNLOCKED_BEFORE_READING);
        guarded(dir, || {
            let db = open_db(dir)?;
            let found = db.get(STAMP).map_err(failed(dir))?;
            match found.is_some_and(|found| found == stamp(fingerprint)) {
                true => Ok(Self {
                    dir: dir.to_path_buf(),
                    db,
                }),
                false => Err(unusable(dir, "it was built from another state")),
            }
        })
    }

    pub(super) fn function(&self, id: u32) -> Result<Option<FunctionDef>> {
        self.get(FUNCTIONS, id)
    }

    pub(super) fn module(&self, id: u32) -> Result<Option<ModuleInfo>> {
        self.get(MODULES, id)
    }

    pub(super) fn parts(&self) -> Result<Vec<Part>> {
        guarded(&self.dir, || {
            let tree = tree(&self.dir, &self.db, PARTS)?;
            tree.iter()
                .values()
                .map(|bytes| decode(&self.dir, &bytes.map_err(failed(&self.dir))?))
                .collect()
        })
    }

    fn get<T: DeserializeOwned>(&self, name: &str, id: u32) -> Result<Option<T>> {
        guarded(&self.dir, || {
            let tree = tree(&self.dir, &self.db, name)?;
            let found = tree.get(id.to_be_bytes()).map_err(failed(&self.dir))?;
            found.map(|bytes| decode(&self.dir, &bytes)).transpose()
        })
    }
}

fn open_db(dir: &Path) -> Result<sled::Db> {
    let config = sled::Config::new()
        .path(dir)
        .cache_capacity(CACHE_BYTES)
        .flush_every_ms(None);
    config.open().map_err(failed(dir))
}

/// Waits until nobody holds sled's lock of the database in `dir`, or `limit` is over. What else is wrong with the
/// file is sled's to say.
fn await_lock(dir: &Path, limit: Duration) {
    let Ok(file) = File::open(dir.join("db")) else {
        return;
    };
    let end = Instant::now() + limit;
    while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
}

fn tree(dir: &Path, db: &sled::Db, name: &str) -> Result<sled::Tree> {
    db.open_tree(name).map_err(failed(dir))
}

fn insert<T: Serialize>(dir: &Path, tree: &sled::Tree, id: u32, value: &T) -> Result<()> {
    let what = "a catalog entry";
    let bytes = rmp_serde::to_vec(value).map_err(|source| Error::Encode { what, source })?;
    tree.insert(id.to_be_bytes(), bytes).map_err(failed(dir))?;
    Ok(())
}

fn decode<T: DeserializeOwned>(dir: &Path, bytes: &[u8]) -> Result<T> {
    rmp_serde::from_slice(bytes).map_err(|error| unusable(dir, &error.to_string()))
}

fn stamp(fingerprint: Fingerprint) -> [u8; 16] {
    let mut stamp = [0; 16];
    stamp[..8].copy_from_slice(&LAYOUT.to_le_bytes());
    stamp[8..].copy_from_slice(&fingerprint.0.to_le_bytes());
    stamp
}

/// Runs `action`; a panic inside sled, as damaged files can cause, becomes an error.
fn guarded<T>(dir: &Path, action: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(action))
        .unwrap_or_else(|_| Err(unusable(dir, "sled gave up on its files")))
}

fn failed(dir: &Path) -> impl FnOnce(sled::Error) -> Error {
    move |error| unusable(dir, &error.to_string())
}

fn unusable(dir: &Path, message: &str) -> Error {
    Error::Catalog {
        path: dir.to_path_buf(),
        message: message.into(),
    }
}

fn remove_dir(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", dir)(error))
        }
        _ => Ok(()),
    }
}

/// Gives the files below `dir`, which sled made, the mode of all files of a recording.
fn restrict(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(storage::DIR_MODE))?;
            restrict(&entry.path())?;
        } else {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(FILE_MODE))?;
        }
    }
    Ok(())
}

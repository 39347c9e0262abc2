//! Syncs appended bytes to the disk on a thread of its own, so that the writer never waits for the disk.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::format::{SYNC_BYTES, SYNC_INTERVAL_MS};
use crate::storage::{Storage, StorageFile};

/// The syncing thread, and the writer's side of it.
pub(super) struct Syncer<F: StorageFile> {
    shared: Arc<Shared<F>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<F> {
    /// Bytes appended since the last sync began.
    unsynced: AtomicU64,
    /// Files to sync, the current one last. The lock is held for a push or a copy only.
    files: Mutex<Files<F>>,
    failure: OnceLock<Failure>,
    failed: AtomicBool,
    stop: AtomicBool,
}

struct Files<F> {
    /// Segments that take no more frames, and were not synced since.
    done: Vec<(PathBuf, Arc<F>)>,
    current: (PathBuf, Arc<F>),
    /// Whether a segment was created since the last sync of the folder.
    names_changed: bool,
}

struct Failure {
    path: PathBuf,
    message: String,
}

impl<F: StorageFile> Syncer<F> {
    /// Starts the thread. `current` is the file being appended to, in the folder `dir`.
    pub(super) fn start<S: Storage<File = F>>(
        storage: S,
        dir: &Path,
        current: (PathBuf, Arc<F>),
    ) -> Result<Self> {
        let files = Files {
            done: Vec::new(),
            current,
            names_changed: true,
        };
        let shared = Arc::new(Shared {
            unsynced: AtomicU64::new(0),
            files: Mutex::new(files),
            failure: OnceLock::new(),
            failed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let (theirs, log_dir) = (Arc::clone(&shared), dir.to_path_buf());
        let thread = thread::Builder::new()
            .name("log-sync".into())
            .spawn(move || theirs.run(&storage, &log_dir))
            .map_err(Error::io("start the sync thread for", dir))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Reports that `count` bytes were appended. Takes no lock and makes no system call,
    /// except to wake the thread: after a sync, and once in 256 MiB.
    ///
    /// # Errors
    /// [`Error::Sync`] when an earlier sync failed.
    #[inline]
    pub(super) fn appended(&self, count: u64) -> Result<()> {
        let before = self.shared.unsynced.fetch_add(count, Ordering::Relaxed);
        if before == 0 || before < SYNC_BYTES && before + count >= SYNC_BYTES {
            self.wake();
        }
        self.health()
    }

    /// Reports that frames go to another file from now on.
    pub(super) fn rolled(&self, current: (PathBuf, Arc<F>)) {
        let mut files = self.shared.lock();
        let done = mem::replace(&mut files.current, current);
        files.done.push(done);
        files.names_changed = true;
    }

    /// Syncs everything again and ends the thread.
    ///
    /// # Errors
    /// [`Error::Sync`] when this or an earlier sync failed.
    pub(super) fn finish(mut self) -> Result<()> {
        self.stop();
        self.health()
    }

    #[inline]
    fn health(&self) -> Result<()> {
        match self.shared.failed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(self.shared.error()),
        }
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            self.shared
                .fail(Path::new(""), "the sync thread panicked".into());
        }
    }
}

impl<F: StorageFile> Drop for Syncer<F> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<F: StorageFile> Shared<F> {
    fn run<S: Storage<File = F>>(&self, storage: &S, dir: &Path) {
        loop {
            let last = self.stop.load(Ordering::Acquire);
            if self.unsynced.swap(0, Ordering::Relaxed) > 0 || last {
                self.sync(storage, dir);
            }
            if last || self.failed.load(Ordering::Relaxed) {
                return;
            }
            self.wait();
        }
    }

    /// Waits until there is something to sync, at least one interval unless there is much.
    fn wait(&self) {
        let until = Instant::now() + Duration::from_millis(SYNC_INTERVAL_MS);
        let is_urgent = |unsynced| unsynced >= SYNC_BYTES || self.stop.load(Ordering::Acquire);
        loop {
            let unsynced = self.unsynced.load(Ordering::Relaxed);
            let left = until.saturating_duration_since(Instant::now());
            match unsynced {
                unsynced if is_urgent(unsynced) => return,
                _ if !left.is_zero() => thread::park_timeout(left),
                0 => thread::park(),
                _ => return,
            }
        }
    }

    fn sync<S: Storage<File = F>>(&self, storage: &S, dir: &Path) {
        let (files, names_changed) = {
            let mut files = self.lock();
            let mut list = mem::take(&mut files.done);
            list.push((files.current.0.clone(), Arc::clone(&files.current.1)));
            (list, mem::take(&mut files.names_changed))
        };
        for (path, file) in files {
            if let Err(error) = file.sync() {
                return self.fail(&path, error.to_string());
            }
        }
        if names_changed && let Err(error) = storage.sync_dir(dir) {
            self.fail(dir, error.to_string());
        }
    }

    fn fail(&self, path: &Path, message: String) {
        let path = path.to_path_buf();
        self.failure.get_or_init(|| Failure { path, message });
        self.failed.store(true, Ordering::Relaxed);
    }

    fn error(&self) -> Error {
        let (path, message) = match self.failure.get() {
            Some(failure) => (failure.path.clone(), failure.message.clone()),
            None => (PathBuf::new(), "failed".into()),
        };
        Error::Sync { path, message }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Files<F>> {
        // A panic elsewhere leaves the list intact: it is only pushed to or taken.
        self.files
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

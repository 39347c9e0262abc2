//! Writes files through buffers of its own and a thread, so that the writer never waits for the disk.
//!
//! Whole buffers go to the disk past the page cache (O_DIRECT in open(2)) where that is faster. Every byte of a log
//! would need fresh page-cache memory, and virtual machines supply that at half a gigabyte a second. On slow disks the
//! cache is faster. Both ways are timed, and the better one is used.
//!
//! A file's bytes reach it in order, so its content is always a beginning of what was appended. After a failed
//! write nothing more is written, and each append reports the failure.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use super::aligned::{ALIGN, Buffer};
use super::speed::{Speeds, Way};
use super::{Disk, Storage, StorageFile};

/// Length of a buffer, in bytes.
const BUFFER_BYTES: usize = 4 << 20;
/// Buffers of one storage: how far the writer may be ahead of the disk. Disks sometimes pause for tens of milliseconds.
/// More buffers would be fresh memory, which can cost more than waiting.
const BUFFERS: usize = 6;

/// A [`Storage`] that stages writes.
#[derive(Clone)]
pub struct Staged {
    jobs: Sender<Job>,
    pool: Arc<Pool>,
}

/// Unused buffers. The one that was used last is used next: while the disk keeps up, few are ever touched.
struct Pool {
    free: Mutex<Vec<Buffer>>,
    given: Condvar,
}

/// A file of [`Staged`].
pub struct StagedFile {
    staging: Mutex<Staging>,
    target: Arc<Target>,
    storage: Staged,
}

/// Bytes that are not yet passed on. One thread appends, so its lock is never contended.
struct Staging {
    /// `None`: nothing was appended since the last whole buffer, or appending has ended.
    buffer: Option<Buffer>,
    /// File offset of the buffer's first byte: a multiple of [`ALIGN`], unless `finish` came in between.
    start: u64,
    /// Bytes in the buffer.
    len: usize,
    /// How many of them were passed on.
    handed_on: usize,
}

/// The file on the disk.
struct Target {
    buffered: File,
    direct: Option<File>,
    state: Mutex<TargetState>,
    idle: Condvar,
}

#[derive(Default)]
struct TargetState {
    /// Unfinished jobs.
    jobs: usize,
    /// Written bytes of the file.
    good_len: u64,
    failure: Option<(io::ErrorKind, Option<i32>, String)>,
}

/// A write.
enum Job {
    /// The bytes of a buffer from `from` to `to`; the buffer's first byte belongs to `start`.
    Whole {
        target: Arc<Target>,
        buffer: Buffer,
        start: u64,
        from: usize,
        to: usize,
    },
    /// A copy of bytes whose buffer is still being filled.
    Part {
        target: Arc<Target>,
        bytes: Vec<u8>,
        at: u64,
    },
}

impl Staged {
    /// Starts the writing thread.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub fn start() -> io::Result<Self> {
        let (jobs, todo) = mpsc::channel();
        let pool = Arc::new(Pool {
            free: Mutex::new(Vec::new()),
            given: Condvar::new(),
        });
        let theirs = Arc::clone(&pool);
        thread::Builder::new()
            .name("log-write".into())
            .spawn(move || {
                for _ in 0..BUFFERS {
                    theirs.give(Buffer::touched(BUFFER_BYTES));
                }
                write_all(&todo, &theirs);
            })?;
        Ok(Self { jobs, pool })
    }
}

impl Storage for Staged {
    type File = StagedFile;

    fn create(&self, path: &Path) -> io::Result<StagedFile> {
        let buffered = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(super::FILE_MODE)
            .open(path)?;
        Ok(self.staged(path, buffered, 0))
    }

    fn reopen(&self, path: &Path) -> io::Result<StagedFile> {
        let buffered = OpenOptions::new().write(true).open(path)?;
        let len = buffered.metadata()?.len();
        if len % ALIGN as u64 != 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(self.staged(path, buffered, len))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.sync_dir(dir)
    }
}

impl Staged {
    fn staged(&self, path: &Path, buffered: File, len: u64) -> StagedFile {
        let direct = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_DIRECT)
            .open(path)
            .ok();
        let state = TargetState {
            good_len: len,
            ..TargetState::default()
        };
        StagedFile {
            staging: Mutex::new(Staging {
                buffer: None,
                start: len,
                len: 0,
                handed_on: 0,
            }),
            target: Arc::new(Target {
                buffered,
                direct,
                state: Mutex::new(state),
                idle: Condvar::new(),
            }),
            storage: self.clone(),
        }
    }
}

impl StorageFile for StagedFile {
    /// Takes all bytes. Waits when `BUFFERS` buffers are not yet on the disk.
    fn append(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.target.check()?;
        let mut staging = lock(&self.staging);
        let mut count = 0;
        for part in parts {
            let mut rest: &[u8] = part;
            while !rest.is_empty() {
                let taken = self.stage(&mut staging, rest);
                rest = &rest[taken..];
                count += taken;
            }
        }
        Ok(count)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.finish()?;
        let good_len = lock(&self.target.state).good_len;
        self.target.buffered.set_len(len.min(good_len))
    }

    /// Syncs everything written so far; see [`StorageFile::finish`].
    fn sync(&self) -> io::Result<()> {
        self.target.check()?;
        self.target.buffered.sync_data()
    }

    fn flush(&self) {
        let mut staging = lock(&self.staging);
        let Staging {
            buffer: Some(buffer),
            start,
            len,
            handed_on,
        } = &mut *staging
        else {
            return;
        };
        if handed_on < len {
            let job = Job::Part {
                target: Arc::clone(&self.target),
                bytes: buffer.bytes()[*handed_on..*len].to_vec(),
                at: *start + *handed_on as u64,
            };
            *handed_on = *len;
            self.hand_on(job);
        }
    }

    fn settle(&self) -> io::Result<()> {
        self.flush();
        self.target.wait()
    }

    fn finish(&self) -> io::Result<()> {
        self.hand_on_buffer(&mut lock(&self.staging));
        self.target.wait()
    }

    fn end(&self) {
        self.hand_on_buffer(&mut lock(&self.staging));
    }
}

impl StagedFile {
    /// Copies as much as fits the buffer and passes the buffer on when it is full. Returns the number of bytes.
    fn stage(&self, staging: &mut Staging, bytes: &[u8]) -> usize {
        let len = staging.len;
        let buffer = staging
            .buffer
            .get_or_insert_with(|| self.storage.pool.take());
        let room = &mut buffer.bytes_mut()[len..];
        let count = room.len().min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        staging.len += count;
        if staging.len == BUFFER_BYTES {
            self.hand_on_buffer(staging);
        }
        count
    }

    fn hand_on_buffer(&self, staging: &mut Staging) {
        let Some(buffer) = staging.buffer.take() else {
            return;
        };
        self.hand_on(Job::Whole {
            target: Arc::clone(&self.target),
            buffer,
            start: staging.start,
            from: staging.handed_on,
            to: staging.len,
        });
        staging.start += staging.len as u64;
        staging.len = 0;
        staging.handed_on = 0;
    }

    fn hand_on(&self, job: Job) {
        lock(&self.target.state).jobs += 1;
        self.storage
            .jobs
            .send(job)
            .expect("the thread ends after the last sender");
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // A caller that cares about a failure has called `finish` itself.
        let _ = self.finish();
    }
}

impl Pool {
    fn take(&self) -> Buffer {
        let mut free = lock(&self.free);
        loop {
            if let Some(buffer) = free.pop() {
                return buffer;
            }
            free = self
                .given
                .wait(free)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn give(&self, buffer: Buffer) {
        lock(&self.free).push(buffer);
        self.given.notify_one();
    }
}

impl Target {
    /// Waits until there is nothing to write, and returns whether all was written.
    fn wait(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        while state.jobs > 0 {
            state = self
                .idle
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        drop(state);
        self.check()
    }

    fn check(&self) -> io::Result<()> {
        match &lock(&self.state).failure {
            None => Ok(()),
            Some((_, Some(code), _)) => Err(io::Error::from_raw_os_error(*code)),
            Some((kind, None, message)) => Err(io::Error::new(*kind, message.clone())),
        }
    }

    /// Notes the result of a job: `Ok`, with the file whole up to `end`, or the failure with the bytes written before
    /// it.
    fn done(&self, end: u64, result: io::Result<()>) {
        let mut state = lock(&self.state);
        if state.failure.is_none() {
            state.good_len = end;
            if let Err(error) = result {
                state.failure = Some((error.kind(), error.raw_os_error(), error.to_string()));
                // Only whole data is useful; if the disk cannot even shorten the file, readers find the end themselves.
                let _ = self.buffered.set_len(end);
            }
        }
        state.jobs -= 1;
        drop(state);
        self.idle.notify_all();
    }
}

/// Runs the jobs, in order, until all files are gone.
fn write_all(jobs: &Receiver<Job>, pool: &Pool) {
    let mut speeds = Speeds::default();
    for job in jobs {
        match job {
            Job::Whole {
                target,
                buffer,
                start,
                from,
                to,
            } => {
                let mut at = start + from as u64;
                let mut result = target.check();
                if result.is_ok() {
                    result = write_buffer(&target, &buffer, start, &mut at, to, &mut speeds);
                }
                pool.give(buffer);
                target.done(at, result);
            }
            Job::Part { target, bytes, at } => {
                let mut end = at;
                let result = target
                    .check()
                    .and_then(|()| write_at(&target.buffered, &bytes, &mut end));
                target.done(end, result);
            }
        }
    }
}

/// Writes the buffer's bytes from file offset `at` on, up to `to` bytes of it, and advances `at`.
fn write_buffer(
    target: &Target,
    buffer: &Buffer,
    start: u64,
    at: &mut u64,
    to: usize,
    speeds: &mut Speeds,
) -> io::Result<()> {
    let bytes = buffer.bytes();
    let from = (*at - start) as usize / ALIGN * ALIGN;
    let whole = to / ALIGN * ALIGN;
    if let Some(direct) = &target.direct
        && whole > from
        && start.is_multiple_of(ALIGN as u64)
    {
        match speeds.choose(whole - from) {
            Way::Direct => {
                let mut end = start + from as u64;
                let result = speeds.time(Way::Direct, whole - from, || {
                    write_at(direct, &bytes[from..whole], &mut end)
                });
                *at = end.max(*at);
                match result {
                    // This file system does not support it.
                    Err(error) if error.raw_os_error() == Some(libc::EINVAL) => speeds.give_up(),
                    result => result?,
                }
            }
            Way::Buffered => {
                let rest = (*at - start) as usize;
                speeds.time(Way::Buffered, whole - rest, || {
                    write_at(&target.buffered, &bytes[rest..whole], at)
                })?;
            }
        }
    }
    let rest = (*at - start) as usize;
    write_at(&target.buffered, &bytes[rest..to], at)
}

/// Writes all bytes at `at`, and advances it.
fn write_at(file: &File, mut bytes: &[u8], at: &mut u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, *at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                *at += count as u64;
                bytes = &bytes[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves nothing in here half done.
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::time::{Duration, Instant};

    /// Pieces of these lengths, with some flushes, make the same file as sequential writes.
    fn check(lens: &[(usize, bool)]) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let storage = Staged::start().unwrap();
        let file = storage.create(&path).unwrap();
        let mut expected = Vec::new();
        for (number, (len, flush)) in lens.iter().enumerate() {
            let piece: Vec<u8> = (0..*len).map(|i| (i * 7 + number) as u8).collect();
            let (a, b) = piece.split_at(len / 3);
            let count = file.append(&[IoSlice::new(a), IoSlice::new(b)]).unwrap();
            assert_eq!(count, *len);
            expected.extend(piece);
            if *flush {
                file.flush();
            }
        }
        file.finish().unwrap();
        file.sync().unwrap();
        assert!(fs::read(&path).unwrap() == expected);
    }

    #[test]
    fn lengths_around_blocks_and_buffers() {
        let mut lens = Vec::new();
        for len in [
            1,
            ALIGN - 1,
            ALIGN,
            ALIGN + 1,
            BUFFER_BYTES - 8,
            BUFFER_BYTES,
            3 * BUFFER_BYTES + 5,
        ] {
            lens.extend([(len, false), (len, true), (8, true), (0, true)]);
        }
        check(&lens);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_lengths(lens in prop::collection::vec((0usize..600_000, any::<bool>()), 1..30)) {
            check(&lens);
        }
    }

    #[test]
    fn what_is_flushed_can_soon_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = Staged::start().unwrap().create(&path).unwrap();
        file.append(&[IoSlice::new(b"seen")]).unwrap();
        file.flush();
        let given_up = Instant::now() + Duration::from_secs(60);
        while fs::read(&path).unwrap() != b"seen" {
            assert!(Instant::now() < given_up, "it cannot be read");
            thread::yield_now();
        }
    }

    #[test]
    fn what_is_settled_can_be_read_at_once_and_is_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = Staged::start().unwrap().create(&path).unwrap();
        for (text, expected) in [("one", "one"), (" two", "one two")] {
            file.append(&[IoSlice::new(text.as_bytes())]).unwrap();
            file.settle().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        }
    }

    /// A full device: a later append reports the failure, and so does every call after it.
    #[test]
    fn a_failure_is_told_and_stays() {
        let storage = Staged::start().unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let file = storage.staged(Path::new("/dev/full"), full, 0);
        file.append(&[IoSlice::new(b"lost")]).unwrap();
        let error = file.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let again = file.append(&[IoSlice::new(b"more")]).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.sync().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

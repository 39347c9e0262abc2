//! Where an export goes: a folder of this machine, or a bucket of an object store. A file is a draft that stays
//! invisible until it is finished; dropping its value deletes it.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::bucket::Bucket;
use super::mark::Mark;
use super::upload::Upload;
use crate::error::Error;
use crate::recording::refuse_within;

/// Bytes that are written to a file at once.
const AT_ONCE: usize = 1 << 20;

/// The target of an export. Its files are named by keys, such as `table=calls/run=app/part-0.parquet`.
pub enum Destination {
    Folder(Folder),
    Bucket(Box<Bucket>),
}

/// A folder of this machine.
pub struct Folder {
    path: PathBuf,
    /// The export makes it.
    is_new: bool,
    /// The mark of the run that is being written, which is locked.
    mark: Option<File>,
}

impl Destination {
    /// Reads the target as the command line names it.
    ///
    /// # Errors When it is in a recording or an unsupported kind of store, or the environment has no credentials for it.
    pub fn of(to: &Path) -> Result<Destination, Error> {
        let text = to.to_string_lossy();
        match text.split_once("://") {
            None => {
                refuse_within(to)?;
                Ok(Destination::Folder(Folder {
                    path: to.to_owned(),
                    is_new: to.symlink_metadata().is_err(),
                    mark: None,
                }))
            }
            Some(("s3", rest)) => {
                let variable = |name: &str| std::env::var(name).ok();
                let bucket = Bucket::open(rest, variable)?;
                Ok(Destination::Bucket(Box::new(bucket)))
            }
            Some(_) => Err(Error::usage(
                format!("export writes to a folder or to s3://BUCKET/PREFIX, not to {text}"),
                Some("export to a folder, and copy that: its layout stays the same".to_owned()),
            )),
        }
    }

    /// Returns the name of one of its files as messages show it.
    pub fn name(&self, key: &str) -> String {
        match self {
            Destination::Folder(folder) => folder.path.join(key).display().to_string(),
            Destination::Bucket(bucket) => bucket.name(key),
        }
    }

    /// Returns whether checking for existing files is quick.
    pub fn is_near(&self) -> bool {
        matches!(self, Destination::Folder(_))
    }

    /// Returns whether it has the file.
    ///
    /// # Errors When that cannot be determined, or a signal comes.
    pub fn has(&mut self, key: &str) -> Result<bool, Error> {
        match self {
            Destination::Folder(folder) => Ok(folder.path.join(key).exists()),
            Destination::Bucket(bucket) => bucket.has(key),
        }
    }

    /// Removes what a killed export has left of a run, which `mark` names.
    ///
    /// # Errors
    /// When an export of the run is under way, or may be; or its files cannot be removed.
    pub fn clear(&mut self, mark: &str) -> Result<(), Error> {
        match self {
            Destination::Folder(folder) => folder.clear(mark),
            Destination::Bucket(bucket) => bucket.clear(mark),
        }
    }

    /// Marks a run as incomplete before its files are written.
    ///
    /// # Errors
    /// When the mark cannot be written, or an export of the run is under way.
    pub fn begin(&mut self, mark: &str, keys: &[String]) -> Result<(), Error> {
        let text = Mark::new(keys).text()?;
        match self {
            Destination::Folder(folder) => folder.begin(mark, &text),
            Destination::Bucket(bucket) => bucket.put(mark, &text.into_bytes().into()),
        }
    }

    /// Removes the mark of a run: all of its files are there.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn complete(&mut self, mark: &str) -> Result<(), Error> {
        match self {
            Destination::Folder(folder) => folder.unmark(mark),
            Destination::Bucket(bucket) => bucket.delete(mark),
        }
    }

    /// Begins a file.
    ///
    /// # Errors
    /// When no file can be made.
    pub fn draft(&mut self, key: &str) -> Result<Draft<'_>, Error> {
        match self {
            Destination::Folder(folder) => Ok(Draft::File(FileDraft::new(folder.path.join(key))?)),
            Destination::Bucket(bucket) => Ok(Draft::Object(Upload::new(bucket, key))),
        }
    }

    /// Removes files of a run that may exist, as far as possible, the folders that were made for them, and the mark.
    pub fn remove(&mut self, keys: &[String], mark: &str) {
        match self {
            Destination::Folder(folder) => {
                folder.remove(keys);
                if folder.mark.is_some() {
                    let _ = folder.unmark(mark);
                }
                if folder.is_new {
                    let _ = fs::remove_dir(&folder.path);
                }
            }
            Destination::Bucket(bucket) => {
                bucket.remove(keys);
                bucket.remove(&[mark.to_owned()]);
            }
        }
    }
}

impl Folder {
    fn clear(&mut self, mark: &str) -> Result<(), Error> {
        let path = self.path.join(mark);
        let Some(file) = locked(&path, false)? else {
            return Ok(());
        };
        let read = io::read_to_string(&file);
        let text = read.map_err(|source| Error::io(format!("read {}", path.display()), source))?;
        match Mark::read(&text) {
            Some(left) => self.remove(&left.keys),
            // Its writer was killed before the mark was whole.
            None if text.is_empty() || text.starts_with(Mark::BEGINNING) => {}
            None => {
                let message = format!("{} does not say what an export has left", path.display());
                return Err(Error::usage(message, Some("remove it".to_owned())));
            }
        }
        self.mark = Some(file);
        self.unmark(mark)
    }

    fn begin(&mut self, mark: &str, text: &str) -> Result<(), Error> {
        let path = self.path.join(mark);
        let failed = |source| Error::io(format!("write {}", path.display()), source);
        fs::create_dir_all(&self.path).map_err(failed)?;
        self.mark = locked(&path, true)?;
        if let Some(mut mark) = self.mark.as_ref() {
            mark.set_len(0).map_err(failed)?;
            mark.write_all(text.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    /// Removes the mark, and only then unlocks it.
    fn unmark(&mut self, mark: &str) -> Result<(), Error> {
        let path = self.path.join(mark);
        let removed = fs::remove_file(&path);
        self.mark = None;
        removed.map_err(|source| Error::io(format!("remove {}", path.display()), source))
    }

    fn remove(&self, keys: &[String]) {
        for key in keys {
            let file = self.path.join(key);
            let _ = fs::remove_file(hidden(&file));
            let _ = fs::remove_file(&file);
            // A folder that has something else stays: it is not empty.
            let made = file.ancestors().skip(1);
            for made in made.take_while(|made| *made != self.path) {
                let _ = fs::remove_dir(made);
            }
        }
    }
}

/// Opens and locks the mark of a run. `None`: there is none, and it is not to be made.
fn locked(path: &Path, is_made: bool) -> Result<Option<File>, Error> {
    let failed = |source| Error::io(format!("write {}", path.display()), source);
    let mut options = File::options();
    options.read(true).write(true).create(is_made);
    loop {
        let file = match options.open(path) {
            Err(error) if !is_made && is_absence(&error) => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let is_theirs = match file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            // The file system has no locks. Whether the export of an old one is killed is not known.
            Err(TryLockError::Error(_)) => file.metadata().map_err(failed)?.len() > 0,
        };
        if is_theirs {
            let name = path.display();
            let message = format!("another export of this run is under way, or was: {name}");
            let help =
                "wait for its end; if it was killed, remove that file and those that it names";
            return Err(Error::usage(message, Some(help.to_owned())));
        }
        // The export that had locked it may have removed it since.
        if file.metadata().map_err(failed)?.nlink() > 0 {
            return Ok(Some(file));
        }
    }
}

fn is_absence(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    kinds.contains(&error.kind())
}

/// Returns the name of a file until it is complete.
fn hidden(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.draft"))
}

/// A file of a place before it is finished.
pub enum Draft<'a> {
    File(FileDraft),
    Object(Upload<'a>),
}

impl Draft<'_> {
    /// Completes the file and returns its length in bytes.
    ///
    /// # Errors
    /// When it cannot be written, or a signal comes; then there is no file.
    pub fn finish(self) -> Result<u64, Error> {
        match self {
            Draft::File(draft) => draft.finish(),
            Draft::Object(upload) => upload.finish(),
        }
    }

    /// Takes the cause of a failed write, which says where it failed.
    pub fn failure(&mut self) -> Option<Error> {
        match self {
            Draft::File(draft) => {
                let source = draft.failure.take()?;
                Some(Error::io(format!("write {}", draft.path.display()), source))
            }
            Draft::Object(upload) => upload.failure(),
        }
    }
}

impl Write for Draft<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Draft::File(draft) => draft.write(bytes),
            Draft::Object(upload) => upload.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Draft::File(draft) => draft.flush(),
            Draft::Object(upload) => upload.flush(),
        }
    }
}

/// A file that has a hidden name until it is complete.
pub struct FileDraft {
    path: PathBuf,
    hidden: PathBuf,
    out: BufWriter<File>,
    /// Why it could not be written.
    failure: Option<io::Error>,
}

impl FileDraft {
    fn new(path: PathBuf) -> Result<FileDraft, Error> {
        let failed = |source| Error::io(format!("write {}", path.display()), source);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).map_err(failed)?;
        let hidden = hidden(&path);
        let file = File::create(&hidden).map_err(failed)?;
        let out = BufWriter::with_capacity(AT_ONCE, file);
        Ok(FileDraft {
            path,
            hidden,
            out,
            failure: None,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.noted(flushed)
    }

    /// Keeps the reason of a failure, which the engine may write down as a text only.
    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let again = match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => error.kind().into(),
            };
            self.failure = Some(error);
            again
        })
    }

    fn finish(mut self) -> Result<u64, Error> {
        let mut finish = || {
            self.out.flush()?;
            let len = self.out.get_ref().metadata()?.len();
            fs::rename(&self.hidden, &self.path)?;
            Ok(len)
        };
        finish().map_err(|source| Error::io(format!("write {}", self.path.display()), source))
    }
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        // This name no longer exists if the file was finished.
        let _ = fs::remove_file(&self.hidden);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_a_file_only_when_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let mut place = Destination::of(folder.path()).unwrap();
        let names = || {
            let entries = fs::read_dir(folder.path().join("a")).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name());
            names.collect::<Vec<_>>()
        };
        let mut draft = place.draft("a/b").unwrap();
        draft.write_all(b"some").unwrap();
        assert_eq!(names(), [".b.draft"]);
        drop(draft);
        assert_eq!(names().len(), 0);
        let mut draft = place.draft("a/b").unwrap();
        draft.write_all(b"some").unwrap();
        assert_eq!(draft.finish().unwrap(), 4);
        assert!(place.has("a/b").unwrap());
        assert_eq!(names(), ["b"]);
        place.remove(&["a/b".to_owned(), "a/c".to_owned()], "unfinished-a");
        assert!(!folder.path().join("a").exists(), "nor its folder");
    }

    #[test]
    fn what_a_killed_export_has_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let place = || Destination::of(folder.path()).unwrap();
        let keys = ["calls/a", "events/a"].map(str::to_owned);
        let mark = "unfinished-a";
        let mut earlier = place();
        let mut draft = earlier.draft("runs/a").unwrap();
        draft.write_all(b"old").unwrap();
        draft.finish().unwrap();
        let mut first = place();
        first.clear(mark).unwrap();
        first.begin(mark, &keys).unwrap();
        first.draft("calls/a").unwrap().finish().unwrap();
        std::mem::forget(first.draft("events/a").unwrap());
        for refused in [place().clear(mark), place().begin(mark, &keys)] {
            let told = refused.unwrap_err().to_string();
            assert!(told.contains("is under way"), "{told}");
        }
        assert!(at("calls/a").exists(), "it is not finished");
        // As at the end of a process, the lock is gone, and nothing else.
        drop(first);
        place().clear(mark).unwrap();
        let left = fs::read_dir(folder.path()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["runs"]);
        let mut second = place();
        second.begin(mark, &keys).unwrap();
        second.draft("calls/a").unwrap().finish().unwrap();
        second.complete(mark).unwrap();
        assert!(!at(mark).exists());
        place().clear(mark).unwrap();
        assert!(at("calls/a").exists(), "it is finished");
    }

    #[test]
    fn nothing_is_left_of_an_export_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        let key = "table=calls/run=app/part-0.parquet".to_owned();
        let root = folder.path().join("lake");
        let mut place = Destination::of(&root).unwrap();
        let (mark, keys) = ("unfinished-app", std::slice::from_ref(&key));
        place.begin(mark, keys).unwrap();
        drop(place.draft(&key).unwrap());
        place.remove(keys, mark);
        assert!(!root.exists());
        // What was there before stays.
        fs::create_dir_all(root.join("table=calls/run=other")).unwrap();
        let mut place = Destination::of(&root).unwrap();
        drop(place.draft(&key).unwrap());
        place.remove(keys, mark);
        let left = fs::read_dir(root.join("table=calls")).unwrap();
        assert_eq!(left.count(), 1);
    }

    #[test]
    fn a_failed_write_names_the_file() {
        let mut draft = FileDraft::new(tempfile::tempdir().unwrap().path().join("x")).unwrap();
        draft.out =
            BufWriter::with_capacity(1, File::options().write(true).open("/dev/full").unwrap());
        let mut draft = Draft::File(draft);
        assert!(draft.write_all(b"much").is_err());
        let told = draft.failure().unwrap().to_string();
        assert!(
            told.contains("/x: ") && told.contains("No space left"),
            "{told}"
        );
    }

    #[test]
    fn other_stores_are_refused() {
        for to in ["gs://bucket/prefix", "https://host/bucket", "S3://bucket"] {
            let refused = Destination::of(Path::new(to)).err().unwrap();
            assert!(refused.to_string().ends_with(&format!("not to {to}")));
        }
    }
}

//! Where an export goes: a folder of this machine, or a bucket of an object store. A file is a draft that stays
//! invisible until it is finished; dropping its value deletes it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::bucket::Bucket;
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
    /// # Errors When that cannot be determined, or Ctrl-C is pressed.
    pub fn has(&mut self, key: &str) -> Result<bool, Error> {
        match self {
            Destination::Folder(folder) => Ok(folder.path.join(key).exists()),
            Destination::Bucket(bucket) => bucket.has(key),
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

    /// Removes files that may exist, as far as possible, and the folders that were made for them.
    pub fn remove(&mut self, keys: &[String]) {
        match self {
            Destination::Folder(folder) => {
                for key in keys {
                    let file = folder.path.join(key);
                    let _ = fs::remove_file(&file);
                    // A folder that has something else stays: it is not empty.
                    let made = file.ancestors().skip(1);
                    for made in made.take_while(|made| *made != folder.path) {
                        let _ = fs::remove_dir(made);
                    }
                }
                if folder.is_new {
                    let _ = fs::remove_dir(&folder.path);
                }
            }
            Destination::Bucket(bucket) => bucket.remove(keys),
        }
    }
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
    /// When it cannot be written, or Ctrl-C is pressed; then there is no file.
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
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hidden = folder.join(format!(".{name}.draft"));
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
        place.remove(&["a/b".to_owned(), "a/c".to_owned()]);
        assert!(!folder.path().join("a").exists(), "nor its folder");
    }

    #[test]
    fn nothing_is_left_of_an_export_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        let key = "table=calls/run=app/part-0.parquet".to_owned();
        let root = folder.path().join("lake");
        let mut place = Destination::of(&root).unwrap();
        drop(place.draft(&key).unwrap());
        place.remove(std::slice::from_ref(&key));
        assert!(!root.exists());
        // What was there before stays.
        fs::create_dir_all(root.join("table=calls/run=other")).unwrap();
        let mut place = Destination::of(&root).unwrap();
        drop(place.draft(&key).unwrap());
        place.remove(&[key]);
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

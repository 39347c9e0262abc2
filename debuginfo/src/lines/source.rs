//! Reads the text of source files around a line.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Largest source file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Lines of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// The file that was read.
    pub path: PathBuf,
    /// The number of the first line in `lines`, from 1.
    pub first: u32,
    /// The lines, without line ends.
    pub lines: Vec<String>,
    /// The number of lines in the file.
    pub total: u32,
}

/// Copies of source files, by their paths in the debug information.
pub type SourceCopies = HashMap<String, PathBuf>;

thread_local! {
    /// The copies used by this thread.
    static COPIES: RefCell<Option<Arc<SourceCopies>>> = const { RefCell::new(None) };
}

/// Runs `work`. In it, this thread reads the copies instead of the original files.
pub fn with_source_copies<T>(copies: &Arc<SourceCopies>, work: impl FnOnce() -> T) -> T {
    /// Restores the previous copies, even after a panic.
    struct Before(Option<Arc<SourceCopies>>);
    impl Drop for Before {
        fn drop(&mut self) {
            COPIES.set(self.0.take());
        }
    }
    let _before = Before(COPIES.replace(Some(Arc::clone(copies))));
    work()
}

/// Why the text of a file cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceError {
    /// The file cannot be read.
    Unreadable {
        /// The file, as the line table names it.
        file: String,
        /// The error from the system.
        why: String,
    },
    /// The file has fewer lines.
    NoSuchLine {
        /// The file.
        file: String,
        /// The requested line.
        line: u32,
        /// The number of lines in the file.
        total: u32,
    },
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceError::Unreadable { file, why } => {
                write!(f, "the source file {file} cannot be read: {why}")
            }
            SourceError::NoSuchLine { file, line, total } => {
                write!(f, "{file} has no line {line}: it has {total} lines")
            }
        }
    }
}

impl SourceError {
    /// Returns what to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            SourceError::Unreadable { .. } => {
                "put it where the program was compiled, or look at the code with disassemble"
                    .to_owned()
            }
            SourceError::NoSuchLine { total, .. } => format!("ask for a line from 1 to {total}"),
        }
    }
}

impl std::error::Error for SourceError {}

impl SourceText {
    /// Reads the lines from `context` before to `context` after `line`. A relative `file` is looked up below
    /// `directory`, then in the working directory of this process.
    ///
    /// # Errors
    /// The file cannot be read, or has no such line.
    pub fn around(
        file: &str,
        directory: Option<&Path>,
        line: u32,
        context: u32,
    ) -> Result<SourceText, SourceError> {
        let (path, opened) = open(file, directory)?;
        let total = opened.lines.total();
        if line == 0 || line > total {
            return Err(SourceError::NoSuchLine {
                file: file.to_owned(),
                line,
                total,
            });
        }
        let first = line.saturating_sub(context).max(1);
        let last = line.saturating_add(context).min(total);
        let text = opened.read(first, last);
        let text = text.map_err(|error| SourceError::Unreadable {
            file: file.to_owned(),
            why: error.to_string(),
        })?;
        Ok(SourceText {
            path,
            first,
            lines: text.lines().map(str::to_owned).collect(),
            total,
        })
    }
}

fn open(file: &str, directory: Option<&Path>) -> Result<(PathBuf, Opened), SourceError> {
    let copy = COPIES.with_borrow(|copies| copies.as_ref()?.get(file).cloned());
    // If the copy cannot be read, the original file is tried.
    if let Some(Ok(opened)) = copy.map(|copy| Opened::at(&copy)) {
        return Ok((PathBuf::from(file), opened));
    }
    let mut candidates = vec![PathBuf::from(file)];
    if let Some(directory) = directory.filter(|_| !file.starts_with('/')) {
        candidates.insert(0, directory.join(file));
    }
    let mut first_error = None;
    for path in candidates {
        match Opened::at(&path) {
            Ok(opened) => return Ok((path, opened)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(SourceError::Unreadable {
        file: file.to_owned(),
        why: first_error.map_or_else(String::new, |e| e.to_string()),
    })
}

/// A source file opened for reading lines.
struct Opened {
    file: File,
    lines: Arc<Lines>,
}

/// The offsets at which the lines of a file begin.
#[derive(Debug)]
struct Lines {
    starts: Vec<u32>,
    end: u32,
}

/// Metadata that changes when a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Files whose line starts are known, the newest last. Every stop shows its line, and files may have megabytes.
static KNOWN: Mutex<Vec<(PathBuf, Stamp, Arc<Lines>)>> = Mutex::new(Vec::new());
const MAX_KNOWN: usize = 16;
/// A file changed within this time may change again without a new time stamp.
const UNSETTLED: Duration = Duration::from_secs(2);

impl Opened {
    fn at(path: &Path) -> io::Result<Opened> {
        let about = std::fs::metadata(path)?;
        if !about.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if about.len() > MAX_FILE_BYTES {
            return Err(io::Error::other("it is too large"));
        }
        let file = File::open(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = known.iter().position(|(known, ..)| known == path) {
            let newest = known.remove(at);
            if newest.1 == stamp {
                let lines = Arc::clone(&newest.2);
                known.push(newest);
                return Ok(Opened { file, lines });
            }
        }
        drop(known);
        let lines = Arc::new(Lines::find(&file)?);
        if stamp.is_settled() {
            let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MAX_KNOWN {
                known.remove(0);
            }
            known.push((path.to_owned(), stamp, Arc::clone(&lines)));
        }
        Ok(Opened { file, lines })
    }

    /// Reads the lines `first` to `last`, counted from 1, with their line ends.
    fn read(&self, first: u32, last: u32) -> io::Result<String> {
        let starts = &self.lines.starts;
        let from = starts[first as usize - 1];
        let to = starts.get(last as usize).copied();
        let mut bytes = vec![0; (to.unwrap_or(self.lines.end) - from) as usize];
        self.file.read_exact_at(&mut bytes, u64::from(from))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Lines {
    fn find(file: &File) -> io::Result<Lines> {
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let mut starts = vec![0];
        starts.extend(ends.map(|(at, _)| at as u32 + 1));
        let end = bytes.len() as u32;
        // No line follows the last line end.
        starts.pop_if(|start| *start == end);
        Ok(Lines { starts, end })
    }

    fn total(&self) -> u32 {
        self.starts.len() as u32
    }
}

impl Stamp {
    fn of(about: &Metadata) -> Stamp {
        Stamp {
            file: (about.dev(), about.ino()),
            len: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }

    fn is_settled(&self) -> bool {
        let seconds = u64::try_from(self.changed.0.max(self.modified.0)).unwrap_or(0);
        let changed = UNIX_EPOCH + Duration::from_secs(seconds + 1);
        let passed = SystemTime::now().duration_since(changed);
        passed.is_ok_and(|passed| passed >= UNSETTLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_stands_for_its_file_while_it_is_meant() {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        std::fs::write(&copy, "one\ntwo\n").unwrap();
        let copies = Arc::new(SourceCopies::from([("/gone/a.c".to_owned(), copy)]));
        let line = || SourceText::around("/gone/a.c", None, 2, 0);
        let text = with_source_copies(&copies, line).unwrap();
        assert_eq!(
            (text.lines, text.path),
            (vec!["two".to_owned()], "/gone/a.c".into())
        );
        assert!(line().is_err());
    }

    /// Reference implementation that reads the whole text.
    fn by_hand(path: &Path, line: u32, context: u32) -> Vec<String> {
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        let lines = text.lines().enumerate();
        let near = |(at, _): &(usize, &str)| (*at as u32 + 1).abs_diff(line) <= context;
        lines.filter(near).map(|(_, l)| l.to_owned()).collect()
    }

    #[test]
    fn lines_are_those_of_the_text_also_when_the_file_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.c");
        let name = path.to_str().unwrap();
        for text in [
            &b"one\ntwo\nthree\n"[..],
            b"one\r\ntwo\n\nfour",
            b"\xff\xfe\n\xc3\xa4\xc3\n\n",
            b"ONE\nTWO\nTHREE\n",
            b"",
            b"\n",
        ] {
            std::fs::write(&path, text).unwrap();
            let total = String::from_utf8_lossy(text).lines().count() as u32;
            for (line, context) in (1..=total).flat_map(|line| [(line, 0), (line, 1), (line, 9)]) {
                let found = SourceText::around(name, None, line, context).unwrap();
                assert_eq!(
                    found.lines,
                    by_hand(&path, line, context),
                    "{line} {context}"
                );
                assert_eq!((found.total, found.path), (total, path.clone()));
            }
            let beyond = SourceText::around(name, None, total + 1, 0);
            assert!(matches!(beyond, Err(SourceError::NoSuchLine { total: t, .. }) if t == total));
        }
    }

    #[test]
    fn lines_of_a_file_that_rests_are_found_once() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lines/source.rs");
        let name = path.to_str().unwrap();
        let known = || {
            let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            let found = known.iter().find(|(known, ..)| *known == path);
            found.map(|(.., lines)| Arc::clone(lines))
        };
        for line in [1, 40, 2] {
            let before = known();
            let found = SourceText::around(name, None, line, 3).unwrap();
            assert_eq!(found.lines, by_hand(&path, line, 3));
            let after = known().expect("the file does not change during the test");
            assert!(before.is_none_or(|before| Arc::ptr_eq(&before, &after)));
        }
    }

    #[test]
    fn a_file_that_changes_is_not_remembered_and_one_that_rests_is() {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs() as i64;
        let stamp = |modified, changed| Stamp {
            file: (1, 2),
            len: 3,
            modified: (modified, 0),
            changed: (changed, 0),
        };
        assert!(!stamp(1_000, now).is_settled());
        assert!(!stamp(now, 1_000).is_settled());
        assert!(!stamp(1_000, now + 1_000).is_settled());
        assert!(stamp(now - 10, now - 10).is_settled());
    }
}

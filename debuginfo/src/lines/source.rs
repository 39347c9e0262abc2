//! The text of source files around a line.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a source file that are read; larger ones are refused.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Lines of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// The file that was read.
    pub path: PathBuf,
    /// The number of the first line in `lines`, from 1.
    pub first: u32,
    /// The lines, without their ends.
    pub lines: Vec<String>,
    /// How many lines the file has.
    pub total: u32,
}

/// Copies of source files, by the paths that debug information names.
pub type SourceCopies = HashMap<String, PathBuf>;

thread_local! {
    /// The copies that this thread reads.
    static COPIES: RefCell<Option<Arc<SourceCopies>>> = const { RefCell::new(None) };
}

/// Runs `work`, in which this thread reads copies in place of the files that have one.
pub fn with_source_copies<T>(copies: &Arc<SourceCopies>, work: impl FnOnce() -> T) -> T {
    /// Puts back what was there before, also behind a panic.
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
        /// What the system said.
        why: String,
    },
    /// The file has fewer lines.
    NoSuchLine {
        /// The file.
        file: String,
        /// The line that was asked for.
        line: u32,
        /// How many lines it has.
        total: u32,
    },
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceError::Unreadable { file, why } => write!(
                f,
                "the source file {file} cannot be read: {why}; put it where the program was compiled, or look at the code with disassemble"
            ),
            SourceError::NoSuchLine { file, line, total } => write!(
                f,
                "{file} has no line {line}: it has {total} lines; ask for a line from 1 to {total}"
            ),
        }
    }
}

impl std::error::Error for SourceError {}

impl SourceText {
    /// Reads the lines from `context` before to `context` after `line`. A relative `file` is looked for below
    /// `directory`, then where the reading process stands.
    ///
    /// # Errors
    /// The file cannot be read, or has no such line.
    pub fn around(
        file: &str,
        directory: Option<&Path>,
        line: u32,
        context: u32,
    ) -> Result<SourceText, SourceError> {
        let (path, text) = read(file, directory)?;
        let all: Vec<&str> = text.lines().collect();
        let total = u32::try_from(all.len()).unwrap_or(u32::MAX);
        if line == 0 || line > total {
            return Err(SourceError::NoSuchLine {
                file: file.to_owned(),
                line,
                total,
            });
        }
        let first = line.saturating_sub(context).max(1);
        let last = line.saturating_add(context).min(total);
        let wanted = &all[first as usize - 1..last as usize];
        Ok(SourceText {
            path,
            first,
            lines: wanted.iter().map(|l| (*l).to_owned()).collect(),
            total,
        })
    }
}

fn read(file: &str, directory: Option<&Path>) -> Result<(PathBuf, String), SourceError> {
    let copy = COPIES.with_borrow(|copies| copies.as_ref()?.get(file).cloned());
    // A copy that cannot be read is no worse than none.
    if let Some(Ok(text)) = copy.map(|copy| contents(&copy)) {
        return Ok((PathBuf::from(file), text));
    }
    let mut candidates = vec![PathBuf::from(file)];
    if let Some(directory) = directory.filter(|_| !file.starts_with('/')) {
        candidates.insert(0, directory.join(file));
    }
    let mut first_error = None;
    for path in candidates {
        match contents(&path) {
            Ok(text) => return Ok((path, text)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(SourceError::Unreadable {
        file: file.to_owned(),
        why: first_error.map_or_else(String::new, |e| e.to_string()),
    })
}

fn contents(path: &Path) -> std::io::Result<String> {
    let about = std::fs::metadata(path)?;
    if !about.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    if about.len() > MAX_FILE_BYTES {
        return Err(std::io::Error::other("it is too large"));
    }
    let bytes = std::fs::read(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The number of characters in a line of a file, if it can be read.
pub(super) fn line_length(file: &str, line: u32) -> Option<u32> {
    let text = SourceText::around(file, None, line, 0).ok()?;
    u32::try_from(text.lines.first()?.len()).ok()
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
}

//! The list is read, or deleted.

use std::{fs, path::Path};

use super::{Fact, PROCESSES_FILE, Process, process::Table};
use crate::{
    error::{Error, Result},
    labels::Changes,
};

/// An empty file: facts are missing in the other one, because they could not be written.
pub(super) const CUT_FILE: &str = "processes.cut";

/// Reads the processes of the set in `dir`, in the order in which they began.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read.
pub fn processes(dir: &Path) -> Result<Vec<Process>> {
    let mut table = Table::default();
    facts(dir)?.into_iter().for_each(|fact| table.add(fact));
    Ok(table.rows)
}

/// Returns the labels that the set in `dir` got as a whole: `None` where one was removed.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read.
pub fn labels(dir: &Path) -> Result<Changes> {
    let mut all = Changes::new();
    for fact in facts(dir)? {
        if let Fact::Labels { labels } = fact {
            all.extend(labels);
        }
    }
    Ok(all)
}

fn facts(dir: &Path) -> Result<Vec<Fact>> {
    let path = dir.join(PROCESSES_FILE);
    let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
    // A full disk may have cut a line in the middle of a character.
    let text = String::from_utf8_lossy(&bytes);
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

/// Returns why the list of a set's processes lacks facts; `None` if it is whole, as far as is known.
#[must_use]
pub fn why_incomplete(set: &Path) -> Option<String> {
    let why =
        "some facts about its processes could not be written, probably because the disk was full";
    is_cut(set).then(|| why.to_owned())
}

pub(super) fn is_cut(set: &Path) -> bool {
    set.join(CUT_FILE).exists()
}

/// Deletes the list of a set's processes.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_list(set: &Path) -> Result<()> {
    let list = set.join(PROCESSES_FILE);
    let _ = fs::remove_file(set.join(CUT_FILE));
    fs::remove_file(&list).map_err(Error::io("remove", &list))
}

//! Names of sets: `NAME.children`, `NAME-2.children` and so on.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{PROCESSES_FILE, Process, SET_SUFFIX, processes};
use crate::{
    error::Result,
    recording::{check_free, check_name},
};

/// Checks in advance whether a set of that name can be made; returns its folder, with the ending.
///
/// # Errors
/// [`crate::Error::BadName`], [`crate::Error::Exists`], or [`crate::Error::NotCreated`] if the parent folder is missing or read-only.
pub fn may_be_created(path: &Path) -> Result<PathBuf> {
    check_name(path, SET_SUFFIX)?;
    check_free(folder(path, 1))
}

/// Returns the folder of the set that `path` names, with its ending, or without it: then the newest one of that name. `None`
/// if there is none.
pub fn resolve(path: &Path) -> Option<PathBuf> {
    let is_set = |dir: &PathBuf| dir.join(PROCESSES_FILE).is_file();
    if is_set(&path.to_path_buf()) {
        return Some(path.to_path_buf());
    }
    let first = folder(path, 1);
    if first == path {
        return None;
    }
    let own = is_set(&first).then(|| {
        let started = first_of(&first).map_or(i64::MIN, |process| process.start_unix_ns);
        (started, 1, first)
    });
    let all = own.into_iter().chain(numbered_of(path));
    all.max_by_key(|(started, number, _)| (*started, *number))
        .map(|(_, _, dir)| dir)
}

/// Returns the process that began a set.
fn first_of(dir: &Path) -> Option<Process> {
    processes(dir).ok()?.into_iter().next()
}

/// Returns the sets `NAME-2.children` and so on of the program `name`, with their start and number. Only sets that are called
/// after their program are numbered.
fn numbered_of(name: &Path) -> Vec<(i64, u32, PathBuf)> {
    let Some(text) = name.file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let parent = name
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(parent.unwrap_or(Path::new("."))) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let number = entry.file_name().to_str().and_then(|file_name| {
            let stem = file_name.strip_suffix(SET_SUFFIX)?;
            let number = stem.strip_prefix(text)?.strip_prefix('-')?;
            number.parse::<u32>().ok()
        });
        let Some(number) = number else { continue };
        let dir = name.with_file_name(entry.file_name());
        let Some(first) = first_of(&dir) else {
            continue;
        };
        let program = first.argv.first().map(Path::new).and_then(Path::file_name);
        if program.is_some_and(|program| program == text) {
            found.push((first.start_unix_ns, number, dir));
        }
    }
    found
}

/// Returns `NAME.children` for 1, `NAME-2.children` for 2 and so on.
pub(super) fn folder(name: &Path, number: u32) -> PathBuf {
    let mut text = name.components().as_path().as_os_str().to_os_string();
    if number == 1 && text.as_encoded_bytes().ends_with(SET_SUFFIX.as_bytes()) {
        return text.into();
    }
    if number > 1 {
        text.push(format!("-{number}"));
    }
    text.push(SET_SUFFIX);
    text.into()
}

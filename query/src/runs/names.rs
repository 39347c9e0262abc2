//! Gives each recording a unique name: the folder's name, or as much of its path as distinguishes it.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use store::format::RECORDING_SUFFIX;
use store::set::PROCESSES_FILE;
use store::summary::name_of;

/// Returns a name for each folder, in order; all differ if the folders do.
#[must_use]
pub fn names(folders: &[PathBuf]) -> Vec<String> {
    unique(folders, name_of)
}

/// As [`names`], but the name of a recording in a set always begins with that of the set, as in `make.children/cc1`: it is the same
/// whichever other recordings are named.
#[must_use]
pub fn names_with_sets(folders: &[PathBuf]) -> Vec<String> {
    unique(folders, |folder| {
        let name = name_of(folder);
        match set_around(folder) {
            Some(set) => format!("{set}/{name}"),
            None => name,
        }
    })
}

/// Returns the name of the set that a recording is in.
fn set_around(folder: &Path) -> Option<String> {
    let whole = match folder.file_name() {
        Some(_) => folder.to_path_buf(),
        None => folder.canonicalize().ok()?,
    };
    let around = match whole.parent()? {
        here if here.as_os_str().is_empty() => Path::new("."),
        around => around,
    };
    let is_set = around.join(PROCESSES_FILE).is_file();
    let around = is_set.then(|| around.canonicalize().ok())??;
    Some(around.file_name()?.to_string_lossy().into_owned())
}

/// Returns `short` of each folder where that is unique, otherwise its path.
fn unique(folders: &[PathBuf], short: impl Fn(&Path) -> String) -> Vec<String> {
    let short: Vec<String> = folders.iter().map(|folder| short(folder)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in &short {
        *counts.entry(name).or_default() += 1;
    }
    let named = short.iter().zip(folders);
    named
        .map(|(name, folder)| match counts[name.as_str()] {
            1 => name.clone(),
            _ => path_without_ending(folder),
        })
        .collect()
}

fn path_without_ending(folder: &Path) -> String {
    let parts = folder.components();
    let folder: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    let path = folder.to_string_lossy();
    path.strip_suffix(RECORDING_SUFFIX)
        .unwrap_or(&path)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_told_apart_by_their_folders() {
        let folders = [
            "a/t.hindsight",
            "b/t.hindsight/",
            "./t.hindsight",
            "b/u.hindsight",
        ]
        .map(PathBuf::from);
        assert_eq!(names(&folders), ["a/t", "b/t", "t", "u"]);
        assert_eq!(names_with_sets(&folders), ["a/t", "b/t", "t", "u"]);
    }

    #[test]
    fn a_recording_in_a_set_has_the_name_of_the_set() {
        let dir = tempfile::tempdir().unwrap();
        let set = dir.path().join("make.children");
        std::fs::create_dir(&set).unwrap();
        std::fs::write(set.join(PROCESSES_FILE), "").unwrap();
        let one = [set.join("sh.hindsight")];
        assert_eq!(names(&one), ["sh"]);
        assert_eq!(names_with_sets(&one), ["make.children/sh"]);
        let others = [
            set.join("sh.hindsight"),
            set.join("cc1.hindsight"),
            dir.path().join("sh.hindsight"),
        ];
        let expected = ["make.children/sh", "make.children/cc1", "sh"];
        assert_eq!(names_with_sets(&others), expected);
    }
}

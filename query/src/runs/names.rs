//! Gives each recording a unique name: the folder's name, or as much of its path as distinguishes it.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use store::format::RECORDING_SUFFIX;
use store::summary::name_of;

/// Returns a name for each folder, in order; all differ if the folders do.
#[must_use]
pub fn names(folders: &[PathBuf]) -> Vec<String> {
    let short: Vec<String> = folders.iter().map(|folder| name_of(folder)).collect();
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
    }
}

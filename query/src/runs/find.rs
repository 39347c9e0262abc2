//! Finds the recordings that the words of a command line name: recordings, folders of recordings, and patterns.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use store::format::{MANIFEST_FILE, RECORDING_SUFFIX};
use store::recording::resolve;
use store::set::{self, PROCESSES_FILE};

/// The characters of a pattern.
const WILD: [char; 3] = ['*', '?', '['];

/// The recordings that some words name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Their folders, each once, in the order of the words; those of one word sorted by name.
    pub folders: Vec<PathBuf>,
    /// Words that mean none, and why.
    pub nothing: Vec<(PathBuf, String)>,
    /// Every word is the name of one recording: there is no folder and no pattern.
    pub by_name: bool,
}

/// Finds the recordings that `words` name.
#[must_use]
pub fn find(words: &[PathBuf]) -> Found {
    let mut found = Found {
        by_name: true,
        ..Found::default()
    };
    let mut seen = HashSet::new();
    for word in words {
        let (folders, by_name) = match resolve(word) {
            Ok(folder) => (Ok(vec![folder]), true),
            Err(_) if word.is_dir() => (in_folder(word), false),
            Err(error) => match set::resolve(word) {
                Some(folder) => (in_folder(&folder), false),
                None if word.to_string_lossy().contains(WILD) => (by_pattern(word), false),
                None => (Err(error.to_string()), true),
            },
        };
        found.by_name &= by_name;
        match folders {
            Err(why) => found.nothing.push((word.clone(), why)),
            Ok(folders) if folders.is_empty() => {
                let why = match set::resolve(word) {
                    Some(_) => {
                        "its recordings were removed, or never made; hindsight processes lists its processes"
                    }
                    None => "there is no recording in it",
                };
                found.nothing.push((word.clone(), why.to_owned()));
            }
            Ok(folders) => {
                let folders = without_links_to_others(folders);
                let is_new = |folder: &PathBuf| seen.insert(real(folder));
                found.folders.extend(folders.into_iter().filter(is_new));
            }
        }
    }
    found
}

/// Leaves out links to recordings that are named, too: a recording has its own name.
fn without_links_to_others(mut folders: Vec<PathBuf>) -> Vec<PathBuf> {
    if folders.iter().any(|path| path.is_symlink()) {
        let others = folders.iter().filter(|path| !path.is_symlink());
        let others: HashSet<PathBuf> = others.map(|path| real(path)).collect();
        folders.retain(|path| !path.is_symlink() || !others.contains(&real(path)));
    }
    folders
}

fn real(folder: &Path) -> PathBuf {
    folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_path_buf())
}

/// Returns the recordings directly in a folder, and those of programs that were recorded with their children, by name.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = |folder: &Path| fs::read_dir(folder).map_err(|error| error.to_string());
    let mut found = Vec::new();
    for path in listed(folder)?.flatten().map(|entry| entry.path()) {
        if may_be_recording(&path) {
            found.push(path);
        } else if path.join(PROCESSES_FILE).is_file() {
            let own = listed(&path)?.flatten().map(|entry| entry.path());
            found.extend(own.filter(|path| may_be_recording(path)));
        }
    }
    found.sort_by_key(|path| without_ending(path));
    Ok(found)
}

/// `t` comes before `t-2`, as their names do.
fn without_ending(path: &Path) -> String {
    let path = path.to_string_lossy();
    let name = path.strip_suffix(RECORDING_SUFFIX).unwrap_or(&path);
    name.to_owned()
}

/// Returns the recordings that a pattern matches, with or without the ending, and those in folders that it matches.
fn by_pattern(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let text = pattern
        .to_str()
        .ok_or_else(|| "a pattern is UTF-8".to_owned())?;
    let mut matches = Vec::new();
    for text in [text.to_owned(), format!("{text}{RECORDING_SUFFIX}")] {
        let paths = glob::glob(&text).map_err(|error| error.to_string())?;
        matches.extend(paths.flatten());
    }
    matches.sort_by_key(|path| without_ending(path));
    matches.dedup();
    let mut found = Vec::new();
    for path in matches {
        match may_be_recording(&path) {
            true => found.push(path),
            false if path.is_dir() => found.extend(in_folder(&path).unwrap_or_default()),
            false => {}
        }
    }
    Ok(found)
}

/// Returns whether a folder is, or should be, a recording: it has a manifest, or the ending. One with the ending but
/// without a manifest is damaged, which is worth reporting.
fn may_be_recording(path: &Path) -> bool {
    let has_ending = path.to_string_lossy().ends_with(RECORDING_SUFFIX);
    path.join(MANIFEST_FILE).is_file() || (has_ending && path.is_dir())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in [
            "runs/a.hindsight",
            "runs/b.hindsight",
            "runs/old/c.hindsight",
            "x.hindsight",
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
            fs::write(root.join(name).join(MANIFEST_FILE), "").unwrap();
        }
        fs::write(root.join("runs/notes.txt"), "").unwrap();
        fs::create_dir(root.join("runs/damaged.hindsight")).unwrap();
        fs::create_dir(root.join("empty")).unwrap();
        dir
    }

    fn found(dir: &Path, words: &[&str]) -> (Vec<String>, usize, bool) {
        let words: Vec<_> = words.iter().map(|word| dir.join(word)).collect();
        let found = find(&words);
        let name = |path: &PathBuf| path.strip_prefix(dir).unwrap().display().to_string();
        let names = found.folders.iter().map(name).collect();
        (names, found.nothing.len(), found.by_name)
    }

    #[test]
    fn names_folders_and_patterns_mean_recordings() {
        let dir = folder();
        let all = ["runs/a.hindsight", "runs/b.hindsight"].map(str::to_owned);
        let damaged = "runs/damaged.hindsight".to_owned();
        let in_runs = [&all[..], &[damaged]].concat();
        let dir = dir.path();
        assert_eq!(
            found(dir, &["x", "runs/a"]),
            (
                vec!["x.hindsight".into(), "runs/a.hindsight".into()],
                0,
                true
            )
        );
        assert_eq!(found(dir, &["runs"]), (in_runs.clone(), 0, false));
        let old = "runs/old/c.hindsight".to_owned();
        assert_eq!(
            found(dir, &["runs/*"]),
            ([&in_runs[..], &[old]].concat(), 0, false)
        );
        assert_eq!(found(dir, &["runs/?"]), (all.to_vec(), 0, false));
        assert_eq!(
            found(dir, &["x", "./x.hindsight", "x*"]).0,
            ["x.hindsight"],
            "each once"
        );
    }

    /// `latest.hindsight` sorts before `run.hindsight`, which it leads to.
    #[test]
    fn a_link_does_not_hide_the_recording_that_it_leads_to() {
        let dir = folder();
        let dir = dir.path();
        symlink("b.hindsight", dir.join("runs/a-latest.hindsight")).unwrap();
        symlink("../x.hindsight", dir.join("runs/elsewhere.hindsight")).unwrap();
        let all = ["a", "b", "damaged", "elsewhere"];
        let all = all.map(|name| format!("runs/{name}.hindsight"));
        assert_eq!(found(dir, &["runs"]).0, all);
        assert_eq!(
            found(dir, &["runs/a-latest"]).0,
            ["runs/a-latest.hindsight"]
        );
    }

    #[test]
    fn words_that_mean_none_are_told() {
        let dir = folder();
        for word in ["runs/notes.txt", "nothing", "empty", "z*", "runs/[", "***"] {
            let (names, nothing, _) = found(dir.path(), &[word]);
            assert_eq!((names.len(), nothing), (0, 1), "{word}");
        }
    }
}

//! Finds the newest of the recordings that share one intended name.
//!
//! The manifest of a numbered recording states its intended name, so that the recording of a program called `t-2` is
//! not mistaken for the second one of `t`.

use std::fs;
use std::path::{Path, PathBuf};

use super::Recording;
use crate::format::{MANIFEST_FILE, RECORDING_SUFFIX};

/// Returns the newest recording that was to be called `dir`, a path with the ending; `None` if there is none.
pub fn newest(dir: &Path) -> Option<PathBuf> {
    let own = dir.join(MANIFEST_FILE).is_file().then(|| dir.to_path_buf());
    let numbered = numbered_of(dir);
    if numbered.is_empty() {
        return own;
    }
    let started = |dir: &Path| {
        let recording = Recording::open_exact(dir).ok()?;
        Some(recording.manifest().start_unix_ns)
    };
    // An unreadable one of exactly this name is the oldest: opening it by its whole name says what is wrong.
    let own = own.map(|dir| (started(&dir).unwrap_or(i64::MIN), 0, dir));
    let all = own.into_iter().chain(numbered);
    all.max_by_key(|(started, number, _)| (*started, *number))
        .map(|(_, _, dir)| dir)
}

/// Returns the recordings `NAME-2.hindsight` and so on that were to be called `dir`, with their start and number.
fn numbered_of(dir: &Path) -> Vec<(i64, u32, PathBuf)> {
    let Some(name) = dir.file_stem().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(parent.unwrap_or(Path::new("."))) else {
        return Vec::new();
    };
    let number = |file_name: &str| {
        let stem = file_name.strip_suffix(RECORDING_SUFFIX)?;
        let number = stem.strip_prefix(name)?.strip_prefix('-')?;
        number.parse::<u32>().ok()
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Some(number) = entry.file_name().to_str().and_then(number) else {
            continue;
        };
        let path = dir.with_file_name(entry.file_name());
        let Ok(recording) = Recording::open_exact(&path) else {
            continue;
        };
        let manifest = recording.manifest();
        if manifest.run_of.as_deref() == Some(name) {
            found.push((manifest.start_unix_ns, number, path));
        }
    }
    found
}

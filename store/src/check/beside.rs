//! Checks what was added to a recording after its end: notes, labels, and copies of modules; and names files that are not of it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Report, Severity};
use crate::error::{Error, Result};
use crate::format::{LABELS_FILE, MEMORY_DIR, MODULES_INDEX_FILE};
use crate::labels;
use crate::notes;
use crate::packed;
use crate::recording::{self, Recording};

/// Most files that are not of the recording and are named one by one.
const MOST_FOREIGN: usize = 8;

pub(super) fn check(
    recording: &Recording,
    report: &mut Report,
    progress: &mut impl FnMut(u64),
) -> Result<()> {
    check_notes(recording, report, progress);
    check_labels(recording, report, progress);
    let mut wrong = Vec::new();
    let checked = packed::check(recording, |path, len, what| {
        report.file(path, len);
        progress(len);
        wrong.extend(what.map(|what| (path.to_path_buf(), what)));
    });
    for (path, what) in wrong {
        report.find(Severity::Damage, &path, None, what);
    }
    if let Err(error) = checked {
        let index = packed::dir_of(recording).join(MODULES_INDEX_FILE);
        report.damage(&index, &error);
    }
    Ok(())
}

fn check_labels(recording: &Recording, report: &mut Report, progress: &mut impl FnMut(u64)) {
    let path = recording.dir().join(LABELS_FILE);
    let Ok(found) = path.metadata() else {
        return;
    };
    report.file(&path, found.len());
    progress(found.len());
    if let Err(error) = labels::read(recording) {
        report.damage(&path, &error);
    }
}

fn check_notes(recording: &Recording, report: &mut Report, progress: &mut impl FnMut(u64)) {
    let path = notes::path_of(recording);
    let Ok(found) = path.metadata() else {
        return;
    };
    report.file(&path, found.len());
    progress(found.len());
    let events = report.columns.next_seq;
    match notes::read(recording) {
        Ok(notes) => {
            for note in notes.iter().filter(|note| events > 0 && note.seq >= events) {
                let what = format!(
                    "a note stands at event {}, but there are only {events}",
                    note.seq
                );
                report.find(Severity::Odd, &path, None, what);
            }
        }
        Err(error) => report.damage(&path, &error),
    }
}

/// Names files in the folder of a recording, no longer being written, that belong to no recording, or to another one: nothing reads
/// them, so that no answer changes. Needs the list of the files that were read.
pub(super) fn check_foreign(dir: &Path, report: &mut Report) -> Result<()> {
    let mut foreign = recording::foreign(dir)?;
    // Copies of memory are numbered without a gap: one behind a gap is never read.
    let memory = dir.join(MEMORY_DIR);
    if memory.is_dir() {
        let read: HashSet<&PathBuf> = report.files.iter().map(|file| &file.path).collect();
        for entry in fs::read_dir(&memory).map_err(Error::io("read", &memory))? {
            let path = entry.map_err(Error::io("read", &memory))?.path();
            if !read.contains(&path) && !foreign.contains(&path) {
                foreign.push(path);
            }
        }
    }
    foreign.sort();
    for path in foreign.iter().take(MOST_FOREIGN) {
        let what = "it is not of this recording, and is not read".to_owned();
        report.find(Severity::Note, path, None, what);
    }
    if let Some(more @ 1..) = foreign.len().checked_sub(MOST_FOREIGN) {
        let what = format!("{more} more files are not of this recording");
        report.find(Severity::Note, dir, None, what);
    }
    Ok(())
}

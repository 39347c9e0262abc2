//! Checks what was added to a recording after its end: notes, labels, and copies of modules.

use super::{Report, Severity};
use crate::error::Result;
use crate::format::{LABELS_FILE, MODULES_INDEX_FILE};
use crate::labels;
use crate::notes;
use crate::packed;
use crate::recording::Recording;

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

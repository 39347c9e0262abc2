//! Notes that were added after the recording: a small file in its folder, replaced as a whole.
//!
//! Event numbers are final, so a later note is not an event: it names its event. The writer of a note holds a lock, so that
//! two writers do not lose each other's notes. `docs/format.md` is the norm.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{StatVfsMountFlags, statvfs};
use serde::{Deserialize, Serialize};

use crate::document;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::{FileKind, MANIFEST_FILE, MAX_NOTE_LEN, MAX_NOTES, NOTES_FILE};
use crate::recording::{Recording, RecordingState};

/// All write permissions of a file or folder.
const ANYBODY_WRITES: u32 = 0o222;

/// A note that was added later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedNote {
    /// Its event.
    pub seq: u64,
    /// Its text.
    pub text: String,
    /// The time of the addition, in nanoseconds since 1970.
    pub added_unix_ns: i64,
}

/// Returns the path of the file with the notes of a recording.
#[must_use]
pub fn path_of(recording: &Recording) -> PathBuf {
    recording.dir().join(NOTES_FILE)
}

/// Reads the notes that were added, in the order of their events; none if the file does not exist.
///
/// # Errors
/// The file is damaged, belongs to another recording, or cannot be read.
pub fn read(recording: &Recording) -> Result<Vec<AddedNote>> {
    let path = path_of(recording);
    if !path.try_exists().map_err(Error::io("read", &path))? {
        return Ok(Vec::new());
    }
    let (header, notes): (FileHeader, Vec<AddedNote>) = document::read(&path)?;
    recording
        .file_header(FileKind::Notes)
        .expect(&header, &path)?;
    Ok(notes)
}

/// Adds a note at event `seq`, after those already there.
///
/// # Errors [`Error::NotAdded`] if the recording is read-only or has too many notes, or the text is empty or too long;
/// those of [`read`] and [`document::write`]. The existing notes then remain.
pub fn add(recording: &Recording, seq: u64, text: &str) -> Result<AddedNote> {
    check_text(text)?;
    let recording = Recording::open(recording.dir())?;
    let _lock = lock_to_add(&recording, &path_of(&recording))?;
    let mut notes = read(&recording)?;
    if notes.len() >= MAX_NOTES {
        return Err(Error::not_added(
            format!("it has {MAX_NOTES} notes, which is the most"),
            None,
        ));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let note = AddedNote {
        seq,
        text: text.to_owned(),
        added_unix_ns: now.map_or(0, |now| now.as_nanos() as i64),
    };
    let at = notes.partition_point(|known| known.seq <= seq);
    notes.insert(at, note.clone());
    let header = recording.file_header(FileKind::Notes);
    document::write(&path_of(&recording), header, &notes)?;
    Ok(note)
}

fn check_text(text: &str) -> Result<()> {
    match text.len() {
        0 => Err(Error::not_added("a note needs a text", None)),
        len if len > MAX_NOTE_LEN => Err(Error::not_added(
            format!("its {len} bytes are too many for a note"),
            Some(&format!("write at most {MAX_NOTE_LEN}")),
        )),
        _ => Ok(()),
    }
}

/// Takes the lock to replace `file`, which is next to the recorded data; dropping the result releases it.
///
/// # Errors
/// [`Error::NotAdded`] if the recording or the file is read-only, [`Error::Io`].
pub(crate) fn lock_to_add(recording: &Recording, file: &Path) -> Result<File> {
    must_be_writable(recording.dir(), file)?;
    // A recorder holds the manifest's lock until the end.
    let lock = match recording.state() {
        RecordingState::Live => recording.dir().to_path_buf(),
        _ => recording.dir().join(MANIFEST_FILE),
    };
    let lock = File::open(&lock).map_err(Error::io("open", &lock))?;
    lock.lock().map_err(Error::io("lock", recording.dir()))?;
    Ok(lock)
}

/// Refuses read-only files, also for users whom the system would let write, and read-only file systems.
///
/// # Errors
/// [`Error::NotAdded`].
pub(crate) fn must_be_writable(dir: &Path, file: &Path) -> Result<()> {
    let flags = statvfs(dir).map(|found| found.f_flag);
    if flags.is_ok_and(|flags| flags.contains(StatVfsMountFlags::RDONLY)) {
        let hint = "copy the recording and open the copy";
        return Err(Error::not_added(
            format!("{} is on a read-only file system", dir.display()),
            Some(hint),
        ));
    }
    for path in [dir, file] {
        let Ok(found) = fs::metadata(path) else {
            continue;
        };
        if found.permissions().mode() & ANYBODY_WRITES == 0 {
            let hint = "copy the recording and open the copy, or make it writable with: chmod u+w";
            return Err(Error::not_added(
                format!("{} is read-only", path.display()),
                Some(hint),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::debugged;

    fn made() -> (tempfile::TempDir, Recording) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.hindsight");
        let recording = debugged().record(&path).unwrap();
        (dir, recording)
    }

    #[test]
    fn notes_are_kept_in_the_order_of_their_events() {
        let (_dir, recording) = made();
        assert_eq!(read(&recording).unwrap(), []);
        for (seq, text) in [(7, "seven"), (3, "three"), (7, "seven again")] {
            add(&recording, seq, text).unwrap();
        }
        let texts: Vec<_> = read(&recording).unwrap();
        let texts: Vec<_> = texts.iter().map(|note| (note.seq, &*note.text)).collect();
        assert_eq!(texts, [(3, "three"), (7, "seven"), (7, "seven again")]);
        let mode = fs::metadata(path_of(&recording)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }

    #[test]
    fn a_read_only_recording_takes_none_and_keeps_what_it_has() {
        let (_dir, recording) = made();
        add(&recording, 1, "kept").unwrap();
        let mode = |mode| fs::set_permissions(recording.dir(), PermissionsExt::from_mode(mode));
        mode(0o500).unwrap();
        let refused = add(&recording, 2, "lost").unwrap_err();
        mode(0o700).unwrap();
        assert!(refused.to_string().ends_with("read-only"), "{refused}");
        let hint = refused.hint().unwrap();
        assert!(hint.starts_with("copy the recording"), "{hint}");
        assert_eq!(read(&recording).unwrap().len(), 1);
    }

    #[test]
    fn a_damaged_file_is_not_replaced() {
        let (_dir, recording) = made();
        add(&recording, 1, "kept").unwrap();
        let path = path_of(&recording);
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(add(&recording, 2, "more").is_err());
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn wrong_texts_are_refused() {
        let (_dir, recording) = made();
        for text in ["", &"x".repeat(MAX_NOTE_LEN + 1)] {
            assert!(add(&recording, 0, text).is_err());
        }
        assert!(add(&recording, 0, &"x".repeat(MAX_NOTE_LEN)).is_ok());
    }
}

//! Labels: what a user calls a run, by key. Labels from the recording itself are in the manifest; later changes are in
//! one small file beside it, replaced as a whole. `docs/format.md` is the norm.

use std::collections::BTreeMap;

use crate::document;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::{FileKind, LABELS_FILE, MAX_LABEL_LEN, MAX_LABELS};
use crate::notes::lock_to_add;
use crate::recording::Recording;

/// Labels by key.
pub type Labels = BTreeMap<String, String>;

/// Later changes: new values by key, `None` for a removed label.
pub type Changes = BTreeMap<String, Option<String>>;

/// Returns a recording's labels as they are now.
///
/// # Errors
/// The file of later changes is damaged, belongs to another recording, or cannot be read.
pub fn read(recording: &Recording) -> Result<Labels> {
    let mut labels = recording.manifest().labels.clone();
    for (key, value) in changes(recording)? {
        match value {
            Some(value) => labels.insert(key, value),
            None => labels.remove(&key),
        };
    }
    Ok(labels)
}

/// Gives labels to a recording; `None` removes one.
///
/// # Errors [`Error::NotAdded`] if the recording is read-only, has too many labels, or a label is not one; those of
/// [`read`] and [`document::write`]. The existing labels then remain.
pub fn change(recording: &Recording, wanted: &Changes) -> Result<Labels> {
    for (key, value) in wanted {
        check(key, value.as_deref().unwrap_or_default())
            .map_err(|why| Error::not_added(why, None))?;
    }
    let path = recording.dir().join(LABELS_FILE);
    let _lock = lock_to_add(recording, &path)?;
    let mut all = changes(recording)?;
    all.extend(wanted.clone());
    if all.len() > MAX_LABELS {
        let why = format!("{MAX_LABELS} labels are the most that can be changed");
        return Err(Error::not_added(why, None));
    }
    document::write(&path, recording.file_header(FileKind::Labels), &all)?;
    read(recording)
}

fn changes(recording: &Recording) -> Result<Changes> {
    let path = recording.dir().join(LABELS_FILE);
    if !path.try_exists().map_err(Error::io("read", &path))? {
        return Ok(Changes::new());
    }
    let (header, changes): (FileHeader, Changes) = document::read(&path)?;
    recording
        .file_header(FileKind::Labels)
        .expect(&header, &path)?;
    Ok(changes)
}

/// Reads a label as users write it, `key=value`.
///
/// # Errors
/// Says what is wrong with it.
pub fn parse(text: &str) -> std::result::Result<(String, String), String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("a label is written key=value".to_owned());
    };
    check(key, value)?;
    Ok((key.to_owned(), value.to_owned()))
}

fn check(key: &str, value: &str) -> std::result::Result<(), String> {
    if key.is_empty() {
        return Err("a label has a key before =".to_owned());
    }
    let is_word = |c: char| c.is_alphanumeric() || "._-/:".contains(c);
    if let Some(wrong) = key.chars().find(|c| !is_word(*c)) {
        return Err(format!(
            "the key of a label has letters, digits and ._-/:, not {wrong:?}"
        ));
    }
    if key.len() > MAX_LABEL_LEN || value.len() > MAX_LABEL_LEN {
        return Err(format!(
            "key and value of a label have at most {MAX_LABEL_LEN} bytes each"
        ));
    }
    if value.chars().any(char::is_control) {
        return Err("the value of a label has no control characters".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::debugged;

    #[test]
    fn labels_are_changed_and_taken_away_and_the_manifest_stays() {
        let dir = tempfile::tempdir().unwrap();
        let recording = debugged().record(&dir.path().join("x")).unwrap();
        assert_eq!(read(&recording).unwrap(), Labels::new());
        let set = |key: &str, value: Option<&str>| {
            let wanted = Changes::from([(key.to_owned(), value.map(str::to_owned))]);
            change(&recording, &wanted)
        };
        set("branch", Some("main")).unwrap();
        let both = set("ci", Some("42")).unwrap();
        assert_eq!(both.len(), 2);
        let one = set("ci", None).unwrap();
        assert_eq!(one, Labels::from([("branch".into(), "main".into())]));
        let again = Recording::open(recording.dir()).unwrap();
        assert_eq!(read(&again).unwrap(), one);
        assert_eq!(again.manifest().labels, Labels::new());
        assert!(set("a b", Some("x")).is_err());
        assert_eq!(read(&recording).unwrap(), one);
    }

    #[test]
    fn a_damaged_file_is_an_error_and_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let recording = debugged().record(&dir.path().join("x")).unwrap();
        let wanted = Changes::from([("a".to_owned(), Some("b".to_owned()))]);
        change(&recording, &wanted).unwrap();
        let path = recording.dir().join(LABELS_FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(read(&recording).is_err());
        assert!(change(&recording, &wanted).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn labels_are_words_with_a_value() {
        let label = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(parse("ci=42"), label("ci", "42"));
        assert_eq!(parse("ci/job=a=b c"), label("ci/job", "a=b c"));
        assert_eq!(parse("empty="), label("empty", ""));
        for wrong in ["", "ci", "=42", "a b=c", "a=\n", &"x".repeat(300)] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}

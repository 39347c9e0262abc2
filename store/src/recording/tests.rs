//! Shows how recordings are named, found, distinguished and refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use crate::format::FORMAT_VERSION;
use crate::log::{End, Step};
use crate::manifest::RecordingId;
use crate::synth::{Synth, manifest};

fn small() -> Synth {
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth.thread(1).enter(f, 0x7f00).leave(0x7f00);
    synth
}

#[test]
fn a_recording_opens_with_and_without_its_ending() {
    let dir = tempfile::tempdir().unwrap();
    let made = small().record(&dir.path().join("run")).unwrap();
    assert_eq!(made.dir(), dir.path().join("run.hindsight"));
    for name in ["run", "run.hindsight", "run.hindsight/"] {
        let opened = Recording::open(&dir.path().join(name)).unwrap();
        assert_eq!(opened.manifest(), &manifest(), "{name}");
        assert_eq!(opened.state(), RecordingState::Closed);
    }
}

#[test]
fn folders_and_files_are_for_their_owner_only() {
    fn modes(dir: &Path, found: &mut Vec<(bool, u32)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.metadata().unwrap();
            found.push((meta.is_dir(), meta.permissions().mode() & 0o777));
            if meta.is_dir() {
                modes(&path, found);
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    small().record_interrupted(&dir.path().join("run")).unwrap();
    let mut found = Vec::new();
    modes(dir.path(), &mut found);
    assert!(
        found.len() >= 6,
        "folder, log, columns, segment, manifest, marker: {found:?}"
    );
    for (is_dir, mode) in found {
        assert_eq!(mode, if is_dir { 0o700 } else { 0o600 });
    }
}

#[test]
fn a_taken_name_is_refused_or_numbered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let names = ["run.hindsight", "run-2.hindsight", "run-3.hindsight"];
    for name in names {
        let Created { open, log } =
            OpenRecording::create(&path, OnTaken::Number, manifest()).unwrap();
        assert_eq!(open.recording().dir(), dir.path().join(name));
        open.close(log.close().unwrap()).unwrap();
    }
    let refused = OpenRecording::create(&path, OnTaken::Refuse, manifest()).err();
    assert!(matches!(refused, Some(Error::Exists { .. })), "{refused:?}");
}

/// As a recorder leaves it that is killed before it writes the manifest.
fn killed_as_it_began(dir: &Path) -> File {
    for part in [dir.to_path_buf(), dir.join(LOG_DIR), dir.join(COLUMNS_DIR)] {
        fs::create_dir(part).unwrap();
    }
    fs::write(dir.join(LOG_DIR).join("000000.seg"), "half").unwrap();
    fs::write(dir.join("manifest.draft"), "half").unwrap();
    File::create(dir.join(INCOMPLETE_FILE)).unwrap()
}

#[test]
fn the_folder_of_a_recorder_that_was_killed_as_it_began_is_made_again() {
    for on_taken in [OnTaken::Refuse, OnTaken::Number] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("run.hindsight");
        drop(killed_as_it_began(&folder));
        let told = Recording::open(&dir.path().join("run")).unwrap_err();
        assert!(
            told.to_string().contains("was killed as it began"),
            "{told}"
        );
        assert_eq!(may_be_created(&dir.path().join("run")).unwrap(), folder);
        let made = OpenRecording::create(&dir.path().join("run"), on_taken, manifest()).unwrap();
        assert_eq!(made.open.recording().dir(), folder);
        assert!(!folder.join("manifest.draft").exists());
    }
}

#[test]
fn a_folder_that_may_have_a_recorder_or_has_events_or_other_files_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let folder = dir.path().join("run.hindsight");
    let marker = killed_as_it_began(&folder);
    let refused = || {
        let made = OpenRecording::create(&path, OnTaken::Refuse, manifest());
        assert!(matches!(made.err(), Some(Error::Exists { .. })));
        assert!(folder.join(LOG_DIR).join("000000.seg").exists());
    };
    marker.lock().unwrap();
    refused();
    drop(marker);
    let mine = folder.join("mine.txt");
    fs::write(&mine, "mine").unwrap();
    refused();
    fs::remove_file(mine).unwrap();
    // Its manifest was lost.
    let segment = folder.join(LOG_DIR).join("000001.seg");
    fs::write(&segment, [0; 100]).unwrap();
    refused();
    fs::remove_file(segment).unwrap();
    // Its recorder may just begin.
    fs::remove_file(folder.join(INCOMPLETE_FILE)).unwrap();
    refused();
}

#[test]
fn a_recording_that_cannot_be_made_leaves_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    let mut huge = manifest();
    huge.argv = vec!["x".repeat(crate::format::MAX_PAYLOAD_LEN)];
    let refused = OpenRecording::create(&dir.path().join("run"), OnTaken::Refuse, huge).err();
    assert!(
        matches!(refused, Some(Error::BadPayload { .. })),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_recording_is_live_until_its_recorder_closes_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let Created { open, mut log } =
        OpenRecording::create(&path, OnTaken::Refuse, manifest()).unwrap();
    small().append_to(&mut log).unwrap();
    let live = Recording::open(&path).unwrap();
    assert_eq!(live.state(), RecordingState::Live);
    log.flush();
    while !matches!(live.log().unwrap().next_frame(), Ok(Step::Frame(_))) {
        std::thread::yield_now(); // it is on its way
    }
    open.close(log.close().unwrap()).unwrap();
    assert_eq!(
        Recording::open(&path).unwrap().state(),
        RecordingState::Closed
    );
}

#[test]
fn a_recording_whose_recorder_died_is_interrupted_and_readable() {
    let dir = tempfile::tempdir().unwrap();
    let recording = small().record_interrupted(&dir.path().join("run")).unwrap();
    assert_eq!(recording.state(), RecordingState::Interrupted);
    let mut log = recording.log().unwrap();
    let mut frames = 0;
    let end = loop {
        match log.next_frame().unwrap() {
            Step::Frame(_) => frames += 1,
            Step::End(end) => break end,
        }
    };
    assert_eq!((frames, end), (2, End::ForNow { torn_bytes: 0 }));
}

#[test]
fn what_is_no_recording_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty.hindsight")).unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let told: Vec<String> = ["empty", "file", "nowhere"]
        .map(|name| {
            Recording::open(&dir.path().join(name))
                .unwrap_err()
                .to_string()
        })
        .map(|text| text.replace(&dir.path().display().to_string(), "DIR"))
        .to_vec();
    expect_test::expect![[r#"
        DIR/empty is not a recording: the folder has no file "manifest"
        DIR/file is not a recording: it is not a folder
        DIR/nowhere is not a recording: there is no such folder, also not with the ending .hindsight"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn a_manifest_that_is_empty_foreign_newer_or_damaged_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let recording = small().record(&dir.path().join("run")).unwrap();
    let path = recording.dir().join(MANIFEST_FILE);
    let whole = fs::read(&path).unwrap();
    let mut newer = whole.clone();
    newer[8] = FORMAT_VERSION as u8 + 1;
    let crc = crc32c::crc32c(&newer[..60]);
    newer[60..64].copy_from_slice(&crc.to_le_bytes());
    let mut damaged = whole.clone();
    damaged[100] ^= 4;
    let segment = fs::read(recording.log_dir().join("000000.seg")).unwrap();
    let told: Vec<String> = [
        &b""[..],
        b"\x7fELF",
        &newer,
        &damaged,
        &segment,
        &whole[..90],
    ]
    .map(|bytes| {
        fs::write(&path, bytes).unwrap();
        let error = Recording::open(recording.dir()).unwrap_err();
        let hint = error.hint().expect("each says what to do");
        format!("{error}; {hint}").replace(&dir.path().display().to_string(), "DIR")
    })
    .to_vec();
    expect_test::expect![[r#"
        DIR/run.hindsight/manifest is cut short at offset 0: the file is empty; restore the file from a copy
        DIR/run.hindsight/manifest is not a file of a recording: at offset 0: it does not begin with HNDSIGHT; remove it or restore the recording from a copy
        DIR/run.hindsight/manifest has format version 3, this build reads up to 2; use a newer hindsight
        DIR/run.hindsight/manifest is damaged at offset 64: the frame's checksum differs; run "hindsight check" for a full report and restore the file from a copy
        DIR/run.hindsight/manifest is damaged at offset 64: another kind of frame; run "hindsight check" for a full report and restore the file from a copy
        DIR/run.hindsight/manifest is cut short at offset 90: the value is not whole; restore the file from a copy"#]].assert_eq(&told.join("\n"));
}

#[test]
fn a_manifest_of_another_recording_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let recording = small().record(&dir.path().join("run")).unwrap();
    let mut header = recording.file_header(FileKind::Manifest);
    header.recording_id = RecordingId([1; 16]);
    let path = recording.dir().join(MANIFEST_FILE);
    document::write(&path, header, recording.manifest()).unwrap();
    let refused = Recording::open(recording.dir());
    assert!(
        matches!(refused, Err(Error::Foreign { offset: 16, .. })),
        "{refused:?}"
    );
}

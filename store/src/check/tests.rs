//! Shows that a check reports nothing on good recordings and finds the damage in bad ones.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::control::{Control, LogFormat, LogKind, LogPart, LogValue, Pause, PauseReason};
use crate::format::{FILE_HEADER_LEN, MANIFEST_FILE};
use crate::seal::{Ending, SealOptions, Sealer};
use crate::synth::{Synth, debugged, pause};
use crate::wire::GapReason;

fn small() -> Synth {
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth
        .thread(1)
        .enter(f, 0x7f00)
        .output(1, b"hello")
        .leave(0x7f00);
    synth.watermark();
    synth.thread(2).enter(f, 0x8f00).leave(0x8f00).thread_exit();
    synth.watermark();
    synth
        .thread(1)
        .enter(f, 0x7f00)
        .leave_value(0x7f00, 7)
        .thread_exit();
    synth
}

/// Makes a recording from `synth`, applies `harm` to its folder, and returns the findings.
fn told(synth: &Synth, harm: impl FnOnce(&Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let recording = synth.record(&dir.path().join("run")).unwrap();
    harm(recording.dir());
    let report = check(recording.dir(), |_| {}).unwrap();
    tell(&report, recording.dir())
}

fn tell(report: &Report, dir: &Path) -> String {
    let lines = report.findings.iter().map(ToString::to_string);
    let text = lines.collect::<Vec<_>>().join("\n");
    text.replace(&dir.display().to_string(), "RUN")
}

fn segment(dir: &Path) -> PathBuf {
    segment_path(&dir.join(LOG_DIR), 0)
}

fn change(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    edit(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn seal(recording: &Recording, keep_log: bool) {
    let options = SealOptions {
        keep_log,
        ..SealOptions::default()
    };
    let sealer = Sealer::own(recording, options).unwrap();
    sealer.finish(Ending::Close, |_| {}).unwrap();
}

#[test]
fn a_good_recording_has_no_findings() {
    let dir = tempfile::tempdir().unwrap();
    let recording = small().record(&dir.path().join("run")).unwrap();
    let mut bytes = 0;
    let report = check(recording.dir(), |count| bytes += count).unwrap();
    assert_eq!(
        (tell(&report, dir.path()).as_str(), report.is_whole()),
        ("", true)
    );
    let totals = LogTotals {
        segments: 1,
        frames: 6,
        blocks: 3,
        controls: 1,
        watermarks: 2,
        threads: 2,
        records: 11,
        enters: 3,
        leaves: 3,
        ..LogTotals::default()
    };
    assert_eq!(report.log, totals);
    assert_eq!(bytes, segment(recording.dir()).metadata().unwrap().len());
}

#[test]
fn an_interrupted_recording_has_notes_only() {
    let dir = tempfile::tempdir().unwrap();
    let recording = small().record_interrupted(&dir.path().join("run")).unwrap();
    change(&segment(recording.dir()), |bytes| {
        bytes.extend_from_slice(b"half a frame")
    });
    let report = check(recording.dir(), |_| {}).unwrap();
    assert!(report.is_whole());
    expect_test::expect![[r#"
        note: RUN/log/000000.seg at offset 664: the last 12 bytes are an unfinished frame, which readers drop
        note: RUN: the recorder did not close the recording"#]].assert_eq(&tell(&report, recording.dir()));
}

#[test]
fn a_check_goes_on_behind_damage() {
    let text = told(&small(), |dir| {
        change(&segment(dir), |bytes| {
            bytes[FILE_HEADER_LEN + 30] ^= 1;
            let end = bytes.len() - 40;
            bytes[end] ^= 1;
        });
    });
    expect_test::expect![[r#"
        damage: RUN/log/000000.seg at offset 64: the frame's checksum differs; the next whole frame begins at offset 152
        damage: RUN/log/000000.seg at offset 544: the frame's checksum differs; the next whole frame begins at offset 664"#]].assert_eq(&text);
}

#[test]
fn missing_and_cut_segments_are_damage() {
    let cut = told(&small(), |dir| {
        change(&segment(dir), |bytes| bytes.truncate(bytes.len() - 30));
    });
    let gone = told(&small(), |dir| fs::remove_file(segment(dir)).unwrap());
    expect_test::expect![[r#"
        damage: RUN/log/000000.seg at offset 544: the file ends inside a frame
        damage: RUN/log/000000.seg: the log lacks its last frame
        damage: RUN/log/000000.seg: the segment is missing: its events are not in the columns"#]]
    .assert_eq(&[cut, gone].join("\n"));
}

#[test]
fn a_damaged_manifest_does_not_stop_the_check_of_the_log() {
    let text = told(&small(), |dir| {
        change(&dir.join(MANIFEST_FILE), |bytes| bytes[70] ^= 1);
        change(&segment(dir), |bytes| bytes[FILE_HEADER_LEN + 30] ^= 1);
    });
    expect_test::expect![[r#"
        damage: RUN/manifest at offset 64: the frame's checksum differs
        damage: RUN/log/000000.seg at offset 64: the frame's checksum differs; the next whole frame begins at offset 152"#]].assert_eq(&text);
}

#[test]
fn records_that_break_the_rules_are_odd() {
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth
        .thread(1)
        .at(100)
        .enter(f, 0x7f00)
        .at(90)
        .leave(0x7f00)
        .leave(0x7f00);
    synth.enter(f + 5, 0x7f00).enter(f, 0).watermark_at(1000);
    synth.at(50).enter(f, 0x7f00).raw(&[0xff; 24]).flush();
    synth.thread(1).at(2000).leave(0x7f00).watermark_at(500);
    expect_test::expect![[r#"
        odd: RUN/log/000000.seg at offset 568: watermark 500 after 1000
        note: RUN/log/000000.seg at offset 152: thread 1 (ring 0 tenancy 0): a record is older than the one before (2 times)
        note: RUN/log/000000.seg at offset 392: thread 1 (ring 0 tenancy 0): a record is older than the watermark before it (1 times)
        odd: RUN/log/000000.seg at offset 152: thread 1 (ring 0 tenancy 0): a record names a function that is not defined (1 times)
        odd: RUN/log/000000.seg at offset 152: thread 1 (ring 0 tenancy 0): a record has slot 0 (1 times)
        odd: RUN/log/000000.seg at offset 152: thread 1 (ring 0 tenancy 0): a slot is left that was not entered (1 times)
        odd: RUN/log/000000.seg at offset 464: thread 1 (ring 0 tenancy 0): the rest of a block cannot be read and counts as a gap (1 times)"#]].assert_eq(&told(&synth, |_| {}));
}

#[test]
fn a_leave_after_a_gap_is_not_odd() {
    let mut synth = Synth::new();
    synth.function("f");
    synth.thread(1).gap(3, GapReason::RingFull).leave(0x7f00);
    assert_eq!(told(&synth, |_| {}), "");
}

#[test]
fn a_good_debugging_session_has_no_findings() {
    assert_eq!(told(&debugged(), |_| {}), "");
}

#[test]
fn live_probes_that_break_the_rules_are_odd() {
    let mut synth = Synth::new();
    let value = LogValue {
        expression: "x".into(),
        word: 60,
        kind: LogKind::Text,
        bytes: 32,
    };
    synth
        .thread(1)
        .live(|ticks| {
            Control::LogFormat(LogFormat {
                ticks,
                probe: 5,
                parts: vec![LogPart::Value(value)],
            })
        })
        .logpoint(5, &[1])
        .logpoint(6, &[])
        .condition_error(7, 0)
        .live(|ticks| {
            Control::Pause(Box::new(Pause {
                probe: Some(8),
                stack: vec![0; 70_000].into(),
                ..pause(ticks, 1, PauseReason::Breakpoint)
            }))
        });
    expect_test::expect![[r#"
        odd: RUN/log/000000.seg at offset 136: the format of logpoint 5 reads 65 words of 64
        odd: RUN/log/000000.seg at offset 280: a pause keeps 70000 bytes of the stack, more than 65536
        odd: RUN/log/000000.seg at offset 136: a live probe is named that is not defined (2 times)
        odd: RUN/log/000000.seg at offset 192: thread 1 (ring 0 tenancy 0): a record names a live probe that is not defined (2 times)
        odd: RUN/log/000000.seg at offset 192: thread 1 (ring 0 tenancy 0): a logpoint's record has not the words that its format reads (1 times)"#]].assert_eq(&told(&synth, |_| {}));
}

#[test]
fn a_changed_or_missing_file_of_states_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let recording = debugged().record(&dir.path().join("run")).unwrap();
    seal(&recording, false);
    let report = check(recording.dir(), |_| {}).unwrap();
    assert_eq!(
        (
            tell(&report, recording.dir()).as_str(),
            report.columns.states
        ),
        ("", 4)
    );
    let path = recording.columns_dir().join("states-000000.parquet");
    change(&path, |bytes| bytes[20] ^= 1);
    let changed = check(recording.dir(), |_| {}).unwrap();
    fs::remove_file(&path).unwrap();
    let missing = check(recording.dir(), |_| {}).unwrap();
    let texts = [changed, missing].map(|report| tell(&report, recording.dir()));
    expect_test::expect![[r#"
        damage: RUN/columns/states-000000.parquet at offset 0: the file's checksum differs
        damage: RUN/columns/states-000000.parquet: open: No such file or directory (os error 2)"#]]
    .assert_eq(&texts.join("\n"));
}

#[test]
fn a_sealed_recording_has_no_findings_with_and_without_its_log() {
    for keep_log in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let recording = small().record(&dir.path().join("run")).unwrap();
        seal(&recording, keep_log);
        let report = check(recording.dir(), |_| {}).unwrap();
        assert_eq!(tell(&report, recording.dir()), "", "log kept: {keep_log}");
        let columns = report.columns;
        assert_eq!(
            (columns.calls, columns.unfinished, columns.functions),
            (3, 0, 1)
        );
        assert_eq!(columns.next_seq, 2 * columns.calls + columns.events);
    }
}

#[test]
fn files_that_are_not_of_the_recording_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let recording = small().record(&dir.path().join("run")).unwrap();
    seal(&recording, false);
    let own = recording.dir();
    fs::create_dir_all(own.join("memory")).unwrap();
    for path in ["zz", "columns/zzz", "memory/000009.mem", "memory/more"] {
        fs::write(own.join(path), "").unwrap();
    }
    fs::create_dir(own.join("folder")).unwrap();
    let report = check(own, |_| {}).unwrap();
    assert!(report.is_whole());
    let what = "it is not of this recording, and is not read";
    let expected = [
        "columns/zzz",
        "folder",
        "memory/000009.mem",
        "memory/more",
        "zz",
    ];
    let expected = expected.map(|path| format!("note: RUN/{path}: {what}"));
    assert_eq!(tell(&report, own), expected.join("\n"));
    for number in 0..9 {
        fs::write(own.join(format!("x{number}")), "").unwrap();
    }
    let told = tell(&check(own, |_| {}).unwrap(), own);
    assert_eq!(told.lines().count(), 9);
    assert!(
        told.ends_with("note: RUN: 6 more files are not of this recording"),
        "{told}"
    );
}

#[test]
fn a_changed_or_missing_file_of_the_columns_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let recording = small().record(&dir.path().join("run")).unwrap();
    seal(&recording, false);
    let columns = recording.columns_dir();
    let mut names: Vec<PathBuf> = fs::read_dir(&columns)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert_eq!(
        names.len(),
        4,
        "calls, definitions, events and the state: {names:?}"
    );
    for path in names {
        let whole = fs::read(&path).unwrap();
        for harm in [
            |bytes: &mut Vec<u8>| bytes[FILE_HEADER_LEN + 9] ^= 1,
            |bytes: &mut Vec<u8>| bytes.truncate(FILE_HEADER_LEN + 11),
            |bytes: &mut Vec<u8>| bytes.clear(),
        ] {
            change(&path, harm);
            let report = check(recording.dir(), |_| {}).unwrap();
            assert!(!report.is_whole(), "{}", path.display());
            let named = report.findings.iter().any(|finding| finding.path == path);
            assert!(named, "{}: {:?}", path.display(), report.findings);
        }
        fs::remove_file(&path).unwrap();
        assert!(
            !check(recording.dir(), |_| {}).unwrap().is_whole(),
            "{}",
            path.display()
        );
        fs::write(&path, whole).unwrap();
        assert!(check(recording.dir(), |_| {}).unwrap().is_whole());
    }
}

#[test]
fn bytes_behind_the_definitions_of_a_closed_recording_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let recording = small().record(&dir.path().join("run")).unwrap();
    seal(&recording, false);
    change(&recording.definitions_path(), |bytes| {
        bytes.extend_from_slice(b"more")
    });
    let report = check(recording.dir(), |_| {}).unwrap();
    expect_test::expect![[r#"
        damage: RUN/columns/definitions.seg at offset 152: it continues after the 152 bytes that were written"#]]
    .assert_eq(&tell(&report, recording.dir()));
}

#[test]
fn sealed_columns_without_a_state_are_damage_in_a_closed_recording_only() {
    let dir = tempfile::tempdir().unwrap();
    let recording = small().record(&dir.path().join("run")).unwrap();
    seal(&recording, true);
    fs::remove_file(recording.seal_state_path()).unwrap();
    let closed = check(recording.dir(), |_| {}).unwrap();
    fs::write(recording.dir().join(INCOMPLETE_FILE), "").unwrap();
    let died = check(recording.dir(), |_| {}).unwrap();
    let told = [closed, died].map(|report| tell(&report, recording.dir()));
    expect_test::expect![[r#"
        damage: RUN/columns/seal.state: there is no such file, but there are sealed columns
        note: RUN: the recorder did not close the recording"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn a_log_that_is_missing_or_moved_in_an_unfinished_recording_is_damage() {
    let harms: [fn(&Path); 4] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, "").unwrap(),
        |path| change(path, |bytes| drop(bytes.drain(200..208))),
        |path| {
            change(path, |bytes| {
                let doubled = bytes[200..248].to_vec();
                bytes.splice(248..248, doubled);
            });
        },
    ];
    let dir = tempfile::tempdir().unwrap();
    let mut told = Vec::new();
    for (number, harm) in harms.into_iter().enumerate() {
        let path = dir.path().join(format!("run{number}"));
        let recording = small().record_interrupted(&path).unwrap();
        harm(&segment(recording.dir()));
        let report = check(recording.dir(), |_| {}).unwrap();
        assert!(!report.is_whole(), "harm {number}");
        let text = tell(&report, recording.dir());
        told.extend(text.lines().next().map(str::to_owned));
        assert!(recording.log().and_then(read_to_the_end).is_err());
    }
    expect_test::expect![[r#"
        damage: RUN/log/000000.seg: the segment is missing: its events are not in the columns
        damage: RUN/log/000000.seg at offset 0: the file is empty
        damage: RUN/log/000000.seg at offset 152: the frame's checksum differs, and a frame that was written at offset 328 lies at offset 320
        damage: RUN/log/000000.seg at offset 152: the frame's checksum differs, and a frame that was written at offset 328 lies at offset 376"#]]
    .assert_eq(&told.join("\n"));
}

fn read_to_the_end(mut log: crate::log::LogReader) -> Result<()> {
    while let crate::log::Step::Frame(_) = log.next_frame()? {}
    Ok(())
}

/// Every copy of memory was finished before its event.
#[test]
fn a_copy_of_memory_that_an_event_tells_of_and_is_not_there_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut synth = small();
    synth.live(|ticks| {
        Control::Snapshot(crate::control::Snapshot {
            ticks,
            id: 0,
            reason: crate::control::SnapshotReason::Start,
            covered: 0,
            changed: 0,
        })
    });
    let recording = synth.record(&dir.path().join("run")).unwrap();
    let id = recording.manifest().recording_id;
    let copy = crate::memory::SnapshotWriter::create(&crate::storage::Disk, recording.dir(), id, 0);
    copy.unwrap().finish(Vec::new()).unwrap();
    let path = recording.dir().join("memory/000000.mem");
    let whole = fs::read(&path).unwrap();
    let told = || tell(&check(recording.dir(), |_| {}).unwrap(), recording.dir());
    assert_eq!(told(), "");
    let mut all = Vec::new();
    for sealed in [false, true] {
        if sealed {
            seal(&recording, false);
            assert_eq!(told(), "");
        }
        fs::remove_file(&path).unwrap();
        all.push(told());
        fs::write(&path, "").unwrap();
        all.push(told());
        fs::write(&path, &whole).unwrap();
    }
    expect_test::expect![[r#"
        damage: RUN/memory/000000.mem at offset 0: an event tells of this copy of memory, and there is no such file
        damage: RUN/memory/000000.mem at offset 0: the file is empty
        damage: RUN/memory/000000.mem at offset 0: an event tells of this copy of memory, and there is no such file
        damage: RUN/memory/000000.mem at offset 0: the file is empty"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn no_harm_to_any_byte_of_a_log_goes_unnoticed() {
    let dir = tempfile::tempdir().unwrap();
    let recording = small().record(&dir.path().join("run")).unwrap();
    let path = segment(recording.dir());
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x40;
        fs::write(&path, &changed).unwrap();
        let report = check(recording.dir(), |_| {}).unwrap();
        assert!(!report.is_whole(), "changed at {at}");
    }
}

#[test]
fn a_system_call_ends_only_where_one_began() {
    let mut synth = small();
    synth.thread(1).syscall(1, [0; 6], 0x7000, &[]);
    synth.syscall_end(5, 0x7000, &[]);
    assert_eq!(told(&synth, |_| {}), "");
    synth.syscall_end(5, 0x7000, &[]);
    let found = told(&synth, |_| {});
    assert!(
        found.contains("a system call ends that did not begin"),
        "{found}"
    );
}

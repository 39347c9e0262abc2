//! Shows that a catalog answers as its source does, and that no state of its files stops a reader.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use super::*;
use crate::columns::FileSum;
use crate::control::Control;
use crate::seal::{Ending, SealOptions, Sealer};
use crate::synth::{Synth, SynthFrame};

const NOW: Fingerprint = Fingerprint(7);

fn contents() -> Contents {
    let mut synth = Synth::new();
    for name in ["main", "parse", "print"] {
        synth.function(name);
    }
    let mut contents = Contents::default();
    for frame in synth.frames() {
        if let SynthFrame::Control(control) = frame {
            contents.add(control);
        }
    }
    contents.add(Control::ModuleLoad {
        ticks: 1,
        module: 4,
        path: "/bin/true".into(),
        build_id: Some("abcd".into()),
        addr: 0x1000,
        size: 0x2000,
        system: false,
    });
    contents.parts = (0..300).map(part).collect();
    contents
}

/// Part `number` holds the seqs from 100 times its number on.
fn part(number: u32) -> Part {
    let sum = FileSum {
        len: 1,
        crc32c: 2,
        blocks: vec![3; 4],
    };
    Part {
        number,
        first_seq: u64::from(number) * 100,
        end_seq: u64::from(number) * 100 + 100,
        from_ts_ns: 0,
        to_ts_ns: 1,
        calls: 50,
        unfinished: 0,
        events: 0,
        calls_file: sum.clone(),
        events_file: sum,
        states: 0,
        states_file: None,
        captures: 0,
        captures_file: None,
    }
}

/// Asks everything; returns how often the recording itself had to be read.
fn ask(dir: &Path, fingerprint: Fingerprint) -> (u32, Option<String>) {
    let loads = Cell::new(0);
    let index = Index::open(dir, fingerprint, || {
        loads.set(loads.get() + 1);
        Ok(contents())
    });
    let function = index.function(1).unwrap().unwrap();
    assert_eq!(function.name, "parse");
    assert_eq!(index.function(99).unwrap(), None);
    assert_eq!(index.module(4).unwrap().unwrap().path, "/bin/true");
    assert_eq!(index.module(5).unwrap(), None);
    let parts = index.parts_between(250, 300).unwrap();
    assert_eq!(parts, [part(2), part(3)]);
    (loads.get(), index.why_not_catalog().map(str::to_string))
}

#[test]
fn a_catalog_answers_without_reading_the_recording() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("catalog");
    build(&dir, NOW, &contents()).unwrap();
    assert_eq!(ask(&dir, NOW), (0, None));
    build(&dir, NOW, &contents()).unwrap();
    assert_eq!(ask(&dir, NOW), (0, None), "it can be built again");
    assert_eq!(
        fs::read_dir(root.path()).unwrap().count(),
        1,
        "no draft stays"
    );
}

#[test]
fn the_recording_answers_when_there_is_no_catalog_or_a_stale_one() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("catalog");
    let (loads, reason) = ask(&dir, NOW);
    assert_eq!(loads, 1);
    assert!(reason.unwrap().contains("there is none"));
    build(&dir, NOW, &contents()).unwrap();
    let (loads, reason) = ask(&dir, Fingerprint(8));
    assert_eq!(loads, 1);
    assert!(reason.unwrap().contains("another state"));
}

#[test]
fn the_recording_answers_while_another_reader_holds_the_catalog() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("catalog");
    build(&dir, NOW, &contents()).unwrap();
    let holder = Index::open(&dir, NOW, || Ok(contents()));
    assert_eq!(holder.why_not_catalog(), None);
    let (loads, reason) = ask(&dir, NOW);
    assert_eq!(loads, 1, "{reason:?}");
    drop(holder);
    assert_eq!(ask(&dir, NOW), (0, None));
}

#[test]
fn the_recording_answers_when_the_catalog_is_broken() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("catalog");
    build(&dir, NOW, &contents()).unwrap();
    let db = fs::read(dir.join("db")).unwrap();
    let harms: [fn(&mut Vec<u8>); 4] = [
        |db| db.clear(),
        |db| db.truncate(db.len() / 2),
        |db| db.fill(0xa5),
        |db| db.iter_mut().step_by(97).for_each(|byte| *byte ^= 0x55),
    ];
    for harm in harms {
        let mut harmed = db.clone();
        harm(&mut harmed);
        fs::write(dir.join("db"), harmed).unwrap();
        let (loads, _) = ask(&dir, NOW);
        assert_eq!(loads, 1);
    }
    fs::remove_dir_all(&dir).unwrap();
    fs::write(&dir, "not even a folder").unwrap();
    assert_eq!(ask(&dir, NOW).0, 1);
}

#[test]
fn a_failing_source_is_reported() {
    let index = Index::open(Path::new("nowhere"), NOW, || {
        Err(crate::Error::SegmentMissing {
            path: "log/000000.seg".into(),
        })
    });
    let refused = index.function(0);
    let missing = matches!(refused, Err(crate::Error::SegmentMissing { .. }));
    assert!(missing, "{refused:?}");
}

#[test]
fn a_sealed_recording_gets_its_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth.thread(1).enter(f, 0x7f00).leave(0x7f00);
    let recording = synth.record(&dir.path().join("run")).unwrap();
    let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
    let sealed = sealer.finish(Ending::Close, |_| {}).unwrap();
    rebuild(&recording).unwrap();
    let fingerprint = Fingerprint::of_file(&recording.seal_state_path()).unwrap();
    let index = Index::open(&recording.catalog_dir(), fingerprint, || {
        panic!("the catalog answers");
    });
    assert_eq!(index.function(f).unwrap().unwrap().name, "f");
    let parts: Vec<Part> = sealed.parts.into_iter().map(|sealed| sealed.part).collect();
    assert_eq!(index.parts_between(0, u64::MAX).unwrap(), parts);
}

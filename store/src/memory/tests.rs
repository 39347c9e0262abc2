//! Goal: a page reads as it was at each snapshot, and no bytes of a file harm its reader. Method: made-up memory that
//! changes from snapshot to snapshot, compared with a model; files that were cut and changed.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Memory, PAGE_LEN, Region, Seen, SnapshotWriter, path_of};
use crate::error::Error;
use crate::recording::{Created, OnTaken, OpenRecording, Recording};
use crate::storage::Disk;
use crate::synth::manifest;

const BASE: u64 = 0x7000_0000_0000;

fn region(first: u64, pages: u64, zeroed: bool) -> Region {
    Region {
        addr: BASE + first * PAGE_LEN,
        len: pages * PAGE_LEN,
        zeroed,
        name: String::new(),
    }
}

fn created(dir: &std::path::Path) -> (OpenRecording, Recording) {
    let Created { open, .. } =
        OpenRecording::create(&dir.join("rec"), OnTaken::Refuse, manifest()).unwrap();
    let recording = open.recording().clone();
    (open, recording)
}

/// Writes a snapshot of some pages, each filled with one byte.
fn write(recording: &Recording, id: u32, regions: Vec<Region>, pages: &BTreeMap<u64, u8>) {
    let recording_id = recording.manifest().recording_id;
    let mut writer = SnapshotWriter::create(&Disk, recording.dir(), recording_id, id).unwrap();
    for (page, byte) in pages {
        let bytes = vec![*byte; PAGE_LEN as usize];
        writer.append(BASE + page * PAGE_LEN, &bytes).unwrap();
    }
    writer.finish(regions).unwrap();
}

#[test]
fn a_page_is_that_of_the_newest_snapshot_that_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let (_open, recording) = created(dir.path());
    let mut random = StdRng::seed_from_u64(5);
    let mut model: Vec<BTreeMap<u64, u8>> = Vec::new();
    for id in 0..12 {
        let changed: BTreeMap<u64, u8> = (0..10)
            .map(|_| (random.random_range(0..64), random.random()))
            .collect();
        write(&recording, id, vec![region(0, 64, true)], &changed);
        let mut now = model.last().cloned().unwrap_or_default();
        now.extend(changed);
        model.push(now);
    }
    let mut memory = Memory::open(&recording).unwrap();
    assert_eq!(memory.len(), 12);
    for _ in 0..2000 {
        let (id, page) = (random.random_range(0..12), random.random_range(0..70));
        let expected = match model[id].get(&page) {
            Some(byte) => Seen::Bytes(vec![*byte; PAGE_LEN as usize]),
            None if page < 64 => Seen::Zeroes,
            None => Seen::Uncovered,
        };
        let addr = BASE + page * PAGE_LEN + random.random_range(0..PAGE_LEN);
        assert_eq!(memory.page(id as u32, addr).unwrap(), expected);
    }
    assert!(memory.check().unwrap() > 0);
}

/// Memory that was unmapped and mapped again holds zeroes, not its earlier content.
#[test]
fn memory_that_was_gone_in_between_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let (_open, recording) = created(dir.path());
    let both = vec![region(0, 4, true), region(8, 4, true)];
    write(&recording, 0, both.clone(), &[(1, 7), (9, 8)].into());
    write(&recording, 1, vec![region(0, 4, true)], &[].into());
    write(&recording, 2, both, &[].into());
    let mut memory = Memory::open(&recording).unwrap();
    let seen = |memory: &mut Memory, id, page| memory.page(id, BASE + page * PAGE_LEN).unwrap();
    assert_eq!(
        seen(&mut memory, 0, 9),
        Seen::Bytes(vec![8; PAGE_LEN as usize])
    );
    assert_eq!(seen(&mut memory, 1, 9), Seen::Uncovered);
    assert_eq!(seen(&mut memory, 2, 9), Seen::Zeroes);
    assert_eq!(
        seen(&mut memory, 2, 1),
        Seen::Bytes(vec![7; PAGE_LEN as usize])
    );
}

#[test]
fn a_snapshot_that_was_not_finished_is_left_out_while_the_recording_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let (_open, recording) = created(dir.path());
    write(&recording, 0, vec![region(0, 4, true)], &[(1, 7)].into());
    write(&recording, 1, vec![region(0, 4, true)], &[(1, 8)].into());
    let path = path_of(recording.dir(), 1);
    let whole = std::fs::read(&path).unwrap();
    for len in (64..whole.len()).step_by(8) {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(Memory::open(&recording).unwrap().len(), 1, "cut at {len}");
    }
}

#[test]
fn a_changed_byte_is_found_and_harms_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let (_open, recording) = created(dir.path());
    let mut bytes = vec![0; 3 * PAGE_LEN as usize];
    StdRng::seed_from_u64(1).fill(&mut bytes[..5000]);
    let recording_id = recording.manifest().recording_id;
    let mut writer = SnapshotWriter::create(&Disk, recording.dir(), recording_id, 0).unwrap();
    writer.append(BASE, &bytes).unwrap();
    writer.finish(vec![region(0, 4, true)]).unwrap();
    let path = path_of(recording.dir(), 0);
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        std::fs::write(&path, &changed).unwrap();
        let outcome = Memory::open(&recording).and_then(|mut memory| {
            let found = memory.len();
            memory.check().map(|_| found)
        });
        assert!(!matches!(outcome, Ok(1)), "byte {at} was changed");
        let is_named = match &outcome {
            Err(Error::Corrupt { path: named, .. } | Error::Foreign { path: named, .. }) => {
                named == &path
            }
            // A damaged end looks like one that was never written; a version may look newer.
            _ => true,
        };
        assert!(is_named, "{outcome:?}");
    }
}

/// Marks this process as a test's child, and names its recording.
const CHILD: &str = "HINDSIGHT_TEST_OF_MANY_SNAPSHOTS";
const MANY: u32 = 2_000;

/// Page `0` changes in each snapshot, page `1 + id` in one; page 5000 is not covered by every seventh.
#[test]
fn a_recording_has_more_snapshots_than_a_process_may_open_files() {
    let name = "memory::tests::a_recording_has_more_snapshots_than_a_process_may_open_files";
    if let Some(dir) = std::env::var_os(CHILD) {
        let recording = Recording::open(&std::path::Path::new(&dir).join("rec")).unwrap();
        return read_many(&recording);
    }
    let dir = tempfile::tempdir().unwrap();
    let (_open, recording) = created(dir.path());
    for id in 0..MANY {
        let mut pages: BTreeMap<u64, u8> = [(0, id as u8), (1 + u64::from(id), 7)].into();
        let mut regions = vec![region(0, 4000, true)];
        if id % 7 != 0 {
            regions.push(region(5000, 1, true));
        }
        if id % 7 == 1 {
            pages.insert(5000, id as u8);
        }
        write(&recording, id, regions, &pages);
    }
    let child = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}{errors}");
    assert!(said.contains("2000 snapshots were read"), "{said}{errors}");
}

fn read_many(recording: &Recording) {
    let mut memory = Memory::open(recording).unwrap();
    assert_eq!(memory.len(), MANY as usize);
    let filled = |byte: u8| Seen::Bytes(vec![byte; PAGE_LEN as usize]);
    let mut random = StdRng::seed_from_u64(8);
    for _ in 0..20_000 {
        let id = random.random_range(0..MANY);
        let page = random.random_range(1..=u64::from(MANY));
        let mut seen = |page: u64| memory.page(id, BASE + page * PAGE_LEN).unwrap();
        assert_eq!(seen(0), filled(id as u8), "in {id}");
        let expected = match page <= u64::from(id) + 1 {
            true => filled(7),
            false => Seen::Zeroes,
        };
        assert_eq!(seen(page), expected, "page {page} in {id}");
        let expected = match id % 7 {
            0 => Seen::Uncovered,
            _ => filled((id / 7 * 7 + 1) as u8),
        };
        assert_eq!(seen(5000), expected, "in {id}");
    }
    assert!(memory.check().unwrap() > 0);
    println!("{} snapshots were read", memory.len());
}

//! Goal: the catalog has what was added, and loses nothing that the recordings still have. Method: lose, damage and
//! lock its files.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Catalog, DB_DIR, Entry, journal};
use crate::error::Error;
use crate::recording::Recording;
use crate::set::PROCESSES_FILE;
use crate::synth::debugged;

struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("data/hindsight/runs")
    }

    fn record(&self, name: &str) -> Recording {
        let recording = debugged().record(&self.dir.path().join(name)).unwrap();
        journal::add(&self.folder(), recording.dir()).unwrap();
        recording
    }

    /// A program that another test starts holds the lock, too, from its fork to its exec.
    fn open(&self) -> Catalog {
        Catalog::open(&self.folder(), Duration::from_secs(30)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        names(&self.open().entries().unwrap())
    }
}

fn names(entries: &[Entry]) -> Vec<String> {
    let name = |entry: &Entry| {
        entry
            .path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    };
    let mut names: Vec<_> = entries.iter().map(name).collect();
    names.sort();
    names
}

#[test]
fn what_was_told_is_listed_and_what_is_forgotten_is_not() {
    let world = World::new();
    assert_eq!(world.names(), Vec::<String>::new());
    let a = world.record("a");
    world.record("b");
    assert_eq!(world.names(), ["a.hindsight", "b.hindsight"]);
    let c = debugged().record(&world.dir.path().join("c")).unwrap();
    world.open().add(c.dir()).unwrap();
    assert_eq!(world.names().len(), 3);
    world.open().forget(&[a.dir().to_owned()]).unwrap();
    assert_eq!(world.names(), ["b.hindsight", "c.hindsight"]);
    world.open().compact().unwrap();
    assert_eq!(world.names(), ["b.hindsight", "c.hindsight"]);
    assert!(a.dir().is_dir(), "the recording stays");
}

/// A link, and a path with `..`, lead to the same recording.
#[test]
fn a_recording_is_one_entry_by_whatever_path_it_was_added() {
    let world = World::new();
    let root = world.dir.path().canonicalize().unwrap();
    let recording = debugged().record(&root.join("a")).unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    symlink(&root, root.join("link")).unwrap();
    let name = recording.dir().file_name().unwrap();
    for folder in ["", "sub/..", "link"] {
        world.open().add(&root.join(folder).join(name)).unwrap();
    }
    let entries = world.open().entries().unwrap();
    let paths: Vec<&Path> = entries.iter().map(|entry| entry.path.as_path()).collect();
    assert_eq!(paths, [recording.dir()]);
}

/// Names of files may have any bytes.
#[test]
fn a_name_that_is_not_utf8_is_kept_as_it_is() {
    let world = World::new();
    world.record("plain");
    let odd = world.dir.path().join(OsStr::from_bytes(b"odd\xff"));
    let odd = debugged().record(&odd).unwrap();
    journal::add(&world.folder(), odd.dir()).unwrap();
    let all = ["odd\u{fffd}.hindsight", "plain.hindsight"];
    assert_eq!(world.names(), all);
    assert_eq!(world.names(), all, "read again");
    let entries = world.open().entries().unwrap();
    assert!(entries.iter().any(|entry| entry.path == odd.dir()));
    world.open().compact().unwrap();
    world.open().forget(&[odd.dir().to_owned()]).unwrap();
    assert_eq!(world.names(), ["plain.hindsight"]);
}

#[test]
fn a_lost_or_damaged_catalog_is_made_again() {
    let world = World::new();
    world.record("a");
    world.record("b");
    assert_eq!(world.names().len(), 2);
    let db = world.folder().join(DB_DIR);
    fs::remove_dir_all(&db).unwrap();
    assert_eq!(world.names().len(), 2, "lost");
    for file in ["db", "conf"] {
        for damage in [&b""[..], b"damaged", &[0xff; 70_000]] {
            fs::write(db.join(file), damage).unwrap();
            assert_eq!(world.names().len(), 2, "{file} of {} bytes", damage.len());
        }
    }
    fs::remove_file(world.folder().join("paths")).unwrap();
    assert_eq!(
        world.names().len(),
        2,
        "the journal is lost, the entries are not"
    );
}

#[test]
fn a_record_that_was_cut_damages_no_other() {
    let world = World::new();
    world.record("a");
    let journal = world.folder().join("paths");
    let mut bytes = fs::read(&journal).unwrap();
    bytes.extend(b"\0+/cut/of");
    fs::write(&journal, bytes).unwrap();
    world.record("b");
    assert_eq!(world.names(), ["a.hindsight", "b.hindsight"]);
}

#[test]
fn one_process_has_it_open_and_telling_goes_on() {
    let world = World::new();
    let open = world.open();
    let refused = Catalog::open(&world.folder(), Duration::from_millis(50));
    assert!(matches!(refused, Err(Error::CatalogInUse { .. })));
    world.record("a");
    drop(open);
    assert_eq!(world.names(), ["a.hindsight"]);
}

/// Whoever holds the lock of sled's file only, as versions without a lock of the catalog do, loses nothing.
#[test]
fn entries_that_another_version_has_open_are_not_taken_for_damaged() {
    let world = World::new();
    world.record("a");
    assert_eq!(world.names(), ["a.hindsight"]);
    let db = world.folder().join(DB_DIR).join("db");
    let held = fs::File::open(&db).unwrap();
    held.lock().unwrap();
    let refused = Catalog::open(&world.folder(), Duration::from_millis(50));
    assert!(matches!(refused, Err(Error::CatalogInUse { .. })));
    assert!(db.exists(), "the entries are still there");
    drop(held);
    assert_eq!(world.names(), ["a.hindsight"]);
}

#[test]
fn a_recording_that_was_not_closed_is_looked_at_again() {
    let world = World::new();
    let path = world.dir.path().join("x");
    let recording = debugged().record_interrupted(&path).unwrap();
    journal::add(&world.folder(), recording.dir()).unwrap();
    assert!(!world.open().entries().unwrap()[0].closed);
    fs::remove_file(recording.dir().join("incomplete")).unwrap();
    assert!(world.open().entries().unwrap()[0].closed);
    fs::remove_dir_all(recording.dir()).unwrap();
    let entries = world.open().entries().unwrap();
    assert!(!entries[0].is_there());
    assert!(Path::new(&entries[0].path).is_absolute());
}

/// `hindsight test` removes the recordings of what passed.
#[test]
fn a_set_without_recordings_stays_until_it_is_forgotten() {
    let world = World::new();
    let set = world.dir.path().join("sh.children");
    fs::create_dir(&set).unwrap();
    fs::write(set.join(PROCESSES_FILE), "").unwrap();
    let set = set.canonicalize().unwrap();
    assert!(world.open().add_set(&set).unwrap());
    assert!(!world.open().add_set(&set).unwrap(), "it is known");
    let catalog = world.open();
    catalog.compact().unwrap();
    assert_eq!(catalog.sets().unwrap(), std::slice::from_ref(&set));
    assert!(catalog.entries().unwrap().is_empty());
    catalog.forget(&[set]).unwrap();
    assert!(catalog.sets().unwrap().is_empty());
}

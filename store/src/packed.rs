//! Copies of the modules' files in a recording, so that it can be opened where those files are missing or differ.
//!
//! The file `modules/index` lists the copies. It is replaced as a whole once they are on the disk: a copy that it does
//! not name does not count. `docs/format.md` is the norm.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::document;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::{FileKind, MODULES_DIR, MODULES_INDEX_FILE, PACKED_FILE};
use crate::notes::must_be_writable;
use crate::recording::{Recording, RecordingState};
use crate::storage::{self, FILE_MODE};

/// Most bytes of all copies together.
pub const MAX_LEN: u64 = 16 << 30;

/// Bytes that are copied at once.
const CHUNK: usize = 1 << 20;

/// The files of which a recording has copies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    /// The modules.
    pub modules: Vec<PackedModule>,
    /// All files, including debug files.
    pub files: Vec<PackedFile>,
    /// Source files.
    pub sources: Vec<PackedSource>,
}

/// A module with a copy of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedModule {
    /// The recorded path.
    pub path: String,
    /// The recorded build id, in hexadecimal.
    pub build_id: Option<String>,
    /// The copy, below `modules/`.
    pub file: String,
}

/// A source file with a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedSource {
    /// The path in the debug information.
    pub path: String,
    /// The copy, below `modules/`.
    pub file: String,
}

/// A copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFile {
    /// Its path, below `modules/`.
    pub file: String,
    /// Its length in bytes.
    pub len: u64,
    /// CRC-32C of its bytes.
    pub crc: u32,
}

/// Copies files into a recording. Nothing counts before [`Packer::finish`].
pub struct Packer {
    dir: PathBuf,
    header: FileHeader,
    packed: Packed,
}

/// Returns the folder of a recording's copies.
#[must_use]
pub fn dir_of(recording: &Recording) -> PathBuf {
    recording.dir().join(MODULES_DIR)
}

/// Reads the index of a recording's copies; empty if it was never packed.
///
/// # Errors
/// The index is damaged, missing although copies exist, belongs to another recording, or cannot be read.
pub fn read(recording: &Recording) -> Result<Packed> {
    let dir = dir_of(recording);
    let path = dir.join(MODULES_INDEX_FILE);
    if !path.try_exists().map_err(Error::io("read", &path))? {
        let was_packed = recording.dir().join(PACKED_FILE).exists();
        if was_packed || fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
            let what =
                "copies were made, and there is no such file: \"hindsight pack\" makes both anew";
            return Err(Error::corrupt(&path, 0, what));
        }
        return Ok(Packed::default());
    }
    let (header, packed): (FileHeader, Packed) = document::read(&path)?;
    recording
        .file_header(FileKind::Modules)
        .expect(&header, &path)?;
    let files = packed.files.iter().map(|file| &file.file);
    let modules = packed.modules.iter().map(|module| &module.file);
    let sources = packed.sources.iter().map(|source| &source.file);
    let mut names = files.chain(modules).chain(sources);
    if let Some(name) = names.find(|name| !is_inside(name)) {
        let what = format!("the name {name:?} leads out of the folder");
        return Err(Error::corrupt(&path, 0, what));
    }
    Ok(packed)
}

/// Compares every copy with its length and checksum. Passes each file and its fault to `seen`.
///
/// # Errors
/// Those of [`read`].
pub fn check(
    recording: &Recording,
    mut seen: impl FnMut(&Path, u64, Option<String>),
) -> Result<()> {
    let dir = dir_of(recording);
    let index = dir.join(MODULES_INDEX_FILE);
    let packed = read(recording)?;
    if let Ok(found) = index.metadata() {
        seen(&index, found.len(), None);
        let marker = recording.dir().join(PACKED_FILE);
        let wrong = match marker.metadata() {
            Ok(found) if found.len() == 0 => None,
            Ok(found) => Some(format!("it has {} bytes, and is always empty", found.len())),
            Err(_) => Some(
                "copies were made, and there is no such file: \"hindsight pack\" makes it anew"
                    .to_owned(),
            ),
        };
        seen(&marker, 0, wrong);
    }
    for file in &packed.files {
        let path = dir.join(&file.file);
        let (len, wrong) = match sum_of(&path) {
            Ok((len, crc)) if (len, crc) == (file.len, file.crc) => (len, None),
            Ok((len, _)) if len != file.len => {
                let what = format!("it has {len} bytes, and had {}", file.len);
                (len, Some(what))
            }
            Ok((len, _)) => (len, Some("its checksum differs".to_owned())),
            Err(error) => (0, Some(error.to_string())),
        };
        seen(&path, len, wrong);
    }
    Ok(())
}

impl Packer {
    /// Starts from the existing copies.
    ///
    /// # Errors
    /// [`Error::NotAdded`] for a recording that is read-only; those of [`read`] and [`document::write`]; the folder
    /// cannot be made.
    pub fn begin(recording: &Recording) -> Result<Self> {
        let dir = dir_of(recording);
        if Recording::open(recording.dir())?.state() == RecordingState::Live {
            return Err(Error::not_added(
                "it is still being recorded",
                Some("pack it when that is done"),
            ));
        }
        must_be_writable(recording.dir(), &dir)?;
        make_dir(&dir)?;
        let header = recording.file_header(FileKind::Modules);
        let index = dir.join(MODULES_INDEX_FILE);
        // First of all, so that copies without an index are known to have lost it.
        if !index.try_exists().map_err(Error::io("read", &index))? {
            document::write(&index, header, &Packed::default())?;
        }
        mark(recording)?;
        let packed = read(recording)?;
        Ok(Self {
            dir,
            header,
            packed,
        })
    }

    /// Returns the copies so far.
    #[must_use]
    pub fn packed(&self) -> &Packed {
        &self.packed
    }

    /// Returns the total length of the copies so far, in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.packed.files.iter().map(|file| file.len).sum()
    }

    /// Returns the path of a copy.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Copies the file `from` to `name` below the folder, unless that copy exists already.
    ///
    /// # Errors
    /// One of them cannot be read or written, or the total would exceed [`MAX_LEN`] bytes; the copy does not count
    /// then.
    ///
    /// # Panics
    /// When `name` leads out of the folder.
    pub fn copy(&mut self, from: &Path, name: &str) -> Result<()> {
        assert!(is_inside(name), "copies lie in the folder");
        if self.packed.files.iter().any(|file| file.file == name) {
            return Ok(());
        }
        let len = from.metadata().map_err(Error::io("read", from))?.len();
        if self.len_bytes().saturating_add(len) > MAX_LEN {
            let why = format!(
                "{} would make the copies longer than {MAX_LEN} bytes",
                from.display()
            );
            return Err(Error::not_added(why, None));
        }
        let to = self.dir.join(name);
        if let Some(folder) = to.parent() {
            let below = folder.strip_prefix(&self.dir).unwrap_or(Path::new(""));
            let mut made = self.dir.clone();
            for part in below {
                made.push(part);
                make_dir(&made)?;
            }
        }
        let (len, crc) = copy_file(from, &to)?;
        self.packed.files.push(PackedFile {
            file: name.to_owned(),
            len,
            crc,
        });
        Ok(())
    }

    /// Records that `module` has a copy.
    pub fn add_module(&mut self, module: PackedModule) {
        self.packed.modules.push(module);
    }

    /// Records that a source file has a copy.
    pub fn add_source(&mut self, source: PackedSource) {
        self.packed.sources.push(source);
    }

    /// Writes the index: from now on the copies count.
    ///
    /// # Errors
    /// Those of [`document::write`]; the earlier copies still count then.
    pub fn finish(self) -> Result<Packed> {
        let index = self.dir.join(MODULES_INDEX_FILE);
        document::write(&index, self.header, &self.packed)?;
        Ok(self.packed)
    }
}

/// Whether a name stays below the folder it is in.
fn is_inside(name: &str) -> bool {
    !name.is_empty()
        && Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
}

/// Marks that copies exist. Without this file a reader only misses that the folder is lost.
fn mark(recording: &Recording) -> Result<()> {
    let path = recording.dir().join(PACKED_FILE);
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(FILE_MODE);
    let file = options.open(&path).map_err(Error::io("create", &path))?;
    file.sync_all().map_err(Error::io("sync", &path))
}

fn make_dir(dir: &Path) -> Result<()> {
    match storage::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("create", dir)(error))
        }
        _ => Ok(()),
    }
}

/// Copies a file; it gets its name only when it is whole and synced. Returns length and checksum.
fn copy_file(from: &Path, to: &Path) -> Result<(u64, u32)> {
    let mut draft = to.as_os_str().to_os_string();
    draft.push(".draft");
    let draft = PathBuf::from(draft);
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE);
    let mut out = options.open(&draft).map_err(Error::io("create", &draft))?;
    let copied = each_chunk(from, |bytes| {
        out.write_all(bytes).map_err(Error::io("write", &draft))
    });
    let synced = copied.and_then(|sums| {
        out.sync_all().map_err(Error::io("sync", &draft))?;
        fs::rename(&draft, to).map_err(Error::io("rename to", to))?;
        Ok(sums)
    });
    if synced.is_err() {
        // The caller reports the error; half a copy would only take space.
        let _ = fs::remove_file(&draft);
    }
    synced
}

fn sum_of(path: &Path) -> Result<(u64, u32)> {
    each_chunk(path, |_| Ok(()))
}

/// Passes a file's bytes to `take`. Returns their number and checksum.
fn each_chunk(path: &Path, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<(u64, u32)> {
    let mut file = File::open(path).map_err(Error::io("open", path))?;
    let mut buffer = vec![0; CHUNK];
    let (mut len, mut crc) = (0, 0);
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => return Ok((len, crc)),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("read", path)(error)),
        };
        crc = crc32c::crc32c_append(crc, &buffer[..count]);
        len += count as u64;
        take(&buffer[..count])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::debugged;

    fn made() -> (tempfile::TempDir, Recording) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.hindsight");
        let recording = debugged().record(&path).unwrap();
        fs::write(dir.path().join("lib"), b"a library").unwrap();
        (dir, recording)
    }

    fn wrong(recording: &Recording) -> Vec<String> {
        let mut found = Vec::new();
        check(recording, |_, _, wrong| found.extend(wrong)).unwrap();
        found
    }

    #[test]
    fn copies_count_once_the_index_is_written() {
        let (dir, recording) = made();
        let mut packer = Packer::begin(&recording).unwrap();
        packer.copy(&dir.path().join("lib"), "000000/lib").unwrap();
        assert_eq!(read(&recording).unwrap(), Packed::default());
        packer.finish().unwrap();
        let packed = read(&recording).unwrap();
        assert_eq!(packed.files.len(), 1);
        assert_eq!(packed.files[0].len, 9);
        assert_eq!(wrong(&recording), [""; 0]);
        // A second run adds to the first.
        let mut packer = Packer::begin(&recording).unwrap();
        packer.copy(&dir.path().join("lib"), "000001/lib").unwrap();
        assert_eq!(packer.finish().unwrap().files.len(), 2);
    }

    #[test]
    fn changed_cut_and_missing_copies_are_found() {
        let (dir, recording) = made();
        let mut packer = Packer::begin(&recording).unwrap();
        for name in ["a", "b", "c"] {
            packer.copy(&dir.path().join("lib"), name).unwrap();
        }
        packer.finish().unwrap();
        let at = dir_of(&recording);
        fs::write(at.join("a"), b"a librarY").unwrap();
        fs::write(at.join("b"), b"a lib").unwrap();
        fs::remove_file(at.join("c")).unwrap();
        let found = wrong(&recording);
        assert_eq!(found[0], "its checksum differs");
        assert_eq!(found[1], "it has 5 bytes, and had 9");
        assert!(found[2].contains("No such file"), "{}", found[2]);
    }

    #[test]
    fn copies_without_their_index_are_damage_until_they_are_packed_again() {
        let (dir, recording) = made();
        let mut packer = Packer::begin(&recording).unwrap();
        packer.copy(&dir.path().join("lib"), "a").unwrap();
        packer.finish().unwrap();
        fs::remove_file(dir_of(&recording).join(MODULES_INDEX_FILE)).unwrap();
        let refused = read(&recording).unwrap_err().to_string();
        assert!(refused.contains("hindsight pack"), "{refused}");
        Packer::begin(&recording).unwrap().finish().unwrap();
        assert_eq!(wrong(&recording), [""; 0]);
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        for (name, expected) in [("a/b", true), ("../a", false), ("/a", false), ("", false)] {
            assert_eq!(is_inside(name), expected, "{name}");
        }
    }
}

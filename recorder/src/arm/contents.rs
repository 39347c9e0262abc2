//! Opens the file that a module is mapped from. By now another one may be at its path: a package was upgraded, the program was built
//! again, or the process sees other mounts than we do. What is read of a wrong file leads into the middle of functions.

use std::{
    fs::{self, File, Metadata},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use debuginfo::{Module, OpenOptions, shared_module};

use crate::{process::maps::MappedFile, stop::memory::read_up_to};

/// What users read of a module whose file is not to be had any more, after its path.
const REPLACED: &str = "another file is at that path since the program loaded it";

const PAGE: u64 = 4096;
/// Sizes in bytes of the header of an ELF file and of an entry of its program headers, and the kinds of those (elf(5)).
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 56;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// Bytes of one segment of notes, at most: files may say anything.
const MOST_NOTES: u64 = 1 << 16;
/// Length of the head of a note with its author, which is `GNU` for a build id.
const NOTE_HEAD: usize = 16;
const NT_GNU_BUILD_ID: u32 = 3;

/// Opens the file of a module of `pid`, whose executable is `exe`.
///
/// # Errors
/// Why it cannot be opened, in words for users.
pub(super) fn open(pid: i32, file: &MappedFile, exe: &Path) -> Result<Arc<Module>, String> {
    // The process may run in another mount namespace.
    let inside: PathBuf = format!("/proc/{pid}/root{}", file.path.display()).into();
    let (mut is_replaced, mut why) = (false, String::new());
    for path in [&file.path, &inside] {
        let found = fs::metadata(path);
        if found.is_ok_and(|found| !is_mapped(pid, file, path, &found)) {
            is_replaced = true;
            continue;
        }
        match Module::open(path) {
            Ok(module) => return Ok(shared_module(module)),
            Err(error) => why = error.to_string(),
        }
    }
    match linked(pid, file, exe) {
        Some(module) => Ok(Arc::new(module)),
        None if is_replaced => Err(REPLACED.to_owned()),
        None => Err(why),
    }
}

/// Opens a file that has no path any more, by the kernel's links. Only a privileged user may follow those of mappings. It is not shared
/// with others: they know files by their paths.
fn linked(pid: i32, file: &MappedFile, exe: &Path) -> Option<Module> {
    let of_exe = (file.path == exe).then(|| format!("/proc/{pid}/exe"));
    let (start, end) = (file.first.start, file.first.end);
    let of_mapping = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
    let mut links = of_exe.into_iter().chain([of_mapping]).map(PathBuf::from);
    links.find_map(|link| {
        let found = fs::metadata(&link).ok()?;
        let options = is_mapped(pid, file, &link, &found).then(OpenOptions::new)?;
        options.open_content(&file.path, &link).ok()
    })
}

/// Returns whether the file at `path` is the one that is mapped.
fn is_mapped(pid: i32, file: &MappedFile, path: &Path, found: &Metadata) -> bool {
    let (major, minor) = (libc::major(found.dev()), libc::minor(found.dev()));
    let has_device = file.identity.0 == format!("{major:02x}:{minor:02x}");
    if has_device && file.identity.1 == found.ino() {
        return true;
    }
    if !found.is_file() {
        return false;
    }
    // File systems of several layers or volumes show other devices, and a copy of the file does as well.
    let memory = File::open(format!("/proc/{pid}/mem"));
    let (Ok(memory), Ok(at_path)) = (memory, File::open(path)) else {
        return false;
    };
    let of_file = Head::read(|at, len| read_up_to(&at_path, at, len), Lies::InFile);
    let Some(of_file) = of_file else {
        // Who opens it learns that it is no module.
        return true;
    };
    let in_memory = |at: u64, len| read_up_to(&memory, file.range.start.wrapping_add(at), len);
    Head::read(in_memory, Lies::InMemory)
        .is_some_and(|in_memory| of_file.is_of_same_file(&in_memory, has_device))
}

/// Where a segment lies, from the beginning.
#[derive(Clone, Copy)]
enum Lies {
    InFile,
    InMemory,
}

/// What tells files apart: the headers, and the notes, one of which may be the build id.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    header: Vec<u8>,
    segments: Vec<u8>,
    notes: Vec<u8>,
}

impl Head {
    /// Reads it with `read`, which takes the distance from the beginning and a length. `None` if it is not that of an ELF file.
    fn read(read: impl Fn(u64, usize) -> Vec<u8>, lies: Lies) -> Option<Self> {
        let header = read(0, HEADER_BYTES);
        if !header.starts_with(b"\x7fELF") {
            return None;
        }
        let count = u16::from_le_bytes(*header.get(56..)?.first_chunk()?);
        let segments = read(word(&header, 32)?, usize::from(count) * ENTRY_BYTES);
        let (entries, _) = segments.as_chunks::<ENTRY_BYTES>();
        let of_kind = |kind: u32| {
            let entries = entries.iter();
            entries.filter(move |entry| entry.starts_with(&kind.to_le_bytes()))
        };
        let loaded = of_kind(PT_LOAD).filter_map(|entry| word(entry, 16));
        let first = loaded.min().unwrap_or(0) & !(PAGE - 1);
        let mut notes = Vec::new();
        for entry in of_kind(PT_NOTE) {
            let (offset, address) = (word(entry, 8)?, word(entry, 16)?);
            let at = match lies {
                Lies::InFile => offset,
                Lies::InMemory => address.wrapping_sub(first),
            };
            notes.extend(read(at, word(entry, 32)?.min(MOST_NOTES) as usize));
        }
        Some(Self {
            header,
            segments,
            notes,
        })
    }

    /// A build id decides. Without one, different inodes of one device are different files.
    fn is_of_same_file(&self, other: &Self, has_device: bool) -> bool {
        match self.has_build_id() {
            // What was stripped has another header.
            true => self.segments == other.segments && self.notes == other.notes,
            false => !has_device && self == other,
        }
    }

    fn has_build_id(&self) -> bool {
        let author = 4_u32.to_le_bytes();
        let kind = NT_GNU_BUILD_ID.to_le_bytes();
        let mut heads = self.notes.windows(NOTE_HEAD);
        heads.any(|head| {
            head.starts_with(&author) && head[8..12] == kind && head.ends_with(b"GNU\0")
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Maps;

    /// This test's own executable, as it is mapped.
    fn own() -> (MappedFile, PathBuf) {
        let exe = std::env::current_exe().unwrap();
        let files = Maps::read(std::process::id() as i32).unwrap().files();
        let file = files.into_iter().find(|file| file.path == exe);
        (file.unwrap(), exe)
    }

    #[test]
    fn the_mapped_file_is_known_by_its_device_or_by_its_content() {
        let pid = std::process::id() as i32;
        let (file, exe) = own();
        let found = fs::metadata(&exe).unwrap();
        assert!(is_mapped(pid, &file, &exe, &found));
        let elsewhere = MappedFile {
            identity: ("ff:ff".to_owned(), 1),
            ..file.clone()
        };
        assert!(is_mapped(pid, &elsewhere, &exe, &found));
        let shell = fs::canonicalize("/bin/sh").unwrap();
        assert!(!is_mapped(
            pid,
            &file,
            &shell,
            &fs::metadata(&shell).unwrap()
        ));
    }

    #[test]
    fn a_file_that_was_replaced_is_not_taken_for_the_mapped_one() {
        let pid = std::process::id() as i32;
        let (file, exe) = own();
        let replaced = MappedFile {
            path: fs::canonicalize("/bin/sh").unwrap(),
            first: 0..0x1000,
            ..file
        };
        assert_eq!(open(pid, &replaced, &exe).unwrap_err(), REPLACED);
        // The executable of a process is to be had whatever became of its path.
        let as_executable = open(pid, &replaced, &replaced.path).unwrap();
        assert_eq!(as_executable.path(), replaced.path);
        assert_eq!(as_executable.entry(), Module::open(&exe).unwrap().entry());
    }
}

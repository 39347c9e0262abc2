//! Finds separate files with a module's debug information: by build id, also in the cache of debuginfod's clients, by
//! name and checksum, and dwz's supplementary file. It never contacts a server.

use std::path::{Path, PathBuf};

use crate::elf::Elf;
use crate::error::Warning;
use crate::map::Bytes;

/// Where to look for separate debug files.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    pub debug_dirs: Vec<PathBuf>,
    /// The cache of debuginfod's clients: a folder for each build id.
    pub cache: Option<PathBuf>,
}

/// Returns the folder in which debuginfod's clients keep what they have fetched: `$DEBUGINFOD_CACHE_PATH`, or
/// `debuginfod_client` in the user's cache (debuginfod_find_debuginfo(3)). `None` if the user has no cache.
#[must_use]
pub fn debuginfod_cache() -> Option<PathBuf> {
    let folder = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value))
    };
    folder("DEBUGINFOD_CACHE_PATH").or_else(|| {
        let usual = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
        Some(usual.join("debuginfod_client"))
    })
}

/// Returns the build id of an ELF file of any kind in hexadecimal, if it is one and has one.
#[must_use]
pub fn build_id_of(path: &Path) -> Option<String> {
    let bytes = Bytes::map(path).ok()?;
    let elf = Elf::parse_any(path, bytes).ok()?;
    elf.build_id().map(hex)
}

impl Search {
    /// Finds the file with the debug information that was stripped from `elf`.
    pub(crate) fn debug_file(&self, elf: &Elf, warnings: &mut Vec<Warning>) -> Option<Elf> {
        let by_id = elf.build_id().and_then(|id| self.by_build_id(id, warnings));
        by_id.or_else(|| self.by_link(elf, warnings))
    }

    fn by_build_id(&self, id: &[u8], warnings: &mut Vec<Warning>) -> Option<Elf> {
        let hex = hex(id);
        let (head, tail) = hex.split_at_checked(2)?;
        let name = format!(".build-id/{head}/{tail}.debug");
        let dirs = self.debug_dirs.iter().map(|dir| dir.join(&name));
        // An empty file says that no server had it.
        let is_there = |path: &PathBuf| path.metadata().is_ok_and(|file| file.len() > 0);
        let cached = self
            .cache
            .as_ref()
            .map(|dir| dir.join(&hex).join("debuginfo"));
        let mut paths = dirs.chain(cached.filter(is_there));
        paths.find_map(|path| open(&path, |elf| same_id(elf, id), warnings))
    }

    fn by_link(&self, elf: &Elf, warnings: &mut Vec<Warning>) -> Option<Elf> {
        let bytes = elf.contents(".gnu_debuglink")?.ok()?;
        let (name, crc) = parse_link(&bytes)?;
        let real = std::fs::canonicalize(elf.path()).ok()?;
        let dir = real.parent()?;
        let global = self.debug_dirs.iter().map(|root| {
            let below = dir.strip_prefix("/").unwrap_or(dir);
            root.join(below).join(&name)
        });
        let near = [dir.join(&name), dir.join(".debug").join(&name)];
        let mut candidates = near.into_iter().chain(global).filter(|p| *p != real);
        let check = |found: &Elf| {
            if let (Some(ours), Some(theirs)) = (elf.build_id(), found.build_id())
                && ours != theirs
            {
                return Err("its build id differs".to_owned());
            }
            match crc32fast::hash(found.bytes()) {
                same if same == crc => Ok(()),
                other => Err(format!("its checksum is {other:08x}, not {crc:08x}")),
            }
        };
        candidates.find_map(|path| open(&path, check, warnings))
    }

    /// Finds the supplementary file named by `.gnu_debugaltlink` of `elf`.
    pub(crate) fn supplement(&self, elf: &Elf, warnings: &mut Vec<Warning>) -> Option<Elf> {
        let bytes = elf.contents(".gnu_debugaltlink")?.ok()?;
        let end = bytes.iter().position(|b| *b == 0)?;
        let (name, id) = (&bytes[..end], &bytes[end + 1..]);
        let name = String::from_utf8_lossy(name).into_owned();
        let path = match std::fs::canonicalize(elf.path()) {
            Ok(real) => real.parent()?.join(&name),
            Err(_) => PathBuf::from(&name),
        };
        let found = open(&path, |elf| same_id(elf, id), warnings)
            .or_else(|| self.by_build_id(id, warnings));
        if found.is_none() {
            warnings.push(Warning::SupplementMissing { name });
        }
        found
    }
}

/// Returns the name (its last component) and the checksum in `.gnu_debuglink`.
fn parse_link(bytes: &[u8]) -> Option<(PathBuf, u32)> {
    let end = bytes.iter().position(|b| *b == 0)?;
    let crc = bytes.get((end + 4) & !3..)?.first_chunk::<4>()?;
    let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let name = Path::new(&name).file_name()?;
    Some((PathBuf::from(name), u32::from_le_bytes(*crc)))
}

fn same_id(elf: &Elf, id: &[u8]) -> Result<(), String> {
    match elf.build_id() {
        Some(found) if found == id => Ok(()),
        Some(found) => Err(format!("its build id is {}, not {}", hex(found), hex(id))),
        None => Err("it has no build id".to_owned()),
    }
}

/// Opens `path` if it exists. Reports a file that exists but does not pass `check`.
fn open(
    path: &Path,
    check: impl Fn(&Elf) -> Result<(), String>,
    warnings: &mut Vec<Warning>,
) -> Option<Elf> {
    let bytes = Bytes::map(path).ok()?;
    let parsed = Elf::parse_any(path, bytes).map_err(|e| e.to_string());
    match parsed.and_then(|elf| check(&elf).map(|()| elf)) {
        Ok(elf) => {
            tracing::debug!(path = %path.display(), "debug file found");
            Some(elf)
        }
        Err(why) => {
            warnings.push(Warning::DebugFileRefused {
                path: path.to_owned(),
                why,
            });
            None
        }
    }
}

/// Returns `bytes` as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

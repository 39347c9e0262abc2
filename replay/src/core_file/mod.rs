//! A core file as a recording: one stopped moment, whose registers and memory the file holds.
//!
//! The recording itself, which `import.rs` makes in the user's cache, has the threads, their registers and the modules.
//! Memory stays in the core file, to which the recording refers. Pages that the kernel left out, because files have
//! them, come from these files if their build ids match. Memory that neither has is unknown.

mod import;

use std::fs;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use debuginfo::{AddressSpace, CoreFile, CoreGap, CoreThread};
use store::Recording;

use crate::error::{Error, Result};
use crate::memory::Run;
use crate::modules::Modules;
use crate::state::{Reason, Seen};
use crate::timeline::Timeline;

pub use import::{CoreOptions, import, locate};

/// The file of a recording that names its core file.
const LINK: &str = store::format::CORE_LINK_FILE;
/// The option that names the program's file.
const PROGRAM_OPTION: &str = "--program";
/// The kind of events that tell what is missing.
const WARNING: &str = "warning";
/// The register rsp in the kernel's order.
const RSP: usize = 19;

/// The identity of a core file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoreLink {
    pub path: PathBuf,
    pub len: u64,
    /// When it was written, in nanoseconds since 1970.
    pub modified_ns: i128,
}

/// The core file of a recording.
pub(crate) struct Core {
    file: CoreFile,
    /// Private memory was written, so the rest is as in the files.
    has_private_memory: bool,
}

impl CoreLink {
    /// Describes the core file at `path`.
    pub fn of(path: &Path) -> std::io::Result<CoreLink> {
        let path = fs::canonicalize(path)?;
        let found = fs::metadata(&path)?;
        let modified = found.modified()?;
        let modified_ns = match modified.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => since.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        };
        Ok(CoreLink {
            path,
            len: found.len(),
            modified_ns,
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {}\n", self.len, self.modified_ns).into_bytes();
        bytes.extend(self.path.as_os_str().as_bytes());
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<CoreLink> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let (len, modified) = head.split_once(' ')?;
        let path = std::ffi::OsString::from_vec(bytes[end + 1..].to_vec());
        Some(CoreLink {
            path: path.into(),
            len: len.parse().ok()?,
            modified_ns: modified.parse().ok()?,
        })
    }

    /// Reads the link of the recording in a folder; `None` if it is of no core file.
    fn read(dir: &Path) -> Result<Option<CoreLink>> {
        let path = dir.join(LINK);
        match fs::read(&path) {
            Ok(bytes) => match CoreLink::parse(&bytes) {
                Some(link) => Ok(Some(link)),
                None => Err(Error::NoCore {
                    path,
                    why: "it does not name a core file".to_owned(),
                }),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::NoCore {
                path,
                why: error.to_string(),
            }),
        }
    }
}

/// Returns how many bytes the core file of a recording lacks at its end because it was cut; `None` if the recording is of no
/// core file.
///
/// # Errors
/// The core file is gone, or has been replaced.
pub fn cut_bytes(recording: &Recording) -> Result<Option<u64>> {
    let core = Core::of(recording)?;
    Ok(core.map(|core| core.file.missing_bytes()))
}

/// Returns what a reader of a core file must know: what the file lacks, and which modules cannot be used; empty for any other
/// recording.
///
/// # Errors
/// The recording cannot be read.
pub fn remarks(timeline: &Timeline) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if !timeline.is_core() {
        return Ok(found);
    }
    // A core file has a few hundred events.
    for seq in 0..timeline.events() {
        let event = timeline.other(seq)?.filter(|event| event.kind == WARNING);
        found.extend(event.and_then(|event| event.text));
    }
    let absent = timeline.modules().all_absent().into_iter();
    found.extend(absent.map(|absent| absent.why));
    let usable = timeline.modules().all_usable();
    let is_named = usable.iter().any(|module| !module.is_system);
    let is_told = found.iter().any(|remark| remark.contains(PROGRAM_OPTION));
    if !is_named && !is_told {
        found.push(format!(
            "the program's own file is missing: {PROGRAM_OPTION} FILE names it"
        ));
    }
    Ok(found)
}

impl Core {
    /// Opens the core file of a recording; `None` if it is of none.
    ///
    /// # Errors [`Error::NoCore`]: it is gone, or has been replaced.
    pub fn of(recording: &Recording) -> Result<Option<Core>> {
        let Some(link) = CoreLink::read(recording.dir())? else {
            return Ok(None);
        };
        let gone = |why: String| Error::NoCore {
            path: link.path.clone(),
            why,
        };
        let now = CoreLink::of(&link.path).map_err(|error| gone(error.to_string()))?;
        if now != link {
            return Err(gone("it was changed since it was opened".to_owned()));
        }
        let file = CoreFile::open(&link.path).map_err(|error| gone(error.to_string()))?;
        Ok(Some(Core::new(file)))
    }

    fn new(file: CoreFile) -> Core {
        // Stacks are private. If the settings of the kernel left out what the program had changed, they lack too.
        let is_there = |sp: u64| file.read(sp, &mut [0; 8]).is_some();
        let has_private_memory = file
            .threads()
            .iter()
            .any(|thread| is_there(thread.registers[RSP]));
        Core {
            file,
            has_private_memory,
        }
    }

    fn thread(&self, tid: u32) -> Option<&CoreThread> {
        self.file.threads().iter().find(|thread| thread.tid == tid)
    }

    /// Returns whether the file has the vector registers of a thread.
    pub fn has_vectors(&self, tid: u32) -> bool {
        self.thread(tid)
            .is_some_and(|thread| thread.vectors().is_some())
    }

    /// Returns the x87, SSE and later registers of a thread in XSAVE's layout; `None` if the file has none.
    pub fn extended(&self, tid: u32) -> Option<&[u8]> {
        let found = self.thread(tid)?.extended.as_slice();
        (!found.is_empty()).then_some(found)
    }

    /// Returns memory in consecutive runs. All that is known is known at `seq`: there is only one moment.
    pub fn memory(&self, modules: &Modules, seq: u64, range: Range<u64>) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut space = None;
        for piece in self.file.pieces(range) {
            let gap = match piece.bytes {
                Ok(bytes) => {
                    runs.push(known(piece.range.start, bytes, seq));
                    continue;
                }
                Err(gap) => gap,
            };
            if gap == CoreGap::Cut {
                runs.push(unknown(piece.range, Reason::CoreCut));
                continue;
            }
            let space = space.get_or_insert_with(|| modules.space(seq));
            self.read_files(modules, space, seq, piece.range, &mut runs);
        }
        runs
    }

    /// Adds runs for memory that the core file left out.
    fn read_files(
        &self,
        modules: &Modules,
        space: &Arc<AddressSpace>,
        seq: u64,
        range: Range<u64>,
        runs: &mut Vec<Run>,
    ) {
        let mut at = range.start;
        while at < range.end {
            let (until, bytes) = self.read_file(space, at, range.end);
            match bytes {
                Some(bytes) => runs.push(known(at, bytes, seq)),
                None => {
                    let reason = match modules.why_absent(at, seq) {
                        Some(why) => Reason::NoModule(why),
                        None => Reason::NotInCore,
                    };
                    runs.push(unknown(at..until, reason));
                }
            }
            at = until;
        }
    }

    /// The longest run from `at` on that a module's file has, or that it lacks.
    fn read_file<'s>(&self, space: &'s AddressSpace, at: u64, end: u64) -> (u64, Option<&'s [u8]>) {
        let Some(mapped) = space.at(at) else {
            let starts = space.modules().iter().map(|mapped| mapped.range.start);
            let next = starts.filter(|start| *start > at).min();
            return (end.min(next.unwrap_or(end)), None);
        };
        let end = end.min(mapped.range.end);
        let svma = mapped.svma(at);
        let segments = mapped.module.load_segments();
        let holds = |segment: &&debuginfo::Segment| {
            (segment.vaddr.0..segment.vaddr.0.saturating_add(segment.filesz)).contains(&svma.0)
        };
        let Some(segment) = segments.iter().find(holds) else {
            let starts = segments.iter().map(|segment| mapped.address(segment.vaddr));
            let next = starts.filter(|start| *start > at).min();
            return (end.min(next.unwrap_or(end)), None);
        };
        let last = mapped.address(debuginfo::Svma(segment.vaddr.0 + segment.filesz));
        let until = end.min(last);
        let is_as_in_file = !segment.flags.write || self.has_private_memory;
        let bytes = mapped.module.code(svma, until - at);
        (until, bytes.filter(|_| is_as_in_file))
    }
}

fn known(address: u64, bytes: &[u8], seq: u64) -> Run {
    Run {
        address,
        len: bytes.len() as u64,
        bytes: Seen::Known {
            value: bytes.to_vec(),
            seq,
        },
    }
}

fn unknown(range: Range<u64>, reason: Reason) -> Run {
    Run {
        address: range.start,
        len: range.end - range.start,
        bytes: Seen::Unknown(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_as_it_was_written() {
        let link = CoreLink {
            path: "/tmp/a core\n.1".into(),
            len: 12,
            modified_ns: -3,
        };
        assert_eq!(CoreLink::parse(&link.bytes()), Some(link));
        for wrong in [&b""[..], b"1 2", b"1\n/x", b"a b\n/x"] {
            assert_eq!(CoreLink::parse(wrong), None);
        }
    }
}

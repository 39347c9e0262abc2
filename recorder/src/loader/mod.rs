//! Loads the runtime without Frida. Maps the self-contained library by system calls that a thread of the program
//! executes for us, and starts it.
//!
//! The program's own memory is only read, and its threads resume unchanged. Paths, and a stack for the call, lie in
//! memory that is mapped for this and unmapped again. All other new mappings stay, as they do when Frida loads the
//! runtime, unless loading fails.

mod inside;
mod keys;
mod lookup;

use std::{ops::Range, path::Path, time::Duration};

use agent::{
    host::{Replacement, Started},
    runtime::{self, EXPORTS_VERSION},
    shared::{self, Shared},
};
use debuginfo::{Diagnostic, Module};

use self::inside::{Inside, READ, READ_EXECUTE, READ_WRITE};
pub(crate) use self::keys::ThreadKeys;
use self::lookup::Lookup;
use crate::{
    Error, Result,
    process::{Maps, Way},
    stop::{StopError, while_stopped},
};

const PATIENCE: Duration = Duration::from_secs(5);
const PAGE: u64 = 4096;
/// Memory for paths and the call's stack.
const SCRATCH_BYTES: u64 = 64 << 10;
/// A stack for each ring, and a spare one.
const GO_STACKS_BYTES: u64 = (shared::RINGS as u64 + 1) * shared::GO_STACK_BYTES;
/// The words of `struct hs_exports`; a replacement has three words.
const EXPORTS_WORDS: usize = 11;
const REPLACEMENT_BYTES: usize = 24;
/// Upper bound for the memory after the library's file, which holds the data of every ring's thread.
const MOST_BEHIND_FILE: u64 = 1 << 20;
/// Smaller results are the numbers of failed checks.
const FIRST_ADDRESS: u64 = 4096;

/// What to load, and into which program.
pub(crate) struct Loader<'a> {
    pub pid: i32,
    pub way: Way,
    pub library: &'a Path,
    pub shared: &'a Shared,
    /// Returns cannot be hooked, although it is not a Go program.
    pub entries_only: bool,
    /// The C library's functions for thread-specific data. Without them, a thread's data takes longer to find.
    pub keys: Option<ThreadKeys>,
}

/// Why loading failed.
enum Failure {
    Stop(StopError),
    Runtime(Diagnostic),
}

impl From<StopError> for Failure {
    fn from(error: StopError) -> Self {
        Self::Stop(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Stop(error) => Self::Stop(error),
            Failure::Runtime(why) => agent::Error::Runtime {
                detail: why.message,
                hint: why.hint,
            }
            .into(),
        }
    }
}

impl Loader<'_> {
    /// Maps the runtime and starts it.
    ///
    /// # Errors
    /// If the program cannot be stopped, or lacks what the runtime needs. It then continues unchanged.
    pub fn load(&self) -> Result<Started> {
        let library = Module::open(self.library)?;
        let (pid, path) = (self.pid, self.shared.path());
        let started = while_stopped(pid, PATIENCE, |process| {
            let mut inside = Inside::of(process)?;
            let loaded = self.load_inside(&mut inside, &library, &path);
            if loaded.is_err() {
                // Of a program that has ended, nothing is left.
                let _ = inside.undo();
            }
            loaded
        })?;
        Ok(started?)
    }

    /// Reserves readable and executable memory at `address`. Returns false if something else is mapped there.
    ///
    /// # Errors
    /// If the program cannot be stopped.
    pub fn reserve(&self, address: u64, bytes: u64) -> Result<bool> {
        let reserved = while_stopped(self.pid, PATIENCE, |process| {
            let mut inside = Inside::of(process)?;
            Ok::<_, Failure>(inside.map_at(address, bytes, READ_EXECUTE)? == Some(address))
        })?;
        Ok(reserved?)
    }

    fn load_inside(
        &self,
        inside: &mut Inside<'_>,
        library: &Module,
        shared_path: &str,
    ) -> Result<Started, Failure> {
        inside.forget(&self.earlier_runtimes())?;
        let scratch = inside.map(SCRATCH_BYTES, READ_WRITE, "memory for the loader")?;
        let fd = inside.open(scratch, shared_path, libc::O_RDWR | libc::O_CLOEXEC)?;
        let shared = inside.map_shared(fd, shared::TOTAL_BYTES)?;
        inside.close(fd)?;
        let missing = match self.way {
            Way::LoaderForGo => 0,
            _ => inside.map_shadows()?,
        };
        let stacks = match self.way {
            Way::LoaderForGo => inside.map(GO_STACKS_BYTES, READ_WRITE, "stacks")?,
            _ => 0,
        };
        let (base, size) = self.map_library(inside, library, scratch)?;
        let begin = library
            .symbols()
            .iter()
            .find(|symbol| symbol.linkage == "hs_load")
            .map(|symbol| base + symbol.svma.0)
            .ok_or_else(|| Failure::Runtime("the library has no hs_load".into()))?;
        let keys = self.keys.unwrap_or_default();
        // struct hs_start
        let start = [
            shared,
            keys.set,
            0,
            base,
            size,
            missing,
            self.entries_only.into(),
            stacks,
            keys.create,
            keys.delete,
        ];
        inside.write_words(scratch, &start)?;
        let ran = inside.run(begin, scratch, scratch + SCRATCH_BYTES);
        if ran.is_err() {
            // The C library may already know a function of the runtime: as the destructor of a key that has a value.
            inside.keep(base);
        }
        let exports = ran?;
        if exports < FIRST_ADDRESS {
            let why = format!("the runtime's check {exports} failed");
            return Err(Failure::Runtime(why.into()));
        }
        inside.unmap(scratch, SCRATCH_BYTES)?;
        let (started, lookup) = self.started(inside, shared, exports)?;
        if lookup.slot != 0 {
            lookup.shorten(inside)?;
        }
        Ok(started)
    }

    /// Returns the runtimes that earlier recordings have left in the process, including the memory after the file.
    fn earlier_runtimes(&self) -> Vec<Range<u64>> {
        let maps = Maps::read(self.pid).unwrap_or_default();
        maps.files()
            .into_iter()
            .filter(|file| runtime::is_library(&file.path, self.library))
            .map(|file| file.range.start..file.range.end + MOST_BEHIND_FILE)
            .collect()
    }

    /// Maps the library's file as a dynamic linker would. Returns its start and length.
    fn map_library(
        &self,
        inside: &mut Inside<'_>,
        library: &Module,
        scratch: u64,
    ) -> Result<(u64, u64), Failure> {
        let path = self.library.to_string_lossy();
        let fd = inside.open(scratch, &path, libc::O_RDONLY | libc::O_CLOEXEC)?;
        let segments = library.load_segments();
        let end = |vaddr: u64, len: u64| (vaddr + len).next_multiple_of(PAGE);
        let size = segments
            .iter()
            .map(|segment| end(segment.vaddr.0, segment.memsz))
            .max()
            .unwrap_or(0);
        let base = inside.map(size, 0, "the runtime")?;
        for segment in segments {
            let first = segment.vaddr.0 & !(PAGE - 1);
            let file_end = segment.vaddr.0 + segment.filesz;
            let access = match (segment.flags.write, segment.flags.execute) {
                (true, _) => READ_WRITE,
                (false, true) => READ_EXECUTE,
                (false, false) => READ,
            };
            let offset = segment.offset & !(PAGE - 1);
            inside.map_file(base + first, file_end - first, access, (fd, offset))?;
            let whole = file_end.next_multiple_of(PAGE);
            if segment.memsz > segment.filesz {
                let zeroes = vec![0; (whole - file_end) as usize];
                inside.write(base + file_end, &zeroes)?;
            }
            let behind = end(segment.vaddr.0, segment.memsz);
            if behind > whole {
                inside.map_zeroes(base + whole, behind - whole)?;
            }
        }
        inside.close(fd)?;
        Ok((base, size))
    }

    /// Reads the runtime's exports.
    fn started(
        &self,
        inside: &Inside<'_>,
        shared: u64,
        exports: u64,
    ) -> Result<(Started, Lookup), Failure> {
        let words = inside.words(exports, EXPORTS_WORDS)?;
        let [
            version,
            enter,
            enter_xmm,
            _,
            table,
            count,
            enter_go,
            enter_texts,
            slot,
            lookups,
            lookups_end,
        ] = words[..]
        else {
            return Err(Failure::Runtime("its exports are cut short".into()));
        };
        if version != EXPORTS_VERSION {
            return Err(Failure::Runtime("it is of another release".into()));
        }
        let rows = inside.words(table, count as usize * REPLACEMENT_BYTES / 8)?;
        let mut replacements = Vec::new();
        for row in rows.chunks_exact(REPLACEMENT_BYTES / 8) {
            replacements.push(Replacement {
                name: inside.text(row[0])?,
                by: row[1],
                original: row[2],
            });
        }
        let (enter, enter_xmm) = match self.way {
            Way::LoaderForGo => (enter_go, enter_go),
            _ => (enter, enter_xmm),
        };
        let started = Started {
            shared,
            enter,
            enter_xmm,
            enter_texts,
            replacements,
        };
        let lookup = Lookup {
            slot,
            table: lookups..lookups_end,
        };
        Ok((started, lookup))
    }
}

//! The modules of the recorded process at any moment, and the files that describe them.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use debuginfo::{AddressSpace, Mapped, Module, OpenOptions, Svma, shared_module};

use crate::error::Result;
use crate::event::Kind;
use crate::marks::Marks;
use crate::others::Others;

const PAGE: u64 = 4096;
/// Most lists of modules that are kept.
const SPACES: usize = 16;

/// A module as the recording defines it.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub number: u32,
    pub path: PathBuf,
    pub build_id: Option<String>,
    pub addr: u64,
    pub size: u64,
    pub is_system: bool,
    /// The recording's own copy of its file, or why it is unknown whether there is one.
    pub copy: Option<std::result::Result<PathBuf, String>>,
    /// Folders that are searched for separate debug files.
    pub debug_dirs: Vec<PathBuf>,
}

/// A module whose file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Its file's path when it was recorded.
    pub path: PathBuf,
    /// Where it was mapped.
    pub range: Range<u64>,
    /// The reason.
    pub why: String,
}

struct Entry {
    loaded: Loaded,
    /// It was mapped by this event.
    from: u64,
    /// It was unmapped by that one.
    until: Option<u64>,
    file: OnceLock<std::result::Result<Arc<Module>, String>>,
}

/// All modules of a recording.
pub struct Modules {
    entries: Vec<Entry>,
    /// Numbers of the events that changed the list.
    changes: Vec<u64>,
    spaces: Mutex<HashMap<usize, Arc<AddressSpace>>>,
}

impl Modules {
    /// `are_there_first`: modules that are loaded at time 0 were mapped before the first event.
    pub(crate) fn new(
        loads: Vec<Loaded>,
        (marks, others): (&Marks, &Others),
        are_there_first: bool,
    ) -> Result<Self> {
        let mut from = HashMap::new();
        let mut until = HashMap::new();
        for (kind, found) in [
            (Kind::ModuleLoad, &mut from),
            (Kind::ModuleUnload, &mut until),
        ] {
            for event in others.events(marks.all(kind))? {
                let is_first = are_there_first && kind == Kind::ModuleLoad && event.ts_ns == 0;
                if let Some(number) = event.value {
                    let seq = if is_first { 0 } else { event.seq };
                    found.entry(number).or_insert(seq);
                }
            }
        }
        let entries = loads.into_iter().filter_map(|loaded| {
            let number = i64::from(loaded.number);
            Some(Entry {
                from: *from.get(&number)?,
                until: until.get(&number).copied(),
                file: OnceLock::new(),
                loaded,
            })
        });
        let mut changes: Vec<u64> = [Kind::ModuleLoad, Kind::ModuleUnload]
            .iter()
            .flat_map(|kind| marks.all(*kind))
            .map(|mark| mark.seq)
            .collect();
        changes.sort_unstable();
        Ok(Self {
            entries: entries.collect(),
            changes,
            spaces: Mutex::default(),
        })
    }

    /// Returns the recorded data of all modules.
    pub(crate) fn loaded(&self) -> impl Iterator<Item = &Loaded> {
        self.entries.iter().map(|entry| &entry.loaded)
    }

    /// Returns whether the module `number` is a library of the system.
    #[must_use]
    pub fn is_system(&self, number: u32) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| entry.loaded.number == number && entry.loaded.is_system)
    }

    /// Returns all modules whose files cannot be used, whenever they were mapped.
    #[must_use]
    pub fn all_absent(&self) -> Vec<Absent> {
        self.entries.iter().filter_map(Entry::absent).collect()
    }

    /// Returns all modules whose files can be used, whenever they were mapped.
    #[must_use]
    pub fn all_usable(&self) -> Vec<Mapped> {
        self.entries.iter().filter_map(Entry::mapped).collect()
    }

    fn mapped_at(&self, seq: u64) -> impl Iterator<Item = &Entry> {
        let is_mapped =
            move |entry: &&Entry| entry.from <= seq && entry.until.is_none_or(|until| until > seq);
        self.entries.iter().filter(is_mapped)
    }

    /// Returns whether any module of the recording may define `name`: otherwise it is misspelt. A module whose file
    /// cannot be used may define it.
    #[must_use]
    pub fn mention(&self, name: &str) -> bool {
        let mut files = self.entries.iter().map(Entry::file);
        files.any(|file| file.as_ref().map_or(true, |module| module.mentions(name)))
    }

    /// Returns the modules that were mapped just after event `seq` and whose files can be used.
    #[must_use]
    pub fn space(&self, seq: u64) -> Arc<AddressSpace> {
        let epoch = self.changes.partition_point(|change| *change <= seq);
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(space) = spaces.get(&epoch) {
            return Arc::clone(space);
        }
        let mapped = self.mapped_at(seq).filter_map(Entry::mapped).collect();
        let space = Arc::new(AddressSpace::new(mapped));
        if spaces.len() >= SPACES {
            spaces.clear();
        }
        spaces.insert(epoch, Arc::clone(&space));
        space
    }

    /// Returns the events that changed the list, in order.
    pub(crate) fn changes(&self) -> &[u64] {
        &self.changes
    }

    /// Returns the modules that were mapped then but whose files cannot be used.
    #[must_use]
    pub fn absent(&self, seq: u64) -> Vec<Absent> {
        self.mapped_at(seq).filter_map(Entry::absent).collect()
    }

    /// Returns why the module at `address` cannot be used, if so.
    #[must_use]
    pub fn why_absent(&self, address: u64, seq: u64) -> Option<String> {
        let mut here = self.mapped_at(seq);
        let entry = here.find(|entry| entry.loaded.range().contains(&address))?;
        entry.file().as_ref().err().cloned()
    }

    /// Returns why the module `number` cannot be used, if so.
    #[must_use]
    pub fn why_unusable(&self, number: u32) -> Option<String> {
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| entry.loaded.number == number)?;
        entry.file().as_ref().err().cloned()
    }

    /// Returns why one of the modules that were mapped then cannot be used: the first one, but the program's own before
    /// those of the system.
    #[must_use]
    pub fn first_absent(&self, seq: u64) -> Option<String> {
        let absent = |system: bool| {
            let entries = self
                .mapped_at(seq)
                .filter(move |e| e.loaded.is_system == system);
            entries
                .filter_map(|entry| entry.file().as_ref().err())
                .next()
        };
        absent(false).or_else(|| absent(true)).cloned()
    }

    /// Returns the address in the process of an address in the file of module `number`, if it was mapped then.
    #[must_use]
    pub fn address(&self, number: u32, svma: u64, seq: u64) -> Option<u64> {
        let mut mapped = self.mapped_at(seq);
        let entry = mapped.find(|entry| entry.loaded.number == number)?;
        Some(svma.wrapping_add(entry.mapped()?.bias))
    }

    /// Returns whether a recorded module was mapped at `address`.
    #[must_use]
    pub fn covers(&self, address: u64, seq: u64) -> bool {
        self.mapped_at(seq)
            .any(|entry| entry.loaded.range().contains(&address))
    }
}

impl Loaded {
    fn range(&self) -> Range<u64> {
        self.addr..self.addr.saturating_add(self.size)
    }

    /// Opens the recording's own copy, or else the file, if it is the one that was recorded.
    fn open(&self) -> std::result::Result<Arc<Module>, String> {
        let of_copy = match &self.copy {
            Some(copy) => match copy.clone().and_then(|copy| self.open_at(&copy)) {
                Ok(module) => return Ok(module),
                Err(why) => format!("; of its copy: {why}"),
            },
            None => String::new(),
        };
        self.open_at(&self.path).map_err(|why| why + &of_copy)
    }

    /// Opens the module as it was mapped; `None` if its file cannot be used.
    pub(crate) fn mapped(&self) -> Option<Mapped> {
        self.open().ok().map(|module| self.as_mapped(module))
    }

    fn as_mapped(&self, module: Arc<Module>) -> Mapped {
        let segments = module.load_segments().iter();
        let first = segments.map(|segment| segment.vaddr.0).min().unwrap_or(0);
        Mapped {
            number: self.number,
            // The first mapped page holds the first segment's first byte.
            bias: self.addr.wrapping_sub(first & !(PAGE - 1)),
            range: module.extent(self.range()),
            is_system: self.is_system,
            module,
        }
    }

    /// Opens a file in which the module should be.
    pub(crate) fn open_at(&self, file: &Path) -> std::result::Result<Arc<Module>, String> {
        let path = file.display();
        let options = OpenOptions::new().debug_dirs(self.debug_dirs.iter().cloned());
        let module = options
            .open(file)
            .map_err(|error| format!("the module {path} cannot be read: {error}"))?;
        match (&self.build_id, module.build_id()) {
            (Some(recorded), Some(found)) if recorded != found => Err(format!(
                "the module {path} is another one now: its build id is {found}, not {recorded}"
            )),
            (Some(recorded), None) => Err(format!(
                "the module {path} is another one now: it has no build id, not {recorded}"
            )),
            _ => Ok(shared_module(module)),
        }
    }
}

impl Entry {
    fn file(&self) -> &std::result::Result<Arc<Module>, String> {
        self.file.get_or_init(|| self.loaded.open())
    }

    fn absent(&self) -> Option<Absent> {
        let why = self.file().as_ref().err()?.clone();
        Some(Absent {
            path: self.loaded.path.clone(),
            range: self.loaded.range(),
            why,
        })
    }

    fn mapped(&self) -> Option<Mapped> {
        let module = self.file().as_ref().ok()?;
        Some(self.loaded.as_mapped(Arc::clone(module)))
    }
}

/// Returns `len` bytes at `address` if they are mapped from a file read-only.
pub(crate) fn read_only(space: &AddressSpace, address: u64, len: u64) -> Option<&[u8]> {
    let mapped = space.at(address)?;
    let svma = mapped.svma(address);
    let end = svma.0.checked_add(len)?;
    let mut segments = mapped.module.load_segments().iter();
    segments.find(|segment| {
        let inside = segment.vaddr.0 <= svma.0 && end <= segment.vaddr.0 + segment.filesz;
        inside && !segment.flags.write
    })?;
    mapped.module.code(Svma(svma.0), len)
}

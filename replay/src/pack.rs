//! Makes a recording portable: copies its modules, their separate debug files and sources into it. Opening the
//! recording uses these copies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use debuginfo::{Module, SourceCopies};
use store::Recording;
use store::packed::{self, PackedModule, PackedSource, Packer};

use crate::error::Result;
use crate::modules::Loaded;
use crate::timeline::Timeline;

/// Folder of debug files by build id, below the folder of the copies.
const DEBUG_DIR: &str = "debug";
/// Longest source file that is copied.
const MAX_SOURCE_LEN: u64 = 4 << 20;
/// Most source files of a recording.
const MAX_SOURCES: usize = 20_000;
/// Most bytes of all source files of a recording.
const MAX_SOURCES_LEN: u64 = 512 << 20;

/// The result of packing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Modules that have copies.
    pub modules: usize,
    /// Separate debug files that were found and copied this time.
    pub debug_files: usize,
    /// Source files that have copies.
    pub sources: usize,
    /// Bytes of all copies.
    pub len_bytes: u64,
    /// Modules without copies: their paths, and the reasons.
    pub missing: Vec<(PathBuf, String)>,
}

/// Copies into the recording the files that are needed to open it elsewhere. Earlier copies stay.
///
/// # Errors
/// The recording cannot be read, or nothing can be written to it. A missing module file is not an error.
pub fn pack(timeline: &Timeline) -> Result<Outcome> {
    let recording = timeline.recording();
    let mut packer = Packer::begin(recording)?;
    let mut outcome = Outcome::default();
    let mut seen = BTreeSet::new();
    for loaded in timeline.modules.loaded() {
        let is_new = seen.insert((loaded.path.clone(), loaded.build_id.clone()));
        // Mappings of the kernel have no file.
        if !is_new || !loaded.path.is_absolute() || is_packed(&packer, loaded) {
            continue;
        }
        let module = match loaded.open_at(&loaded.path) {
            Ok(module) => module,
            Err(why) => {
                outcome.missing.push((loaded.path.clone(), why));
                continue;
            }
        };
        outcome.debug_files += copy_module(&mut packer, loaded, &module)?;
        if !loaded.is_system {
            copy_sources(&mut packer, &module)?;
        }
    }
    let packed = packer.finish()?;
    outcome.modules = packed.modules.len();
    outcome.sources = packed.sources.len();
    outcome.len_bytes = packed.files.iter().map(|file| file.len).sum();
    Ok(outcome)
}

/// Points the modules of a recording to their copies. Returns the copies of source files. Copies that have changed
/// are ignored: another file's types would give wrong values.
pub(crate) fn use_copies(recording: &Recording, loads: &mut [Loaded]) -> SourceCopies {
    let dir = packed::dir_of(recording);
    let mut damaged = BTreeMap::new();
    let checked = packed::check(recording, |path, _, wrong| {
        damaged.extend(wrong.map(|why| (path.to_path_buf(), why)));
    });
    let packed = match checked.and_then(|()| packed::read(recording)) {
        Ok(packed) => packed,
        // The original files may still exist.
        Err(error) => {
            let why = error.one_line();
            loads
                .iter_mut()
                .for_each(|loaded| loaded.copy = Some(Err(why.clone())));
            return SourceCopies::new();
        }
    };
    let debug_dir = dir.join(DEBUG_DIR);
    for loaded in loads.iter_mut().filter(|_| !packed.modules.is_empty()) {
        let mut modules = packed.modules.iter();
        let Some(module) = modules.find(|module| is_of(module, loaded)) else {
            loaded.debug_dirs.insert(0, debug_dir.clone());
            continue;
        };
        let copy = dir.join(&module.file);
        let is_part = |path: &Path| path.parent() == copy.parent() || path.starts_with(&debug_dir);
        loaded.copy = Some(match damaged.iter().find(|(path, _)| is_part(path)) {
            Some((path, why)) => Err(format!("{}: {why}", path.display())),
            None => {
                loaded.debug_dirs.insert(0, debug_dir.clone());
                Ok(copy)
            }
        });
    }
    let sources = packed.sources.into_iter();
    sources
        .map(|source| (source.path, dir.join(source.file)))
        .filter(|(_, copy)| !damaged.contains_key(copy))
        .collect()
}

fn is_of(module: &PackedModule, loaded: &Loaded) -> bool {
    Path::new(&module.path) == loaded.path && module.build_id == loaded.build_id
}

fn is_packed(packer: &Packer, loaded: &Loaded) -> bool {
    let mut modules = packer.packed().modules.iter();
    modules.any(|module| is_of(module, loaded))
}

/// Copies a module and its separate debug files. Returns how many of those there were.
fn copy_module(packer: &mut Packer, loaded: &Loaded, module: &Module) -> Result<usize> {
    let number = packer.packed().modules.len();
    let name = file_name(&loaded.path);
    let file = format!("{number:06}/{name}");
    packer.copy(&loaded.path, &file)?;
    let companions = module.companions();
    for (path, build_id) in &companions {
        let to = match build_id {
            // Readers look for it by its build id, wherever it was.
            Some(id) if id.len() > 2 => {
                let (head, tail) = id.split_at(2);
                format!("{DEBUG_DIR}/.build-id/{head}/{tail}.debug")
            }
            // Otherwise by its name, next to the module.
            _ => format!("{number:06}/{}", file_name(path)),
        };
        packer.copy(path, &to)?;
    }
    packer.add_module(PackedModule {
        path: loaded.path.to_string_lossy().into_owned(),
        build_id: loaded.build_id.clone(),
        file,
    });
    Ok(companions.len())
}

/// Copies the source files of a module that exist here, up to the limits.
fn copy_sources(packer: &mut Packer, module: &Module) -> Result<()> {
    let known = &packer.packed().sources;
    let known: BTreeSet<String> = known.iter().map(|source| source.path.clone()).collect();
    let mut copied: u64 = 0;
    for path in module.source_files() {
        let at = Path::new(&*path);
        let Ok(found) = at.metadata() else { continue };
        let number = packer.packed().sources.len();
        let fits = found.is_file() && found.len() <= MAX_SOURCE_LEN && number < MAX_SOURCES;
        if !at.is_absolute() || known.contains(&*path) || !fits {
            continue;
        }
        copied += found.len();
        if copied > MAX_SOURCES_LEN {
            return Ok(());
        }
        let file = format!("sources/{number:06}");
        packer.copy(at, &file)?;
        packer.add_source(PackedSource {
            path: path.to_string(),
            file,
        });
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

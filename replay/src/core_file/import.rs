//! Makes the recording of a core file in the user's cache, unless it exists already.
//!
//! Its events are what the core file holds: the process, the modules, a stop of each thread, and the signal. The
//! recording is a few kilobytes; memory stays in the core file.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use debuginfo::{AddressSpace, CoreFile, CoreThread, Mapped, is_system_path};
use rustc_hash::FxHasher;
use store::control::{Control, Exception, ExceptionPhase, Pause, PauseReason, SavedRegisters};
use store::format::{FORMAT_VERSION, RECORDING_SUFFIX};
use store::manifest::{ClockCalibration, Host, Manifest, RecordingId, Settings};
use store::recording::{Created, OnTaken, OpenRecording};

use super::{CoreLink, LINK};
use crate::error::{Error, Result};
use crate::modules::Loaded;

/// Entries of the auxiliary vector (`getauxval(3)`).
const AT_ENTRY: u64 = 9;
const AT_EXECFN: u64 = 31;
/// rip and rsp in the kernel's order of registers.
const RIP: usize = 16;
const RSP: usize = 19;
const PAGE: u64 = 4096;

/// How a core file is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreOptions {
    /// The file of the program, if it is not where the core file says.
    pub program: Option<PathBuf>,
}

/// A file that was mapped as a module.
struct FoundModule {
    path: PathBuf,
    range: Range<u64>,
    build_id: Option<String>,
    is_system: bool,
    /// There is another file at its path now.
    is_replaced: bool,
}

/// Returns the folder of the recording of a core file. It is made if there is none yet.
///
/// # Errors
/// The core file cannot be read, or the recording cannot be written.
pub fn import(path: &Path, options: &CoreOptions) -> Result<PathBuf> {
    let failed = |why: std::io::Error| Error::NoCore {
        path: path.to_owned(),
        why: why.to_string(),
    };
    let link = CoreLink::of(path).map_err(failed)?;
    let program = options.program.as_deref().map(program_file).transpose()?;
    let core = CoreFile::open(&link.path).map_err(|error| Error::NoCore {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    if let Some(program) = &program {
        check_build(&core, program).map_err(|why| Error::NoCore {
            path: path.to_owned(),
            why,
        })?;
    }
    let id = identity(&link, program.as_deref(), &core);
    let folder = cache().map_err(failed)?;
    remove_orphans(&folder);
    let name = link.path.file_name().unwrap_or_default().to_string_lossy();
    let dir = folder.join(format!("{name}-{}{RECORDING_SUFFIX}", short(&id)));
    if dir.join(LINK).is_file() {
        return Ok(dir);
    }
    let draft = folder.join(format!(
        ".{}-{}{RECORDING_SUFFIX}",
        short(&id),
        std::process::id()
    ));
    // A draft of a process of the same number that was killed.
    let _ = fs::remove_dir_all(&draft);
    write(&core, &link, program.as_deref(), id, &draft)?;
    match fs::rename(&draft, &dir) {
        Ok(()) => Ok(dir),
        // Another process made it in the meantime.
        Err(_) if dir.join(LINK).is_file() => {
            let _ = fs::remove_dir_all(&draft);
            Ok(dir)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Returns the whole path of the file that is named as the program.
fn program_file(path: &Path) -> Result<PathBuf> {
    let failed = |why: String| Error::NoProgram { why };
    debuginfo::Module::open(path).map_err(|error| failed(error.to_string()))?;
    fs::canonicalize(path).map_err(|error| failed(format!("open {}: {error}", path.display())))
}

fn is_empty_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
}

/// Returns the folder of the recording that `path` names: a recording's own, or that of a core file, which is made if
/// there is none yet.
///
/// # Errors
/// There is neither a recording nor a core file; or as for [`import`]. A program is given, and it is not a core file.
pub fn locate(path: &Path, options: &CoreOptions) -> Result<PathBuf> {
    if debuginfo::is_core_file(path).unwrap_or(false) {
        return import(path, options);
    }
    let found = store::recording::resolve(path).map_err(|error| match is_empty_file(path) {
        true => Error::EmptyFile {
            path: path.to_owned(),
        },
        false => error.into(),
    })?;
    match options.program {
        Some(_) => Err(Error::NoCore {
            path: path.to_owned(),
            why: "it is a recording, and a program is named for core files only".to_owned(),
        }),
        None => Ok(found),
    }
}

fn short(id: &[u8; 16]) -> String {
    id[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The recording's id: a different one for each core file, and for each program that it is opened with. What is found out about a
/// file without a build id holds until the file changes.
fn identity(link: &CoreLink, program: Option<&Path>, core: &CoreFile) -> [u8; 16] {
    let found = modules(core, program);
    let unnamed = found.iter().filter(|module| module.build_id.is_none());
    let files: Vec<_> = unnamed
        .map(|module| (&module.path, changed_at(&module.path)))
        .collect();
    let half = |salt: u8| {
        let mut hasher = FxHasher::default();
        (salt, FORMAT_VERSION, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
        (&link.path, link.len, link.modified_ns, program, &files).hash(&mut hasher);
        hasher.finish().to_le_bytes()
    };
    let (first, second) = (half(1), half(2));
    std::array::from_fn(|at| if at < 8 { first[at] } else { second[at - 8] })
}

/// The folder of recordings of core files.
fn cache() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => PathBuf::from(home).join(".cache"),
        (None, None) => store::temp_dir(),
    };
    let folder = base.join("hindsight").join("cores");
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    Ok(folder)
}

/// Removes the recordings of core files that are gone or were changed.
fn remove_orphans(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let dir = entry.path();
        let Ok(Some(link)) = CoreLink::read(&dir) else {
            continue;
        };
        if CoreLink::of(&link.path).ok().as_ref() != Some(&link) {
            // It is rebuilt on demand.
            let _ = fs::remove_dir_all(&dir);
        }
    }
}

fn write(
    core: &CoreFile,
    link: &CoreLink,
    program: Option<&Path>,
    id: [u8; 16],
    dir: &Path,
) -> Result<()> {
    let modules = modules(core, program);
    let manifest = manifest(core, link, id);
    let argv = manifest.argv.clone();
    let Created { open, mut log } = OpenRecording::create(dir, OnTaken::Refuse, manifest)?;
    for control in controls(core, link, &modules, argv) {
        log.append_control(&control)?;
    }
    let recording = open.close(log.close()?)?;
    let path = recording.dir().join(LINK);
    fs::write(&path, link.bytes()).map_err(|error| Error::NoCore {
        path,
        why: error.to_string(),
    })
}

fn manifest(core: &CoreFile, link: &CoreLink, id: [u8; 16]) -> Manifest {
    let arguments = core.process().arguments.split(' ');
    let argv: Vec<String> = arguments
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    Manifest {
        format_version: FORMAT_VERSION,
        recording_id: RecordingId(id),
        hindsight_version: env!("CARGO_PKG_VERSION").into(),
        frida_version: None,
        host: Host::default(),
        argv: match argv.is_empty() {
            true => vec![core.process().name.clone()],
            false => argv,
        },
        cwd: String::new(),
        start_unix_ns: i64::try_from(link.modified_ns).unwrap_or(0),
        start_monotonic_ns: None,
        clock: ClockCalibration {
            tsc_hz: 1e9,
            tsc_base: 0,
        },
        settings: Settings::default(),
        launch: None,
        labels: BTreeMap::new(),
        run_of: None,
        lineage: None,
    }
}

/// Refuses a program of another build than the core file is of: its names and lines would be wrong.
fn check_build(core: &CoreFile, program: &Path) -> std::result::Result<(), String> {
    let crashed = modules(core, Some(program)).into_iter().next();
    let is_replaced = crashed.as_ref().is_some_and(|module| module.is_replaced);
    let builds = (
        crashed.and_then(|module| module.build_id),
        debuginfo::build_id_of(program),
    );
    let program = program.display();
    match builds {
        (Some(crashed), Some(named)) if crashed != named => Err(format!(
            "it is of a program with build id {crashed}, and {program} has {named}"
        )),
        _ if is_replaced => Err(format!(
            "it is of a program whose segments have other sizes than those of {program}"
        )),
        _ => Ok(()),
    }
}

/// The modules: files whose first byte was mapped and that begin as ELF files do.
fn modules(core: &CoreFile, program: Option<&Path>) -> Vec<FoundModule> {
    let mut found: Vec<FoundModule> = Vec::new();
    for mapping in core.mappings() {
        let is_next = |last: &FoundModule| {
            last.path == mapping.path && mapping.offset > 0 && mapping.range.start >= last.range.end
        };
        if let Some(last) = found.last_mut().filter(|last| is_next(last)) {
            last.range.end = mapping.range.end;
            continue;
        }
        if mapping.offset > 0 {
            continue;
        }
        let mut magic = [0; 4];
        let is_elf = match core.read(mapping.range.start, &mut magic) {
            Some(()) => magic == *b"\x7fELF",
            None => is_elf_file(&mapping.path),
        };
        if is_elf {
            found.push(FoundModule {
                path: mapping.path.clone(),
                range: mapping.range.clone(),
                build_id: core.build_id_at(mapping.range.start),
                is_system: is_system_path(&mapping.path),
                is_replaced: false,
            });
        }
    }
    let entry = core.auxiliary(AT_ENTRY);
    let is_program = |module: &FoundModule| entry.is_some_and(|at| module.range.contains(&at));
    match found.iter().position(is_program) {
        Some(at) => {
            let mut own = found.remove(at);
            own.is_system = false;
            if let Some(program) = program {
                own.path = program.to_owned();
            }
            found.insert(0, own);
        }
        // No list of files, as in a file that was cut early: the vector says where the program is.
        None => found.extend(program_alone(core, program)),
    }
    for module in &mut found {
        module.is_replaced = is_linked_again(core, module);
    }
    found
}

/// Returns whether the file at a module's path is another one than was mapped. Build ids tell that for certain, and readers compare
/// them; without one, the sizes of the segments do as a rule.
fn is_linked_again(core: &CoreFile, module: &FoundModule) -> bool {
    if module.build_id.is_some() {
        return false;
    }
    let now = debuginfo::Module::open(&module.path).ok();
    let is_other = now.and_then(|now| core.is_laid_out_otherwise(module.range.start, &now));
    is_other.unwrap_or(false)
}

/// When a file was last changed, in nanoseconds since 1970.
fn changed_at(path: &Path) -> Option<u128> {
    let changed = fs::metadata(path).and_then(|found| found.modified()).ok()?;
    let since = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_nanos())
}

/// The program's module, if the core file does not list mapped files but the program's file is known.
fn program_alone(core: &CoreFile, program: Option<&Path>) -> Option<FoundModule> {
    let entry = core.auxiliary(AT_ENTRY)?;
    let path = match program {
        Some(program) => program.to_owned(),
        None => {
            let name = core.text(core.auxiliary(AT_EXECFN)?, 4096)?;
            PathBuf::from(std::ffi::OsStr::from_bytes(&name))
        }
    };
    let module = debuginfo::Module::open(&path).ok()?;
    let segments = module.load_segments();
    let first = segments.iter().map(|segment| segment.vaddr.0).min()? & !(PAGE - 1);
    let last = segments
        .iter()
        .map(|segment| segment.vaddr.0.saturating_add(segment.memsz))
        .max()?;
    let bias = entry.wrapping_sub(module.entry().0);
    if bias % PAGE != 0 {
        return None;
    }
    Some(FoundModule {
        path,
        range: first.wrapping_add(bias)..last.wrapping_add(bias).next_multiple_of(PAGE),
        build_id: core.build_id_at(first.wrapping_add(bias)),
        is_system: false,
        is_replaced: false,
    })
}

fn is_elf_file(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    let mut read = || fs::File::open(path)?.read_exact(&mut magic);
    is_file && read().is_ok() && magic == *b"\x7fELF"
}

/// The events, in order. The stop of the thread that got the signal is the last one before the end.
fn controls(
    core: &CoreFile,
    link: &CoreLink,
    modules: &[FoundModule],
    argv: Vec<String>,
) -> Vec<Control> {
    let process = core.process();
    let first = &core.threads()[0];
    let exe = modules.first().map(|module| module.path.as_path());
    let mut controls = vec![Control::ProcessStart {
        ticks: 0,
        pid: process.pid.unwrap_or(first.tid),
        argv,
        exe: exe.unwrap_or(Path::new("")).to_string_lossy().into_owned(),
        cwd: String::new(),
        attached: true,
    }];
    let used = || modules.iter().filter(|module| !module.is_replaced);
    let numbered = || used().zip(0..);
    controls.extend(numbered().map(|(module, number)| Control::ModuleLoad {
        ticks: 0,
        module: number,
        path: module.path.to_string_lossy().into_owned(),
        build_id: module.build_id.clone(),
        addr: module.range.start,
        size: module.range.end - module.range.start,
        system: module.is_system,
    }));
    controls.extend(warnings(core, link, modules));
    let space = AddressSpace::new(
        numbered()
            .filter_map(|(m, number)| mapped(m, number))
            .collect(),
    );
    let others = core.threads()[1..].iter();
    controls.extend(others.map(|thread| stop(thread, PauseReason::AllThreads, &space)));
    let signal = core.signal().map_or(first.signal, |signal| signal.number);
    let (signal, is_end) = (
        Some(signal).filter(|signal| *signal != 0),
        process.is_of_kernel,
    );
    if let Some(number) = signal {
        controls.push(Control::Exception(Exception {
            ticks: 0,
            tid: first.tid,
            signal: Some(number),
            type_name: None,
            phase: match is_end {
                true => ExceptionPhase::Unhandled,
                false => ExceptionPhase::FirstChance,
            },
            addr: core.signal().and_then(|signal| signal.address),
            message: None,
        }));
    }
    let reason = match signal {
        Some(_) => PauseReason::Signal,
        None => PauseReason::User,
    };
    controls.push(stop(first, reason, &space));
    if is_end {
        controls.push(Control::ProcessExit {
            ticks: 0,
            code: None,
            signal,
        });
    }
    controls
}

/// Warnings for readers: given once, as events.
fn warnings(core: &CoreFile, link: &CoreLink, modules: &[FoundModule]) -> Vec<Control> {
    let mut messages = Vec::new();
    match core.missing_bytes() {
        0 => {}
        missing => messages.push(format!(
            "the core file was cut: its last {missing} bytes are missing, and memory in them is unknown"
        )),
    }
    if modules.is_empty() {
        messages.push(
            "the core file does not say which files were mapped: there are no symbols; --program FILE names the program"
                .to_owned(),
        );
    }
    for module in modules.iter().filter(|module| module.build_id.is_none()) {
        let path = module.path.display();
        let is_newer = changed_at(&module.path)
            .is_some_and(|at| i128::try_from(at).is_ok_and(|at| at > link.modified_ns));
        if module.is_replaced {
            messages.push(format!(
                "another file is at {path} now, which is not used: its segments have other sizes"
            ));
        } else if is_newer {
            messages.push(format!(
                "{path} is newer than the core file, which does not have its build id: it may be another one"
            ));
        }
    }
    let warning = |message| Control::Warning { ticks: 0, message };
    messages.into_iter().map(warning).collect()
}

fn mapped(module: &FoundModule, number: u32) -> Option<Mapped> {
    let loaded = Loaded {
        number,
        path: module.path.clone(),
        build_id: module.build_id.clone(),
        addr: module.range.start,
        size: module.range.end - module.range.start,
        is_system: module.is_system,
        copy: None,
        debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
    };
    loaded.mapped()
}

fn stop(thread: &CoreThread, reason: PauseReason, space: &AddressSpace) -> Control {
    let pc = thread.registers[RIP];
    let standing = space.standing(pc, 0);
    Control::Pause(Box::new(Pause {
        ticks: 0,
        tid: thread.tid,
        reason,
        probe: None,
        hits: None,
        pc,
        function: standing.function.map(|name| name.to_string()),
        file: standing.source.as_ref().map(|place| place.file.to_string()),
        line: standing.source.as_ref().map(|place| place.line),
        registers: Some(SavedRegisters {
            general: thread.registers,
            // Without them, readers learn that they are unknown.
            vectors: thread.vectors().unwrap_or_default(),
        }),
        stack_addr: thread.registers[RSP],
        stack: Vec::new().into(),
        values: Vec::new(),
        watched: None,
    }))
}

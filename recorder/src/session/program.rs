//! The process being recorded: started by us, or attached to.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use agent::runtime;

use crate::{
    Error, Result,
    process::{ExitWatch, Maps, spawn},
    stop::procfs,
};

/// The process being recorded.
pub(crate) struct Running {
    pub pid: i32,
    pub exe: PathBuf,
    pub argv: Vec<String>,
    pub cwd: String,
    pub watch: ExitWatch,
    /// It waits at its entry point (spawned), or ended before it got there.
    pub parked: Option<spawn::Parked>,
    pub spawned: bool,
    /// It ended before it got to its entry point.
    pub ended_early: bool,
    /// A child that was never let go is killed.
    pub kill_on_drop: bool,
}

impl Running {
    pub fn spawned(started: spawn::Started, argv: &[OsString]) -> Result<Self> {
        let (pid, exe, parked) = match started {
            spawn::Started::Parked(parked) => (parked.pid, parked.exe.clone(), Some(parked)),
            spawn::Started::Ended(pid) => (pid, PathBuf::from(&argv[0]), None),
        };
        Ok(Self {
            pid,
            exe,
            argv: argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            cwd: std::env::current_dir()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            watch: ExitWatch::new(pid, true).map_err(Error::system("watch the program"))?,
            kill_on_drop: parked.is_some(),
            ended_early: parked.is_none(),
            parked,
            spawned: true,
        })
    }

    /// Returns what a recording is named after: what was started (a script, not its interpreter), or what runs.
    pub fn named_after(&self) -> &Path {
        match self.argv.first() {
            Some(program) if self.spawned => Path::new(program),
            _ => &self.exe,
        }
    }

    pub fn attached(pid: i32) -> Result<Self> {
        let reason = |source: io::Error| match source.raw_os_error() {
            Some(libc::ESRCH | libc::EINVAL) => "there is no such process".to_owned(),
            _ => source.to_string(),
        };
        let watch = ExitWatch::new(pid, false).map_err(|source| Error::Attach {
            pid,
            reason: reason(source),
        })?;
        let exe = fs::read_link(format!("/proc/{pid}/exe")).map_err(|source| {
            let reason = match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "not permitted; try as root or as the user who runs it".to_owned()
                }
                io::ErrorKind::NotFound => {
                    "it has no program: a kernel thread, or a process that has ended".to_owned()
                }
                _ => source.to_string(),
            };
            Error::Attach { pid, reason }
        })?;
        check_executable(&exe)?;
        // Nothing is to be brought in that would wait for a thread which somebody else holds.
        if let Some(tracer) = procfs::tracer(pid, pid) {
            let tracer = procfs::thread_group(tracer).unwrap_or(tracer);
            let name = fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default();
            let reason = format!(
                "process {tracer} ({}) traces it, and a program has one tracer; let it go there first",
                name.trim_end()
            );
            return Err(Error::Attach { pid, reason });
        }
        let argv = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = argv
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty());
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        Ok(Self {
            pid,
            exe,
            argv: words
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect(),
            cwd: cwd.to_string_lossy().into_owned(),
            watch,
            parked: None,
            spawned: false,
            kill_on_drop: false,
            ended_early: false,
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.kill_on_drop {
            spawn::kill(self.pid);
        }
    }
}

/// Refuses what cannot be recorded, before anything of it runs.
pub(super) fn check_executable(exe: &PathBuf) -> Result<()> {
    let refuse = |reason: String| Error::Unsupported {
        path: exe.clone(),
        reason,
    };
    let module = debuginfo::Module::open(exe).map_err(|error| refuse(error.to_string()))?;
    if let Some(sanitizer) = colliding_sanitizer(&module) {
        return Err(refuse(format!(
            "it was built with {sanitizer}, whose memory lies where Hindsight keeps return addresses; build it without, or with AddressSanitizer"
        )));
    }
    if module.interp().is_none() {
        return Err(refuse("it is statically linked, and Hindsight needs the dynamic linker to load its agent; link it dynamically".into()));
    }
    Ok(())
}

/// Sanitizers that lay out the whole address space, and what shows that a program has one: a symbol, or the library that
/// has it.
const COLLIDING: [(&str, &str, [&str; 2]); 3] = [
    (
        "ThreadSanitizer",
        "__tsan_init",
        ["libtsan.so", "libclang_rt.tsan"],
    ),
    (
        "MemorySanitizer",
        "__msan_init",
        ["libmsan.so", "libclang_rt.msan"],
    ),
    (
        "DataFlowSanitizer",
        "__dfsan_union",
        ["libdfsan.so", "libclang_rt.dfsan"],
    ),
];

fn colliding_sanitizer(module: &debuginfo::Module) -> Option<&'static str> {
    let found = COLLIDING.iter().find(|(_, symbol, libraries)| {
        let is_linked = |needed: &String| libraries.iter().any(|name| needed.starts_with(name));
        module.needed().iter().any(is_linked) || module.address_of(symbol).is_some()
    });
    found.map(|(sanitizer, ..)| *sanitizer)
}

pub(super) fn read_maps(pid: i32) -> Result<Maps> {
    Maps::read(pid).map_err(Error::system("read what the program has mapped"))
}

/// The library to load: a copy of its own for a process that an earlier recording left it in.
pub(super) fn runtime_for(pid: i32) -> Result<PathBuf> {
    let mapped = read_maps(pid)?.files();
    let mut copy = 1;
    loop {
        let candidate = runtime::library_path(copy)?;
        if !mapped.iter().any(|file| file.path == candidate) {
            return Ok(candidate);
        }
        copy += 1;
    }
}

pub(super) fn about_target(error: agent::Error, target: &Running) -> Error {
    match &error {
        agent::Error::Frida { message, .. } if !target.spawned => Error::Attach {
            pid: target.pid,
            reason: format!("{message}; is it yours, and is no debugger attached?"),
        },
        _ => error.into(),
    }
}

pub(super) fn owner(pid: i32) -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}")).map_or(u32::MAX, |metadata| metadata.uid())
}

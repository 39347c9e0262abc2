//! The process being recorded: started by us, or attached to.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use agent::runtime;
use debuginfo::{Diagnostic, Module};

use super::sanitizers;
use crate::{
    Error, Member, Result,
    live::family::argv,
    process::{
        ExitWatch, Maps, Way,
        executable::{find_in_path, is_elf, refuse_other_elf},
        spawn,
        status::{Seccomp, why_not_loaded},
    },
    signals,
    stop::procfs,
};

/// The process being recorded.
pub(crate) struct Running {
    pub pid: i32,
    pub exe: PathBuf,
    pub way: Way,
    pub argv: Vec<String>,
    pub cwd: String,
    pub watch: ExitWatch,
    /// It waits at its entry point (spawned), or ended before it got there.
    pub parked: Option<spawn::Parked>,
    pub spawned: bool,
    /// It ended before it reached its entry point.
    pub ended_early: bool,
    /// A child that was never released is killed.
    pub kill_on_drop: bool,
}

impl Running {
    pub fn spawned(started: spawn::Started, argv: &[OsString]) -> Result<Self> {
        let (pid, exe, way, parked) = match started {
            spawn::Started::Parked(parked) => {
                let exe = parked.exe.clone();
                (parked.pid, exe.clone(), way_into(&exe)?, Some(parked))
            }
            // Nothing is loaded into it.
            spawn::Started::Ended(pid) => (pid, PathBuf::from(&argv[0]), Way::Loader, None),
        };
        Ok(Self {
            pid,
            exe,
            way,
            argv: argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            cwd: fs::read_link(format!("/proc/{pid}/cwd"))
                .or_else(|_| std::env::current_dir())
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

    /// A process of a set that waits at its entry point, or one that another session has controlled until now.
    pub fn parked(member: &Member) -> Result<Self> {
        let parked = member.parked.clone();
        let (pid, exe) = (parked.pid, parked.exe.clone());
        let way = way_into_running(pid, &exe)?.without_frida();
        if member.is_copy && way != Way::Loader {
            // Frida calls the C library, which is in the middle of fork.
            let reason = Diagnostic::new("a copy of it can only be recorded with our own loader");
            return Err(Error::Unsupported { path: exe, reason });
        }
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        // A live session's program that has become another one is still that of the daemon.
        let is_child = procfs::parent(pid) == Some(std::process::id() as i32);
        Ok(Self {
            pid,
            way,
            exe,
            argv: argv(pid),
            cwd: cwd.to_string_lossy().into_owned(),
            watch: ExitWatch::new(pid, is_child).map_err(Error::system("watch the program"))?,
            parked: Some(parked),
            spawned: !member.is_copy,
            ended_early: false,
            kill_on_drop: false,
        })
    }

    /// Returns whether musl's dynamic linker started it.
    pub fn has_musl(&self) -> bool {
        let module = Module::open(format!("/proc/{}/exe", self.pid));
        module.is_ok_and(|module| module.interp().is_some_and(|path| path.contains("ld-musl")))
    }

    /// Returns the path to name a recording after: the started program (a script, not its interpreter), or the
    /// executable.
    pub fn named_after(&self) -> &Path {
        match self.argv.first() {
            Some(program) if self.spawned || self.parked.is_some() => Path::new(program),
            _ => &self.exe,
        }
    }

    pub fn attached(pid: i32) -> Result<Self> {
        let reason = |source: io::Error| match source.raw_os_error() {
            Some(libc::ESRCH | libc::EINVAL) => Diagnostic::new("there is no such process"),
            _ => source.to_string().into(),
        };
        let watch = ExitWatch::new(pid, false).map_err(|source| Error::Attach {
            pid,
            reason: reason(source),
        })?;
        let exe = executable_of(pid).map_err(|source| {
            let reason = match source.kind() {
                io::ErrorKind::PermissionDenied => Diagnostic::new("not permitted")
                    .with_hint("try as root or as the user who runs it"),
                io::ErrorKind::NotFound => {
                    "it has no program: a kernel thread, or a process that has ended".into()
                }
                _ => source.to_string().into(),
            };
            Error::Attach { pid, reason }
        })?;
        let way = way_into_running(pid, &exe)?;
        check_mapped(&exe, &read_maps(pid)?)?;
        if way == Way::LoaderForGo {
            let reason = Diagnostic::new(
                "it is a Go program, and its goroutines may wait anywhere in code that is to be patched",
            )
            .with_hint("start it with hindsight record or hindsight start");
            return Err(Error::Attach { pid, reason });
        }
        has_no_tracer(pid)?;
        is_within_reach(pid).map_err(|reason| Error::Attach { pid, reason })?;
        let argv = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = argv
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty());
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        Ok(Self {
            pid,
            exe,
            way,
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

/// Checks that nobody traces a process: loading the runtime would wait for a thread that another tracer holds. A tracer
/// that is ending lets it go.
fn has_no_tracer(pid: i32) -> Result<()> {
    let until = Instant::now() + ENDING;
    while let Some(tracer) = procfs::tracer(pid, pid) {
        if procfs::is_ending(tracer) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let tracer = procfs::thread_group(tracer).unwrap_or(tracer);
        let name = procfs::text(format!("/proc/{tracer}/comm")).unwrap_or_default();
        let reason = Diagnostic::new(format!(
            "process {tracer} ({}) traces it, and a program has one tracer",
            name.trim_end()
        ))
        .with_hint("detach it there first");
        return Err(Error::Attach { pid, reason });
    }
    Ok(())
}

/// Checks that a running program can be loaded into and followed, before it does anything for that.
fn is_within_reach(pid: i32) -> Result<(), Diagnostic> {
    if procfs::pid_namespaces(pid) > procfs::pid_namespaces("self") {
        let why =
            "it is in a PID namespace of its own (a container), where its threads have other ids";
        let hint = "run Hindsight inside that namespace (nsenter, docker exec)";
        return Err(Diagnostic::new(why).with_hint(hint));
    }
    // One that has ended meanwhile has no threads.
    let tids = procfs::tasks(pid).unwrap_or_default();
    let may_load = |tid: &i32| Seccomp::of_thread(pid, *tid).mode != Seccomp::STRICT;
    match tids.is_empty() || tids.iter().any(may_load) {
        true => Ok(()),
        false => Err(why_not_loaded()),
    }
}

/// Time limit for a tracer that was killed to end: the kernel takes down its memory first.
const ENDING: Duration = Duration::from_secs(60);
/// Time limit for a process that is being killed to end.
const DYING: Duration = Duration::from_millis(200);
/// The same if we have received a signal.
const DYING_BY_SIGNAL: Duration = Duration::from_secs(2);

impl Running {
    /// Explains a failed operation on the program: a signal, usually that of Ctrl-C, may have ended it.
    pub fn why_failed(&self, error: Error) -> Error {
        let program = self.argv.first().cloned().unwrap_or_default();
        why_failed(program, &self.watch, self.spawned, error)
    }

    /// Passes a signal that we have received on to a program that has not run yet. It may also have received the
    /// terminal's signal, and has then ended or ignores it. But it may not have existed at that time, or another
    /// tracer took the signal.
    pub fn pass_on_signal(&self) -> bool {
        pass_on_signal(&self.watch, self.spawned)
    }
}

/// The same as [`Running::why_failed`], for a program of that name.
pub(super) fn why_failed(
    program: String,
    watch: &ExitWatch,
    is_spawned: bool,
    error: Error,
) -> Error {
    let patience = match pass_on_signal(watch, is_spawned) {
        true => DYING_BY_SIGNAL,
        false => DYING,
    };
    match watch.ended_by_signal(patience) {
        Some(signal) => Error::EndedEarly { program, signal },
        None => error,
    }
}

/// The same as [`Running::pass_on_signal`], for a program that is watched.
pub(super) fn pass_on_signal(watch: &ExitWatch, is_spawned: bool) -> bool {
    let signal = signals::received().filter(|_| is_spawned);
    if let Some(signal) = signal {
        watch.signal(signal);
    }
    signal.is_some()
}

/// Refuses a program that cannot be recorded before any of it runs. Returns how the runtime gets into it otherwise.
pub(crate) fn way_into(exe: &Path) -> Result<Way> {
    refuse_other_elf(exe)?;
    let refuse = |reason: Diagnostic| Error::Unsupported {
        path: exe.to_owned(),
        reason,
    };
    let module = Module::open(exe).map_err(|error| {
        refuse(Diagnostic {
            message: error.to_string(),
            hint: error.hint().map(str::to_owned),
        })
    })?;
    if let Some(sanitizer) = sanitizers::of_program(&module) {
        return Err(has_sanitizer(exe, sanitizer));
    }
    Way::of(&module).map_err(refuse)
}

/// Returns the path of the file that a process runs, without the kernel's mark that it was removed or replaced.
///
/// # Errors
/// The process is gone, or access is denied.
pub(crate) fn executable_of(pid: i32) -> io::Result<PathBuf> {
    let path = fs::read_link(format!("/proc/{pid}/exe"))?;
    let unmarked = path
        .to_str()
        .and_then(|text| text.strip_suffix(" (deleted)"));
    Ok(unmarked.map(PathBuf::from).unwrap_or(path))
}

/// As [`way_into`], for what a process runs: by now another file may be at the path of its executable.
pub(crate) fn way_into_running(pid: i32, exe: &Path) -> Result<Way> {
    way_into(Path::new(&format!("/proc/{pid}/exe"))).map_err(|error| match error {
        Error::Unsupported { reason, .. } => Error::Unsupported {
            path: exe.to_owned(),
            reason,
        },
        error => error,
    })
}

/// Returns why the program in a file cannot be recorded, as far as its file tells. `None`: it can be, or it is a script, or it is not
/// there.
#[must_use]
pub fn why_not_recorded(program: &Path) -> Option<Diagnostic> {
    if !is_elf(program) {
        return None;
    }
    match way_into(program) {
        Err(Error::Unsupported { reason, .. }) => Some(reason),
        _ => None,
    }
}

/// Refuses a program that is damaged or of another machine, and one with a sanitizer whose memory lies where translated
/// code is to be. A script is none.
pub(crate) fn refuse_full(exe: &Path) -> Result<()> {
    refuse_other_elf(exe)?;
    let module = match Module::open(exe) {
        Ok(module) => module,
        // It may be executable all the same.
        Err(debuginfo::Error::NotElf { .. } | debuginfo::Error::Open { .. }) => return Ok(()),
        Err(error) => {
            return Err(Error::Unsupported {
                path: exe.to_owned(),
                reason: Diagnostic {
                    message: error.to_string(),
                    hint: error.hint().map(str::to_owned),
                },
            });
        }
    };
    let Some(sanitizer) = sanitizers::of_program(&module) else {
        return Ok(());
    };
    let what = format!(
        "it was built with {sanitizer}, whose memory lies where Hindsight keeps translated code"
    );
    Err(Error::Unsupported {
        path: exe.to_owned(),
        reason: Diagnostic::new(what).with_hint("build it without, or with another sanitizer"),
    })
}

/// Refuses a program because of a library mapped with it.
pub(crate) fn check_mapped(exe: &Path, maps: &Maps) -> Result<()> {
    sanitizers::mapped(maps).map_or(Ok(()), |sanitizer| Err(has_sanitizer(exe, sanitizer)))
}

fn has_sanitizer(exe: &Path, sanitizer: &str) -> Error {
    Error::Unsupported {
        path: exe.to_owned(),
        reason: Diagnostic::new(format!(
            "it was built with {sanitizer}, or a library of it was, whose memory lies where Hindsight keeps return addresses"
        ))
        .with_hint("build it without, or with AddressSanitizer"),
    }
}

/// Returns whether Frida will probably be needed for a program, so that it can be started in parallel.
pub(super) fn may_need_frida(program: &OsStr) -> bool {
    if !Way::may_be_frida() {
        return false;
    }
    let found = find_in_path(program).and_then(|path| Module::open(path).ok());
    // A script's interpreter is known only once the kernel has found it.
    found.is_none_or(|module| Way::of(&module) == Ok(Way::Frida))
}

pub(super) fn read_maps(pid: i32) -> Result<Maps> {
    Maps::read(pid).map_err(Error::system("read what the program has mapped"))
}

/// Returns the library to load: a separate copy if an earlier recording left the library in the process.
pub(super) fn runtime_for(pid: i32, way: Way) -> Result<PathBuf> {
    let library = match way {
        Way::Frida => runtime::LIBRARY,
        Way::Loader | Way::LoaderForGo => runtime::SELF_CONTAINED,
    };
    let mapped = read_maps(pid)?.files();
    let mut copy = 1;
    loop {
        let candidate = runtime::library_path(library, copy)?;
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
            reason: Diagnostic::new(message.as_str())
                .with_hint("is it yours, and is no debugger attached?"),
        },
        _ => error.into(),
    }
}

pub(super) fn owner(pid: i32) -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}")).map_or(u32::MAX, |metadata| metadata.uid())
}

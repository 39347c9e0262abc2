//! Installs the pinned Frida wheel into the user's cache, once.
//!
//! Invariant: nothing is run from a wheel whose sha256 is not pinned here, and a half-made installation is never
//! used (it is built beside its place and renamed). One process installs at a time; the others wait for it.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::{fs::DirBuilderExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// The pinned version. Versions before 17.20.0 corrupt programs that use AVX-512 under instruction recording.
pub const VERSION: &str = "17.25.2";

/// sha256 of the wheels of [`VERSION`] that may be installed: manylinux x86-64, CPython's stable interface.
const DIGESTS: &[&str] = &[WHEEL_SHA256];
const WHEEL_SHA256: &str = "55cb5f7f6f75922a37e451449ec71e695400e3d6a009c275c285abf88a49dd53";

/// Returns the folder in the user's cache for everything that can be recreated (0700).
///
/// # Errors
/// When the user has no cache folder, or it cannot be created.
pub fn cache_folder() -> Result<PathBuf> {
    let base = directories::BaseDirs::new().ok_or(Error::NoCacheFolder)?;
    let folder = base.cache_dir().join("hindsight");
    create_private(&folder)?;
    Ok(folder)
}

/// Returns the folder that holds the installed `frida` package, installing it first if need be.
/// `progress` receives one line per step, and nothing when there is nothing to do.
///
/// # Errors
/// [`Error::MissingTool`] without python3 or pip, [`Error::Install`] when the wheel cannot be fetched,
/// [`Error::WrongDigest`] when it is not the pinned one, [`Error::File`] when the cache cannot be written to.
pub fn ensure(progress: &dyn Fn(&str)) -> Result<PathBuf> {
    let installer = Installer {
        cache: &cache_folder()?,
        python: Path::new("python3"),
        digests: DIGESTS,
    };
    installer.ensure(progress)
}

/// Where to install, with which Python, and the allowed wheels.
struct Installer<'a> {
    cache: &'a Path,
    python: &'a Path,
    digests: &'a [&'a str],
}

impl Installer<'_> {
    fn ensure(&self, progress: &dyn Fn(&str)) -> Result<PathBuf> {
        let place = self.cache.join(format!("frida-{VERSION}"));
        let is_installed = || place.join("frida").is_dir();
        if is_installed() {
            return Ok(place);
        }
        let _lock = self.lock(progress)?;
        if is_installed() {
            return Ok(place);
        }
        let work = self.cache.join(format!("frida-{VERSION}.partial"));
        // A killed installer left it: we hold the lock, so no other installer is running.
        remove(&work)?;
        let result = self.install(&work, &place, progress);
        // The rest of a failed attempt is useless; report the error of the attempt itself.
        let _ = remove(&work);
        result.map(|()| place)
    }

    /// Waits until no other process installs. The kernel releases the lock when its holder ends, for any reason.
    fn lock(&self, progress: &dyn Fn(&str)) -> Result<File> {
        let path = self.cache.join(format!("frida-{VERSION}.lock"));
        let failed = |action| file_error(action, &path);
        let file = File::create(&path).map_err(failed("create"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress("waiting for another hindsight, which is installing Frida");
                file.lock().map_err(failed("lock"))?;
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock")(error)),
        }
        Ok(file)
    }

    fn install(&self, work: &Path, place: &Path, progress: &dyn Fn(&str)) -> Result<()> {
        self.require("python3", "python3", &["--version"])?;
        self.require("pip", "python3-pip", &["-m", "pip", "--version"])?;
        progress(&format!("fetching Frida {VERSION} (52 MB, once)"));
        let download = work.join("download");
        create_private(&download)?;
        let requirement = format!("frida=={VERSION}");
        self.pip(
            &[
                "download",
                "--no-deps",
                "--only-binary=:all:",
                "--quiet",
                "-d",
            ],
            &download,
            &requirement,
        )?;
        let wheel = only_wheel(&download)?;
        self.check_digest(&wheel)?;
        progress("installing it into your cache folder");
        let target = work.join("packages");
        self.pip(
            &[
                "install",
                "--no-deps",
                "--no-index",
                "--quiet",
                "--no-compile",
                "--target",
            ],
            &target,
            &wheel.to_string_lossy(),
        )?;
        // Without its package, an existing folder is not an installation.
        remove(place)?;
        fs::rename(&target, place).map_err(file_error("create", place))
    }

    fn run(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.python);
        // Python does not start in a folder that was removed.
        command.args(args).current_dir("/").stdin(Stdio::null());
        command
    }

    fn require(&self, tool: &'static str, package: &'static str, args: &[&str]) -> Result<()> {
        let missing = |detail: String| Error::MissingTool {
            tool,
            package,
            detail,
        };
        let output = self
            .run(args)
            .output()
            .map_err(|error| missing(format!("python3: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        if is_interrupted(&output) {
            return Err(Error::InstallInterrupted { version: VERSION });
        }
        Err(missing(why(&output)))
    }

    fn pip(&self, args: &[&str], folder: &Path, what: &str) -> Result<()> {
        let failed = |detail: String| Error::Install {
            version: VERSION,
            detail,
        };
        let output = self
            .run(&["-m", "pip", "--disable-pip-version-check"])
            .args(args)
            .arg(folder)
            .arg(what)
            .output()
            .map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        if is_interrupted(&output) {
            return Err(Error::InstallInterrupted { version: VERSION });
        }
        Err(failed(why(&output)))
    }

    fn check_digest(&self, wheel: &Path) -> Result<()> {
        let bytes = fs::read(wheel).map_err(file_error("read", wheel))?;
        let found = hex(&Sha256::digest(&bytes));
        if self.digests.contains(&found.as_str()) {
            return Ok(());
        }
        Err(Error::WrongDigest {
            wheel: wheel.file_name().unwrap_or_default().into(),
            len_bytes: bytes.len() as u64,
            found,
        })
    }
}

fn only_wheel(folder: &Path) -> Result<PathBuf> {
    let found = fs::read_dir(folder)
        .map_err(file_error("read", folder))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    found.ok_or_else(|| Error::Install {
        version: VERSION,
        detail: "it fetched no wheel".into(),
    })
}

fn create_private(folder: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(file_error("create", folder))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(file_error("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File {
        action,
        path,
        source,
    }
}

/// Returns `bytes` in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether Ctrl-C ended pip: the terminal interrupts all processes in the foreground.
fn is_interrupted(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let is_told = ["KeyboardInterrupt", "Operation cancelled by user"]
        .iter()
        .any(|words| said.contains(words));
    is_told || output.status.signal() == Some(libc::SIGINT)
}

/// Returns the last output of a failed command, or its exit status without any.
fn why(output: &Output) -> String {
    let said = last_lines(&output.stderr);
    if said.is_empty() {
        return output.status.to_string();
    }
    said
}

/// Returns the last three lines, joined.
fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

#[cfg(test)]
mod tests;

//! Installs the pinned Frida wheel into the user's cache, once.
//!
//! Invariant: nothing is run from a wheel whose sha256 is not pinned here, and a half-made installation is never
//! used (it is built beside its place and renamed).

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// The one version that is used. Older than 17.20.0 corrupts programs that use AVX-512 under instruction recording.
pub const VERSION: &str = "17.25.2";

/// sha256 of the wheels of [`VERSION`] that may be installed: manylinux x86-64, CPython's stable interface.
const DIGESTS: &[&str] = &[WHEEL_SHA256];
const WHEEL_SHA256: &str = "55cb5f7f6f75922a37e451449ec71e695400e3d6a009c275c285abf88a49dd53";

/// Returns the folder under the user's cache where everything that can be made again is kept (0700).
///
/// # Errors
/// When the user has no cache folder, or it cannot be created.
pub fn cache_folder() -> Result<PathBuf> {
    let base = directories::BaseDirs::new().ok_or(Error::NoCacheFolder)?;
    let folder = base.cache_dir().join("hindsight");
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(|source| Error::File {
            action: "create",
            path: folder.clone(),
            source,
        })?;
    Ok(folder)
}

/// Returns the folder that holds the installed `frida` package, installing it first if need be.
/// `progress` is told one line per step, and nothing when there is nothing to do.
///
/// # Errors
/// [`Error::MissingTool`] without python3 or pip, [`Error::Install`] when the wheel cannot be fetched,
/// [`Error::WrongDigest`] when it is not the pinned one.
pub fn ensure(progress: &dyn Fn(&str)) -> Result<PathBuf> {
    let place = cache_folder()?.join(format!("frida-{VERSION}"));
    if place.join("frida").is_dir() {
        return Ok(place);
    }
    let work = cache_folder()?.join(format!("frida-{VERSION}.{}", std::process::id()));
    let result = install(&work, &place, progress);
    // What is left of a failed attempt is of no use to anybody.
    let _ = fs::remove_dir_all(&work);
    result.map(|()| place)
}

fn install(work: &Path, place: &Path, progress: &dyn Fn(&str)) -> Result<()> {
    require("python3", "python3", &["--version"])?;
    require("pip", "python3-pip", &["-m", "pip", "--version"])?;
    progress(&format!("fetching Frida {VERSION} (52 MB, once)"));
    let download = work.join("download");
    fs::create_dir_all(&download).map_err(|source| Error::File {
        action: "create",
        path: download.clone(),
        source,
    })?;
    let requirement = format!("frida=={VERSION}");
    pip(
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
    check_digest(&wheel)?;
    progress("installing it into your cache folder");
    let target = work.join("packages");
    pip(
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
    match fs::rename(&target, place) {
        // Somebody else installed the same thing meanwhile.
        Err(_) if place.join("frida").is_dir() => Ok(()),
        renamed => renamed.map_err(|source| Error::File {
            action: "create",
            path: place.into(),
            source,
        }),
    }
}

fn require(tool: &'static str, package: &'static str, args: &[&str]) -> Result<()> {
    let missing = |detail: String| Error::MissingTool {
        tool,
        package,
        detail,
    };
    let output = Command::new("python3")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| missing(format!("python3: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(missing(last_lines(&output.stderr)))
}

fn pip(args: &[&str], folder: &Path, what: &str) -> Result<()> {
    let output = Command::new("python3")
        .args(["-m", "pip", "--disable-pip-version-check"])
        .args(args)
        .arg(folder)
        .arg(what)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::Install {
            version: VERSION,
            detail: error.to_string(),
        })?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Install {
        version: VERSION,
        detail: last_lines(&output.stderr),
    })
}

fn only_wheel(folder: &Path) -> Result<PathBuf> {
    let found = fs::read_dir(folder)
        .map_err(|source| Error::File {
            action: "read",
            path: folder.into(),
            source,
        })?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    found.ok_or_else(|| Error::Install {
        version: VERSION,
        detail: "pip fetched no wheel".into(),
    })
}

fn check_digest(wheel: &Path) -> Result<()> {
    let bytes = fs::read(wheel).map_err(|source| Error::File {
        action: "read",
        path: wheel.into(),
        source,
    })?;
    let found = hex(&Sha256::digest(&bytes));
    if DIGESTS.contains(&found.as_str()) {
        return Ok(());
    }
    Err(Error::WrongDigest {
        path: wheel.into(),
        found,
    })
}

/// Returns `bytes` in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_with_another_digest_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = folder.path().join("frida.whl");
        fs::write(&wheel, b"not the wheel").unwrap();
        assert_eq!(only_wheel(folder.path()).unwrap(), wheel);
        assert!(matches!(
            check_digest(&wheel),
            Err(Error::WrongDigest { .. })
        ));
    }

    #[test]
    fn only_the_last_lines_of_an_error_are_shown() {
        assert_eq!(last_lines(b"a\nb\n\nc\nd\n"), "b; c; d");
        assert_eq!(last_lines(b""), "");
    }
}

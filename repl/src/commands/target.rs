//! Checks of a target before anything is downloaded, installed or started for it: whether it exists and may be
//! executed. The recorder checks everything else.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Refuses a program that cannot possibly be started.
///
/// # Errors
/// When it does not exist, in `PATH` if it has no slash, or is not executable.
pub fn check_program(program: &OsStr) -> Result<(), Error> {
    if program.is_empty() {
        return Err(Error::usage("the name of the program is empty", None));
    }
    let found = match Path::new(program).components().count() {
        1 if !program.to_string_lossy().contains('/') => in_path(program),
        _ => Some(PathBuf::from(program)),
    };
    let refusal = match found.as_deref().map(Path::metadata) {
        None => Some(libc::ENOENT),
        Some(Err(error)) => error.raw_os_error(),
        Some(Ok(meta)) if meta.is_dir() || meta.permissions().mode() & 0o111 == 0 => {
            Some(libc::EACCES)
        }
        Some(Ok(_)) => None,
    };
    match refusal {
        None => Ok(()),
        Some(code) => Err(Error::Record {
            source: recorder::Error::Start {
                program: program.to_string_lossy().into_owned(),
                source: io::Error::from_raw_os_error(code),
            },
        }),
    }
}

/// Refuses a process that cannot possibly be attached to.
///
/// # Errors
/// When it does not exist, or is this process.
pub fn check_process(pid: i32) -> Result<(), Error> {
    let attach = |reason: &str| Error::Record {
        source: recorder::Error::Attach {
            pid,
            reason: reason.into(),
        },
    };
    if i64::from(pid) == i64::from(std::process::id()) {
        return Err(attach("it is Hindsight itself"));
    }
    if !Path::new("/proc").join(pid.to_string()).exists() {
        return Err(attach("there is no such process"));
    }
    Ok(())
}

/// Finds a program as execvp does: the first executable one in `PATH`, else the first existing one.
fn in_path(program: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut found: Vec<PathBuf> = std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .filter(|file| file.is_file())
        .collect();
    let executable = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
    };
    match found.iter().position(executable) {
        Some(i) => Some(found.swap_remove(i)),
        None => found.into_iter().next(),
    }
}

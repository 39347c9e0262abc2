//! Where the daemon's files are, and whether their folder can be trusted.
//!
//! Any process that may write to the folder could pose as the daemon. The folder must therefore be a real folder that
//! belongs to the user and is closed to others.

use std::ffi::OsString;
use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The files of one user's daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    folder: PathBuf,
}

impl Paths {
    /// Returns `$XDG_RUNTIME_DIR/hindsight`, or `/tmp/hindsight-UID` if the variable is not set.
    #[must_use]
    pub fn of_environment() -> Paths {
        Paths::choose(std::env::var_os("XDG_RUNTIME_DIR"), own_uid())
    }

    /// Returns the paths in a folder; for tests.
    #[must_use]
    pub fn in_folder(folder: PathBuf) -> Paths {
        Paths { folder }
    }

    fn choose(runtime: Option<OsString>, uid: u32) -> Paths {
        // The specification of the variable says to ignore a relative path.
        let runtime = runtime.map(PathBuf::from).filter(|path| path.is_absolute());
        Paths {
            folder: match runtime {
                Some(runtime) => runtime.join("hindsight"),
                None => PathBuf::from(format!("/tmp/hindsight-{uid}")),
            },
        }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket on which the daemon listens.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join("daemon.sock")
    }

    /// The file that the daemon keeps locked while it lives.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.folder.join("daemon.lock")
    }

    /// The daemon's log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.join("daemon.log")
    }

    /// The list of sessions, read after a daemon's sudden death.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.folder.join("sessions.json")
    }

    /// Creates the folder if it does not exist, and checks that it belongs to the user alone.
    ///
    /// # Errors The folder cannot be created or trusted.
    pub fn prepare(&self) -> Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io(format!("make {}", self.folder.display()))(error));
            }
            _ => {}
        }
        self.verify().map(|_| ())
    }

    /// Returns whether the folder exists. If it does, checks that it belongs to the user alone.
    ///
    /// # Errors The folder cannot be trusted.
    pub fn verify(&self) -> Result<bool> {
        let meta = match self.folder.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => {
                return Err(Error::io(format!("look at {}", self.folder.display()))(
                    error,
                ));
            }
        };
        match refusal(&meta, own_uid()) {
            None => Ok(true),
            Some((reason, next)) => Err(Error::Folder {
                path: self.folder.clone(),
                reason,
                next: next.replace("{}", &self.folder.display().to_string()),
            }),
        }
    }
}

/// Returns the effective user id of this process.
#[must_use]
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns what is wrong with a folder, and what to do about it.
fn refusal(meta: &Metadata, uid: u32) -> Option<(String, &'static str)> {
    let elsewhere = "remove it, or set XDG_RUNTIME_DIR to a folder of yours";
    let mode = meta.permissions().mode() & 0o777;
    if meta.file_type().is_symlink() {
        Some(("is a symbolic link".to_owned(), elsewhere))
    } else if !meta.is_dir() {
        Some(("is not a folder".to_owned(), elsewhere))
    } else if meta.uid() != uid {
        Some((
            format!("belongs to user {}, not to you", meta.uid()),
            elsewhere,
        ))
    } else if mode & 0o077 != 0 {
        Some((
            format!("is open to others (mode {mode:o})"),
            "close it with: chmod 700 {}",
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_folder_is_the_sessions_or_one_in_tmp() {
        let chosen = |runtime: Option<&str>| Paths::choose(runtime.map(OsString::from), 1000);
        assert_eq!(
            chosen(Some("/run/user/1000")).socket(),
            Path::new("/run/user/1000/hindsight/daemon.sock")
        );
        for none in [None, Some(""), Some("relative")] {
            assert_eq!(
                chosen(none).socket(),
                Path::new("/tmp/hindsight-1000/daemon.sock")
            );
        }
    }

    #[test]
    fn a_new_folder_is_closed_to_others() {
        let scratch = tempfile::tempdir().unwrap();
        let paths = Paths::in_folder(scratch.path().join("new"));
        assert!(!paths.verify().unwrap());
        paths.prepare().unwrap();
        paths.prepare().unwrap();
        let mode = paths.folder().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(paths.verify().unwrap());
    }

    #[test]
    fn folders_that_others_could_use_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let refused = |name: &str| {
            let paths = Paths::in_folder(scratch.path().join(name));
            let error = paths.prepare().unwrap_err();
            format!("{error}; {}", error.hint().unwrap())
        };
        fs::create_dir(scratch.path().join("real")).unwrap();
        fs::set_permissions(
            scratch.path().join("real"),
            fs::Permissions::from_mode(0o700),
        )
        .unwrap();
        std::os::unix::fs::symlink("real", scratch.path().join("link")).unwrap();
        assert!(refused("link").contains("is a symbolic link"));
        fs::write(scratch.path().join("file"), "").unwrap();
        assert!(refused("file").contains("is not a folder"));
        fs::create_dir(scratch.path().join("open")).unwrap();
        for mode in [0o755, 0o770, 0o701] {
            let path = scratch.path().join("open");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let text = refused("open");
            assert!(text.contains(&format!("mode {mode:o}")), "{text}");
            assert!(text.contains("chmod 700 /"), "{text}");
        }
    }

    #[test]
    fn another_users_folder_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let paths = Paths::in_folder(scratch.path().join("ours"));
        paths.prepare().unwrap();
        let meta = paths.folder().metadata().unwrap();
        let (reason, _) = refusal(&meta, own_uid() + 1).unwrap();
        assert_eq!(reason, format!("belongs to user {}, not to you", own_uid()));
        assert_eq!(refusal(&meta, own_uid()), None);
    }
}

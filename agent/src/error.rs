//! The errors between the recorder and its agent in the target.

use std::{io, path::PathBuf};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Each message reads after "cannot"; [`Error::hint`] names the next step, if there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tool for the set-up is missing.
    #[error("find a usable {tool}: {detail}")]
    MissingTool {
        /// The missing tool.
        tool: &'static str,
        /// Its Debian package.
        package: &'static str,
        /// The result of the attempt.
        detail: String,
    },
    /// pip could not fetch or install the pinned wheel.
    #[error("install Frida {version} with pip: {detail}")]
    Install {
        /// The pinned version.
        version: &'static str,
        /// The last lines pip printed.
        detail: String,
    },
    /// Ctrl-C ended pip.
    #[error("install Frida {version}: interrupted")]
    InstallInterrupted {
        /// The pinned version.
        version: &'static str,
    },
    /// The fetched wheel is not the pinned one, and was not installed.
    #[error(
        "verify the Frida wheel {wheel}: its {len_bytes} bytes have the sha256 {found}, which is not the pinned one"
    )]
    WrongDigest {
        /// The file's name.
        wheel: PathBuf,
        /// Its length.
        len_bytes: u64,
        /// Its digest, in hex.
        found: String,
    },
    /// The Frida that is linked in is another version than the tested one.
    #[error("use Frida {found}, which is linked in: {pinned} is needed")]
    OtherVersion {
        /// Its version.
        found: String,
        /// The pinned version.
        pinned: &'static str,
    },
    /// There is no folder for data that is kept between runs.
    #[error("find your cache folder")]
    NoCacheFolder,
    /// A file in the cache folder could not be written or read.
    #[error("{action} {path}")]
    File {
        /// The attempted action, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The helper process that drives Frida could not be started or has ended.
    #[error("talk to the Frida helper process: {detail}")]
    HelperGone {
        /// The known details.
        detail: String,
    },
    /// The helper process does not answer; it was ended.
    #[error("{action}: Frida did not answer within {seconds} s")]
    HelperStuck {
        /// The requested action, as a verb.
        action: String,
        /// The length of the wait.
        seconds: u64,
    },
    /// Frida refused.
    #[error("{action}: {message}")]
    Frida {
        /// The requested action, as a verb.
        action: String,
        /// Its answer.
        message: String,
        /// It took too long, by its own measure.
        is_timeout: bool,
    },
    /// Shared memory could not be made.
    #[error("share {bytes} bytes of memory with the program")]
    Shared {
        /// How much.
        bytes: u64,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The runtime in the target answered something unexpected.
    #[error("start the runtime inside the program: {detail}")]
    Runtime {
        /// Its answer.
        detail: String,
        /// The next thing to check.
        hint: Option<String>,
    },
}

impl Error {
    /// Returns whether Frida took too long, by its own measure or by ours: a retry may well succeed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::HelperStuck { .. } => true,
            Self::Frida { is_timeout, .. } => *is_timeout,
            _ => false,
        }
    }

    /// Returns the next step, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::MissingTool { package, .. } => Some(format!(
                "install it (Debian: apt-get install {package}) and try again"
            )),
            Self::Install { .. } => Some(
                "see that this machine reaches PyPI (or what pip's index-url says) and try again"
                    .to_owned(),
            ),
            Self::InstallInterrupted { .. } => {
                Some("run the command again: Frida is fetched once, before the first recording".to_owned())
            }
            Self::WrongDigest { .. } => Some(
                "try again in case the download was cut short, and see that pip's index-url serves PyPI's files"
                    .to_owned(),
            ),
            Self::OtherVersion { pinned, .. } => Some(format!(
                "build Hindsight with the devkit of Frida {pinned} (docs/install.md)"
            )),
            Self::NoCacheFolder => Some("set HOME or XDG_CACHE_HOME".to_owned()),
            Self::File { .. } => Some(
                "make your cache folder writable, or set XDG_CACHE_HOME to a folder that is"
                    .to_owned(),
            ),
            Self::HelperStuck { .. } => Some("try again".to_owned()),
            Self::Runtime { hint, .. } => hint.clone(),
            Self::HelperGone { .. } => Some(
                "check that python3 is version 3.7 or newer and that the Frida package is whole"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

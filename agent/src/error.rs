//! What can go wrong between the recorder and the target's inside.

use std::{io, path::PathBuf};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Each message reads after "failed to" and names the next step where there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tool that the set-up needs is not there.
    #[error(
        "find a usable {tool}: {detail}; install it (Debian: apt-get install {package}) and try again"
    )]
    MissingTool {
        /// What was looked for.
        tool: &'static str,
        /// Its Debian package.
        package: &'static str,
        /// What happened when it was tried.
        detail: String,
    },
    /// pip could not fetch or install the pinned wheel.
    #[error(
        "install Frida {version} with pip: {detail}; see that this machine reaches PyPI (or what pip's index-url says) and \
         try again"
    )]
    Install {
        /// The pinned version.
        version: &'static str,
        /// The last lines pip printed.
        detail: String,
    },
    /// The fetched wheel is not the pinned one, and was not installed.
    #[error(
        "verify the Frida wheel {wheel}: its {len_bytes} bytes have the sha256 {found}, which is not the pinned one; try \
         again in case the download was cut short, and see that pip's index-url serves PyPI's files"
    )]
    WrongDigest {
        /// The file's name.
        wheel: PathBuf,
        /// Its length.
        len_bytes: u64,
        /// Its digest, in hex.
        found: String,
    },
    /// No folder for what is kept between runs.
    #[error("find your cache folder; set HOME or XDG_CACHE_HOME")]
    NoCacheFolder,
    /// A file in the cache folder could not be written or read.
    #[error(
        "{action} {path}; make your cache folder writable, or set XDG_CACHE_HOME to a folder that is"
    )]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The helper process that drives Frida could not be started or has gone.
    #[error("talk to the Frida helper process: {detail}")]
    HelperGone {
        /// What is known.
        detail: String,
    },
    /// The helper process does not answer; it was ended.
    #[error("{action}: Frida did not answer within {seconds} s; try again")]
    HelperStuck {
        /// What was asked of it, as a verb.
        action: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// Frida refused.
    #[error("{action}: {message}")]
    Frida {
        /// What was asked of it, as a verb.
        action: String,
        /// What it answered.
        message: String,
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
        /// What it answered.
        detail: String,
    },
}

impl Error {
    /// Tells whether Frida took too long, by its own measure or by ours: another try may well succeed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::HelperStuck { .. } => true,
            Self::Frida { message, .. } => message.contains("timed out"),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frida_says_itself_that_it_took_too_long() {
        let said = |message: &str| Error::Frida {
            action: "attach to process 7".into(),
            message: message.into(),
        };
        assert!(said("unexpectedly timed out while trying to sync up with agent").is_timeout());
        assert!(!said("unable to find process with pid 7").is_timeout());
    }
}

//! Errors and warnings: an [`Error`] prevents an answer, a [`Warning`] makes it incomplete.

use std::path::PathBuf;

/// Why a file could not be opened as a module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read or mapped.
    #[error("open {path}: {source}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error from the system.
        #[source]
        source: std::io::Error,
    },
    /// The file lacks the ELF magic number.
    #[error("open {path}: not an ELF file", path = path.display())]
    NotElf {
        /// The file.
        path: PathBuf,
    },
    /// A 32-bit or big-endian ELF file.
    #[error("open {path}: {what} ELF file", path = path.display())]
    WrongClass {
        /// The file.
        path: PathBuf,
        /// `32-bit` or `big-endian`.
        what: &'static str,
    },
    /// An ELF file for another processor.
    #[error("open {path}: built for machine {machine}", path = path.display())]
    WrongMachine {
        /// The file.
        path: PathBuf,
        /// `e_machine` of the ELF header.
        machine: u16,
    },
    /// An object file, a core dump or another ELF file that is never mapped as code.
    #[error("open {path}: {what} is not a program or a shared library", path = path.display())]
    NotLoadable {
        /// The file.
        path: PathBuf,
        /// What kind of ELF file it is.
        what: &'static str,
    },
    /// A file that cannot be read as a core file.
    #[error("open {path}: no core file: {what}", path = path.display())]
    NotCore {
        /// The file.
        path: PathBuf,
        /// What it is, or lacks.
        what: &'static str,
    },
    /// The headers contradict the file's length or themselves.
    #[error("open {path}: damaged ELF headers: {source}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with the headers.
        #[source]
        source: object::read::Error,
    },
}

impl Error {
    /// Returns the next step, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::NotElf { .. } => Some("name a compiled program or library"),
            Error::WrongClass { .. } => Some("only 64-bit little-endian programs can be used"),
            Error::WrongMachine { .. } => Some("only x86-64 (62) can be used"),
            Error::Open { .. }
            | Error::NotLoadable { .. }
            | Error::NotCore { .. }
            | Error::Damaged { .. } => None,
        }
    }
}

/// The crate's result type.
pub type Result<T> = std::result::Result<T, Error>;

/// Something that could not be read. The answers that come with it are correct but incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A file named by `.gnu_debuglink` or `.gnu_debugaltlink` was found but does not belong to the module.
    #[error("debug file {path} ignored: {why}", path = path.display())]
    DebugFileRefused {
        /// The file.
        path: PathBuf,
        /// Why it was not used.
        why: String,
    },
    /// The supplementary file (made by dwz) was not found. Names and types in it are unknown.
    #[error("supplementary debug file {name} not found; some names and types are unknown")]
    SupplementMissing {
        /// The name in `.gnu_debugaltlink`.
        name: String,
    },
    /// A debug section could not be decompressed.
    #[error("section {section} of {path} ignored: {why}", path = path.display())]
    BadSection {
        /// The file that holds the section.
        path: PathBuf,
        /// The section's name.
        section: String,
        /// What is wrong with the section.
        why: String,
    },
    /// The file with a unit's debug information was not found, or lacks that unit. Functions of the unit are known as
    /// symbols only.
    #[error(
        "split debug file {name} not found, or without the unit it was named for; functions of that unit are known by \
         their symbols only"
    )]
    SplitUnitMissing {
        /// The path in `DW_AT_dwo_name`, joined to the unit's directory.
        name: String,
    },
    /// A unit's debug information is damaged from some point on.
    #[error(
        "debug information of the unit at offset {offset:#x} of {path} is damaged: {why}",
        path = path.display()
    )]
    BadUnit {
        /// The file that contains the unit. For a split unit, the file that names it.
        path: PathBuf,
        /// Offset of the unit's header in `.debug_info`.
        offset: u64,
        /// What is wrong with the unit.
        why: String,
    },
}

//! Defines what a catalog holds, and how to tell what it was built from.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::control::{Control, FunctionDef};
use crate::definitions;
use crate::error::{Error, Result};
use crate::format::FileKind;
use crate::recording::Recording;
use crate::seal::{Part, SealState};

/// Everything in a catalog.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// Functions by id.
    pub functions: BTreeMap<u32, FunctionDef>,
    /// Modules by number.
    pub modules: BTreeMap<u32, ModuleInfo>,
    /// Sealed parts, in order.
    pub parts: Vec<Part>,
}

/// An ELF file that was mapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleInfo {
    /// Path of the file.
    pub path: String,
    /// GNU build id in hex.
    pub build_id: Option<String>,
    /// Where it was mapped first.
    pub addr: u64,
    /// Bytes from the first to the last mapped one.
    pub size: u64,
    /// True for libraries of the system.
    pub system: bool,
}

impl Contents {
    /// Reads what a catalog of the recording holds from the definitions and the seal state.
    ///
    /// # Errors
    /// Those of [`definitions::read_all`].
    pub fn read(recording: &Recording) -> Result<Self> {
        let mut contents = Self::default();
        definitions::read_all(recording, |control| contents.add(control))?;
        let header = recording.file_header(FileKind::SealState);
        contents.parts = SealState::read(&recording.seal_state_path(), header)?.parts;
        Ok(contents)
    }

    /// Adds what a definition says; other control events and repetitions change nothing.
    pub fn add(&mut self, control: Control) {
        match control {
            Control::Function(function) => {
                self.functions.entry(function.id).or_insert(function);
            }
            Control::ModuleLoad {
                module,
                path,
                build_id,
                addr,
                size,
                system,
                ..
            } => {
                self.modules.entry(module).or_insert(ModuleInfo {
                    path,
                    build_id,
                    addr,
                    size,
                    system,
                });
            }
            _ => {}
        }
    }
}

/// Stands for the state of a recording that a catalog was built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Returns the fingerprint of a small file that changes whenever the recording's columns do: the seal state.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of_file(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        let crc = u64::from(crc32c::crc32c(&bytes));
        Ok(Self((bytes.len() as u64) << 32 | crc))
    }
}

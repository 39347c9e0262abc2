//! Copies definitions out of the log before its segments are removed. After a crash the file is cut back to the last
//! checkpoint.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::control::Control;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::FrameKind;
use crate::log::frame_writer::FrameWriter;
use crate::storage::{Disk, Storage};

/// A file of definitions, and the length of its valid part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionsFile {
    /// The file: a file header and CONTROL frames.
    pub path: PathBuf,
    /// Length of the valid part, in bytes.
    pub len: u64,
}

/// The writer of a file of definitions; the first definition creates the file.
pub(super) struct Definitions {
    path: PathBuf,
    header: FileHeader,
    file: Option<FrameWriter>,
    /// Whether the file's name is not yet on the disk.
    is_new: bool,
}

impl Definitions {
    /// Continues after the first `len` bytes of the file and forgets the rest; 0 stands for no file.
    pub(super) fn resume(path: PathBuf, header: FileHeader, len: u64) -> Result<Self> {
        let file = match len {
            0 => {
                remove_if_there(&path)?;
                None
            }
            len => Some(FrameWriter::resume(&path, header, len)?),
        };
        Ok(Self {
            path,
            header,
            file,
            is_new: len == 0,
        })
    }

    /// Appends a definition; ignores other control events.
    pub(super) fn push(&mut self, control: &Control) -> Result<()> {
        if !control.is_definition() {
            return Ok(());
        }
        let what = "a definition";
        let bytes = rmp_serde::to_vec(control).map_err(|source| Error::Encode { what, source })?;
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(FrameWriter::create(&Disk, &self.path, self.header)?),
        };
        file.append(FrameKind::Control, 0, [&bytes, &[]])?;
        Ok(())
    }

    /// Syncs everything appended, and the file's name.
    pub(super) fn sync(&mut self) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        file.sync()?;
        if self.is_new
            && let Some(dir) = self.path.parent()
        {
            Disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
        }
        self.is_new = false;
        Ok(())
    }

    /// Returns the file and its length; none without definitions.
    pub(super) fn file(&self) -> Option<DefinitionsFile> {
        let file = self.file.as_ref()?;
        Some(DefinitionsFile {
            path: self.path.clone(),
            len: file.len(),
        })
    }

    /// Returns the length of the file in bytes, 0 when there is none.
    pub(super) fn len(&self) -> u64 {
        self.file.as_ref().map_or(0, FrameWriter::len)
    }
}

pub(super) fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

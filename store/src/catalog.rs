//! Finds functions, modules and parts by number without reading the whole recording, and never stands in a reader's way.
//!
//! The catalog (sled) is derived: built once into a folder of its own, then renamed into place, never changed
//! afterwards. A missing, locked, stale or broken one is not an error of the recording: [`Index`] then answers from
//! the definitions and the seal state themselves. sled loses recent inserts when its process is killed, and locks its
//! folder for one process: that is why nothing lives only here.

mod contents;
mod sled_files;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::OnceLock;

pub use contents::{Contents, Fingerprint, ModuleInfo};
use sled_files::SledFiles;

use crate::control::FunctionDef;
use crate::error::Result;
use crate::recording::Recording;
use crate::seal::Part;

/// Writes the catalog folder `dir` anew, replacing what is there.
///
/// # Errors
/// [`crate::Error::Catalog`] or [`crate::Error::Io`]; the recording is then without a catalog, or keeps the old one.
pub fn build(dir: &Path, fingerprint: Fingerprint, contents: &Contents) -> Result<()> {
    sled_files::build(dir, fingerprint, contents)
}

/// Writes the catalog of a recording anew, from what is sealed of it now.
///
/// # Errors
/// Those of [`build`] and of [`Contents::read`].
pub fn rebuild(recording: &Recording) -> Result<()> {
    let fingerprint = Fingerprint::of_file(&recording.seal_state_path())?;
    let contents = Contents::read(recording)?;
    build(&recording.catalog_dir(), fingerprint, &contents)
}

/// Answers questions about functions, modules and parts, from the catalog or without it.
pub struct Index<L> {
    catalog: std::result::Result<SledFiles, String>,
    load: L,
    loaded: OnceLock<Contents>,
}

impl<L: Fn() -> Result<Contents>> Index<L> {
    /// Opens the catalog folder `dir` if it was built from what `fingerprint` stands for.
    /// `load` reads the same from the recording itself and is called at most once, when the catalog is of no use.
    pub fn open(dir: &Path, fingerprint: Fingerprint, load: L) -> Self {
        let catalog = SledFiles::open(dir, fingerprint).map_err(|error| error.to_string());
        if let Err(reason) = &catalog {
            tracing::debug!(%reason, "going on without the catalog");
        }
        Self {
            catalog,
            load,
            loaded: OnceLock::new(),
        }
    }

    /// Returns why the catalog is not used, or `None` when it is.
    pub fn why_not_catalog(&self) -> Option<&str> {
        self.catalog.as_ref().err().map(String::as_str)
    }

    /// Returns the definition of function `id`.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn function(&self, id: u32) -> Result<Option<FunctionDef>> {
        match self.ask(|catalog| catalog.function(id)) {
            Some(function) => Ok(function),
            None => Ok(self.contents()?.functions.get(&id).cloned()),
        }
    }

    /// Returns what is known about module `id`.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn module(&self, id: u32) -> Result<Option<ModuleInfo>> {
        match self.ask(|catalog| catalog.module(id)) {
            Some(module) => Ok(module),
            None => Ok(self.contents()?.modules.get(&id).cloned()),
        }
    }

    /// Returns the sealed parts that hold events of `first_seq..=last_seq`, in order. The enter event of a call is in
    /// the part of its leave event.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn parts_between(&self, first_seq: u64, last_seq: u64) -> Result<Vec<Part>> {
        let mut parts = match self.ask(SledFiles::parts) {
            Some(parts) => parts,
            None => self.contents()?.parts.clone(),
        };
        parts.retain(|part| part.first_seq <= last_seq && part.end_seq > first_seq);
        Ok(parts)
    }

    /// Asks the catalog; `None` when it is of no use.
    fn ask<T>(&self, question: impl FnOnce(&SledFiles) -> Result<T>) -> Option<T> {
        let answer = question(self.catalog.as_ref().ok()?);
        if let Err(reason) = &answer {
            tracing::debug!(%reason, "the catalog cannot answer");
        }
        answer.ok()
    }

    fn contents(&self) -> Result<&Contents> {
        if let Some(contents) = self.loaded.get() {
            return Ok(contents);
        }
        let contents = (self.load)()?;
        Ok(self.loaded.get_or_init(|| contents))
    }
}

//! Which modules are searched for a name, and how names are qualified with modules.
//!
//! A name without a module refers to the nearest modules, never to an unrelated one that happens to contain the name.

use crate::address_space::{AddressSpace, Mapped};

impl AddressSpace {
    /// Returns the modules whose names need no qualification at `pc`, the nearest first: the module that contains `pc`,
    /// then the program itself, whose names come first for the dynamic linker too.
    pub fn near(&self, pc: u64) -> Vec<&Mapped> {
        let here = self.at(pc);
        let program = self.program();
        let program = program.filter(|own| here.is_none_or(|here| here.number != own.number));
        here.into_iter().chain(program).collect()
    }

    /// Returns all other modules, those of the system last.
    pub fn foreign(&self, pc: u64) -> Vec<&Mapped> {
        let near: Vec<u32> = self.near(pc).iter().map(|m| m.number).collect();
        let all = self.modules().iter();
        let mut others: Vec<&Mapped> = all.filter(|m| !near.contains(&m.number)).collect();
        others.sort_by_key(|m| m.is_system);
        others
    }

    /// Returns the modules called `name`.
    pub fn called(&self, name: &str) -> Vec<&Mapped> {
        let all = self.modules().iter();
        all.filter(|m| m.is_called(name)).collect()
    }

    fn program(&self) -> Option<&Mapped> {
        let first = self.modules().first();
        first.filter(|m| !m.is_system && !m.module.is_library())
    }
}

impl Mapped {
    /// Returns its file name.
    pub fn file_name(&self) -> String {
        let name = self.module.path().file_name();
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Returns whether `name` is its file name, with or without `.so` and what follows, or its soname.
    pub fn is_called(&self, name: &str) -> bool {
        let file = self.file_name();
        let stem = file.split_once(".so").map(|(stem, _)| stem);
        file == name || stem == Some(name) || self.module.soname() == Some(name)
    }

    /// Qualifies `name` with this module, for [`split_module`].
    pub fn with_name(&self, name: &str) -> String {
        let file = self.file_name();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        match file.contains(".so") || file.chars().all(is_word) {
            true => format!("{file}::{name}"),
            false => format!("'{file}'::{name}"),
        }
    }
}

/// Splits `module::name`. The module may be quoted.
pub fn split_module(name: &str) -> Option<(&str, &str)> {
    match name.strip_prefix('\'') {
        Some(quoted) => quoted.split_once("'::"),
        None => name.split_once("::"),
    }
}

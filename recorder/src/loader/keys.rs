//! Finds the C library's functions for thread-specific data (`pthread_key_create(3)`), whose first keys glibc keeps in the
//! thread's block.

use crate::arm::{LoadedModule, Modules};

/// Before glibc 2.34 they were in a library of their own, which not every program loads.
const LIBRARIES: [&str; 2] = ["libc.so.6", "libpthread.so.0"];

/// Addresses in the program; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadKeys {
    /// `pthread_key_create`.
    pub create: u64,
    /// `pthread_key_delete`.
    pub delete: u64,
    /// `pthread_setspecific`.
    pub set: u64,
}

impl ThreadKeys {
    /// Finds them if the program has glibc's library.
    pub fn find(modules: &Modules) -> Option<Self> {
        modules
            .loaded
            .iter()
            .filter(|module| !module.is_foreign && is_of_glibc(module))
            .find_map(in_module)
    }
}

fn is_of_glibc(module: &LoadedModule) -> bool {
    let soname = module.elf.as_deref().and_then(debuginfo::Module::soname);
    soname.is_some_and(|name| LIBRARIES.contains(&name))
}

fn in_module(module: &LoadedModule) -> Option<ThreadKeys> {
    let symbols = module.elf.as_deref()?.symbols();
    let find = |name: &str| {
        let symbol = symbols.iter().find(|symbol| symbol.linkage == name)?;
        Some(module.bias.wrapping_add(symbol.svma.0))
    };
    Some(ThreadKeys {
        create: find("pthread_key_create")?,
        delete: find("pthread_key_delete")?,
        set: find("pthread_setspecific")?,
    })
}

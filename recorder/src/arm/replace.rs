//! Functions of the C library, the dynamic linker and the unwinder that the runtime replaces.
//!
//! The runtime has one word for each replaced function, with the address of the original. So the word belongs to the first library that
//! has the function: a second C library in the process (`dlmopen(3)`, `LD_AUDIT`) has its own errno, its own locks, and may be unmapped.

use std::{collections::BTreeMap, ops::Range};

use agent::host::Replacement;
use debuginfo::SymbolKind;

use super::{
    Armer, LoadedModule,
    judge::Judge,
    libraries::Library,
    patch::{Plan, Prepared, skipped},
    stubs::{Patch, Region},
    sweeps::Sweep,
    unwinders::ASKED_BY_UNWINDERS,
};
use crate::displace::Displacement;

/// The functions that are the dynamic linker's. It also has some of the C library's (`__libc_sigaction`, `sigaction`) for itself, which do
/// not set the program's errno. Their symbols come with debug files.
const OF_LINKER: [&str; 2] = ["_dl_debug_state", "_dl_find_object"];

impl LoadedModule {
    /// Returns whether the runtime replaces the module's function of that name, if it replaces functions of that name at all.
    pub(super) fn may_replace(&self, name: &str) -> bool {
        match self.library {
            None | Some(Library::Part) => false,
            _ if self.is_foreign => false,
            Some(Library::Linker) => OF_LINKER.contains(&name),
            // There it lies before the check for the signals that the library needs, which the C library's original does not repeat.
            Some(Library::Threads) => name != "sigaction",
            Some(Library::C | Library::Unwinder | Library::Program) => true,
        }
    }

    /// Returns whether it may have functions that the runtime replaces.
    fn is_replaced_in(&self) -> bool {
        let is_one = |library: Library| library != Library::Part;
        self.library.is_some_and(is_one) && !self.is_foreign
    }
}

/// Whose functions are the originals of the replaced ones, by the address of the runtime's word.
#[derive(Debug, Default)]
pub(super) struct Owners(BTreeMap<u64, Owner>);

#[derive(Clone, Copy, Debug)]
struct Owner {
    /// The original.
    entry: u64,
    library: Option<Library>,
}

/// What a library may do with a function that the runtime replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// Be the original.
    Own,
    /// Lead to the replacement: the original does the same.
    Share,
}

impl Owners {
    /// Returns what a library may do with its function at `entry`, whose word is `word`.
    fn claim(&mut self, word: u64, entry: u64, library: Option<Library>) -> Option<Right> {
        let right = match self.0.get(&word) {
            None => Right::Own,
            Some(owner) if owner.entry == entry => Right::Own,
            // Before glibc 2.34, the library for threads has copies of some functions, which work with the C library's errno.
            Some(owner) => match (owner.library, library) {
                (Some(Library::Threads), Some(Library::C)) => Right::Own,
                (Some(Library::C), Some(Library::Threads)) => Right::Share,
                _ => return None,
            },
        };
        if right == Right::Own {
            self.0.insert(word, Owner { entry, library });
        }
        Some(right)
    }

    /// Releases the words of a module that is gone.
    pub(super) fn forget(&mut self, range: &Range<u64>) {
        self.0.retain(|_, owner| !range.contains(&owner.entry));
    }
}

impl Armer {
    pub(super) fn prepare_replaced(&self, module: &LoadedModule, prepared: &mut Prepared) {
        let (Some(started), Some(elf)) = (&self.started, &module.elf) else {
            return;
        };
        if !module.is_replaced_in() {
            return;
        }
        prepared.library = module.library;
        let symbols = elf.symbols();
        let sweep = prepared.sweep.take();
        let sweep = sweep.unwrap_or_else(|| Sweep::of(elf, &[]));
        let judge = Judge::new(module, elf, &sweep);
        let of_module = |replacement: &&Replacement| module.may_replace(&replacement.name);
        for replacement in started.replacements.iter().filter(of_module) {
            // Before glibc 2.31, the library for threads has a resolver of that name for `vfork`.
            let Some(symbol) = symbols.iter().find(|symbol| {
                symbol.kind == SymbolKind::Function && symbol.linkage == replacement.name
            }) else {
                continue;
            };
            // Of several names for one original, the first that the module has counts.
            if prepared.has_original(replacement) {
                continue;
            }
            if replacement.by == 0 {
                prepared
                    .addresses
                    .push((replacement.original, module.addr_from_svma(symbol.svma.0)));
                continue;
            }
            match judge.displacement(symbol.svma.0, symbol.size) {
                Ok((displacement, code)) => {
                    prepared
                        .replacements
                        .push((replacement.clone(), displacement, code))
                }
                Err(reason) => prepared.skipped.push(skipped(
                    module.number,
                    symbol.svma.0,
                    &symbol.name,
                    reason,
                )),
            }
        }
    }

    /// Adds the patches of a prepared module's replaced functions, as far as their originals are not another library's. Returns them by
    /// entry.
    pub(super) fn add_replacements(
        &mut self,
        prepared: &mut Prepared,
        leading: &dyn Fn(Displacement) -> Displacement,
        region: &mut Region,
        plan: &mut Plan,
    ) -> BTreeMap<u64, Patch> {
        let mut replaced = BTreeMap::new();
        for (replacement, displacement, code) in prepared.replacements.drain(..) {
            let displacement = leading(displacement);
            let word = replacement.original;
            let Ok(mut patch) = region.add_replacement(&displacement, &code, replacement.by) else {
                continue;
            };
            let Some(right) = self.owners.claim(word, patch.entry, prepared.library) else {
                continue;
            };
            if ASKED_BY_UNWINDERS.contains(&replacement.name.as_str()) {
                patch.tells_unwinders = Some(word);
            }
            if right == Right::Own {
                plan.words.push((word, patch.trampoline.at));
            }
            replaced.insert(patch.entry, patch);
        }
        replaced
    }

    /// Tells the runtime the addresses of functions that it calls itself.
    pub(super) fn add_addresses(&mut self, prepared: &mut Prepared, plan: &mut Plan) {
        for (word, address) in prepared.addresses.drain(..) {
            if self.owners.claim(word, address, prepared.library) != Some(Right::Own) {
                continue;
            }
            // The runtime's own calls of a recorded function must not be recorded, so it gets the trampoline's address.
            let patch = plan.patches.iter().find(|patch| patch.entry == address);
            let address = patch.map_or(address, |patch| patch.trampoline.at);
            plan.words.push((word, address));
        }
    }
}

impl Prepared {
    fn has_original(&self, replacement: &Replacement) -> bool {
        let mut all = self.replacements.iter();
        all.any(|(other, ..)| other.original == replacement.original)
    }

    /// Returns whether a function of that name is replaced.
    pub fn replaces(&self, name: &str) -> bool {
        self.replacements.iter().any(|(r, ..)| r.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_library_keeps_the_word_until_it_is_gone() {
        let mut owners = Owners::default();
        let (word, first, second) = (0x10, 0x1000, 0x9000);
        let c = Some(Library::C);
        assert_eq!(owners.claim(word, first, c), Some(Right::Own));
        assert_eq!(owners.claim(word, second, c), None);
        assert_eq!(owners.claim(word, second, Some(Library::Linker)), None);
        owners.forget(&(0x8000..0xa000));
        assert_eq!(owners.claim(word, second, c), None);
        owners.forget(&(0x1000..0x2000));
        assert_eq!(owners.claim(word, second, c), Some(Right::Own));
    }

    #[test]
    fn the_c_library_comes_before_the_library_for_threads() {
        let mut owners = Owners::default();
        let (threads, c) = (Some(Library::Threads), Some(Library::C));
        assert_eq!(owners.claim(0x10, 0x1000, threads), Some(Right::Own));
        assert_eq!(owners.claim(0x10, 0x9000, c), Some(Right::Own));
        assert_eq!(owners.claim(0x10, 0x1000, threads), Some(Right::Share));
    }
}

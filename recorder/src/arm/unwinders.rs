//! Checks whether unwinders linked into a program can learn of the return trampoline, which no dynamic linker knows.

use super::{LoadedModule, judge::Judge, sweeps::Sweep};

/// Functions of C libraries that unwinders call to find unwind tables.
pub(super) const ASKED_BY_UNWINDERS: [&str; 2] = ["dl_iterate_phdr", "_dl_find_object"];

/// Returns whether unwinders linked into `modules` can learn of the return trampoline through the functions that find
/// unwind tables. If they cannot, returns must not be hooked.
pub fn unwinders_can_be_told<'a>(modules: impl Iterator<Item = &'a LoadedModule>) -> bool {
    let (mut has_unwinder, mut tells) = (false, false);
    for module in modules {
        let Some(elf) = &module.elf else {
            continue;
        };
        let symbols = elf.symbols();
        has_unwinder |= symbols
            .iter()
            .any(|symbol| symbol.linkage == "_Unwind_RaiseException");
        let asked: Vec<_> = symbols
            .iter()
            .filter(|symbol| ASKED_BY_UNWINDERS.contains(&symbol.linkage.as_str()))
            .collect();
        if asked.is_empty() {
            continue;
        }
        let sweep = Sweep::of(elf, &[]);
        let judge = Judge::new(module, elf, &sweep);
        if asked
            .iter()
            .any(|symbol| judge.displacement(symbol.svma.0, symbol.size).is_err())
        {
            return false;
        }
        tells = true;
    }
    tells || !has_unwinder
}

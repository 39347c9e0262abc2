//! Checks whether unwinders linked into a program can learn of the return trampoline, which no dynamic linker knows.

use std::fs::File;

use super::{LoadedModule, judge::Judge, libraries::Library, patch::JUMP, sweeps::Sweep};
use crate::{displace::PATCH_BYTES, stop::memory::read_up_to};

/// Functions of C libraries that unwinders call to find unwind tables. Each unwinder was built for one of them.
pub(super) const ASKED_BY_UNWINDERS: [&str; 2] = ["dl_iterate_phdr", "_dl_find_object"];

/// Returns whether unwinders in the `modules` of `pid` can learn of the return trampoline: the functions that find unwind tables will all
/// be replaced. If they cannot, returns must not be hooked. A program without such a function may load an unwinder later, unless it is
/// static.
pub fn unwinders_can_be_told(pid: i32, modules: &[LoadedModule]) -> bool {
    let memory = File::open(format!("/proc/{pid}/mem")).ok();
    let own = modules.iter().filter(|module| !module.is_foreign);
    let will_tell = own.filter_map(|module| will_tell(module, memory.as_ref()));
    let will_tell: Vec<bool> = will_tell.collect();
    if !will_tell.is_empty() {
        return will_tell.into_iter().all(|will_tell| will_tell);
    }
    let mut all = modules.iter();
    all.any(|module| module.library == Some(Library::Program)) && !modules.iter().any(has_unwinder)
}

fn has_unwinder(module: &LoadedModule) -> bool {
    let symbols = module.elf.iter().flat_map(|elf| elf.symbols());
    let mut symbols = symbols.map(|symbol| symbol.linkage);
    symbols.any(|linkage| linkage == "_Unwind_RaiseException")
}

/// Returns whether all such functions of a module that others call will be replaced. `None`: it has none.
fn will_tell(module: &LoadedModule, memory: Option<&File>) -> Option<bool> {
    let elf = module.elf.as_deref()?;
    let symbols = elf.symbols();
    let is_asked = |linkage: &str| {
        let is_called = || module.may_replace(linkage) || elf.exports(linkage);
        ASKED_BY_UNWINDERS.contains(&linkage) && is_called()
    };
    let asked = symbols.iter().filter(|symbol| is_asked(&symbol.linkage));
    let asked: Vec<_> = asked.collect();
    if asked.is_empty() {
        return None;
    }
    let sweep = Sweep::of(elf, &[]);
    let judge = Judge::new(module, elf, &sweep);
    let will_be_replaced = |name: &str, svma, size| {
        let displaced = judge.displacement(svma, size).ok();
        let displaced = displaced.filter(|_| module.may_replace(name));
        displaced.is_some_and(|(place, code)| {
            let found = memory.map(|memory| read_up_to(memory, place.entry(), code.len()));
            // An earlier recording has left its jump.
            let has_jump = |found: &[u8]| {
                found.first() == Some(&JUMP) && found.get(PATCH_BYTES..) == code.get(PATCH_BYTES..)
            };
            found.is_some_and(|found| found == code || has_jump(&found))
        })
    };
    let mut asked = asked.into_iter();
    Some(asked.all(|symbol| will_be_replaced(&symbol.linkage, symbol.svma.0, symbol.size)))
}

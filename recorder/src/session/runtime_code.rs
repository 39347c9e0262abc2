//! Addresses of the runtime's code in the program that the recorder needs.

use std::path::Path;

use debuginfo::Module;

use super::{catching::Catching, entering::EnterCode};
use crate::return_trampoline::{LeaveOffsets, ReturnTrampoline};

/// Addresses in one process.
#[derive(Clone, Debug, Default)]
pub(super) struct RuntimeCode {
    /// Where hooked functions return to.
    pub leave: ReturnTrampoline,
    /// Where the stubs lead.
    pub enter: [EnterCode; 3],
    /// The first instruction that a program started by us runs.
    pub first_instruction: Option<u64>,
    /// What a thread of a program that was running before runs.
    pub catching: Option<Catching>,
    /// Hooks were written that lead there.
    pub is_in_use: bool,
}

impl RuntimeCode {
    /// Finds them in the library at `path`, which is mapped at `base`. In a library that cannot be read there are none.
    pub fn of(path: &Path, base: u64) -> Self {
        let Ok(library) = Module::open(path) else {
            return Self::default();
        };
        let symbols = library.symbols();
        let find = |name: &str| symbols.iter().find(|symbol| symbol.linkage == name);
        let enter = ["hs_enter", "hs_enter_xmm", "hs_enter_texts"].map(|name| {
            let found = find(name).and_then(|symbol| {
                let bytes = library.code(symbol.svma, symbol.size)?.to_vec();
                let start = base + symbol.svma.0;
                let range = start..start + symbol.size;
                Some(EnterCode { range, bytes })
            });
            found.unwrap_or_default()
        });
        Self {
            leave: LeaveOffsets::in_library(&library).at(base),
            enter,
            first_instruction: find("hs_first_instruction").map(|symbol| base + symbol.svma.0),
            catching: Catching::find(|name| find(name).map(|symbol| base + symbol.svma.0)),
            is_in_use: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_has_what_is_looked_for() {
        let path =
            agent::runtime::library_path(agent::runtime::LIBRARY, 1).expect("a cache folder");
        let code = RuntimeCode::of(&path, 0x7000_0000_0000);
        assert!(code.first_instruction.is_some());
        assert!(code.catching.is_some());
        for enter in &code.enter {
            assert!(enter.range.start > 0x7000_0000_0000);
            assert_eq!(
                enter.bytes.len() as u64,
                enter.range.end - enter.range.start
            );
        }
    }
}

//! Our return addresses on the program's stacks. While a hooked function runs, its return address leads to the
//! runtime's return trampoline; the program's own return address is in the shadow of that word.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use agent::shared::SHADOW_BIT;
use debuginfo::Module;

/// Entry points of the return trampoline in the runtime's library.
const SYMBOLS: [&str; 2] = ["hs_leave", "hs_leave_xmm"];

/// Entry points of the return trampoline, relative to the start of the library.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeaveOffsets([Option<u64>; 2]);

/// Entry points of the return trampoline in one process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReturnTrampoline([Option<u64>; 2]);

impl LeaveOffsets {
    /// Finds them in the library at `path`. A library that cannot be read has none.
    pub fn of(path: &Path) -> Self {
        Module::open(path).map_or_else(|_| Self::default(), |library| Self::in_library(&library))
    }

    pub fn in_library(library: &Module) -> Self {
        let symbols = library.symbols();
        Self(SYMBOLS.map(|name| {
            let symbol = symbols.iter().find(|symbol| symbol.linkage == name)?;
            Some(symbol.svma.0)
        }))
    }

    /// Returns the entry points for a process in which the library begins at `base`.
    pub fn at(self, base: u64) -> ReturnTrampoline {
        ReturnTrampoline(self.0.map(|offset| offset.map(|offset| base + offset)))
    }
}

impl ReturnTrampoline {
    /// Returns whether a return address is ours.
    pub fn is(&self, return_address: u64) -> bool {
        self.0.contains(&Some(return_address))
    }
}

/// Replaces our return addresses by the program's in `bytes`, which were read at `addr`.
pub(crate) fn unhook(memory: &File, leave: &ReturnTrampoline, addr: u64, bytes: &mut [u8]) {
    if !addr.is_multiple_of(8) {
        return;
    }
    let (words, _) = bytes.as_chunks_mut::<8>();
    for (number, word) in words.iter_mut().enumerate() {
        if leave.is(u64::from_le_bytes(*word)) {
            let shadow = (addr + number as u64 * 8) ^ (1 << SHADOW_BIT);
            // A word that only looks like our return address has no shadow.
            let mut original = [0; 8];
            if memory.read_exact_at(&mut original, shadow).is_ok() && original != [0; 8] {
                *word = original;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_tells_where_leave_code_is_returned_to() {
        use agent::runtime::{LIBRARY, SELF_CONTAINED, library_path};
        for library in [LIBRARY, SELF_CONTAINED] {
            has_both_places(&library_path(library, 1).expect("a cache folder"));
        }
    }

    fn has_both_places(path: &Path) {
        let LeaveOffsets([plain, with_vectors]) = LeaveOffsets::of(path);
        assert!(plain.is_some() && with_vectors.is_some());
        assert_ne!(plain, with_vectors);
        let leave = LeaveOffsets::of(path).at(0x7000_0000_0000);
        assert!(leave.is(0x7000_0000_0000 + plain.expect("found")));
        assert!(!leave.is(0x7000_0000_0000));
    }
}

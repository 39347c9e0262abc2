//! The module's code as the readers of debug information see it: addresses, bytes, symbols.

use crate::elf::Elf;
use crate::model::SymbolKind;
use crate::symbols::{SymbolFiles, SymbolIndex};

/// Symbols at one address that are looked at; a damaged file may have all of its there.
const MAX_SYMBOLS: usize = 64;

/// Answers questions about addresses of the module.
#[derive(Clone, Copy)]
pub(crate) struct Code<'m> {
    pub files: SymbolFiles<'m>,
    pub symbols: &'m SymbolIndex,
}

impl<'m> Code<'m> {
    fn elf(&self) -> &'m Elf {
        self.files.main
    }

    pub(crate) fn is_code(&self, svma: u64) -> bool {
        self.elf().is_code(svma)
    }

    /// At most `len` bytes of code at `svma`.
    pub(crate) fn bytes(&self, svma: u64, len: usize) -> &'m [u8] {
        let bytes = self.elf().from(svma).unwrap_or_default();
        &bytes[..bytes.len().min(len)]
    }

    /// Linker names at `svma`.
    pub(crate) fn names(&self, svma: u64) -> impl Iterator<Item = &'m str> {
        let symbols = self.symbols.at(self.files, svma);
        symbols.take(MAX_SYMBOLS).map(|(name, ..)| name)
    }

    /// Tells whether all symbols at `svma` say that code split off a function begins there.
    pub(crate) fn is_cold(&self, svma: u64) -> bool {
        let symbols = self.symbols.at(self.files, svma).take(MAX_SYMBOLS);
        let mut kinds = symbols.map(|(_, kind, _)| kind);
        match kinds.next() {
            Some(first) => first == SymbolKind::Cold && kinds.all(|k| k == SymbolKind::Cold),
            None => false,
        }
    }
}

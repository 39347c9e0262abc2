//! Functions that symbol tables name and no entry of the debug information describes.

use crate::model::{Symbol, SymbolKind};
use crate::module::Module;

impl Module {
    /// Returns the functions of `.symtab` and `.dynsym` that lie outside of all code that the debug information describes, by address:
    /// those of object files that were compiled without it. Of several names at one address the most visible one is returned.
    #[must_use]
    pub fn undescribed_functions(&self) -> Vec<Symbol> {
        self.functions_without_entry(|svma| self.units().find(svma).is_none())
    }

    /// Returns the functions that lie in the code of a described unit and have no entry there: assembler in a C file, thunks. The rest
    /// is as with [`Module::undescribed_functions`].
    #[must_use]
    pub fn functions_beside_entries(&self) -> Vec<Symbol> {
        self.functions_without_entry(|svma| self.units().find(svma).is_some())
    }

    fn functions_without_entry(&self, is_wanted: impl Fn(u64) -> bool) -> Vec<Symbol> {
        let functions = &self.functions().list;
        let has_entry = |svma: u64| {
            let after = functions.partition_point(|function| function.svma.0 <= svma);
            let before = functions[..after].last();
            before.is_some_and(|function| svma - function.svma.0 < function.size.max(1))
        };
        let mut found = self.code.symbols_where(|kind, svma| {
            let is_code = kind == SymbolKind::Function && self.code.is_code(svma);
            is_code && !has_entry(svma) && is_wanted(svma)
        });
        found.dedup_by_key(|symbol| symbol.svma);
        found
    }
}

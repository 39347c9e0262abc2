//! Functions that symbol tables name and the debug information does not describe: those of object files that were compiled without it.

use crate::model::{Symbol, SymbolKind};
use crate::module::Module;

impl Module {
    /// Returns the functions of `.symtab` and `.dynsym` that lie outside of all code that the debug information describes, by address.
    /// Of several names at one address the most visible one is returned.
    #[must_use]
    pub fn undescribed_functions(&self) -> Vec<Symbol> {
        let functions = &self.functions().list;
        let is_described = |svma: u64| {
            let after = functions.partition_point(|function| function.svma.0 <= svma);
            let before = functions[..after].last();
            before.is_some_and(|function| svma - function.svma.0 < function.size.max(1))
                || self.units().find(svma).is_some()
        };
        let mut found = self.code.symbols_where(|kind, svma| {
            kind == SymbolKind::Function && self.code.is_code(svma) && !is_described(svma)
        });
        found.dedup_by_key(|symbol| symbol.svma);
        found
    }
}

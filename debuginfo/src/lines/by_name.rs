//! An index of functions and symbols by name, so that a lookup does not scan all of them.

use super::pattern;
use crate::model::{Function, Symbol, SymbolKind};
use crate::types::hash;

/// The functions and symbols of a module, by linker name and by the last component of the readable name, without
/// template arguments.
#[derive(Debug)]
pub(crate) struct ByName {
    /// Sorted by the hash of the name. Numbers of symbols follow those of functions.
    entries: Vec<(u32, u32)>,
    /// Functions and symbols whose names are too long to be indexed. They are candidates for every name.
    long: Vec<u32>,
    functions: u32,
}

/// Longest indexed name, in bytes.
const MAX_LEN: usize = 2048;

impl ByName {
    pub(crate) fn of(functions: &[Function], symbols: &[Symbol]) -> ByName {
        let mut index = ByName {
            entries: Vec::with_capacity(2 * (functions.len() + symbols.len())),
            long: Vec::new(),
            functions: functions.len() as u32,
        };
        let functions = functions.iter().map(|f| Some((&f.name, &f.linkage)));
        let symbols = symbols.iter().map(|symbol| {
            let is_function = symbol.kind == SymbolKind::Function;
            is_function.then_some((&symbol.name, &symbol.linkage))
        });
        for (number, names) in functions.chain(symbols).enumerate() {
            if let Some((name, linkage)) = names {
                index.list(name, linkage, number as u32);
            }
        }
        index.entries.sort_unstable();
        index.entries.dedup();
        index.entries.shrink_to_fit();
        index
    }

    fn list(&mut self, name: &str, linkage: &str, number: u32) {
        if name.len().max(linkage.len()) > MAX_LEN {
            self.long.push(number);
            return;
        }
        let mut add = |name: &str| self.entries.push((short(name), number));
        add(&pattern::key(name));
        if linkage != name {
            add(linkage);
        }
    }

    /// Returns the positions in the lists of functions and of symbols that may be called `name`, in order. The caller
    /// compares the names.
    pub(crate) fn candidates(&self, name: &str) -> (Vec<usize>, Vec<usize>) {
        let mut numbers = self.long.clone();
        for hash in [short(name), short(&pattern::key(name))] {
            let start = self.entries.partition_point(|(own, _)| *own < hash);
            let same = self.entries[start..]
                .iter()
                .take_while(|(own, _)| *own == hash);
            numbers.extend(same.map(|(_, number)| *number));
        }
        numbers.sort_unstable();
        numbers.dedup();
        let (functions, symbols) =
            numbers.split_at(numbers.partition_point(|n| *n < self.functions));
        (
            functions.iter().map(|n| *n as usize).collect(),
            symbols
                .iter()
                .map(|n| (*n - self.functions) as usize)
                .collect(),
        )
    }
}

/// Candidates with equal hashes are compared anyway, so half of the hash is enough.
fn short(name: &str) -> u32 {
    hash(name.as_bytes()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Binding, Svma};

    fn symbol(name: &str, kind: SymbolKind) -> Symbol {
        Symbol {
            svma: Svma(0x1000),
            size: 1,
            name: name.to_owned(),
            linkage: format!("_Z{}", name.len()),
            kind,
            binding: Binding::Global,
        }
    }

    #[test]
    fn all_names_of_a_function_lead_to_it() {
        let names = [
            "main",
            "a::b<c::d>::e",
            "shop::total<int>",
            "total",
            "x::operator<<",
            "",
        ];
        let mut symbols: Vec<Symbol> = names
            .iter()
            .map(|name| symbol(name, SymbolKind::Function))
            .collect();
        // A name too long for the index is a candidate for every lookup.
        let long = format!("{}last", "deep::".repeat(400));
        symbols.push(symbol(&long, SymbolKind::Function));
        symbols.push(symbol("total", SymbolKind::Cold));
        let index = ByName::of(&[], &symbols);
        for (name, expected) in [
            ("main", &[0][..]),
            ("_Z4", &[0]),
            ("e", &[1]),
            ("b<c::d>::e", &[1]),
            ("_Z13", &[1, 4]),
            ("total", &[2, 3]),
            ("operator<<", &[4]),
            ("a", &[]),
            ("", &[5]),
        ] {
            let expected = [expected, &[6]].concat();
            assert_eq!(index.candidates(name), (vec![], expected), "{name}");
        }
    }
}

//! Which functions and symbols a whole name may mean, without looking at all of them.

use super::pattern;
use crate::model::{Function, Symbol, SymbolKind};
use crate::types::hash;

/// The functions and symbols of a module by their linker's names, and by the last part of their readable ones, without
/// template arguments.
#[derive(Debug)]
pub(crate) struct ByName {
    /// By the hash of the name. Numbers of symbols follow those of functions.
    entries: Vec<(u32, u32)>,
    /// Those with a name too long to list every part of it: any name may mean them.
    long: Vec<u32>,
    functions: u32,
}

/// Bytes of a name that is listed.
const MAX_LEN: usize = 2048;

impl ByName {
    /// Lists the names of a module.
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

    /// Returns the places in the lists of functions and of symbols that may be called `name`, in order; the caller compares.
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

/// What has the same hash is compared anyway: half of it is enough.
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
        // What is too long to be listed is looked at each time.
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

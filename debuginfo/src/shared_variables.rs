//! The variables that two builds of a module both have: what lies at an address in one of them can then be compared with the
//! other one.

use std::collections::HashMap;

use crate::demangle;
use crate::model::Svma;
use crate::module::Module;

/// Variables with more bytes are not compared.
const MOST_BYTES: u64 = 1 << 16;

/// The names of variables that two builds both have. A variable with another name in each is one that was renamed, or two
/// different ones: nothing is said of it.
#[derive(Debug, Default)]
pub struct SharedVariables {
    /// Whether the variable begins with other bytes in the two files, by name.
    names: HashMap<String, bool>,
}

impl SharedVariables {
    /// Takes two builds of a module.
    #[must_use]
    pub fn of(own: &Module, other: &Module) -> Self {
        let (own, other) = (Initial::all(own), Initial::all(other));
        let both = own.into_iter().filter_map(|(name, own)| {
            let differs = own.differs(other.get(&name)?);
            Some((name, differs))
        });
        Self {
            names: both.collect(),
        }
    }

    /// Returns the name of the variable that includes an address of one of the builds, if both have it, and the offset in
    /// it.
    #[must_use]
    pub fn at(&self, module: &Module, svma: Svma) -> Option<(String, u64)> {
        let (name, start) = module.variable_symbol_at(svma)?;
        let name = stem(&name);
        let is_shared = self.names.contains_key(name);
        is_shared.then(|| (name.to_owned(), svma.0 - start.0))
    }

    /// Returns the variables that begin with other values, by name, as far as the files tell: those that hold addresses are
    /// filled in when the program starts.
    #[must_use]
    pub fn changed(&self) -> Vec<&str> {
        let changed = self.names.iter().filter(|(_, differs)| **differs);
        let mut names: Vec<&str> = changed.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }
}

/// What variables of one name begin with: their bytes in the file, in the order of their addresses.
struct Initial<'m>(Vec<Option<&'m [u8]>>);

impl<'m> Initial<'m> {
    fn all(module: &'m Module) -> HashMap<String, Initial<'m>> {
        let mut all: HashMap<String, Initial<'m>> = HashMap::new();
        for (start, size, name) in module.variable_symbols() {
            let readable = demangle::readable(name).map(|(name, _)| name);
            let name = readable.as_deref().unwrap_or(name);
            if is_named_by_number(name) {
                continue;
            }
            let bytes = (size <= MOST_BYTES)
                .then(|| module.code(start, size))
                .flatten();
            let named = all
                .entry(stem(name).to_owned())
                .or_insert(Initial(Vec::new()));
            named.0.push(bytes);
        }
        all
    }

    fn differs(&self, other: &Initial<'_>) -> bool {
        // Several variables of one name have no twins that are certain.
        let ([Some(own)], [Some(other)]) = (&*self.0, &*other.0) else {
            return false;
        };
        own.len() == other.len() && own != other
    }
}

/// Returns a name without the numbers that compilers append to those of static variables in functions.
fn stem(name: &str) -> &str {
    let mut stem = name;
    while let Some((front, number)) = stem.rsplit_once('.')
        && !front.is_empty()
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        stem = front;
    }
    stem
}

/// Tells whether a compiler has made up the name of a constant, from a number or a hash.
fn is_named_by_number(name: &str) -> bool {
    ["anon.", "__unnamed_", "alloc_", "CSWTCH", "switch.table"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn numbers_of_compilers_are_no_part_of_a_name() {
        for (name, expected) in [
            ("count", "count"),
            ("count.0", "count"),
            ("C.1.2345", "C"),
            ("version.1a", "version.1a"),
            (".5", ".5"),
        ] {
            assert_eq!(stem(name), expected);
        }
    }
}

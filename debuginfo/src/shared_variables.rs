//! The variables that two builds of a module both have: what lies at an address in one of them can then be compared with the
//! other one.

use std::collections::HashMap;

use crate::demangle::{self, Mangling};
use crate::initial::{Image, Object, Pair};
use crate::model::Svma;
use crate::module::Module;

/// Variables with more bytes are not compared.
const MOST_BYTES: u64 = 1 << 16;

/// Tables that the linker makes, and names like variables.
const OF_LINKER: [&str; 2] = ["_DYNAMIC", "_GLOBAL_OFFSET_TABLE_"];

/// The names of variables that two builds both have. A variable with another name in each is one that was renamed, or two
/// different ones: nothing is said of it.
#[derive(Debug, Default)]
pub struct SharedVariables {
    /// Whether the variable begins with another value in the two files, by name.
    names: HashMap<String, bool>,
}

impl SharedVariables {
    /// Takes two builds of a module.
    #[must_use]
    pub fn of(own: &Module, other: &Module) -> Self {
        let images = (Image::of(own), Image::of(other));
        let (own, other) = (Initial::all(own, &images.0), Initial::all(other, &images.1));
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

    /// Returns the variables that begin with other values, by name, as far as the files tell. Pointers are compared by what they
    /// lead to: a text, a function or a place in a variable.
    #[must_use]
    pub fn changed(&self) -> Vec<&str> {
        let changed = self.names.iter().filter(|(_, differs)| **differs);
        let mut names: Vec<&str> = changed.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }
}

/// What variables of one name begin with, in the order of their addresses.
#[derive(Default)]
struct Initial<'i> {
    objects: Vec<Object<'i>>,
    /// The language keeps the lengths of texts beside the pointers to them.
    has_lengths: bool,
}

impl<'i> Initial<'i> {
    fn all(module: &Module, image: &'i Image<'i>) -> HashMap<String, Initial<'i>> {
        let is_go = module.has_go();
        let mut all: HashMap<String, Initial<'i>> = HashMap::new();
        for (start, size, linkage) in module.variable_symbols() {
            let readable = demangle::readable(linkage);
            let is_rust = readable
                .as_ref()
                .is_some_and(|(_, mangling)| !matches!(mangling, Mangling::Cpp));
            let name = readable.as_ref().map_or(linkage, |(name, _)| name.as_str());
            if is_named_by_number(name) || OF_LINKER.contains(&name) {
                continue;
            }
            let named = all.entry(stem(name).to_owned()).or_default();
            named.has_lengths |= is_rust || is_go;
            named.objects.push(Object {
                image,
                start: start.0,
                size,
            });
        }
        all
    }

    fn differs(&self, other: &Initial<'i>) -> bool {
        // Several variables of one name have no twins that are certain.
        let ([own], [twin]) = (&*self.objects, &*other.objects) else {
            return false;
        };
        let is_compared = own.size == twin.size && own.size <= MOST_BYTES;
        is_compared && Pair::new(*own, *twin, self.has_lengths || other.has_lengths).differs()
    }
}

/// Returns a name without the numbers that compilers append to those of static variables in functions.
pub(crate) fn stem(name: &str) -> &str {
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
pub(crate) fn is_named_by_number(name: &str) -> bool {
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

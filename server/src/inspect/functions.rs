//! Suggestions for a function name that does not exist.

use std::collections::BTreeSet;

use debuginfo::AddressSpace;

/// Names less similar than this are not suggested (1: identical, 0: nothing in common).
const LIKENESS: f64 = 0.85;
/// The least likeness of names that differ by one slip.
const SLIP: f64 = 0.9;
const MOST: usize = 3;

/// Returns the functions with the most similar names, in the program and its own libraries, best first.
#[must_use]
pub fn nearest_functions(space: &AddressSpace, name: &str) -> Vec<String> {
    let own = space.modules().iter().filter(|mapped| !mapped.is_system);
    let described = own.clone().flat_map(|mapped| {
        let functions = mapped.module.functions().list.iter();
        functions.map(|function| function.name.clone())
    });
    // Modules without debug information still have symbols.
    let bare = own.filter(|mapped| !mapped.module.has_dwarf());
    let named = bare.flat_map(|mapped| mapped.module.symbols().into_iter().map(|s| s.name));
    nearest(name, described.chain(named))
}

fn nearest(name: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let known: BTreeSet<String> = known.collect();
    let mut near: Vec<(f64, String)> = known
        .into_iter()
        .map(|other| (likeness(name, &other), other))
        .filter(|(likeness, _)| *likeness > LIKENESS)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// How similar a name is to a function's, with or without its scopes and ignoring case.
fn likeness(name: &str, function: &str) -> f64 {
    let (name, function) = (name.to_lowercase(), function.to_lowercase());
    let last = function.rsplit("::").next().unwrap_or_default();
    let whole = strsim::jaro_winkler(&name, &function);
    let likeness = whole.max(strsim::jaro_winkler(&name, last));
    // In a short name one slip is much.
    let is_slip = name.chars().count() > 2 && strsim::osa_distance(&name, last) == 1;
    if is_slip {
        likeness.max(SLIP)
    } else {
        likeness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_function_with_and_without_its_scope() {
        let known = || ["total", "audio::Filter::apply", "main", "sqlite3_open"].map(str::to_owned);
        let near = |name| nearest(name, known().into_iter());
        assert_eq!(near("totl"), ["total"]);
        assert_eq!(near("aply"), ["audio::Filter::apply"]);
        assert_eq!(near("audio::filter::apply"), ["audio::Filter::apply"]);
        assert_eq!(near("sqlite3_opne"), ["sqlite3_open"]);
        assert_eq!(near("mian"), ["main"]);
        assert_eq!(nearest("fbi", ["fib".to_owned()].into_iter()), ["fib"]);
        assert!(near("xyzzy").is_empty());
    }
}

//! Rust's hash tables: their keys are random in each run, and so is everything that probing and hashing do with them. Calls
//! of such functions are not compared, and neither is what they call: comparisons of keys, whose number depends on collisions.

use rustc_hash::FxHashMap;

use super::read::{CallFiles, Position};
use crate::definitions::Definitions;
use crate::error::Result;

/// Names of the functions that make random keys, and of the type that holds them.
const RANDOM: [&str; 2] = ["RandomState", "hashmap_random_keys"];
/// Parts of the names of functions whose work depends on the keys.
const HASHING: [&str; 4] = ["core::hash::", "std::hash::", "hashbrown::", "RandomState"];

/// Tells whether a program makes hash tables with random keys, as far as its recorded functions tell.
pub fn has_random_keys(definitions: &Definitions) -> bool {
    let mut functions = definitions.functions();
    functions.any(|function| RANDOM.iter().any(|part| function.name.contains(part)))
}

/// Tells whether what a function does depends on such keys.
pub fn is_hashing(name: &str) -> bool {
    name.ends_with("::equivalent") || HASHING.iter().any(|part| name.contains(part))
}

/// Where threads hashed and probed: the events of the outermost such calls, by thread, in order.
#[derive(Debug, Default)]
pub struct Hashing(FxHashMap<u32, Vec<(u64, u64)>>);

impl Hashing {
    /// Finds the calls of functions whose numbers `is_hashing` has.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn of(files: &CallFiles, is_hashing: &[bool]) -> Result<Self> {
        let mut found: FxHashMap<u32, Vec<(u64, u64)>> = FxHashMap::default();
        let mut calls = files.calls(Position::default(), None);
        while let Some(batch) = calls.next()? {
            for at in 0..batch.rows() {
                let id = batch.function(at) as usize;
                if is_hashing.get(id).copied().unwrap_or(false) {
                    let span = (batch.start(at), batch.end(at).unwrap_or(u64::MAX));
                    found.entry(batch.tid(at)).or_default().push(span);
                }
            }
        }
        for spans in found.values_mut() {
            spans.sort_unstable();
            let mut until = 0;
            spans.retain(|(start, end)| {
                let is_outermost = *start >= until;
                if is_outermost {
                    until = *end;
                }
                is_outermost
            });
        }
        Ok(Self(found))
    }

    /// Tells whether a thread was hashing or probing at an event.
    #[inline]
    pub fn covers(&self, tid: u32, seq: u64) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let Some(spans) = self.0.get(&tid) else {
            return false;
        };
        let before = spans.partition_point(|(start, _)| *start <= seq);
        before > 0 && spans[before - 1].1 > seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashing_is_told_by_names() {
        for (name, expected) in [
            (
                "<core::hash::sip::Hasher<S> as core::hash::Hasher>::write",
                true,
            ),
            (
                "<std::hash::random::RandomState as core::hash::BuildHasher>::build_hasher",
                true,
            ),
            ("hashbrown::raw::RawTable<T,A>::find::{{closure}}", true),
            ("<shop::Order as core::cmp::PartialEq>::eq", false),
            ("<Q as hashbrown::Equivalent<K>>::equivalent", true),
            ("std::collections::hash::map::HashMap<K,V,S>::insert", false),
            ("shop::equal", false),
        ] {
            assert_eq!(is_hashing(name), expected, "{name}");
        }
    }
}

//! Hash tables in which other keys collide in each run: Rust's, whose keys are random, and those of the GNU C++ library that are
//! keyed by addresses. Calls of the functions that hash and probe are not compared, and neither is what they call: comparisons of
//! keys, whose number depends on collisions.

use rustc_hash::{FxHashMap, FxHashSet};

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

/// The base classes of the GNU C++ library's hash tables. Their first parameter is the key.
const TABLES: [&str; 3] = [
    "std::_Hashtable",
    "std::__detail::_Hash_code_base",
    "std::__detail::_Hashtable_base",
];
/// Their functions that hash and probe. They make and destroy no element.
const PROBING: [&str; 14] = [
    "_M_bucket_index",
    "_M_find_before_node",
    "_M_find_before_node_tr",
    "_M_find_node",
    "_M_find_node_tr",
    "_M_get_previous_node",
    "_M_hash_code",
    "_M_insert_bucket_begin",
    "_M_insert_multi_node",
    "_M_insert_unique_node",
    "_M_locate",
    "_M_rehash",
    "_M_remove_bucket_begin",
    "_M_store_code",
];
/// Those that get or return the place in the table, and do more.
const PLACED: [&str; 1] = ["_M_erase"];

/// Which hash tables differ in each run, of those that both programs may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// Those with random keys.
    pub has_random_keys: bool,
    /// Those keyed by addresses: the addresses are random.
    pub has_random_addresses: bool,
}

impl Chance {
    /// Tells whether what a function does, and what it calls, depends on such a table.
    pub fn decides(self, name: &str) -> bool {
        self.has_random_keys && is_hashing(name) || self.is_of_addresses(name, &PROBING)
    }

    /// Tells whether the calls of a function are not compared.
    pub fn leaves_out(self, name: &str) -> bool {
        self.decides(name) || self.is_of_addresses(name, &PLACED)
    }

    fn is_of_addresses(self, name: &str, methods: &[&str]) -> bool {
        let method = || method_of_addresses(name);
        self.has_random_addresses && method().is_some_and(|method| methods.contains(&method))
    }
}

/// Returns the name of a method of a C++ hash table that is keyed by pointers.
fn method_of_addresses(name: &str) -> Option<&str> {
    let (class, rest) = name.split_once('<')?;
    if !TABLES.contains(&class) {
        return None;
    }
    let (mut depth, mut key) = (1, None);
    for (at, letter) in rest.char_indices() {
        match letter {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 1 => key = key.or(Some(&rest[..at])),
            _ => {}
        }
        if depth == 0 {
            let method = rest[at + 1..].strip_prefix("::")?;
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            let method = method.split(|letter| !is_part(letter)).next()?;
            return key?.trim_end().ends_with('*').then_some(method);
        }
    }
    None
}

/// Tells whether what a function does depends on such keys.
pub fn is_hashing(name: &str) -> bool {
    name.ends_with("::equivalent") || HASHING.iter().any(|part| name.contains(part))
}

/// Functions of Rust's standard library that run only where threads meet at a lock. Whether they do is a matter of time.
const MEETING: [&str; 5] = [
    "Mutex::lock_contended",
    "Mutex::wake",
    "RwLock::read_contended",
    "RwLock::wake_writer_or_readers",
    "RwLock::write_contended",
];

/// Tells whether a function only waits for other threads, or wakes them.
pub fn is_meeting(name: &str) -> bool {
    name.starts_with("std::sys::") && MEETING.iter().any(|method| name.ends_with(method))
}

/// Where threads hashed and probed.
#[derive(Debug, Default)]
pub struct Hashing {
    /// The events of the outermost such calls, by thread, in order.
    spans: FxHashMap<u32, Vec<(u64, u64)>>,
    /// The functions that return a hash which may be one of an address.
    pub returning: FxHashSet<u32>,
}

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
        Ok(Self {
            spans: found,
            returning: FxHashSet::default(),
        })
    }

    /// Tells whether a thread was hashing or probing at an event.
    #[inline]
    pub fn covers(&self, tid: u32, seq: u64) -> bool {
        if self.spans.is_empty() {
            return false;
        }
        let Some(spans) = self.spans.get(&tid) else {
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

    #[test]
    fn waiting_for_a_lock_of_rust_is_told_by_names() {
        for (name, expected) in [
            ("std::sys::sync::mutex::futex::Mutex::lock_contended", true),
            ("std::sys::sync::mutex::futex::Mutex::wake", true),
            ("std::sys::sync::mutex::futex::Mutex::lock", false),
            (
                "std::sys::sync::rwlock::futex::RwLock::read_contended",
                true,
            ),
            ("pool::Mutex::wake", false),
        ] {
            assert_eq!(is_meeting(name), expected, "{name}");
        }
    }

    #[test]
    fn probing_of_tables_of_addresses_is_told_by_names() {
        let table = |key: &str, method: &str| {
            format!(
                "std::_Hashtable<{key}, std::pair<{key} const, int>, std::hash<{key}> >::{method}"
            )
        };
        let base = "std::__detail::_Hash_code_base<Node const*, std::pair<Node const* const, int>, std::hash<Node const*>, false>";
        let chance = Chance {
            has_random_addresses: true,
            ..Chance::default()
        };
        for (name, decides, leaves_out) in [
            (table("Node const*", "_M_find_node"), true, true),
            (
                table("Node*", "_M_rehash(unsigned long, std::true_type)"),
                true,
                true,
            ),
            (table("Node*", "_M_erase"), false, true),
            // They call the program's own functions.
            (table("Node*", "_M_emplace<Node*>"), false, false),
            (table("Node*", "find"), false, false),
            (table("std::pair<Node*, int>", "_M_find_node"), false, false),
            (table("int", "_M_find_node"), false, false),
            (format!("{base}::_M_bucket_index"), true, true),
            (
                "app::find<Node*, int>::_M_find_node".to_owned(),
                false,
                false,
            ),
            ("std::_Hashtable<Node*".to_owned(), false, false),
        ] {
            assert_eq!(chance.decides(&name), decides, "{name}");
            assert_eq!(chance.leaves_out(&name), leaves_out, "{name}");
            assert!(!Chance::default().leaves_out(&name), "{name}");
        }
    }
}

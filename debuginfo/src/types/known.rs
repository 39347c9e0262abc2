//! What a module has learned of its types and names: nodes by entry, scopes by unit, the index of names.

use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::index::Index;
use super::names::ScopeTable;
use super::node::{DieId, Node};
use super::read;
use crate::dies::Home;
use crate::module::Module;

/// Nodes that are kept; beyond it all are forgotten and read again. Handles keep their own.
const MAX_NODES: usize = 1 << 18;
/// Units whose scopes are kept.
const MAX_SCOPES: usize = 1 << 10;

/// The caches of one module.
#[derive(Default)]
pub(crate) struct Known {
    nodes: Mutex<FxHashMap<DieId, Arc<Node>>>,
    scopes: Mutex<FxHashMap<(Home, usize), Arc<ScopeTable>>>,
    index: OnceLock<Index>,
}

impl Known {
    pub(crate) fn node(&self, module: &Module, id: DieId) -> Arc<Node> {
        kept(&self.nodes, MAX_NODES, id, || read::node(module, id))
    }

    pub(super) fn scopes(&self, module: &Module, home: Home, index: usize) -> Arc<ScopeTable> {
        let read = || ScopeTable::read(module, home, index);
        kept(&self.scopes, MAX_SCOPES, (home, index), read)
    }

    pub(crate) fn index(&self, module: &Module) -> &Index {
        self.index.get_or_init(|| Index::read(module))
    }
}

fn kept<K: Hash + Eq, V>(
    map: &Mutex<FxHashMap<K, Arc<V>>>,
    limit: usize,
    key: K,
    read: impl FnOnce() -> V,
) -> Arc<V> {
    // The lock is not held while reading; of two that read the same, the first answer is kept.
    let lock = || map.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(&key) {
        return found.clone();
    }
    let value = Arc::new(read());
    let mut map = lock();
    if map.len() >= limit {
        map.clear();
    }
    map.entry(key).or_insert(value).clone()
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

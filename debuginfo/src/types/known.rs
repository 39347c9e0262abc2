//! A module's cache of types and names: nodes by DIE, scopes by unit, and the name index.

use std::sync::{Arc, OnceLock};

use super::index::Index;
use super::names;
use super::node::{DieId, Node};
use super::read;
use crate::cache::Cache;
use crate::dies::Home;
use crate::entries::Entries;
use crate::nesting::ScopeTable;

/// Nodes kept. A `Type` keeps its own node alive.
const MAX_NODES: usize = 1 << 18;
/// Units whose scopes are kept.
const MAX_SCOPES: usize = 1 << 10;

/// The cached types and names of one module.
#[derive(Debug)]
pub(crate) struct KnownTypes {
    pub(super) entries: Arc<Entries>,
    nodes: Cache<DieId, Arc<Node>, MAX_NODES>,
    scopes: Cache<(Home, usize), Arc<ScopeTable>, MAX_SCOPES>,
    functions: Cache<(Home, usize), Arc<ScopeTable>, MAX_SCOPES>,
    index: OnceLock<Index>,
}

impl KnownTypes {
    pub(crate) fn new(entries: Arc<Entries>) -> KnownTypes {
        KnownTypes {
            entries,
            nodes: Cache::default(),
            scopes: Cache::default(),
            functions: Cache::default(),
            index: OnceLock::new(),
        }
    }

    pub(crate) fn node(&self, id: DieId) -> Arc<Node> {
        let read = || Arc::new(read::node(&self.entries, id));
        self.nodes.get(&id, read)
    }

    pub(crate) fn scopes(&self, home: Home, index: usize) -> Arc<ScopeTable> {
        let read = || Arc::new(names::scopes(&self.entries, home, index));
        self.scopes.get(&(home, index), read)
    }

    /// The functions of a unit, as scopes of nested functions.
    pub(crate) fn functions(&self, home: Home, index: usize) -> Arc<ScopeTable> {
        let read = || Arc::new(names::functions(&self.entries, home, index));
        self.functions.get(&(home, index), read)
    }

    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::read(&self.entries))
    }
}

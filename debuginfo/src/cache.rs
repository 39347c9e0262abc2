//! A bounded map from keys to answers, shared by threads.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// Holds at most `LIMIT` answers. When it is full, all are dropped and computed again on demand.
pub(crate) struct Cache<K, V, const LIMIT: usize>(Mutex<FxHashMap<K, V>>);

impl<K: Hash + Eq, V: Clone, const LIMIT: usize> Cache<K, V, LIMIT> {
    /// Returns the answer for `key`, computed by `read` if the cache lacks it.
    pub(crate) fn get<Q>(&self, key: &Q, read: impl FnOnce() -> V) -> V
    where
        K: Borrow<Q>,
        Q: ToOwned<Owned = K> + Hash + Eq + ?Sized,
    {
        // The lock is not held during `read`. If two threads compute the same answer, the first one is kept.
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = lock().get(key) {
            return found.clone();
        }
        let value = read();
        let mut map = lock();
        if map.len() >= LIMIT {
            map.clear();
        }
        map.entry(key.to_owned()).or_insert(value).clone()
    }
}

impl<K, V, const LIMIT: usize> Default for Cache<K, V, LIMIT> {
    fn default() -> Self {
        Cache(Mutex::default())
    }
}

impl<K, V, const LIMIT: usize> fmt::Debug for Cache<K, V, LIMIT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

//! A small cache with a bounded number of entries; it drops the least recently read one.

use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// Keeps the `capacity` values that were used last.
pub(crate) struct Cache<K, V> {
    capacity: usize,
    inner: Mutex<Inner<K, V>>,
}

struct Inner<K, V> {
    values: FxHashMap<K, (u64, Arc<V>)>,
    uses: u64,
}

impl<K: Copy + Eq + Hash, V> Cache<K, V> {
    /// Makes an empty one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            inner: Mutex::new(Inner {
                values: FxHashMap::default(),
                uses: 0,
            }),
        }
    }

    /// Returns the value of `key`; makes it if it is missing.
    ///
    /// # Errors
    /// The error of `make`; the cache is then unchanged.
    pub(crate) fn get<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        if let Some(found) = self.find(&key) {
            return Ok(found);
        }
        // Made without the lock: two callers may make the same value, which only costs time.
        Ok(self.put(key, make()?))
    }

    /// Keeps a value for later.
    pub(crate) fn put(&self, key: K, value: V) -> Arc<V> {
        let made = Arc::new(value);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.values.len() >= self.capacity
            && let Some(oldest) = inner.values.iter().min_by_key(|(_, (used, _))| *used)
        {
            let oldest = *oldest.0;
            inner.values.remove(&oldest);
        }
        inner.uses += 1;
        let uses = inner.uses;
        inner.values.insert(key, (uses, Arc::clone(&made)));
        made
    }

    /// Returns whether the cache holds `key`.
    pub(crate) fn holds(&self, key: &K) -> bool {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.values.contains_key(key)
    }

    pub(crate) fn find(&self, key: &K) -> Option<Arc<V>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.uses += 1;
        let uses = inner.uses;
        let (used, value) = inner.values.get_mut(key)?;
        *used = uses;
        Some(Arc::clone(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let cache = Cache::new(2);
        let get = |key: u32, made: u32| *cache.get(key, || Ok::<_, ()>(made)).unwrap();
        assert_eq!((get(1, 10), get(2, 20), get(1, 11)), (10, 20, 10));
        assert_eq!(get(3, 30), 30);
        assert_eq!((get(1, 12), get(2, 21)), (10, 21));
        assert_eq!(cache.get(9, || Err("no")), Err("no"));
    }
}

//! What a module has learned of its variables: which ones places in functions see, which global ones have a name, and where those
//! are that are at the same place wherever a thread comes from.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Variable;
use crate::layout::DieId;
use crate::location::FixedPlace;
use crate::module::Module;

/// Variables that are kept, of places in functions and of names; beyond it all are forgotten and read again.
const MAX_VARIABLES: usize = 1 << 16;
/// Lists of variables that are kept.
const MAX_LISTS: usize = 1 << 14;

/// A variable without its module, which keeps it.
#[derive(Debug, Clone)]
pub(super) struct Described {
    pub name: String,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    pub is_parameter: bool,
    pub artificial: bool,
    pub scope_depth: usize,
    pub shadowed: bool,
    pub id: DieId,
    pub function: Option<DieId>,
    pub learned: Arc<Learned>,
}

/// What was found out about a variable, once somebody asked.
#[derive(Debug, Default)]
pub(super) struct Learned {
    /// Its type's entry.
    pub ty: OnceLock<Option<DieId>>,
    pub place: OnceLock<Option<FixedPlace>>,
}

impl Described {
    pub(super) fn variable(&self, module: &Arc<Module>) -> Variable {
        Variable {
            name: self.name.clone(),
            file: self.file.clone(),
            line: self.line,
            is_parameter: self.is_parameter,
            artificial: self.artificial,
            scope_depth: self.scope_depth,
            shadowed: self.shadowed,
            module: Arc::clone(module),
            id: self.id,
            function: self.function,
            learned: Arc::clone(&self.learned),
        }
    }
}

/// Variables that a place sees, or that have a name.
type List<T> = Arc<Vec<T>>;

/// The variables of one module that were asked about.
#[derive(Debug, Default)]
pub(crate) struct KnownVariables {
    /// By address in the file and number of inlined calls around.
    places: Mutex<Lists<(u64, usize), Described>>,
    /// Global ones by name, each with how well that fits.
    names: Mutex<Lists<String, (u8, Described)>>,
}

#[derive(Debug)]
struct Lists<K, T> {
    lists: HashMap<K, List<T>>,
    variables: usize,
}

impl<K, T> Default for Lists<K, T> {
    fn default() -> Self {
        Lists {
            lists: HashMap::new(),
            variables: 0,
        }
    }
}

impl KnownVariables {
    pub(super) fn at(
        &self,
        svma: u64,
        depth: usize,
        read: impl FnOnce() -> Vec<Described>,
    ) -> List<Described> {
        kept(&self.places, &(svma, depth), read)
    }

    pub(super) fn called(
        &self,
        name: &str,
        read: impl FnOnce() -> Vec<(u8, Described)>,
    ) -> List<(u8, Described)> {
        kept(&self.names, name, read)
    }
}

fn kept<K, Q, T>(lists: &Mutex<Lists<K, T>>, key: &Q, read: impl FnOnce() -> Vec<T>) -> List<T>
where
    K: Borrow<Q> + Hash + Eq,
    Q: ToOwned<Owned = K> + Hash + Eq + ?Sized,
{
    // The lock is not held while reading; of two that read the same, the first answer is kept.
    let lock = || lists.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().lists.get(key) {
        return Arc::clone(found);
    }
    let list = Arc::new(read());
    let mut all = lock();
    if all.variables + list.len() > MAX_VARIABLES || all.lists.len() >= MAX_LISTS {
        *all = Lists::default();
    }
    all.variables += list.len();
    Arc::clone(all.lists.entry(key.to_owned()).or_insert(list))
}

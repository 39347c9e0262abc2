//! What a module has learned of its variables: which ones places in functions see, which global ones have a name, and where those
//! are that are at the same place wherever a thread comes from.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::Variable;
use super::linked::Linkage;
use super::vtables::Vtables;
use crate::location::{FixedPlace, Stored};
use crate::module::Module;
use crate::types::DieId;

/// Variables that are kept, of places in functions and of names; beyond it all are forgotten and read again.
const MAX_VARIABLES: usize = 1 << 16;
/// Lists of variables that are kept.
const MAX_LISTS: usize = 1 << 14;

/// What the debug information says of a variable, without its module, which keeps it.
#[derive(Debug)]
pub struct Described {
    /// The name, for global variables with their namespaces and classes.
    pub name: String,
    /// The source file that declares it.
    pub file: Option<Arc<str>>,
    /// The line that declares it.
    pub line: Option<u32>,
    /// It is a parameter of its function.
    pub is_parameter: bool,
    /// The compiler made it, as `this`.
    pub artificial: bool,
    /// How many blocks of its function lie around it: 0 for parameters and the function's own variables.
    pub scope_depth: usize,
    /// A variable of the same name further inside hides it.
    pub shadowed: bool,
    /// How many inlined calls lie around its function in the one with code; 0 for global ones.
    pub inline_depth: usize,
    pub(super) id: DieId,
    /// The function with code whose frame holds it.
    pub(super) function: Option<DieId>,
    pub(super) learned: Learned,
}

/// What was found out about a variable, once somebody asked.
#[derive(Debug, Default)]
pub(super) struct Learned {
    /// Its type's entry.
    pub ty: OnceLock<Option<DieId>>,
    pub place: OnceLock<Option<FixedPlace>>,
    pub stored: OnceLock<Option<Stored>>,
    pub linkage: OnceLock<Option<Linkage>>,
}

impl Described {
    pub(super) fn variable(self: &Arc<Self>, module: &Arc<Module>) -> Variable {
        Variable {
            about: Arc::clone(self),
            module: Arc::clone(module),
        }
    }
}

/// Variables that a place sees, or that have a name.
type List<T> = Arc<Vec<T>>;

/// The variables of one module that were asked about.
#[derive(Debug, Default)]
pub(crate) struct KnownVariables {
    /// By address in the file and number of inlined calls around.
    places: Mutex<Lists<(u64, usize), Arc<Described>>>,
    /// Global ones by name, each with how well that fits.
    names: Mutex<Lists<String, (u8, Arc<Described>)>>,
    pub(super) vtables: Vtables,
}

#[derive(Debug)]
struct Lists<K, T> {
    lists: FxHashMap<K, List<T>>,
    variables: usize,
}

impl<K, T> Default for Lists<K, T> {
    fn default() -> Self {
        Lists {
            lists: FxHashMap::default(),
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
    ) -> List<Arc<Described>> {
        let read = || read().into_iter().map(Arc::new).collect();
        kept(&self.places, &(svma, depth), read)
    }

    pub(super) fn called(
        &self,
        name: &str,
        read: impl FnOnce() -> Vec<(u8, Described)>,
    ) -> List<(u8, Arc<Described>)> {
        let shared = |(rank, one)| (rank, Arc::new(one));
        let read = || read().into_iter().map(shared).collect();
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

//! A module's cache of its variables: those visible at places in functions, global ones by name, and the fixed places
//! that do not depend on the thread.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::Variable;
use super::enclosing::Outer;
use super::imports::Imports;
use super::linked::Linkage;
use super::local_types::LocalType;
use super::templates::Parameter;
use super::vtables::Vtables;
use crate::cache::Cache;
use crate::location::{FixedPlace, Stored};
use crate::model::Svma;
use crate::module::Module;
use crate::types::DieId;

/// Variables kept, of places in functions and of names. When the cache is full, all are dropped and read again on
/// demand.
const MAX_VARIABLES: usize = 1 << 16;
/// Lists of variables kept.
const MAX_LISTS: usize = 1 << 14;
/// Units, and places in functions, whose imports are kept.
const MAX_IMPORTERS: usize = 1 << 10;
/// Places in functions whose surroundings in the source are kept.
const MAX_SURROUNDINGS: usize = 1 << 12;

/// What the debug information states about a variable, without its module, which owns this value.
#[derive(Debug)]
pub struct Described {
    /// The name. For global variables, it includes namespaces and classes.
    pub name: String,
    /// The source file of the declaration.
    pub file: Option<Arc<str>>,
    /// The line of the declaration.
    pub line: Option<u32>,
    /// It is a parameter of its function.
    pub is_parameter: bool,
    /// The compiler generated it, like `this`.
    pub artificial: bool,
    /// The number of blocks of its function around it: 0 for parameters and the function's own variables.
    pub scope_depth: usize,
    /// The first address of the innermost block around it that states one.
    pub(super) block_begins: Option<u64>,
    /// The block of this copy of the function that declares it; `None` if the compiler omitted it from the copy.
    pub(super) block: Option<DieId>,
    /// A variable of the same name in an inner scope hides it.
    pub shadowed: bool,
    /// The number of inlined calls between its function and the function with code; 0 for global variables.
    pub inline_depth: usize,
    pub(super) id: DieId,
    /// The function with code whose frame contains it.
    pub(super) function: Option<DieId>,
    pub(super) learned: Learned,
}

/// Facts about a variable that are read on first use.
#[derive(Debug, Default)]
pub(super) struct Learned {
    /// The DIE of its type.
    pub ty: OnceLock<Option<DieId>>,
    pub place: OnceLock<Option<FixedPlace>>,
    pub stored: OnceLock<Option<Stored>>,
    /// Why it has no value, as a function item of Rust.
    pub item: OnceLock<Option<&'static str>>,
    pub linkage: OnceLock<Option<Linkage>>,
}

impl Described {
    pub(super) fn variable(self: &Arc<Self>, module: &Arc<Module>) -> Variable {
        Variable {
            about: Arc::clone(self),
            module: Arc::clone(module),
            rival: None,
        }
    }
}

/// What the source has around a place in a function. Each part is read on first use.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// The qualified name of the function.
    pub scope: OnceLock<String>,
    /// The functions that it is declared in, innermost first.
    pub functions: OnceLock<Vec<Outer>>,
    /// The classes that it is declared in, innermost first.
    pub classes: OnceLock<Vec<DieId>>,
    /// The types that each block, function and class around the place declares, innermost first.
    pub types: OnceLock<Vec<Vec<LocalType>>>,
    /// The parameters of the templates that it is made of, innermost first.
    pub templates: OnceLock<Vec<Parameter>>,
}

/// Variables visible at a place, or with a name.
type List<T> = Arc<Vec<T>>;

/// The cached variables of one module.
#[derive(Debug, Default)]
pub(crate) struct KnownVariables {
    /// By address in the file and number of inlined calls around.
    places: Mutex<Lists<(u64, usize), Arc<Described>>>,
    /// Global variables by name, each with its rank.
    names: Mutex<Lists<String, (u8, Arc<Described>)>>,
    pub(super) vtables: Vtables,
    /// What units import, and the blocks of functions, by address in the file and number of inlined calls around.
    pub(super) imports: Cache<usize, Arc<Imports>, MAX_IMPORTERS>,
    pub(super) local_imports: Cache<(u64, usize), Arc<Imports>, MAX_IMPORTERS>,
    surroundings: Cache<(u64, usize), Arc<Surroundings>, MAX_SURROUNDINGS>,
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
    pub(super) fn around(&self, svma: Svma, depth: usize) -> Arc<Surroundings> {
        self.surroundings.get(&(svma.0, depth), Arc::default)
    }

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
    // The lock is not held while reading. If two threads read the same list, the first one is kept.
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

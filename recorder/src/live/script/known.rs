//! Caches what names refer to at addresses where conditions are evaluated repeatedly: the lookup takes far longer than
//! reading the value.

use std::{borrow::Borrow, cell::RefCell, collections::HashMap, hash::Hash, sync::Arc};

use debuginfo::{AddressSpace, Machine, Value};
use expr::{Known, PlainValue};

/// Maximum number of addresses to cache. The cache is cleared when there are more.
const MOST_PLACES: usize = 1024;
/// Maximum number of names to cache at one address.
const MOST_NAMES: usize = 1024;

/// Names by address, valid as long as the modules are the same.
#[derive(Default)]
pub struct KnownNames {
    space: RefCell<Arc<AddressSpace>>,
    here: RefCell<HashMap<u64, Here>>,
}

/// Names at one address. `None`: they need the full lookup.
#[derive(Default)]
struct Here {
    locals: HashMap<String, Option<Known>>,
    globals: HashMap<String, Option<Known>>,
    arguments: HashMap<u32, Option<Known>>,
}

/// The result of a lookup.
pub enum Found {
    Value(Value),
    /// The name does not exist.
    Nothing,
    /// The name needs the full lookup.
    Unsure,
}

impl KnownNames {
    /// As [`Self::local`], if the value is just a number.
    pub fn plain_local(
        &self,
        name: &str,
        space: &Arc<AddressSpace>,
        pc: u64,
        machine: &dyn Machine,
    ) -> Option<PlainValue> {
        let is_known = Arc::ptr_eq(&self.space.borrow(), space);
        let places = self.here.borrow();
        match places.get(&pc)?.locals.get(name)? {
            Some(Known::Variable(place)) if is_known => place.plain(machine),
            _ => None,
        }
    }

    /// Finds a variable of the innermost frame at `pc`, or a member of the current object.
    pub fn local(
        &self,
        name: &str,
        space: &Arc<AddressSpace>,
        pc: u64,
        machine: &dyn Machine,
    ) -> Found {
        self.at(space, pc, |here| {
            let find = || expr::known_local(name, space, pc);
            read(&mut here.locals, name, machine, find)
        })
    }

    /// Finds a global variable or an enumerator.
    pub fn global(
        &self,
        name: &str,
        space: &Arc<AddressSpace>,
        pc: u64,
        machine: &dyn Machine,
    ) -> Found {
        self.at(space, pc, |here| {
            let find = || expr::known_global(name, space, pc);
            read(&mut here.globals, name, machine, find)
        })
    }

    /// Finds the argument passed in an integer argument register.
    pub fn argument(
        &self,
        n: u32,
        space: &Arc<AddressSpace>,
        pc: u64,
        machine: &dyn Machine,
    ) -> Found {
        self.at(space, pc, |here| {
            let find = || expr::known_argument(n, space, pc);
            read(&mut here.arguments, &n, machine, find)
        })
    }

    fn at(
        &self,
        space: &Arc<AddressSpace>,
        pc: u64,
        ask: impl FnOnce(&mut Here) -> Found,
    ) -> Found {
        let mut places = self.here.borrow_mut();
        if !Arc::ptr_eq(&self.space.borrow(), space) {
            *self.space.borrow_mut() = Arc::clone(space);
            places.clear();
        }
        if places.len() > MOST_PLACES {
            places.clear();
        }
        ask(places.entry(pc).or_default())
    }
}

fn read<K, Q>(
    names: &mut HashMap<K, Option<Known>>,
    name: &Q,
    machine: &dyn Machine,
    find: impl FnOnce() -> Option<Known>,
) -> Found
where
    K: Borrow<Q> + Hash + Eq,
    Q: ToOwned<Owned = K> + Hash + Eq + ?Sized,
{
    if !names.contains_key(name) {
        if names.len() > MOST_NAMES {
            names.clear();
        }
        names.insert(name.to_owned(), find());
    }
    match names.get(name) {
        None | Some(None) => Found::Unsure,
        Some(Some(Known::Nothing)) => Found::Nothing,
        Some(Some(Known::Constant(value))) => Found::Value(value.clone()),
        Some(Some(Known::Variable(place))) => {
            place.read(machine).map_or(Found::Unsure, Found::Value)
        }
    }
}

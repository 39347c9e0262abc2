//! Which functions of two recordings are the same: by module, name and source file, never by address or number.
//!
//! Both recordings then use one number for a function that both have. Calls of other functions are left out of the
//! comparison and told apart: a function may be new, or inlined.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rustc_hash::FxHashMap;
use store::control::FunctionDef;

use super::hash;
use crate::definitions::{Definitions, Module};

/// What makes a function the same in another build.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The name of its module; empty for the program itself.
    pub module: String,
    /// Its name.
    pub name: String,
    /// The last component of its source file, if it is known.
    pub file: String,
    /// Its number among those that share all of that, by address.
    pub twin: u32,
}

impl Key {
    /// Returns a number that is the same in every run.
    pub fn stable(&self) -> u64 {
        let texts =
            [&self.module, &self.name, &self.file].map(|text| hash::of_bytes(text.as_bytes()));
        hash::fold(hash::of_words(&texts), u64::from(self.twin))
    }
}

/// The functions of both recordings.
#[derive(Debug, Default)]
pub struct Identities {
    /// The functions that both have; the position is the shared number.
    pub shared: Vec<Shared>,
    /// By function id: the shared number.
    pub of_a: Vec<Option<u32>>,
    /// The same of the other recording.
    pub of_b: Vec<Option<u32>>,
    /// So many of the shared ones are in a source file of another name.
    pub moved: usize,
}

/// A function that both recordings have.
#[derive(Clone, Debug)]
pub struct Shared {
    /// What makes it the same.
    pub key: Key,
    /// Its ids in both.
    pub ids: [u32; 2],
}

/// Returns the name of a module that is the same in another build: without versions, and empty for the program.
pub fn module_key(module: Option<&Module>) -> String {
    let Some(module) = module else {
        return "?".to_owned();
    };
    match module.id {
        0 => String::new(),
        _ => match module.name().split_once(".so") {
            Some((stem, _)) => format!("{stem}.so"),
            None => module.name().to_owned(),
        },
    }
}

/// Tells whether both recordings are of the same builds.
pub fn is_same_build(a: &Definitions, b: &Definitions) -> bool {
    let builds = |definitions: &Definitions| {
        let modules = definitions.modules().filter(|module| !module.system);
        modules
            .map(|module| module.build_id.clone())
            .collect::<BTreeSet<_>>()
    };
    let (own, other) = (builds(a), builds(b));
    own == other && !own.contains(&None)
}

/// Tells whether calls have the same frames in both recordings: those of the system's libraries are of the same builds, too.
pub fn has_same_frames(a: &Definitions, b: &Definitions) -> bool {
    let of_b: FxHashMap<String, &Option<String>> = b
        .modules()
        .map(|module| (module_key(Some(module)), &module.build_id))
        .collect();
    let mut of_a = a.modules();
    let is_same = |module: &Module| {
        let twin = of_b.get(&module_key(Some(module)));
        twin.is_none_or(|build| **build == module.build_id)
    };
    is_same_build(a, b) && of_a.all(is_same)
}

fn key_of(definitions: &Definitions, function: &FunctionDef) -> Key {
    let file = function
        .file
        .as_deref()
        .and_then(|file| Path::new(file).file_name());
    Key {
        module: module_key(definitions.module(function.module)),
        name: function.name.clone(),
        file: file
            .map(|file| file.to_string_lossy().into_owned())
            .unwrap_or_default(),
        twin: 0,
    }
}

/// Returns the functions of a recording by what makes them the same.
fn keys(definitions: &Definitions) -> BTreeMap<Key, u32> {
    let mut all: Vec<&FunctionDef> = definitions.functions().collect();
    all.sort_by_key(|function| (function.module, function.svma, function.id));
    let mut twins: FxHashMap<Key, u32> = FxHashMap::default();
    let mut keys = BTreeMap::new();
    for function in all {
        let mut key = key_of(definitions, function);
        let twin = twins.entry(key.clone()).or_default();
        key.twin = *twin;
        *twin += 1;
        keys.insert(key, function.id);
    }
    keys
}

impl Identities {
    /// Finds the functions that both recordings have.
    pub fn of(a: &Definitions, b: &Definitions) -> Self {
        let (mut keys_a, mut keys_b) = (keys(a), keys(b));
        let mut found = Identities {
            of_a: vec![None; a.id_limit()],
            of_b: vec![None; b.id_limit()],
            ..Identities::default()
        };
        let mut pairs = Vec::new();
        keys_a.retain(|key, id_a| {
            let same = keys_b.remove(key);
            pairs.extend(same.map(|id_b| (key.clone(), [*id_a, id_b])));
            same.is_none()
        });
        // A source file may have a new name.
        let (moved_a, mut moved_b) = (by_name(keys_a), by_name(keys_b));
        for (name, of_a) in moved_a {
            let of_b = moved_b.remove(&name).unwrap_or_default();
            if let ([(key, id_a)], [(_, id_b)]) = (of_a.as_slice(), of_b.as_slice()) {
                pairs.push((key.clone(), [*id_a, *id_b]));
                found.moved += 1;
            }
        }
        pairs.sort_unstable();
        for (key, ids) in pairs {
            let number = Some(found.shared.len() as u32);
            found.of_a[ids[0] as usize] = number;
            found.of_b[ids[1] as usize] = number;
            found.shared.push(Shared { key, ids });
        }
        found
    }
}

/// Groups functions by module and name.
fn by_name(keys: BTreeMap<Key, u32>) -> BTreeMap<(String, String), Vec<(Key, u32)>> {
    let mut groups: BTreeMap<(String, String), Vec<(Key, u32)>> = BTreeMap::new();
    for (key, id) in keys {
        let name = (key.module.clone(), key.name.clone());
        groups.entry(name).or_default().push((key, id));
    }
    groups
}

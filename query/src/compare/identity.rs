//! Which functions of two recordings are the same: by module, name, source file and linker name, never by address or number.
//!
//! Both recordings then use one number for a function that both have. Calls of other functions are left out of the
//! comparison and told apart: a function may be new, or inlined.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use debuginfo::object_variant;
use rustc_hash::{FxHashMap, FxHashSet};
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

/// A function of one recording.
struct Own {
    id: u32,
    key: Key,
    /// Its linker name. Overloads, constructors and destructors differ in nothing else.
    linkage: String,
    /// It is a destructor that frees the object, too: no other one is the same.
    is_deleting: bool,
}

/// Returns the functions of a recording in the order of their addresses.
fn owns(definitions: &Definitions) -> Vec<Own> {
    let mut all: Vec<&FunctionDef> = definitions.functions().collect();
    all.sort_by_key(|function| (function.module, function.svma, function.id));
    let mut twins: FxHashMap<Key, u32> = FxHashMap::default();
    let mut owns = Vec::with_capacity(all.len());
    for function in all {
        let mut key = key_of(definitions, function);
        let twin = twins.entry(key.clone()).or_default();
        key.twin = *twin;
        *twin += 1;
        let is_destructor = key.name.contains('~');
        owns.push(Own {
            id: function.id,
            key,
            linkage: function.linkage.clone(),
            is_deleting: is_destructor && object_variant(&function.linkage) == Some("deleting"),
        });
    }
    owns
}

/// What functions must have in common, besides their module and name.
#[derive(Clone, Copy)]
struct Pass {
    /// Their source file. Without it, each must be the only one on its side.
    has_file: bool,
    /// Their linker name.
    has_linkage: bool,
}

/// The passes, the strictest first: a signature may have changed, and a source file may have a new name.
const PASSES: [Pass; 4] = [
    Pass {
        has_file: true,
        has_linkage: true,
    },
    Pass {
        has_file: true,
        has_linkage: false,
    },
    Pass {
        has_file: false,
        has_linkage: true,
    },
    Pass {
        has_file: false,
        has_linkage: false,
    },
];

/// What a pass compares.
type Part<'o> = (&'o str, &'o str, &'o str, &'o str, bool);

impl Pass {
    fn part<'o>(self, own: &'o Own) -> Part<'o> {
        let key = &own.key;
        let file = if self.has_file { &*key.file } else { "" };
        let linkage = if self.has_linkage { &*own.linkage } else { "" };
        (&*key.module, &*key.name, file, linkage, own.is_deleting)
    }

    /// Returns the positions of functions by what this pass compares, in their order.
    fn positions<'o>(self, owns: &'o [Own]) -> BTreeMap<Part<'o>, Vec<usize>> {
        let mut positions: BTreeMap<Part<'o>, Vec<usize>> = BTreeMap::new();
        for (at, own) in owns.iter().enumerate() {
            positions.entry(self.part(own)).or_default().push(at);
        }
        positions
    }

    /// Returns the positions of functions that are the same.
    fn pairs(self, a: &[Own], b: &[Own]) -> Vec<(usize, usize)> {
        let mut of_b = self.positions(b);
        let mut pairs = Vec::new();
        for (part, of_a) in self.positions(a) {
            let of_b = of_b.remove(&part).unwrap_or_default();
            if self.has_file || (of_a.len(), of_b.len()) == (1, 1) {
                pairs.extend(of_a.into_iter().zip(of_b));
            }
        }
        pairs
    }
}

/// Leaves out the functions at these positions.
fn remove(owns: &mut Vec<Own>, positions: impl Iterator<Item = usize>) {
    let positions: FxHashSet<usize> = positions.collect();
    let mut at = 0..;
    owns.retain(|_| at.next().is_none_or(|at| !positions.contains(&at)));
}

impl Identities {
    /// Finds the functions that both recordings have.
    pub fn of(a: &Definitions, b: &Definitions) -> Self {
        let (mut own_a, mut own_b) = (owns(a), owns(b));
        let mut found = Identities {
            of_a: vec![None; a.id_limit()],
            of_b: vec![None; b.id_limit()],
            ..Identities::default()
        };
        let mut pairs = Vec::new();
        for pass in PASSES {
            let same = pass.pairs(&own_a, &own_b);
            pairs.extend(same.iter().map(|(at_a, at_b)| {
                let (own, other) = (&own_a[*at_a], &own_b[*at_b]);
                (own.key.clone(), [own.id, other.id])
            }));
            if !pass.has_file {
                found.moved += same.len();
            }
            remove(&mut own_a, same.iter().map(|(at, _)| *at));
            remove(&mut own_b, same.iter().map(|(_, at)| *at));
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

#[cfg(test)]
mod tests {
    use store::control::{Control, ValueKind};

    use super::*;

    /// The name of a function, its linker name and its file.
    type Named = (&'static str, &'static str, &'static str);

    /// The definitions of functions, in the order of their addresses.
    fn definitions(functions: &[Named]) -> Definitions {
        let mut definitions = Definitions::default();
        for (id, (name, linkage, file)) in functions.iter().enumerate() {
            definitions.add(Control::Function(FunctionDef {
                id: id as u32,
                module: 0,
                svma: 0x1000 + id as u64 * 0x40,
                size: 0x40,
                name: (*name).into(),
                linkage: (*linkage).into(),
                file: Some((*file).into()),
                line: None,
                params: Vec::new(),
                ret: ValueKind::Void,
                params_known: true,
                ret_place: None,
            }));
        }
        definitions
    }

    fn pairs(a: &[Named], b: &[Named]) -> Vec<[u32; 2]> {
        let found = Identities::of(&definitions(a), &definitions(b));
        let mut pairs: Vec<[u32; 2]> = found.shared.iter().map(|shared| shared.ids).collect();
        pairs.sort_unstable();
        pairs
    }

    const DELETING: Named = ("A::~A", "_ZN1AD0Ev", "a.cc");
    const BASE: Named = ("A::~A", "_ZN1AD2Ev", "a.cc");
    const COMPLETE: Named = ("A::~A", "_ZN1AD1Ev", "a.cc");

    #[test]
    fn functions_of_one_name_are_told_apart_by_their_linker_names() {
        let of_ints = ("f", "_Z1fi", "a.cc");
        let of_reals = ("f", "_Z1fd", "a.cc");
        let cases: [(&[Named], &[Named], &[[u32; 2]]); 8] = [
            (&[DELETING, BASE], &[BASE, DELETING], &[[0, 1], [1, 0]]),
            (&[BASE, DELETING], &[DELETING], &[[1, 0]]),
            // The compiler may make one function of two, with either name.
            (&[BASE], &[COMPLETE], &[[0, 0]]),
            (&[BASE], &[DELETING], &[]),
            (&[of_ints, of_reals], &[of_reals], &[[1, 0]]),
            // Its signature was changed, or its file has a new name.
            (&[of_ints], &[of_reals], &[[0, 0]]),
            (&[of_ints], &[("f", "_Z1fi", "b.cc")], &[[0, 0]]),
            (&[of_ints, of_reals], &[("f", "_Z1fd", "b.cc")], &[[1, 0]]),
        ];
        for (a, b, expected) in cases {
            assert_eq!(pairs(a, b), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_name_says_which_destructor_it_is() {
        let definitions = definitions(&[DELETING, BASE, ("main", "main", "a.cc")]);
        let names = definitions
            .functions()
            .map(|one| definitions.told_name(one));
        let names: Vec<String> = names.collect();
        assert_eq!(names, ["A::~A (deleting)", "A::~A (base object)", "main"]);
    }
}

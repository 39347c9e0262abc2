//! Interpreters whose own tables differ in each run, though a script does the same.
//!
//! Lua seeds its hashes with addresses and the clock. CPython hashes objects by their addresses, and its cache of methods goes by the
//! addresses of names: whether a method is in it is chance, and so are how long it keeps a name, and the order in which objects are
//! freed at the end. How they search their tables and free objects is not compared; whatever else a script does is.

use std::path::Path;

use debuginfo::{AddressSpace, Svma};
use store::control::FunctionDef;

use super::identity::module_key;
use super::side::{has_random_addresses, last_space};
use crate::definitions::Definitions;
use crate::error::Result;
use crate::overview::Source;
use crate::session::Session;

/// An interpreter, by what is recorded of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Lua with the names of its own functions.
    Lua,
    /// The same, compiled with a fixed seed of hashes.
    FixedLua,
    /// Lua with nothing but the names of the functions that it exports.
    StrippedLua,
    /// CPython with the names of its own functions.
    Python,
    /// CPython with nothing but the names of the functions that it exports.
    StrippedPython,
}

/// What is not compared of an interpreter.
#[derive(Debug)]
struct Left {
    /// Functions whose calls are left out; those that they make count as their caller's.
    functions: &'static [&'static str],
    /// Source files of such functions.
    files: &'static [&'static str],
    /// Functions whose calls are left out with all calls within them.
    inside: &'static [&'static str],
    /// Source files of such functions.
    inside_files: &'static [&'static str],
    /// What the report says.
    note: &'static str,
}

/// Functions that Lua alone exports, from version 5.2 on. Older ones have no seed.
const LUA: [&str; 4] = ["lua_callk", "lua_compare", "lua_pcallk", "lua_rawgetp"];
/// The function that makes its seed. It is not there if Lua was compiled with a fixed one.
const SEED: &str = "luai_makeseed";
/// The function that calls it.
const SEEDED: &str = "lua_newstate";
/// Functions that CPython alone exports.
const PYTHON: [&str; 3] = ["Py_FinalizeEx", "Py_RunMain", "_PyEval_EvalFrameDefault"];

static LEFT_OF_LUA: Left = Left {
    functions: &[SEED, "nextrand", "randseed", "rotl", "setseed"],
    files: &[],
    inside: &["l_alloc", "luaC_*", "luaH_*", "luaM_*", "luaS_*"],
    inside_files: &[],
    note: "Lua's hashes may have another seed in each run: how it searches tables and strings and frees them was not compared",
};
static LEFT_OF_FIXED_LUA: Left = Left {
    functions: &["nextrand", "randseed", "rotl", "setseed"],
    files: &[],
    inside: &[],
    inside_files: &[],
    note: "Lua's random numbers begin with the clock: how it makes them was not compared",
};
static LEFT_OF_STRIPPED_LUA: Left = Left {
    // It looks for a string among those of the same hash, and in its cache of C strings, which goes by their addresses.
    functions: &["memcmp@plt", "strcmp@plt"],
    files: &[],
    inside: &[],
    inside_files: &[],
    note: "Lua's hashes may have another seed in each run: its calls of memcmp and strcmp were not compared",
};
static LEFT_OF_PYTHON: Left = Left {
    functions: &["memcmp@plt"],
    files: &["dictobject.c", "setobject.c"],
    inside: &["_PyType_Lookup*", "_PyTypes_Fini", "_Py_Dealloc"],
    inside_files: &["obmalloc.c"],
    note: "CPython hashes addresses: how it searches dictionaries and sets, finds methods and frees objects was not compared",
};
static LEFT_OF_STRIPPED_PYTHON: Left = Left {
    functions: &[
        "memcmp@plt",
        "PyDict_Clear",
        "PyDict_DelItem",
        "PyObject_Free",
        "PyObject_GC_Del",
        "_Py_Dealloc",
    ],
    files: &[],
    inside: &[],
    inside_files: &[],
    note: "CPython hashes addresses: its calls of memcmp, of PyDict_DelItem and of what frees objects were not compared",
};

impl Kind {
    fn left(self) -> &'static Left {
        match self {
            Kind::Lua => &LEFT_OF_LUA,
            Kind::FixedLua => &LEFT_OF_FIXED_LUA,
            Kind::StrippedLua => &LEFT_OF_STRIPPED_LUA,
            Kind::Python => &LEFT_OF_PYTHON,
            Kind::StrippedPython => &LEFT_OF_STRIPPED_PYTHON,
        }
    }

    fn is_python(self) -> bool {
        matches!(self, Kind::Python | Kind::StrippedPython)
    }
}

/// A module that is or has an interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    module: u32,
    kind: Kind,
}

/// The interpreters of two recordings.
#[derive(Clone, Debug, Default)]
pub struct Interpreters {
    /// Each with the name of its module, as both recordings have it.
    of: Vec<(String, Kind)>,
}

impl Interpreters {
    /// Finds those of both recordings. Where one of them lacks the names, what is left out there is left out in both.
    ///
    /// # Errors
    /// A recording cannot be read.
    pub fn of(a: &Session, b: &Session) -> Result<Self> {
        let is_random = has_random_addresses(a) && has_random_addresses(b);
        let mut of = Vec::new();
        for session in [a, b] {
            let definitions = session.definitions();
            let found = found(definitions);
            if found.is_empty() {
                continue;
            }
            let space = last_space(&Source::new(session)?);
            for Found { module, kind } in found {
                if kind.is_python() && !is_random {
                    continue;
                }
                let kind = match kind {
                    Kind::Lua if has_fixed_seed(definitions, &space, module) => Kind::FixedLua,
                    kind => kind,
                };
                let one = (module_key(definitions.module(module)), kind);
                if !of.contains(&one) {
                    of.push(one);
                }
            }
        }
        Ok(Self { of })
    }

    /// Returns what the interpreter that a function belongs to leaves out.
    fn left(
        &self,
        function: &FunctionDef,
        definitions: &Definitions,
    ) -> impl Iterator<Item = (Kind, &'static Left)> {
        let module = (!self.of.is_empty()).then(|| module_key(definitions.module(function.module)));
        let own = self
            .of
            .iter()
            .filter(move |(key, _)| module.as_ref() == Some(key));
        own.map(|(_, kind)| (*kind, kind.left()))
    }

    /// Tells whether the calls of a function are left out.
    pub fn leaves_out(&self, function: &FunctionDef, definitions: &Definitions) -> bool {
        self.decides(function, definitions)
            || self
                .left(function, definitions)
                .any(|(_, left)| is_one(function, left.functions, left.files))
    }

    /// Tells whether the calls of a function are left out with all calls within them.
    pub fn decides(&self, function: &FunctionDef, definitions: &Definitions) -> bool {
        self.left(function, definitions)
            .any(|(_, left)| is_one(function, left.inside, left.inside_files))
    }

    /// Tells whether a function returns a hash, which may be one of an address.
    pub fn hashes(&self, function: &FunctionDef, definitions: &Definitions) -> bool {
        let name = || without_stub(&function.name).to_ascii_lowercase();
        self.left(function, definitions)
            .any(|(kind, _)| kind.is_python() && name().ends_with("hash"))
    }

    /// Says what was not compared.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for (_, kind) in &self.of {
            let note = kind.left().note;
            if !notes.iter().any(|one| one == note) {
                notes.push(note.to_owned());
            }
        }
        notes
    }
}

/// Finds the modules with interpreters.
fn found(definitions: &Definitions) -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    for function in definitions.functions() {
        let kind = match &*function.name {
            name if LUA.contains(&name) => Kind::StrippedLua,
            name if PYTHON.contains(&name) => Kind::StrippedPython,
            _ => continue,
        };
        let module = function.module;
        let one = Found { module, kind };
        if !all.contains(&one) {
            all.push(one);
        }
    }
    if all.is_empty() {
        return all;
    }
    // What they do not export has a name only if there are symbols.
    for function in definitions.functions() {
        let own = all.iter_mut();
        for one in own.filter(|one| one.module == function.module) {
            one.kind = match one.kind {
                Kind::StrippedLua if function.name.starts_with("luaS_") => Kind::Lua,
                Kind::StrippedPython if function.name == "dict_dealloc" => Kind::Python,
                kind => kind,
            };
        }
    }
    all
}

/// Tells whether Lua was compiled with a fixed seed, as far as the debug information tells.
fn has_fixed_seed(definitions: &Definitions, space: &AddressSpace, module: u32) -> bool {
    let seeded = functions_of(definitions, module).find(|function| function.name == SEEDED);
    let Some(seeded) = seeded.filter(|function| function.file.is_some()) else {
        return false;
    };
    let mut modules = space.modules().iter();
    let Some(mapped) = modules.find(|mapped| mapped.number == module) else {
        return false;
    };
    let inlined = mapped.module.inlined_calls(Svma(seeded.svma));
    let is_inlined = inlined.iter().any(|call| &*call.callee == SEED);
    !is_inlined && !functions_of(definitions, module).any(|function| function.name == SEED)
}

fn functions_of(definitions: &Definitions, module: u32) -> impl Iterator<Item = &FunctionDef> {
    let functions = definitions.functions();
    functions.filter(move |function| function.module == module)
}

/// Tells whether a function is one of those with such names, or the stub of one, or in such files.
fn is_one(function: &FunctionDef, names: &[&str], files: &[&str]) -> bool {
    let file = function.file.as_deref().map(Path::new);
    let file = file.and_then(Path::file_name);
    names.iter().any(|name| is_named(&function.name, name))
        || file.is_some_and(|own| files.iter().any(|file| own == *file))
}

/// Tells whether a name is that of a pattern, which may end in `*`, or the name of its stub.
fn is_named(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern || without_stub(name) == pattern,
    }
}

/// Returns the name of the function that a stub leads to.
fn without_stub(name: &str) -> &str {
    name.strip_suffix("@plt").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_themselves_their_stubs_and_beginnings() {
        for (name, pattern, expected) in [
            ("memcmp@plt", "memcmp@plt", true),
            // The program's own function is none of the C library.
            ("memcmp", "memcmp@plt", false),
            ("_Py_Dealloc", "_Py_Dealloc", true),
            ("_Py_Dealloc@plt", "_Py_Dealloc", true),
            ("_Py_DeallocAll", "_Py_Dealloc", false),
            ("luaH_getint", "luaH_*", true),
            ("lua_next", "luaH_*", false),
        ] {
            assert_eq!(is_named(name, pattern), expected, "{name} {pattern}");
        }
    }
}

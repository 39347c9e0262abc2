//! The variables that both recordings have, where their builds differ.

use std::sync::Arc;

use debuginfo::SharedVariables;
use rustc_hash::FxHashMap;

use super::identity::module_key;
use super::side::last_space;
use crate::error::Result;
use crate::overview::Source;
use crate::session::Session;

/// By what makes a module the same in both recordings. Modules with the same build are left out, and so are those of which a file
/// is missing.
pub type Variables = FxHashMap<String, Arc<SharedVariables>>;

/// Finds the variables that both recordings have.
///
/// # Errors
/// A recording cannot be read.
pub fn shared(a: &Session, b: &Session) -> Result<Variables> {
    let (space_a, space_b) = (last_space(&Source::new(a)?), last_space(&Source::new(b)?));
    let mut found = Variables::default();
    for own in space_a.modules() {
        let definition = a.definitions().module(own.number);
        let key = module_key(definition);
        let other = space_b.modules().iter().find_map(|other| {
            let twin = b.definitions().module(other.number)?;
            (module_key(Some(twin)) == key).then_some((other, twin))
        });
        let Some((other, twin)) = other else {
            continue;
        };
        let build = definition.and_then(|definition| definition.build_id.as_ref());
        if build.is_none() || build != twin.build_id.as_ref() {
            let shared = SharedVariables::of(&own.module, &other.module);
            found.insert(key, Arc::new(shared));
        }
    }
    Ok(found)
}

/// Returns the variables that begin with other values in the two builds, without those that the compiler makes for classes.
pub fn changed(variables: &Variables) -> Vec<String> {
    let all = variables.values().flat_map(|shared| shared.changed());
    let written = all.filter(|name| !is_of_class(name));
    let mut names: Vec<String> = written.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns whether a variable describes a class: it has addresses of code and data in it, which differ wherever something has moved.
fn is_of_class(name: &str) -> bool {
    let begins = [
        "{vtable(",
        "{vtt(",
        "typeinfo for ",
        "typeinfo name for ",
        "_ZTC",
        "_ZTI",
        "_ZTS",
        "_ZTT",
        "_ZTV",
    ];
    // Construction vtables.
    let is_partial = name.starts_with('{') && name.contains("vtable");
    is_partial || begins.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::is_of_class;

    #[test]
    fn what_describes_a_class_is_told_by_its_name() {
        for name in [
            "{vtable(Base)}",
            "{vtt(Derived)}",
            "typeinfo for Base",
            "_ZTV4Base",
        ] {
            assert!(is_of_class(name), "{name}");
        }
        for name in ["limit", "app::vtable", "typeinfo"] {
            assert!(!is_of_class(name), "{name}");
        }
    }
}

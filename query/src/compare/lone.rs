//! Functions that were called and that only one recording has, and why, as far as that is known.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use store::control::FunctionDef;

use super::digest::Tally;
use super::identity::module_key;
use super::report::LoneFunction;
use crate::error::Result;
use crate::overview::Source;
use crate::session::Session;

/// Returns the functions of a recording that have no shared number. `side` is its name; the other build has `inlined` these.
///
/// # Errors
/// The other recording cannot be read.
pub fn functions(
    (own, other): (&Session, &Session),
    side: char,
    (numbers, tallies): (&[Option<u32>], &[Tally]),
    inlined: &FxHashSet<Arc<str>>,
) -> Result<Vec<LoneFunction>> {
    let mut found = Vec::new();
    for function in own.definitions().functions() {
        let id = function.id as usize;
        let calls = tallies.get(id).map_or(0, |tally| tally.calls);
        if calls > 0 && numbers[id].is_none() {
            found.push(LoneFunction {
                side,
                function: own.definitions().told_name(function),
                calls,
                place: function.file.clone().zip(function.line),
                why: match inlined.contains(&*function.name) {
                    true => "the other build inlined it, so it has no separate code".to_owned(),
                    false => why(own, other, function)?,
                },
            });
        }
    }
    Ok(found)
}

fn why(own: &Session, other: &Session, function: &FunctionDef) -> Result<String> {
    let mut skipped = other.definitions().skipped().iter();
    if let Some(skipped) = skipped.find(|skipped| skipped.name == function.name) {
        return Ok(format!("it is not recorded there: {}", skipped.reason));
    }
    let key = module_key(own.definitions().module(function.module));
    let mut modules = other.definitions().modules();
    let Some(module) = modules.find(|module| module_key(Some(module)) == key) else {
        return Ok("the other one has not loaded its module".to_owned());
    };
    let source = Source::new(other)?;
    let space = source
        .timeline()
        .map(|timeline| timeline.modules().space(timeline.last()));
    let mapped = space.as_ref().and_then(|space| {
        let mut modules = space.modules().iter();
        modules.find(|mapped| mapped.number == module.id)
    });
    let own_build = own.definitions().module(function.module);
    let own_build = own_build.and_then(|module| module.build_id.as_ref());
    if own_build.is_some() && own_build == module.build_id.as_ref() {
        let why = "the other one is of the same build, and was recorded with other options";
        return Ok(why.to_owned());
    }
    // Of the names that several classes have, the one in the file's symbols is told apart. That of a Rust function has a hash.
    let is_rust = own.definitions().is_rust(function.module);
    let name = match function.linkage.starts_with("_Z") && !is_rust {
        true => function.linkage.as_str(),
        false => function.name.rsplit("::").next().unwrap_or(&function.name),
    };
    Ok(match mapped.map(|mapped| mapped.module.mentions(name)) {
        Some(true) => "the other build has no separate code for it, but still names it: it is most likely inlined there",
        Some(false) => "the other build has no such function",
        None => "whether the other build has it is not known: its file is not there",
    }
    .to_owned())
}

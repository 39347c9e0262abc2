//! Which calls the compiler has inlined in one build and not in the other. Such calls are in one recording only, although the
//! programs do the same, so the function's calls cannot be compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use debuginfo::Svma;
use rustc_hash::{FxHashMap, FxHashSet};

use super::identity::Identities;
use crate::error::Result;
use crate::overview::Source;
use crate::session::Session;

/// What is known of both builds. Nothing is, where their files or their debug information are not there.
#[derive(Debug, Default)]
pub struct Inlining {
    /// Shared numbers of functions that are inlined at other places in one build than in the other.
    pub uneven: FxHashSet<u32>,
    /// The functions that are inlined somewhere, of each build.
    pub inlined: [FxHashSet<Arc<str>>; 2],
}

/// The inlined calls of one build.
#[derive(Default)]
struct Calls {
    /// By function, inlined copies included: by callee, the lines of its inlined calls.
    by_caller: FxHashMap<Arc<str>, BTreeMap<Arc<str>, FxHashSet<(Arc<str>, u32)>>>,
}

impl Calls {
    /// Reads the functions that were recorded, in modules of which the other recording has another build.
    fn of(own: &Session, other: &Session) -> Result<Self> {
        let mut found = Self::default();
        let source = Source::new(own)?;
        let Some(timeline) = source.timeline() else {
            return Ok(found);
        };
        let builds: FxHashSet<_> = other
            .definitions()
            .modules()
            .filter_map(|module| module.build_id.clone())
            .collect();
        let space = timeline.modules().space(timeline.last());
        let modules: FxHashMap<u32, _> = space
            .modules()
            .iter()
            .map(|mapped| (mapped.number, Arc::clone(&mapped.module)))
            .collect();
        for function in own.definitions().functions() {
            let definition = own.definitions().module(function.module);
            let is_same = definition.is_none_or(|module| {
                let build = module.build_id.as_ref();
                module.system || build.is_some_and(|build| builds.contains(build))
            });
            let Some(module) = modules.get(&function.module).filter(|_| !is_same) else {
                continue;
            };
            found
                .by_caller
                .entry(Arc::from(&*function.name))
                .or_default();
            for call in module.inlined_calls(Svma(function.svma)) {
                let of_caller = found.by_caller.entry(call.caller).or_default();
                let lines = of_caller.entry(Arc::clone(&call.callee)).or_default();
                lines.extend(call.at.map(|at| (at.file, at.line)));
                found.by_caller.entry(call.callee).or_default();
            }
        }
        Ok(found)
    }

    /// The functions that are inlined somewhere.
    fn callees(&self) -> FxHashSet<Arc<str>> {
        let all = self.by_caller.values().flat_map(BTreeMap::keys);
        all.cloned().collect()
    }

    /// The functions that are inlined at more places of a function than in the other build, which has that function too.
    fn add_more_than<'c>(&'c self, other: &Calls, to: &mut FxHashSet<&'c str>) {
        for (caller, callees) in &self.by_caller {
            let Some(of_other) = other.by_caller.get(caller) else {
                continue;
            };
            for (callee, lines) in callees {
                // Calls without a line, as those of line 0, count as one.
                let count = |lines: &FxHashSet<_>| lines.len().max(1);
                if of_other.get(callee).map_or(0, count) < count(lines) {
                    to.insert(callee);
                }
            }
        }
    }
}

/// Compares what is inlined in both builds.
///
/// # Errors
/// A recording cannot be read.
pub fn inlining(a: &Session, b: &Session, identities: &Identities) -> Result<Inlining> {
    let (of_a, of_b) = (Calls::of(a, b)?, Calls::of(b, a)?);
    let mut names = FxHashSet::default();
    of_a.add_more_than(&of_b, &mut names);
    of_b.add_more_than(&of_a, &mut names);
    let mut found = Inlining {
        inlined: [of_a.callees(), of_b.callees()],
        ..Inlining::default()
    };
    for (number, shared) in identities.shared.iter().enumerate() {
        let function = a.definitions().function(shared.ids[0] as usize);
        if function.is_some_and(|function| names.contains(&*function.name)) {
            found.uneven.insert(number as u32);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inlined calls of `caller`: each callee with its lines.
    fn calls(of: &[(&str, &[u32])]) -> Calls {
        let lines = |lines: &[u32]| {
            lines
                .iter()
                .map(|line| (Arc::from("a.rs"), *line))
                .collect()
        };
        let callees = of
            .iter()
            .map(|(callee, of)| (Arc::from(*callee), lines(of)));
        let mut found = Calls::default();
        found
            .by_caller
            .insert(Arc::from("caller"), callees.collect());
        found
    }

    #[test]
    fn what_one_build_inlines_at_more_places_is_uneven() {
        let (one, other) = (
            calls(&[
                ("alike", &[1, 2]),
                ("more", &[1, 2]),
                ("lineless", &[]),
                ("own", &[]),
            ]),
            calls(&[("alike", &[3, 4]), ("more", &[3]), ("lineless", &[])]),
        );
        let (mut uneven, mut turned) = (FxHashSet::default(), FxHashSet::default());
        one.add_more_than(&other, &mut uneven);
        other.add_more_than(&one, &mut turned);
        assert_eq!(uneven, FxHashSet::from_iter(["more", "own"]));
        assert!(turned.is_empty(), "{turned:?}");
    }
}

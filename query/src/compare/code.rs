//! Which functions have other code in the other build, as far as the files of both builds are still there.

use std::sync::Arc;

use debuginfo::{CodeHasher, CodePrint, Module, Svma, SymbolKind};
use rustc_hash::{FxHashMap, FxHashSet};

use store::control::FunctionDef;

use super::identity::Identities;
use crate::error::Result;
use crate::overview::Source;
use crate::session::Session;

/// What is known of the code of both builds.
#[derive(Debug, Default)]
pub struct Codes {
    /// Shared numbers of functions whose code differs.
    pub changed: FxHashSet<u32>,
    /// The files of all modules that differ could be read; otherwise less is known.
    pub is_known: bool,
}

/// A module, with the parts of functions that the compiler moved away from the rest: what handles exceptions, and what seldom runs.
struct Parts {
    code: CodeHasher,
    /// Their addresses and sizes, by the linker name of the function.
    cold: FxHashMap<String, Vec<(Svma, u64)>>,
}

impl Parts {
    fn of(module: &Arc<Module>) -> Parts {
        let mut cold: FxHashMap<String, Vec<(Svma, u64)>> = FxHashMap::default();
        let symbols = module.symbols().into_iter();
        for symbol in symbols.filter(|symbol| symbol.kind == SymbolKind::Cold) {
            if let Some((function, _)) = symbol.linkage.split_once(".cold") {
                let parts = cold.entry(function.to_owned()).or_default();
                parts.push((symbol.svma, symbol.size));
            }
        }
        let code = CodeHasher::new(Arc::clone(module));
        Parts { code, cold }
    }

    /// Takes the code of a function and of its parts.
    fn prints(&self, function: &FunctionDef, has_texts: bool) -> Vec<Option<CodePrint>> {
        let own = (Svma(function.svma), function.size);
        let parts = self.cold.get(&function.linkage).into_iter().flatten();
        let all = std::iter::once(&own).chain(parts);
        all.map(|(start, size)| self.code.print(*start, *size, has_texts))
            .collect()
    }
}

fn are_same(own: &[Option<CodePrint>], other: &[Option<CodePrint>]) -> bool {
    let mut parts = own.iter().zip(other);
    own.len() == other.len()
        && parts.all(|parts| match parts {
            (Some(own), Some(other)) => own.is_same(other),
            (own, other) => own.is_none() && other.is_none(),
        })
}

/// Compares the code of the functions that both recordings have, in modules of which they have different builds.
///
/// # Errors
/// A recording cannot be read.
pub fn codes(a: &Session, b: &Session, identities: &Identities) -> Result<Codes> {
    let mut found = Codes {
        is_known: true,
        ..Codes::default()
    };
    let modules = |session: &Session| -> Result<FxHashMap<u32, Parts>> {
        let source = Source::new(session)?;
        let Some(timeline) = source.timeline() else {
            return Ok(FxHashMap::default());
        };
        let space = timeline.modules().space(timeline.last());
        let all = space.modules().iter();
        Ok(all
            .map(|mapped| (mapped.number, Parts::of(&mapped.module)))
            .collect())
    };
    let (of_a, of_b) = (modules(a)?, modules(b)?);
    let build = |session: &Session, module: u32| {
        let module = session.definitions().module(module)?;
        module.build_id.clone()
    };
    let mut rust: FxHashMap<u32, bool> = FxHashMap::default();
    for (number, shared) in identities.shared.iter().enumerate() {
        let function =
            |session: &'_ Session, id: u32| session.definitions().function(id as usize).cloned();
        let (Some(own), Some(other)) = (function(a, shared.ids[0]), function(b, shared.ids[1]))
        else {
            continue;
        };
        let builds = (build(a, own.module), build(b, other.module));
        if builds.0.is_some() && builds.0 == builds.1 {
            continue;
        }
        let (Some(module_a), Some(module_b)) = (of_a.get(&own.module), of_b.get(&other.module))
        else {
            found.is_known = false;
            // Without the files, another size is another code.
            if own.size != other.size {
                found.changed.insert(number as u32);
            }
            continue;
        };
        let has_texts = !*rust
            .entry(own.module)
            .or_insert_with(|| a.definitions().is_rust(own.module));
        let (own, other) = (
            module_a.prints(&own, has_texts),
            module_b.prints(&other, has_texts),
        );
        if !are_same(&own, &other) {
            found.changed.insert(number as u32);
        }
    }
    Ok(found)
}

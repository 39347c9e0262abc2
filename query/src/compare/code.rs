//! Which functions have other code in the other build, as far as the files of both builds are still there.

use std::sync::Arc;

use debuginfo::{CodeHasher, CodePrint, Module, SharedVariables, Svma, SymbolKind};
use rustc_hash::{FxHashMap, FxHashSet};

use store::control::FunctionDef;

use super::identity::{Identities, module_key};
use super::variables::Variables;
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
    /// The ids of functions of the program that only one build has, of each recording: not inlined in the other, and not the same
    /// code with another name.
    pub lone: [FxHashSet<u32>; 2],
}

/// A module, with the parts of functions that the compiler moved away from the rest: what handles exceptions, and what seldom runs.
struct Parts {
    code: CodeHasher,
    /// Their addresses and sizes, by the linker name of the function.
    cold: FxHashMap<String, Vec<(Svma, u64)>>,
}

impl Parts {
    fn of(module: &Arc<Module>, shared: Arc<SharedVariables>) -> Parts {
        let mut cold: FxHashMap<String, Vec<(Svma, u64)>> = FxHashMap::default();
        let symbols = module.symbols().into_iter();
        for symbol in symbols.filter(|symbol| symbol.kind == SymbolKind::Cold) {
            if let Some((function, _)) = symbol.linkage.split_once(".cold") {
                let parts = cold.entry(function.to_owned()).or_default();
                parts.push((symbol.svma, symbol.size));
            }
        }
        let code = CodeHasher::new(Arc::clone(module), shared);
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
pub fn codes(
    a: &Session,
    b: &Session,
    identities: &Identities,
    inlined: &[FxHashSet<Arc<str>>; 2],
    variables: &Variables,
) -> Result<Codes> {
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
            .map(|mapped| {
                let key = module_key(session.definitions().module(mapped.number));
                let shared = variables.get(&key).cloned().unwrap_or_default();
                (mapped.number, Parts::of(&mapped.module, shared))
            })
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
    found.lone = lone(
        Lone::of(a, &of_a, &identities.of_a, &inlined[1]),
        Lone::of(b, &of_b, &identities.of_b, &inlined[0]),
    );
    Ok(found)
}

/// The functions of a build that have no twin in the other one.
struct Lone(Vec<(u32, Vec<Option<CodePrint>>)>);

impl Lone {
    fn of(
        session: &Session,
        modules: &FxHashMap<u32, Parts>,
        numbers: &[Option<u32>],
        inlined: &FxHashSet<Arc<str>>,
    ) -> Self {
        let definitions = session.definitions();
        let is_lone = |function: &&FunctionDef| {
            let module = definitions.module(function.module);
            numbers[function.id as usize].is_none()
                && module.is_some_and(|module| !module.system)
                && !function.name.ends_with("@plt")
                && !inlined.contains(&*function.name)
        };
        let print = |function: &FunctionDef| {
            let has_texts = !definitions.is_rust(function.module);
            let module = modules.get(&function.module);
            let prints = module.map(|module| module.prints(function, has_texts));
            (function.id, prints.unwrap_or_default())
        };
        Self(definitions.functions().filter(is_lone).map(print).collect())
    }
}

/// Returns those of both that have not the same code as one of the other build.
fn lone(a: Lone, b: Lone) -> [FxHashSet<u32>; 2] {
    let is_renamed = |own: &[Option<CodePrint>], others: &Lone| {
        let mut others = others.0.iter();
        !own.is_empty() && others.any(|(_, other)| are_same(own, other))
    };
    let rest = |own: &Lone, others: &Lone| {
        let left = own
            .0
            .iter()
            .filter(|(_, prints)| !is_renamed(prints, others));
        left.map(|(id, _)| *id).collect()
    };
    [rest(&a, &b), rest(&b, &a)]
}

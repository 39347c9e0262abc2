//! Which parameters of the C library's functions point to text. The recorder knows their prototypes, and keeps the
//! texts.

use debuginfo::prototypes::{PointedText, is_c_library, prototype};
use rustc_hash::FxHashMap;
use store::control::FunctionDef;

use crate::definitions::Definitions;

/// The texts of the functions that have any.
#[derive(Debug, Default)]
pub struct HeaderTexts(FxHashMap<u32, Vec<Option<PointedText>>>);

impl HeaderTexts {
    /// Finds them among the functions of a recording.
    pub fn of(definitions: &Definitions) -> HeaderTexts {
        let texts = definitions.functions().filter_map(|function| {
            let module = definitions.module(function.module)?;
            let texts = texts(function, module.system && is_c_library(module.name()))?;
            Some((function.id, texts))
        });
        HeaderTexts(texts.collect())
    }

    /// Returns the text that parameter `index` of a function points to.
    pub fn get(&self, function: u32, index: usize) -> Option<PointedText> {
        *self.0.get(&function)?.get(index)?
    }
}

/// Returns the texts that the parameters of a function point to; `None` for a function without such parameters, or without
/// a header. `is_own`: the C library defines it.
fn texts(function: &FunctionDef, is_own: bool) -> Option<Vec<Option<PointedText>>> {
    let name = match is_own {
        true => &function.name,
        false => function.name.strip_suffix("@plt")?,
    };
    let known = prototype(name).filter(|_| function.params_known)?;
    let has_its_names = known
        .params
        .iter()
        .map(|param| param.name)
        .eq(function.params.iter().map(|param| param.name.as_str()));
    let texts = known.params.iter().map(|param| param.text);
    let texts: Vec<_> = texts.collect();
    (has_its_names && texts.iter().any(Option::is_some)).then_some(texts)
}

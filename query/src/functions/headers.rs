//! What headers of the C library say of its functions: which parameters point to text, and what an ellipsis holds. The
//! recorder knows their prototypes, and keeps the texts.

use debuginfo::prototypes::{Ellipsis, PointedText, is_c_library, prototype};
use rustc_hash::FxHashMap;
use store::control::FunctionDef;

use crate::definitions::Definitions;

/// What is known of one function.
#[derive(Debug)]
struct Header {
    texts: Vec<Option<PointedText>>,
    ellipsis: Option<Ellipsis>,
}

/// The functions with texts or an ellipsis.
#[derive(Debug, Default)]
pub struct Headers(FxHashMap<u32, Header>);

impl Headers {
    /// Finds them among the functions of a recording.
    pub fn of(definitions: &Definitions) -> Headers {
        let headers = definitions.functions().filter_map(|function| {
            let module = definitions.module(function.module)?;
            let header = header(function, module.system && is_c_library(module.name()))?;
            Some((function.id, header))
        });
        Headers(headers.collect())
    }

    /// Returns the text that parameter `index` of a function points to.
    pub fn text(&self, function: u32, index: usize) -> Option<PointedText> {
        *self.0.get(&function)?.texts.get(index)?
    }

    /// Returns what the ellipsis of a function holds.
    pub fn ellipsis(&self, function: u32) -> Option<Ellipsis> {
        self.0.get(&function)?.ellipsis
    }
}

/// `None` for a function without texts and ellipsis, or without a header. `is_own`: the C library defines it.
fn header(function: &FunctionDef, is_own: bool) -> Option<Header> {
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
    let header = Header {
        texts: known.params.iter().map(|param| param.text).collect(),
        ellipsis: known.ellipsis,
    };
    let is_any = header.ellipsis.is_some() || header.texts.iter().any(Option::is_some);
    (has_its_names && is_any).then_some(header)
}

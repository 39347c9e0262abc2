//! Suggests a variable for a name that is unknown.

use debuginfo::location::FrameContext;
use debuginfo::scope::globals_of;
use expr::{EvalError, Missing};

use super::View;
use super::values::of_eval;
use crate::protocol::Failure;

/// Most names of global variables of a module that are compared with an unknown one.
const MAX_GLOBALS: usize = 1 << 16;

/// Reports an error, with the global variable that was probably meant if a name is unknown.
pub(super) fn with_near_global(view: &View<'_>, text: &str, error: &EvalError) -> Failure {
    let failure = of_eval(text, error);
    if error.missing != Some(Missing::Name) || failure.hint.is_some() {
        return failure;
    }
    let names = debuginfo::global_names(view.space, MAX_GLOBALS);
    let written = text.get(error.at.start..error.at.end).unwrap_or_default();
    let near = expr::nearest(written, names.iter().map(String::as_str));
    // One of the same name needs its class or its module.
    let meant = match near {
        Some(near) if near == written => full_name(view, near),
        near => near.map(str::to_owned),
    };
    match meant {
        Some(meant) => failure.hint(format!("did you mean \"{meant}\"?")),
        None => failure,
    }
}

/// Returns how to write a variable that its last name alone does not refer to here: with its class, or with its module.
fn full_name(view: &View<'_>, name: &str) -> Option<String> {
    let outside = FrameContext::outside(view.space, view.machine);
    let mut own = view.space.modules().iter().filter(|one| !one.is_system);
    own.find_map(|module| {
        let found = globals_of(module, &outside, name).into_iter().next()?;
        Some(match found.name == name {
            true => module.with_name(name),
            false => found.name.clone(),
        })
    })
}

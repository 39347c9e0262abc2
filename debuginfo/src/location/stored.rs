//! Parameters that the debug information places in the function's frame for its whole body. The prologue stores them
//! there. Before that, the place holds stale data, and the parameter is where the caller put it.

use std::sync::Arc;

use super::base;
use super::{FrameContext, Piece, ValuePlace, with_context};
use crate::abi::args::{Found, FrameBase, Locations};
use crate::abi::items;
use crate::lines::prologue_of;
use crate::machine::{Certainty, Register, Unknown};
use crate::model::{Param, ParameterPlace, Svma};
use crate::module::Module;
use crate::types::DieId;

/// Bytes of a register and of a stack word.
const WORD: u64 = 8;

/// When a parameter is stored to its described place, and where it is at the function's first instruction.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    entry: u64,
    /// The first address at which the parameter is in its described place.
    from: u64,
    at_entry: Option<Param>,
}

/// Examines the parameter `id`, called `name`, of `function`. Returns `None` if its description is always valid.
pub(crate) fn stored(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    id: DieId,
    function: Option<DieId>,
    name: &str,
) -> Option<Stored> {
    let svma = base::svma_of(site, super::bias_of(site, module));
    let (entry, from) = prologue_of(module, svma);
    let is_stored = with_context(site, module, id, function, 0, |context, die| {
        let function = context.function.as_ref()?;
        let locations = Locations::new(context.session, function, entry);
        let Found::Home(home) = locations.of(die) else {
            return None;
        };
        // At and above the CFA, the caller put it there.
        let below = match home.base {
            FrameBase::Cfa => 0,
            FrameBase::Register(number) => {
                base::distance(module, svma, Register(number)).unwrap_or(i64::MAX)
            }
        };
        Some(home.deref || home.offset < below)
    });
    if from <= entry || is_stored.flatten() != Some(true) {
        return None;
    }
    Some(Stored {
        entry,
        from,
        at_entry: received(module, entry, name),
    })
}

/// Returns the only parameter of that name of the function that begins at `entry`.
fn received(module: &Module, entry: u64, name: &str) -> Option<Param> {
    let list = &module.functions().list;
    let at = list.binary_search_by_key(&Svma(entry), |function| function.svma);
    let params = at.map_or(&[][..], |at| &list[at].params);
    let mut called = params.iter().filter(|param| param.name == name);
    let found = called.next().filter(|_| called.next().is_none());
    found.cloned()
}

/// Returns why a variable of Rust that is described as a pointer to a function has no value: it is a function item, or may be
/// one. `parameter`: its name, if it is a parameter of the function with code.
pub(crate) fn why_item(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    id: DieId,
    function: Option<DieId>,
    parameter: Option<&str>,
) -> Option<&'static str> {
    let svma = base::svma_of(site, super::bias_of(site, module));
    let (entry, _) = prologue_of(module, svma);
    let received = parameter.and_then(|name| received(module, entry, name));
    let passed = received.map(|param| param.place);
    let why = with_context(site, module, id, function, 0, |context, die| {
        let function = context.function.as_ref()?;
        items::why_unknown(context.session, function, die, passed)
    });
    why.flatten()
}

impl Stored {
    /// Returns the place of a parameter of `size` bytes at `site`, which is in its function, or `None` if the
    /// description is valid there.
    pub(crate) fn place(
        &self,
        site: &FrameContext<'_>,
        module: &Arc<Module>,
        size: Option<u64>,
    ) -> Option<ValuePlace> {
        let svma = base::svma_of(site, super::bias_of(site, module));
        if !(self.entry..self.from).contains(&svma) {
            return None;
        }
        let not_yet = || Unknown::because("its function has not stored it yet");
        let place = match (&self.at_entry, svma == self.entry) {
            (Some(param), true) => passed(param, site, size).ok_or_else(not_yet),
            _ => Err(not_yet()),
        };
        Some(place.unwrap_or_else(ValuePlace::Unknown))
    }
}

/// Returns where the caller put a parameter.
fn passed(param: &Param, site: &FrameContext<'_>, size: Option<u64>) -> Option<ValuePlace> {
    let first = part(param.place, site)?;
    if param.indirect {
        return pointed_to(&first, site).map(ValuePlace::Memory);
    }
    let Some(second) = param.place2 else {
        let fits = size? <= WORD || matches!(first, ValuePlace::Memory(_));
        return fits.then_some(first);
    };
    let from = u64::from(param.second_at);
    let piece = |place, bytes: u64| Piece::new(place, 0, bytes * 8);
    let rest = size?.checked_sub(from)?;
    let second = part(second, site)?;
    (from <= WORD && rest <= WORD)
        .then(|| ValuePlace::Pieces(vec![piece(first, from), piece(second, rest)]))
}

fn part(place: ParameterPlace, site: &FrameContext<'_>) -> Option<ValuePlace> {
    match place {
        ParameterPlace::Int(_) | ParameterPlace::Sse(_) => crate::abi::args::register_of(place)
            .map(|number| ValuePlace::Register(Register(number))),
        // The return address is just below the CFA.
        ParameterPlace::Memory { offset } => {
            let address = site.cfa?.wrapping_sub(WORD).wrapping_add(offset.into());
            Some(ValuePlace::Memory(address))
        }
        ParameterPlace::Empty | ParameterPlace::Removed | ParameterPlace::Unknown => None,
    }
}

/// Returns the address in a word, if it is known.
fn pointed_to(place: &ValuePlace, site: &FrameContext<'_>) -> Option<u64> {
    match place {
        ValuePlace::Register(register) => match site.machine.register(*register).ok()? {
            (address, Certainty::Known) => Some(address),
            _ => None,
        },
        ValuePlace::Memory(at) => {
            let mut word = [0; 8];
            match site.machine.memory(*at, &mut word).ok()? {
                Certainty::Known => Some(u64::from_le_bytes(word)),
                Certainty::Stale { .. } => None,
            }
        }
        _ => None,
    }
}

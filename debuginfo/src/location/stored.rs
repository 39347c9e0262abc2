//! Parameters that are not in their described place yet. The debug information places some in the function's frame for its
//! whole body. The prologue stores them there. Before that, the place holds stale data, and the parameter is where the
//! caller put it. And a `float` of a function without a prototype is a `double` until the function converts it.

use std::sync::Arc;

use super::base;
use super::{FrameContext, Piece, ValuePlace, with_context};
use crate::abi::args::{Found, FrameBase, Home, Locations};
use crate::abi::items;
use crate::functions::lacks_prototype;
use crate::lines::prologue_of;
use crate::machine::{Certainty, Register, Unknown};
use crate::model::{Param, ParameterPlace, Svma, ValueKind};
use crate::module::Module;
use crate::types::DieId;

/// Bytes of a register and of a stack word.
const WORD: u64 = 8;

/// When a parameter is stored to its described place, and where it is at the function's first instruction.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    entry: u64,
    kept: Kept,
    at_entry: Option<Param>,
}

/// Where a parameter is in its described place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// From this address on.
    From(u64),
    /// Wherever it is described but at the function's first instruction.
    BehindEntry,
    /// Its place is described as it is at entry, and nothing tells when the function converts what is there.
    Nowhere,
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
    let kept = with_context(site, module, id, function, 0, |context, die| {
        let function = context.function.as_ref()?;
        let found = Locations::new(context.session, function, entry).of(die);
        if let Found::Home(home) = found
            && from > entry
            && is_stored(home, module, svma)
        {
            return Some(Kept::From(from));
        }
        let chain = context.session.chain(function);
        lacks_prototype(context.session, &chain).then_some(match found {
            Found::AtEntry(_) | Found::Always(_) => Kept::Nowhere,
            Found::Home(_) | Found::Nothing => Kept::BehindEntry,
        })
    });
    let kept = kept.flatten()?;
    let at_entry = received(module, entry, name);
    let is_double = |param: &Param| param.kind == ValueKind::Float { bytes: 8 };
    let is_meant = matches!(kept, Kept::From(_)) || at_entry.as_ref().is_some_and(is_double);
    is_meant.then_some(Stored {
        entry,
        kept,
        at_entry,
    })
}

/// Returns whether the function around `svma` itself stores a parameter to its home: at and above the CFA, the caller put it
/// there.
fn is_stored(home: Home, module: &Arc<Module>, svma: u64) -> bool {
    let below = match home.base {
        FrameBase::Cfa => 0,
        FrameBase::Register(number) => {
            base::distance(module, svma, Register(number)).unwrap_or(i64::MAX)
        }
    };
    home.deref || home.offset < below
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
    /// Returns whether the function makes another value of the parameter than the one that callers pass.
    pub(crate) fn is_converted(&self, size: Option<u64>) -> bool {
        let param = self.at_entry.as_ref();
        param.is_some_and(|param| widens(param, size))
    }

    /// Returns the place of a parameter of `size` bytes at `site`, which is in its function, or `None` if the
    /// description is valid there.
    pub(crate) fn place(
        &self,
        site: &FrameContext<'_>,
        module: &Arc<Module>,
        size: Option<u64>,
    ) -> Option<ValuePlace> {
        let svma = base::svma_of(site, super::bias_of(site, module));
        let is_at_entry = svma == self.entry;
        let why = match self.kept {
            Kept::From(from) if !(self.entry..from).contains(&svma) => return None,
            Kept::BehindEntry if !is_at_entry => return None,
            Kept::Nowhere if !self.is_converted(size) => return None,
            Kept::From(_) | Kept::BehindEntry => "its function has not stored it yet",
            Kept::Nowhere => {
                "callers pass a double, and nothing tells where the function makes a float of it"
            }
        };
        let at_entry = self.at_entry.as_ref().filter(|_| is_at_entry);
        let place = at_entry.and_then(|param| passed(param, site, size));
        Some(place.unwrap_or_else(|| ValuePlace::Unknown(Unknown::because(why))))
    }
}

/// Returns whether callers pass a parameter of `size` bytes as a `double`.
fn widens(param: &Param, size: Option<u64>) -> bool {
    param.kind == ValueKind::Float { bytes: 8 } && size == Some(4)
}

/// Returns where the caller put a parameter.
fn passed(param: &Param, site: &FrameContext<'_>, size: Option<u64>) -> Option<ValuePlace> {
    let first = part(param.place, site)?;
    if param.indirect {
        return pointed_to(&first, site).map(ValuePlace::Memory);
    }
    if widens(param, size) {
        return narrowed(&first, site);
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
        ValuePlace::Memory(at) => word(*at, site).map(u64::from_le_bytes),
        _ => None,
    }
}

/// Returns the `float` that the function will make of a `double`, if that is known.
fn narrowed(place: &ValuePlace, site: &FrameContext<'_>) -> Option<ValuePlace> {
    let double = match place {
        ValuePlace::Register(register) => match site.machine.vector_low(*register).ok()? {
            (bytes, Certainty::Known) => bytes,
            _ => return None,
        },
        ValuePlace::Memory(at) => word(*at, site)?,
        _ => return None,
    };
    let float = f64::from_le_bytes(double) as f32;
    Some(ValuePlace::Implicit(float.to_le_bytes().to_vec()))
}

/// Reads a word of memory, if it is known.
fn word(at: u64, site: &FrameContext<'_>) -> Option<[u8; 8]> {
    let mut word = [0; 8];
    match site.machine.memory(at, &mut word).ok()? {
        Certainty::Known => Some(word),
        Certainty::Stale { .. } => None,
    }
}

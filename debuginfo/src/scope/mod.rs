//! Variables: those that can be seen at a place in a function, and global ones by name.

mod enumerators;
mod functions;
mod globals;
mod known;
mod locals;
mod modules;
mod returned;

use std::ops::Deref;
use std::sync::Arc;

use gimli::constants as dw;

use crate::layout::{Computed, Count, DieId, Link, Shape, Type, with_session};
use crate::location::{self, Piece, Site, ValuePlace};
use crate::machine::{Certainty, EntryPlace, Machine};
use crate::module::Module;
use crate::value::Value;

pub(crate) use enumerators::{enumerators, has_enumerator};
pub(crate) use functions::{function_at, scope_at};
pub use globals::{global, global_names, globals, static_member};
pub(crate) use globals::{globals_of, is_in_file};
pub use known::Described;
pub(crate) use known::KnownVariables;
pub use locals::{has_variable, variables_at};
pub(crate) use locals::{variable_at, variables_of};
pub(crate) use modules::split_module;
pub use returned::returned;

/// Bytes of a register.
const WORD: u64 = 8;

/// A variable or parameter: what it is called and where its description is.
#[derive(Debug, Clone)]
pub struct Variable {
    about: Arc<Described>,
    module: Arc<Module>,
}

impl Deref for Variable {
    type Target = Described;

    fn deref(&self) -> &Described {
        &self.about
    }
}

/// Returns the place of a parameter of `size` bytes that came in registers; `None` if its description must tell.
fn at_entry(entry: EntryPlace, size: Option<u64>, machine: &dyn Machine) -> Option<ValuePlace> {
    if entry.is_indirect {
        let (address, certainty) = machine.register(entry.first).ok()?;
        return (certainty == Certainty::Known).then_some(ValuePlace::Memory(address));
    }
    let size = size?;
    let piece = |register, bytes| Piece {
        place: ValuePlace::Register(register),
        offset_bits: 0,
        size_bits: bytes * 8,
    };
    match entry.second {
        None => (size <= WORD).then_some(ValuePlace::Register(entry.first)),
        Some((from, second)) => {
            let from = u64::from(from);
            let rest = size.checked_sub(from)?;
            let pieces = vec![piece(entry.first, from), piece(second, rest)];
            (from <= WORD && rest <= WORD).then_some(ValuePlace::Pieces(pieces))
        }
    }
}

impl Variable {
    /// Returns the module that describes it.
    #[must_use]
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Returns its type; arrays whose length the running program decides are without length.
    #[must_use]
    pub fn ty(&self) -> Type {
        let read = || {
            let id = with_session(&self.module, self.id, |session, die| {
                let chain = session.chain(die);
                let mut types = chain.iter();
                let ty = types.find_map(|d| session.follow(d, dw::DW_AT_type));
                ty.map(|ty| DieId::of(&ty))
            });
            id.flatten()
        };
        match self.learned.ty.get_or_init(read) {
            Some(id) => Type::at(&self.module, *id),
            None => Type::linked(Some(&self.module), &Link::Void),
        }
    }

    /// Reads its value at `site`, which must be in the frame that it was found for or in one that is inlined there. What
    /// cannot be known is in the value.
    #[must_use]
    pub fn read(&self, site: &Site<'_>) -> Value {
        let ty = self.measured(self.ty(), site);
        if self.is_parameter
            && self.inline_depth == 0
            && let Some(entry) = site.machine.entry_parameter(&self.name)
            && let Some(place) = at_entry(entry, ty.size(), site.machine)
        {
            return Value::read(ty, place, site.machine);
        }
        let fixed = || location::fixed_place(site, &self.module, self.id, self.function);
        let fixed = self.learned.place.get_or_init(fixed).as_ref();
        if let Some(address) = fixed.and_then(|place| place.address(site, &self.module)) {
            return Value::at(ty, address, site.machine);
        }
        let located = location::locate(site, &self.module, self.id, self.function, &ty, 0);
        Value::read(ty, located.place, site.machine).reached_by(located.certainty)
    }

    /// Tells whether it needs no frame: a global variable, a static one of a function, a constant.
    pub(crate) fn is_static(&self, site: &Site<'_>) -> bool {
        let fixed = || location::fixed_place(site, &self.module, self.id, self.function);
        let place = self.learned.place.get_or_init(fixed);
        let is_constant = || {
            let stated = with_session(&self.module, self.id, |session, die| {
                let mut chain = session.chain(die).into_iter();
                chain.any(|d| session.attr(&d, dw::DW_AT_const_value).is_some())
            });
            stated == Some(true)
        };
        matches!(place, Some(location::FixedPlace::Address(_))) || is_constant()
    }

    /// Finds where it is for every thread that gets to the address of `site`.
    pub(crate) fn symbolic(&self, site: &Site<'_>) -> location::Found<location::Symbolic> {
        location::symbolic(site, &self.module, self.id, self.function, &self.ty())
    }

    /// The type with the lengths that the running program decided.
    fn measured(&self, ty: Type, site: &Site<'_>) -> Type {
        let stripped = ty.strip();
        let Shape::Array { element, counts } = &stripped.node().shape else {
            return ty;
        };
        if !counts.iter().any(|c| matches!(c, Count::Computed(_))) {
            return ty;
        }
        let of = |computed: Computed| {
            location::computed_count(site, &self.module, computed, self.function)
        };
        let mut measured = Type::linked(stripped.module(), element);
        for count in counts.iter().rev() {
            let count = match count {
                Count::Known(count) => Ok(*count),
                Count::Computed(computed) => of(*computed),
                Count::Open => return ty,
            };
            match count {
                Ok(count) => measured = measured.array(count),
                Err(_) => return ty,
            }
        }
        measured
    }
}

//! Variables: those visible at a place in a function, and global ones by name.

mod compiled;
mod enclosing;
mod enumerators;
mod full_names;
mod functions;
mod globals;
mod hidden_result;
mod imports;
mod known;
mod linked;
mod local_types;
mod locals;
mod modules;
mod returned;
mod templates;
mod vtables;

use linked::Linked;
use std::ops::Deref;
use std::sync::Arc;

use gimli::constants as dw;

use crate::address_space::Mapped;
use crate::location::ir::Int;
use crate::location::{self, FixedPlace, FrameContext, Piece, ValuePlace};
use crate::machine::{Certainty, EntryPlace, Machine, Unknown};
use crate::model::Svma;
use crate::module::Module;
use crate::types::{DieId, Language, Link, Type, TypeKind, with_session};
use crate::unwind::OwnRegisters;
use crate::value::Value;

pub use compiled::{CompiledAs, compiled_as};
pub use enclosing::{Enclosing, enclosing, frame_base, static_link};
pub use enumerators::{enumerators, has_enumerator, local_enumerators};
pub use full_names::{FullName, full_names_of_globals, full_names_of_types};
pub(crate) use functions::function_at;
pub use functions::{classes_at, function_type, language_at, scope_at};
pub use functions::{is_external, is_virtual, unit_of_function};
pub use globals::{defines, globals_of, globals_of_file, is_in_file, rivals, unit_at};
pub use globals::{global, global_names, globals, static_member};
pub(crate) use imports::reach;
pub use imports::{Imported, imported};
pub use known::Described;
pub(crate) use known::KnownVariables;
pub use local_types::local_type;
pub use locals::{has_variable, variables_at};
pub use locals::{variable_at, variables_of, variables_of_copy};
pub use modules::split_module;
pub use returned::{result, result_type, returned};
pub use templates::{outer_template_value, template_type, template_value};
pub use vtables::trait_object_type;

/// Why a variable that is only declared has no value.
const UNDEFINED: &str = "it is declared here, and no loaded module defines it";
/// Why a variable whose place changes during a call has no value once the call has returned.
const RETURNED: &str =
    "the call has returned, and where this variable was at its last instruction is not recorded";
/// Bytes of a register.
const WORD: u64 = 8;

/// A variable or parameter: its name and the DIE that describes it.
#[derive(Debug, Clone)]
pub struct Variable {
    about: Arc<Described>,
    module: Arc<Module>,
    /// The line of another variable that its name may mean just as well where it was looked up.
    rival: Option<u32>,
}

impl Deref for Variable {
    type Target = Described;

    fn deref(&self) -> &Described {
        &self.about
    }
}

/// Returns the place of a parameter of `size` bytes that was passed in registers, or `None` if only its DIE can tell.
fn at_entry(entry: EntryPlace, size: Option<u64>, machine: &dyn Machine) -> Option<ValuePlace> {
    if entry.is_indirect {
        let (address, certainty) = machine.register(entry.first).ok()?;
        return (certainty == Certainty::Known).then_some(ValuePlace::Memory(address));
    }
    let size = size?;
    let piece = |register, bytes: u64| Piece::new(ValuePlace::Register(register), 0, bytes * 8);
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
    /// Returns the module that describes the variable.
    #[must_use]
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Returns its type. Arrays whose length is known only at run time have no length.
    #[must_use]
    pub fn ty(&self) -> Type {
        let read = || {
            let id = with_session(self.module.entries(), self.id, |session, die| {
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

    /// Explains why its name may mean another variable where it was looked up; `None`: it cannot.
    fn unclear(&self) -> Option<Unknown> {
        let (own, other) = (self.line?, self.rival?);
        let name = &self.name;
        let why = format!(
            "{name} of line {own} or {name} of line {other} may be meant: the compiler does not say which is in scope here"
        );
        let hint = "locals shows both with their lines".to_owned();
        Some(Unknown {
            hint: Some(hint),
            ..Unknown::because(why)
        })
    }

    /// Reads its value at `site`, which must be in the frame for which the variable was found, or in one inlined there.
    /// The value contains the reasons for anything unknown.
    #[must_use]
    pub fn read(&self, site: &FrameContext<'_>) -> Value {
        if let Some(why) = self.unclear() {
            return Value::unknown(self.ty(), why);
        }
        let own = OwnRegisters(site.machine);
        let site = FrameContext {
            machine: &own,
            ..*site
        };
        location::decided(self.described(&site), &site, self.function, None)
    }

    /// Explains why it has no value though it is described as a pointer to a function: it is a function item of Rust, or may be
    /// one.
    fn why_item(&self, site: &FrameContext<'_>) -> Option<Unknown> {
        let ty = self.ty();
        if ty.kind() != TypeKind::Pointer || ty.language() != Language::Rust {
            return None;
        }
        let is_passed = self.is_parameter && self.inline_depth == 0;
        let name = is_passed.then_some(self.about.name.as_str());
        let find = || location::why_item(site, &self.module, self.id, self.function, name);
        let why = *self.learned.item.get_or_init(find);
        why.map(Unknown::because)
    }

    /// Returns the value with its declared type.
    fn described(&self, site: &FrameContext<'_>) -> Value {
        let ty = self.ty();
        if let Some(why) = self.why_item(site) {
            return Value::unknown(ty, why);
        }
        if self.is_parameter
            && self.inline_depth == 0
            && !self.is_converted(site, &ty)
            && let Some(entry) = site.machine.entry_parameter(&self.name)
            && let Some(place) = at_entry(entry, ty.size(), site.machine)
        {
            return Value::read(ty, place, site.machine);
        }
        match self.linked(site) {
            Some(Linked::Address(address)) => {
                return Value::at(self.complete(ty, site), address, site.machine);
            }
            Some(Linked::Definition(definition)) => return definition.read(site),
            Some(Linked::Nowhere) => {
                let why = Unknown::because(UNDEFINED);
                return Value::read(ty, ValuePlace::Unknown(why), site.machine);
            }
            None => {}
        }
        if let Some(stored) = self.stored(site)
            && let Some(place) = stored.place(site, &self.module, ty.size())
        {
            return Value::read(ty, place, site.machine);
        }
        let fixed = self.fixed(site);
        if let Some(address) = fixed.and_then(|place| place.address(site, &self.module)) {
            return Value::at(ty, address, site.machine);
        }
        if !self.is_parameter
            && site.machine.has_returned()
            && location::depends_on_instruction(&self.module, self.id)
        {
            return Value::unknown(ty, Unknown::because(RETURNED));
        }
        let located = location::locate(site, &self.module, self.id, self.function, &ty, 0);
        Value::read(ty, located.place, site.machine).reached_by(located.certainty)
    }

    /// Returns whether the variable needs no frame: a global variable, a static one of a function, or a constant.
    pub fn is_static(&self, site: &FrameContext<'_>) -> bool {
        let place = self.fixed(site);
        let is_constant = || {
            let stated = with_session(self.module.entries(), self.id, |session, die| {
                let mut chain = session.chain(die).into_iter();
                chain.any(|d| session.attr(&d, dw::DW_AT_const_value).is_some())
            });
            stated == Some(true)
        };
        matches!(place, Some(FixedPlace::Address(_) | FixedPlace::Removed)) || is_constant()
    }

    fn fixed(&self, site: &FrameContext<'_>) -> Option<&FixedPlace> {
        let read = || location::fixed_place(site, &self.module, self.id, self.function);
        self.learned.place.get_or_init(read).as_ref()
    }

    /// Returns when the function stores the variable, if it is a parameter that the prologue stores to its place.
    fn stored(&self, site: &FrameContext<'_>) -> Option<&location::Stored> {
        let find =
            || location::stored(site, &self.module, self.id, self.function, &self.about.name);
        let is_candidate = self.is_parameter && site.inline_depth == 0;
        is_candidate.then(|| self.learned.stored.get_or_init(find).as_ref())?
    }

    /// Returns whether it is a parameter that callers pass as another type.
    fn is_converted(&self, site: &FrameContext<'_>, ty: &Type) -> bool {
        let is_float = ty.strip().kind() == TypeKind::Float;
        let stored = self.stored(site).filter(|_| is_float);
        stored.is_some_and(|stored| stored.is_converted(ty.size()))
    }

    /// Explains why it does not lie at one place of its function's frame as long as a call lasts; `None`: it does.
    #[must_use]
    pub fn why_unsettled(&self) -> Option<&'static str> {
        location::why_unsettled(&self.module, self.id)
    }

    /// Returns whether both are the same declaration.
    #[must_use]
    pub fn is_same(&self, other: &Variable) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.module, &other.module)
    }

    /// The first address of its block in a process that has its module as `mapped`; `None`: it is the function's own.
    #[must_use]
    pub fn block_begins(&self, mapped: &Mapped) -> Option<u64> {
        self.about
            .block_begins
            .map(|svma| mapped.address(Svma(svma)))
    }

    /// Finds the place of the variable that is valid for every thread at the address of `site`.
    ///
    /// # Errors
    /// There is no such place. The text states the reason.
    pub fn symbolic(&self, site: &FrameContext<'_>) -> Result<location::Symbolic, String> {
        if let Some(why) = self.unclear() {
            return Err(why.reason);
        }
        if let Some(why) = self.why_item(site) {
            return Err(why.reason);
        }
        match self.linked(site) {
            Some(Linked::Address(address)) => {
                return Ok(location::Symbolic::Memory(Int::Const(address)));
            }
            Some(Linked::Definition(definition)) => return definition.symbolic(site),
            Some(Linked::Nowhere) => return Err(UNDEFINED.to_owned()),
            None => {}
        }
        let stored = self.stored(site);
        if stored.is_some_and(|stored| stored.place(site, &self.module, self.ty().size()).is_some())
        {
            return Err("its function has not stored it there yet".to_owned());
        }
        location::symbolic(site, &self.module, self.id, self.function, &self.ty())
    }
}

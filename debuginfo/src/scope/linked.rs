//! Variables shared by several files. The linker, not the debug information of one file, decides which memory they use.
//!
//! A declaration has no place of its own. A library's definition has one, but the program may hold a copy that all
//! modules use instead (a copy relocation).

use gimli::constants as dw;

use super::Variable;
use super::globals::definitions;
use crate::address_space::Mapped;
use crate::location::FrameContext;
use crate::types::{Type, with_session};

/// What linking determines about a variable.
pub(super) enum Linked {
    /// Its address in the process.
    Address(u64),
    /// The definition that the linker chose.
    Definition(Variable),
    /// It is declared, but not defined.
    Nowhere,
}

/// The linker's view of a variable.
#[derive(Debug)]
pub(super) struct Linkage {
    name: String,
    /// Its own DIE states its place.
    is_located: bool,
    is_declared: bool,
}

impl Variable {
    fn linkage(&self) -> Option<&Linkage> {
        let read = || {
            let linkage = with_session(self.module.entries(), self.id, |session, die| {
                let chain = session.chain(die);
                let string = |name| chain.iter().find_map(|die| session.string(die, name));
                let name = string(dw::DW_AT_linkage_name).or_else(|| string(dw::DW_AT_name))?;
                let placed = [dw::DW_AT_location, dw::DW_AT_const_value];
                let says = |name| chain.iter().any(|die| session.attr(die, name).is_some());
                let is_external = chain.iter().any(|d| session.flag(d, dw::DW_AT_external));
                is_external.then(|| Linkage {
                    name: name.to_string_lossy().into_owned(),
                    is_located: placed.into_iter().any(says),
                    is_declared: session.flag(die, dw::DW_AT_declaration),
                })
            });
            linkage.flatten()
        };
        self.learned.linkage.get_or_init(read).as_ref()
    }

    /// Returns whether other files know it by its name.
    pub(super) fn is_external(&self) -> bool {
        self.function.is_none() && self.linkage().is_some()
    }

    /// Returns the type of the definition if the variable's own type is incomplete. A file that only declares the
    /// variable may not know more.
    pub(super) fn complete(&self, ty: Type, site: &FrameContext<'_>) -> Type {
        if ty.size().is_some() {
            return ty;
        }
        let Some(linkage) = self.linkage() else {
            return ty;
        };
        let is_it = |own: &Linkage| own.is_located && own.name == linkage.name;
        let mut defined = site.space.modules().iter().flat_map(|mapped| {
            let all = definitions(&mapped.module, &self.about.name).into_iter();
            all.filter(|one| one.linkage().is_some_and(is_it))
        });
        let known = defined.find_map(|one| Some(one.ty()).filter(|ty| ty.size().is_some()));
        known.unwrap_or(ty)
    }

    /// Finds the variable's memory or definition at `site`. Returns `None` if its own DIE states the place.
    pub(super) fn linked(&self, site: &FrameContext<'_>) -> Option<Linked> {
        if self.function.is_some() {
            return None;
        }
        let linkage = self.linkage()?;
        let name = &*linkage.name;
        if linkage.is_located {
            // Only an exported variable of a library can be in another place.
            let is_shared = self.module.is_library() && self.module.code.data().exports(name);
            let copy = is_shared.then(|| in_program(site, name));
            return copy.flatten().map(Linked::Address);
        }
        if let Some(address) = in_program(site, name) {
            return Some(Linked::Address(address));
        }
        let here = |mapped: &&Mapped| std::sync::Arc::ptr_eq(&mapped.module, &self.module);
        let own = site.space.modules().iter().find(here);
        let own = own.and_then(|own| Some(own.address(own.module.code.data().of_module(name)?)));
        if let Some(address) = own {
            return Some(Linked::Address(address));
        }
        let found = site.space.modules().iter().find_map(|mapped| {
            let data = mapped.module.code.data();
            match data.exported(name) {
                Some(svma) => Some(Linked::Address(mapped.address(svma))),
                // A thread-local variable has no single address.
                None if data.exports(name) => {
                    let mut all = definitions(&mapped.module, &self.about.name).into_iter();
                    let is_it = |own: &Linkage| own.is_located && own.name == name;
                    all.find(|one| one.linkage().is_some_and(is_it))
                        .map(Linked::Definition)
                }
                None => None,
            }
        });
        found.or_else(|| linkage.is_declared.then_some(Linked::Nowhere))
    }
}

/// Returns the address of the variable with a linker name that the program itself has and shares with its libraries.
fn in_program(site: &FrameContext<'_>, name: &str) -> Option<u64> {
    let mut programs = site.space.modules().iter();
    let program = programs.find(|mapped| !mapped.module.is_library())?;
    let svma = program.module.code.data().exported(name)?;
    Some(program.address(svma))
}

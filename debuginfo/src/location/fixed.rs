//! Simple places, which most variables have: an address in the file, or an offset from the CFA. They are read from the
//! debug information only once.

use std::sync::Arc;

use gimli::constants as dw;
use gimli::{Expression, Operation};

use super::{Context, FrameContext, base, bias_of, with_context};
use crate::dies::{Die, Value as Attribute};
use crate::dwarf::Slice;
use crate::machine::Register;
use crate::module::Module;
use crate::types::{DieId, with_session};

/// The place of a variable in its whole scope.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FixedPlace {
    /// An address of the file.
    Address(u64),
    /// An offset from the CFA, in bytes.
    Frame(i64),
    /// None: the linker removed the variable.
    Removed,
}

impl FixedPlace {
    /// Returns the address at `site`, or `None` if there is no frame.
    pub(crate) fn address(&self, site: &FrameContext<'_>, module: &Arc<Module>) -> Option<u64> {
        match self {
            FixedPlace::Address(svma) => Some(svma.wrapping_add(bias_of(site, module))),
            FixedPlace::Removed => None,
            FixedPlace::Frame(_) if site.is_left => None,
            FixedPlace::Frame(offset) => Some(site.cfa?.wrapping_add_signed(*offset)),
        }
    }
}

/// Finds the variable `id` of `function`, if it has such a place.
pub(crate) fn fixed_place(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    id: DieId,
    function: Option<DieId>,
) -> Option<FixedPlace> {
    with_context(site, module, id, function, 0, |context, die| {
        context.fixed(die)
    })?
}

/// Explains why the variable `id` does not lie at one place of its function's frame as long as a call lasts; `None`: it does.
pub(crate) fn why_unsettled(module: &Arc<Module>, id: DieId) -> Option<&'static str> {
    let why = with_session(module.entries(), id, |session, die| {
        let chain = session.chain(die);
        let Some((at, value)) = session.stated(&chain, dw::DW_AT_location) else {
            return Some("the compiler has removed it");
        };
        if value.exprloc_value().is_none() {
            return Some("the compiler keeps it in a register, or nowhere, at times");
        }
        match only_operation(at, value) {
            Some(Operation::FrameOffset { .. }) => None,
            Some(Operation::Register { .. }) => Some("it lies in a register"),
            _ => Some("its place is computed"),
        }
    });
    why.unwrap_or(Some("its description cannot be read"))
}

/// Returns whether the place of the variable `id`, or its value, depends on the instruction that runs or on registers.
pub(crate) fn depends_on_instruction(module: &Arc<Module>, id: DieId) -> bool {
    let depends = with_session(module.entries(), id, |session, die| {
        let chain = session.chain(die);
        let Some((at, value)) = session.stated(&chain, dw::DW_AT_location) else {
            return false;
        };
        let Some(expression) = value.exprloc_value() else {
            return true;
        };
        let mut operations = expression.operations(at.unit.encoding());
        while let Ok(Some(operation)) = operations.next() {
            if let Operation::Register { .. } | Operation::RegisterOffset { .. } = operation {
                return true;
            }
        }
        false
    });
    depends.unwrap_or(true)
}

/// Returns whether the linker removed the global variable `id`, so that only the debug information still has it.
pub(crate) fn is_removed(module: &Arc<Module>, id: DieId) -> bool {
    let address = with_session(module.entries(), id, |session, die| {
        let chain = session.chain(die);
        let (at, value) = session.stated(&chain, dw::DW_AT_location)?;
        match only_operation(at, value)? {
            Operation::Address { address } => Some(address),
            Operation::AddressIndex { index } => session.dwarf(at).address(&at.unit, index).ok(),
            _ => None,
        }
    });
    address
        .flatten()
        .is_some_and(|svma| !module.files.main.may_place(svma))
}

impl<'a> Context<'_, '_, 'a> {
    fn fixed(&self, die: &Die<'a>) -> Option<FixedPlace> {
        let chain = self.session.chain(die);
        let (at, value) = self.session.stated(&chain, dw::DW_AT_location)?;
        match only_operation(at, value)? {
            Operation::Address { address } => Some(self.fixed_address(address)),
            Operation::AddressIndex { index } => {
                let address = self.session.dwarf(at).address(&at.unit, index);
                address.ok().map(|address| self.fixed_address(address))
            }
            Operation::FrameOffset { offset } => {
                let function = self.function.as_ref()?;
                let stated = self.session.attr(function, dw::DW_AT_frame_base)?;
                let below = match only_operation(function, stated)? {
                    Operation::CallFrameCFA => 0,
                    Operation::Register { register } => {
                        let svma = base::svma_of(self.site, self.bias);
                        base::distance(self.module, svma, Register(register.0))?
                    }
                    _ => return None,
                };
                Some(FixedPlace::Frame(offset.checked_sub(below)?))
            }
            _ => None,
        }
    }

    fn fixed_address(&self, svma: u64) -> FixedPlace {
        match self.module.files.main.may_place(svma) {
            true => FixedPlace::Address(svma),
            false => FixedPlace::Removed,
        }
    }
}

/// Returns the only operation of an expression that is not in a location list.
fn only_operation<'a>(die: &Die<'a>, value: Attribute<'a>) -> Option<Operation<Slice<'a>>> {
    let Expression(bytes) = value.exprloc_value()?;
    let mut operations = Expression(bytes).operations(die.unit.encoding());
    let only = operations.next().ok().flatten()?;
    let is_last = operations.next().is_ok_and(|next| next.is_none());
    is_last.then_some(only)
}

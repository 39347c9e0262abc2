//! Finds the concrete type of a trait object. rustc describes each vtable with the type it belongs to.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use gimli::constants as dw;
use gimli::{AttributeValue, EvaluationResult};

use crate::address_space::AddressSpace;
use crate::dies::{Die, DieReader, Home};
use crate::model::Svma;
use crate::module::Module;
use crate::types::{DieId, Type};

/// The described vtables of one module, read on first use.
#[derive(Debug, Default)]
pub(crate) struct Vtables(OnceLock<HashMap<Svma, DieId>>);

/// Returns the type to which the vtable at `address` of the process belongs.
#[must_use]
pub fn trait_object_type(address: u64, space: &AddressSpace) -> Option<Type> {
    let mapped = space.at(address)?;
    let module = &mapped.module;
    let known = module.variables().vtables.0.get_or_init(|| read(module));
    let id = known.get(&mapped.svma(address))?;
    Some(Type::at(module, *id))
}

fn read(module: &Arc<Module>) -> HashMap<Svma, DieId> {
    let Some(kept) = module.entries().units() else {
        return HashMap::new();
    };
    let session = kept.session();
    let mut found = HashMap::new();
    for index in 0..session.table.headers(Home::Info).len() {
        let Ok(root) = session.root(Home::Info, index) else {
            continue;
        };
        session.begin(&root.unit);
        let language = session.attr(&root, dw::DW_AT_language);
        if !matches!(language, Some(AttributeValue::Language(dw::DW_LANG_Rust))) {
            continue;
        }
        for die in session.children(&root, &[dw::DW_TAG_variable]) {
            if let Some((address, id)) = table(&session, &die) {
                found.insert(address, id);
            }
        }
    }
    found
}

/// Returns the address of the vtable that a variable represents, and the type to which the variable's type belongs.
fn table<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Option<(Svma, DieId)> {
    let name = session.string(die, dw::DW_AT_name)?;
    if !name.slice().ends_with(b"{vtable}") {
        return None;
    }
    let address = fixed_address(session, die)?;
    let layout = session.follow(die, dw::DW_AT_type)?;
    let owner = session.follow(&layout, dw::DW_AT_containing_type)?;
    let id = DieId {
        home: owner.home,
        index: owner.index,
        offset: owner.offset.0,
    };
    Some((address, id))
}

fn fixed_address<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Option<Svma> {
    let AttributeValue::Exprloc(expression) = session.attr(die, dw::DW_AT_location)? else {
        return None;
    };
    let mut evaluation = expression.evaluation(die.unit.encoding());
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::RequiresRelocatedAddress(address) => {
                evaluation.resume_with_relocated_address(address).ok()?
            }
            EvaluationResult::RequiresIndexedAddress { index, .. } => {
                let dwarf = session.dwarf(die);
                let address = dwarf.address(&die.unit, index).ok()?;
                evaluation.resume_with_indexed_address(address).ok()?
            }
            EvaluationResult::Complete => break,
            _ => return None,
        };
    }
    match evaluation.result().first()?.location {
        gimli::Location::Address { address } => Some(Svma(address)),
        _ => None,
    }
}

//! Template parameters that are names at a place: those of the function there, and of the classes that it is declared in.

use std::sync::Arc;

use gimli::DwTag;
use gimli::constants as dw;

use super::Variable;
use super::functions::{class_ids, copies_at, declared_at};
use super::known::{Described, Learned};
use crate::dies::{Die, DieReader};
use crate::location::FrameContext;
use crate::model::Svma;
use crate::module::Module;
use crate::types::{DieId, Type, with_session};

/// Parameters of one template, at most.
const MAX_PARAMETERS: usize = 256;

/// A template parameter, as a variable with what was given for it.
#[derive(Debug)]
pub(super) struct Parameter {
    /// A type was given, and no value.
    is_type: bool,
    given: Arc<Described>,
}

/// Finds the value that was given for the template parameter `name`.
#[must_use]
pub fn template_value(site: &FrameContext<'_>, name: &str) -> Option<Variable> {
    given(site, name, false)
}

/// Finds the type that was given for the template parameter `name`.
#[must_use]
pub fn template_type(site: &FrameContext<'_>, name: &str) -> Option<Type> {
    given(site, name, true).map(|parameter| parameter.ty())
}

fn given(site: &FrameContext<'_>, name: &str, is_type: bool) -> Option<Variable> {
    let mapped = site.space.at(site.lookup_pc)?;
    let module = &mapped.module;
    let (svma, depth) = (mapped.svma(site.lookup_pc), site.inline_depth);
    let around = module.variables().around(svma, depth);
    let all = around.templates.get_or_init(|| read(module, svma, depth));
    let found = all.iter().find(|one| one.given.name == name)?;
    (found.is_type == is_type).then(|| found.given.variable(module))
}

/// Lists the parameters, innermost first.
fn read(module: &Module, svma: Svma, depth: usize) -> Vec<Parameter> {
    let copies = copies_at(module, svma);
    let (Some(function), Some(copy)) = (copies.first(), copies.get(depth)) else {
        return Vec::new();
    };
    let classes = declared_at(module, svma, depth).map(|declared| class_ids(module, declared));
    let scopes = std::iter::once(*copy).chain(classes.unwrap_or_default());
    let parameters = scopes.flat_map(|scope| {
        let found = with_session(module.entries(), scope, |session, die| {
            let chain = session.chain(die);
            let found = chain.iter().flat_map(|die| parameters_of(session, die));
            found.collect::<Vec<_>>()
        });
        found.unwrap_or_default()
    });
    let parameter = |(is_type, name, id): (bool, String, DieId)| Parameter {
        is_type,
        given: Arc::new(described(name, id, (*function, depth))),
    };
    parameters.map(parameter).collect()
}

/// Lists the parameters that a function or class states: whether they are types, and their names.
fn parameters_of<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Vec<(bool, String, DieId)> {
    let mut stated: Vec<(DwTag, Die<'a>)> = Vec::new();
    session.each_child(die, |tag, offset| {
        if matches!(
            tag,
            dw::DW_TAG_template_type_parameter | dw::DW_TAG_template_value_parameter
        ) {
            stated.push((tag, die.sibling(offset)));
        }
        stated.len() < MAX_PARAMETERS
    });
    let named = stated.into_iter().filter_map(|(tag, die)| {
        let name = session.string(&die, dw::DW_AT_name)?;
        let is_type = tag == dw::DW_TAG_template_type_parameter;
        Some((
            is_type,
            name.to_string_lossy().into_owned(),
            DieId::of(&die),
        ))
    });
    named.collect()
}

fn described(name: String, id: DieId, (function, inline_depth): (DieId, usize)) -> Described {
    Described {
        name,
        file: None,
        line: None,
        is_parameter: false,
        artificial: false,
        scope_depth: 0,
        block_begins: None,
        block: None,
        shadowed: false,
        inline_depth,
        id,
        function: Some(function),
        learned: Learned::default(),
    }
}

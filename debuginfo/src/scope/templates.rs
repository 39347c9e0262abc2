//! Template parameters that are names at a place: those of the function there, of the functions around it in the source, and of
//! the classes that these are declared in.

use std::sync::Arc;

use gimli::DwTag;
use gimli::constants as dw;

use super::Variable;
use super::enclosing::around;
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
    kind: Kind,
    given: Arc<Described>,
}

/// Whether a parameter is a type, its name, and its DIE.
type Stated = (bool, String, DieId);

#[derive(Debug, Clone, Copy)]
struct Kind {
    /// A type was given, and no value.
    is_type: bool,
    /// It is one of a function around the function at the place, or of a class around that one.
    is_of_outer: bool,
}

/// Finds the value that was given for the template parameter `name` of the function at the site or of the classes that it is
/// declared in.
#[must_use]
pub fn template_value(site: &FrameContext<'_>, name: &str) -> Option<Variable> {
    let (found, value) = given(site, name)?;
    (!found.is_type && !found.is_of_outer).then_some(value)
}

/// As [`template_value`], for the functions around that function in the source. The members of its object hide them.
#[must_use]
pub fn outer_template_value(site: &FrameContext<'_>, name: &str) -> Option<Variable> {
    let (found, value) = given(site, name)?;
    (!found.is_type && found.is_of_outer).then_some(value)
}

/// Finds the type that was given for the template parameter `name`.
#[must_use]
pub fn template_type(site: &FrameContext<'_>, name: &str) -> Option<Type> {
    let (found, value) = given(site, name)?;
    found.is_type.then(|| value.ty())
}

/// Finds the innermost template parameter called `name`.
fn given(site: &FrameContext<'_>, name: &str) -> Option<(Kind, Variable)> {
    let mapped = site.space.at(site.lookup_pc)?;
    let module = &mapped.module;
    let (svma, depth) = (mapped.svma(site.lookup_pc), site.inline_depth);
    let around = module.variables().around(svma, depth);
    let all = around.templates.get_or_init(|| read(site, module, svma));
    let found = all.iter().find(|one| one.given.name == name)?;
    Some((found.kind, found.given.variable(module)))
}

/// Lists the parameters, innermost first.
fn read(site: &FrameContext<'_>, module: &Module, svma: Svma) -> Vec<Parameter> {
    let depth = site.inline_depth;
    let copies = copies_at(module, svma);
    let (Some(function), Some(copy)) = (copies.first(), copies.get(depth)) else {
        return Vec::new();
    };
    let own = (Some(*copy), declared_at(module, svma, depth));
    let own = std::iter::once((false, own));
    let outer = around(site).into_iter();
    let outer = outer.map(|outer| (true, (outer.die(), outer.declared())));
    let stated = own.chain(outer).flat_map(|(is_of_outer, scopes)| {
        let stated = parameters_around(module, scopes).into_iter();
        stated.map(move |parameter| (is_of_outer, parameter))
    });
    let parameter = |(is_of_outer, (is_type, name, id)): (bool, Stated)| Parameter {
        kind: Kind {
            is_type,
            is_of_outer,
        },
        given: Arc::new(described(name, id, (*function, depth))),
    };
    stated.map(parameter).collect()
}

/// Lists the parameters of a function and of the classes around its declaration.
fn parameters_around(
    module: &Module,
    (function, declared): (Option<DieId>, Option<DieId>),
) -> Vec<Stated> {
    let classes = declared.map_or_else(Vec::new, |declared| class_ids(module, declared));
    let scopes = function.into_iter().chain(classes);
    let parameters = scopes.flat_map(|scope| {
        let found = with_session(module.entries(), scope, |session, die| {
            let chain = session.chain(die);
            let found = chain.iter().flat_map(|die| parameters_of(session, die));
            found.collect::<Vec<_>>()
        });
        found.unwrap_or_default()
    });
    parameters.collect()
}

/// Lists the parameters that a function or class states.
fn parameters_of<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Vec<Stated> {
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

//! The namespaces, classes and functions around a DIE, for functions whose linker name does not state them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gimli::UnitOffset;
use gimli::constants as dw;

use crate::demangle;
use crate::dies::{Die, DieReader, Home};
use crate::dwarf::Slice;
use crate::nesting::ScopeTable;
use crate::types::ANONYMOUS;

const SCOPES: [gimli::DwTag; 5] = [
    dw::DW_TAG_namespace,
    dw::DW_TAG_structure_type,
    dw::DW_TAG_class_type,
    dw::DW_TAG_union_type,
    dw::DW_TAG_module,
];

const CLASSES: [gimli::DwTag; 3] = [
    dw::DW_TAG_structure_type,
    dw::DW_TAG_class_type,
    dw::DW_TAG_union_type,
];
const FUNCTIONS: [gimli::DwTag; 1] = [dw::DW_TAG_subprogram];

/// Nesting of classes in functions in classes that a name states, at most.
const MAX_NESTING: usize = 8;

/// A closure has no name. The linker name would number those of a function; the debug information does not.
const LAMBDA: &str = "{lambda}";
const UNNAMED: &str = "{unnamed type}";

type ScopesByUnit = HashMap<(Home, usize), Rc<ScopeTable>>;

/// Scopes of the units used so far. Each unit is walked once.
pub(crate) struct Scopes<'s, 't, 'a> {
    session: &'s DieReader<'t, 'a>,
    units: RefCell<ScopesByUnit>,
    functions: RefCell<ScopesByUnit>,
}

impl<'s, 't, 'a> Scopes<'s, 't, 'a> {
    pub(crate) fn new(session: &'s DieReader<'t, 'a>) -> Scopes<'s, 't, 'a> {
        Scopes {
            session,
            units: RefCell::default(),
            functions: RefCell::default(),
        }
    }

    /// Returns `plain`, qualified with the names of the namespaces and classes around `die`, and of the function that declares
    /// such a class.
    pub(crate) fn qualified(&self, die: &Die<'a>, plain: &str) -> String {
        self.nested(die, plain, MAX_NESTING)
    }

    fn nested(&self, die: &Die<'a>, plain: &str, depth: usize) -> String {
        let mut around = Vec::new();
        self.each_around(die, |scope| {
            around.push(scope);
            None::<()>
        });
        let mut path = vec![plain.to_owned()];
        for (at, scope) in around.iter().enumerate() {
            path.push(self.name_of(scope));
            let outer = around.get(at + 1).map_or(0, |outer| outer.offset.0);
            if let Some(function) = self.declaring(scope, outer) {
                path.extend(self.function_name(&function, depth));
                break;
            }
        }
        path.reverse();
        path.join("::")
    }

    fn name_of(&self, scope: &Die<'a>) -> String {
        match self.session.string(scope, dw::DW_AT_name) {
            Some(name) => lossy(name),
            None if !self.is_class(scope) => ANONYMOUS.to_owned(),
            None if self.is_closure(scope) => LAMBDA.to_owned(),
            None => UNNAMED.to_owned(),
        }
    }

    fn is_class(&self, scope: &Die<'a>) -> bool {
        let tag = self.session.tag(scope);
        tag.is_some_and(|tag| CLASSES.contains(&tag))
    }

    /// Returns whether a class is that of a lambda: the compiler made its call operator.
    fn is_closure(&self, class: &Die<'a>) -> bool {
        let functions = self.session.children(class, &FUNCTIONS);
        functions.iter().any(|function| {
            let name = self.session.string(function, dw::DW_AT_name);
            let is_call = name.is_some_and(|name| name.slice().starts_with(b"operator()"));
            is_call && self.session.flag(function, dw::DW_AT_artificial)
        })
    }

    /// Returns the function that declares a class, if it is nearer than the scope that begins at `outer`.
    fn declaring(&self, class: &Die<'a>, outer: usize) -> Option<Die<'a>> {
        if !self.is_class(class) {
            return None;
        }
        let table = self.table(&self.functions, class, &FUNCTIONS);
        let near = table.near(class.offset.0);
        let mut paid = near.take_while(|_| self.session.spend(1).is_some());
        let function = paid.find(|function| function.holds(class.offset.0))?;
        (function.start > outer).then(|| class.sibling(UnitOffset(function.start)))
    }

    /// Returns the name of a function that declares a class, as the linker names of functions of that class begin.
    fn function_name(&self, function: &Die<'a>, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        let chain = self.session.chain(function);
        let string = |name| chain.iter().find_map(|die| self.session.string(die, name));
        let linkage = string(dw::DW_AT_linkage_name).map(lossy);
        let stated = linkage.and_then(|linkage| with_parameters(&linkage));
        let plain = || {
            let plain = string(dw::DW_AT_name).map(lossy)?;
            Some(self.nested(chain.last()?, &plain, depth))
        };
        stated.or_else(plain)
    }

    /// Returns the innermost namespace or class around `die`.
    pub(crate) fn around(&self, die: &Die<'a>) -> Option<Die<'a>> {
        self.each_around(die, Some)
    }

    /// Visits the namespaces and classes around `die`, innermost first, until `visit` returns an answer.
    fn each_around<T>(&self, die: &Die<'a>, visit: impl FnMut(Die<'a>) -> Option<T>) -> Option<T> {
        let unit = self.table(&self.units, die, &SCOPES);
        let near = unit.near(die.offset.0);
        let paid = near.take_while(|_| self.session.spend(1).is_some());
        let around = paid.filter(|scope| scope.holds(die.offset.0));
        let mut entries = around.map(|scope| die.sibling(UnitOffset(scope.start)));
        entries.find_map(visit)
    }

    /// Returns the DIEs with these tags in the unit of `die`.
    fn table(
        &self,
        tables: &RefCell<ScopesByUnit>,
        die: &Die<'a>,
        tags: &[gimli::DwTag],
    ) -> Rc<ScopeTable> {
        let mut units = tables.borrow_mut();
        let read = || Rc::new(ScopeTable::read(self.session, die, tags));
        units
            .entry((die.home, die.index))
            .or_insert_with(read)
            .clone()
    }
}

/// Returns the readable form of a function's linker name as other linker names contain it.
fn with_parameters(linkage: &str) -> Option<String> {
    let name = demangle::function_name(linkage)?;
    Some(match demangle::parameters(linkage) {
        Some((list, qualifiers)) if qualifiers.is_empty() => format!("{name}({list})"),
        Some((list, qualifiers)) => format!("{name}({list}) {qualifiers}"),
        None => name,
    })
}

fn lossy(name: Slice<'_>) -> String {
    name.to_string_lossy().into_owned()
}

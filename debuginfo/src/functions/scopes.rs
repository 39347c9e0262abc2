//! Namespaces and classes around an entry, for functions whose linker name does not tell.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gimli::UnitOffset;
use gimli::constants as dw;

use crate::dies::{Die, Home, Session};

/// An entry that gives its children a scope.
struct Scope {
    start: usize,
    /// Offset of the first entry after its children.
    end: usize,
    parent: Option<usize>,
}

type ScopesByUnit = HashMap<(Home, usize), Rc<Vec<Scope>>>;

/// Scopes of the units asked about so far, each unit walked once.
pub(crate) struct Scopes<'s, 't, 'a> {
    session: &'s Session<'t, 'a>,
    units: RefCell<ScopesByUnit>,
}

impl<'s, 't, 'a> Scopes<'s, 't, 'a> {
    pub(crate) fn new(session: &'s Session<'t, 'a>) -> Scopes<'s, 't, 'a> {
        Scopes {
            session,
            units: RefCell::default(),
        }
    }

    /// `plain` behind the names of the namespaces and classes around `die`.
    pub(crate) fn qualified(&self, die: &Die<'a>, plain: &str) -> String {
        let unit = self.unit(die);
        let mut path = vec![plain.to_owned()];
        let after = unit.partition_point(|s| s.start < die.offset.0);
        let mut at = after.checked_sub(1);
        while let Some(scope) = at.map(|index| &unit[index]) {
            if self.session.spend(1).is_none() {
                break;
            }
            if die.offset.0 < scope.end {
                let entry = die.sibling(UnitOffset(scope.start));
                let name = self.session.string(&entry, dw::DW_AT_name);
                let name = name.map(|n| n.to_string_lossy().into_owned());
                path.push(name.unwrap_or_else(|| "(anonymous namespace)".to_owned()));
            }
            at = scope.parent;
        }
        path.reverse();
        path.join("::")
    }

    /// The namespace or class right around `die`.
    pub(crate) fn around(&self, die: &Die<'a>) -> Option<Die<'a>> {
        let unit = self.unit(die);
        let after = unit.partition_point(|s| s.start < die.offset.0);
        let mut at = after.checked_sub(1);
        while let Some(scope) = at.map(|index| &unit[index]) {
            self.session.spend(1)?;
            if die.offset.0 < scope.end {
                return Some(die.sibling(UnitOffset(scope.start)));
            }
            at = scope.parent;
        }
        None
    }

    fn unit(&self, die: &Die<'a>) -> Rc<Vec<Scope>> {
        let mut units = self.units.borrow_mut();
        let scopes = units.entry((die.home, die.index));
        scopes
            .or_insert_with(|| Rc::new(walk(self.session, die)))
            .clone()
    }
}

/// All scopes of a unit by offset; those that damage leaves open reach to the unit's end.
fn walk<'a>(session: &Session<'_, 'a>, die: &Die<'a>) -> Vec<Scope> {
    let mut scopes: Vec<Scope> = Vec::new();
    let mut open: Vec<(isize, usize)> = Vec::new();
    let Ok(mut entries) = die.unit.entries_raw(None) else {
        return scopes;
    };
    while !entries.is_empty() {
        let (offset, depth) = (entries.next_offset().0, entries.next_depth());
        while let Some((_, index)) = open.pop_if(|(at, _)| *at >= depth) {
            scopes[index].end = offset;
        }
        let Ok(abbreviation) = entries.read_abbreviation() else {
            break;
        };
        let Some(abbreviation) = abbreviation else {
            continue;
        };
        let specs = abbreviation.attributes();
        // Attributes are only skipped here, mostly several at once.
        let paid = session.spend(specs.len() / 8 + 1);
        if paid.is_none() || entries.skip_attributes(specs).is_err() {
            break;
        }
        let is_scope = matches!(
            abbreviation.tag(),
            dw::DW_TAG_namespace
                | dw::DW_TAG_structure_type
                | dw::DW_TAG_class_type
                | dw::DW_TAG_union_type
                | dw::DW_TAG_module
        );
        if is_scope && abbreviation.has_children() {
            let parent = open.last().map(|(_, index)| *index);
            open.push((depth, scopes.len()));
            scopes.push(Scope {
                start: offset,
                end: usize::MAX,
                parent,
            });
        }
    }
    scopes
}

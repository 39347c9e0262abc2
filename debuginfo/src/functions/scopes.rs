//! The namespaces and classes around a DIE, for functions whose linker name does not state them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gimli::UnitOffset;
use gimli::constants as dw;

use crate::dies::{Die, DieReader, Home};
use crate::nesting::ScopeTable;

const SCOPES: [gimli::DwTag; 5] = [
    dw::DW_TAG_namespace,
    dw::DW_TAG_structure_type,
    dw::DW_TAG_class_type,
    dw::DW_TAG_union_type,
    dw::DW_TAG_module,
];

type ScopesByUnit = HashMap<(Home, usize), Rc<ScopeTable>>;

/// Scopes of the units used so far. Each unit is walked once.
pub(crate) struct Scopes<'s, 't, 'a> {
    session: &'s DieReader<'t, 'a>,
    units: RefCell<ScopesByUnit>,
}

impl<'s, 't, 'a> Scopes<'s, 't, 'a> {
    pub(crate) fn new(session: &'s DieReader<'t, 'a>) -> Scopes<'s, 't, 'a> {
        Scopes {
            session,
            units: RefCell::default(),
        }
    }

    /// Returns `plain`, qualified with the names of the namespaces and classes around `die`.
    pub(crate) fn qualified(&self, die: &Die<'a>, plain: &str) -> String {
        let mut path = vec![plain.to_owned()];
        self.each_around(die, |entry| {
            let name = self.session.string(&entry, dw::DW_AT_name);
            let name = name.map(|n| n.to_string_lossy().into_owned());
            path.push(name.unwrap_or_else(|| "(anonymous namespace)".to_owned()));
            None::<()>
        });
        path.reverse();
        path.join("::")
    }

    /// Returns the innermost namespace or class around `die`.
    pub(crate) fn around(&self, die: &Die<'a>) -> Option<Die<'a>> {
        self.each_around(die, Some)
    }

    /// Visits the namespaces and classes around `die`, innermost first, until `visit` returns an answer.
    fn each_around<T>(&self, die: &Die<'a>, visit: impl FnMut(Die<'a>) -> Option<T>) -> Option<T> {
        let unit = self.unit(die);
        let near = unit.near(die.offset.0);
        let paid = near.take_while(|_| self.session.spend(1).is_some());
        let around = paid.filter(|scope| scope.holds(die.offset.0));
        let mut entries = around.map(|scope| die.sibling(UnitOffset(scope.start)));
        entries.find_map(visit)
    }

    fn unit(&self, die: &Die<'a>) -> Rc<ScopeTable> {
        let mut units = self.units.borrow_mut();
        let read = || Rc::new(ScopeTable::read(self.session, die, &SCOPES));
        units
            .entry((die.home, die.index))
            .or_insert_with(read)
            .clone()
    }
}

//! Finds the namespaces and classes around a DIE. DIEs state their children, but not their parents.

use gimli::DwTag;

use crate::dies::{Die, DieReader};

/// The DIEs of one unit that form scopes for their children, by offset.
#[derive(Debug, Default)]
pub(crate) struct ScopeTable(Vec<Scope>);

#[derive(Debug)]
pub(crate) struct Scope {
    pub start: usize,
    /// Offset of the first DIE after its children.
    end: usize,
    parent: Option<usize>,
}

impl Scope {
    pub(crate) fn holds(&self, offset: usize) -> bool {
        offset < self.end
    }
}

impl ScopeTable {
    /// Lists the DIEs with one of `tags` in the unit of `die`. Those left open by damage extend to the end of the unit.
    pub(crate) fn read<'a>(
        session: &DieReader<'_, 'a>,
        die: &Die<'a>,
        tags: &[DwTag],
    ) -> ScopeTable {
        let mut scopes: Vec<Scope> = Vec::new();
        let mut open: Vec<(isize, usize)> = Vec::new();
        let Ok(mut entries) = die.unit.entries_raw(None) else {
            return ScopeTable::default();
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
            // Attributes are only skipped here, usually several at once.
            let paid = session.spend(specs.len() / 8 + 1);
            if paid.is_none() || entries.skip_attributes(specs).is_err() {
                break;
            }
            if tags.contains(&abbreviation.tag()) && abbreviation.has_children() {
                let parent = open.last().map(|(_, index)| *index);
                open.push((depth, scopes.len()));
                scopes.push(Scope {
                    start: offset,
                    end: usize::MAX,
                    parent,
                });
            }
        }
        ScopeTable(scopes)
    }

    /// Returns the offsets of all scopes.
    pub(crate) fn starts(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|scope| scope.start)
    }

    /// Returns the last scope that begins before `offset`, then those around it, innermost first. Not all of them
    /// contain `offset`.
    pub(crate) fn near(&self, offset: usize) -> impl Iterator<Item = &Scope> {
        let after = self.0.partition_point(|s| s.start < offset);
        let last = after.checked_sub(1).map(|index| &self.0[index]);
        std::iter::successors(last, |scope| scope.parent.map(|index| &self.0[index]))
    }
}

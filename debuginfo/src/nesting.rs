//! Which namespaces, classes and the like lie around an entry of a unit: entries state what is in them, not what they are in.

use gimli::DwTag;

use crate::dies::{Die, DieReader};

/// The entries of one unit that give their children a scope, by offset.
#[derive(Debug, Default)]
pub(crate) struct ScopeTable(Vec<Scope>);

#[derive(Debug)]
pub(crate) struct Scope {
    pub start: usize,
    /// Offset of the first entry after its children.
    end: usize,
    parent: Option<usize>,
}

impl Scope {
    pub(crate) fn holds(&self, offset: usize) -> bool {
        offset < self.end
    }
}

impl ScopeTable {
    /// Lists the entries with one of `tags` in the unit of `die`; those that damage leaves open reach to the unit's end.
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
            // Attributes are only skipped here, mostly several at once.
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

    /// The last scope that begins before `offset`, and those around that, innermost first; not all hold `offset`.
    pub(crate) fn near(&self, offset: usize) -> impl Iterator<Item = &Scope> {
        let after = self.0.partition_point(|s| s.start < offset);
        let last = after.checked_sub(1).map(|index| &self.0[index]);
        std::iter::successors(last, |scope| scope.parent.map(|index| &self.0[index]))
    }
}

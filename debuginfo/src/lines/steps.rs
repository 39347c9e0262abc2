//! What stepping needs to know of an address: the statement it belongs to, and which inlined calls begin there.

use std::ops::Range;
use std::sync::Arc;

use super::model::SourceLine;
use super::scopes::FunctionScope;
use crate::address_space::AddressSpace;
use crate::model::Svma;

/// The stretch of code of one row of a line table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLine {
    /// The file, as [`SourceLine::file`].
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// Its code: the first address begins the statement.
    pub range: Range<u64>,
    /// Whether stepping may stop where it begins.
    pub is_statement: bool,
}

/// A function around an address, or one that was inlined there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAt {
    /// Readable name, as in [`crate::Function::name`].
    pub name: Option<Arc<str>>,
    /// Its first instruction: tells the copies inside one function apart.
    pub entry: u64,
    /// For an inlined copy: where it was called, if that is stated.
    pub call: Option<SourceLine>,
    /// The copy is entered at the address: a thread that gets there from outside has not made the call yet, as people
    /// count. Never so for the function itself.
    pub begins: bool,
}

/// Where a thread stands, as people count inlined calls: in the innermost one that it has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Readable name of the function or inlined one, as in [`crate::Function::name`].
    pub function: Option<Arc<str>>,
    /// The line there: that of the next inlined call to make, if there is one.
    pub source: Option<SourceLine>,
}

impl AddressSpace {
    /// Returns where a thread at `address` stands that has not made the innermost `to_come` of the inlined calls around. Any
    /// number that is too large means all.
    #[must_use]
    pub fn standing(&self, address: u64, to_come: usize) -> Standing {
        let calls = self.calls_at(address);
        let made = calls.len().saturating_sub(to_come).max(1);
        let named = calls.get(made - 1).and_then(|call| call.name.clone());
        let plain = || Some(Arc::from(self.function_at(address)?.name));
        Standing {
            function: named.or_else(plain),
            source: match calls.get(made).filter(|_| to_come > 0) {
                Some(next) => next.call.clone(),
                None => self.line_at(address),
            },
        }
    }

    /// Returns how many of the inlined calls that begin at `address` a thread there has not made that stands in `function` at
    /// `file`:`line`; `None` if it does not stand there.
    #[must_use]
    pub fn calls_to_come(
        &self,
        address: u64,
        function: Option<&str>,
        place: Option<(&str, u32)>,
    ) -> Option<usize> {
        (0..=self.calls_beginning(address)).find(|to_come| {
            let standing = self.standing(address, *to_come);
            let source = standing.source.as_ref();
            standing.function.as_deref() == function
                && source.map(|source| (&*source.file, source.line)) == place
        })
    }

    /// Returns the code that a step at `address` goes through at once. Code that belongs to no line counts to the line
    /// before it. `None` without line tables.
    #[must_use]
    pub fn step_line(&self, address: u64) -> Option<StepLine> {
        let mapped = self.at(address)?;
        let svma = mapped.svma(address).0;
        let lines = mapped.module.units().find(svma)?.lines(&mapped.module);
        let (row, end) = lines.step_row(svma)?;
        let source = lines.source_line(row)?;
        Some(StepLine {
            file: source.file,
            line: source.line,
            range: mapped.address(Svma(row.address))..mapped.address(Svma(end)),
            is_statement: row.is_stmt,
        })
    }

    /// Returns the function around `address`, then what is inlined there, from the outside to the inside; empty if the
    /// debug information does not tell.
    #[must_use]
    pub fn calls_at(&self, address: u64) -> Vec<CallAt> {
        let Some(mapped) = self.at(address) else {
            return Vec::new();
        };
        let svma = mapped.svma(address).0;
        let Some(unit) = mapped.module.units().find(svma) else {
            return Vec::new();
        };
        let scopes = unit.scopes(&mapped.module);
        let chain = scopes.chain(svma).into_iter().map(|at| &scopes.list[at]);
        let described = chain.map(|scope| {
            let is_entered = scope.entry() == svma || !scope.contains(svma.wrapping_sub(1));
            CallAt {
                name: scope.name.clone(),
                entry: mapped.address(Svma(scope.entry())),
                call: scope.call.clone(),
                begins: scope.parent.is_some() && is_entered,
            }
        });
        described.collect()
    }

    /// Counts the inlined calls around `address` that lie inside the function whose line `line` of `file` is: compilers say of
    /// some instructions of an inlined function that they belong to the line that calls it.
    #[must_use]
    pub fn calls_inside_line(&self, address: u64, file: &str, line: u32) -> usize {
        let found = self.at(address).and_then(|mapped| {
            let svma = mapped.svma(address).0;
            let unit = mapped.module.units().find(svma)?;
            let scopes = unit.scopes(&mapped.module);
            let chain = scopes.chain(svma).into_iter();
            let chain: Vec<&FunctionScope> = chain.map(|at| &scopes.list[at]).collect();
            Some(chain.len() - 1 - of_line(&chain, file, line)?)
        });
        found.unwrap_or(0)
    }

    /// Counts the inlined calls that begin at `address` and lie inside one another, the innermost one first.
    #[must_use]
    pub fn calls_beginning(&self, address: u64) -> usize {
        let calls = self.calls_at(address);
        calls.iter().rev().take_while(|call| call.begins).count()
    }
}

/// Which of the functions around an address, from the outside to the inside, a line belongs to: the one that is declared last
/// before it, unless it was called there.
fn of_line(chain: &[&FunctionScope], file: &str, line: u32) -> Option<usize> {
    let declared = |at: usize| {
        let scope: &FunctionScope = chain[at];
        let is_here = scope.file.as_deref() == Some(file);
        scope.line.filter(|declared| is_here && *declared <= line)
    };
    let begun = (0..chain.len()).filter(|at| declared(*at).is_some());
    let mut found = begun.max_by_key(|at| (declared(*at), *at))?;
    let is_called_there = |at: usize| {
        let call = chain[at].call.as_ref();
        call.is_some_and(|call| *call.file == *file && call.line == line)
    };
    while found > 0
        && is_called_there(found)
        && declared(found - 1).is_some()
        && declared(found - 1) != declared(found)
        && declared(found) != Some(line)
    {
        found -= 1;
    }
    Some(found)
}

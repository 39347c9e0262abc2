//! What stepping needs for an address: its statement, and the inlined calls that begin there.

use std::ops::Range;
use std::sync::Arc;

use super::model::SourceLine;
use super::scopes::FunctionScope;
use crate::address_space::AddressSpace;
use crate::model::Svma;

/// The stretch of code of one row of a line table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLine {
    /// The file, like [`SourceLine::file`].
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The range of its code. The statement begins at the first address.
    pub range: Range<u64>,
    /// Whether stepping may stop at its start.
    pub is_statement: bool,
}

/// The function around an address, or a copy inlined there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAt {
    /// Readable name, as in [`crate::Function::name`].
    pub name: Option<Arc<str>>,
    /// Its first instruction, which distinguishes the copies inside one function.
    pub entry: u64,
    /// For an inlined copy: the line of the call, if it is stated.
    pub call: Option<SourceLine>,
    /// The line of its declaration, if it is stated.
    pub declared: Option<u32>,
    /// The copy is entered at the address. A thread that arrives from outside has not made the call yet, as seen by the
    /// user. Always false for the function itself.
    pub begins: bool,
}

/// The position of a thread, as seen by the user: in the innermost inlined call that it has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Readable name of the function or inlined copy, as in [`crate::Function::name`].
    pub function: Option<Arc<str>>,
    /// The current line. If an inlined call is still to come, this is the line of the call.
    pub source: Option<SourceLine>,
}

impl AddressSpace {
    /// Returns the position of a thread at `address` that has not made the innermost `to_come` of the inlined calls
    /// around it. If the number is too large, the thread has made none of them.
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

    /// Returns how many of the inlined calls that begin at `address` a thread has still to make if its position is
    /// `function` at `file`:`line`. Returns `None` if it is not.
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

    /// Returns the code that one step from `address` covers. Code without a line belongs to the preceding line. Returns
    /// `None` without line tables.
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

    /// Returns the function around `address`, then the copies inlined there, outermost first. Empty if the debug
    /// information does not tell.
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
                declared: scope.line,
                begins: scope.parent.is_some() && is_entered,
            }
        });
        described.collect()
    }

    /// Counts the inlined calls around `address` that are inside the function to which line `line` of `file` belongs.
    /// Compilers attribute some instructions of an inlined function to the line of the call.
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

    /// Counts the inlined calls that begin at `address` and that a breakpoint at a function, or at a line of it, stops
    /// before: those inside of the function.
    #[must_use]
    pub fn calls_before(&self, address: u64, function: Option<&str>) -> usize {
        let calls = self.calls_at(address);
        let inner = calls.iter().rev().take_while(|call| call.begins);
        inner
            .take_while(|call| call.name.as_deref() != function)
            .count()
    }

    /// Counts the nested inlined calls that begin at `address`, starting with the innermost one.
    #[must_use]
    pub fn calls_beginning(&self, address: u64) -> usize {
        let calls = self.calls_at(address);
        calls.iter().rev().take_while(|call| call.begins).count()
    }
}

/// Returns which of the functions around an address, outermost first, a line belongs to: the one declared last before
/// the line, unless that function is called on the line.
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

//! The unwind tables of a module: `.eh_frame`, and `.debug_frame` of the module or its debug file for code that
//! `.eh_frame` does not cover.

use std::collections::BTreeMap;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, LittleEndian, RegisterRule,
    UnwindContext, UnwindExpression, UnwindSection,
};

use crate::dwarf::Slice;
use crate::elf::Elf;
use crate::files::Files;
use crate::machine::{Register, Unknown};
use crate::model::EntryFrame;

/// The table that contains a description, the preferred one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    Eh,
    Debug,
    SeparateDebug,
}

/// A description of a range of code, not parsed yet.
#[derive(Debug, Clone, Copy)]
struct Description {
    from: u64,
    to: u64,
    table: Table,
    offset: usize,
}

/// The positions of all descriptions.
#[derive(Debug)]
pub(crate) struct UnwindTables {
    files: Arc<Files>,
    /// By start address.
    index: Vec<Description>,
    debug: Vec<u8>,
    separate: Vec<u8>,
}

/// How to find the caller's registers at one address.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub cfa: CfaRule<usize>,
    pub registers: Vec<(u16, RegisterRule<usize>)>,
    /// The register that represents the return address.
    pub return_address: u16,
    /// The code was entered by a signal, not by a call.
    pub is_signal: bool,
    pub table: Table,
}

impl Rules {
    /// Returns whether a call has just been made: rsp points to the return address.
    fn are_those_of_a_call(&self) -> bool {
        let is_above_it = matches!(
            self.cfa,
            CfaRule::RegisterAndOffset { register, offset: 8 } if register.0 == Register::RSP.0
        );
        let is_there = self.registers.iter().any(|(register, rule)| {
            *register == self.return_address && matches!(rule, RegisterRule::Offset(-8))
        });
        is_above_it && is_there && !self.is_signal
    }
}

impl UnwindTables {
    /// Lists the descriptions of a module and of its debug file.
    pub(crate) fn read(files: Arc<Files>) -> UnwindTables {
        let contents = |elf: Option<&Elf>| {
            let bytes = elf.and_then(|elf| elf.contents(".debug_frame"));
            bytes
                .and_then(Result::ok)
                .map(|b| b.into_owned())
                .unwrap_or_default()
        };
        let mut tables = UnwindTables {
            index: Vec::new(),
            debug: contents(Some(&files.main)),
            separate: contents(files.debug.as_ref()),
            files,
        };
        let (eh, bases) = eh_frame(&tables.files.main);
        let mut index = Vec::new();
        list(&eh, &bases, Table::Eh, &mut index);
        for table in [Table::Debug, Table::SeparateDebug] {
            list(
                &tables.debug_frame(table),
                &BaseAddresses::default(),
                table,
                &mut index,
            );
        }
        index.retain(|d| d.from < d.to && tables.files.main.is_code(d.from));
        index.sort_unstable_by_key(|d| (d.from, d.table, d.offset));
        tables.index = index;
        tables
    }

    fn debug_frame(&self, table: Table) -> gimli::DebugFrame<Slice<'_>> {
        let bytes = match table {
            Table::SeparateDebug => &self.separate,
            _ => &self.debug,
        };
        let mut frames = gimli::DebugFrame::new(bytes, LittleEndian);
        frames.set_address_size(8);
        frames
    }

    /// Returns the description around `svma`: the innermost, and of equal ones that of the preferred table.
    fn find(&self, svma: u64) -> Option<Description> {
        let after = self.index.partition_point(|d| d.from <= svma);
        let near = self.index[..after].iter().rev().take(8);
        let holding = near.filter(|d| svma < d.to);
        holding
            .copied()
            .max_by_key(|d| (d.from, std::cmp::Reverse(d.table)))
    }

    /// Returns the start of the described code around `svma`.
    pub(super) fn start(&self, svma: u64) -> Option<u64> {
        self.find(svma).map(|d| d.from)
    }

    /// Returns the rules at `svma`, or `None` if no table describes it.
    ///
    /// # Errors
    /// The description is damaged.
    pub(super) fn rules(&self, svma: u64) -> Option<Result<Rules, Unknown>> {
        let found = self.find(svma)?;
        let rules = match found.table {
            Table::Eh => {
                let (eh, bases) = eh_frame(&self.files.main);
                read(&eh, &bases, found, svma)
            }
            table => {
                let section = self.debug_frame(table);
                read(&section, &BaseAddresses::default(), found, svma)
            }
        };
        Some(
            rules.map_err(|error| {
                Unknown::because(format!("the unwind tables are damaged: {error}"))
            }),
        )
    }

    /// Returns what the rules at `svma` state about the stack.
    pub(crate) fn entry_frame(&self, svma: u64) -> EntryFrame {
        match self.rules(svma) {
            None => EntryFrame::Unknown,
            Some(Ok(rules)) if rules.are_those_of_a_call() => EntryFrame::Call,
            Some(_) => EntryFrame::Other,
        }
    }

    /// Returns the distance from `register` up to the CFA while the frame is set up, for the description around `svma`
    /// if it defines the CFA by this register. This is the rule for most of the described code, apart from code with
    /// the rule of the entry.
    pub(super) fn distance(&self, svma: u64, register: u16) -> Option<i64> {
        let found = self.find(svma)?;
        match found.table {
            Table::Eh => {
                let (eh, bases) = eh_frame(&self.files.main);
                distance(&eh, &bases, found, register)
            }
            table => {
                let section = self.debug_frame(table);
                distance(&section, &BaseAddresses::default(), found, register)
            }
        }
    }

    /// Returns the operations of an expression in the rules of `table`.
    pub(super) fn expression(
        &self,
        table: Table,
        expression: &UnwindExpression<usize>,
    ) -> Option<Slice<'_>> {
        let bytes: &[u8] = match table {
            Table::Eh => eh_frame_bytes(&self.files.main)?,
            Table::Debug => &self.debug,
            Table::SeparateDebug => &self.separate,
        };
        let end = expression.offset.checked_add(expression.length)?;
        let operations = bytes.get(expression.offset..end)?;
        Some(EndianSlice::new(operations, LittleEndian))
    }
}

fn eh_frame_bytes(elf: &Elf) -> Option<&[u8]> {
    elf.section(".eh_frame").map(|s| elf.section_bytes(s))
}

/// Returns `.eh_frame` (empty if there is none) and the base addresses of its pointers.
fn eh_frame(elf: &Elf) -> (EhFrame<Slice<'_>>, BaseAddresses) {
    let address = |name| elf.section(name).map_or(0, |s| s.addr);
    let bases = BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_text(address(".text"))
        .set_got(address(".got"));
    let mut frames = EhFrame::new(eh_frame_bytes(elf).unwrap_or_default(), LittleEndian);
    frames.set_address_size(8);
    (frames, bases)
}

fn list<'a, S>(section: &S, bases: &BaseAddresses, table: Table, index: &mut Vec<Description>)
where
    S: UnwindSection<Slice<'a>>,
    S::Offset: gimli::UnwindOffset<usize>,
{
    // Many descriptions share one CIE, so the last one parsed is kept.
    let mut last = None;
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let offset = partial.offset();
        let parsed = partial.parse(|section, bases, at| match &last {
            Some((known, cie)) if *known == at => Ok(Clone::clone(cie)),
            _ => {
                let cie = section.cie_from_offset(bases, at)?;
                last = Some((at, cie.clone()));
                Ok(cie)
            }
        });
        if let Ok(fde) = parsed {
            index.push(Description {
                from: fde.initial_address(),
                to: fde.end_address(),
                table,
                offset,
            });
        }
    }
}

fn read<'a, S>(
    section: &S,
    bases: &BaseAddresses,
    found: Description,
    svma: u64,
) -> gimli::Result<Rules>
where
    S: UnwindSection<Slice<'a>>,
    S::Offset: From<usize>,
{
    let fde = section.fde_from_offset(bases, found.offset.into(), S::cie_from_offset)?;
    let mut context = UnwindContext::new();
    let row = fde.unwind_info_for_address(section, bases, &mut context, svma)?;
    Ok(Rules {
        cfa: row.cfa().clone(),
        registers: row
            .registers()
            .map(|(r, rule)| (r.0, rule.clone()))
            .collect(),
        return_address: fde.cie().return_address_register().0,
        is_signal: fde.is_signal_trampoline(),
        table: found.table,
    })
}

/// The CFA rule at function entry: the return address is at rsp.
const AT_ENTRY: (u16, i64) = (7, 8);

fn distance<'a, S>(
    section: &S,
    bases: &BaseAddresses,
    found: Description,
    register: u16,
) -> Option<i64>
where
    S: UnwindSection<Slice<'a>>,
    S::Offset: From<usize>,
{
    let fde = section.fde_from_offset(bases, found.offset.into(), S::cie_from_offset);
    let fde = fde.ok()?;
    let mut context = UnwindContext::new();
    let mut rows = fde.rows(section, bases, &mut context).ok()?;
    // A frame may be set up far from the entry, and arguments may be pushed in between; neither rule applies to most of
    // the code. If the rule of the frame itself uses another register, the distance from this one is not stated.
    let mut lengths: BTreeMap<(u16, i64), u64> = BTreeMap::new();
    while let Ok(Some(row)) = rows.next_row() {
        if let CfaRule::RegisterAndOffset { register, offset } = row.cfa() {
            let len = row.end_address().saturating_sub(row.start_address());
            *lengths.entry((register.0, *offset)).or_default() += len;
        }
    }
    let has_frame = |(rule, len): &(&(u16, i64), &u64)| (**rule != AT_ENTRY, **len);
    let (rule, _) = lengths.iter().max_by_key(has_frame)?;
    (rule.0 == register).then_some(rule.1)
}

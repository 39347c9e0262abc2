//! Reads from a parameter's `DW_AT_location` where it is when the function is entered.

use gimli::{AttributeValue, DW_AT_location, Expression, Operation};

use super::{Passed, argument_register};
use crate::dies::{Die, DieReader};
use crate::dwarf::Slice;
use crate::location::list::range;
use crate::model::ParameterPlace;

/// Entries read from one location list, at most.
const MAX_ENTRIES: usize = 1 << 12;
/// Operations read from one expression, at most.
const MAX_OPERATIONS: usize = 16;

/// The base register or address of a variable's home on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameBase {
    /// The canonical frame address: 8 above the stack pointer at entry.
    Cfa,
    /// A register, with the value it has after the function's first instructions.
    Register(u16),
}

/// Where a variable is kept while the function runs: `offset` bytes from its frame base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Home {
    pub base: FrameBase,
    pub offset: i64,
    /// The home holds the variable's address.
    pub deref: bool,
}

/// How firmly the debug information states a parameter's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Stated for the entry itself.
    AtEntry(Passed),
    /// Stated for the whole function. It holds at entry if the code keeps arguments where they arrived.
    Always(Passed),
    /// Only the home on the stack is stated.
    Home(Home),
    Nothing,
}

/// Reads the locations of one function's parameters.
pub(crate) struct Locations<'x, 's, 't, 'a> {
    pub session: &'x DieReader<'t, 'a>,
    pub function: &'s Die<'a>,
    pub svma: u64,
    pub frame_base: Option<FrameBase>,
}

impl<'x, 's, 't, 'a> Locations<'x, 's, 't, 'a> {
    pub(crate) fn new(session: &'x DieReader<'t, 'a>, function: &'s Die<'a>, svma: u64) -> Self {
        Locations {
            session,
            function,
            svma,
            frame_base: frame_base(session, function, svma),
        }
    }

    /// Returns what the debug information states about `param`, a DIE of the function's unit.
    pub(crate) fn of(&self, param: &Die<'a>) -> Found {
        match self.session.attr(param, DW_AT_location) {
            Some(AttributeValue::Exprloc(expression)) => self.whole(expression),
            Some(value) => self.list(value).unwrap_or(Found::Nothing),
            None => Found::Nothing,
        }
    }

    /// Returns whether a parameter is in no register and no memory anywhere in the function: it has no location, or only a
    /// constant value.
    pub(crate) fn is_nowhere(&self, param: &Die<'a>) -> bool {
        match self.session.attr(param, DW_AT_location) {
            Some(AttributeValue::Exprloc(expression)) => {
                let operations = self.operations(expression);
                let last = operations.last();
                let is_value = matches!(
                    last,
                    Some(Operation::StackValue | Operation::ImplicitValue { .. })
                );
                is_value && operations.iter().all(is_constant)
            }
            Some(_) => false,
            None => true,
        }
    }

    /// Returns whether the function keeps `param` on the stack from its first instruction on.
    pub(crate) fn has_home(&self, param: &Die<'a>) -> bool {
        let of = self.of(param);
        let at_entry = |passed: Passed| matches!(passed.place, ParameterPlace::Memory { .. });
        match of {
            Found::Home(_) => true,
            Found::AtEntry(passed) => at_entry(passed),
            _ => false,
        }
    }

    fn whole(&self, expression: Expression<Slice<'a>>) -> Found {
        let operations = self.operations(expression);
        if let Some(home) = self.home(&operations) {
            return match home {
                // The caller's stack: it also holds the argument before the first instruction.
                Home {
                    base: FrameBase::Cfa,
                    offset: 0..,
                    deref: false,
                } => Found::AtEntry(Passed::at(stack_place(home.offset.saturating_add(8)))),
                home => Found::Home(home),
            };
        }
        self.passed(&operations)
            .map_or(Found::Nothing, Found::Always)
    }

    /// Looks for the list entry that covers the function's first instruction, or else for one that names the entry
    /// value.
    fn list(&self, value: AttributeValue<Slice<'a>>) -> Option<Found> {
        let unit = &self.function.unit;
        let dwarf = self.session.dwarf(self.function);
        let offset = dwarf.attr_locations_offset(unit, value).ok()??;
        let mut entries = dwarf.raw_locations(unit, offset).ok()?;
        let mut base = unit.low_pc;
        let mut named = Found::Nothing;
        for _ in 0..MAX_ENTRIES {
            self.session.spend(1)?;
            let Ok(Some(entry)) = entries.next() else {
                break;
            };
            let Some((begin, end, data)) = range(self.session, self.function, entry, &mut base)
            else {
                continue;
            };
            let operations = self.operations(data);
            // An empty range at the first instruction (GNU location views) holds before that instruction.
            let covers = begin == self.svma || begin < self.svma && self.svma < end;
            if covers && let Some(found) = self.at_entry(&operations) {
                return Some(Found::AtEntry(found));
            }
            if covers && let Some(home) = self.home(&operations) {
                named = Found::Home(home);
            }
            if let Some(passed) = self.entry_value(&operations) {
                named = Found::AtEntry(passed);
            }
        }
        Some(named)
    }

    fn at_entry(&self, operations: &[Operation<Slice<'a>>]) -> Option<Passed> {
        match self.home(operations) {
            Some(Home {
                base: FrameBase::Cfa,
                offset,
                deref: false,
            }) => Some(Passed::at(stack_place(offset.saturating_add(8)))),
            Some(_) => None,
            None => self.passed(operations),
        }
    }

    fn operations(&self, expression: Expression<Slice<'a>>) -> Vec<Operation<Slice<'a>>> {
        let mut iter = expression.operations(self.function.unit.encoding());
        let mut operations = Vec::new();
        while operations.len() < MAX_OPERATIONS {
            match iter.next() {
                Ok(Some(operation)) => operations.push(operation),
                Ok(None) => return operations,
                Err(_) => break,
            }
        }
        Vec::new()
    }

    fn home(&self, operations: &[Operation<Slice<'a>>]) -> Option<Home> {
        let (first, deref) = match operations {
            [first] => (first, false),
            [first, Operation::Deref { size: 8, .. }] => (first, true),
            _ => return None,
        };
        match first {
            Operation::FrameOffset { offset } => Some(Home {
                base: self.frame_base?,
                offset: *offset,
                deref,
            }),
            Operation::RegisterOffset {
                register, offset, ..
            } if argument_register(register.0).is_none() => Some(Home {
                base: FrameBase::Register(register.0),
                offset: *offset,
                deref,
            }),
            _ => None,
        }
    }

    /// Returns the places named by an expression that has no home in memory.
    fn passed(&self, operations: &[Operation<Slice<'a>>]) -> Option<Passed> {
        match operations {
            [Operation::Register { register }] => argument_register(register.0).map(Passed::at),
            // The variable lies where an argument register points: it is passed by reference.
            [
                Operation::RegisterOffset {
                    register,
                    offset: 0,
                    ..
                },
            ] => Some(Passed {
                indirect: true,
                ..Passed::at(argument_register(register.0)?)
            }),
            [.., Operation::Piece { .. }] => pieces(operations),
            _ => self.entry_value(operations),
        }
    }

    /// `DW_OP_entry_value(register) [DW_OP_stack_value]`: what the register held at entry.
    fn entry_value(&self, operations: &[Operation<Slice<'a>>]) -> Option<Passed> {
        let ([Operation::EntryValue { expression }]
        | [Operation::EntryValue { expression }, Operation::StackValue]) = operations
        else {
            return None;
        };
        let inner = self.operations(Expression(*expression));
        match inner.as_slice() {
            [Operation::Register { register }] => argument_register(register.0).map(Passed::at),
            _ => None,
        }
    }
}

/// Returns the first two pieces of a value in several places. Pieces outside argument registers are unknown.
fn pieces(operations: &[Operation<Slice<'_>>]) -> Option<Passed> {
    let mut places = Vec::new();
    let mut first_bits = None;
    let parts = operations.split_inclusive(|o| matches!(o, Operation::Piece { .. }));
    for part in parts {
        if let Some(Operation::Piece { size_in_bits, .. }) = part.last() {
            first_bits = first_bits.or(Some(*size_in_bits));
        }
        places.push(match part {
            [Operation::Register { register }, Operation::Piece { .. }] => {
                argument_register(register.0).unwrap_or(ParameterPlace::Unknown)
            }
            _ => ParameterPlace::Unknown,
        });
    }
    match places.as_slice() {
        [one] if *one != ParameterPlace::Unknown => Some(Passed::at(*one)),
        [first, second] if places.iter().any(|p| *p != ParameterPlace::Unknown) => Some(Passed {
            place2: Some(*second),
            second_at: u8::try_from(first_bits? / 8).ok()?,
            ..Passed::at(*first)
        }),
        _ => None,
    }
}

/// Returns a place on the stack, given its distance from the stack pointer at entry.
pub(super) fn stack_place(above_rsp: i64) -> ParameterPlace {
    match u32::try_from(above_rsp) {
        Ok(offset) if offset >= 8 => ParameterPlace::Memory { offset },
        _ => ParameterPlace::Unknown,
    }
}

fn frame_base<'a>(session: &DieReader<'_, 'a>, function: &Die<'a>, svma: u64) -> Option<FrameBase> {
    let value = session.attr(function, gimli::DW_AT_frame_base)?;
    let AttributeValue::Exprloc(expression) = value else {
        return listed_frame_base(session, function, value, svma);
    };
    let mut operations = expression.operations(function.unit.encoding());
    match operations.next().ok()?? {
        Operation::CallFrameCFA => Some(FrameBase::Cfa),
        Operation::Register { register } => Some(FrameBase::Register(register.0)),
        _ => None,
    }
}

/// Before DWARF 3, a location list states how to compute the CFA at each instruction; at entry it is `rsp + 8`.
fn listed_frame_base<'a>(
    session: &DieReader<'_, 'a>,
    function: &Die<'a>,
    value: AttributeValue<Slice<'a>>,
    svma: u64,
) -> Option<FrameBase> {
    let dwarf = session.dwarf(function);
    let mut list = dwarf.attr_locations(&function.unit, value).ok()??;
    let first = list.next().ok()??;
    let mut operations = first.data.operations(function.unit.encoding());
    match operations.next().ok()?? {
        Operation::RegisterOffset {
            register: gimli::Register(super::RSP),
            offset: 8,
            ..
        } if first.range.begin == svma => Some(FrameBase::Cfa),
        _ => None,
    }
}

/// Returns whether an operation takes nothing from a register or from memory.
fn is_constant(operation: &Operation<Slice<'_>>) -> bool {
    matches!(
        operation,
        Operation::UnsignedConstant { .. }
            | Operation::SignedConstant { .. }
            | Operation::Address { .. }
            | Operation::AddressIndex { .. }
            | Operation::ConstantIndex { .. }
            | Operation::PlusConstant { .. }
            | Operation::ImplicitValue { .. }
            | Operation::StackValue
    )
}

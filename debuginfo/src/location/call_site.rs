//! Finds the value that an argument had at function entry, from the call site in the caller's frame.

use std::cell::Cell;
use std::sync::Arc;

use gimli::constants as dw;
use gimli::{
    DwAt, DwTag, Encoding, Expression, Operation, Unit, UnitOffset, UnitSectionOffset,
    Value as Number,
};

use super::evaluate::Evaluator;
use super::{Context, MAX_CALLERS, with_context};
use crate::dies::{Die, DieReader};
use crate::dwarf::Slice;
use crate::machine::{Certainty, Register, Unknown};
use crate::scope::function_at;
use crate::types::DieId;
use crate::unwind::tail_calls;

/// Calls examined for one value, at most. What a caller passed may itself depend on what several of its own callers
/// passed.
const MAX_CALLS: u32 = 1 << 10;

thread_local! {
    /// Calls examined for the current value.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Counts a call and returns whether the limit allows it. The count restarts at each value that is not nested in
/// another one.
fn is_within_work(nesting: usize) -> bool {
    let count = if nesting == 0 { 1 } else { CALLS.get() + 1 };
    CALLS.set(count);
    count <= MAX_CALLS
}

/// The compiler has kept no copy, and the caller does not tell what it was at entry.
fn unknown() -> Unknown {
    Unknown::because("optimized out")
}

/// Returns the value of `expression`, a register or what it points to, at the entry of the context's function.
pub(super) fn entry_value<'a>(
    context: &Context<'_, '_, 'a>,
    expression: Expression<Slice<'a>>,
) -> Result<(Number, Certainty), Unknown> {
    let function = context.function.as_ref();
    if let Some((register, size)) =
        function.and_then(|function| only_target(expression, function.unit.encoding()))
    {
        let (value, certainty) = passed(context, Wanted::Target(register))?;
        return Ok((low_bytes(value, size), certainty));
    }
    let told = passed(context, Wanted::Location(expression.0.slice()));
    told.or_else(|why| recorded(context, expression).ok_or(why))
}

/// Returns the low bytes of an integer, as a read of so many bytes has them.
fn low_bytes(value: Number, size: u8) -> Number {
    let unused = 64 - u32::from(size.clamp(1, 8)) * 8;
    let bits = value.to_u64(u64::MAX);
    bits.map_or(value, |bits| Number::Generic(bits << unused >> unused))
}

/// Returns the value that a record of the call has for a register.
fn recorded<'a>(
    context: &Context<'_, '_, 'a>,
    expression: Expression<Slice<'a>>,
) -> Option<(Number, Certainty)> {
    let function = context.function.as_ref()?;
    let (number, _) = only_register(expression, function.unit.encoding())?;
    let lookup = context.site.lookup_pc;
    let entry = tail_calls::entry_of(context.module, lookup.wrapping_sub(context.bias))?;
    if number >= 16 || tail_calls::may_restart(context.module, entry) {
        return None;
    }
    let site = context.site;
    let machine = site.machine;
    let bits = machine.register_at_entry(lookup, site.cfa?, Register(number))?;
    Some((Number::Generic(bits), Certainty::Known))
}

/// Returns the register that makes up `expression`, and the type it is read as, if stated.
pub(super) fn only_register(
    expression: Expression<Slice<'_>>,
    encoding: Encoding,
) -> Option<(u16, Option<UnitOffset>)> {
    let mut operations = expression.operations(encoding);
    let first = operations.next().ok()??;
    let is_all = operations.next().is_ok_and(|next| next.is_none());
    match first {
        Operation::Register { register } if is_all => Some((register.0, None)),
        // `DW_OP_regval_type`
        Operation::RegisterOffset {
            register,
            offset: 0,
            base_type,
        } if is_all && base_type.0 != 0 => Some((register.0, Some(base_type))),
        _ => None,
    }
}

/// Returns the register whose target makes up `expression`, and the bytes that are read there.
fn only_target(expression: Expression<Slice<'_>>, encoding: Encoding) -> Option<(u16, u8)> {
    let mut operations = expression.operations(encoding);
    let (pointer, read) = (operations.next().ok()??, operations.next().ok()??);
    let is_all = operations.next().is_ok_and(|next| next.is_none());
    match (pointer, read) {
        (
            Operation::RegisterOffset {
                register,
                offset: 0,
                base_type: UnitOffset(0),
            },
            Operation::Deref {
                base_type: UnitOffset(0),
                size,
                space: false,
            },
        ) if is_all => Some((register.0, size)),
        _ => None,
    }
}

/// Returns the value that the caller passed for the parameter at `offset` of `unit`. The function itself does not use
/// the parameter.
pub(super) fn parameter<'a>(
    context: &Context<'_, '_, 'a>,
    offset: UnitOffset,
    unit: &Unit<Slice<'a>>,
) -> Result<(u64, Certainty), Unknown> {
    let passed = passed(context, Wanted::Parameter(unit.header.offset(), offset));
    let number = passed.and_then(|(value, certainty)| {
        let bits = match value {
            Number::F32(value) => u64::from(value.to_bits()),
            Number::F64(value) => value.to_bits(),
            value => value.to_u64(u64::MAX).map_err(|_| unknown())?,
        };
        Ok((bits, certainty))
    });
    number.map_err(|_| Unknown::because("the argument was optimized out"))
}

/// What to find at a call site.
#[derive(Clone, Copy)]
enum Wanted<'w> {
    /// The value passed at the place that this expression describes.
    Location(&'w [u8]),
    /// What was at the address passed in this register.
    Target(u16),
    /// The value passed for the parameter that this DIE describes.
    Parameter(UnitSectionOffset, UnitOffset),
}

impl Wanted<'_> {
    /// Returns the attribute that states it, and its name before DWARF 5.
    fn attributes(self) -> (DwAt, DwAt) {
        match self {
            Wanted::Target(_) => (
                dw::DW_AT_call_data_value,
                dw::DW_AT_GNU_call_site_data_value,
            ),
            Wanted::Location(_) | Wanted::Parameter(..) => {
                (dw::DW_AT_call_value, dw::DW_AT_GNU_call_site_value)
            }
        }
    }

    fn is_it<'a>(self, session: &DieReader<'_, 'a>, parameter: &Die<'a>) -> bool {
        match self {
            Wanted::Location(wanted) => {
                let location = session.attr(parameter, dw::DW_AT_location);
                let Some(location) = location.and_then(|l| l.exprloc_value()) else {
                    return false;
                };
                let encoding = parameter.unit.encoding();
                let asked = Expression(Slice::new(wanted, gimli::LittleEndian));
                let number = |e| only_register(e, encoding).map(|(number, _)| number);
                // Only one of the two may state a type for the register.
                match (number(asked), number(location)) {
                    (Some(asked), Some(stated)) => asked == stated,
                    _ => location.0.slice() == wanted,
                }
            }
            Wanted::Target(register) => {
                let location = session.attr(parameter, dw::DW_AT_location);
                let location = location.and_then(|l| l.exprloc_value());
                let stated = location.and_then(|l| only_register(l, parameter.unit.encoding()));
                stated.is_some_and(|(number, _)| number == register)
            }
            Wanted::Parameter(unit, offset) => {
                let stated = session
                    .follow(parameter, dw::DW_AT_call_parameter)
                    .or_else(|| session.follow(parameter, dw::DW_AT_abstract_origin));
                stated.is_some_and(|die| die.unit.header.offset() == unit && die.offset == offset)
            }
        }
    }
}

fn passed<'a>(
    context: &Context<'_, '_, 'a>,
    wanted: Wanted<'_>,
) -> Result<(Number, Certainty), Unknown> {
    let caller = context.site.caller.ok_or_else(unknown)?;
    if context.nesting >= MAX_CALLERS || !is_within_work(context.nesting) {
        return Err(unknown());
    }
    let callee = context.function.as_ref().ok_or_else(unknown)?;
    let here = context.module;
    let svma = context.site.lookup_pc.wrapping_sub(context.bias);
    let entry = tail_calls::entry_of(here, svma).ok_or_else(unknown)?;
    if tail_calls::may_restart(here, entry) {
        return Err(unknown());
    }
    let callee = Callee::of(context, callee);
    let mapped = caller.space.at(caller.lookup_pc).ok_or_else(unknown)?;
    let module = &mapped.module;
    let pc = mapped.svma(caller.lookup_pc);
    let function = function_at(module, pc).ok_or_else(unknown)?;
    // The call's return address is one byte after the address by which the caller is looked up.
    let return_svma = pc.0.wrapping_add(1);
    let nesting = context.nesting + 1;
    let value = with_context(
        caller,
        module,
        function,
        Some(function),
        nesting,
        |at, die| {
            let site = call_at(at, die, return_svma).ok_or_else(unknown)?;
            if !callee.is_called_by(at, &site, module) {
                return Err(unknown());
            }
            argument(at, &site, wanted)
        },
    );
    value.ok_or_else(unknown)?
}

/// What identifies a function.
struct Callee {
    keys: Vec<DieId>,
    name: Option<Vec<u8>>,
    entry: Option<u64>,
    module: Arc<crate::module::Module>,
}

impl Callee {
    fn of<'a>(context: &Context<'_, '_, 'a>, die: &Die<'a>) -> Callee {
        let chain = context.session.chain(die);
        let low = context.session.attr(die, dw::DW_AT_low_pc);
        let dwarf = context.session.dwarf(die);
        let low = low.and_then(|low| dwarf.attr_address(&die.unit, low).ok()?);
        Callee {
            keys: chain.iter().map(DieId::of).collect(),
            name: name(context.session, &chain),
            entry: low.map(|low| low.wrapping_add(context.bias)),
            module: context.module.clone(),
        }
    }

    /// Returns whether the call `site` enters this function, and not another one that jumped here.
    fn is_called_by<'a>(
        &self,
        context: &Context<'_, '_, 'a>,
        site: &Die<'a>,
        module: &Arc<crate::module::Module>,
    ) -> bool {
        let session = context.session;
        let origin = session
            .follow(site, dw::DW_AT_call_origin)
            .or_else(|| session.follow(site, dw::DW_AT_abstract_origin));
        if let Some(origin) = origin {
            let chain = session.chain(&origin);
            let same_entry = Arc::ptr_eq(module, &self.module)
                && chain.iter().any(|d| self.keys.contains(&DieId::of(d)));
            return same_entry || self.name.is_some() && name(session, &chain) == self.name;
        }
        let target = session
            .attr(site, dw::DW_AT_call_target)
            .or_else(|| session.attr(site, dw::DW_AT_GNU_call_site_target));
        let target = target.and_then(|t| t.exprloc_value());
        let address = target.map(|t| Evaluator::new(context, &site.unit).number(t));
        matches!((address, self.entry), (Some(Ok(address)), Some(entry)) if address == entry)
    }
}

fn name<'a>(session: &DieReader<'_, 'a>, chain: &[Die<'a>]) -> Option<Vec<u8>> {
    let of = |name| chain.iter().find_map(|d| session.string(d, name));
    let name = of(dw::DW_AT_linkage_name).or_else(|| of(dw::DW_AT_name))?;
    Some(name.slice().to_vec())
}

fn is_call(tag: DwTag) -> bool {
    matches!(tag, dw::DW_TAG_call_site | dw::DW_TAG_GNU_call_site)
}

/// Returns the call site in `function` that returns to `return_svma`.
fn call_at<'a>(
    context: &Context<'_, '_, 'a>,
    function: &Die<'a>,
    return_svma: u64,
) -> Option<Die<'a>> {
    let session = context.session;
    let mut entries = function.unit.entries_raw(Some(function.offset)).ok()?;
    let start = entries.next_depth();
    loop {
        let (offset, depth): (UnitOffset, isize) = (entries.next_offset(), entries.next_depth());
        if entries.is_empty() || depth <= start && offset != function.offset {
            return None;
        }
        session.spend(1)?;
        let Some(abbreviation) = entries.read_abbreviation().ok()? else {
            continue;
        };
        entries.skip_attributes(abbreviation.attributes()).ok()?;
        if !is_call(abbreviation.tag()) {
            continue;
        }
        let die = function.sibling(offset);
        let at = session
            .attr(&die, dw::DW_AT_call_return_pc)
            .or_else(|| session.attr(&die, dw::DW_AT_low_pc));
        let at = at.and_then(|v| session.dwarf(&die).attr_address(&die.unit, v).ok()?);
        if at == Some(return_svma) {
            return Some(die);
        }
    }
}

/// Returns the value that the call passes for `wanted`.
fn argument<'a>(
    context: &Context<'_, '_, 'a>,
    site: &Die<'a>,
    wanted: Wanted<'_>,
) -> Result<(Number, Certainty), Unknown> {
    let session = context.session;
    let tags = [
        dw::DW_TAG_call_site_parameter,
        dw::DW_TAG_GNU_call_site_parameter,
    ];
    for parameter in session.children(site, &tags) {
        if !wanted.is_it(session, &parameter) {
            continue;
        }
        let (name, before) = wanted.attributes();
        let value = session
            .attr(&parameter, name)
            .or_else(|| session.attr(&parameter, before));
        let value = value.and_then(|v| v.exprloc_value()).ok_or_else(unknown)?;
        let evaluator = Evaluator::new(context, &site.unit);
        let value = evaluator.value(value)?;
        return Ok((value, evaluator.certainty()));
    }
    Err(unknown())
}

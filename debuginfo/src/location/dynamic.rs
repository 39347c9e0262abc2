//! Arrays whose place, existence or bounds are known only at run time.
//!
//! A resolved array has a type of its own, in which everything is known. If something cannot be determined, the value
//! is unknown, with the reason.

use std::cell::Cell;

use gimli::constants as dw;
use gimli::{AttributeValue, DwAt, Expression, UnitOffset};

use super::evaluate::Evaluator;
use super::{Context, FrameContext, ValuePlace, with_context};
use crate::dies::{Die, Value as Attribute};
use crate::dwarf::Slice;
use crate::machine::{Certainty, Unknown};
use crate::types::{Bound, Count, DieId, Dimension, Stride, Type, TypeKind, elements};
use crate::value::Value;
use crate::value::trail::Trail;

/// Bytes of an array descriptor before its bounds, and bytes of the bounds of one dimension.
const HEAD_BYTES: u64 = 40;
const DIMENSION_BYTES: u64 = 24;
/// Where a descriptor of gfortran has its version, which is 0, in 4 bytes, and behind it the number of dimensions, in one.
const VERSION_AT: u64 = 24;
const VERSION_AND_RANK: u64 = 5;
/// The first gfortran with such descriptors.
const FIRST_GFORTRAN: u32 = 9;

/// The address of an array's elements, if it differs from the value's, and the resolved type.
type Decision = (Option<u64>, Type);

/// Returns a value whose type is fully resolved. `function` is the function with code whose frame contains the value;
/// `record` is the address of the structure that the array is a member of.
pub(crate) fn decided(
    value: Value,
    site: &FrameContext<'_>,
    function: Option<DieId>,
    record: Option<u64>,
) -> Value {
    let ty = value.ty.strip();
    if function.is_some()
        && let TypeKind::Reference | TypeKind::RvalueReference = ty.kind()
    {
        return referring(value, &ty, site, function);
    }
    if !ty.is_undecided() {
        return value;
    }
    let object = value.address();
    match resolved(&value, &ty, site, function, record) {
        None => value,
        Some(Ok(((elements_at, decided), certainty))) => {
            let place = match elements_at {
                Some(address) => ValuePlace::Memory(address),
                None => value.place.clone(),
            };
            let found = Value::read(decided, place, site.machine);
            let found = found.reached_by(value.reached.and(certainty));
            match (object, elements_at) {
                (Some(object), Some(_)) => of_one_moment(object, &ty, found, site),
                _ => found,
            }
        }
        // Without its length, the place of an array is still known.
        Some(Err(why)) => match (object, &value.place) {
            (Some(_), _) if is_without_length(&ty) => value,
            // The value already has a reason.
            (None, ValuePlace::OptimizedOut | ValuePlace::Unknown(_)) => value,
            _ => Value::unknown(value.ty, why),
        },
    }
}

/// Resolves the type of an array: the place of its elements and the type, and how certain they are. Returns `None` if
/// no debug information describes it.
fn resolved(
    value: &Value,
    ty: &Type,
    site: &FrameContext<'_>,
    function: Option<DieId>,
    record: Option<u64>,
) -> Option<Result<(Decision, Certainty), Unknown>> {
    let (module, id) = (ty.module()?, ty.node().id?);
    let held = match value.place {
        ValuePlace::Register(_) | ValuePlace::Pieces(_) | ValuePlace::Implicit(_) => Some(value),
        _ => None,
    };
    let found = with_context(site, module, id, function, 0, |context, die| {
        let asked = Asked {
            context,
            die,
            object: value.address(),
            held,
            record,
            certainty: Cell::new(Certainty::Known),
        };
        let found = asked.decide(ty)?;
        Ok((found, asked.certainty.get()))
    });
    Some(found.unwrap_or_else(|| Err(Unknown::because("its type cannot be read"))))
}

/// Resolves the target of a reference that is a variable. Ada's compiler makes such references of local arrays: their
/// bounds are variables of the same frame, to which the reference itself does not lead.
fn referring(value: Value, ty: &Type, site: &FrameContext<'_>, function: Option<DieId>) -> Value {
    let target = ty.target().map(|target| target.strip());
    let target = target.filter(Type::is_undecided);
    let (Some(target), Ok(address)) = (target, value.as_address()) else {
        return value;
    };
    let array = Value::at(target.clone(), address, site.machine);
    match resolved(&array, &target, site, function, None) {
        Some(Ok(((None, decided), certainty))) => Value {
            ty: ty.referring_to(decided),
            ..value.reached_by(certainty)
        },
        Some(Err(why)) if !is_without_length(&target) => Value::unknown(value.ty, why),
        _ => value,
    }
}

/// Only the number of elements is missing. The place of an element does not depend on it.
fn is_without_length(ty: &Type) -> bool {
    ty.is_plain_array() || ty.has_placed_elements()
}

/// Checks that the elements were seen together with their bounds.
fn of_one_moment(object: u64, ty: &Type, found: Value, site: &FrameContext<'_>) -> Value {
    let bytes = HEAD_BYTES + DIMENSION_BYTES * ty.dimensions().len() as u64;
    let byte = crate::types::builtin("u8").expect("u8 is a base type");
    let descriptor = Value::at(byte.array(bytes), object, site.machine);
    match Trail::check(&[&descriptor], &found, site.machine) {
        Ok(()) => found,
        Err(why) => Value {
            bytes: Err(why),
            ..found
        },
    }
}

/// An array's type, and what its expressions refer to.
struct Asked<'c, 'x, 't, 'a> {
    context: &'c Context<'x, 't, 'a>,
    die: &'c Die<'a>,
    /// The address of the object (`DW_OP_push_object_address`).
    object: Option<u64>,
    /// The object, if it has no address: optimised code keeps the required parts of a descriptor in registers.
    held: Option<&'c Value>,
    /// The address of the structure that the array is a member of.
    record: Option<u64>,
    certainty: Cell<Certainty>,
}

impl<'x, 't, 'a> Asked<'_, 'x, 't, 'a> {
    /// Resolves the array.
    fn decide(&self, ty: &Type) -> Result<Decision, Unknown> {
        let is_there = |name| match self.stated(self.die, name) {
            Some(value) => Ok(self.number(self.die, value)? != 0),
            None => Ok(true),
        };
        if !is_there(dw::DW_AT_allocated)? {
            return Err(Unknown::because("not allocated"));
        }
        if !is_there(dw::DW_AT_associated)? {
            return Err(Unknown::because("not associated"));
        }
        let elements_at = match self.stated(self.die, dw::DW_AT_data_location) {
            Some(value) => {
                self.check_descriptor(ty)?;
                Some(self.address(value)?)
            }
            None => None,
        };
        let dimensions = ty.dimensions().iter().map(|d| self.dimension(d));
        let dimensions: Result<Vec<Dimension>, Unknown> = dimensions.collect();
        let decided = ty.decided(dimensions?);
        let decided = decided.ok_or_else(|| Unknown::because("it is not an array"))?;
        let decided = match self.text(ty) {
            Ok(Some(text)) => decided.with_elements(text).unwrap_or(decided),
            Ok(None) => decided,
            // Elements at stated distances are resolved one by one.
            Err(_) if decided.stride().is_some() => decided,
            Err(why) => return Err(why),
        };
        Ok((elements_at, decided))
    }

    /// Checks that a descriptor in memory is one of such an array. A pointer has no descriptor before it is associated, and
    /// optimised code does not store that an array is not allocated yet if it never reads that.
    fn check_descriptor(&self, ty: &Type) -> Result<(), Unknown> {
        // An array of assumed rank, `a(..)`, has the rank of what was passed for it.
        let is_of_any_rank = self.stated(self.die, dw::DW_AT_rank).is_some();
        let is_checked = !is_of_any_rank && self.is_of_gfortran();
        let Some(object) = self.object.filter(|_| is_checked) else {
            return Ok(());
        };
        let byte = crate::types::builtin("u8").expect("u8 is a base type");
        let machine = self.context.site.machine;
        let at = object.wrapping_add(VERSION_AT);
        let stated = Value::at(byte.array(VERSION_AND_RANK), at, machine);
        // Without these bytes, what else is needed of it decides.
        let Ok(bytes) = stated.bytes else {
            return Ok(());
        };
        self.note(stated.certainty);
        let dimensions = ty.dimensions().len();
        match bytes[..] {
            [0, 0, 0, 0, rank] if usize::from(rank) == dimensions => Ok(()),
            _ => Err(Unknown::because(
                "the program has not set up its descriptor here",
            )),
        }
    }

    /// Returns whether the array's unit is of a gfortran whose descriptors have a version.
    fn is_of_gfortran(&self) -> bool {
        let unit = &self.die.unit;
        let root = self.die.sibling(UnitOffset(unit.header.size_of_header()));
        let producer = self.context.session.string(&root, dw::DW_AT_producer);
        let producer = producer.map(|text| text.to_string_lossy().into_owned());
        let behind = |text: &str| Some(text.split_once("GNU Fortran")?.1.to_owned());
        let version = producer.as_deref().and_then(behind);
        let version = version.as_deref().and_then(|text| text.split(' ').nth(1));
        let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        major.is_some_and(|major| major >= FIRST_GFORTRAN)
    }

    /// Returns the type of the elements if they are texts whose length is known only at run time.
    fn text(&self, ty: &Type) -> Result<Option<Type>, Unknown> {
        let own = DieId::of(self.die);
        let text = ty.undecided_text();
        let text = text.and_then(|text| Some((text.node().id?, text)));
        let Some((id, text)) = text.filter(|(id, _)| (id.home, id.index) == (own.home, own.index))
        else {
            return Ok(None);
        };
        let asked = Asked {
            context: self.context,
            die: &self.die.sibling(UnitOffset(id.offset)),
            object: None,
            held: None,
            record: self.record,
            certainty: Cell::new(Certainty::Known),
        };
        let (_, text) = asked.decide(&text)?;
        self.note(asked.certainty.get());
        Ok(Some(text))
    }

    fn dimension(&self, of: &Dimension) -> Result<Dimension, Unknown> {
        let lower = match of.lower {
            Bound::Known(lower) => lower,
            Bound::Computed(id) => self.attribute(id, dw::DW_AT_lower_bound)?,
        };
        let count = match &of.count {
            Count::Computed(computed) if computed.is_count => {
                let id = computed.subrange;
                let count = match id == DieId::of(self.die) {
                    true => self.text_length()?,
                    false => self.attribute(id, dw::DW_AT_count)?,
                };
                Count::Known(u64::try_from(count).unwrap_or(0))
            }
            Count::Computed(computed) => {
                let last = self.attribute(computed.subrange, dw::DW_AT_upper_bound)?;
                Count::Known(elements(lower, last))
            }
            other => other.clone(),
        };
        let stride = match of.stride {
            Stride::Computed(id) => {
                let bytes = self.attribute(id, dw::DW_AT_byte_stride)?;
                Stride::Bits(bytes.saturating_mul(8))
            }
            other => other,
        };
        Ok(Dimension {
            count,
            lower: Bound::Known(lower),
            stride,
            indexes: of.indexes.clone(),
        })
    }

    fn stated(&self, die: &Die<'a>, name: DwAt) -> Option<Attribute<'a>> {
        self.context.session.attr(die, name)
    }

    /// Returns a number that a DIE of the array's unit states or computes.
    fn attribute(&self, id: DieId, name: DwAt) -> Result<i64, Unknown> {
        let die = self.die.sibling(UnitOffset(id.offset));
        let missing = || Unknown::because("a bound of the array is not stated");
        let value = self.stated(&die, name).ok_or_else(missing)?;
        self.number(&die, value)
    }

    fn number(&self, die: &Die<'a>, value: Attribute<'a>) -> Result<i64, Unknown> {
        match &value {
            AttributeValue::Sdata(number) => return Ok(*number),
            AttributeValue::Exprloc(_) | AttributeValue::Block(_) => {
                let (evaluator, expression) = self.expression(die, &value)?;
                let number = evaluator.number(expression);
                self.note(evaluator.certainty());
                return number.map(|number| number as i64);
            }
            _ => {}
        }
        if let Some(number) = value.udata_value() {
            return Ok(number as i64);
        }
        let session = self.context.session;
        if let Some(target) = session.resolve(die, value)
            && session.tag(&target) == Some(dw::DW_TAG_member)
        {
            return self.discriminant(&target);
        }
        let (number, certainty) = self.context.variable_number(die, value)?;
        self.note(certainty);
        Ok(number)
    }

    /// Returns the value of a member of the structure around the array.
    fn discriminant(&self, member: &Die<'a>) -> Result<i64, Unknown> {
        let session = self.context.session;
        let outside = || Unknown::because("it depends on the structure that it is part of");
        let record = self.record.ok_or_else(outside)?;
        let offset = session.unsigned(member, dw::DW_AT_data_member_location);
        let ty = session.follow(member, dw::DW_AT_type).ok_or_else(outside)?;
        let ty = Type::at(self.context.module, DieId::of(&ty));
        let address = record.wrapping_add(offset.unwrap_or(0));
        let value = Value::at(ty, address, self.context.site.machine);
        self.note(value.certainty);
        let number = value
            .as_integer()
            .map_err(|why| Unknown::because(why.to_string()))?;
        i64::try_from(number).map_err(|_| Unknown::because("a bound of the array is too large"))
    }

    /// Returns the length of a Fortran string. The attribute states where the length is stored.
    fn text_length(&self) -> Result<i64, Unknown> {
        let missing = || Unknown::because("the length of the text is not stated");
        let value = self.stated(self.die, dw::DW_AT_string_length);
        let value = value.ok_or_else(missing)?;
        if value.exprloc_value().is_none() {
            return self.number(self.die, value);
        }
        let (evaluator, expression) = self.expression(self.die, &value)?;
        let place = evaluator.place(expression, None);
        self.note(evaluator.certainty());
        let stated = |name| self.context.session.unsigned(self.die, name);
        let bytes = stated(dw::DW_AT_string_length_byte_size)
            .or_else(|| stated(dw::DW_AT_byte_size))
            .unwrap_or(8);
        let name = if bytes == 4 { "int" } else { "long" };
        let ty = crate::types::builtin(name).expect("int and long are base types");
        let length = Value::read(ty, place?, self.context.site.machine);
        self.note(length.certainty);
        let length = length
            .as_integer()
            .map_err(|why| Unknown::because(why.to_string()))?;
        Ok(length as i64)
    }

    fn address(&self, value: Attribute<'a>) -> Result<u64, Unknown> {
        let (evaluator, expression) = self.expression(self.die, &value)?;
        let place = evaluator.place(expression, None);
        self.note(evaluator.certainty());
        match place? {
            ValuePlace::Memory(address) => Ok(address),
            _ => Err(Unknown::because(
                "the place of its elements is not an address",
            )),
        }
    }

    fn expression<'e>(
        &'e self,
        die: &'e Die<'a>,
        value: &Attribute<'a>,
    ) -> Result<(Evaluator<'e, 'x, 't, 'a>, Expression<Slice<'a>>), Unknown> {
        let expression = value.exprloc_value();
        let expression =
            expression.ok_or_else(|| Unknown::because("its description cannot be read"))?;
        let evaluator = Evaluator::about(self.context, &die.unit, self.object, self.held);
        Ok((evaluator, expression))
    }

    fn note(&self, certainty: Certainty) {
        self.certainty.set(self.certainty.get().and(certainty));
    }
}

//! Goes from a value to its parts and to the values it points to.

use super::{
    FrameContext, Look, Value, ValueError, ValuePlace, ada, elements, number, place, variants,
};
use crate::location;
use crate::machine::{Ages, Certainty, Unknown};
use crate::scope::static_member;
use crate::types::{
    BitRange, ComputedOffset, Language, Member, MemberOffset, Role, Type, TypeKind, find_member,
};

/// Nesting of base classes and unnamed members searched for one name.
const MAX_DEPTH: usize = 32;
/// Members listed in a message about a missing one, at most.
pub const MAX_NAMED: usize = 8;

pub fn wrong(ty: &Type, what: &'static str) -> ValueError {
    ValueError::WrongType {
        ty: ty.name(),
        what,
        hint: None,
    }
}

pub(crate) fn member(value: &Value, name: &str, look: &Look<'_>) -> Result<Value, ValueError> {
    let value = value.unreferenced(look)?;
    let ty = value.ty.strip();
    if name == "all" && ty.language() == Language::Ada {
        return ada::all(&value, look);
    }
    if !matches!(
        ty.kind(),
        TypeKind::Struct | TypeKind::Class | TypeKind::Union
    ) {
        return Err(wrong(&value.ty, "has no members"));
    }
    let found = match ty.language() {
        Language::Cpp => inherited(&value, &ty, name, look)?,
        _ => search(&value, name, look, MAX_DEPTH)?,
    };
    if let Some(found) = found {
        return Ok(found);
    }
    let members = ty.members();
    let names: Vec<&str> = members.iter().filter_map(|m| m.name.as_deref()).collect();
    let known = names.into_iter().take(MAX_NAMED);
    Err(ValueError::NoMember {
        ty: value.ty.name(),
        name: name.to_owned(),
        known: known.map(str::to_owned).collect(),
    })
}

/// Finds a member of a C++ object, own or of a base class.
fn inherited(
    value: &Value,
    ty: &Type,
    name: &str,
    look: &Look<'_>,
) -> Result<Option<Value>, ValueError> {
    let Some(found) = find_member(ty, name).map_err(ValueError::Ambiguous)? else {
        return Ok(None);
    };
    let mut part: Option<Value> = None;
    for step in &found.path {
        part = Some(member_value(part.as_ref().unwrap_or(value), step, look)?);
    }
    member_value(part.as_ref().unwrap_or(value), &found.member, look).map(Some)
}

fn search(
    value: &Value,
    name: &str,
    look: &Look<'_>,
    depth: usize,
) -> Result<Option<Value>, ValueError> {
    let Some(depth) = depth.checked_sub(1) else {
        return Ok(None);
    };
    let ty = value.ty.strip();
    let members = ty.members();
    // The class's own members hide those of its bases.
    let own = members.iter().find(|m| {
        let is_base = matches!(m.role, Role::Base | Role::VirtualBase);
        !is_base && m.name.as_deref() == Some(name)
    });
    if let Some(member) = own {
        return member_value(value, member, look).map(Some);
    }
    for member in &members {
        let is_base = matches!(member.role, Role::Base | Role::VirtualBase);
        if is_base {
            let base = member.ty.strip();
            if base.plain_name() == Some(name) || base.own_name().as_deref() == Some(name) {
                return member_value(value, member, look).map(Some);
            }
        }
        if is_base || member.name.is_none() && member.role == Role::Member {
            let inner = member_value(value, member, look)?;
            if let Some(found) = search(&inner, name, look, depth)? {
                return Ok(Some(found));
            }
        }
    }
    let live = variants::live_members(value, look)?;
    if let Some(member) = live.iter().find(|m| m.name.as_deref() == Some(name)) {
        return member_value(value, member, look).map(Some);
    }
    if ty.variants().is_some() {
        let (live, data) = value.variant(look)?;
        if live == name {
            return Ok(Some(data));
        }
        return search(&data, name, look, depth);
    }
    Ok(None)
}

/// Returns the value of a member of `value`.
pub fn member_value(value: &Value, member: &Member, look: &Look<'_>) -> Result<Value, ValueError> {
    match &member.offset {
        MemberOffset::Bytes(offset) => Ok(match member.bits {
            Some(bits) => bit_field(value, &member.ty, bits, look),
            None => decided(part(value, &member.ty, *offset, look), look, Some(value)),
        }),
        MemberOffset::Computed(ComputedOffset(id)) => {
            let module = value.ty.module().or(member.ty.module());
            let object = value.address();
            let (Some(module), Some(object)) = (module, object) else {
                let why = "a virtual base class of an object that is not in memory";
                return Ok(Value::unknown(member.ty.clone(), Unknown::because(why)));
            };
            let site = FrameContext::outside(look.space, look.machine);
            let address = location::computed_member(&site, module, *id, object);
            Ok(match address {
                Ok(address) => {
                    Value::at(member.ty.clone(), address, look.machine).reached_by(value.reached)
                }
                Err(why) => Value::unknown(member.ty.clone(), why),
            })
        }
        MemberOffset::Static(_) => {
            let site = FrameContext::outside(look.space, look.machine);
            Ok(match static_member(member, &value.ty.strip()) {
                Some(variable) => variable.read(&site),
                None => {
                    let mut value =
                        Value::unknown(member.ty.clone(), Unknown::because("optimized out"));
                    value.place = ValuePlace::OptimizedOut;
                    value
                }
            })
        }
    }
}

/// Returns the part of `value` that begins at byte `offset`.
pub fn part(value: &Value, ty: &Type, offset: u64, look: &Look<'_>) -> Value {
    let Some(size) = ty.size() else {
        let place = place::part(&value.place, offset, 0);
        return Value::read(ty.clone(), place, look.machine).reached_by(value.reached);
    };
    let place = place::part(&value.place, offset, size);
    let slice = |bytes: &[u8]| {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        Some(bytes.get(start..end)?.to_vec())
    };
    let bytes = value.bytes.as_deref().ok();
    let bytes = bytes.filter(|_| has_parts_as_old(value, look));
    match bytes.and_then(slice) {
        Some(bytes) => Value {
            ty: ty.clone(),
            place,
            bytes: Ok(bytes),
            certainty: value.certainty,
            reached: value.reached,
            ages: value.ages,
            bits: None,
        }
        .if_told(),
        // The whole is too large to be read at once, or another part of it cannot be read.
        None => {
            let part = Value::read(ty.clone(), place, look.machine);
            // Even if the whole does not fit what led to it, a part may, if both were seen together.
            let is_of_one_age = part.bytes.is_ok() && part.ages != Ages::Several;
            let fits = is_of_one_age && part.certainty == value.reached;
            let part = match &value.bytes {
                Err(why) if value.is_apart() && !fits => Value {
                    bytes: Err(why.clone()),
                    certainty: Certainty::Known,
                    ..part
                },
                _ => part,
            };
            part.reached_by(value.reached)
        }
    }
}

/// Returns whether the parts of a value are as old as the value. If the whole was not seen at once, some parts may be
/// newer than the oldest byte.
fn has_parts_as_old(value: &Value, look: &Look<'_>) -> bool {
    match value.ages {
        Ages::One => true,
        Ages::OneOfSeveral => look.machine.shows_wholes(),
        // Registers are not read again, because an outer frame has other ones.
        Ages::Several => look.machine.shows_wholes() && value.address().is_none(),
    }
}

/// Returns the part of `value` that consists of these bits.
pub fn bit_field(value: &Value, ty: &Type, bits: BitRange, look: &Look<'_>) -> Value {
    let first = bits.offset / 8;
    let last = bits.offset.saturating_add(bits.size).div_ceil(8);
    let bytes = last.saturating_sub(first).max(1);
    if bytes > 17 && ty.strip().kind() != TypeKind::Array {
        let why = Unknown::because("the bit field has too many bits");
        return Value::unknown(ty.clone(), why);
    }
    let holder = part(value, &storage(bytes), first, look);
    // The bits around it may be unknown.
    if holder.bytes.is_err()
        && let ValuePlace::Pieces(pieces) = &value.place
        && let Some(place) = place::bits_of_pieces(pieces, bits.offset, bits.size)
    {
        let only = Value::read(storage(bits.size.div_ceil(8)), place, look.machine);
        if only.bytes.is_ok() {
            return Value {
                ty: ty.clone(),
                bits: Some(BitRange {
                    offset: 0,
                    size: bits.size,
                }),
                ..only.reached_by(value.reached)
            }
            .if_told();
        }
    }
    Value {
        ty: ty.clone(),
        bits: Some(BitRange {
            offset: bits.offset % 8,
            size: bits.size,
        }),
        ..holder
    }
    .if_told()
}

/// Returns a type for `bytes` bytes without a meaning.
pub fn storage(bytes: u64) -> Type {
    let byte = crate::types::builtin("u8").expect("u8 is a base type");
    byte.array(bytes)
}

pub fn pointer(value: &Value) -> Result<u64, ValueError> {
    match number::address(value)? {
        0 => Err(ValueError::Null),
        address => Ok(address),
    }
}

pub(crate) fn deref(value: &Value, look: &Look<'_>) -> Result<Value, ValueError> {
    let ty = value.ty.strip();
    match ty.kind() {
        TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {}
        TypeKind::Array => return elements::nth(value, 0, look),
        _ => return Err(wrong(&value.ty, "points to nothing")),
    }
    let target = ty.target().ok_or_else(|| wrong(&ty, "points to nothing"))?;
    if let ValuePlace::ImplicitPointer {
        target: pointee,
        offset,
    } = &value.place
    {
        let offset = u64::try_from(*offset);
        let offset = offset.map_err(|_| Unknown::because("it points before a variable"))?;
        return Ok(part(pointee, &target, offset, look));
    }
    let address = pointer(value)?;
    let found = Value::at(target, address, look.machine).reached_by(value.certainty);
    Ok(decided(found, look, None))
}

/// Returns the value with its type resolved at run time. `record` is the structure that it is a member of.
pub(crate) fn decided(value: Value, look: &Look<'_>, record: Option<&Value>) -> Value {
    // In these languages only variables have such types, and they are resolved when they are found.
    if matches!(
        value.ty.language(),
        Language::C | Language::Cpp | Language::Rust
    ) {
        return value;
    }
    let site = FrameContext::outside(look.space, look.machine);
    location::decided(value, &site, None, record.and_then(Value::address))
}

//! Conversions between the classes of one object: from a part to a base class, and back to the class around it.
//!
//! A base class may lie behind the start of the object, and a virtual one anywhere in it, so such a conversion moves the
//! address. The object's own class, which its type_info names, tells where it lies.

use crate::ast::{CastKind, Expr, Span};
use crate::eval::operand::pointer_value;
use crate::eval::{Answer, EvalError, Evaluator, Wants};
use debuginfo::types::{Language, MemberOffset, Role, Type, TypeKind, find_type};
use debuginfo::value::{Value, inside};
use values::text_at;

/// Base classes above each other, at most.
const MAX_DEPTH: usize = 16;
/// Parts of one object, at most.
const MAX_PARTS: usize = 256;

/// Where a base class lies in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BaseAt {
    /// So many bytes behind its start.
    Offset(u64),
    /// The object tells.
    Object,
}

impl Evaluator<'_> {
    /// Converts a pointer to a class, or an object of one, to another class of the same object. Returns `None` if the
    /// conversion does not move the address.
    pub(super) fn to_class(
        &self,
        value: &Value,
        ty: &Type,
        how: CastKind,
        at: Span,
    ) -> Answer<Option<Value>> {
        let wanted = ty.strip();
        let to = match wanted.kind() {
            TypeKind::Pointer => wanted.target(),
            _ => Some(wanted.clone()),
        };
        let Some(to) = to.filter(|to| is_class(to) || how == CastKind::Dynamic) else {
            return Ok(None);
        };
        let value = value
            .unreferenced(&self.look)
            .map_err(|e| self.unusable(value, e, at))?;
        let is_pointer = wanted.kind() == TypeKind::Pointer;
        let object = match (is_pointer, value.kind()) {
            (true, TypeKind::Pointer) => {
                let target = value.ty.strip().target();
                let address = value.as_address();
                let address = address.map_err(|e| self.unusable(&value, e, at))?;
                match target.filter(is_class) {
                    Some(class) if address != 0 => {
                        Value::at(class, address, self.look.machine).reached_by(value.certainty)
                    }
                    _ => return Ok(None),
                }
            }
            (false, TypeKind::Struct | TypeKind::Class) => value,
            _ => return Ok(None),
        };
        let found = match how {
            CastKind::Dynamic => self.dynamic(&object, &to, is_pointer, at)?,
            _ => self.related(&object, &to, at)?,
        };
        Ok(match found {
            Some(found) if is_pointer => {
                let address = found.address().unwrap_or(0);
                Some(pointer_value(ty.clone(), address, found.reached))
            }
            found => found,
        })
    }

    /// Returns the member of an object that a pointer to members selects. `of` is the object, or a pointer or reference to one.
    pub(super) fn select(&self, of: &Expr, member: &Expr) -> Answer<Value> {
        let object = self.pointee(&self.value(of)?, of.at)?;
        let pointer = self.settled(&self.value(member)?, member.at)?;
        let ty = pointer.ty.strip();
        let (Some(class), Some(target)) = (ty.member_class(), ty.target()) else {
            let message = format!("{} is not a pointer to members", pointer.ty.name());
            return Err(EvalError::meaningless(member.at, message));
        };
        if target.strip().kind() == TypeKind::Function {
            let error = EvalError::meaningless(member.at, "it leads to a function of the class");
            return Err(error.with_hint("only members with a value are selected"));
        }
        let object = self.part_for(&object, &class, of.at)?;
        let offset = match self.wants.get() {
            Wants::Type => 0,
            _ => self.offset_of(&pointer, member.at)?,
        };
        let found = inside::part(&object, &target, offset, &self.look);
        Ok(found.reached_by(pointer.certainty))
    }

    /// Returns the part of an object that is of class `class`: the object itself, or a base class.
    fn part_for(&self, object: &Value, class: &Type, at: Span) -> Answer<Value> {
        let (from, to) = (class_name(&object.ty), class_name(class));
        let is_part =
            |to: &String| Some(to) == from.as_ref() || base_in(&object.ty, to, MAX_DEPTH).is_some();
        if !to.as_ref().is_some_and(is_part) {
            let message = format!("{} is no {}", object.ty.name(), class.name());
            return Err(EvalError::meaningless(at, message));
        }
        let found = self.related(object, class, at)?;
        Ok(found.unwrap_or_else(|| object.clone()))
    }

    /// Returns the bytes before a member (Itanium C++ ABI, 2.3): -1 is the null pointer.
    fn offset_of(&self, pointer: &Value, at: Span) -> Answer<u64> {
        let bytes = pointer.known_bytes();
        let bytes = bytes.map_err(|why| self.unusable(pointer, why, at))?;
        self.note(pointer.certainty);
        self.compute_with(pointer);
        match <[u8; 8]>::try_from(bytes).map(u64::from_le_bytes) {
            Ok(u64::MAX) => Err(EvalError::new(at, "the pointer to members is null")),
            Ok(offset) => Ok(offset),
            Err(_) => Err(EvalError::new(at, "it does not have the size of an offset")),
        }
    }

    /// Returns the part of class `to` of the object around `object`. `None` if it begins where `object` does.
    fn related(&self, object: &Value, to: &Type, at: Span) -> Answer<Option<Value>> {
        let (Some(from), Some(name)) = (class_name(&object.ty), class_name(to)) else {
            return Ok(None);
        };
        if from == name {
            return Ok(None);
        }
        let is_it = |part: &Value| class_name(&part.ty).as_ref() == Some(&name);
        if let Some(base) = self.parts(object).into_iter().find(is_it) {
            return known(base, at).map(Some);
        }
        let Some(place) = base_in(to, &from, MAX_DEPTH) else {
            return Ok(None);
        };
        if let Some(whole) = self.own_class(object) {
            let around = self.parts(&whole).into_iter().filter(is_it);
            let holds = |part: &Value| {
                let mut inner = self.parts(part).into_iter();
                inner.any(|inner| {
                    inner.address() == object.address()
                        && class_name(&inner.ty).as_ref() == Some(&from)
                })
            };
            if let Some(found) = around.into_iter().find(holds) {
                return Ok(Some(found.reached_by(object.reached)));
            }
        }
        match (place, object.address()) {
            (BaseAt::Offset(offset), Some(address)) => {
                let address = address.wrapping_sub(offset);
                let found = Value::at(to.clone(), address, self.look.machine);
                Ok(Some(found.reached_by(object.reached)))
            }
            (BaseAt::Offset(_), None) => Ok(None),
            (BaseAt::Object, _) => {
                let message = format!(
                    "{from} is a virtual base class of {name}, and nothing shows that this object is a {name}"
                );
                Err(EvalError::new(at, message))
            }
        }
    }

    /// Returns the part of class `to` of the whole object around `object`: null, or an error, if it has none.
    fn dynamic(
        &self,
        object: &Value,
        to: &Type,
        is_pointer: bool,
        at: Span,
    ) -> Answer<Option<Value>> {
        let name = class_name(to);
        let is_it = |part: &Value| class_name(&part.ty) == name;
        let mut own = self.parts(object).into_iter();
        if name.is_some()
            && let Some(base) = own.find(is_it)
        {
            return known(base, at).map(Some);
        }
        let Some(whole) = self.own_class(object) else {
            let message = format!("the class of this {} is not known", object.ty.name());
            return Err(EvalError::new(at, message));
        };
        if to.strip().kind() == TypeKind::Void {
            return Ok(Some(whole.reached_by(object.reached)));
        }
        let mut found: Vec<Value> = self.parts(&whole).into_iter().filter(is_it).collect();
        found.dedup_by_key(|part| part.address());
        match &found[..] {
            [only] => known(only.clone().reached_by(object.reached), at).map(Some),
            _ if is_pointer => Ok(Some(Value::at(to.clone(), 0, self.look.machine))),
            _ => {
                let message = format!("this object is a {}, and no {}", whole.ty.name(), to.name());
                Err(EvalError::new(at, message))
            }
        }
    }

    /// Returns an object and all its base classes.
    fn parts(&self, object: &Value) -> Vec<Value> {
        let mut found = vec![object.clone()];
        let mut at = 0;
        while at < found.len() && found.len() < MAX_PARTS {
            let part = found[at].clone();
            let members = part.ty.strip().members();
            let bases = members.iter().filter(|member| is_base(member.role));
            found.extend(bases.filter_map(|m| inside::member_value(&part, m, &self.look).ok()));
            at += 1;
        }
        found
    }

    /// Returns the whole object to which a part with virtual functions belongs.
    pub(super) fn own_class(&self, value: &Value) -> Option<Value> {
        const NAME_OFFSET: u64 = 8;
        const MAX_NAME: usize = 1024;
        if value.ty.language() != Language::Cpp || !has_virtual_functions(&value.ty, MAX_DEPTH) {
            return None;
        }
        let word = |at: u64| {
            let mut bytes = [0; 8];
            self.look.machine.memory(at, &mut bytes).ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        let table = word(value.address()?)?;
        // The vtable has the offset to the whole object and its type_info before the functions (Itanium C++ ABI,
        // 2.5.2).
        let distance = word(table.checked_sub(16)?)? as i64;
        let type_info = word(table.checked_sub(8)?)?;
        let name = word(type_info.checked_add(NAME_OFFSET)?)?;
        let text = text_at(self.look.machine, name, 1, MAX_NAME).ok()?;
        let mangled = String::from_utf8(text.bytes).ok()?;
        let name = debuginfo::type_name(mangled.trim_start_matches('*'));
        let ty = find_type(self.look.space, None, &name)?;
        let address = value.address()?.wrapping_add_signed(distance);
        Some(Value::at(ty, address, self.look.machine))
    }
}

/// Refuses a part whose place is not known.
fn known(part: Value, at: Span) -> Answer<Value> {
    match (&part.place, part.address()) {
        (_, Some(_)) => Ok(part),
        (debuginfo::location::ValuePlace::Unknown(why), None) => {
            let why = debuginfo::Diagnostic::from(why.clone());
            Err(EvalError::new(
                at,
                why.map(|why| format!("its place is not known: {why}")),
            ))
        }
        _ => Ok(part),
    }
}

fn is_base(role: Role) -> bool {
    matches!(role, Role::Base | Role::VirtualBase)
}

fn is_class(ty: &Type) -> bool {
    matches!(ty.strip().kind(), TypeKind::Struct | TypeKind::Class)
}

fn class_name(ty: &Type) -> Option<String> {
    let ty = ty.strip();
    is_class(&ty).then(|| ty.own_name())?
}

/// Returns where the base class called `name` lies in `class`.
fn base_in(class: &Type, name: &str, depth: usize) -> Option<BaseAt> {
    let depth = depth.checked_sub(1)?;
    let members = class.strip().members();
    let mut bases = members.iter().filter(|member| is_base(member.role));
    bases.find_map(|base| {
        let inner = match class_name(&base.ty).as_deref() == Some(name) {
            true => BaseAt::Offset(0),
            false => base_in(&base.ty, name, depth)?,
        };
        Some(match (&base.offset, inner) {
            (MemberOffset::Bytes(offset), BaseAt::Offset(inner)) => {
                BaseAt::Offset(offset.wrapping_add(inner))
            }
            _ => BaseAt::Object,
        })
    })
}

/// Returns whether `base` is a base class of `class`, at any distance.
pub(super) fn derives(class: &Type, base: &Type) -> bool {
    class_name(base).is_some_and(|name| base_in(class, &name, MAX_DEPTH).is_some())
}

/// Returns whether a conversion between pointers to these types may move the address.
pub(super) fn may_move(from: &Type, to: &Type) -> bool {
    let target = |ty: &Type| {
        let ty = ty.strip();
        matches!(
            ty.kind(),
            TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference
        )
        .then(|| ty.target())?
    };
    let (Some(from), Some(to)) = (target(from), target(to)) else {
        return false;
    };
    derives(&from, &to) || derives(&to, &from)
}

fn has_virtual_functions(ty: &Type, nesting: usize) -> bool {
    let Some(nesting) = nesting.checked_sub(1) else {
        return false;
    };
    let members = ty.strip().members();
    members.iter().any(|member| {
        let is_table = member
            .name
            .as_deref()
            .is_some_and(|name| name.starts_with("_vptr"));
        let is_first = matches!(member.offset, debuginfo::types::MemberOffset::Bytes(0));
        is_table
            || member.role == Role::Base && is_first && has_virtual_functions(&member.ty, nesting)
    })
}

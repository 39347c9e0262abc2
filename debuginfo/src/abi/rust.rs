//! How rustc passes values between functions of its own convention, reconstructed from the layout in the debug
//! information.
//!
//! The convention is not stable. rustc has used the rules below since it began to keep aggregates larger than a word in
//! memory. Scalars and pairs of scalars travel in registers, each on its own. Other values of at most 8 bytes travel as
//! one integer, everything else by address. Callers of this module compare its answers with the function's locations
//! and first instructions.

use super::form::{Encoding, Form, fields, members, offset};
use super::items::POINTER;
use super::{MAX_VISITS, Passing, RegClass, Types};
use crate::types::{Branch, Field, Keyword, Node, Shape, VariantPart};

/// A value that fits a register (or two, for 128-bit integers).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scalar {
    Int(u64),
    Float(u64),
    Pointer,
}

impl Scalar {
    fn bytes(self) -> u64 {
        match self {
            Scalar::Int(bytes) | Scalar::Float(bytes) => bytes,
            Scalar::Pointer => 8,
        }
    }

    fn class(self) -> RegClass {
        match self {
            Scalar::Float(_) => RegClass::Sse,
            Scalar::Int(_) | Scalar::Pointer => RegClass::Int,
        }
    }

    /// Returns the scalar that can hold either one, the way rustc merges the payloads of an enum's variants.
    fn join(self, other: Scalar) -> Option<Scalar> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Scalar::Pointer, Scalar::Int(8)) | (Scalar::Int(8), Scalar::Pointer) => {
                Some(Scalar::Int(8))
            }
            _ => None,
        }
    }
}

/// The representation of a value, in rustc's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repr {
    Zst,
    Scalar(Scalar),
    Pair(Scalar, Scalar),
    Memory,
    Unknown,
}

/// The offset of a pair's second half.
fn second_offset(a: Scalar, b: Scalar) -> u64 {
    a.bytes().next_multiple_of(b.bytes().max(1))
}

fn pair_size(a: Scalar, b: Scalar) -> u64 {
    let align = a.bytes().max(b.bytes()).max(1);
    (second_offset(a, b) + b.bytes()).next_multiple_of(align)
}

impl Types<'_, '_, '_> {
    pub(super) fn rust_passing(&self, form: &Form, size: u64) -> Passing {
        let mut visits = MAX_VISITS;
        match self.repr(form, size, 0, &mut visits) {
            Repr::Zst => Passing::Empty,
            Repr::Scalar(Scalar::Int(16)) => Passing::Regs {
                first: Some(RegClass::Int),
                second: Some(RegClass::Int),
                second_at: 8,
                together: true,
            },
            Repr::Scalar(scalar) => Passing::one(scalar.class()),
            // Pairs with a half wider than a register are too rare to handle.
            Repr::Pair(a, b) if a.bytes() > 8 || b.bytes() > 8 => Passing::Unknown,
            Repr::Pair(a, b) => Passing::Regs {
                first: Some(a.class()),
                second: Some(b.class()),
                second_at: second_offset(a, b) as u8,
                together: false,
            },
            Repr::Memory if size <= 8 => Passing::one(RegClass::Int),
            Repr::Memory => Passing::Reference,
            // No pair of scalars is larger.
            Repr::Unknown if size > 32 => Passing::Reference,
            Repr::Unknown => Passing::Unknown,
        }
    }

    fn repr(&self, form: &Form, size: u64, depth: u32, visits: &mut u32) -> Repr {
        if depth > 32 || *visits == 0 {
            return Repr::Unknown;
        }
        *visits -= 1;
        match form {
            Form::Unknown => Repr::Unknown,
            Form::Void => Repr::Zst,
            _ if size == 0 => Repr::Zst,
            // This limit also keeps the sums below small.
            Form::Base(_) | Form::Enum(_) if size > 16 => Repr::Unknown,
            Form::Base(Encoding::Float | Encoding::Quad | Encoding::X87) => {
                Repr::Scalar(Scalar::Float(size))
            }
            Form::Base(_) | Form::Enum(_) | Form::MemberPointer => Repr::Scalar(Scalar::Int(size)),
            Form::Pointer => Repr::Scalar(Scalar::Pointer),
            Form::MethodPointer | Form::Array { .. } => Repr::Memory,
            Form::Record(record) => match &record.shape {
                Shape::Aggregate {
                    variants: Some(part),
                    ..
                } => self.enum_repr(part, size, depth, visits),
                Shape::Aggregate {
                    keyword: Keyword::Union,
                    ..
                } => self.union_repr(record, size, depth, visits),
                _ => self.struct_repr(record, size, depth, visits),
            },
        }
    }

    /// Returns the members that have bytes: offset, size and representation.
    fn parts(&self, record: &Node, depth: u32, visits: &mut u32) -> Vec<(u64, u64, Repr)> {
        let read = |member: &Field| {
            let of = self.linked(&member.ty);
            let (size, _) = self.layout(&of);
            let repr = self.repr(&self.form(&of), size, depth + 1, visits);
            (offset(member), size, repr)
        };
        let members = members(fields(record)).filter(|member| !self.is_item(record, member));
        let parts = members.map(read);
        parts.filter(|(_, _, repr)| *repr != Repr::Zst).collect()
    }

    /// Returns whether a member is a function item: it is described as a pointer to a function, and there is no room for one.
    fn is_item(&self, record: &Node, member: &Field) -> bool {
        let of = self.linked(&member.ty);
        let Shape::Pointer(target) = &of.shape else {
            return false;
        };
        let at = offset(member);
        let is_inside = |size| at.saturating_add(POINTER) <= size;
        let has_room = at.is_multiple_of(POINTER) && record.size.is_none_or(is_inside);
        !has_room && matches!(self.linked(target).shape, Shape::Function { .. })
    }

    fn struct_repr(&self, record: &Node, size: u64, depth: u32, visits: &mut u32) -> Repr {
        let mut parts = self.parts(record, depth, visits);
        parts.sort_unstable_by_key(|(at, ..)| *at);
        match parts.as_slice() {
            [] => Repr::Memory,
            [(0, bytes, repr)] if *bytes == size => *repr,
            [(_, _, Repr::Unknown)] => Repr::Unknown,
            [(0, _, Repr::Scalar(a)), (at, _, Repr::Scalar(b))]
                if *at == second_offset(*a, *b) && pair_size(*a, *b) == size =>
            {
                Repr::Pair(*a, *b)
            }
            _ => Repr::Memory,
        }
    }

    fn union_repr(&self, record: &Node, size: u64, depth: u32, visits: &mut u32) -> Repr {
        let parts = self.parts(record, depth, visits);
        let Some((_, _, first)) = parts.first() else {
            return Repr::Memory;
        };
        let same = parts
            .iter()
            .all(|(_, bytes, repr)| repr == first && *bytes == size);
        if same { *first } else { Repr::Memory }
    }

    fn enum_repr(&self, part: &VariantPart, size: u64, depth: u32, visits: &mut u32) -> Repr {
        let branches = part.branches.iter();
        let bodies: Vec<(&Branch, &Field)> = branches
            .filter_map(|branch| Some((branch, members(&branch.fields).next()?)))
            .collect();
        let Some(tag) = members(part.discriminant.as_slice()).next() else {
            // An enum with one variant is laid out like a struct.
            return match bodies.as_slice() {
                [(_, body)] => self.body_repr(body, size, depth, visits),
                _ => Repr::Unknown,
            };
        };
        let is_niche = |branch: &Branch| branch.values.is_empty();
        let holder = bodies.iter().position(|(branch, _)| is_niche(branch));
        let bodies: Vec<&Field> = bodies.into_iter().map(|(_, body)| body).collect();
        match holder {
            Some(holder) => self.niche_repr(holder, &bodies, size, depth, visits),
            None => self.tagged_repr(tag, &bodies, size, depth, visits),
        }
    }

    fn body_repr(&self, body: &Field, size: u64, depth: u32, visits: &mut u32) -> Repr {
        let form = self.form(&self.linked(&body.ty));
        self.repr(&form, size, depth + 1, visits)
    }

    /// The tag is encoded in values that a field of variant `holder` never has.
    fn niche_repr(
        &self,
        holder: usize,
        bodies: &[&Field],
        size: u64,
        depth: u32,
        visits: &mut u32,
    ) -> Repr {
        for (index, body) in bodies.iter().enumerate() {
            if index != holder
                && let Form::Record(record) = self.form(&self.linked(&body.ty))
                && !self.parts(&record, depth, visits).is_empty()
            {
                return Repr::Memory;
            }
        }
        match self.body_repr(bodies[holder], size, depth, visits) {
            Repr::Zst => Repr::Memory,
            repr => repr,
        }
    }

    /// A separate tag. It forms a pair with the payload if all variants keep one scalar at the same offset.
    fn tagged_repr(
        &self,
        tag: &Field,
        bodies: &[&Field],
        size: u64,
        depth: u32,
        visits: &mut u32,
    ) -> Repr {
        let tag_size = self.layout(&self.linked(&tag.ty)).0;
        let tag_scalar = Scalar::Int(tag_size);
        let mut common: Option<(u64, Scalar)> = None;
        for body in bodies {
            let Form::Record(record) = self.form(&self.linked(&body.ty)) else {
                return Repr::Unknown;
            };
            let mut parts = self.parts(&record, depth, visits);
            // No variant should list the tag among its fields; drop it in case one does.
            parts.retain(|(at, ..)| *at >= offset(tag).saturating_add(tag_size));
            common = match (parts.as_slice(), common) {
                ([], common) => common,
                ([(at, _, Repr::Scalar(new))], None) => Some((*at, *new)),
                ([(at, _, Repr::Scalar(new))], Some((old_at, old))) if *at == old_at => {
                    match old.join(*new) {
                        Some(joined) => Some((old_at, joined)),
                        None => return Repr::Memory,
                    }
                }
                _ => return Repr::Memory,
            };
        }
        match common {
            None if tag_size == size => Repr::Scalar(tag_scalar),
            Some((at, payload))
                if at == second_offset(tag_scalar, payload)
                    && pair_size(tag_scalar, payload) == size =>
            {
                Repr::Pair(tag_scalar, payload)
            }
            _ => Repr::Memory,
        }
    }
}

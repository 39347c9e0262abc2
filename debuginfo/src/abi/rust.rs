//! How rustc passes values between functions of its own convention, reconstructed from the layout in the debug
//! information.
//!
//! The convention is not stable. rustc has used the rules below since it began to keep aggregates larger than a word in
//! memory. Scalars and pairs of scalars travel in registers, each on its own. Other values of at most 8 bytes travel as
//! one integer, everything else by address. Callers of this module compare its answers with the function's locations
//! and first instructions.

use gimli::constants as dw;

use super::members::{Member, member};
use super::shape::{Encoding, Shape};
use super::{MAX_VISITS, Passing, RegClass, Types};
use crate::dies::Die;

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

impl<'a> Types<'_, '_, 'a> {
    pub(super) fn rust_passing(&self, shape: &Shape<'a>, size: u64) -> Passing {
        let mut visits = MAX_VISITS;
        match self.repr(shape, size, 0, &mut visits) {
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

    fn repr(&self, shape: &Shape<'a>, size: u64, depth: u32, visits: &mut u32) -> Repr {
        if depth > 32 || *visits == 0 {
            return Repr::Unknown;
        }
        *visits -= 1;
        match shape {
            Shape::Unknown => Repr::Unknown,
            Shape::Void => Repr::Zst,
            _ if size == 0 => Repr::Zst,
            // This limit also keeps the sums below small.
            Shape::Base(_) | Shape::Enum(_) if size > 16 => Repr::Unknown,
            Shape::Base(Encoding::Float | Encoding::Quad | Encoding::X87) => {
                Repr::Scalar(Scalar::Float(size))
            }
            Shape::Base(_) | Shape::Enum(_) | Shape::MemberPointer => {
                Repr::Scalar(Scalar::Int(size))
            }
            Shape::Pointer => Repr::Scalar(Scalar::Pointer),
            Shape::MethodPointer | Shape::Array { .. } => Repr::Memory,
            Shape::Record(die) => match self
                .session
                .children(die, &[dw::DW_TAG_variant_part])
                .first()
            {
                Some(part) => self.enum_repr(part, size, depth, visits),
                None if self.session.tag(die) == Some(dw::DW_TAG_union_type) => {
                    self.union_repr(die, size, depth, visits)
                }
                None => self.struct_repr(die, size, depth, visits),
            },
        }
    }

    /// Returns the fields that have bytes, with their representations.
    fn fields(&self, die: &Die<'a>, depth: u32, visits: &mut u32) -> Vec<(u64, u64, Repr)> {
        let read = |m: Member<'a>| {
            let shape = self.shape(&m.of);
            let (size, _) = self.layout(&m.of);
            (m.offset, size, self.repr(&shape, size, depth + 1, visits))
        };
        let fields = self.members(die).into_iter().map(read);
        fields.filter(|(_, _, repr)| *repr != Repr::Zst).collect()
    }

    fn struct_repr(&self, die: &Die<'a>, size: u64, depth: u32, visits: &mut u32) -> Repr {
        let mut fields = self.fields(die, depth, visits);
        fields.sort_unstable_by_key(|(offset, ..)| *offset);
        match fields.as_slice() {
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

    fn union_repr(&self, die: &Die<'a>, size: u64, depth: u32, visits: &mut u32) -> Repr {
        let fields = self.fields(die, depth, visits);
        let Some((_, _, first)) = fields.first() else {
            return Repr::Memory;
        };
        let same = fields
            .iter()
            .all(|(_, bytes, repr)| repr == first && *bytes == size);
        if same { *first } else { Repr::Memory }
    }

    fn enum_repr(&self, part: &Die<'a>, size: u64, depth: u32, visits: &mut u32) -> Repr {
        let variants = self.session.children(part, &[dw::DW_TAG_variant]);
        let bodies: Vec<_> = variants
            .iter()
            .filter_map(|v| Some((v, self.members(v).into_iter().next()?)))
            .collect();
        let tag = self
            .session
            .follow(part, dw::DW_AT_discr)
            .and_then(|die| member(self.session, die));
        let Some(tag) = tag else {
            // An enum with one variant is laid out like a struct.
            return match bodies.as_slice() {
                [(_, body)] => self.body_repr(body, size, depth, visits),
                _ => Repr::Unknown,
            };
        };
        let is_niche = |v: &&Die<'a>| self.session.attr(v, dw::DW_AT_discr_value).is_none();
        let holder = bodies.iter().find(|(v, _)| is_niche(v));
        match holder {
            Some((_, body)) => self.niche_repr(body, &bodies, size, depth, visits),
            None => self.tagged_repr(&tag, &bodies, size, depth, visits),
        }
    }

    fn body_repr(&self, body: &Member<'a>, size: u64, depth: u32, visits: &mut u32) -> Repr {
        let shape = self.shape(&body.of);
        self.repr(&shape, size, depth + 1, visits)
    }

    /// The tag is encoded in values that a field of one variant never has.
    fn niche_repr(
        &self,
        holder: &Member<'a>,
        bodies: &[(&Die<'a>, Member<'a>)],
        size: u64,
        depth: u32,
        visits: &mut u32,
    ) -> Repr {
        for (_, body) in bodies
            .iter()
            .filter(|(_, b)| b.die.key() != holder.die.key())
        {
            if let Shape::Record(die) = self.shape(&body.of)
                && !self.fields(&die, depth, visits).is_empty()
            {
                return Repr::Memory;
            }
        }
        match self.body_repr(holder, size, depth, visits) {
            Repr::Zst => Repr::Memory,
            repr => repr,
        }
    }

    /// A separate tag. It forms a pair with the payload if all variants keep one scalar at the same offset.
    fn tagged_repr(
        &self,
        tag: &Member<'a>,
        bodies: &[(&Die<'a>, Member<'a>)],
        size: u64,
        depth: u32,
        visits: &mut u32,
    ) -> Repr {
        let tag_size = self.layout(&tag.of).0;
        let tag_scalar = Scalar::Int(tag_size);
        let mut common: Option<(u64, Scalar)> = None;
        for (_, body) in bodies {
            let Shape::Record(die) = self.shape(&body.of) else {
                return Repr::Unknown;
            };
            let mut fields = self.fields(&die, depth, visits);
            // No variant should list the tag among its fields; drop it in case one does.
            fields.retain(|(offset, ..)| *offset >= tag.offset.saturating_add(tag_size));
            common = match (fields.as_slice(), common) {
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

//! What a type is without its qualifiers and aliases, and how many bytes it takes.

use gimli::constants as dw;
use gimli::{
    AttributeValue, DW_AT_byte_size, DW_AT_count, DW_AT_encoding, DW_AT_type, DW_AT_upper_bound,
};

use super::{MAX_REMEMBERED, MAX_VISITS, Types};
use crate::dies::Die;
use crate::types::stated_size;

/// How the bits of a base type are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Bool,
    Char,
    Signed,
    Unsigned,
    /// IEEE, in a vector register.
    Float,
    /// x87 extended precision.
    X87,
    /// 16 bytes of floating point in one vector register.
    Quad,
    /// A decimal floating-point number, in a vector register.
    Decimal,
    /// A pair of floats.
    Complex,
    /// A pair of x87 extended precision numbers.
    ComplexX87,
    /// A pair of integers, or anything else that is passed like an integer.
    Other,
}

/// A type without its aliases.
#[derive(Clone)]
pub(super) enum Shape<'a> {
    Void,
    Base(Encoding),
    Pointer,
    /// A pointer to a C++ data member: an offset.
    MemberPointer,
    /// A pointer to a C++ member function: two words.
    MethodPointer,
    Enum(Die<'a>),
    /// A struct, class or union.
    Record(Die<'a>),
    Array {
        element: Die<'a>,
        vector: bool,
    },
    Unknown,
}

impl<'a> Types<'_, '_, 'a> {
    pub(super) fn shape(&self, die: &Die<'a>) -> Shape<'a> {
        let mut die = die.clone();
        for _ in 0..64 {
            let Some(tag) = self.session.tag(&die) else {
                return Shape::Unknown;
            };
            match tag {
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_restrict_type
                | dw::DW_TAG_atomic_type
                | dw::DW_TAG_immutable_type
                | dw::DW_TAG_packed_type
                | dw::DW_TAG_shared_type
                | dw::DW_TAG_template_alias
                | dw::DW_TAG_subrange_type => match self.session.follow(&die, DW_AT_type) {
                    Some(next) => die = next,
                    None if tag == dw::DW_TAG_subrange_type => return Shape::Unknown,
                    None => return Shape::Void,
                },
                _ => {
                    let next = self.session.follow(&die, gimli::DW_AT_signature);
                    match next {
                        Some(next) => die = next,
                        None => return self.shape_of(tag, die),
                    }
                }
            }
        }
        Shape::Unknown
    }

    fn shape_of(&self, tag: gimli::DwTag, die: Die<'a>) -> Shape<'a> {
        match tag {
            dw::DW_TAG_base_type => self.base(&die),
            dw::DW_TAG_pointer_type
            | dw::DW_TAG_reference_type
            | dw::DW_TAG_rvalue_reference_type
            | dw::DW_TAG_subroutine_type => Shape::Pointer,
            dw::DW_TAG_ptr_to_member_type => match self.session.follow(&die, DW_AT_type) {
                Some(to) if self.session.tag(&to) == Some(dw::DW_TAG_subroutine_type) => {
                    Shape::MethodPointer
                }
                _ => Shape::MemberPointer,
            },
            // The only unspecified type that has values: `decltype(nullptr)`.
            dw::DW_TAG_unspecified_type => match self.session.string(&die, gimli::DW_AT_name) {
                Some(name) if name.slice() == b"decltype(nullptr)" => Shape::Pointer,
                _ => Shape::Unknown,
            },
            _ if self.session.flag(&die, gimli::DW_AT_declaration) => Shape::Unknown,
            dw::DW_TAG_enumeration_type => Shape::Enum(die),
            dw::DW_TAG_structure_type
            | dw::DW_TAG_class_type
            | dw::DW_TAG_union_type
            | dw::DW_TAG_interface_type => Shape::Record(die),
            dw::DW_TAG_array_type => match self.session.follow(&die, DW_AT_type) {
                Some(element) => Shape::Array {
                    element,
                    vector: self.session.flag(&die, gimli::DW_AT_GNU_vector),
                },
                None => Shape::Unknown,
            },
            _ => Shape::Unknown,
        }
    }

    fn base(&self, die: &Die<'a>) -> Shape<'a> {
        let Some(AttributeValue::Encoding(encoding)) = self.session.attr(die, DW_AT_encoding)
        else {
            return Shape::Unknown;
        };
        let name = self.session.string(die, gimli::DW_AT_name);
        let name = name.as_ref().map_or(&b""[..], |n| n.slice());
        let size = self.session.unsigned(die, DW_AT_byte_size).unwrap_or(0);
        let quad = name.windows(3).any(|w| w == b"128");
        Shape::Base(match encoding {
            dw::DW_ATE_boolean => Encoding::Bool,
            dw::DW_ATE_UTF => Encoding::Char,
            dw::DW_ATE_signed_char | dw::DW_ATE_unsigned_char if name == b"char" => Encoding::Char,
            dw::DW_ATE_signed | dw::DW_ATE_signed_char | dw::DW_ATE_signed_fixed => {
                Encoding::Signed
            }
            dw::DW_ATE_unsigned | dw::DW_ATE_unsigned_char | dw::DW_ATE_unsigned_fixed => {
                Encoding::Unsigned
            }
            dw::DW_ATE_address => Encoding::Unsigned,
            dw::DW_ATE_float if size == 16 && quad => Encoding::Quad,
            dw::DW_ATE_float if size > 8 => Encoding::X87,
            dw::DW_ATE_float => Encoding::Float,
            // DWARF 2 has no encoding for decimal numbers.
            dw::DW_ATE_decimal_float | dw::DW_ATE_lo_user
                if encoding == dw::DW_ATE_decimal_float || name.starts_with(b"_Decimal") =>
            {
                Encoding::Decimal
            }
            dw::DW_ATE_complex_float if size == 32 && !quad => Encoding::ComplexX87,
            dw::DW_ATE_complex_float => Encoding::Complex,
            _ => Encoding::Other,
        })
    }

    /// Returns size and alignment in bytes; 0 and 1 if unknown.
    pub(super) fn layout(&self, die: &Die<'a>) -> (u64, u64) {
        let mut visits = MAX_VISITS;
        self.layout_within(die, 0, &mut visits)
    }

    fn layout_within(&self, die: &Die<'a>, depth: u32, visits: &mut u32) -> (u64, u64) {
        if let Some(known) = self.layouts.borrow().get(&die.key()) {
            return *known;
        }
        if depth > 32 || *visits == 0 {
            return (0, 1);
        }
        *visits -= 1;
        let layout = self.compute_layout(die, depth, visits);
        let mut layouts = self.layouts.borrow_mut();
        if layouts.len() >= MAX_REMEMBERED {
            layouts.clear();
        }
        layouts.insert(die.key(), layout);
        layout
    }

    fn compute_layout(&self, die: &Die<'a>, depth: u32, visits: &mut u32) -> (u64, u64) {
        let mut stated_align = self.session.unsigned(die, gimli::DW_AT_alignment);
        let shape = self.shape(die);
        let (size, natural) = match &shape {
            Shape::Void | Shape::Unknown => (0, 1),
            Shape::Pointer | Shape::MemberPointer => (8, 8),
            Shape::MethodPointer => (16, 8),
            Shape::Base(encoding) => {
                let size = stated_size(self.session, die).unwrap_or(8);
                let half = matches!(encoding, Encoding::Complex | Encoding::ComplexX87);
                (size, if half { size / 2 } else { size })
            }
            Shape::Enum(at) => {
                let size = stated_size(self.session, at);
                let size = size.or_else(|| {
                    let underlying = self.session.follow(at, DW_AT_type)?;
                    Some(self.layout_within(&underlying, depth + 1, visits).0)
                });
                (size.unwrap_or(4), size.unwrap_or(4))
            }
            Shape::Record(at) => {
                let size = stated_size(self.session, at).unwrap_or(0);
                stated_align =
                    stated_align.or_else(|| self.session.unsigned(at, gimli::DW_AT_alignment));
                (size, self.record_align(at, size, depth, visits))
            }
            Shape::Array { element, vector } => {
                let (each, align) = self.layout_within(element, depth + 1, visits);
                let size = self.array_size(die, each);
                (size, if *vector { size } else { align })
            }
        };
        // No scalar is larger than 16 bytes. Vectors align to their size.
        let natural = match natural.is_power_of_two() {
            true => natural.min(64),
            false => 1,
        };
        let align = stated_align
            .filter(|a| a.is_power_of_two())
            .unwrap_or(natural);
        (size, align.max(1))
    }

    /// Returns the largest alignment of the members, or 1 if a member's offset violates its alignment (a packed
    /// record).
    fn record_align(&self, die: &Die<'a>, size: u64, depth: u32, visits: &mut u32) -> u64 {
        let mut align = 1;
        for member in self.members(die) {
            let (_, wanted) = self.layout_within(&member.of, depth + 1, visits);
            if member.bits.is_none() && member.offset % wanted != 0 {
                return 1;
            }
            align = align.max(wanted);
        }
        if size.is_multiple_of(align) { align } else { 1 }
    }

    /// Returns the size of an array, from its own size or from the product of its dimensions.
    pub(super) fn array_size(&self, die: &Die<'a>, element_size: u64) -> u64 {
        let mut die = die.clone();
        for _ in 0..64 {
            if let Some(size) = self.session.unsigned(&die, DW_AT_byte_size) {
                return size;
            }
            if self.session.tag(&die) == Some(dw::DW_TAG_array_type) {
                break;
            }
            match self.session.follow(&die, DW_AT_type) {
                Some(next) => die = next,
                None => return 0,
            }
        }
        let dimensions = self.session.children(&die, &[dw::DW_TAG_subrange_type]);
        let count = |dimension: &Die<'a>| {
            let upper = || {
                let upper = self.session.unsigned(dimension, DW_AT_upper_bound)?;
                // Older compilers write an empty array with an upper bound of -1.
                Some(upper.wrapping_add(1))
            };
            let count = self.session.unsigned(dimension, DW_AT_count);
            count.or_else(upper).unwrap_or(0)
        };
        let sizes = dimensions.iter().map(count);
        sizes.fold(element_size, u64::saturating_mul)
    }
}

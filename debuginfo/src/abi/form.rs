//! The form of a type, in which a calling convention knows it: without qualifiers and aliases, with its size and
//! alignment.

use std::sync::Arc;

use gimli::constants as dw;

use super::{MAX_VISITS, Types};
use crate::dies::Die;
use crate::types::{
    Count, DieId, Dimension, Field, FloatFormat, Link, Node, Offset, Role, Shape, TypeKind, node_of,
};

/// Aliases followed to a type, at most. More are damage.
const MAX_ALIASES: usize = 64;

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
pub(super) enum Form {
    Void,
    Base(Encoding),
    Pointer,
    /// A pointer to a C++ data member: an offset.
    MemberPointer,
    /// A pointer to a C++ member function: two words.
    MethodPointer,
    Enum(Arc<Node>),
    /// A struct, class or union.
    Record(Arc<Node>),
    Array {
        element: Arc<Node>,
        vector: bool,
    },
    Unknown,
}

impl<'a> Types<'_, '_, 'a> {
    pub(super) fn node(&self, id: DieId) -> Arc<Node> {
        let read = || match self.die(id) {
            Some(die) => Arc::new(node_of(self.session, &die)),
            None => Arc::new(Node::made(Shape::Unspecified, None, None)),
        };
        self.nodes.get(&id, read)
    }

    pub(super) fn die(&self, id: DieId) -> Option<Die<'a>> {
        let unit = self.session.unit(id.home, id.index).ok()?;
        Some(Die {
            home: id.home,
            index: id.index,
            unit,
            offset: gimli::UnitOffset(id.offset),
        })
    }

    pub(super) fn linked(&self, link: &Link) -> Arc<Node> {
        match link {
            Link::Void => Arc::new(Node::made(Shape::Void, None, None)),
            Link::Die(id) => self.node(*id),
            Link::Made(made) => made.node().clone(),
        }
    }

    pub(super) fn form(&self, of: &Arc<Node>) -> Form {
        let mut node = of.clone();
        for _ in 0..MAX_ALIASES {
            match &node.shape {
                Shape::Typedef(to) | Shape::Qualified(_, to) => node = self.linked(to),
                _ => return self.form_of(node),
            }
        }
        Form::Unknown
    }

    fn form_of(&self, node: Arc<Node>) -> Form {
        match &node.shape {
            Shape::Void => Form::Void,
            Shape::Base(TypeKind::Unspecified) if node.encoding.is_none() => Form::Unknown,
            Shape::Base(_) | Shape::Float { .. } | Shape::Fixed { .. } => Form::Base(base(&node)),
            Shape::Pointer(_) | Shape::Reference { .. } | Shape::Function { .. } => Form::Pointer,
            Shape::MemberPointer { target, .. } => match self.linked(target).shape {
                Shape::Function { .. } => Form::MethodPointer,
                _ => Form::MemberPointer,
            },
            // The only unspecified type that has values: `decltype(nullptr)`.
            Shape::Unspecified if node.name.as_deref() == Some("decltype(nullptr)") => {
                Form::Pointer
            }
            _ if node.declaration => Form::Unknown,
            Shape::Enum { .. } => Form::Enum(node),
            Shape::Aggregate { .. } => Form::Record(node),
            Shape::Array { element, form, .. } if !form.is_text && !is_void(element) => {
                Form::Array {
                    element: self.linked(element),
                    vector: form.is_vector,
                }
            }
            _ => Form::Unknown,
        }
    }

    /// Returns size and alignment in bytes; 0 and 1 if unknown.
    pub(super) fn layout(&self, of: &Arc<Node>) -> (u64, u64) {
        let mut visits = MAX_VISITS;
        self.layout_within(of, 0, &mut visits)
    }

    fn layout_within(&self, of: &Arc<Node>, depth: u32, visits: &mut u32) -> (u64, u64) {
        if depth > 32 || *visits == 0 {
            return (0, 1);
        }
        let mut compute = || {
            *visits -= 1;
            self.compute_layout(of, depth, visits)
        };
        match of.id {
            Some(id) => self.layouts.get(&id, compute),
            None => compute(),
        }
    }

    fn compute_layout(&self, of: &Arc<Node>, depth: u32, visits: &mut u32) -> (u64, u64) {
        let mut stated_align = of.alignment;
        let (size, natural) = match &self.form(of) {
            Form::Void | Form::Unknown => (0, 1),
            Form::Pointer | Form::MemberPointer => (8, 8),
            Form::MethodPointer => (16, 8),
            Form::Base(encoding) => {
                let size = self.stated_size(of).unwrap_or(8);
                let half = matches!(encoding, Encoding::Complex | Encoding::ComplexX87);
                (size, if half { size / 2 } else { size })
            }
            Form::Enum(node) => {
                let size = match (node.size, &node.shape) {
                    (Some(size), _) => size,
                    (None, Shape::Enum { target, .. }) if !is_void(target) => {
                        let target = self.linked(target);
                        self.layout_within(&target, depth + 1, visits).0
                    }
                    _ => 4,
                };
                (size, size)
            }
            Form::Record(node) => {
                let size = node.size.unwrap_or(0);
                stated_align = stated_align.or(node.alignment);
                (size, self.record_align(node, size, depth, visits))
            }
            Form::Array { element, vector } => {
                let (each, align) = self.layout_within(element, depth + 1, visits);
                let size = self.array_size(of, each);
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
    fn record_align(&self, record: &Node, size: u64, depth: u32, visits: &mut u32) -> u64 {
        let mut align = 1;
        for member in members(fields(record)) {
            let of = self.linked(&member.ty);
            let (_, wanted) = self.layout_within(&of, depth + 1, visits);
            if member.bits.is_none() && !offset(member).is_multiple_of(wanted) {
                return 1;
            }
            align = align.max(wanted);
        }
        if size.is_multiple_of(align) { align } else { 1 }
    }

    /// Returns the type itself and what it is an alias of, one after the other.
    pub(super) fn aliases(&self, of: &Arc<Node>) -> impl Iterator<Item = Arc<Node>> {
        let next = move |node: &Arc<Node>| match &node.shape {
            Shape::Typedef(to) | Shape::Qualified(_, to) => Some(self.linked(to)),
            _ => None,
        };
        std::iter::successors(Some(of.clone()), next).take(MAX_ALIASES)
    }

    fn stated_size(&self, of: &Arc<Node>) -> Option<u64> {
        self.aliases(of).find_map(|node| node.size)
    }

    /// Returns the size of an array, from its own size or from the product of its dimensions.
    fn array_size(&self, of: &Arc<Node>, element_size: u64) -> u64 {
        let count = |dimension: &Dimension| match dimension.count {
            Count::Known(count) => count,
            Count::Open | Count::Computed(_) => 0,
        };
        let product = |node: Arc<Node>| match &node.shape {
            Shape::Array { dimensions, .. } => {
                let counts = dimensions.iter().map(count);
                Some(counts.fold(element_size, u64::saturating_mul))
            }
            _ => None,
        };
        let stated = self.stated_size(of);
        stated
            .or_else(|| self.aliases(of).find_map(product))
            .unwrap_or(0)
    }
}

fn is_void(link: &Link) -> bool {
    matches!(link, Link::Void)
}

pub(super) fn fields(record: &Node) -> &[Field] {
    match &record.shape {
        Shape::Aggregate { fields, .. } => fields,
        _ => &[],
    }
}

/// Returns the fields that every object contains, base classes included, in declaration order.
pub(super) fn members(fields: &[Field]) -> impl Iterator<Item = &Field> {
    let is_part = |field: &&Field| field.role != Role::Static && !is_void(&field.ty);
    fields.iter().filter(is_part)
}

/// Returns the bytes from the start of the record to the field.
pub(super) fn offset(field: &Field) -> u64 {
    match field.offset {
        Offset::Bytes(bytes) => bytes,
        // A virtual base class, or the part of a record that is never passed in registers.
        Offset::Computed(_) | Offset::Static(_) => 0,
    }
}

fn base(node: &Node) -> Encoding {
    // `signed char` and `unsigned char` are small integers.
    let is_unicode = node.encoding == Some(dw::DW_ATE_UTF);
    let is_character = is_unicode || node.name.as_deref() == Some("char");
    match &node.shape {
        Shape::Float { format, complex } => match (format, complex) {
            (FloatFormat::Extended, false) => Encoding::X87,
            (FloatFormat::Extended, true) => Encoding::ComplexX87,
            (_, true) => Encoding::Complex,
            (FloatFormat::Quad, false) => Encoding::Quad,
            (FloatFormat::Decimal, false) => Encoding::Decimal,
            _ => Encoding::Float,
        },
        Shape::Base(TypeKind::Bool) => Encoding::Bool,
        Shape::Base(TypeKind::Char { .. }) if is_character => Encoding::Char,
        Shape::Base(TypeKind::Integer { signed } | TypeKind::Char { signed })
        | Shape::Fixed { signed, .. } => match signed {
            true => Encoding::Signed,
            false => Encoding::Unsigned,
        },
        _ => Encoding::Other,
    }
}

//! What is inside a type: members, variants, template arguments; and sizes, which follow from it.

use super::node::{Branch, DieId, Field, Offset, Shape, VariantPart};
use super::{Language, Type};

/// Bits inside an object: the position of the lowest from the object's first bit, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BitRange {
    /// Bits before the first one, counted from the lowest bit of the first byte of the structure.
    pub offset: u64,
    /// Number of bits.
    pub size: u64,
}

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// An ordinary one.
    Member,
    /// A base class.
    Base,
    /// A virtual base class.
    VirtualBase,
    /// A static member, which lies outside of the object.
    Static,
}

/// Where a member begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberOffset {
    /// So many bytes behind the object's start.
    Bytes(u64),
    /// It is computed from the object's contents (virtual base classes).
    Computed(ComputedOffset),
    /// Elsewhere: a static member.
    Static(ComputedOffset),
}

/// The description that says how to find a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedOffset(pub(crate) DieId);

/// A member of a structure, class or union.
#[derive(Debug, Clone)]
pub struct Member {
    /// `None` for unnamed structures and unions, whose members count as the outer one's, and for unnamed bit fields.
    pub name: Option<String>,
    /// Its type.
    pub ty: Type,
    /// Where it begins.
    pub offset: MemberOffset,
    /// For a bit field its bits; counted from the start of the outer structure.
    pub bits: Option<BitRange>,
    /// What it is.
    pub role: Role,
    /// The compiler made it, such as the pointer to the virtual functions.
    pub artificial: bool,
}

/// An enumerator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enumerator {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: i128,
}

/// The discriminants of one variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discriminants {
    /// All that no other variant has.
    Others,
    /// From the first to the second of each pair, inclusive, as unsigned numbers of the discriminant's size.
    These(Vec<(u128, u128)>),
}

/// One variant of a Rust enum.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Its name.
    pub name: Option<String>,
    /// When it is the live one.
    pub discriminants: Discriminants,
    /// Its data: one member that lies over the whole enum.
    pub member: Member,
}

/// The variants of a Rust enum.
#[derive(Debug, Clone)]
pub struct Variants {
    /// The member that tells which variant is live; `None` if there is only one.
    pub discriminant: Option<Member>,
    /// All variants that are described.
    pub list: Vec<Variant>,
}

/// An argument of a template or generic type.
#[derive(Debug, Clone)]
pub struct TemplateArgument {
    /// The parameter's name.
    pub name: Option<String>,
    /// The argument, or the type of an argument that is a value.
    pub ty: Type,
    /// The value of an argument that is no type.
    pub value: Option<i128>,
}

pub(super) fn size(ty: &Type, steps: usize) -> Option<u64> {
    let steps = steps.checked_sub(1)?;
    let node = ty.node();
    if let Some(size) = node.size {
        return Some(size);
    }
    match &node.shape {
        Shape::Pointer(_) | Shape::Reference { .. } => Some(8),
        Shape::Typedef(_) | Shape::Qualified(..) | Shape::Enum { .. } => size(&ty.target()?, steps),
        Shape::Array { .. } => Some(ty.bits(steps)?.div_ceil(8)),
        Shape::MemberPointer { .. } => {
            let is_function = matches!(ty.target()?.strip().node().shape, Shape::Function { .. });
            Some(if is_function { 16 } else { 8 })
        }
        Shape::Aggregate { .. } if node.declaration => size(&ty.definition(), steps),
        _ => None,
    }
}

/// The member of `ty` that a field of it is.
pub(crate) fn member_of(ty: &Type, field: &Field) -> Member {
    Member {
        name: field.name.clone(),
        ty: Type::linked(ty.module(), &field.ty),
        offset: match field.offset {
            Offset::Bytes(bytes) => MemberOffset::Bytes(bytes),
            Offset::Computed(id) => MemberOffset::Computed(ComputedOffset(id)),
            Offset::Static(id) => MemberOffset::Static(ComputedOffset(id)),
        },
        bits: field.bits,
        role: field.role,
        artificial: field.artificial,
    }
}

pub(super) fn members(ty: &Type) -> Vec<Member> {
    let ty = ty.strip();
    match &ty.node().shape {
        Shape::Aggregate { fields, .. } => fields.iter().map(|f| member_of(&ty, f)).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn variants(ty: &Type) -> Option<Variants> {
    let ty = ty.strip();
    // Elsewhere a variant is a part of a structure and not all of it.
    if ty.language() != Language::Rust {
        return None;
    }
    let Shape::Aggregate { variants, .. } = &ty.node().shape else {
        return None;
    };
    let VariantPart {
        discriminant,
        branches,
    } = variants.as_ref()?;
    let branch = |branch: &Branch| {
        let member = member_of(&ty, branch.fields.first()?);
        Some(Variant {
            name: member.name.clone(),
            discriminants: match branch.values.is_empty() {
                true => Discriminants::Others,
                false => Discriminants::These(branch.values.clone()),
            },
            member,
        })
    };
    Some(Variants {
        discriminant: discriminant.as_ref().map(|field| member_of(&ty, field)),
        list: branches.iter().filter_map(branch).collect(),
    })
}

pub(super) fn template_arguments(ty: &Type) -> Vec<TemplateArgument> {
    let ty = ty.strip();
    let Shape::Aggregate { arguments, .. } = &ty.node().shape else {
        return Vec::new();
    };
    let argument = |argument: &super::node::Argument| TemplateArgument {
        name: argument.name.clone(),
        ty: Type::linked(ty.module(), &argument.ty),
        value: argument.value,
    };
    arguments.iter().map(argument).collect()
}

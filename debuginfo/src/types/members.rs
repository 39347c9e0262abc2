//! The parts of a type: members, variants and template arguments, and the sizes that follow from them.

use super::node::{Branch, DieId, Field, Offset, Shape, VariantPart};
use super::{Language, Type, TypeKind};

/// Structures inside one another that are searched for a type without values, at most.
const MAX_NESTING: usize = 8;

/// Bits of an object: the position of the lowest one, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BitRange {
    /// Bits before the first one, counted from the lowest bit of the structure's first byte.
    pub offset: u64,
    /// Number of bits.
    pub size: u64,
}

/// The role of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// An ordinary member.
    Member,
    /// A base class.
    Base,
    /// A virtual base class.
    VirtualBase,
    /// A static member, which is outside the object.
    Static,
}

/// Where a member begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberOffset {
    /// This many bytes after the start of the object.
    Bytes(u64),
    /// Computed from the object's contents (virtual base classes).
    Computed(ComputedOffset),
    /// Elsewhere: a static member.
    Static(ComputedOffset),
}

/// The DIE that states how to find a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedOffset(pub(crate) DieId);

/// A member of a structure, class or union.
#[derive(Debug, Clone)]
pub struct Member {
    /// `None` for unnamed structures and unions, whose members belong to the outer one, and for unnamed bit fields.
    pub name: Option<String>,
    /// Its type.
    pub ty: Type,
    /// Where it begins.
    pub offset: MemberOffset,
    /// The bits of a bit field, counted from the start of the outer structure.
    pub bits: Option<BitRange>,
    /// Its role.
    pub role: Role,
    /// The compiler generated it, such as the pointer to the virtual functions.
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
    /// All discriminants that no other variant has.
    Others,
    /// The ranges from the first to the second number of each pair, inclusive. The numbers are unsigned and have the
    /// discriminant's size.
    These(Vec<(u128, u128)>),
}

/// One variant of a Rust enum.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Its name.
    pub name: Option<String>,
    /// The discriminants for which it is the active one.
    pub discriminants: Discriminants,
    /// Its data: one member that covers the whole enum.
    pub member: Member,
}

/// The variants of a Rust enum.
#[derive(Debug, Clone)]
pub struct Variants {
    /// The member that selects the active variant, or `None` if only one can be active.
    pub discriminant: Option<Member>,
    /// All variants in the debug information.
    pub list: Vec<Variant>,
}

impl Variants {
    /// Returns the active variant of an enum without a discriminant: `Err` of a `Result<Infallible, u8>`. `None` if it
    /// is not the only one that can have a value.
    #[must_use]
    pub fn only(&self) -> Option<&Variant> {
        if let [only] = &self.list[..] {
            return Some(only);
        }
        let has_values = |variant: &&Variant| is_possible(&variant.member.ty, MAX_NESTING);
        let mut possible = self.list.iter().filter(has_values);
        match (possible.next(), possible.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }
}

/// Returns whether a type of Rust has values: an enum without variants and `!` have none, and neither have structures
/// around them.
fn is_possible(ty: &Type, nesting: usize) -> bool {
    let ty = ty.strip();
    let Some(nesting) = nesting.checked_sub(1) else {
        return true;
    };
    if ty.kind() != TypeKind::Struct {
        return ty.plain_name() != Some("!");
    }
    if let Some(variants) = ty.variants() {
        let mut members = variants.list.iter().map(|variant| &variant.member);
        return members.any(|member| is_possible(&member.ty, nesting));
    }
    let members = ty.members();
    let mut own = members.iter().filter(|member| member.role == Role::Member);
    own.all(|member| is_possible(&member.ty, nesting))
}

/// An argument of a template or generic type.
#[derive(Debug, Clone)]
pub struct TemplateArgument {
    /// The parameter's name.
    pub name: Option<String>,
    /// The argument or, for a value argument, its type.
    pub ty: Type,
    /// The value of a value argument.
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
    // In other languages, a variant is only a part of a structure.
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

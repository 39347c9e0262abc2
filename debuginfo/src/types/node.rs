//! One node of the type graph, without lifetimes. Links to other nodes are positions of DIEs in the file.

use gimli::DwAte;

use super::arrays::{ArrayForm, Dimension};
use super::numbers::{FloatFormat, Step};
use super::{BitRange, Enumerator, Language, Role, Type, TypeKind};
use crate::dies::Home;

/// The position of a DIE in the debug information of one module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DieId {
    pub home: Home,
    /// The unit's number in its section.
    pub index: usize,
    /// Bytes from the start of the unit.
    pub offset: usize,
}

/// What a node refers to.
#[derive(Debug, Clone)]
pub(crate) enum Link {
    Void,
    Die(DieId),
    Made(Box<Type>),
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// `None` for a type that no DIE describes.
    pub id: Option<DieId>,
    pub language: Language,
    /// The name in the DIE, without its scope.
    pub name: Option<String>,
    pub size: Option<u64>,
    /// The alignment that the source demands.
    pub alignment: Option<u64>,
    /// The encoding of a base type.
    pub encoding: Option<DwAte>,
    pub declaration: bool,
    /// Why the bytes of a value do not tell what it is.
    pub unread: Option<&'static str>,
    pub shape: Shape,
}

#[derive(Debug, Clone)]
pub(crate) enum Count {
    Known(u64),
    /// Not stated: `[]`.
    Open,
    /// Known only at run time, computed from a DIE (a variable, or an expression in it).
    Computed(Computed),
}

/// A computed bound: an attribute of a subrange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computed {
    pub subrange: DieId,
    /// The value is the number of elements, not the last index.
    pub is_count: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Qualifier {
    Const,
    Volatile,
    Restrict,
    Atomic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Struct,
    Class,
    Union,
}

#[derive(Debug, Clone)]
pub(crate) enum Offset {
    Bytes(u64),
    /// Computed from the object's address by the expression in `DW_AT_data_member_location` of the DIE.
    Computed(DieId),
    /// A static member, declared by this DIE.
    Static(DieId),
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub name: Option<String>,
    pub ty: Link,
    pub offset: Offset,
    pub bits: Option<BitRange>,
    pub role: Role,
    pub artificial: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Branch {
    /// Empty for the variant with all other discriminants.
    pub values: Vec<(u128, u128)>,
    pub fields: Vec<Field>,
    /// A nested variant part, selected by a discriminant among the branch's own fields.
    pub inner: Option<Box<VariantPart>>,
}

#[derive(Debug, Clone)]
pub(crate) struct VariantPart {
    pub discriminant: Option<Field>,
    pub branches: Vec<Branch>,
}

#[derive(Debug, Clone)]
pub(crate) struct Argument {
    pub name: Option<String>,
    pub ty: Link,
    /// The value of a value argument.
    pub value: Option<i128>,
}

#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Void,
    Unspecified,
    Base(TypeKind),
    Pointer(Link),
    Reference {
        target: Link,
        rvalue: bool,
    },
    MemberPointer {
        target: Link,
        class: Link,
    },
    Typedef(Link),
    Qualified(Qualifier, Link),
    Aggregate {
        keyword: Keyword,
        fields: Vec<Field>,
        variants: Option<VariantPart>,
        arguments: Vec<Argument>,
    },
    Array {
        element: Link,
        /// At least one, in index order.
        dimensions: Vec<Dimension>,
        form: ArrayForm,
    },
    /// A floating-point number, or a pair of them.
    Float {
        format: FloatFormat,
        complex: bool,
    },
    /// A multiple of a step.
    Fixed {
        signed: bool,
        step: Step,
    },
    Enum {
        target: Link,
        enumerators: Vec<Enumerator>,
        scoped: bool,
    },
    Function {
        result: Link,
        parameters: Vec<Link>,
        variadic: bool,
    },
}

impl Node {
    pub(crate) fn made(shape: Shape, name: Option<String>, size: Option<u64>) -> Node {
        Node {
            id: None,
            language: Language::C,
            name,
            size,
            alignment: None,
            encoding: None,
            declaration: false,
            unread: None,
            shape,
        }
    }
}

impl Shape {
    pub(crate) fn kind(&self) -> TypeKind {
        match self {
            Shape::Void => TypeKind::Void,
            Shape::Unspecified => TypeKind::Unspecified,
            Shape::Base(kind) => *kind,
            Shape::Float { complex: false, .. } => TypeKind::Float,
            Shape::Float { complex: true, .. } => TypeKind::Complex,
            Shape::Fixed { signed, .. } => TypeKind::Fixed { signed: *signed },
            Shape::Pointer(_) => TypeKind::Pointer,
            Shape::Reference { rvalue: false, .. } => TypeKind::Reference,
            Shape::Reference { rvalue: true, .. } => TypeKind::RvalueReference,
            Shape::MemberPointer { .. } => TypeKind::MemberPointer,
            Shape::Typedef(_) => TypeKind::Typedef,
            Shape::Qualified(..) => TypeKind::Qualified,
            Shape::Aggregate { keyword, .. } => match keyword {
                Keyword::Struct => TypeKind::Struct,
                Keyword::Class => TypeKind::Class,
                Keyword::Union => TypeKind::Union,
            },
            Shape::Array { .. } => TypeKind::Array,
            Shape::Enum { .. } => TypeKind::Enum,
            Shape::Function { .. } => TypeKind::Function,
        }
    }

    pub(crate) fn target(&self) -> Option<&Link> {
        match self {
            Shape::Pointer(target)
            | Shape::Typedef(target)
            | Shape::Qualified(_, target)
            | Shape::Reference { target, .. }
            | Shape::MemberPointer { target, .. }
            | Shape::Enum { target, .. }
            | Shape::Function { result: target, .. } => Some(target),
            _ => None,
        }
    }
}

//! Types as the debug information describes them: their names, sizes and parts.
//!
//! A [`Type`] is a cheap handle to a module and one node. The node is read on first use and cached by the module. Nodes
//! that it refers to are read on their own first use. Types that contain themselves, even damaged ones that do so by
//! value, therefore never cause an endless walk.

mod aliases;
mod alignment;
mod arrays;
mod builtin;
mod class_members;
mod find;
mod index;
mod inherited;
mod known;
mod members;
mod names;
mod node;
mod numbers;
mod parts;
mod read;
mod read_arrays;
mod spelling;
mod tail;
mod text;

use std::fmt;
use std::sync::Arc;

pub(crate) use arrays::{Bound, Dimension, Stride, elements};
pub use builtin::builtin;
pub use class_members::{member_at, virtual_function};
pub use find::{Near, find_type};
pub(crate) use index::{EntryKind, hash};
pub use inherited::{AmbiguousMember, FoundMember, find_member, find_qualifier};
pub(crate) use known::KnownTypes;
pub(crate) use members::member_of;
pub use members::{
    BitRange, ComputedOffset, Discriminants, Enumerator, Member, MemberOffset, Role, Variant,
};
pub use members::{TemplateArgument, Variants};
pub(crate) use names::qualified;
use node::Qualifier;
pub(crate) use node::{
    Branch, Count, DieId, Field, Keyword, Link, Node, Offset, Shape, VariantPart,
};
pub use numbers::{FloatFormat, Step};
pub(crate) use read::{constant, language_of, node_of, with_session};
pub(crate) use spelling::{INLINE_NAMESPACES, canonical};
pub(crate) use text::name_fit;
pub(crate) use text::{ANONYMOUS, components, same_text, split_scope, without_arguments};

use crate::module::Module;

/// References followed to resolve a type, at most. More are damage.
const MAX_STEPS: usize = 32;

/// The source language of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// C of any standard.
    C,
    /// C++ of any standard.
    Cpp,
    /// Rust.
    Rust,
    /// Fortran of any standard.
    Fortran,
    /// Ada of any standard.
    Ada,
    /// Any other.
    Other,
}

/// The kind of a [`Type`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// No value at all, or one of a type that nothing describes.
    Void,
    /// A type with a name but without a description, such as that of `nullptr`.
    Unspecified,
    /// An integer.
    Integer {
        /// Negative values are possible.
        signed: bool,
    },
    /// A boolean.
    Bool,
    /// A character. Its size determines the encoding.
    Char {
        /// Negative values are possible (C's `char`).
        signed: bool,
    },
    /// A floating-point number, binary or decimal, of 2 to 16 bytes.
    Float,
    /// A fixed-point number: a multiple of a step.
    Fixed {
        /// Negative values are possible.
        signed: bool,
    },
    /// A complex number: two floating-point numbers, each half as large.
    Complex,
    /// A pointer to [`Type::target`].
    Pointer,
    /// An lvalue reference.
    Reference,
    /// An rvalue reference.
    RvalueReference,
    /// A pointer to a member of a class: an offset, or two words for member functions.
    MemberPointer,
    /// Another name for [`Type::target`].
    Typedef,
    /// [`Type::target`] with `const`, `volatile`, `restrict` or `_Atomic`.
    Qualified,
    /// A structure, including Rust tuples and Rust enums with data (see [`Type::variants`]).
    Struct,
    /// A C++ class, like a structure.
    Class,
    /// A union.
    Union,
    /// An enumeration of named integers.
    Enum,
    /// An array of [`Type::element`].
    Array,
    /// A function.
    Function,
}

/// A type. Two handles are equal if they refer to the same description.
#[derive(Clone)]
pub struct Type {
    module: Option<Arc<Module>>,
    node: Arc<Node>,
}

impl Type {
    pub(crate) fn new(module: Option<Arc<Module>>, node: Arc<Node>) -> Type {
        Type { module, node }
    }

    /// Returns the type that the DIE `id` of `module` describes.
    pub(crate) fn at(module: &Arc<Module>, id: DieId) -> Type {
        let node = module.types().node(id);
        Type::new(Some(module.clone()), node)
    }

    /// Returns the type of the function that the DIE `id` of `module` describes. The type has no name of its own.
    pub(crate) fn of_function(module: &Arc<Module>, id: DieId) -> Type {
        let function = Type::at(module, id);
        function.made(function.node.shape.clone(), None)
    }

    pub(crate) fn linked(module: Option<&Arc<Module>>, link: &Link) -> Type {
        match (link, module) {
            (Link::Die(id), Some(module)) => Type::at(module, *id),
            (Link::Made(made), _) => (**made).clone(),
            (Link::Void | Link::Die(_), _) => Type::new(
                module.cloned(),
                Arc::new(Node::made(Shape::Void, None, None)),
            ),
        }
    }

    fn made(&self, shape: Shape, size: Option<u64>) -> Type {
        let mut node = Node::made(shape, None, size);
        node.language = self.node.language;
        Type::new(self.module.clone(), Arc::new(node))
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Returns the module that describes the type, or `None` for a type that no module describes.
    #[must_use]
    pub fn module(&self) -> Option<&Arc<Module>> {
        self.module.as_ref()
    }

    /// Returns the source language.
    #[must_use]
    pub fn language(&self) -> Language {
        self.node.language
    }

    /// Returns the kind of this type. Typedefs and qualifiers are kinds of their own; see [`Type::strip`].
    #[must_use]
    pub fn kind(&self) -> TypeKind {
        self.node.shape.kind()
    }

    /// Returns the name in source notation, such as `struct foo *`, `char [16]` or `std::vector<int>`.
    #[must_use]
    pub fn name(&self) -> String {
        names::name(self)
    }

    /// Returns the declaration of a variable of this type in C's notation: `char name[16]`, `int (*call)(int)`.
    #[must_use]
    pub fn declared(&self, variable: &str) -> String {
        names::declared(self, variable)
    }

    /// Returns the type's own qualified name. Pointers, arrays and unnamed structures have none.
    #[must_use]
    pub fn own_name(&self) -> Option<String> {
        names::own_name(self)
    }

    /// Returns the last component of the type's own name, as in the debug information.
    #[must_use]
    pub fn plain_name(&self) -> Option<&str> {
        self.node.name.as_deref()
    }

    /// Returns the size in bytes, or `None` if it is not stated or known only at run time.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        members::size(self, MAX_STEPS)
    }

    /// Returns the alignment in bytes, or `None` for a type without one, such as a function or a declared class.
    #[must_use]
    pub fn alignment(&self) -> Option<u64> {
        alignment::of(self)
    }

    /// Removes typedefs and qualifiers, and replaces a declaration by its definition.
    #[must_use]
    pub fn strip(&self) -> Type {
        let mut ty = self.clone();
        for _ in 0..MAX_STEPS {
            ty = match &ty.node.shape {
                Shape::Typedef(link) | Shape::Qualified(_, link) => {
                    Type::linked(ty.module.as_ref(), link)
                }
                _ => return ty.definition(),
            };
        }
        ty
    }

    /// Returns whether the type is `const`, also through typedefs.
    #[must_use]
    pub fn is_const(&self) -> bool {
        let mut ty = self.clone();
        for _ in 0..MAX_STEPS {
            ty = match &ty.node.shape {
                Shape::Qualified(Qualifier::Const, _) => return true,
                Shape::Typedef(link) | Shape::Qualified(_, link) => {
                    Type::linked(ty.module.as_ref(), link)
                }
                _ => return false,
            };
        }
        false
    }

    /// Removes the outer qualifiers.
    #[must_use]
    pub fn unqualified(&self) -> Type {
        let mut ty = self.clone();
        for _ in 0..MAX_STEPS {
            ty = match &ty.node.shape {
                Shape::Qualified(_, link) => Type::linked(ty.module.as_ref(), link),
                _ => return ty,
            };
        }
        ty
    }

    /// Returns the definition of a type that is only declared here, or the type itself.
    #[must_use]
    pub fn definition(&self) -> Type {
        if !self.node.declaration {
            return self.clone();
        }
        find::definition(self).unwrap_or_else(|| self.clone())
    }

    /// Returns whether only the type's name is known.
    #[must_use]
    pub fn is_declaration(&self) -> bool {
        self.node.declaration
    }

    /// Returns the target of a pointer, reference, typedef or qualified type, the underlying type of an enumeration, or
    /// the return type of a function.
    #[must_use]
    pub fn target(&self) -> Option<Type> {
        let link = self.node.shape.target()?;
        Some(Type::linked(self.module.as_ref(), link))
    }

    /// Returns the class whose members a pointer to members leads to.
    #[must_use]
    pub fn member_class(&self) -> Option<Type> {
        match &self.node.shape {
            Shape::MemberPointer { class, .. } => Some(Type::linked(self.module.as_ref(), class)),
            _ => None,
        }
    }

    /// Returns members, base classes and static members of a structure, class or union in source order. For a Rust
    /// enum, returns the members that all variants share.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        members::members(self)
    }

    /// Returns the enumerators of an enumeration.
    #[must_use]
    pub fn enumerators(&self) -> &[Enumerator] {
        match &self.node.shape {
            Shape::Enum { enumerators, .. } => enumerators,
            _ => &[],
        }
    }

    /// Returns whether an enumeration's enumerators are qualified with its name (`enum class`, Rust).
    #[must_use]
    pub fn is_scoped_enum(&self) -> bool {
        matches!(self.node.shape, Shape::Enum { scoped: true, .. })
    }

    /// Returns the variants of a Rust enum with data.
    #[must_use]
    pub fn variants(&self) -> Option<Variants> {
        members::variants(self)
    }

    /// Returns the arguments of a template or generic type, in order.
    #[must_use]
    pub fn template_arguments(&self) -> Vec<TemplateArgument> {
        members::template_arguments(self)
    }

    /// Returns the types of a function's parameters.
    #[must_use]
    pub fn parameters(&self) -> Vec<Type> {
        match &self.node.shape {
            Shape::Function { parameters, .. } => {
                let parameters = parameters.iter();
                let linked = parameters.map(|link| Type::linked(self.module.as_ref(), link));
                linked.collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the type of a pointer to this type.
    #[must_use]
    pub fn pointer(&self) -> Type {
        self.made(Shape::Pointer(Link::Made(Box::new(self.clone()))), Some(8))
    }

    /// Returns the type of a function that returns this type.
    #[must_use]
    pub fn returned_by_function_of(&self, parameters: &[Type], variadic: bool) -> Type {
        let made = |ty: &Type| Link::Made(Box::new(ty.clone()));
        let shape = Shape::Function {
            result: made(self),
            parameters: parameters.iter().map(made).collect(),
            variadic,
        };
        self.made(shape, None)
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        if Arc::ptr_eq(&self.node, &other.node) {
            return true;
        }
        let same_module = match (&self.module, &other.module) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        match (self.node.id, other.node.id) {
            // One description may have got different last members: see `tail`.
            (Some(a), Some(b)) => same_module && a == b && self.node.size == other.node.size,
            (None, None) => self.kind() == other.kind() && self.name() == other.name(),
            _ => false,
        }
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Type").field(&self.name()).finish()
    }
}

//! Types as the debug information describes them: what they are called, how large they are, what is in them.
//!
//! A [`Type`] is a cheap handle: the module and one node, read when it is first asked for and kept by the module. What a
//! node refers to is read when it is asked for in turn, so that types which contain themselves, and damaged ones which
//! contain themselves by value, end nowhere in an endless walk.

mod arrays;
mod builtin;
mod find;
mod index;
mod known;
mod members;
mod names;
mod node;
mod numbers;
mod parts;
mod read;
mod read_arrays;
mod text;

use std::fmt;
use std::sync::Arc;

pub(crate) use arrays::{Bound, Dimension, Stride, elements};
pub use builtin::builtin;
pub use find::{Near, find_type};
pub(crate) use index::{EntryKind, hash};
pub(crate) use known::KnownTypes;
pub(crate) use members::member_of;
pub use members::{
    BitRange, ComputedOffset, Discriminants, Enumerator, Member, MemberOffset, Role, Variant,
};
pub use members::{TemplateArgument, Variants};
pub(crate) use names::qualified;
use node::Qualifier;
pub(crate) use node::{Branch, Count, DieId, Link, Node, Shape, VariantPart};
pub use numbers::{FloatFormat, Step};
pub(crate) use parts::{bit_range, constant_offset, enumerators, stated_size};
pub(crate) use read::{constant, language_of, with_session};
pub use text::name_fit;
pub(crate) use text::{same_text, without_arguments};

use crate::module::Module;

/// References that are followed at most to find what a type really is; more is damage.
const MAX_STEPS: usize = 32;

/// The source language of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// C of any year.
    C,
    /// C++ of any year.
    Cpp,
    /// Rust.
    Rust,
    /// Fortran of any year.
    Fortran,
    /// Ada of any year.
    Ada,
    /// Any other.
    Other,
}

/// What kind of type a [`Type`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// No value at all, or one of a type that nothing describes.
    Void,
    /// A type that is named and not described, such as that of `nullptr`.
    Unspecified,
    /// An integer.
    Integer {
        /// Negative values are possible.
        signed: bool,
    },
    /// A boolean.
    Bool,
    /// A character; its size says which encoding it has.
    Char {
        /// Negative values are possible (`char` of C).
        signed: bool,
    },
    /// A floating-point number, binary or decimal, of 2 to 16 bytes.
    Float,
    /// A fixed-point number: a whole number of steps.
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
    /// A pointer to a member of a class: an offset, or for member functions two words.
    MemberPointer,
    /// Another name for [`Type::target`].
    Typedef,
    /// [`Type::target`] with `const`, `volatile`, `restrict` or `_Atomic`.
    Qualified,
    /// A structure, also a Rust tuple and a Rust enum with data (see [`Type::variants`]).
    Struct,
    /// A class of C++: as a structure.
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

/// A type. Two handles are equal if they stand for the same description.
#[derive(Clone)]
pub struct Type {
    module: Option<Arc<Module>>,
    node: Arc<Node>,
}

impl Type {
    pub(crate) fn new(module: Option<Arc<Module>>, node: Arc<Node>) -> Type {
        Type { module, node }
    }

    /// The type that the entry `id` of `module` describes.
    pub(crate) fn at(module: &Arc<Module>, id: DieId) -> Type {
        let node = module.types().node(id);
        Type::new(Some(module.clone()), node)
    }

    /// The type of the function that the entry `id` of `module` describes: as a type it has no name of its own.
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

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the module that describes the type; `None` for a type made up without one.
    #[must_use]
    pub fn module(&self) -> Option<&Arc<Module>> {
        self.module.as_ref()
    }

    /// Returns the source language.
    #[must_use]
    pub fn language(&self) -> Language {
        self.node.language
    }

    /// Returns what kind of type this is; typedefs and qualifiers are kinds of their own, see [`Type::strip`].
    #[must_use]
    pub fn kind(&self) -> TypeKind {
        self.node.shape.kind()
    }

    /// Returns the name as people write it, such as `struct foo *`, `char [16]` or `std::vector<int>`.
    #[must_use]
    pub fn name(&self) -> String {
        names::name(self)
    }

    /// Returns the name that the type itself carries, with its namespaces: none for pointers, arrays, unnamed
    /// structures.
    #[must_use]
    pub fn own_name(&self) -> Option<String> {
        names::own_name(self)
    }

    /// Returns the last part of the name the type itself carries, as the debug information has it.
    #[must_use]
    pub fn plain_name(&self) -> Option<&str> {
        self.node.name.as_deref()
    }

    /// Returns the size in bytes; `None` if it is not stated or depends on the running program.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        members::size(self, MAX_STEPS)
    }

    /// Returns the type without typedefs and qualifiers around it, and the definition of one that is only declared.
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

    /// Tells whether it is `const`, whichever names it has.
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

    /// Returns the type without qualifiers around it.
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

    /// Returns the full description of a type that is only declared here, or the type itself.
    #[must_use]
    pub fn definition(&self) -> Type {
        if !self.node.declaration {
            return self.clone();
        }
        find::definition(self).unwrap_or_else(|| self.clone())
    }

    /// Tells whether only the type's name is known.
    #[must_use]
    pub fn is_declaration(&self) -> bool {
        self.node.declaration
    }

    /// Returns what a pointer, reference, typedef or qualified type refers to, the integer behind an enumeration, or
    /// what a function returns.
    #[must_use]
    pub fn target(&self) -> Option<Type> {
        let link = self.node.shape.target()?;
        Some(Type::linked(self.module.as_ref(), link))
    }

    /// Returns members, base classes and static members of a structure, class or union in the order of the source;
    /// of a Rust enum those that all variants share.
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

    /// Tells whether an enumeration's enumerators are written with its name in front (`enum class`, Rust).
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
            (Some(a), Some(b)) => same_module && a == b,
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

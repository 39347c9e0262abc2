//! What passing and showing a value requires of its type: kind, size, and how each calling convention passes it.

pub(crate) mod args;
mod cxx;
mod form;
pub(crate) mod items;
mod rust;
mod sysv;

use std::rc::Rc;
use std::sync::Arc;

use crate::cache::Cache;
use crate::dies::{Die, DieReader, Home};
use crate::model::ValueKind;
use crate::types::{DieId, Enumerator, Node, Shape};
use form::{Encoding, Form};

/// DIEs visited to classify one type, at most. No type of 16 bytes has as many.
const MAX_VISITS: u32 = 4096;
/// Types kept before the cache is cleared.
const MAX_REMEMBERED: usize = 1 << 14;
/// Names kept of one enumeration.
const MAX_ENUM_NAMES: usize = 1 << 14;

/// The calling convention by which a function receives its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Abi {
    /// The System V convention of C and C++.
    SysV {
        /// Classes may have to be passed by reference.
        cxx: bool,
    },
    /// What rustc does for functions of its own convention.
    Rust,
    /// A convention that is not implemented here (Go, D, Ada, ...).
    Other,
}

/// The register file that holds an eightbyte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegClass {
    Int,
    Sse,
}

/// How a value is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    /// The value has no bytes.
    Empty,
    /// In registers, one for each eightbyte that is not all padding. With `together`, the whole value goes to the stack
    /// if not all of it fits.
    Regs {
        first: Option<RegClass>,
        second: Option<RegClass>,
        /// Offset in the value, in bytes, of the second part.
        second_at: u8,
        together: bool,
    },
    /// On the stack as an argument, in the caller's memory as a result.
    Stack,
    /// By the address of a copy, also as a result.
    Reference,
    /// On the stack as an argument, on the x87 stack as a result.
    X87,
    Unknown,
}

impl Passing {
    pub(crate) fn one(first: RegClass) -> Passing {
        Passing::Regs {
            first: Some(first),
            second: None,
            second_at: 8,
            together: true,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct TypeInfo {
    pub kind: ValueKind,
    pub size: u64,
    pub align: u64,
    pub passing: Passing,
}

impl TypeInfo {
    pub(crate) fn void() -> TypeInfo {
        TypeInfo {
            kind: ValueKind::Void,
            size: 0,
            align: 1,
            passing: Passing::Empty,
        }
    }

    pub(crate) fn unknown() -> TypeInfo {
        TypeInfo {
            kind: ValueKind::Unknown,
            size: 0,
            align: 8,
            passing: Passing::Unknown,
        }
    }
}

/// Classifies types and caches the answers.
pub(crate) struct Types<'s, 't, 'a> {
    session: &'s DieReader<'t, 'a>,
    /// The unit whose functions are examined.
    unit: (Home, usize),
    known: Cache<(DieId, Abi), Rc<TypeInfo>, MAX_REMEMBERED>,
    nodes: Cache<DieId, Arc<Node>, MAX_REMEMBERED>,
    layouts: Cache<DieId, (u64, u64), MAX_REMEMBERED>,
}

impl<'s, 't, 'a> Types<'s, 't, 'a> {
    /// Makes a cache for functions of `unit`.
    pub(crate) fn new(session: &'s DieReader<'t, 'a>, unit: (Home, usize)) -> Types<'s, 't, 'a> {
        Types {
            session,
            unit,
            known: Cache::default(),
            nodes: Cache::default(),
            layouts: Cache::default(),
        }
    }

    /// Returns the type that `die` describes, as `abi` passes it.
    pub(crate) fn info(&self, die: &Die<'a>, abi: Abi) -> Rc<TypeInfo> {
        let id = DieId::of(die);
        let compute = || Rc::new(self.compute(&self.node(id), abi));
        self.known.get(&(id, abi), compute)
    }

    fn compute(&self, of: &Arc<Node>, abi: Abi) -> TypeInfo {
        let form = self.form(of);
        if matches!(form, Form::Unknown) {
            return TypeInfo::unknown();
        }
        let (size, align) = self.layout(of);
        TypeInfo {
            kind: match self.is_read(of) {
                true => self.kind(&form, size),
                false => ValueKind::Struct { bytes: size },
            },
            size,
            align,
            passing: match abi {
                Abi::SysV { cxx } => self.sysv_passing(&form, size, cxx),
                Abi::Rust => self.rust_passing(&form, size),
                Abi::Other => Passing::Unknown,
            },
        }
    }

    /// Returns whether the bytes of a type's values tell what they are.
    fn is_read(&self, of: &Arc<Node>) -> bool {
        let last = self.aliases(of).last();
        last.is_none_or(|node| node.unread.is_none())
    }

    fn kind(&self, form: &Form, size: u64) -> ValueKind {
        let bytes = u8::try_from(size).unwrap_or(u8::MAX);
        match form {
            _ if size == 0 && matches!(form, Form::Base(_) | Form::Void) => ValueKind::Void,
            Form::Void => ValueKind::Void,
            Form::Base(encoding) => match encoding {
                Encoding::Bool => ValueKind::Bool,
                Encoding::Char if bytes <= 4 => ValueKind::Char { bytes },
                Encoding::Signed if size <= 16 => ValueKind::Int {
                    bytes,
                    signed: true,
                },
                Encoding::Unsigned | Encoding::Char if size <= 16 => ValueKind::Int {
                    bytes,
                    signed: false,
                },
                Encoding::Float | Encoding::X87 | Encoding::Quad => ValueKind::Float { bytes },
                _ => ValueKind::Struct { bytes: size },
            },
            Form::Pointer => ValueKind::Pointer,
            Form::MemberPointer => ValueKind::Int {
                bytes,
                signed: true,
            },
            Form::Enum(node) => self.enum_kind(node, bytes),
            Form::Record(_) | Form::Array { .. } | Form::MethodPointer => {
                ValueKind::Struct { bytes: size }
            }
            Form::Unknown => ValueKind::Unknown,
        }
    }

    fn enum_kind(&self, node: &Node, bytes: u8) -> ValueKind {
        let Shape::Enum {
            target,
            enumerators,
            ..
        } = &node.shape
        else {
            return ValueKind::Unknown;
        };
        // For unsigned enumerations, the `i64` holds the bits of the value.
        let named = |one: &Enumerator| (one.value as i64, one.name.clone());
        let names: Vec<(i64, String)> =
            enumerators.iter().take(MAX_ENUM_NAMES).map(named).collect();
        let signed = match self.form(&self.linked(target)) {
            Form::Base(encoding) => encoding == Encoding::Signed,
            _ => names.iter().any(|(value, _)| *value < 0),
        };
        ValueKind::Enum {
            bytes,
            signed,
            names: Arc::from(names),
        }
    }
}

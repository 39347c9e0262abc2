//! What passing and showing a value requires of its type: kind, size, and how each calling convention passes it.

pub(crate) mod args;
mod cxx;
mod members;
mod rust;
mod shape;
mod sysv;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::dies::{Die, DieReader, Home};
use crate::model::ValueKind;
use crate::types::enumerators;
use shape::{Encoding, Shape};

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

type Key = (Home, usize, usize);

/// Classifies types and caches the answers.
pub(crate) struct Types<'s, 't, 'a> {
    session: &'s DieReader<'t, 'a>,
    /// The unit whose functions are examined.
    unit: (Home, usize),
    known: RefCell<HashMap<(Key, Abi), Rc<TypeInfo>>>,
    layouts: RefCell<HashMap<Key, (u64, u64)>>,
}

impl<'s, 't, 'a> Types<'s, 't, 'a> {
    /// Makes a cache for functions of `unit`.
    pub(crate) fn new(session: &'s DieReader<'t, 'a>, unit: (Home, usize)) -> Types<'s, 't, 'a> {
        Types {
            session,
            unit,
            known: RefCell::default(),
            layouts: RefCell::default(),
        }
    }

    /// Returns the type that `die` describes, as `abi` passes it.
    pub(crate) fn info(&self, die: &Die<'a>, abi: Abi) -> Rc<TypeInfo> {
        let key = (die.key(), abi);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let info = Rc::new(self.compute(die, abi));
        let mut known = self.known.borrow_mut();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(key, info.clone());
        info
    }

    fn compute(&self, die: &Die<'a>, abi: Abi) -> TypeInfo {
        let shape = self.shape(die);
        if matches!(shape, Shape::Unknown) {
            return TypeInfo::unknown();
        }
        let (size, align) = self.layout(die);
        TypeInfo {
            kind: self.kind(&shape, size),
            size,
            align,
            passing: match abi {
                Abi::SysV { cxx } => self.sysv_passing(&shape, size, cxx),
                Abi::Rust => self.rust_passing(&shape, size),
                Abi::Other => Passing::Unknown,
            },
        }
    }

    fn kind(&self, shape: &Shape<'a>, size: u64) -> ValueKind {
        let bytes = u8::try_from(size).unwrap_or(u8::MAX);
        match shape {
            _ if size == 0 && matches!(shape, Shape::Base(_) | Shape::Void) => ValueKind::Void,
            Shape::Void => ValueKind::Void,
            Shape::Base(encoding) => match encoding {
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
            Shape::Pointer => ValueKind::Pointer,
            Shape::MemberPointer => ValueKind::Int {
                bytes,
                signed: true,
            },
            Shape::Enum(die) => self.enum_kind(die, bytes),
            Shape::Record(_) | Shape::Array { .. } | Shape::MethodPointer => {
                ValueKind::Struct { bytes: size }
            }
            Shape::Unknown => ValueKind::Unknown,
        }
    }

    fn enum_kind(&self, die: &Die<'a>, bytes: u8) -> ValueKind {
        // For unsigned enumerations, the `i64` holds the bits of the value.
        let all = enumerators(self.session, die, true).into_iter();
        let all = all.map(|one| (one.value as i64, one.name));
        let names: Vec<(i64, String)> = all.take(MAX_ENUM_NAMES).collect();
        let underlying = self.session.follow(die, gimli::DW_AT_type);
        let signed = match underlying.map(|t| self.shape(&t)) {
            Some(Shape::Base(encoding)) => encoding == Encoding::Signed,
            _ => names.iter().any(|(value, _)| *value < 0),
        };
        ValueKind::Enum {
            bytes,
            signed,
            names: Arc::from(names),
        }
    }
}

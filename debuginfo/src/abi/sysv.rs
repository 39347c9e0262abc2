//! The classification algorithm of the System V AMD64 ABI (section 3.2.3), as gcc and clang implement it.

use std::sync::Arc;

use super::cxx::ClassPassing;
use super::form::{Encoding, Form, fields, members, offset};
use super::{MAX_VISITS, Passing, RegClass, Types};
use crate::types::{BitRange, Field, Node, Shape};

/// The class of an eightbyte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    None,
    Integer,
    Sse,
    SseUp,
    X87,
    X87Up,
    ComplexX87,
    Memory,
}

impl Class {
    /// Returns the class of an eightbyte that two fields share (step 4 of the algorithm).
    fn merge(self, other: Class) -> Class {
        use Class::{ComplexX87, Integer, Memory, None, Sse, X87, X87Up};
        match (self, other) {
            (a, b) if a == b => a,
            (None, other) | (other, None) => other,
            (Memory, _) | (_, Memory) => Memory,
            (Integer, _) | (_, Integer) => Integer,
            (X87 | X87Up | ComplexX87, _) | (_, X87 | X87Up | ComplexX87) => Memory,
            _ => Sse,
        }
    }
}

/// The classes of an object of at most 16 bytes.
struct Eightbytes {
    classes: [Class; 2],
    visits: u32,
    /// The class of some part is unknown.
    unknown: bool,
}

impl Eightbytes {
    fn add(&mut self, eightbyte: u64, class: Class) {
        let index = usize::try_from(eightbyte).unwrap_or(usize::MAX);
        match self.classes.get_mut(index) {
            Some(slot) => *slot = slot.merge(class),
            None => self.unknown = true,
        }
    }
}

impl Types<'_, '_, '_> {
    pub(super) fn sysv_passing(&self, form: &Form, size: u64, cxx: bool) -> Passing {
        if let (Form::Record(class), true) = (form, cxx) {
            match self.class_passing(class) {
                ClassPassing::ByReference => return Passing::Reference,
                ClassPassing::Unclear => return Passing::Unknown,
                ClassPassing::ByValue => {}
            }
        }
        match form {
            Form::Void => Passing::Empty,
            Form::Unknown => Passing::Unknown,
            Form::Base(Encoding::ComplexX87) => Passing::X87,
            // Wider vectors take one register if the function was compiled for AVX, which is not recorded.
            Form::Array { vector: true, .. } if size > 16 => Passing::Unknown,
            Form::Record(node) if size > 16 && self.is_wide_vector(node, size) => Passing::Unknown,
            _ if size > 16 => Passing::Stack,
            _ => self.small(form, size),
        }
    }

    fn small(&self, form: &Form, size: u64) -> Passing {
        let mut parts = Eightbytes {
            classes: [Class::None; 2],
            visits: MAX_VISITS,
            unknown: false,
        };
        self.classify(form, size, 0, 0, &mut parts);
        if parts.unknown {
            return Passing::Unknown;
        }
        passing(parts.classes)
    }

    fn classify(&self, form: &Form, size: u64, at: u64, depth: u32, out: &mut Eightbytes) {
        if depth > 32 || out.visits == 0 {
            out.unknown = true;
            return;
        }
        out.visits -= 1;
        match form {
            Form::Void => {}
            Form::Unknown => out.unknown = true,
            Form::Pointer | Form::MemberPointer => scalar(Class::Integer, 8, at, out),
            Form::MethodPointer => {
                scalar(Class::Integer, 8, at, out);
                scalar(Class::Integer, 8, at.saturating_add(8), out);
            }
            Form::Enum(_) => scalar(Class::Integer, size, at, out),
            Form::Base(encoding) => base(*encoding, size, at, out),
            Form::Array { element, vector } => {
                self.classify_array(element, *vector, size, at, depth, out);
            }
            Form::Record(node) => self.classify_record(node, at, depth, out),
        }
    }

    fn classify_array(
        &self,
        element: &Arc<Node>,
        vector: bool,
        size: u64,
        at: u64,
        depth: u32,
        out: &mut Eightbytes,
    ) {
        if vector && size == 16 {
            return pair(Class::Sse, Class::SseUp, 16, at, out);
        }
        if vector {
            // MMX vectors of 8 bytes and smaller ones also go to vector registers.
            return scalar(Class::Sse, size, at, out);
        }
        let form = self.form(element);
        let (each, _) = self.layout(element);
        if each == 0 {
            return;
        }
        for index in 0..(size / each).min(16) {
            let at = at.saturating_add(index * each);
            self.classify(&form, each, at, depth + 1, out);
        }
    }

    fn classify_record(&self, record: &Node, at: u64, depth: u32, out: &mut Eightbytes) {
        let Shape::Aggregate {
            fields, variants, ..
        } = &record.shape
        else {
            return;
        };
        self.classify_members(fields, at, depth, out);
        // A Rust enum with data in a function of the C convention: a tag and a union.
        if let Some(part) = variants {
            self.classify_members(part.discriminant.as_slice(), at, depth, out);
            for variant in &part.branches {
                self.classify_members(&variant.fields, at, depth, out);
            }
        }
    }

    fn classify_members(&self, fields: &[Field], at: u64, depth: u32, out: &mut Eightbytes) {
        for member in members(fields) {
            if let Some(BitRange { offset, size }) = member.bits {
                bit_field(at.saturating_mul(8).saturating_add(offset), size, out);
                continue;
            }
            let of = self.linked(&member.ty);
            let (size, _) = self.layout(&of);
            let at = at.saturating_add(offset(member));
            self.classify(&self.form(&of), size, at, depth + 1, out);
        }
    }

    /// Returns whether the record consists of a single vector of more than 16 bytes.
    fn is_wide_vector(&self, record: &Node, size: u64) -> bool {
        let mut members = members(fields(record));
        let (Some(member), None) = (members.next(), members.next()) else {
            return false;
        };
        let of = self.linked(&member.ty);
        let vector = matches!(self.form(&of), Form::Array { vector: true, .. });
        vector && self.layout(&of).0 == size
    }
}

fn base(encoding: Encoding, size: u64, at: u64, out: &mut Eightbytes) {
    match encoding {
        Encoding::Decimal if size > 8 => pair(Class::Sse, Class::SseUp, 16, at, out),
        Encoding::Float | Encoding::Decimal => scalar(Class::Sse, size, at, out),
        Encoding::Quad => pair(Class::Sse, Class::SseUp, 16, at, out),
        Encoding::X87 => pair(Class::X87, Class::X87Up, 16, at, out),
        Encoding::ComplexX87 => out.add(0, Class::ComplexX87),
        Encoding::Complex => {
            scalar(Class::Sse, size / 2, at, out);
            scalar(Class::Sse, size / 2, at.saturating_add(size / 2), out);
        }
        Encoding::Other if size > 8 => {
            // A complex integer: both halves are integers.
            scalar(Class::Integer, size / 2, at, out);
            scalar(Class::Integer, size / 2, at.saturating_add(size / 2), out);
        }
        _ if size > 8 => pair(Class::Integer, Class::Integer, 16, at, out),
        _ => scalar(Class::Integer, size, at, out),
    }
}

/// Adds a scalar of at most 8 bytes. A misaligned one sends the whole object to memory.
fn scalar(class: Class, size: u64, at: u64, out: &mut Eightbytes) {
    let misaligned = size.is_power_of_two() && !at.is_multiple_of(size);
    match misaligned {
        true => out.add(0, Class::Memory),
        false if size == 0 => {}
        false => out.add(at / 8, class),
    }
}

/// Adds a scalar of two eightbytes.
fn pair(low: Class, high: Class, align: u64, at: u64, out: &mut Eightbytes) {
    if !at.is_multiple_of(align) {
        return out.add(0, Class::Memory);
    }
    out.add(at / 8, low);
    out.add(at / 8 + 1, high);
}

fn bit_field(first: u64, bits: u64, out: &mut Eightbytes) {
    if bits == 0 {
        return;
    }
    let last = first.saturating_add(bits - 1) / 64;
    for eightbyte in first / 64..=last.min(first / 64 + 2) {
        out.add(eightbyte, Class::Integer);
    }
}

/// Applies the post-merger cleanup (step 5) and translates the classes.
fn passing(classes: [Class; 2]) -> Passing {
    let [low, high] = match classes {
        [low, Class::SseUp] if low != Class::Sse => [low, Class::Sse],
        [Class::SseUp, high] => [Class::Sse, high],
        other => other,
    };
    let class = |class| match class {
        Class::None => None,
        Class::Integer => Some(RegClass::Int),
        _ => Some(RegClass::Sse),
    };
    match (low, high) {
        (Class::Memory, _) | (_, Class::Memory) => Passing::Stack,
        (Class::X87, Class::X87Up) | (Class::ComplexX87, _) => Passing::X87,
        (Class::X87 | Class::X87Up, _) | (_, Class::X87 | Class::X87Up | Class::ComplexX87) => {
            Passing::Stack
        }
        (Class::None, Class::None) => Passing::Empty,
        (Class::Sse, Class::SseUp) => Passing::one(RegClass::Sse),
        // An eightbyte that is all padding takes no register.
        (low, high) => Passing::Regs {
            first: class(low),
            second: class(high),
            second_at: 8,
            together: true,
        },
    }
}

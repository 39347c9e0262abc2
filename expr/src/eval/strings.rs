//! Strings in all representations of C, C++ and Rust, and their comparison by content.

use std::cmp::Ordering;

use crate::ast::{Expr, ExprKind, Literal, Span};
use crate::eval::{Answer, EvalError, Evaluator};
use debuginfo::types::{Type, TypeKind};
use debuginfo::value::trail::Trail;
use debuginfo::value::{Look, Value};
use debuginfo::{Diagnostic, Unknown};
use values::{Children, Presented, printer_for, text_at};

/// Bytes of a string that are compared, at most.
pub(super) const MAX_TEXT: usize = 1 << 16;

/// Returns what the container's printer shows for a value, if its type has one.
pub(super) fn presented(
    value: &Value,
    look: &Look<'_>,
    limit: usize,
) -> Option<Result<Presented, Unknown>> {
    let ty = value.ty.strip();
    let printer = printer_for(&ty)?;
    Some(printer.present(value, look, limit))
}

/// A string, and whether its type makes it one.
struct Found {
    bytes: Vec<u8>,
    /// The type is a string type, so comparisons apply to the content.
    is_certain: bool,
}

/// Refuses to compare a number with a text that is written out: C would compare it with the address of the text.
///
/// # Errors
/// If they are a number and a text, whatever the number is.
pub(super) fn not_number_and_text(
    (left, a): (&Expr, &Value),
    (right, b): (&Expr, &Value),
    at: Span,
) -> Answer<()> {
    let is_text = |expr: &Expr| matches!(expr.kind, ExprKind::Literal(Literal::Text(_)));
    let number = match (is_text(left), is_text(right)) {
        (true, false) => b,
        (false, true) => a,
        _ => return Ok(()),
    };
    let ty = number.ty.strip();
    let is_number = matches!(
        ty.kind(),
        TypeKind::Integer { .. } | TypeKind::Bool | TypeKind::Char { .. } | TypeKind::Float
    );
    if !is_number {
        return Ok(());
    }
    let message = format!("{} cannot be compared with a text", ty.name());
    let what = Diagnostic::new(message).with_hint("a character is in single quotes: 'a'");
    Err(EvalError::meaningless(at, what))
}

impl Evaluator<'_> {
    /// Compares two strings by content. Returns `None` if they are not strings. Two pointers to characters are compared
    /// as pointers.
    pub(super) fn compare_texts(
        &self,
        (left, left_at): (&Value, Span),
        (right, right_at): (&Value, Span),
    ) -> Answer<Option<Ordering>> {
        if !self.may_be_text(left) || !self.may_be_text(right) {
            return Ok(None);
        }
        // Neither type states that the target is a string, which need not even be readable.
        let is_pointer = |value: &Value, at| {
            let settled = self.settled(value, at)?;
            Ok(settled.kind() == TypeKind::Pointer)
        };
        if is_pointer(left, left_at)? && is_pointer(right, right_at)? {
            return Ok(None);
        }
        let (left, right) = (self.text(left, left_at)?, self.text(right, right_at)?);
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(None);
        };
        match left.is_certain || right.is_certain {
            true => Ok(Some(left.bytes.cmp(&right.bytes))),
            false => Ok(None),
        }
    }

    /// A quick check that excludes numbers and other types that are never strings.
    fn may_be_text(&self, value: &Value) -> bool {
        matches!(
            value.kind(),
            TypeKind::Pointer
                | TypeKind::Array
                | TypeKind::Struct
                | TypeKind::Class
                | TypeKind::Reference
                | TypeKind::RvalueReference
        )
    }

    /// Returns the bytes of a string, without a terminating zero.
    pub(super) fn text_bytes(&self, value: &Value, at: Span) -> Answer<Option<Vec<u8>>> {
        Ok(self.text(value, at)?.map(|found| found.bytes))
    }

    fn text(&self, value: &Value, at: Span) -> Answer<Option<Found>> {
        let value = self.settled(value, at)?;
        let ty = value.ty.strip();
        let in_memory = |address: u64| {
            let read = text_at(self.look.machine, address, 1, MAX_TEXT);
            let read = read.map_err(|why| EvalError::new(at, why))?;
            self.note_text(read.certainty);
            Ok(Some(Found {
                bytes: read.bytes,
                is_certain: false,
            }))
        };
        match ty.kind() {
            TypeKind::Array if ty.element().is_some_and(|e| is_character(&e)) => {
                let bytes = value.known_bytes();
                let bytes = bytes.map_err(|e| self.unusable(&value, e, at))?;
                self.note_text(value.certainty);
                let end = bytes.iter().position(|byte| *byte == 0);
                Ok(Some(Found {
                    bytes: bytes[..end.unwrap_or(bytes.len())].to_vec(),
                    is_certain: true,
                }))
            }
            TypeKind::Pointer if ty.target().is_some_and(|t| is_character(&t)) => {
                let address = value.as_integer();
                let address = address.map_err(|e| self.unusable(&value, e, at))?;
                match address as u64 {
                    0 => Ok(None),
                    address => in_memory(address),
                }
            }
            TypeKind::Struct | TypeKind::Class => self.text_of_struct(&value, at),
            _ => Ok(None),
        }
    }

    fn text_of_struct(&self, value: &Value, at: Span) -> Answer<Option<Found>> {
        if let Some((pointer, count)) = self.slice(value) {
            let target = pointer.ty.strip().target();
            if target.is_none_or(|t| t.size() != Some(1)) {
                return Ok(None);
            }
            let address = self.whole(&pointer_as_number(&pointer), at)? as u64;
            let length = self.whole(&count, at)?;
            let Some(length) = usize::try_from(length).ok().filter(|l| *l <= MAX_TEXT) else {
                let message = format!("a text of {length} bytes is too long to be compared");
                return Err(EvalError::new(at, message));
            };
            let text = Value::at(
                super::base_type("u8").array(length as u64),
                address,
                self.look.machine,
            );
            let fits = Trail::check(&[&pointer, &count], &text, self.look.machine);
            fits.map_err(|why| EvalError::new(at, why))?;
            self.note_text(text.certainty);
            return Ok(Some(Found {
                bytes: text.bytes.map_err(|why| EvalError::new(at, why))?,
                is_certain: true,
            }));
        }
        match presented(value, &self.look, MAX_TEXT) {
            Some(Ok(Presented {
                children: Children::Text(bytes),
                certainty,
                ..
            })) => {
                self.note_text(certainty);
                Ok(Some(Found {
                    bytes,
                    is_certain: true,
                }))
            }
            Some(Ok(Presented {
                children: Children::Transparent(inner),
                ..
            })) => match self.is_same(value, &inner) {
                true => Ok(None),
                false => self.text(&inner, at),
            },
            Some(Err(why)) => Err(EvalError::new(at, why)),
            _ => Ok(None),
        }
    }

    /// Returns whether a value refers to itself, in which case it must not be followed.
    fn is_same(&self, a: &Value, b: &Value) -> bool {
        a.ty == b.ty && a.address() == b.address()
    }
}

/// Returns the same bytes as an integer.
fn pointer_as_number(pointer: &Value) -> Value {
    Value {
        ty: super::base_type("unsigned long"),
        ..pointer.clone()
    }
}

pub(super) fn is_character(ty: &Type) -> bool {
    let ty = ty.strip();
    ty.size() == Some(1)
        && match ty.kind() {
            TypeKind::Char { .. } => true,
            TypeKind::Integer { .. } => ty.plain_name().is_some_and(|name| name.contains("char")),
            _ => false,
        }
}

//! Converts values to numbers and pointers, and back.

use crate::ast::{CharKind, Span};
use crate::eval::{Answer, EvalError, Evaluator, Wants, base_type};
use crate::number::{IntKind, Number};
use debuginfo::types::{BitRange, Language, Type, TypeKind};
use debuginfo::value::Value;
use debuginfo::{Certainty, Diagnostic};
use values::Wide;

pub(super) enum Operand {
    Number(Number),
    /// A pointer, or what C converts to one: an array, a function.
    Pointer {
        address: u64,
        /// The type of the pointer.
        ty: Type,
    },
    /// Anything else.
    Other,
}

pub(crate) fn number_value(number: Number, certainty: Certainty) -> Value {
    let (name, bytes) = match number {
        Number::Bool(value) => ("bool", vec![u8::from(value)]),
        Number::Integer(integer) => {
            let kind = integer.kind;
            let size = usize::from(kind.bits / 8);
            (
                type_name(kind),
                integer.raw().to_le_bytes()[..size].to_vec(),
            )
        }
        Number::Float {
            value,
            single: true,
        } => ("float", (value as f32).to_le_bytes().to_vec()),
        Number::Float { value, .. } => ("double", value.to_le_bytes().to_vec()),
        Number::Wide(number @ Wide::Extended(_)) => ("long double", number.bytes()),
        Number::Wide(number) => ("_Float128", number.bytes()),
    };
    with(Value::constant(base_type(name), bytes), certainty)
}

pub(super) fn type_name(kind: IntKind) -> &'static str {
    match (kind.signed, kind.bits) {
        (true, 8) => "i8",
        (false, 8) => "u8",
        (true, 16) => "i16",
        (false, 16) => "u16",
        (true, 32) => "int",
        (false, 32) => "unsigned int",
        (true, 64) => "long",
        (false, 64) => "unsigned long",
        (true, _) => "i128",
        (false, _) => "u128",
    }
}

pub(super) fn pointer_value(ty: Type, address: u64, certainty: Certainty) -> Value {
    with(
        Value::constant(ty, address.to_le_bytes().to_vec()),
        certainty,
    )
}

fn with(mut value: Value, certainty: Certainty) -> Value {
    value.certainty = certainty;
    value
}

pub(super) fn character(code: u32, kind: CharKind) -> Value {
    let (name, size) = match kind {
        CharKind::Byte => ("u8", 1),
        // A character that does not fit `char` has more bytes.
        CharKind::Plain if code > 0xff => ("char32_t", 4),
        CharKind::Plain => ("char", 1),
        CharKind::Utf8 => ("char8_t", 1),
        CharKind::Utf16 => ("char16_t", 2),
        CharKind::Utf32 => ("char32_t", 4),
        CharKind::Wide => ("wchar_t", 4),
    };
    Value::constant(base_type(name), code.to_le_bytes()[..size].to_vec())
}

/// Returns the integer kind of a type, if it has one.
pub(super) fn int_kind(ty: &Type) -> Option<IntKind> {
    let ty = ty.strip();
    let signed = match ty.kind() {
        TypeKind::Integer { signed } | TypeKind::Char { signed } => signed,
        TypeKind::Bool => false,
        TypeKind::Enum => {
            let behind = ty.target().map(|t| t.strip().kind());
            match behind {
                Some(TypeKind::Integer { signed } | TypeKind::Char { signed }) => signed,
                _ => ty.enumerators().iter().any(|e| e.value < 0),
            }
        }
        _ => return None,
    };
    let bits = u8::try_from(ty.size()?.checked_mul(8)?).ok()?;
    (8..=128)
        .contains(&bits)
        .then_some(IntKind { signed, bits })
}

/// Returns the kind of a number that is a bit field if `bits` are its bits.
pub(super) fn kind_in(kind: IntKind, bits: Option<BitRange>) -> IntKind {
    bits.map_or(kind, |bits| kind.of_bit_field(bits.size))
}

impl Evaluator<'_> {
    pub(super) fn operand(&self, value: &Value, at: Span) -> Answer<Operand> {
        let mut value = self.settled(value, at)?;
        let ty = value.ty.strip();
        let bits = value.bits;
        // Any number has the type of the answer.
        if self.wants.get() == Wants::Type
            && value.bytes.is_err()
            && let Some(size) = ty.size().filter(|size| *size <= 16)
        {
            let mut bytes = vec![0; size as usize];
            bytes.iter_mut().take(1).for_each(|byte| *byte = 1);
            value = Value::constant(value.ty, bytes);
        }
        let is_scalar = matches!(
            ty.kind(),
            TypeKind::Bool | TypeKind::Float | TypeKind::Fixed { .. } | TypeKind::Pointer
        );
        if is_scalar || int_kind(&ty).is_some() {
            self.note(value.certainty);
            self.compute_with(&value);
        }
        Ok(match ty.kind() {
            TypeKind::Bool => Operand::Number(Number::Bool(self.integer(&value, at)? != 0)),
            TypeKind::Float if let Some(number) = Wide::of(&value) => {
                Operand::Number(Number::Wide(number))
            }
            TypeKind::Float | TypeKind::Fixed { .. } => {
                let number = values::float(&value).map_err(|e| self.unusable(&value, e, at))?;
                Operand::Number(Number::Float {
                    value: number,
                    single: ty.size() == Some(4),
                })
            }
            TypeKind::Pointer => {
                let address = self.integer(&value, at)? as u64;
                Operand::Pointer { address, ty }
            }
            TypeKind::Array if ty.is_plain_array() => match (value.address(), ty.element()) {
                (Some(address), Some(element)) => Operand::Pointer {
                    address,
                    ty: element.pointer(),
                },
                _ => Operand::Other,
            },
            TypeKind::Function => match value.address() {
                Some(address) => Operand::Pointer {
                    address,
                    ty: value.ty.pointer(),
                },
                None => Operand::Other,
            },
            _ => match int_kind(&ty) {
                Some(kind) => {
                    let kind = kind_in(kind, bits);
                    let raw = self.integer(&value, at)? as u128;
                    Operand::Number(Number::integer(kind, raw))
                }
                None => Operand::Other,
            },
        })
    }

    fn integer(&self, value: &Value, at: Span) -> Answer<i128> {
        value.as_integer().map_err(|e| self.unusable(value, e, at))
    }

    /// Follows what the language follows implicitly: references, including those of Rust, and its boxes.
    pub(super) fn settled(&self, value: &Value, at: Span) -> Answer<Value> {
        let mut value = value
            .unreferenced(&self.look)
            .map_err(|e| self.unusable(value, e, at))?;
        for _ in 0..4 {
            if !stands_for_target(&value.ty) {
                break;
            }
            let next = self.target(&value, &self.look);
            value = next.map_err(|e| self.unusable(&value, e, at))?;
        }
        self.note(value.reached);
        Ok(value)
    }

    /// Makes the error for a value that cannot be used in a computation.
    pub(super) fn unusable(
        &self,
        value: &Value,
        error: debuginfo::value::ValueError,
        at: Span,
    ) -> EvalError {
        match value.is_optimized_out() {
            true => EvalError::new(at, "it is optimized out here and has no value"),
            false => match error {
                debuginfo::value::ValueError::Unknown(why) => {
                    let why = Diagnostic::from(why);
                    EvalError::unknown(at, why.map(|why| format!("its value is not known: {why}")))
                }
                error => {
                    self.note(value.certainty);
                    EvalError::of_value(at, &error)
                }
            },
        }
    }

    /// Returns whether a value counts as true.
    pub(super) fn truth(&self, value: &Value, at: Span) -> Answer<bool> {
        match self.operand(value, at)? {
            Operand::Number(number) => Ok(number.is_true()),
            Operand::Pointer { address, .. } => Ok(address != 0),
            Operand::Other => {
                let message = format!("{} is neither true nor false", value.ty.name());
                Err(EvalError::new(at, message).with_hint("compare it with something"))
            }
        }
    }

    /// Returns a value as an integer, for indices and counts.
    pub(super) fn whole(&self, value: &Value, at: Span) -> Answer<i128> {
        let integer = match self.operand(value, at)? {
            Operand::Number(number) => number.as_integer(),
            _ => None,
        };
        let integer = integer.ok_or_else(|| {
            let message = format!("expected a whole number, not {}", value.ty.name());
            EvalError::new(at, message)
        })?;
        Ok(integer.raw() as i128)
    }
}

/// Returns whether the type is Rust's `&T`, `&mut T` or `Box<T>`, which stand for their target: it is shown, compared and
/// computed with.
pub(super) fn stands_for_target(ty: &Type) -> bool {
    let ty = ty.strip();
    let is_such = |name: &str| name.starts_with('&') || name.starts_with("alloc::boxed::Box<");
    ty.kind() == TypeKind::Pointer
        && ty.language() == Language::Rust
        && ty.plain_name().is_some_and(is_such)
}

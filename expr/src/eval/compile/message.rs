//! Compiles the values of log messages: the words that a thread records, and how they later become the evaluator's
//! text.

use crate::ast::Expr;
use crate::eval::compile::value::{Bytes, Static};
use crate::eval::compile::{Compiler, Result, at_address, not};
use crate::eval::operand::stands_for_target;
use crate::eval::strings::is_character;
use crate::eval::{Evaluator, with_evaluator};
use crate::template::{Format, Part, Template};
use debuginfo::AddressSpace;
use debuginfo::location::ir::Int;
use debuginfo::types::{BitRange, Language, TypeKind};
use debuginfo::value::Value;
use values::{RenderOptions, printer_for, render_with};

/// Values of a type with individual names, at most.
const MOST_NAMES: usize = 256;
/// Values that may be listed individually if they are not consecutive.
const MOST_APART: usize = 32;

/// A log message with compiled values.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its parts, in order.
    pub parts: Vec<MessagePart>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum MessagePart {
    /// Constant text.
    Text(String),
    /// A value.
    Value(Logged),
}

/// A value of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    /// The source text of the expression.
    pub source: String,
    /// The number to record. For a string, its address.
    pub value: Int,
    /// Its format.
    pub shown: Shown,
}

/// The format of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// In base 10, with a sign.
    Signed,
    /// In base 10.
    Unsigned,
    /// In base 16, with `0x`.
    Hex,
    /// A floating-point number in the low bytes, in the format of C debuggers.
    Float {
        /// 4 or 8.
        bytes: u8,
    },
    /// A floating-point number in the low bytes, in Rust's format.
    RustFloat {
        /// 4 or 8.
        bytes: u8,
    },
    /// By name. The number is one of these.
    Named(Vec<(u64, String)>),
    /// The address of a zero-terminated string. A longer string is cut to `limit` characters and `...`. A non-ASCII
    /// string of more than `limit` bytes has no answer.
    Text {
        /// The number of characters.
        limit: usize,
    },
}

/// Compiles a log message for the instruction at `pc`, an address of the process. The result is valid as long as
/// `space` has all modules, since addresses in other modules are shown with names that are not known yet. `to_come` is
/// as for [`compile_condition`](super::compile_condition).
///
/// # Errors
/// A value cannot be compiled.
pub fn compile_message(
    template: &Template,
    space: &AddressSpace,
    pc: u64,
    to_come: usize,
) -> Result<Message> {
    at_address(space, pc, to_come, |context| {
        with_evaluator(context, |evaluator: &Evaluator<'_>| {
            let compiler = Compiler { evaluator };
            let parts = template.parts.iter().map(|part| match part {
                Part::Text(text) => Ok(MessagePart::Text(text.clone())),
                Part::Script { source } => Err(not(format!("{source} is JavaScript"))),
                Part::Value { expression, format } => {
                    let expr = expression.within(context);
                    let expr = expr.map_err(|error| not(error.one_line()))?;
                    let (value, shown) = compiler.shown(&expr, *format)?;
                    Ok(MessagePart::Value(Logged {
                        source: expression.text().to_owned(),
                        value,
                        shown,
                    }))
                }
            });
            let parts = parts.collect::<Result<Vec<MessagePart>>>()?;
            Ok(Message { parts })
        })
    })
}

impl Compiler<'_, '_> {
    fn shown(&self, expr: &Expr, format: Format) -> Result<(Int, Shown)> {
        let mut value = self.value(expr)?;
        if let TypeKind::Reference | TypeKind::RvalueReference = value.kind() {
            value = self.behind_pointer(&value)?;
        }
        let is_text = matches!(format, Format::Natural | Format::Text);
        let ty = value.ty.strip();
        if printer_for(&ty).is_some() {
            return Err(not(format!("{} has a way of its own", ty.name())));
        }
        if value.bits.is_some() && !is_text {
            return Err(not(format!("{expr} is a bit field")));
        }
        match (format, ty.kind()) {
            (Format::Hex, _) => Ok((self.bits(&value)?, Shown::Hex)),
            (Format::Unsigned, _) => Ok((self.bits(&value)?, Shown::Unsigned)),
            (Format::Natural | Format::Decimal | Format::Text, TypeKind::Float) => float(&value),
            (Format::Decimal, _) => Ok((self.scalar(&value)?.raw(true)?, Shown::Signed)),
            (_, TypeKind::Pointer) if is_text => self.pointer(&value),
            (_, TypeKind::Integer { signed }) if is_text => {
                let shown = if signed {
                    Shown::Signed
                } else {
                    Shown::Unsigned
                };
                Ok((value.raw(signed)?, shown))
            }
            (_, TypeKind::Bool | TypeKind::Char { .. } | TypeKind::Enum) if is_text => {
                self.named(&value)
            }
            _ => Err(not(format!("how {expr} is shown depends on more than it"))),
        }
    }

    fn scalar<'v>(&self, value: &'v Static) -> Result<&'v Static> {
        match value.kind() {
            TypeKind::Integer { .. }
            | TypeKind::Bool
            | TypeKind::Char { .. }
            | TypeKind::Enum
            | TypeKind::Pointer => Ok(value),
            _ => Err(not(format!("{} is not a number", value.ty.name()))),
        }
    }

    fn bits(&self, value: &Static) -> Result<Int> {
        self.scalar(value)?.raw(false)
    }

    fn pointer(&self, value: &Static) -> Result<(Int, Shown)> {
        let ty = value.ty.strip();
        if stands_for_target(&ty) {
            return Err(not(format!("{} shows what it refers to", ty.name())));
        }
        let target = ty.target().map(|target| target.strip());
        if let Some(target) = &target {
            if is_character(target) {
                let address = Int::NonNull(Box::new(value.raw(false)?));
                let limit = RenderOptions::default().max_string;
                return Ok((address, Shown::Text { limit }));
            }
            if matches!(target.kind(), TypeKind::Char { .. }) {
                return Err(not(format!("{} points to a text", ty.name())));
            }
        }
        // An address in a module may have a name.
        let modules = self.evaluator.look.space.modules().iter();
        let ranges = modules.map(|m| (m.range.start, m.range.end)).collect();
        let address = Int::Outside {
            of: Box::new(value.raw(false)?),
            ranges,
        };
        Ok((address, Shown::Hex))
    }

    /// Compiles booleans, characters and enumerations, with the evaluator's text for each of their values.
    fn named(&self, value: &Static) -> Result<(Int, Shown)> {
        let ty = value.ty.strip();
        let number = value.raw(false)?;
        let size = ty.size().unwrap_or(0);
        let bits = value.bits.map_or(size * 8, |bits| bits.size);
        let name = |raw: u64| {
            let bytes = raw.to_le_bytes()[..size.min(8) as usize].to_vec();
            let mut constant = Value::constant(value.ty.clone(), bytes);
            constant.bits = value.bits.map(|bits| BitRange {
                offset: 0,
                size: bits.size,
            });
            let text = render_with(&constant, &RenderOptions::default(), &self.evaluator.look);
            (raw, text)
        };
        if bits <= 8 {
            let names = (0..1u64 << bits).map(name).collect();
            return Ok((number, Shown::Named(names)));
        }
        let mask = u64::MAX >> (64 - bits.clamp(1, 64));
        let mut all: Vec<u64> = ty
            .enumerators()
            .iter()
            .map(|e| e.value as u64 & mask)
            .collect();
        all.sort_unstable();
        all.dedup();
        if ty.kind() != TypeKind::Enum || all.is_empty() || all.len() > MOST_NAMES || bits > 64 {
            return Err(not(format!("{} has too many values", ty.name())));
        }
        let (first, last) = (all[0], all[all.len() - 1]);
        let in_a_row = last - first == all.len() as u64 - 1 && i64::try_from(last).is_ok();
        let of = Box::new(number);
        let known = match in_a_row {
            true => Int::Within {
                of,
                low: first as i64,
                high: last as i64,
            },
            false if all.len() <= MOST_APART => Int::OneOf {
                of,
                values: all.clone(),
            },
            false => return Err(not(format!("{} has too many values", ty.name()))),
        };
        Ok((known, Shown::Named(all.into_iter().map(name).collect())))
    }
}

fn float(value: &Static) -> Result<(Int, Shown)> {
    let ty = value.ty.strip();
    let bytes = match (ty.size(), &value.bytes) {
        (Some(bytes @ (4 | 8)), Bytes::Memory(_) | Bytes::Number(_) | Bytes::Vector(_)) => {
            bytes as u8
        }
        _ => return Err(not(format!("{} is not compiled as text", ty.name()))),
    };
    let shown = match ty.language() {
        Language::Rust => Shown::RustFloat { bytes },
        _ => Shown::Float { bytes },
    };
    Ok((value.raw(false)?, shown))
}

//! Prints expressions as text that parses as the same tree. Every operation is in parentheses.

use std::fmt;

use crate::ast::{BinaryOp, CharKind, Expr, ExprKind, Literal, Suffix, TypeName};
use crate::parse::words::is_special;

impl Expr {
    /// Returns the expression for a message: a name alone is written as in the program.
    pub(crate) fn told(&self) -> String {
        match &self.kind {
            ExprKind::Name(name) => name.clone(),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Name(name) if is_special(name) => write!(f, "r#{name}"),
            ExprKind::Name(name) => {
                let (front, arguments) = name.split_at(arguments_start(name));
                let turbofish = if arguments.is_empty() { "" } else { "::" };
                write!(f, "{front}{turbofish}{arguments}")
            }
            ExprKind::Register(name) => write!(f, "${name}"),
            ExprKind::Literal(literal) => literal.fmt(f),
            ExprKind::Member { of, name, arrow } => {
                let dot = if *arrow { "->" } else { "." };
                write!(f, "{}{dot}{name}", Operand(of))
            }
            ExprKind::Index { of, index } => write!(f, "{}[{index}]", Operand(of)),
            ExprKind::Range {
                of,
                from,
                to,
                inclusive,
            } => {
                let dots = if *inclusive { "..=" } else { ".." };
                write!(
                    f,
                    "{}[{}{dots}{}]",
                    Operand(of),
                    Optional(from),
                    Optional(to)
                )
            }
            ExprKind::Unary(op, of) => write!(f, "({}{})", op.symbol(), Operand(of)),
            ExprKind::Binary(op, left, right) => write!(f, "({left} {} {right})", op.symbol()),
            ExprKind::Conditional {
                condition,
                if_true,
                if_false,
            } => write!(f, "({condition} ? {if_true} : {if_false})"),
            ExprKind::Cast { how, to, of } if let Some(word) = how.word() => {
                write!(f, "{word}<{to}>({of})")
            }
            ExprKind::Cast { to, of, .. } if c_style(to) => write!(f, "(({to}){})", Operand(of)),
            ExprKind::Cast { to, of, .. } => write!(f, "({} as {to})", Operand(of)),
            ExprKind::SizeOf(of) => write!(f, "(sizeof {})", Operand(of)),
            ExprKind::SizeOfType(of) => write!(f, "(sizeof({of}))"),
            ExprKind::AlignOf(of) => write!(f, "(alignof({of}))"),
            ExprKind::AlignOfType(of) => write!(f, "(alignof({of}))"),
            ExprKind::Call {
                function,
                arguments,
            } => {
                write!(f, "{}(", Operand(function))?;
                for (index, argument) in arguments.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{argument}")?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Returns the start of the template arguments at the end of a name, or else its length. Written after `::`, their `<`
/// is not a comparison.
fn arguments_start(name: &str) -> usize {
    let mut depth = 0;
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate().rev() {
        let arrow = at > 0 && bytes[at - 1] == b'-';
        match byte {
            b'>' if !arrow => depth += 1,
            b'<' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return if *byte == b'<' { at } else { name.len() };
        }
    }
    name.len()
}

/// Types that cannot be expressions are written before the operand, because `as` does not accept C pointers.
fn c_style(to: &TypeName) -> bool {
    to.certain
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An operand. Literals must not touch what follows them.
struct Operand<'e>(&'e Expr);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            ExprKind::Literal(_) => write!(f, "({})", self.0),
            _ => self.0.fmt(f),
        }
    }
}

struct Optional<'e>(&'e Option<Box<Expr>>);

impl fmt::Display for Optional<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(expr) => Operand(expr).fmt(f),
            None => Ok(()),
        }
    }
}

impl fmt::Display for BinaryOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Integer {
                value,
                decimal,
                suffix,
            } => {
                match decimal {
                    true => write!(f, "{value}")?,
                    false => write!(f, "{value:#x}")?,
                }
                write!(f, "{suffix}")
            }
            Literal::Float { value, single } => {
                write!(f, "{value:?}{}", if *single { "f" } else { "" })
            }
            Literal::Char { code, kind } => {
                let prefix = match kind {
                    CharKind::Plain => "",
                    CharKind::Byte => "b",
                    CharKind::Utf8 => "u8",
                    CharKind::Utf16 => "u",
                    CharKind::Utf32 => "U",
                    CharKind::Wide => "L",
                };
                match u8::try_from(*code) {
                    Ok(byte @ b' '..=b'~') if !matches!(byte, b'\'' | b'\\') => {
                        write!(f, "{prefix}'{}'", char::from(byte))
                    }
                    _ => write!(f, "{prefix}'\\u{{{code:x}}}'"),
                }
            }
            Literal::Text(bytes) => {
                f.write_str("\"")?;
                for byte in bytes {
                    match byte {
                        b'"' | b'\\' => write!(f, "\\{}", char::from(*byte))?,
                        b' '..=b'~' => write!(f, "{}", char::from(*byte))?,
                        _ => write!(f, "\\{byte:03o}")?,
                    }
                }
                f.write_str("\"")
            }
            Literal::Bool(value) => write!(f, "{value}"),
            Literal::Null => f.write_str("null"),
        }
    }
}

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Suffix::None => Ok(()),
            Suffix::Unsigned => f.write_str("u"),
            Suffix::Long => f.write_str("l"),
            Suffix::UnsignedLong => f.write_str("ul"),
            Suffix::Sized { signed, bits } => {
                write!(f, "{}{bits}", if *signed { 'i' } else { 'u' })
            }
        }
    }
}

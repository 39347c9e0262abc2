//! JavaScript as far as it is compiled: expressions of names, members, operators, literals and calls.
//!
//! Whether a text is JavaScript at all is decided by whoever runs it. What is read here is read as ECMAScript 2024 has it
//! (chapters 12 and 13); what can do more than look (functions, assignments, `new`, templates with parts) is refused.

mod parse;
#[cfg(test)]
mod tests;
mod text;

pub(super) use parse::parse;

/// Nodes above each other in one expression.
pub(super) const MAX_DEPTH: usize = 64;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Script {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// `true` or `false`.
    Bool(bool),
    /// `null`
    Null,
    /// A name; also `this`.
    Name(String),
    /// `[a, b]`
    List(Vec<Script>),
    /// `/text/`, which stands for itself.
    Pattern(Pattern),
    /// `of.name`
    Member {
        of: Box<Script>,
        name: String,
        /// `of?.name`: without `of`, the whole chain is undefined.
        optional: bool,
    },
    /// `of[index]`
    Index {
        of: Box<Script>,
        index: Box<Script>,
        /// `of?.[index]`
        optional: bool,
    },
    /// `function(arguments)`
    Call {
        function: Box<Script>,
        arguments: Vec<Script>,
    },
    /// Brackets, where a chain ends.
    Group(Box<Script>),
    /// An operator with one operand.
    Unary(Unary, Box<Script>),
    /// An operator with two operands.
    Binary(Binary, Box<Script>, Box<Script>),
    /// `condition ? if_true : if_false`
    Conditional {
        condition: Box<Script>,
        if_true: Box<Script>,
        if_false: Box<Script>,
    },
}

/// A regular expression without anything special in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// What is looked for.
    pub text: String,
    /// `^`: only at the start.
    pub at_start: bool,
    /// `$`: only at the end.
    pub at_end: bool,
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Complement,
    Negate,
    Plus,
    TypeOf,
}

/// Operators with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Coalesce,
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    StrictEqual,
    StrictNotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

impl Binary {
    /// The operators, with how tightly they bind: more is tighter.
    const ALL: [(&'static str, Binary, u8); 23] = [
        ("??", Binary::Coalesce, 1),
        ("||", Binary::Or, 2),
        ("&&", Binary::And, 3),
        ("|", Binary::BitOr, 4),
        ("^", Binary::BitXor, 5),
        ("&", Binary::BitAnd, 6),
        ("==", Binary::Equal, 7),
        ("!=", Binary::NotEqual, 7),
        ("===", Binary::StrictEqual, 7),
        ("!==", Binary::StrictNotEqual, 7),
        ("<", Binary::Less, 8),
        ("<=", Binary::LessEqual, 8),
        (">", Binary::Greater, 8),
        (">=", Binary::GreaterEqual, 8),
        ("<<", Binary::ShiftLeft, 9),
        (">>", Binary::ShiftRight, 9),
        (">>>", Binary::ShiftRightUnsigned, 9),
        ("+", Binary::Add, 10),
        ("-", Binary::Subtract, 10),
        ("*", Binary::Multiply, 11),
        ("/", Binary::Divide, 11),
        ("%", Binary::Remainder, 11),
        ("**", Binary::Power, 12),
    ];

    fn by_symbol(symbol: &str) -> Option<(Binary, u8)> {
        let mut all = Binary::ALL.iter();
        let (_, op, binds) = all.find(|(text, _, _)| *text == symbol)?;
        Some((*op, *binds))
    }
}

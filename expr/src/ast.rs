//! The syntax tree of an expression. Each node has its position in the text.
//!
//! A tree is independent of the program. Names are text, and are resolved during evaluation.

/// The bytes of the text that a node was parsed from. `end` is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// The first byte, from 0.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// An expression and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// Its position.
    pub at: Span,
    height: u16,
}

/// The kinds of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A variable, function, enumerator or type, with its scopes: `x`, `ns::f<int>::x`, `::x`.
    Name(String),
    /// A register, or a value that the session keeps, without the `$`.
    Register(String),
    /// A literal.
    Literal(Literal),
    /// A member, `of.name` or `of->name`. Fields of tuples are called `0`, `1` and so on.
    Member {
        /// The structure, or a pointer to it.
        of: Box<Expr>,
        /// Its name, which may be qualified in C++: `Base::x`.
        name: String,
        /// Written with an arrow. Both forms mean the same.
        arrow: bool,
    },
    /// An element, `of[index]`.
    Index {
        /// An array, pointer, slice or container.
        of: Box<Expr>,
        /// A number, or the key of a map.
        index: Box<Expr>,
    },
    /// Several elements, `of[from..to]`.
    Range {
        /// An array, pointer, slice or container.
        of: Box<Expr>,
        /// The first element. If absent, the first of all.
        from: Option<Box<Expr>>,
        /// The element after the last. If absent, the end.
        to: Option<Box<Expr>>,
        /// `..=`: the element at `to` is included.
        inclusive: bool,
    },
    /// An operator with one operand.
    Unary(UnaryOp, Box<Expr>),
    /// An operator with two operands.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `if_true` or `if_false`, as selected by `condition`.
    Conditional {
        /// The condition.
        condition: Box<Expr>,
        /// Evaluated if it is true.
        if_true: Box<Expr>,
        /// Evaluated if it is false.
        if_false: Box<Expr>,
    },
    /// A conversion: `(to) of`, `of as to` or `static_cast<to>(of)`.
    Cast {
        /// How it is written.
        how: CastKind,
        /// The target type.
        to: TypeName,
        /// The operand.
        of: Box<Expr>,
    },
    /// The size in bytes of a value of the expression's type. The expression may also be the name of a type.
    SizeOf(Box<Expr>),
    /// The size in bytes of a value of the type.
    SizeOfType(TypeName),
    /// The alignment in bytes of the expression's type. The expression may also be the name of a type.
    AlignOf(Box<Expr>),
    /// The alignment in bytes of the type.
    AlignOfType(TypeName),
    /// A call, or a conversion if `function` is the name of a type.
    Call {
        /// A name, a method (a member) or a pointer to a function.
        function: Box<Expr>,
        /// The arguments, in text order.
        arguments: Vec<Expr>,
    },
}

/// The ways to write a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CastKind {
    /// `(T) x` or `x as T`: whatever is possible.
    Plain,
    /// `static_cast<T>(x)`, which means the same here.
    Static,
    /// `dynamic_cast<T>(x)`: null if the object is no `T`.
    Dynamic,
    /// `reinterpret_cast<T>(x)`: the same bytes.
    Reinterpret,
    /// `const_cast<T>(x)`.
    Const,
}

impl CastKind {
    /// All kinds that are written as words.
    pub(crate) const WORDS: [(&'static str, CastKind); 4] = [
        ("static_cast", CastKind::Static),
        ("dynamic_cast", CastKind::Dynamic),
        ("reinterpret_cast", CastKind::Reinterpret),
        ("const_cast", CastKind::Const),
    ];

    pub(crate) fn word(self) -> Option<&'static str> {
        let mut words = CastKind::WORDS.iter();
        words.find(|(_, kind)| *kind == self).map(|(word, _)| *word)
    }
}

/// A type as text, with as few spaces as possible.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypeName {
    /// Such as `unsigned int*`, `ns::Pair<int, char>` or `*const u8`.
    pub text: String,
    /// It cannot be an expression: `int`, `struct foo`, `T*`.
    pub certain: bool,
}

/// A literal.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// An integer. Never negative, since `-1` is an operation on 1.
    Integer {
        /// The number.
        value: u128,
        /// Written with the digits 0 to 9 and no prefix. In C, other numbers may become unsigned implicitly.
        decimal: bool,
        /// The suffix.
        suffix: Suffix,
    },
    /// A floating-point number.
    Float {
        /// The number.
        value: f64,
        /// It has the suffix `f` or `f32`.
        single: bool,
    },
    /// A character, by its number.
    Char {
        /// The code point, or the byte of `'\xff'`.
        code: u32,
        /// The kind of character.
        kind: CharKind,
    },
    /// A string, without C's terminating zero.
    Text(Vec<u8>),
    /// `true` or `false`.
    Bool(bool),
    /// `null`, `nullptr` or `NULL`.
    Null,
}

/// The type suffix of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suffix {
    /// No suffix.
    None,
    /// C's `u`.
    Unsigned,
    /// C's `l` or `ll`, both 64 bits.
    Long,
    /// C's `ul` or `ull`.
    UnsignedLong,
    /// Rust's `i8` to `u128`, `isize` and `usize`.
    Sized {
        /// Two's complement.
        signed: bool,
        /// 8 to 128.
        bits: u8,
    },
}

/// The kind of a character literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CharKind {
    /// `'a'`: a `char` of C or of Rust, depending on what it is compared with.
    Plain,
    /// `b'a'`: a byte.
    Byte,
    /// `u8'a'`.
    Utf8,
    /// `u'a'`.
    Utf16,
    /// `U'a'`.
    Utf32,
    /// `L'a'`.
    Wide,
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `*`
    Deref,
    /// `&`
    AddressOf,
    /// `-`
    Negate,
    /// `+`
    Plus,
    /// `!`, which tests for false or zero, also for numbers.
    Not,
    /// `~`
    Complement,
}

impl UnaryOp {
    /// Returns the operator as text.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Deref => "*",
            UnaryOp::AddressOf => "&",
            UnaryOp::Negate => "-",
            UnaryOp::Plus => "+",
            UnaryOp::Not => "!",
            UnaryOp::Complement => "~",
        }
    }
}

/// Operators with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    /// gdb's `first@count`: `count` consecutive values, starting with `first`.
    Repeat,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    /// C++'s `object.*pointer`, with a pointer to members.
    Select,
    /// C++'s `object->*pointer`. Both forms mean the same.
    SelectBehind,
}

impl BinaryOp {
    /// All operators in all their spellings. The first spelling of each operator is the one that is printed.
    pub(crate) const SPELLINGS: [(&'static str, BinaryOp); 23] = [
        ("==", BinaryOp::Equal),
        ("!=", BinaryOp::NotEqual),
        ("===", BinaryOp::Equal),
        ("!==", BinaryOp::NotEqual),
        ("||", BinaryOp::Or),
        ("&&", BinaryOp::And),
        ("<<", BinaryOp::ShiftLeft),
        (">>", BinaryOp::ShiftRight),
        ("<=", BinaryOp::LessEqual),
        (">=", BinaryOp::GreaterEqual),
        ("|", BinaryOp::BitOr),
        ("^", BinaryOp::BitXor),
        ("&", BinaryOp::BitAnd),
        ("<", BinaryOp::Less),
        (">", BinaryOp::Greater),
        ("@", BinaryOp::Repeat),
        ("+", BinaryOp::Add),
        ("-", BinaryOp::Subtract),
        ("*", BinaryOp::Multiply),
        ("/", BinaryOp::Divide),
        ("%", BinaryOp::Remainder),
        (".*", BinaryOp::Select),
        ("->*", BinaryOp::SelectBehind),
    ];

    /// Returns the operator as text.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        let found = BinaryOp::SPELLINGS.iter().find(|(_, op)| *op == self);
        found.map_or("?", |(text, _)| text)
    }

    /// Returns whether it selects a member: the result has a place.
    pub(crate) fn selects(self) -> bool {
        matches!(self, BinaryOp::Select | BinaryOp::SelectBehind)
    }

    /// Returns the precedence, as in C. Higher binds tighter.
    #[must_use]
    pub fn precedence(self) -> u8 {
        match self {
            BinaryOp::Or => 1,
            BinaryOp::And => 2,
            BinaryOp::BitOr => 3,
            BinaryOp::BitXor => 4,
            BinaryOp::BitAnd => 5,
            BinaryOp::Equal | BinaryOp::NotEqual => 6,
            BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => 7,
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => 8,
            BinaryOp::Repeat => 9,
            BinaryOp::Add | BinaryOp::Subtract => 10,
            BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Remainder => 11,
            BinaryOp::Select | BinaryOp::SelectBehind => 12,
        }
    }
}

impl Expr {
    /// Makes a node.
    #[must_use]
    pub fn new(kind: ExprKind, at: Span) -> Expr {
        let mut height = 0;
        kind.for_each_child(|child| height = height.max(child.height));
        Expr {
            kind,
            at,
            height: height.saturating_add(1),
        }
    }

    /// Returns the number of nodes on the longest path down, including this one.
    #[must_use]
    pub fn height(&self) -> u16 {
        self.height
    }

    /// Returns the same tree without positions, for comparing the meaning of two texts.
    #[must_use]
    pub fn without_positions(&self) -> Expr {
        let mut copy = self.clone();
        copy.forget_positions();
        copy
    }

    fn forget_positions(&mut self) {
        self.at = Span::default();
        self.kind.for_each_child_mut(Expr::forget_positions);
    }
}

/// Passes each direct operand of a kind to `$see`, with the same kind of borrow. `$iter` iterates over lists of
/// operands.
macro_rules! show_operands {
    ($kind:expr, $iter:ident, $see:ident) => {
        match $kind {
            ExprKind::Name(_)
            | ExprKind::Register(_)
            | ExprKind::Literal(_)
            | ExprKind::SizeOfType(_)
            | ExprKind::AlignOfType(_) => {}
            ExprKind::Member { of, .. }
            | ExprKind::Unary(_, of)
            | ExprKind::Cast { of, .. }
            | ExprKind::SizeOf(of)
            | ExprKind::AlignOf(of) => $see(of),
            ExprKind::Index { of, index } => {
                $see(of);
                $see(index);
            }
            ExprKind::Range { of, from, to, .. } => {
                $see(of);
                for end in from.$iter().chain(to) {
                    $see(end);
                }
            }
            ExprKind::Binary(_, left, right) => {
                $see(left);
                $see(right);
            }
            ExprKind::Conditional {
                condition,
                if_true,
                if_false,
            } => {
                $see(condition);
                $see(if_true);
                $see(if_false);
            }
            ExprKind::Call {
                function,
                arguments,
            } => {
                $see(function);
                arguments.$iter().for_each($see);
            }
        }
    };
}

impl ExprKind {
    /// Calls `see` with each direct operand.
    pub fn for_each_child<'e>(&'e self, mut see: impl FnMut(&'e Expr)) {
        show_operands!(self, iter, see);
    }

    fn for_each_child_mut(&mut self, mut see: impl FnMut(&mut Expr)) {
        show_operands!(self, iter_mut, see);
    }
}

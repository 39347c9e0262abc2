//! Operators: the conditional operator, binary operators by precedence, prefix operators, and conversions.

use crate::ast::{BinaryOp, CastKind, Expr, ExprKind, Span, TypeName, UnaryOp};
use crate::parse::types::Style;
use crate::parse::{ParseError, Parser};

impl Parser<'_> {
    /// Parses a whole expression and stops after it.
    pub(crate) fn expression(&mut self) -> Result<Expr, ParseError> {
        self.nested(|parser| {
            let condition = parser.binary(0)?;
            if !parser.eat("?") {
                return Ok(condition);
            }
            let if_true = parser.expression()?;
            parser.expect(":")?;
            let if_false = parser.expression()?;
            let at = from_to(&condition, &if_false);
            let kind = ExprKind::Conditional {
                condition: Box::new(condition),
                if_true: Box::new(if_true),
                if_false: Box::new(if_false),
            };
            parser.node(kind, at)
        })
    }

    /// Parses operators that bind more tightly than `above`, from left to right.
    fn binary(&mut self, above: u8) -> Result<Expr, ParseError> {
        let mut left = self.operand()?;
        // `**` is meant as a power, never as a product with the target of a pointer.
        if self.looking_at("**") {
            let error = self.error("there is no operator \"**\"");
            return Err(error.with_hint("write \"a * a\", or \"a * *p\""));
        }
        while let Some((symbol, op)) = self.peek_operator() {
            if op.precedence() <= above {
                break;
            }
            self.pos += symbol.len();
            let right = self.binary(op.precedence())?;
            let at = from_to(&left, &right);
            left = self.node(ExprKind::Binary(op, Box::new(left), Box::new(right)), at)?;
        }
        Ok(left)
    }

    fn peek_operator(&mut self) -> Option<(&'static str, BinaryOp)> {
        self.skip_blanks();
        let rest = self.rest();
        let spellings = BinaryOp::SPELLINGS.iter();
        let (symbol, op) = *spellings
            .filter(|(symbol, _)| rest.starts_with(symbol))
            .max_by_key(|(symbol, _)| symbol.len())?;
        // Only compound assignments have a `=` left here: `+=`, `<<=`.
        let compares = op.precedence() == 6 || op.precedence() == 7;
        let assigns = !compares && rest[symbol.len()..].starts_with('=');
        (!assigns || rest[symbol.len()..].starts_with("==")).then_some((symbol, op))
    }

    /// Parses an operand with everything that binds to it alone.
    fn operand(&mut self) -> Result<Expr, ParseError> {
        let mut of = self.unary()?;
        while self.eat_word("as") {
            let Some(to) = self.type_name(Style::Rust) else {
                return Err(self.expected("a type"));
            };
            let read = self.slice(of.at.start, self.pos);
            let at = Span {
                start: of.at.start,
                end: of.at.start + read.trim_end().len(),
            };
            let of_boxed = Box::new(of);
            let how = CastKind::Plain;
            let kind = ExprKind::Cast {
                how,
                to,
                of: of_boxed,
            };
            of = self.node(kind, at)?;
        }
        Ok(of)
    }

    pub(super) fn unary(&mut self) -> Result<Expr, ParseError> {
        self.nested(|parser| {
            let start = parser.here();
            if parser.looking_at("++") || parser.looking_at("--") {
                let error = parser.error("\"++\" and \"--\" are not supported");
                return Err(error.with_hint("write \"+ 1\" or \"- 1\""));
            }
            if parser.looking_at("&&") {
                return Err(parser.expected("an expression"));
            }
            const OPERATORS: [UnaryOp; 6] = [
                UnaryOp::Deref,
                UnaryOp::AddressOf,
                UnaryOp::Negate,
                UnaryOp::Plus,
                UnaryOp::Not,
                UnaryOp::Complement,
            ];
            let Some(op) = OPERATORS.into_iter().find(|op| parser.eat(op.symbol())) else {
                return parser.cast_or_postfix();
            };
            if op == UnaryOp::AddressOf {
                parser.eat_mut();
            }
            let of = parser.unary()?;
            let end = of.at.end;
            parser.node(ExprKind::Unary(op, Box::new(of)), Span { start, end })
        })
    }

    /// Rust's `&mut x` means `&x` here.
    fn eat_mut(&mut self) {
        let before = self.pos;
        if self.eat_word("mut") && !self.starts_operand() {
            self.pos = before;
        }
    }

    /// Parses `(type) operand`, or an expression that begins differently.
    fn cast_or_postfix(&mut self) -> Result<Expr, ParseError> {
        let start = self.here();
        if self.eat("(") {
            if let Some(to) = self.type_name(Style::C)
                && self.eat(")")
                && self.is_conversion(&to)
            {
                let of = Box::new(self.unary()?);
                let end = of.at.end;
                let how = CastKind::Plain;
                return self.node(ExprKind::Cast { how, to, of }, Span { start, end });
            }
            self.pos = start;
        }
        self.postfix()
    }

    /// Parses a conversion written as in C++: `static_cast<T>(x)`. Otherwise consumes nothing.
    pub(super) fn worded_cast(&mut self, start: usize) -> Result<Option<Expr>, ParseError> {
        let mut words = CastKind::WORDS.into_iter();
        let Some((_, how)) = words.find(|(word, _)| self.eat_word(word)) else {
            return Ok(None);
        };
        self.expect("<")?;
        let Some(to) = self.type_name(Style::C) else {
            return Err(self.expected("a type"));
        };
        self.expect(">")?;
        self.expect("(")?;
        let of = Box::new(self.expression()?);
        self.expect(")")?;
        let end = self.pos;
        self.node(ExprKind::Cast { how, to, of }, Span { start, end })
            .map(Some)
    }

    /// Returns whether the type in parentheses, which were just consumed, converts what follows.
    fn is_conversion(&mut self, to: &super::super::ast::TypeName) -> bool {
        if to.certain {
            return true;
        }
        match self.peek() {
            Some('-' | '+' | '*' | '&' | '(') => {
                let member = self.looking_at("->") || self.looking_at("&&");
                !member && !self.assigns_here() && (self.is_type)(&to.text)
            }
            Some('!') => !self.looking_at("!="),
            Some('=') => false,
            _ => self.peek_word() != Some("as") && self.starts_operand(),
        }
    }

    /// Returns whether a compound assignment begins here.
    fn assigns_here(&mut self) -> bool {
        ["-=", "+=", "*=", "&="]
            .iter()
            .any(|op| self.looking_at(op))
    }

    /// Returns whether something begins here that is not a binary operator.
    fn starts_operand(&mut self) -> bool {
        self.peek().is_some_and(|c| {
            c.is_alphanumeric() || matches!(c, '_' | '$' | '"' | '\'' | '!' | '~' | '(')
        })
    }

    /// Parses `sizeof (type)`, `sizeof operand`, or the same with `alignof`. Otherwise consumes nothing.
    pub(super) fn measure(&mut self, start: usize) -> Result<Option<Expr>, ParseError> {
        let is_size = self.eat_word("sizeof");
        if !is_size && !self.eats_align_of() {
            return Ok(None);
        }
        if let Some(of) = self.type_in_parentheses() {
            let end = self.pos;
            let kind = match is_size {
                true => ExprKind::SizeOfType(of),
                false => ExprKind::AlignOfType(of),
            };
            return self.node(kind, Span { start, end }).map(Some);
        }
        let of = Box::new(self.unary()?);
        let end = of.at.end;
        let kind = match is_size {
            true => ExprKind::SizeOf(of),
            false => ExprKind::AlignOf(of),
        };
        self.node(kind, Span { start, end }).map(Some)
    }

    /// Consumes `alignof (`, without the parenthesis. A variable may be called `alignof` in C.
    fn eats_align_of(&mut self) -> bool {
        let before = self.pos;
        let is_word = self.eat_word("alignof") || self.eat_word("_Alignof");
        let found = is_word && self.looking_at("(");
        if !found {
            self.pos = before;
        }
        found
    }

    /// Parses `(type)`. Otherwise consumes nothing.
    fn type_in_parentheses(&mut self) -> Option<TypeName> {
        let before = self.here();
        if self.eat("(")
            && let Some(of) = self.type_name(Style::C)
            && self.eat(")")
            && (of.certain || (self.is_type)(&of.text))
        {
            return Some(of);
        }
        self.pos = before;
        None
    }
}

/// Returns the span from the start of one node to the end of another.
pub(super) fn from_to(first: &Expr, last: &Expr) -> Span {
    Span {
        start: first.at.start,
        end: last.at.end,
    }
}

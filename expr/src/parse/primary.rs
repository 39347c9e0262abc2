//! Operands: names, registers, literals, parentheses, and their postfixes.

use crate::ast::{CastKind, Expr, ExprKind, Literal, Span, UnaryOp};
use crate::parse::path::In;
use crate::parse::types::Style;
use crate::parse::{ParseError, Parser};

impl Parser<'_> {
    /// Parses a primary with all its members, indices and calls.
    pub(super) fn postfix(&mut self) -> Result<Expr, ParseError> {
        let start = self.here();
        let mut of = self.primary()?;
        // Parentheses belong to the span of what they enclose.
        of.at.start = start.min(of.at.start);
        loop {
            let kind = if self.looking_at(".*") || self.looking_at("->*") {
                return Ok(of);
            } else if self.eat("->") {
                self.member(of, true)?
            } else if self.looking_at(".") && !self.looking_at("..") {
                self.pos += 1;
                self.member(of, false)?
            } else if self.eat("[") {
                self.index(of)?
            } else if self.eat("(") {
                let arguments = self.arguments()?;
                ExprKind::Call {
                    function: Box::new(of),
                    arguments,
                }
            } else {
                return Ok(of);
            };
            let end = self.pos;
            of = self.node(kind, Span { start, end })?;
        }
    }

    fn member(&mut self, of: Expr, arrow: bool) -> Result<ExprKind, ParseError> {
        self.skip_blanks();
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let name = if digits > 0 {
            let name = self.slice(self.pos, self.pos + digits).to_owned();
            self.pos += digits;
            name
        } else {
            match self.path(In::Member) {
                Some(path) => path.text,
                None => return Err(self.expected("the name of a member")),
            }
        };
        Ok(ExprKind::Member {
            of: Box::new(of),
            name,
            arrow,
        })
    }

    /// Parses `index]` or `from..to]`.
    fn index(&mut self, of: Expr) -> Result<ExprKind, ParseError> {
        let of = Box::new(of);
        let from = match self.looking_at("..") {
            true => None,
            false => Some(Box::new(self.expression()?)),
        };
        if self.eat("]")
            && let Some(index) = from
        {
            return Ok(ExprKind::Index { of, index });
        }
        if !self.eat("..") {
            return Err(self.expected("\"]\" or \"..\""));
        }
        let inclusive = self.eat("=");
        let to = match !inclusive && self.looking_at("]") {
            true => None,
            false => Some(Box::new(self.expression()?)),
        };
        self.expect("]")?;
        Ok(ExprKind::Range {
            of,
            from,
            to,
            inclusive,
        })
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, ParseError> {
        let mut arguments = Vec::new();
        while !self.eat(")") {
            if !arguments.is_empty() && !self.eat(",") {
                return Err(self.expected("\",\" or \")\""));
            }
            arguments.push(self.expression()?);
        }
        Ok(arguments)
    }

    fn primary(&mut self) -> Result<Expr, ParseError> {
        let start = self.here();
        if let Some(measure) = self.measure(start)? {
            return Ok(measure);
        }
        if let Some(cast) = self.worded_cast(start)? {
            return Ok(cast);
        }
        if let Some(name) = self.name_of_module() {
            return self.leaf(ExprKind::Name(name), start);
        }
        if let Some(literal) = self.quoted()? {
            return self.leaf(ExprKind::Literal(literal), start);
        }
        if let Some(path) = self.path(In::Expression) {
            let literal = match path.text.as_str() {
                _ if path.raw => None,
                "true" => Some(Literal::Bool(true)),
                "false" => Some(Literal::Bool(false)),
                "null" | "nullptr" | "NULL" => Some(Literal::Null),
                _ => None,
            };
            let kind = literal.map_or(ExprKind::Name(path.text), ExprKind::Literal);
            return self.leaf(kind, start);
        }
        match self.peek() {
            Some('(') => self.parentheses(),
            Some('{') => self.at_address(start),
            Some('0'..='9') => self.number_leaf(start),
            Some('.') if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.number_leaf(start)
            }
            Some('$') => self.after_dollar(start),
            _ => Err(self.expected("an expression")),
        }
    }

    /// Parses gdb's `{type} address`, which is `*(type*) address`.
    fn at_address(&mut self, start: usize) -> Result<Expr, ParseError> {
        self.expect("{")?;
        let Some(mut to) = self.type_name(Style::C) else {
            return Err(self.expected("a type"));
        };
        self.expect("}")?;
        to.text.push('*');
        to.certain = true;
        let of = Box::new(self.unary()?);
        let end = of.at.end;
        let how = CastKind::Plain;
        let pointer = self.node(ExprKind::Cast { how, to, of }, Span { start, end })?;
        let target = ExprKind::Unary(UnaryOp::Deref, Box::new(pointer));
        self.node(target, Span { start, end })
    }

    fn number_leaf(&mut self, start: usize) -> Result<Expr, ParseError> {
        let literal = self.number()?;
        self.leaf(ExprKind::Literal(literal), start)
    }

    fn parentheses(&mut self) -> Result<Expr, ParseError> {
        self.expect("(")?;
        let mut inside = self.expression()?;
        if !self.eat(")") {
            return Err(self.expected("an operator or \")\""));
        }
        inside.at.end = self.pos;
        Ok(inside)
    }

    /// Parses `$rax`, `$name`, `$1`, `$`, `$$` or `$$2`.
    fn after_dollar(&mut self, start: usize) -> Result<Expr, ParseError> {
        self.pos += 1;
        let from = self.pos;
        self.pos += usize::from(self.rest().starts_with('$'));
        let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        let is_part: fn(char) -> bool = match is_number(self.rest()) {
            true => |c| c.is_ascii_digit(),
            // Nothing but a number follows two.
            false if self.pos > from => |_| false,
            false => |c| c.is_alphanumeric() || c == '_',
        };
        let rest = self.rest();
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.pos += len;
        // In JavaScript, $ is a function.
        if self.pos == from && self.rest().starts_with('(') {
            return Err(self.expected("the name of a register"));
        }
        let name = self.slice(from, self.pos).to_owned();
        self.leaf(ExprKind::Register(name), start)
    }

    fn leaf(&self, kind: ExprKind, start: usize) -> Result<Expr, ParseError> {
        let end = self.pos;
        self.node(kind, Span { start, end })
    }
}

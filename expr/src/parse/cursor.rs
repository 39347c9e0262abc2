//! The place in the text that is being read, and what all rules need: blanks, symbols, words, errors.

use crate::ast::{Expr, ExprKind, Span};
use crate::parse::{MAX_HEIGHT, MAX_LENGTH, ParseError};

/// Reads one text from its beginning.
pub(crate) struct Parser<'t> {
    text: &'t str,
    pub(super) pos: usize,
    pub(super) depth: u16,
    pub(super) is_type: &'t dyn Fn(&str) -> bool,
}

impl<'t> Parser<'t> {
    /// Begins at the start of `text`.
    pub(super) fn new(
        text: &'t str,
        is_type: &'t dyn Fn(&str) -> bool,
    ) -> Result<Parser<'t>, ParseError> {
        Parser::within(text, 0, is_type)
    }

    /// Begins at the byte `pos` of `text`.
    pub(crate) fn within(
        text: &'t str,
        pos: usize,
        is_type: &'t dyn Fn(&str) -> bool,
    ) -> Result<Parser<'t>, ParseError> {
        if text.len() > MAX_LENGTH {
            return Err(ParseError::new(
                MAX_LENGTH,
                format!("the text is too long: more than {MAX_LENGTH} bytes"),
            ));
        }
        Ok(Parser {
            text,
            pos,
            depth: 0,
            is_type,
        })
    }

    /// What is left, from the very byte that is next.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    /// The text between two bytes.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    pub(super) fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.pos += rest.len() - rest.trim_start().len();
    }

    /// The next character that is not blank.
    pub(super) fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.rest().chars().next()
    }

    /// The byte at which the next thing begins.
    pub(crate) fn here(&mut self) -> usize {
        self.skip_blanks();
        self.pos
    }

    /// The byte that is next, blank or not.
    pub(crate) fn here_exactly(&self) -> usize {
        self.pos
    }

    /// Goes on at the byte `pos`.
    pub(crate) fn skip_to(&mut self, pos: usize) {
        self.pos = pos;
    }

    pub(super) fn looking_at(&mut self, symbol: &str) -> bool {
        self.skip_blanks();
        self.rest().starts_with(symbol)
    }

    pub(crate) fn eat(&mut self, symbol: &str) -> bool {
        let there = self.looking_at(symbol);
        if there {
            self.pos += symbol.len();
        }
        there
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), ParseError> {
        match self.eat(symbol) {
            true => Ok(()),
            false => Err(self.expected(&format!("\"{symbol}\""))),
        }
    }

    /// The word that begins here, without taking it.
    pub(super) fn peek_word(&mut self) -> Option<&'t str> {
        self.skip_blanks();
        let rest = self.rest();
        let first = rest.chars().next()?;
        if !(first.is_alphabetic() || first == '_') {
            return None;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        Some(&rest[..end.unwrap_or(rest.len())])
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let there = self.peek_word() == Some(word);
        if there {
            self.pos += word.len();
        }
        there
    }

    pub(super) fn word(&mut self) -> Option<&'t str> {
        let word = self.peek_word()?;
        self.pos += word.len();
        Some(word)
    }

    /// Makes a node, unless it would be too high.
    pub(super) fn node(&self, kind: ExprKind, at: Span) -> Result<Expr, ParseError> {
        let node = Expr::new(kind, at);
        match node.height() <= MAX_HEIGHT {
            true => Ok(node),
            false => Err(too_deep(at.start)),
        }
    }

    /// Runs a rule that may contain itself.
    pub(super) fn nested<T>(
        &mut self,
        rule: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= MAX_HEIGHT {
            return Err(too_deep(self.pos));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// Makes sure that nothing is left.
    pub(super) fn end(&mut self) -> Result<(), ParseError> {
        if self.peek().is_none() {
            return Ok(());
        }
        if self.looking_at("=") {
            let error = self.error("\"=\" assigns and is not allowed here");
            return Err(error.with_hint("to compare, write \"==\""));
        }
        Err(self.expected("an operator or the end"))
    }

    pub(super) fn error(&mut self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.here(), message)
    }

    /// Says what would have been right here, and what stands here.
    pub(crate) fn expected(&mut self, what: &str) -> ParseError {
        let found = match self.peek_word() {
            Some(word) => Some(word.to_owned()),
            None => self.peek().map(String::from),
        };
        let message = match found {
            Some(found) => format!("expected {what}, found \"{}\"", found.escape_debug()),
            None => format!("expected {what}"),
        };
        self.error(message)
    }
}

fn too_deep(position: usize) -> ParseError {
    ParseError::new(
        position,
        format!("nested too deeply: more than {MAX_HEIGHT} operations inside each other"),
    )
}

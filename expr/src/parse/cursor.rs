//! The position in the parsed text, and what all rules need: blanks, symbols, words, errors.

use crate::ast::{Expr, ExprKind, Span};
use crate::parse::{MAX_HEIGHT, MAX_LENGTH, ParseError};

/// Parses one text from its start.
pub(crate) struct Parser<'t> {
    text: &'t str,
    pub(super) pos: usize,
    pub(super) depth: u16,
    pub(super) is_type: &'t dyn Fn(&str) -> bool,
}

impl<'t> Parser<'t> {
    pub(super) fn new(
        text: &'t str,
        is_type: &'t dyn Fn(&str) -> bool,
    ) -> Result<Parser<'t>, ParseError> {
        Parser::within(text, 0, is_type)
    }

    /// Starts at byte `pos` of `text`.
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

    /// Returns the rest of the text, starting at the next byte.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    pub(super) fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.pos += rest.len() - rest.trim_start().len();
    }

    /// Returns the next character that is not blank.
    pub(super) fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.rest().chars().next()
    }

    /// Returns the position of the next character that is not blank.
    pub(crate) fn here(&mut self) -> usize {
        self.skip_blanks();
        self.pos
    }

    /// Returns the position of the next byte, blank or not.
    pub(crate) fn here_exactly(&self) -> usize {
        self.pos
    }

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

    /// Returns the word that begins here, without consuming it.
    pub(super) fn peek_word(&mut self) -> Option<&'t str> {
        self.skip_blanks();
        let rest = self.rest();
        let first = rest.chars().next()?;
        if !(first.is_alphabetic() || first == '_') {
            return None;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let end = end.unwrap_or(rest.len());
        Some(&rest[..end + pack_number(&rest[end..])])
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

    /// Checks that nothing is left.
    pub(super) fn end(&mut self) -> Result<(), ParseError> {
        if self.peek().is_none() {
            return Ok(());
        }
        if self.looking_at("=") {
            let error = self.error("\"=\" assigns and is not allowed here");
            return Err(error.with_hint("to compare, write \"==\"; to change a value: set x = 3"));
        }
        Err(self.expected("an operator or the end"))
    }

    pub(super) fn error(&mut self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.here(), message)
    }

    /// Makes an error that states what was expected here, and what was found.
    pub(crate) fn expected(&mut self, what: &str) -> ParseError {
        let found = match self.peek_word() {
            Some(word) => Some(word.to_owned()),
            None => self.peek().map(String::from),
        };
        let message = match found {
            Some(found) => format!("expected {what}, found \"{}\"", found.escape_debug()),
            None => format!("expected {what}"),
        };
        let before = self.slice(0, self.pos).trim_end();
        let counts = before.ends_with("++") || before.ends_with("--");
        match self.error(message) {
            // `x++` is no operator here.
            error if counts => error.with_hint("to change a value: set x = x + 1"),
            error => error,
        }
    }
}

/// Returns the length of the number behind the name of a parameter of a pack: `args#1`.
fn pack_number(rest: &str) -> usize {
    let digits = rest.strip_prefix('#').unwrap_or_default();
    match digits.bytes().take_while(u8::is_ascii_digit).count() {
        0 => 0,
        count => count + 1,
    }
}

fn too_deep(position: usize) -> ParseError {
    ParseError::new(
        position,
        format!("nested too deeply: more than {MAX_HEIGHT} operations inside each other"),
    )
}

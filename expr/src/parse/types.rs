//! Names of types in the syntax of C, C++ and Rust. A rule that does not fit consumes nothing.

use crate::ast::TypeName;
use crate::parse::path::In;
use crate::parse::words::{
    is_builtin_type, is_c_word, is_keyword, is_qualifier, is_special, is_tag,
};
use crate::parse::{ParseError, Parser};

/// The context of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// In parentheses: `*` and `&` may follow it.
    C,
    /// After `as`: `*` and `&` belong to what follows.
    Rust,
    /// Between `<` and `>`.
    Argument,
}

impl Parser<'_> {
    /// Parses a type, if one begins here. Otherwise consumes nothing.
    pub(super) fn type_name(&mut self, style: Style) -> Option<TypeName> {
        let start = self.here();
        let read = self.nested(|parser| {
            let found = parser.rust_type(style).or_else(|| parser.c_type(style));
            found.ok_or_else(|| ParseError::new(start, ""))
        });
        if read.is_err() {
            self.pos = start;
        }
        read.ok()
    }

    /// Parses types with a prefix: references, pointers, slices, tuples, functions.
    fn rust_type(&mut self, style: Style) -> Option<TypeName> {
        let start = self.here();
        let found = self.rust_type_here(style);
        if found.is_none() {
            self.pos = start;
        }
        found
    }

    fn rust_type_here(&mut self, style: Style) -> Option<TypeName> {
        let inner = match style {
            Style::Argument => Style::Argument,
            _ => Style::Rust,
        };
        if self.eat("*") {
            let word = self.word().filter(|w| *w == "const" || *w == "mut")?;
            let to = self.type_name(inner)?;
            return Some(sure(format!("*{word} {}", to.text)));
        }
        if self.eat("&") {
            let lifetime = self.lifetime();
            let mutable = if self.eat_word("mut") { "mut " } else { "" };
            let to = self.type_name(inner)?;
            return Some(TypeName {
                certain: to.certain || lifetime,
                text: format!("&{mutable}{}", to.text),
            });
        }
        if self.eat("[") {
            let of = self.type_name(Style::Rust)?.text;
            let count = if self.eat(";") { self.digits() } else { None };
            self.eat("]").then_some(())?;
            return Some(sure(match count {
                Some(count) => format!("[{of}; {count}]"),
                None => format!("[{of}]"),
            }));
        }
        if self.eat("(") {
            let (list, ends_in_comma) = self.type_list(")")?;
            // A single type without a comma is an expression in parentheses.
            let comma = if list.len() == 1 { "," } else { "" };
            (comma.is_empty() || ends_in_comma).then_some(())?;
            return Some(sure(format!("({}{comma})", list.join(", "))));
        }
        if self.eat_word("dyn") {
            let of = self.type_name(Style::Rust)?;
            return Some(sure(format!("dyn {}", of.text)));
        }
        if self.eat_word("fn") && self.eat("(") {
            let list = self.type_list(")")?.0.join(", ");
            let result = match self.eat("->") {
                true => format!(" -> {}", self.type_name(inner)?.text),
                false => String::new(),
            };
            return Some(sure(format!("fn({list}){result}")));
        }
        None
    }

    fn lifetime(&mut self) -> bool {
        if !self.looking_at("'") {
            return false;
        }
        self.pos += 1;
        self.word().is_some()
    }

    fn digits(&mut self) -> Option<String> {
        self.skip_blanks();
        let length = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let digits = self.slice(self.pos, self.pos + length).to_owned();
        self.pos += length;
        (length > 0).then_some(digits)
    }

    /// Parses types separated by commas, up to `end`. Returns whether there is a comma after the last one.
    fn type_list(&mut self, end: &str) -> Option<(Vec<String>, bool)> {
        let mut list = Vec::new();
        let mut comma = true;
        while !self.eat(end) {
            comma.then_some(())?;
            list.push(self.type_name(Style::Argument)?.text);
            comma = self.eat(",");
        }
        Some((list, comma))
    }

    /// Parses types with a suffix.
    fn c_type(&mut self, style: Style) -> Option<TypeName> {
        let mut words: Vec<String> = Vec::new();
        let (mut certain, mut named) = (false, false);
        loop {
            let word = self.peek_word();
            if let Some(word) = word.filter(|w| is_qualifier(w) || !named && is_tag(w)) {
                self.eat_word(word);
                words.push(word.to_owned());
                certain = true;
            } else if let Some(word) = word.filter(|w| is_builtin_type(w)) {
                let last = words.last().is_none_or(|w| !is_builtin_type(w));
                if named && (last || !is_c_word(word)) {
                    break;
                }
                self.eat_word(word);
                words.push(word.to_owned());
                (certain, named) = (true, true);
            } else if !named
                && !word.is_some_and(is_keyword)
                && let Some(path) = self.path(In::Type)
            {
                // Without its `r#`, it would be another type.
                (!path.raw || !is_special(&path.text)).then_some(())?;
                words.push(path.text);
                named = true;
            } else {
                break;
            }
            // A Rust type is one word.
            if style == Style::Rust && named {
                break;
            }
        }
        named.then_some(())?;
        let mut text = words.join(" ");
        if style != Style::Rust {
            certain |= self.suffixes(&mut text, certain)?;
        }
        Some(TypeName { text, certain })
    }

    /// Parses pointers, references and dimensions after a type. Returns whether one of them cannot be part of an
    /// expression.
    fn suffixes(&mut self, text: &mut String, mut certain: bool) -> Option<bool> {
        loop {
            if self.looking_at("(") {
                let mark = self.pos;
                if !self.pointer_in_parentheses(text) {
                    self.pos = mark;
                    return Some(certain);
                }
                certain = true;
            } else if self.eat("*") {
                text.push('*');
                certain = true;
            } else if self.eat("&") {
                text.push('&');
                certain = true;
            } else if let Some(word) = self.peek_word().filter(|w| is_qualifier(w)) {
                self.eat_word(word);
                text.push(' ');
                text.push_str(word);
                certain = true;
            } else if certain && self.eat("[") {
                let count = self.digits().unwrap_or_default();
                self.eat("]").then_some(())?;
                text.push_str(&format!("[{count}]"));
            } else {
                return Some(certain);
            }
        }
    }

    /// Parses `(*)(int, char)` or `(*)[4]`. The appended text remains only if the whole type was parsed.
    fn pointer_in_parentheses(&mut self, text: &mut String) -> bool {
        if !self.eat("(") {
            return false;
        }
        let mut stars = String::new();
        while self.eat("*") {
            stars.push('*');
        }
        if stars.is_empty() || !self.eat(")") {
            return false;
        }
        if stars == "*" && self.eat("(") {
            let list = self.type_list(")");
            return list.is_some_and(|(list, _)| {
                text.push_str(&format!(" (*)({})", list.join(", ")));
                true
            });
        }
        let mut dimensions = String::new();
        while self.eat("[") {
            let count = self.digits().unwrap_or_default();
            if !self.eat("]") {
                return false;
            }
            dimensions.push_str(&format!("[{count}]"));
        }
        if dimensions.is_empty() {
            return false;
        }
        text.push_str(&format!(" ({stars}){dimensions}"));
        true
    }
}

fn sure(text: String) -> TypeName {
    TypeName {
        text,
        certain: true,
    }
}

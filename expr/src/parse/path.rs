//! Names with scopes and template arguments.

use crate::parse::Parser;
use crate::parse::types::Style;
use crate::parse::words::{is_builtin_type, is_keyword};

const ANONYMOUS: &str = "(anonymous namespace)";

/// The context of a path, which decides the meaning of a `<` after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum In {
    /// It may be a comparison.
    Expression,
    /// It begins template arguments.
    Type,
    /// It is a comparison, unless another scope follows.
    Member,
}

pub(super) struct Path {
    /// Without blanks, except after commas and inside types.
    pub text: String,
    /// Written as `r#name`, so it is not a keyword.
    pub raw: bool,
}

impl Parser<'_> {
    /// Parses a path, if one begins here. Otherwise consumes nothing.
    pub(super) fn path(&mut self, within: In) -> Option<Path> {
        let start = self.here();
        let mut text = String::new();
        if within != In::Member && self.eat("::") {
            text.push_str("::");
        }
        let raw = text.is_empty() && self.looking_at("r#") && !self.looking_at("r#\"");
        if raw {
            self.pos += 2;
        }
        if !self.segment(&mut text, raw) {
            self.pos = start;
            return None;
        }
        // A one-word type has no scope, template arguments or member.
        if is_keyword(&text) && !raw {
            return Some(Path { text, raw });
        }
        loop {
            let mark = self.pos;
            let length = text.len();
            let takes_arguments = !text.ends_with('>') && !is_builtin_type(&text);
            if self.eat("::") {
                text.push_str("::");
                if takes_arguments
                    && self.looking_at("<")
                    && self.template_arguments(within, true, &mut text)
                {
                    continue;
                }
                if self.segment(&mut text, false) {
                    continue;
                }
                self.pos = mark;
                text.truncate(length);
            } else if self.looking_at("<")
                && takes_arguments
                && self.template_arguments(within, false, &mut text)
            {
                continue;
            }
            self.pos = mark;
            break;
        }
        Some(Path { text, raw })
    }

    /// Parses a name qualified with a module whose file name is not a word: `libc.so.6::environ`, `'a.out'::total`.
    /// Otherwise consumes nothing.
    pub(super) fn name_of_module(&mut self) -> Option<String> {
        let start = self.here();
        let rest = self.rest();
        let length = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.find('\'').filter(|end| *end > 0)? + 2,
            None => {
                let is_of_file = |c: char| c.is_alphanumeric() || "_.+-".contains(c);
                let end = rest.find(|c| !is_of_file(c))?;
                rest[..end].contains(".so").then_some(end)?
            }
        };
        let file = rest[..length].to_owned();
        if file.contains(char::is_whitespace) || !rest[length..].starts_with("::") {
            return None;
        }
        self.pos = start + length + 2;
        match self.path(In::Expression) {
            Some(path) => Some(format!("{file}::{}", path.text)),
            None => {
                self.pos = start;
                None
            }
        }
    }

    /// Parses a word, `~word` after a scope, or one of the names in braces that rustc gives to closures and blocks.
    fn segment(&mut self, text: &mut String, raw: bool) -> bool {
        let scoped = text.ends_with("::");
        if !raw && self.looking_at(ANONYMOUS) {
            let mark = self.pos;
            self.pos += ANONYMOUS.len();
            if self.looking_at("::") {
                text.push_str(ANONYMOUS);
                return true;
            }
            self.pos = mark;
        }
        if scoped && self.looking_at("{") {
            let rest = self.rest();
            let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '#' | ' ');
            let length = rest[1..].chars().take_while(|c| inside(*c)).count();
            let name = rest.char_indices().nth(length + 1);
            if let Some((end, '}')) = name
                && length > 0
            {
                text.push_str(&rest[..=end]);
                self.pos += end + 1;
                return true;
            }
            return false;
        }
        let mark = self.pos;
        let tilde = scoped && self.eat("~");
        let Some(word) = self.word() else {
            self.pos = mark;
            return false;
        };
        if tilde {
            text.push('~');
        }
        text.push_str(word);
        true
    }

    /// Parses `<...>`, if these are template arguments, and appends it to `text`. Otherwise consumes nothing.
    /// `turbofish`: there is a `::` before it.
    fn template_arguments(&mut self, within: In, turbofish: bool, text: &mut String) -> bool {
        let (mark, length) = (self.pos, text.len());
        if turbofish {
            // Rust's names have no `::` there.
            text.truncate(length - 2);
        }
        let certain = self.nested(|parser| Ok(parser.argument_list(text)));
        let accepted = match certain {
            Ok(Some(certain)) => {
                let scope = self.rest().starts_with("::");
                match within {
                    In::Type => true,
                    In::Member => scope,
                    In::Expression => scope || turbofish || certain || (self.is_type)(text),
                }
            }
            _ => false,
        };
        if !accepted {
            self.pos = mark;
            text.truncate(length);
            if turbofish {
                text.truncate(length - 2);
                text.push_str("::");
            }
        }
        accepted
    }

    /// Parses arguments from `<` to `>`. Returns whether one of them cannot be an expression.
    fn argument_list(&mut self, text: &mut String) -> Option<bool> {
        let mut certain = false;
        self.eat("<").then_some(())?;
        text.push('<');
        let mut first = true;
        while !self.eat(">") {
            if !first {
                self.eat(",").then_some(())?;
                text.push_str(", ");
            }
            first = false;
            if let Some(argument) = self.constant_argument() {
                text.push_str(argument);
            } else {
                let argument = self.type_name(Style::Argument)?;
                certain |= argument.certain;
                text.push_str(&argument.text);
            }
        }
        text.push('>');
        Some(certain)
    }

    /// Parses a number, possibly negative, or a lifetime.
    fn constant_argument(&mut self) -> Option<&str> {
        self.skip_blanks();
        let rest = self.rest();
        let body = rest.strip_prefix(['-', '\'']).unwrap_or(rest);
        let length = body
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
            .count();
        let number = body.starts_with(|c: char| c.is_ascii_digit());
        let lifetime = rest.starts_with('\'') && length > 0;
        if !number && !lifetime {
            return None;
        }
        let end = rest.len() - body.len() + length;
        let start = self.pos;
        self.pos += end;
        Some(self.slice(start, start + end))
    }
}

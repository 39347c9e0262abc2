//! Reads expressions by precedence.

use super::{Binary, MAX_DEPTH, Pattern, Script, Unary};

/// All signs of the language, longer ones before those that they begin with (ECMAScript 12.8).
const SIGNS: [&str; 57] = [
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=",
    "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
    "<<", ">>", "**", "{", "}", "(", ")", "[", "]", ";", ",", "<", ">", "+", "-", "*", "/", "%",
    "&", "|", "^", "!", "~", "?", ":", "=", ".",
];
/// Words that are no names, and those that begin what is not read here.
const WORDS: [&str; 46] = [
    "arguments",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "throw",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "state",
];

/// What is not read, as a sentence.
pub(super) type Read<T> = Result<T, String>;

/// Reads a whole text.
///
/// # Errors
/// It is no expression, or one with something that is not compiled.
pub(in crate::expr) fn parse(text: &str) -> Read<Script> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    let expression = reader.expression()?;
    reader.skip_blanks();
    match reader.rest() {
        "" => Ok(expression),
        rest => Err(unusual(rest)),
    }
}

/// Says that something is not compiled.
fn unusual(rest: &str) -> String {
    let word: String = rest.chars().take_while(|c| is_name(*c)).take(32).collect();
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
    match (word.as_str(), sign, rest.chars().next()) {
        ("", Some(sign), _) => format!("\"{sign}\" is not compiled there"),
        ("", None, Some(c)) => format!("\"{c}\" is not compiled there"),
        ("", None, None) => "it ends too early".to_owned(),
        (word, ..) => format!("\"{word}\" is not compiled there"),
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// A place in a text.
pub(super) struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    pub fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.skip(next.len_utf8());
        Some(next)
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.skip(rest.len() - rest.trim_start().len());
    }

    /// The sign that begins here; none where a comment does.
    fn sign(&mut self) -> Option<&'static str> {
        self.skip_blanks();
        let rest = self.rest();
        let is_comment = ["//", "/*", "<!--", "-->"]
            .iter()
            .any(|sign| rest.starts_with(sign));
        if is_comment {
            return None;
        }
        let sign = *SIGNS.iter().find(|sign| rest.starts_with(**sign))?;
        // `a?.5:b` chooses.
        let digit = rest[sign.len()..].starts_with(|c: char| c.is_ascii_digit());
        Some(match (sign, digit) {
            ("?.", true) => "?",
            _ => sign,
        })
    }

    fn eat(&mut self, sign: &str) -> bool {
        let is_there = self.sign() == Some(sign);
        if is_there {
            self.skip(sign.len());
        }
        is_there
    }

    fn expect(&mut self, sign: &str) -> Read<()> {
        match self.eat(sign) {
            true => Ok(()),
            false => Err(unusual(self.rest())),
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth == MAX_DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    fn expression(&mut self) -> Read<Script> {
        self.nested(|reader| {
            let condition = reader.binary(0)?;
            if !reader.eat("?") {
                return Ok(condition);
            }
            let if_true = reader.expression()?;
            reader.expect(":")?;
            let if_false = reader.expression()?;
            Ok(Script::Conditional {
                condition: Box::new(condition),
                if_true: Box::new(if_true),
                if_false: Box::new(if_false),
            })
        })
    }

    /// Operators that bind more tightly than `above`.
    fn binary(&mut self, above: u8) -> Read<Script> {
        let mut left = self.unary()?;
        let mut count = 0;
        while let Some(sign) = self.sign() {
            let Some((op, binds)) = Binary::by_symbol(sign) else {
                break;
            };
            if binds <= above {
                break;
            }
            count += 1;
            if count > MAX_DEPTH {
                return Err("it has too many parts".to_owned());
            }
            self.skip(sign.len());
            // Powers are read from the right.
            let above = if op == Binary::Power {
                binds - 1
            } else {
                binds
            };
            let right = self.nested(|reader| reader.binary(above))?;
            left = Script::Binary(op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Read<Script> {
        self.nested(|reader| {
            let op = match reader.sign() {
                Some("!") => Unary::Not,
                Some("~") => Unary::Complement,
                Some("-") => Unary::Negate,
                Some("+") => Unary::Plus,
                _ if reader.eat_word("typeof") => {
                    return Ok(Script::Unary(Unary::TypeOf, Box::new(reader.unary()?)));
                }
                _ => return reader.postfix(),
            };
            reader.skip(1);
            Ok(Script::Unary(op, Box::new(reader.unary()?)))
        })
    }

    fn postfix(&mut self) -> Read<Script> {
        let mut of = self.primary()?;
        for _ in 0..MAX_DEPTH {
            let boxed = |of| Box::new(of);
            of = match self.sign() {
                Some(sign @ ("." | "?.")) => {
                    self.skip(sign.len());
                    let optional = sign == "?.";
                    match (optional, self.sign()) {
                        (true, Some("[")) => {
                            self.skip(1);
                            let index = Box::new(self.expression()?);
                            self.expect("]")?;
                            Script::Index {
                                of: boxed(of),
                                index,
                                optional,
                            }
                        }
                        _ => Script::Member {
                            of: boxed(of),
                            name: self.name().ok_or_else(|| unusual(self.rest()))?,
                            optional,
                        },
                    }
                }
                Some("[") => {
                    self.skip(1);
                    let index = Box::new(self.expression()?);
                    self.expect("]")?;
                    Script::Index {
                        of: boxed(of),
                        index,
                        optional: false,
                    }
                }
                Some("(") => {
                    self.skip(1);
                    Script::Call {
                        function: boxed(of),
                        arguments: self.list(")")?,
                    }
                }
                _ if self.rest().starts_with('`') => return Err(unusual("`")),
                _ => return Ok(of),
            };
        }
        Err("it has too many parts".to_owned())
    }

    /// Expressions with commas between them, up to `end`.
    fn list(&mut self, end: &str) -> Read<Vec<Script>> {
        let mut list = Vec::new();
        while !self.eat(end) {
            list.push(self.expression()?);
            if !self.eat(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(list)
    }

    fn primary(&mut self) -> Read<Script> {
        match self.sign() {
            Some("(") => {
                self.skip(1);
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(Script::Group(Box::new(inner)));
            }
            Some("[") => {
                self.skip(1);
                return self.list("]").map(Script::List);
            }
            Some("/" | "/=") => {
                self.skip(1);
                return self.pattern().map(Script::Pattern);
            }
            _ => {}
        }
        let rest = self.rest();
        let first = rest.chars().next().ok_or_else(|| unusual(rest))?;
        if matches!(first, '"' | '\'' | '`') {
            return self.text().map(Script::Text);
        }
        if first.is_ascii_digit() || first == '.' {
            return self.number().map(Script::Number);
        }
        let name = self.name().ok_or_else(|| unusual(rest))?;
        Ok(match name.as_str() {
            "true" | "false" => Script::Bool(name == "true"),
            "null" => Script::Null,
            word if WORDS.contains(&word) => return Err(unusual(rest)),
            _ => Script::Name(name),
        })
    }

    /// A name, or a word that is none.
    fn name(&mut self) -> Option<String> {
        self.skip_blanks();
        let rest = self.rest();
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let is_one = end > 0 && !rest.starts_with(|c: char| c.is_numeric());
        self.skip(if is_one { end } else { 0 });
        is_one.then(|| rest[..end].to_owned())
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let before = self.at;
        let is_there = self.name().as_deref() == Some(word);
        if !is_there {
            self.at = before;
        }
        is_there
    }

    /// A regular expression behind its first stroke.
    fn pattern(&mut self) -> Read<Pattern> {
        let mut pattern = Pattern {
            text: String::new(),
            at_start: false,
            at_end: false,
        };
        loop {
            let is_first = pattern.text.is_empty() && !pattern.at_start;
            match self.next() {
                _ if pattern.at_end && !self.text[..self.at].ends_with('/') => break,
                Some('/') if !self.rest().starts_with(is_name) => return Ok(pattern),
                Some('^') if is_first => pattern.at_start = true,
                Some('$') => pattern.at_end = true,
                Some('\\') => match self.next() {
                    Some(c) if c.is_ascii_punctuation() => pattern.text.push(c),
                    _ => break,
                },
                Some(c) if !"^.*+?()[]{}|/\n\r\u{2028}\u{2029}".contains(c) => pattern.text.push(c),
                _ => break,
            }
        }
        Err("such a regular expression is not compiled".to_owned())
    }
}

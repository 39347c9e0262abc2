//! Reads numbers and texts.

use super::parse::{Read, Reader};

/// The first whole number that doubles leave out is one above this.
const EXACT: u64 = 1 << 53;

fn refused(what: &str) -> String {
    format!("such a {what} is not compiled")
}

impl Reader<'_> {
    /// A number (ECMAScript 12.9.3), also `0x1f` and `1_000`.
    pub(super) fn number(&mut self) -> Read<f64> {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
        let mut end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let has_prefix = rest.len() > 1 && rest.starts_with('0') && !rest[1..].starts_with('.');
        // The sign of an exponent.
        let exponent = rest[..end].ends_with(['e', 'E']) && !has_prefix;
        if exponent && rest[end..].starts_with(['+', '-']) {
            let behind = &rest[end + 1..];
            end += 1 + behind.find(|c| !is_part(c)).unwrap_or(behind.len());
        }
        let text = &rest[..end];
        self.skip(end);
        let digits = text.replace('_', "");
        let base = match digits.get(..2) {
            Some("0x" | "0X") => 16,
            Some("0o" | "0O") => 8,
            Some("0b" | "0B") => 2,
            _ => 10,
        };
        if base != 10 {
            let number = u64::from_str_radix(&digits[2..], base).ok();
            let number = number.filter(|number| *number <= EXACT);
            return number.map(|n| n as f64).ok_or_else(|| refused("number"));
        }
        let is_octal = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        let is_plain = digits
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
        match digits.parse() {
            Ok(number) if is_plain && !is_octal => Ok(number),
            _ => Err(refused("number")),
        }
    }

    /// A text in quotes, or a template without parts.
    pub(super) fn text(&mut self) -> Read<String> {
        let quote = self.next();
        let is_template = quote == Some('`');
        let mut text = String::new();
        loop {
            let next = self.next();
            if next == quote && next.is_some() {
                return Ok(text);
            }
            match next {
                Some('\\') => text.push(self.escaped()?),
                Some('$') if is_template && self.rest().starts_with('{') => break,
                Some('\n') if !is_template => break,
                None | Some('\r') => break,
                Some(c) => text.push(c),
            }
        }
        Err(refused("text"))
    }

    /// What follows a backslash.
    fn escaped(&mut self) -> Read<char> {
        let c = self.next().ok_or_else(|| refused("text"))?;
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'x' => self.code(2)?,
            'u' => match self.rest().starts_with('{') {
                true => {
                    self.skip(1);
                    let end = self.rest().find('}').ok_or_else(|| refused("text"))?;
                    let code = self.code(end)?;
                    self.skip(1);
                    code
                }
                false => self.code(4)?,
            },
            '0' if !self.rest().starts_with(|c: char| c.is_ascii_digit()) => '\0',
            '0'..='9' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => return Err(refused("text")),
            c => c,
        })
    }

    /// A character by its number, of so many digits. Half of a pair is none.
    fn code(&mut self, digits: usize) -> Read<char> {
        let text = self.rest().get(..digits).unwrap_or_default();
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.skip(text.len());
        let code = u32::from_str_radix(text, 16).ok().filter(|_| is_number);
        let c = code.and_then(char::from_u32);
        c.ok_or_else(|| refused("text"))
    }
}

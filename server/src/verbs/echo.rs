//! `echo`: a text, with the escapes of C: for scripts and for the lines of a breakpoint.

use std::iter::Peekable;
use std::str::Chars;

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word, printf};
use crate::protocol::Failure;

/// The `echo` verb.
pub struct Echo;

/// The arguments of `echo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EchoArgs {
    /// The text, with escapes.
    pub text: String,
}

/// The reply of `echo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoReply {
    /// The text, without escapes.
    pub text: String,
}

impl Verb for Echo {
    const NAME: &'static str = "echo";
    const DOC: &'static str = "Write a text: echo total is:\\n\n\nThe escapes are those of C and gdb: \\n \\t \\a \\b \\e \\f \\r \\v \\\" and up to three octal digits; a backslash before a space keeps it at the beginning. The text's last line ends in any case.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = EchoArgs;
    type Reply = EchoReply;

    fn run(_: &Call<'_>, args: EchoArgs) -> Result<EchoReply, Failure> {
        let text = unescaped(args.text.trim_start());
        Ok(EchoReply { text })
    }
}

impl Command for Echo {
    const WORDS: &'static [Word] =
        &[Word::new("text", "TEXT", Form::Expression, "The text").optional()];

    fn text(reply: &EchoReply, _: &EchoArgs) -> Text {
        Text::lines(reply.text.lines().map(str::to_owned))
    }
}

/// Replaces escapes, as gdb's `echo` does: before any other character, a backslash means nothing.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(escape(&mut chars)),
            c => out.push(c),
        }
    }
    out
}

/// What follows a backslash; `None` at the end of the text.
fn escape(chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    let mut code = 0;
    let mut digits = 0;
    while digits < 3
        && let Some(digit) = chars.peek().and_then(|c| c.to_digit(8))
    {
        code = 8 * code + digit;
        digits += 1;
        chars.next();
    }
    match digits {
        0 => chars.next().map(|c| printf::escaped(c).unwrap_or(c)),
        // As in C, a number of nine bits loses the highest one.
        _ => char::from_u32(code & 0xff),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_gdb() {
        for (text, meant) in [
            ("plain text", "plain text"),
            ("a\\tb\\n", "a\tb\n"),
            ("\\101\\1012 \\0", "AA2 \0"),
            ("\\  lead", "  lead"),
            ("\"quoted\" it's", "\"quoted\" it's"),
            ("back\\\\slash \\q", "back\\slash q"),
            ("end\\", "end"),
            ("", ""),
        ] {
            assert_eq!(unescaped(text), meant, "{text}");
        }
    }
}

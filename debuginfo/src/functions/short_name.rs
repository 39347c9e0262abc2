//! Short names of functions and types, as people use them: without the paths of standard libraries, default template arguments
//! and hashes.
//!
//! They depend only on the full name. A part that is not understood stays unchanged.

mod libraries;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write;

use libraries::shortened;

/// Characters of a name that can be read at a glance.
const BRIEF: usize = 100;
/// Nesting of brackets that is followed.
const MAX_DEPTH: usize = 64;
/// Longest name that is made shorter.
const MAX_LEN: usize = 64 << 10;

/// Texts of which each name with a shorter form has one.
const MARKS: [&str; 7] = [
    "std::",
    "core::",
    "alloc::",
    "__gnu_cxx::",
    "[",
    "> >",
    ">::",
];

/// Returns a short form of the name of a function or type. It is never longer than the full one, and its own short form.
#[must_use]
pub fn short_name(name: &str) -> String {
    let mut short = without_hash(name).to_owned();
    if !MARKS.iter().any(|mark| short.contains(mark)) {
        return short;
    }
    // Each turn makes it shorter, or is the last.
    while short.len() <= MAX_LEN
        && let Some(shorter) = Reader::new(&short).whole()
        && shorter.len() < short.len()
    {
        short = shorter;
    }
    short
}

/// Gives functions of one list that are different and would look the same their full names instead of the short ones. `short` is in
/// the order of `full`.
#[must_use]
pub fn told_apart<S: AsRef<str>>(full: &[S], short: Vec<String>) -> Vec<String> {
    // By short name the full one, if it is only one.
    let mut known: HashMap<&str, Option<&str>> = HashMap::new();
    for (full, short) in full.iter().zip(&short) {
        let full = Some(full.as_ref());
        let of_it = known.entry(short).or_insert(full);
        if *of_it != full {
            *of_it = None;
        }
    }
    let is_shared = |short: &String| known.get(short.as_str()).is_some_and(Option::is_none);
    let are_shared: Vec<bool> = short.iter().map(is_shared).collect();
    let names = short.into_iter().zip(full).zip(are_shared);
    names
        .map(|((short, full), is_shared)| match is_shared {
            true => without_hash(full.as_ref()).to_owned(),
            false => short,
        })
        .collect()
}

/// Returns the short form of a name; if that is still long, without its template arguments.
#[must_use]
pub fn brief_name(name: &str) -> String {
    let short = short_name(name);
    match short.chars().count() <= BRIEF {
        true => short,
        false => without_arguments(&short),
    }
}

/// Returns a name with `<..>` for lists of template arguments. Rust's `<Type as Trait>::f` keeps its outermost brackets.
#[must_use]
pub fn without_arguments(name: &str) -> String {
    let kept = usize::from(name.starts_with('<'));
    let mut depth = 0usize;
    let mut text = String::new();
    let mut before = '\0';
    for c in name.chars() {
        let is_operator = text.ends_with("operator") || text.ends_with("operator<");
        let is_arrow = c == '>' && before == '-';
        match c {
            '<' if !is_operator => {
                depth += 1;
                match depth.cmp(&(kept + 1)) {
                    Ordering::Less => text.push(c),
                    Ordering::Equal => text.push_str("<.."),
                    Ordering::Greater => {}
                }
            }
            '>' if depth > 0 && !is_arrow => {
                if depth <= kept + 1 {
                    text.push(c);
                }
                depth -= 1;
            }
            _ if depth <= kept => text.push(c),
            _ => {}
        }
        before = c;
    }
    text
}

/// Returns the short form of a function's name, in which the innermost closure is called by its file and line.
#[must_use]
pub fn short_name_at(name: &str, file: Option<&str>, line: Option<u32>) -> String {
    let short = short_name(name);
    let (Some(file), Some(line)) = (file, line.filter(|line| *line > 0)) else {
        return short;
    };
    let file = file.rsplit('/').next().unwrap_or(file);
    with_closure_at(&short, file, line).unwrap_or(short)
}

fn with_closure_at(name: &str, file: &str, line: u32) -> Option<String> {
    for (open, word, behind) in [
        ("{closure#", "closure", ""),
        ("{{closure}}", "closure", ""),
        ("{async_fn#", "async_fn", ""),
        ("{async_block#", "async_block", ""),
        ("{async_closure#", "async_closure", ""),
        ("{lambda(", "lambda", "::operator()"),
        // clang's.
        ("$_", "lambda", "::operator()"),
    ] {
        let Some(at) = name.rfind(open) else { continue };
        let Some(len) = closed(&name[at..]) else {
            continue;
        };
        // Only the function itself lies there, not an inner function or one that has it as an argument.
        if &name[at + len..] != behind {
            continue;
        }
        let mut out = name[..at].to_owned();
        // Writing to a String cannot fail.
        _ = write!(out, "{{{word}@{file}:{line}}}");
        return Some(out);
    }
    None
}

/// The length of the name of a closure: up to the brace that closes the first one, or the digits of its number.
fn closed(text: &str) -> Option<usize> {
    if let Some(number) = text.strip_prefix("$_") {
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        return (digits > 0).then_some("$_".len() + digits);
    }
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return Some(at + 1),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A name without the hash that the older mangling of Rust appends.
fn without_hash(name: &str) -> &str {
    const DIGITS: usize = 16;
    let split = name
        .len()
        .checked_sub(DIGITS)
        .and_then(|at| name.split_at_checked(at));
    let Some((before, digits)) = split else {
        return name;
    };
    let is_hash = digits
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    match before.strip_suffix("::h") {
        Some(bare) if is_hash && !bare.is_empty() => bare,
        _ => name,
    }
}

/// A part of a path: a name and its arguments.
#[derive(Debug, Default)]
struct Segment {
    name: String,
    arguments: Option<Vec<String>>,
    /// `::` separates the name and the arguments.
    has_turbofish: bool,
}

impl Segment {
    fn is_plain(&self, name: &str) -> bool {
        self.name == name && self.arguments.is_none()
    }

    fn write(&self, out: &mut String) {
        out.push_str(&self.name);
        let Some(arguments) = &self.arguments else {
            return;
        };
        if self.has_turbofish {
            out.push_str("::");
        }
        // The operator and the bracket would be another operator.
        if self.name.ends_with('<') {
            out.push(' ');
        }
        out.push('<');
        out.push_str(&arguments.join(", "));
        out.push('>');
    }
}

/// Reads a name and writes it shorter.
struct Reader<'n> {
    text: &'n str,
    at: usize,
    depth: usize,
}

impl<'n> Reader<'n> {
    fn new(text: &'n str) -> Reader<'n> {
        let (at, depth) = (0, 0);
        Reader { text, at, depth }
    }

    fn rest(&self) -> &'n str {
        &self.text[self.at..]
    }

    fn take(&mut self, words: &str) -> bool {
        let is_next = self.rest().starts_with(words);
        if is_next {
            self.at += words.len();
        }
        is_next
    }

    /// The name up to its end; `None` if its brackets do not match.
    fn whole(mut self) -> Option<String> {
        let out = self.run(false)?;
        self.rest().is_empty().then_some(out)
    }

    /// The text up to a bracket that closes, or where `is_argument`, up to a comma.
    fn run(&mut self, is_argument: bool) -> Option<String> {
        let mut out = String::new();
        while let Some(next) = self.rest().chars().next() {
            match next {
                _ if self.take("->") => out.push_str("->"),
                _ if self.take("=>") => out.push_str("=>"),
                '>' | ')' | ']' | '}' => break,
                ',' if is_argument => break,
                '<' => {
                    let arguments = self.arguments()?;
                    // `<Vec<T>>::push` is a method of that type itself, not of a trait.
                    let is_path = |only: &str| {
                        let path = only.split('<').next().unwrap_or_default();
                        let is_of_path = |c: char| is_word(c) || c == ':';
                        !only.contains(" as ") && path.chars().all(is_of_path) && !path.is_empty()
                    };
                    match &arguments[..] {
                        [only] if is_path(only) && self.rest().starts_with("::") => {
                            out.push_str(only);
                        }
                        _ => {
                            out.push('<');
                            out.push_str(&arguments.join(", "));
                            out.push('>');
                        }
                    }
                    // What follows belongs to this type, and not to a path of its own.
                    if self.take("::") {
                        out.push_str("::");
                        self.segments(&mut out)?;
                    }
                }
                '(' | '[' | '{' => {
                    let close = match next {
                        '(' => ")",
                        '[' => "]",
                        _ => "}",
                    };
                    out.push(next);
                    self.at += 1;
                    out.push_str(&self.inside(close)?);
                    out.push_str(close);
                }
                _ if is_word(next) || next == '~' => self.path(&mut out)?,
                _ => {
                    out.push(next);
                    self.at += next.len_utf8();
                }
            }
        }
        Some(out)
    }

    /// The text inside brackets, and the closing one.
    fn inside(&mut self, close: &str) -> Option<String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let out = self.run(false)?;
        self.depth -= 1;
        self.take(close).then_some(out)
    }

    /// `<A, B>` as its parts.
    fn arguments(&mut self) -> Option<Vec<String>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH || !self.take("<") {
            return None;
        }
        let mut arguments = Vec::new();
        loop {
            let argument = self.run(true)?;
            arguments.push(argument.trim().to_owned());
            if self.take(">") {
                break;
            }
            if !self.take(",") {
                return None;
            }
        }
        self.depth -= 1;
        Some(arguments)
    }

    fn path(&mut self, out: &mut String) -> Option<()> {
        let segments = self.read_segments()?;
        write_path(shortened(segments), out);
        Some(())
    }

    /// Segments after a type in brackets: none of them is the path of a library.
    fn segments(&mut self, out: &mut String) -> Option<()> {
        let segments = self.read_segments()?;
        write_path(segments, out);
        Some(())
    }

    fn read_segments(&mut self) -> Option<Vec<Segment>> {
        let mut segments = vec![self.segment()?];
        loop {
            let before = self.at;
            if !self.take("::") {
                return Some(segments);
            }
            if self.rest().starts_with('<') {
                let arguments = Some(self.arguments()?);
                match segments.last_mut().filter(|last| last.arguments.is_none()) {
                    // `f::<T>`, but `ptr::<impl *mut T>` is a scope.
                    Some(last) if !is_scope(arguments.as_deref()) => {
                        last.arguments = arguments;
                        last.has_turbofish = true;
                    }
                    _ => segments.push(Segment {
                        arguments,
                        ..Segment::default()
                    }),
                }
                continue;
            }
            let is_segment = |c: char| is_word(c) || matches!(c, '{' | '~' | '(');
            if !self.rest().starts_with(is_segment) {
                self.at = before;
                return Some(segments);
            }
            segments.push(self.segment()?);
        }
    }

    fn segment(&mut self) -> Option<Segment> {
        let mut name = String::new();
        if self.take("~") {
            name.push('~');
        }
        for (open, close) in [('(', ")"), ('{', "}")] {
            if self.rest().starts_with(open) {
                name.push(open);
                self.at += 1;
                name.push_str(&self.inside(close)?);
                name.push_str(close);
            }
        }
        let rest = self.rest();
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        name.push_str(&rest[..end]);
        self.at += end;
        if name == "operator" {
            let symbol = OPERATORS
                .iter()
                .find(|symbol| self.rest().starts_with(**symbol));
            if let Some(symbol) = symbol {
                name.push_str(symbol);
                self.at += symbol.len();
                if symbol.ends_with('<') && self.rest().starts_with(" <") {
                    self.at += 1;
                }
            }
        }
        // The number of a crate, or a tag of the ABI.
        if self.rest().starts_with('[') && !name.is_empty() {
            let end = self.rest().find(']')?;
            let tag = &self.rest()[..=end];
            self.at += tag.len();
            let is_number = tag.len() > 10 && tag[1..end].bytes().all(|b| b.is_ascii_hexdigit());
            if !is_number && !tag.starts_with("[abi:") {
                self.at -= tag.len();
            }
        }
        let arguments = match self.rest().starts_with('<') {
            true => Some(self.arguments()?),
            false => None,
        };
        Some(Segment {
            name,
            arguments,
            has_turbofish: false,
        })
    }
}

fn is_scope(arguments: Option<&[String]>) -> bool {
    match arguments {
        Some([only]) => only.starts_with("impl ") || only.contains(" as "),
        _ => false,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '@')
}

/// What may follow the word `operator`, longer ones first.
const OPERATORS: [&str; 36] = [
    "<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "->", "<=", ">=", "==", "!=", "&&", "||",
    "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<", ">", "=", "!", "+", "-", "*",
    "/", "%", "&", "|",
];

fn write_path(segments: Vec<Segment>, out: &mut String) {
    for (at, segment) in segments.iter().enumerate() {
        if at > 0 {
            out.push_str("::");
        }
        segment.write(out);
    }
}

#[cfg(test)]
mod tests;

//! What was captured with the calls of both recordings, where arguments point to it: texts, which are compared as lines of output
//! are, and values (`pointees`).
//!
//! Only a capture of the very event counts: what else is known of the memory depends on what was captured before. A buffer behind
//! `char *` may hold anything before it is written, so only what surely is text counts there.

use std::sync::Arc;

use debuginfo::types::Language;
use debuginfo::{AddressSpace, Type, TypeKind};
use replay::Timeline;
use rustc_hash::FxHashSet;
use store::control::{FunctionDef, Param, ParameterPlace, ValueKind};
use store::wire::Section;

use super::forms::{Form, Formed, Word};
use super::hash;
use super::output::{Numbers, normal};
use super::places::{Places, is_randomised};
use super::pointees::{self, Part};
use super::run_texts::RunTexts;
use super::side::type_of;
use crate::session::Session;

/// Stands for a target that was not captured, or a text that is none.
const NOTHING: u64 = 0x6e6f_7465_7874;
/// Bytes of a pointer whose highest two are zero, as those of programs are.
const ADDRESS_BYTES: usize = 6;
/// The highest of these: of programs and heaps, of libraries and stacks.
const HIGHEST: [u8; 4] = [0x55, 0x56, 0x7e, 0x7f];

/// What an argument leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Text(Shape),
    Value(Vec<Part>),
}

/// Where the text of an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// At the pointer, up to a NUL.
    Terminated { is_const: bool },
    /// At the pointer in the first word.
    Slice,
    /// At the pointer in the second word.
    View,
    /// At a pointer in the words to which this one points.
    Behind { is_rust: bool },
}

/// An argument that leads to something that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pointer {
    number: usize,
    word: Word,
    target: Target,
    /// The next argument and its bits, if it is the length of the text: what follows in memory is something else.
    len: Option<(Word, u64)>,
}

/// Which targets both recordings have.
#[derive(Clone, Copy, Debug)]
pub struct Captured {
    texts: bool,
    pointees: bool,
}

impl Captured {
    /// Returns what both recordings captured.
    pub fn by_both(a: &Session, b: &Session) -> Captured {
        let have = |what: &str| [a, b].into_iter().all(|session| has(session, what));
        Captured {
            texts: have("texts"),
            pointees: have("pointees"),
        }
    }

    fn any(self) -> bool {
        self.texts || self.pointees
    }
}

/// The targets of one recording's arguments.
pub struct Targets<'s> {
    timeline: Option<&'s Timeline>,
    captured: Captured,
    /// By function id.
    pointers: Vec<Vec<Pointer>>,
    processes: Arc<FxHashSet<u64>>,
    run_texts: Arc<RunTexts>,
}

fn has(session: &Session, what: &str) -> bool {
    let settings = &session.reader().recording().manifest().settings;
    settings.captures.iter().any(|capture| capture == what)
}

impl<'s> Targets<'s> {
    /// Compares nothing yet. Without a timeline it never does.
    pub fn new(
        timeline: Option<&'s Timeline>,
        captured: Captured,
        processes: &Arc<FxHashSet<u64>>,
        run_texts: &Arc<RunTexts>,
    ) -> Self {
        Self {
            timeline,
            captured,
            pointers: Vec::new(),
            processes: Arc::clone(processes),
            run_texts: Arc::clone(run_texts),
        }
    }

    /// Adds the next function: the targets of those arguments that `form` compares, and that the other recording has alike.
    pub fn add(
        &mut self,
        form: &Form,
        (function, space): (&FunctionDef, &AddressSpace),
        (other, other_space): (&FunctionDef, &AddressSpace),
    ) {
        if !self.captured.any() {
            return self.add_none();
        }
        let mut found = pointers_of(function, space, self.captured);
        let others = pointers_of(other, other_space, self.captured);
        found.retain(|pointer| {
            let is_compared = form
                .args
                .iter()
                .any(|(number, _)| *number == pointer.number);
            is_compared && others.contains(pointer)
        });
        self.pointers.push(found);
    }

    /// Adds the next function, of which no target is compared.
    pub fn add_none(&mut self) {
        self.pointers.push(Vec::new());
    }

    /// Adds to the hash of a call's arguments those of their targets.
    #[inline]
    pub fn with(
        &self,
        args: Formed,
        id: usize,
        word: impl Fn(Word) -> Option<u64>,
        start: u64,
        places: &Places,
    ) -> Formed {
        match self.pointers.get(id) {
            Some(pointers) if !pointers.is_empty() => {
                let targets = self.hashes(pointers, word, start, places);
                targets.into_iter().fold(args, |args, (_, target)| Formed {
                    class: hash::fold(args.class, target),
                    exact: hash::fold(args.exact, target),
                })
            }
            _ => args,
        }
    }

    /// Returns the numbers of a call's parameters with targets, and the hashes of these.
    pub fn of_call(
        &self,
        id: u32,
        word: impl Fn(Word) -> Option<u64>,
        start: u64,
        places: &Places,
    ) -> Vec<(usize, u64)> {
        match self.pointers.get(id as usize) {
            Some(pointers) if !pointers.is_empty() => self.hashes(pointers, word, start, places),
            _ => Vec::new(),
        }
    }

    fn hashes(
        &self,
        pointers: &[Pointer],
        word: impl Fn(Word) -> Option<u64>,
        start: u64,
        places: &Places,
    ) -> Vec<(usize, u64)> {
        // A capture that cannot be read is none.
        let captured = self.timeline.and_then(|of| of.captured_with(start).ok()?);
        let hash_of = |pointer: &Pointer| {
            let target = captured.as_ref().and_then(|captured| {
                let address = word(pointer.word)?;
                let sections: Vec<Section<'_>> = captured.sections().collect();
                match &pointer.target {
                    Target::Text(shape) => {
                        let len = |(at, bits): (Word, u64)| Some(word(at)? & bits);
                        let most = pointer.len.and_then(len).unwrap_or(u64::MAX) as usize;
                        let text = self.text(*shape, (address, most), &sections)?;
                        Some(hash::of_bytes(text.as_bytes()))
                    }
                    Target::Value(parts) => {
                        let own = sections.iter().filter(|section| section.addr == address);
                        let bytes = own.max_by_key(|section| section.bytes.len())?.bytes;
                        Some(pointees::hashed(parts, bytes, places, |text| {
                            self.normal(text)
                        }))
                    }
                }
            });
            (pointer.number, target.unwrap_or(NOTHING))
        };
        pointers.iter().map(hash_of).collect()
    }

    /// Returns a text of at most so many bytes without what differs in each run.
    fn text(
        &self,
        shape: Shape,
        (address, most): (u64, usize),
        sections: &[Section<'_>],
    ) -> Option<String> {
        let at = |address: u64| sections.iter().find(|section| section.addr == address);
        let bytes = match shape {
            Shape::Terminated { is_const } => {
                let found = at(address)?.bytes;
                let text = found.split(|byte| *byte == 0).next()?;
                let text = text.get(..most).unwrap_or(text);
                let is_whole = text.len() < found.len();
                let is_told = match is_const {
                    true => is_text(text) && !has_address(text),
                    false => is_whole && is_surely_text(text),
                };
                if !is_told {
                    return None;
                }
                text
            }
            Shape::Slice | Shape::View => at(address)?.bytes,
            Shape::Behind { is_rust } => {
                let words = at(address)?.bytes.as_chunks::<8>().0.iter();
                let mut pointers = words.map(|word| u64::from_le_bytes(*word));
                let found = pointers
                    .find_map(|pointer| at(pointer).filter(|found| found.addr != address))?;
                // In C++, members are called while a string is constructed.
                if !(is_rust || is_surely_text(found.bytes)) {
                    return None;
                }
                found.bytes
            }
        };
        Some(self.normal(&String::from_utf8_lossy(bytes)))
    }

    fn normal(&self, text: &str) -> String {
        let numbers = Numbers {
            processes: &self.processes,
            fixed: &[],
            texts: &self.run_texts,
            clock: self.run_texts.clock(),
        };
        normal(text, numbers)
    }
}

/// Tells whether bytes that may be what is left of other work are text: printable, and without an address at their end.
pub fn is_surely_text(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let is_printable = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    text.chars().all(is_printable) && !ends_as_address(bytes)
}

/// Tells whether bytes up to a NUL may be the end of an address.
fn ends_as_address(bytes: &[u8]) -> bool {
    let is_short = bytes.len() < ADDRESS_BYTES;
    has_address(bytes) || is_short && bytes.last().is_some_and(|last| HIGHEST.contains(last))
}

/// Tells whether bytes up to a NUL may be whole words, the last one of which is an address. Where they are does not count: a text
/// may be elsewhere in another build.
fn has_address(bytes: &[u8]) -> bool {
    let last = bytes.last_chunk::<ADDRESS_BYTES>();
    let is_address = last.is_some_and(|last| {
        let mut word = [0; 8];
        word[..ADDRESS_BYTES].copy_from_slice(last);
        is_randomised(u64::from_le_bytes(word))
    });
    is_address && bytes.len() % 8 == ADDRESS_BYTES
}

/// Tells whether bytes are text; the last character may have been cut.
fn is_text(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

fn pointers_of(function: &FunctionDef, space: &AddressSpace, captured: Captured) -> Vec<Pointer> {
    let Some(ty) = type_of(function, space) else {
        return Vec::new();
    };
    let types = ty.parameters();
    if types.len() != function.params.len() {
        return Vec::new();
    }
    let params = function.params.iter().zip(&types).enumerate();
    let pointer = |(number, (param, ty)): (usize, (&Param, &Type))| {
        let ParameterPlace::Int(at @ ..6) = param.place else {
            return None;
        };
        let target = match shape_of(ty) {
            Some(shape) => Some(Target::Text(shape)).filter(|_| captured.texts),
            None if captured.pointees => Some(Target::Value(pointees::of_pointer(ty))),
            None => None,
        }?;
        let word = match target {
            Target::Text(Shape::View) => Word::Int(at + 1),
            _ => Word::Int(at),
        };
        let len = length_after(&function.params, number)
            .filter(|_| matches!(target, Target::Text(Shape::Terminated { .. })));
        let is_there = !param.is_indirect && word != Word::Int(6);
        let is_empty = target == Target::Value(Vec::new());
        (is_there && !is_empty).then_some(Pointer {
            number,
            word,
            target,
            len,
        })
    };
    params.filter_map(pointer).collect()
}

/// Returns the parameter behind one that points to a text, if it is the length of it: a word, or an `int` with such a name.
fn length_after(params: &[Param], number: usize) -> Option<(Word, u64)> {
    let next = params.get(number + 1)?;
    let ParameterPlace::Int(at @ ..6) = next.place else {
        return None;
    };
    let name = next.name.to_ascii_lowercase();
    let is_named = || {
        ["len", "size", "count", "bytes", "sz"]
            .into_iter()
            .any(|part| name.contains(part))
            || name == "n"
            || name == "l"
    };
    match next.kind {
        ValueKind::Int { bytes: 8, .. } => Some((Word::Int(at), u64::MAX)),
        ValueKind::Int { bytes: 4, .. } if is_named() => Some((Word::Int(at), 0xffff_ffff)),
        _ => None,
    }
}

/// Returns where the text of a parameter is, as the recorder captures it.
fn shape_of(ty: &Type) -> Option<Shape> {
    let ty = ty.strip();
    match ty.kind() {
        TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {
            let target = ty.target()?;
            let value = target.strip();
            if ty.kind() == TypeKind::Pointer && is_character(&value) {
                // Bytes without a sign mostly are data.
                let is_data = value.kind() == TypeKind::Char { signed: false };
                let is_const = target.is_const() && !is_data;
                return Some(Shape::Terminated { is_const });
            }
            let name = value.own_name()?;
            let is_rust = name == "alloc::string::String";
            let is_string = is_rust || is_class(&name, "basic_string");
            is_string.then_some(Shape::Behind { is_rust })
        }
        TypeKind::Struct | TypeKind::Class => match ty.own_name()?.as_str() {
            "&str" | "&mut str" => Some(Shape::Slice),
            name if is_class(name, "basic_string_view") => Some(Shape::View),
            _ => None,
        },
        _ => None,
    }
}

/// Tells whether a type is a byte of text.
pub fn is_character(ty: &Type) -> bool {
    let is_c_char =
        ty.language() == Language::Rust && matches!(ty.kind(), TypeKind::Integer { .. });
    ty.size() == Some(1) && (matches!(ty.kind(), TypeKind::Char { .. }) || is_c_char)
}

/// Matches a class of the standard library for one-byte characters, in any inline namespace.
fn is_class(name: &str, class: &str) -> bool {
    let name = name.strip_prefix("std::").unwrap_or_default();
    let name = name.strip_prefix("__cxx11::").unwrap_or(name);
    let arguments = name.strip_prefix(class).unwrap_or_default();
    arguments.starts_with("<char,") || arguments.starts_with("<char>")
}

#[cfg(test)]
mod tests {
    use super::is_surely_text;

    #[test]
    fn addresses_are_no_text() {
        for (bytes, is_told) in [
            (&b"name"[..], true),
            (b"CPU", true),
            ("gr\u{fc}".as_bytes(), true),
            // A character that was cut.
            (b"gr\xc3", true),
            (b"\x40\x9a\x73\x8a\x55\x55", false),
            (b"0@AAUU", false),
        ] {
            let is_text = super::is_text(bytes) && !super::has_address(bytes);
            assert_eq!(is_text, is_told, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_left_in_a_buffer_is_no_text() {
        for (bytes, expected) in [
            (&b""[..], true),
            (b"anna", true),
            (b"a longer line\n", true),
            ("gr\u{fc}n".as_bytes(), true),
            (b"\x01\x02", false),
            (b"\xff\xfe", false),
            // An address: its last byte is a letter.
            (b"0@AAUU", false),
            (b"12345678PAAAUU", false),
            (b"1234567AAUU", true),
            // The end of one.
            (b"U", false),
            (b"u", true),
        ] {
            assert_eq!(is_surely_text(bytes), expected, "{bytes:?}");
        }
    }
}

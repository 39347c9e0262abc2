//! Texts that were captured with the calls of both recordings, where arguments point to them: they are compared as lines of output are.
//!
//! Only a capture of the very event counts: what else is known of the memory depends on what was captured before. A buffer behind
//! `char *` may hold anything before it is written, so only what surely is text counts there.

use std::sync::Arc;

use debuginfo::types::Language;
use debuginfo::{AddressSpace, Type, TypeKind};
use replay::Timeline;
use rustc_hash::FxHashSet;
use store::control::{FunctionDef, Param, ParameterPlace};
use store::wire::Section;

use super::forms::{Form, Formed, Word};
use super::hash;
use super::output::{Numbers, normal};
use super::places::is_randomised;
use super::run_texts::RunTexts;
use super::side::type_of;
use crate::session::Session;

/// Stands for a text that was not captured, or is none.
const NO_TEXT: u64 = 0x6e6f_7465_7874;
/// Bytes of a pointer whose highest two are zero, as those of programs are.
const ADDRESS_BYTES: usize = 6;

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
    Behind,
}

/// An argument with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    number: usize,
    word: Word,
    shape: Shape,
}

/// The texts of one recording.
pub struct Targets<'s> {
    timeline: Option<&'s Timeline>,
    /// By function id.
    targets: Vec<Vec<Target>>,
    processes: Arc<FxHashSet<u64>>,
    run_texts: Arc<RunTexts>,
}

/// Tells whether a recording has the texts of arguments.
pub fn has_texts(session: &Session) -> bool {
    let settings = &session.reader().recording().manifest().settings;
    settings.captures.iter().any(|capture| capture == "texts")
}

impl<'s> Targets<'s> {
    /// Compares no texts yet. Without a timeline it never does.
    pub fn new(
        timeline: Option<&'s Timeline>,
        processes: &Arc<FxHashSet<u64>>,
        run_texts: &Arc<RunTexts>,
    ) -> Self {
        Self {
            timeline,
            targets: Vec::new(),
            processes: Arc::clone(processes),
            run_texts: Arc::clone(run_texts),
        }
    }

    /// Adds the next function: the texts of those arguments that `form` compares, and that the other recording has alike.
    pub fn add(
        &mut self,
        form: &Form,
        (function, space): (&FunctionDef, &AddressSpace),
        (other, other_space): (&FunctionDef, &AddressSpace),
    ) {
        let mut found = targets_of(function, space);
        let others = targets_of(other, other_space);
        found.retain(|target| {
            let is_compared = form.args.iter().any(|(number, _)| *number == target.number);
            is_compared && others.contains(target)
        });
        self.targets.push(found);
    }

    /// Adds the next function, of which no text is compared.
    pub fn add_none(&mut self) {
        self.targets.push(Vec::new());
    }

    /// Adds to the hash of a call's arguments those of its texts.
    #[inline]
    pub fn with(
        &self,
        args: Formed,
        id: usize,
        word: impl Fn(Word) -> Option<u64>,
        start: u64,
    ) -> Formed {
        match self.targets.get(id) {
            Some(targets) if !targets.is_empty() => {
                let texts = self.hashes(targets, word, start);
                texts.into_iter().fold(args, |args, (_, text)| Formed {
                    class: hash::fold(args.class, text),
                    exact: hash::fold(args.exact, text),
                })
            }
            _ => args,
        }
    }

    /// Returns the numbers of a call's parameters with texts, and the hashes of these.
    pub fn of_call(
        &self,
        id: u32,
        word: impl Fn(Word) -> Option<u64>,
        start: u64,
    ) -> Vec<(usize, u64)> {
        match self.targets.get(id as usize) {
            Some(targets) if !targets.is_empty() => self.hashes(targets, word, start),
            _ => Vec::new(),
        }
    }

    fn hashes(
        &self,
        targets: &[Target],
        word: impl Fn(Word) -> Option<u64>,
        start: u64,
    ) -> Vec<(usize, u64)> {
        // A capture that cannot be read is none.
        let captured = self.timeline.and_then(|of| of.captured_with(start).ok()?);
        let hash_of = |target: &Target| {
            let text = captured.as_ref().and_then(|captured| {
                let address = word(target.word)?;
                let sections: Vec<Section<'_>> = captured.sections().collect();
                self.text(target.shape, address, &sections)
            });
            let hash = text.map_or(NO_TEXT, |text| hash::of_bytes(text.as_bytes()));
            (target.number, hash)
        };
        targets.iter().map(hash_of).collect()
    }

    /// Returns a text without what differs in each run.
    fn text(&self, shape: Shape, address: u64, sections: &[Section<'_>]) -> Option<String> {
        let at = |address: u64| sections.iter().find(|section| section.addr == address);
        let bytes = match shape {
            Shape::Terminated { is_const } => {
                let found = at(address)?.bytes;
                let text = found.split(|byte| *byte == 0).next()?;
                let is_whole = text.len() < found.len();
                if !(is_const || is_whole && is_surely_text(text)) {
                    return None;
                }
                text
            }
            Shape::Slice | Shape::View => at(address)?.bytes,
            Shape::Behind => {
                let words = at(address)?.bytes.as_chunks::<8>().0.iter();
                let mut pointers = words.map(|word| u64::from_le_bytes(*word));
                pointers
                    .find_map(|pointer| at(pointer).filter(|found| found.addr != address))?
                    .bytes
            }
        };
        let numbers = Numbers {
            processes: &self.processes,
            fixed: &[],
            texts: &self.run_texts,
        };
        Some(normal(&String::from_utf8_lossy(bytes), numbers))
    }
}

/// Tells whether bytes that may be what is left of other work are text: printable, and without an address at their end.
fn is_surely_text(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let last = bytes.last_chunk::<ADDRESS_BYTES>();
    let is_address = last.is_some_and(|last| {
        let mut word = [0; 8];
        word[..ADDRESS_BYTES].copy_from_slice(last);
        is_randomised(u64::from_le_bytes(word))
    });
    let is_printable = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    text.chars().all(is_printable) && !(is_address && bytes.len() % 8 == ADDRESS_BYTES)
}

fn targets_of(function: &FunctionDef, space: &AddressSpace) -> Vec<Target> {
    let Some(ty) = type_of(function, space) else {
        return Vec::new();
    };
    let types = ty.parameters();
    if types.len() != function.params.len() {
        return Vec::new();
    }
    let params = function.params.iter().zip(&types).enumerate();
    let target = |(number, (param, ty)): (usize, (&Param, &Type))| {
        let ParameterPlace::Int(at @ ..6) = param.place else {
            return None;
        };
        let shape = shape_of(ty)?;
        let word = match shape {
            Shape::View => Word::Int(at + 1),
            _ => Word::Int(at),
        };
        let is_there = !param.is_indirect && word != Word::Int(6);
        is_there.then_some(Target {
            number,
            word,
            shape,
        })
    };
    params.filter_map(target).collect()
}

/// Returns where the text of a parameter is, as the recorder captures it.
fn shape_of(ty: &Type) -> Option<Shape> {
    let ty = ty.strip();
    match ty.kind() {
        TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {
            let target = ty.target()?;
            let value = target.strip();
            if ty.kind() == TypeKind::Pointer && is_character(&value) {
                let is_const = target.is_const();
                return Some(Shape::Terminated { is_const });
            }
            let name = value.own_name()?;
            let is_string = is_class(&name, "basic_string") || name == "alloc::string::String";
            is_string.then_some(Shape::Behind)
        }
        TypeKind::Struct | TypeKind::Class => match ty.own_name()?.as_str() {
            "&str" | "&mut str" => Some(Shape::Slice),
            name if is_class(name, "basic_string_view") => Some(Shape::View),
            _ => None,
        },
        _ => None,
    }
}

fn is_character(ty: &Type) -> bool {
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
        ] {
            assert_eq!(is_surely_text(bytes), expected, "{bytes:?}");
        }
    }
}

//! Formats containers on one line: in Rust as `{:?}` does, in C++ much as gdb does.

use crate::containers::Container;
use crate::containers::content::{Content, Part};
use crate::containers::items::Items;
use crate::containers::typed_place::{Reach, TypedPlace};
use crate::render::unknown;
use debuginfo::types::Language;
use debuginfo::value::{Look, Value};

/// Most damaged elements that are shown of a container with no intact ones: it is not constructed yet, or destroyed.
const MAX_DAMAGED: usize = 8;

/// Limits of a container's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Elements; `...` stands for the rest.
    pub elements: usize,
    /// Units of a string.
    pub text: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            elements: 200,
            text: 200,
        }
    }
}

/// Formats one value inside a container.
pub type Show<'s> = &'s mut dyn FnMut(&Value) -> String;

impl Container {
    /// Formats the container on one line; `show` formats the values in it. Errors are shown in angle brackets.
    #[must_use]
    pub fn line(&self, limits: &Limits, look: &Look<'_>, show: Show) -> String {
        let reach = self.reach(look.machine, look.space);
        match &self.content {
            Content::Text(text) => {
                let written = text.write(&reach, limits.text as u64);
                written.unwrap_or_else(unknown)
            }
            Content::Sequence(items) | Content::Set(items) | Content::Map(items) => {
                self.elements(items, limits, &reach, show)
            }
            Content::Bits(items) => self.bits(items, limits, &reach),
            Content::Parts { text, .. } => {
                let mut line = self.label.clone();
                for part in text {
                    match part {
                        Part::Words(words) => line.push_str(words),
                        Part::Value(spot) => line.push_str(&show(&self.part(spot, &reach))),
                    }
                }
                line
            }
        }
    }

    fn elements(&self, items: &Items, limits: &Limits, reach: &Reach, show: Show) -> String {
        let is_map = matches!(self.content, Content::Map(_));
        let mut inside = Vec::new();
        let mut write = |spot: &TypedPlace| show(&self.element(spot, reach));
        let walked = items.visit.visit(reach, 0, &mut |element| {
            let is_damaged = |text: &String| text.starts_with("<unknown: corrupt");
            let is_noise = inside.len() >= MAX_DAMAGED && inside.iter().all(is_damaged);
            if inside.len() >= limits.elements || is_noise {
                inside.push("...".to_owned());
                return false;
            }
            let value = write(&element.value);
            inside.push(match (&element.key, self.language) {
                (Some(key), Language::Rust) => format!("{}: {value}", write(key)),
                (Some(key), _) => format!("[{}] = {value}", write(key)),
                (None, _) => value,
            });
            true
        });
        if let Err(why) = walked.map_err(|why| self.mixed(why, reach)) {
            inside.push(unknown(why));
        }
        let inside = without_repeats(inside).join(", ");
        if self.language == Language::Rust {
            return match self.content {
                Content::Sequence(_) => format!("[{inside}]"),
                _ => format!("{{{inside}}}"),
            };
        }
        let len = items.len(&self.reach(reach.machine, reach.space));
        let label = &self.label;
        let front = match (len, is_map) {
            (Ok(1), true) => format!("{label} with 1 element"),
            (Ok(len), true) => format!("{label} with {len} elements"),
            (Ok(len), false) => format!("{label} of length {len}"),
            (Err(_), _) => label.clone(),
        };
        match inside.is_empty() {
            true => front,
            false => format!("{front} = {{{inside}}}"),
        }
    }

    /// Bits as one binary number, whose first digit is the last bit; `...` stands for the higher ones.
    fn bits(&self, items: &Items, limits: &Limits, reach: &Reach) -> String {
        let mut digits = Vec::new();
        let walked = items.visit.visit(reach, 0, &mut |element| {
            if digits.len() >= limits.elements {
                digits.push("...".to_owned());
                return false;
            }
            digits.push(match element.value.number(reach) {
                Ok(0) => "0".to_owned(),
                Ok(_) => "1".to_owned(),
                Err(_) => "?".to_owned(),
            });
            true
        });
        digits.reverse();
        let digits = match walked.map_err(|why| self.mixed(why, reach)) {
            Ok(()) => digits.concat(),
            Err(why) => unknown(why),
        };
        let len = items.len.unwrap_or(0);
        match len {
            0 => format!("{} of length 0", self.label),
            _ => format!("{} of length {len} = {digits}", self.label),
        }
    }
}

/// Shows a repeated error of consecutive elements only once.
fn without_repeats(elements: Vec<String>) -> Vec<String> {
    let is_same = |a: &String, b: &String| a == b && a.starts_with("<unknown:");
    let runs = elements.chunk_by(is_same);
    let written = runs.map(|run| match run.len() {
        1 => run[0].clone(),
        len => format!("{} <repeats {len} times>", run[0]),
    });
    written.collect()
}

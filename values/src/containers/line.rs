//! Formats containers on one line: in Rust as `{:?}` does, in C++ much as gdb does.

use crate::containers::Container;
use crate::containers::content::{Content, Part};
use crate::containers::items::Items;
use crate::containers::typed_place::{Reach, TypedPlace};
use crate::draft::Draft;
use crate::natural::Later;
use crate::render::unknown;
use debuginfo::Unknown;
use debuginfo::types::Language;
use debuginfo::value::{Look, Value};

/// Most damaged elements that are shown of a container with no intact ones: it is not constructed yet, or destroyed.
const MAX_DAMAGED: usize = 8;

/// Limits of a container's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Elements; `...` replaces the rest.
    pub elements: usize,
    /// Units of a string.
    pub text: usize,
    /// The whole text has a budget: omitted elements are counted.
    pub has_budget: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            elements: 200,
            text: 200,
            has_budget: false,
        }
    }
}

/// Formats one value inside a container, or leaves it for later; with the text that extends an expression for the
/// container to one for that value.
pub type Show<'s> = &'s mut dyn FnMut(&Value, Option<&str>) -> Draft<Later>;

impl Container {
    /// Formats the container on one line; `show` formats the values in it. Errors are shown in angle brackets.
    #[must_use]
    pub fn line(&self, limits: &Limits, look: &Look<'_>, show: Show) -> Draft<Later> {
        let reach = self.reach(look.machine, look.space);
        match &self.content {
            Content::Text(text) => {
                let written = text.write(&reach, limits.text as u64);
                written.unwrap_or_else(|why| Draft::from(unknown(why)))
            }
            Content::Sequence(items) | Content::Set(items) | Content::Map(items) => {
                self.elements(items, limits, &reach, show)
            }
            Content::Bits(items) => Draft::from(self.bits(items, limits, &reach)),
            Content::Parts { text, children } => {
                let mut line = Draft::from(self.label.clone());
                let step = (self.label.is_empty() && children.len() == 1).then_some("");
                for part in text {
                    match part {
                        Part::Words(words) => line.push(words),
                        Part::Value(spot) => line.append(show(&self.part(spot, &reach), step)),
                    }
                }
                line
            }
        }
    }

    fn elements(&self, items: &Items, limits: &Limits, reach: &Reach, show: Show) -> Draft<Later> {
        let is_sequence = matches!(self.content, Content::Sequence(_));
        let mut inside: Vec<Draft<Later>> = Vec::new();
        let mut is_cut = false;
        let mut write =
            |spot: &TypedPlace, step: Option<&str>| show(&self.element(spot, reach), step);
        let walked = items.visit.visit(reach, 0, &mut |element| {
            let is_damaged = |text: &Draft<Later>| text.starts_with("<unknown: corrupt");
            let is_noise = inside.len() >= MAX_DAMAGED && inside.iter().all(is_damaged);
            if inside.len() >= limits.elements || is_noise {
                is_cut = true;
                return false;
            }
            let key = element.key.as_ref().map(|key| write(key, None));
            let step = match &key {
                Some(key) => step_to(key),
                None => is_sequence.then(|| format!("[{}]", inside.len())),
            };
            let value = write(&element.value, step.as_deref());
            inside.push(match (key, self.language) {
                (Some(key), Language::Rust) => joined(["", ": ", ""], key, value),
                (Some(key), _) => joined(["[", "] = ", ""], key, value),
                (None, _) => value,
            });
            true
        });
        let shown = inside.len() as u64;
        if let Err(why) = walked.map_err(|why| self.mixed(why, reach)) {
            inside.push(Draft::from(unknown(why)));
        }
        let len = items.len(&self.reach(reach.machine, reach.space));
        let left = match is_cut {
            false => Some(0),
            true => len.as_ref().ok().map(|len| len.saturating_sub(shown)),
        };
        let is_empty = inside.is_empty();
        let inside = listed(inside, left, limits.has_budget);
        let (open, close) = match (self.language, &self.content) {
            (Language::Rust, Content::Sequence(_)) => ("[".to_owned(), "]"),
            (Language::Rust, _) => ("{".to_owned(), "}"),
            _ if is_empty && !is_cut => return Draft::from(self.front(len)),
            _ => (format!("{} = {{", self.front(len)), "}"),
        };
        let mut line = Draft::from(open);
        line.append(inside);
        line.push(close);
        line
    }

    /// The text before the elements of a container of C++.
    fn front(&self, len: Result<u64, Unknown>) -> String {
        let label = &self.label;
        match (len, matches!(self.content, Content::Map(_))) {
            (Ok(1), true) => format!("{label} with 1 element"),
            (Ok(len), true) => format!("{label} with {len} elements"),
            (Ok(len), false) => format!("{label} of length {len}"),
            (Err(_), _) => label.clone(),
        }
    }

    /// Bits as one binary number, whose first digit is the last bit; `...` replaces the higher ones.
    fn bits(&self, items: &Items, limits: &Limits, reach: &Reach) -> String {
        let mut digits = Vec::new();
        let walked = items.visit.visit(reach, 0, &mut |element| {
            // A bit needs no more room than a character.
            if digits.len() >= limits.text {
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

/// The text that extends the expression of a map to that of the value with this key.
fn step_to(key: &Draft<Later>) -> Option<String> {
    let key = key.words()?;
    let is_number = key.parse::<i128>().is_ok();
    is_number.then(|| format!("[{key}]"))
}

fn joined(around: [&str; 3], key: Draft<Later>, value: Draft<Later>) -> Draft<Later> {
    let mut line = Draft::from(around[0].to_owned());
    line.append(key);
    line.push(around[1]);
    line.append(value);
    line.push(around[2]);
    line
}

/// The elements with commas between them, and the mark for the omitted ones. A repeated error of consecutive elements
/// is shown only once.
fn listed(elements: Vec<Draft<Later>>, left: Option<u64>, has_budget: bool) -> Draft<Later> {
    let is_same = |a: &Draft<Later>, b: &Draft<Later>| {
        a.starts_with("<unknown:") && a.words().is_some() && a.words() == b.words()
    };
    let mut runs: Vec<(Draft<Later>, u64)> = Vec::new();
    for element in elements {
        match runs.last_mut() {
            Some((first, count)) if is_same(first, &element) => *count += 1,
            _ => runs.push((element, 1)),
        }
    }
    let mut line = Draft::default();
    let mut gap = "";
    for (element, count) in runs {
        if has_budget {
            line.begin_item(count);
        }
        line.push(gap);
        gap = ", ";
        line.append(element);
        if count > 1 {
            line.push(&format!(" <repeats {count} times>"));
        }
    }
    match (has_budget, left) {
        (true, left) => line.end_items(left),
        (false, Some(0)) => {}
        (false, _) => line.push(&format!("{gap}...")),
    }
    line
}

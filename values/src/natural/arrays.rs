//! Arrays: their elements, or the text that they hold.

use super::texts::has_runs;
use super::{MAX_TEXT, REPEATS, Renderer};
use crate::render::Format;
use crate::strings::literal_prefix;
use debuginfo::types::{Language, Type, TypeKind};
use debuginfo::value::{Value, number};

impl Renderer<'_> {
    pub(super) fn array(&mut self, value: &Value, ty: &Type, depth: usize) {
        // In the order of memory, regardless of the first index.
        let shown = ty.in_order_of_display().filter(|_| !ty.is_plain_array());
        let turned = shown.map(|ty| Value {
            ty,
            ..value.clone()
        });
        let value = turned.as_ref().unwrap_or(value);
        let ty = &turned
            .as_ref()
            .map_or_else(|| ty.clone(), |turned| turned.ty.clone());
        let (Some(element), Some(count)) = (ty.element(), ty.count()) else {
            return match ty.count() {
                None => self.without_length(ty.lower_bound()),
                Some(_) => self.push("{}"),
            };
        };
        let stripped = element.strip();
        let size = element.size().unwrap_or(0);
        if let (TypeKind::Char { .. }, Format::Natural, Ok(bytes)) =
            (stripped.kind(), self.options.format, &value.bytes)
            && ty.language() != Language::Rust
            && value.bits.is_none()
            && ty
                .stride()
                .is_some_and(|bits| u64::try_from(bits).ok() == size.checked_mul(8))
            && count > 0
        {
            if matches!(ty.language(), Language::Fortran | Language::Ada) {
                // Blanks and zeros at the end are part of the text.
                return self.quoted(&bytes.clone(), size.clamp(1, 4) as usize, false);
            }
            let width = size.clamp(1, 4) as usize;
            // Zeros after the text only fill the array.
            let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
            let used = used.next_multiple_of(width).min(bytes.len());
            return match width {
                1 if has_runs(&bytes[..used]) => self.folded(&bytes[..used]),
                _ => {
                    let prefix = literal_prefix(&element).filter(|_| width > 1);
                    self.push(prefix.unwrap_or_default());
                    self.quoted(&bytes[..used], width, false);
                }
            };
        }
        // In C, these are names of integer types.
        if let (Some(prefix), Format::Natural, Ok(bytes)) =
            (literal_prefix(&element), self.options.format, &value.bytes)
            && ty.language() == Language::C
            && ty.is_plain_array()
            && matches!(size, 1 | 2 | 4)
        {
            let width = size as usize;
            let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
            let used = used.next_multiple_of(width).min(bytes.len());
            self.push(prefix);
            return self.quoted(&bytes.clone()[..used], width, false);
        }
        if depth == 0 {
            return self.push("{...}");
        }
        let is_rust = ty.language() == Language::Rust;
        self.push(if is_rust { "[" } else { "{" });
        let look = self.look;
        // Other languages have another notation for elements.
        let has_steps = matches!(ty.language(), Language::C | Language::Cpp | Language::Rust)
            && ty.is_plain_array();
        let step = |at: u64| has_steps.then(|| format!("[{}]", ty.index_of(at)));
        let element = |at: u64| value.nth(at, &look).ok();
        self.elements(count, false, depth - 1, element, step);
        self.push(if is_rust { "]" } else { "}" });
    }

    /// Stands for an array whose elements have places, but not a known number.
    fn without_length(&mut self, lower: i64) {
        let end = lower.saturating_add(8);
        self.push(&format!(
            "<unknown: the array's length is not known; ARRAY[{lower}..{end}] shows 8 elements>"
        ));
    }

    pub(super) fn elements(
        &mut self,
        count: u64,
        more: bool,
        depth: usize,
        element: impl Fn(u64) -> Option<Value>,
        step: impl Fn(u64) -> Option<String>,
    ) {
        let has_budget = self.options.max_chars.is_some();
        let (mut at, mut shown) = (0, 0);
        while at < count && shown < self.options.max_elements && !self.is_full() {
            let Some(value) = element(at) else { break };
            let same = |other: Option<Value>| match (&value.bytes, other) {
                // Neighbours may share the same bytes.
                (Ok(_), Some(other)) if value.bits.is_some() => {
                    number::raw(&value).is_ok_and(|own| number::raw(&other).ok() == Some(own))
                }
                (Ok(a), Some(other)) => other.bytes.is_ok_and(|b| !a.is_empty() && *a == b),
                (Err(a), Some(other)) => other.bytes.is_err_and(|b| *a == b),
                (_, None) => false,
            };
            let limit = count.min(at.saturating_add(MAX_TEXT as u64));
            let mut next = at + 1;
            while next < limit && same(element(next)) {
                next += 1;
            }
            let run = next - at;
            let is_run = run > REPEATS;
            self.item(if is_run { run } else { 1 });
            self.push(if at > 0 { ", " } else { "" });
            self.part(&value, depth, step(at).as_deref());
            if is_run {
                self.push(&format!(" <repeats {run} times>"));
                at = next;
                // Within a budget it is among the few that are shown.
                shown += if has_budget { 1 } else { REPEATS as usize };
            } else {
                at += 1;
                shown += 1;
            }
        }
        match (at < count || more, has_budget) {
            (true, true) => self.out.end_items((!more).then_some(count - at)),
            (true, false) => self.push("..."),
            (false, _) => self.end_items(),
        }
    }
}

//! The text of a value: numbers, pointers, texts, structures and what Rust makes of them.

mod arrays;
mod structures;
mod texts;

use std::time::{Duration, Instant};

use crate::containers::{Container, Limits};
use crate::draft::Draft;
use crate::fit::fit;
use crate::printer::{Children, Presented, Printer, printer_for};
use crate::render::{Format, RenderOptions, absent, unknown};
use crate::scalar::{scalar, symbol};
use crate::strings;
use debuginfo::Unknown;
use debuginfo::location::ValuePlace;
use debuginfo::types::{Language, Type, TypeKind};
use debuginfo::value::{Look, Value};

/// More consecutive equal elements than this are counted instead of shown.
const REPEATS: u64 = 10;
/// Bytes of text after which the rest is omitted.
pub(crate) const MAX_TEXT: usize = 1 << 16;
/// Most values in one text; the rest are omitted.
pub(crate) const MAX_VALUES: usize = 1 << 14;
/// Most characters of a value without parts that is written at once; longer ones wait for their neighbours.
const MAX_AT_ONCE: usize = 40;
/// How long one text may take. Each value is read from a program or a recording; a longer wait is not worthwhile.
const MAX_TIME: Duration = Duration::from_secs(3);

/// A value inside another that is written later, if there is room.
#[derive(Debug, Clone)]
pub struct Later {
    value: Value,
    depth: usize,
    /// Containers around it.
    containers: usize,
    path: Path,
}

/// The path from the whole to a part, in the syntax of expressions: `.a[3]`.
#[derive(Debug, Clone, Default)]
struct Path {
    text: String,
    /// It leads only to something around the part.
    is_around: bool,
}

impl Path {
    /// Extends the path to an inner part by its syntax in an expression; `None` if there is none.
    fn step(&self, step: Option<&str>) -> Path {
        match step {
            Some(step) if !self.is_around => Path {
                text: format!("{}{step}", self.text),
                is_around: false,
            },
            _ => Path {
                text: self.text.clone(),
                is_around: true,
            },
        }
    }
}

/// The empty extension: the part has the same expression as what is around it.
const SAME: Option<&str> = Some("");

pub(super) struct Renderer<'a> {
    options: RenderOptions,
    look: Look<'a>,
    out: Draft<Later>,
    /// The path to the value being written.
    path: Path,
    /// Bytes of text that are written and not yet in `out`.
    spent: usize,
    /// Values that were begun.
    values: usize,
    /// When the text was begun.
    start: Instant,
    /// Containers around the value being written.
    containers: usize,
    /// Virtual base classes that were shown: they are parts of several classes, and are shown once.
    shared: Vec<u64>,
}

impl<'a> Renderer<'a> {
    pub(super) fn new(options: &'a RenderOptions, look: Look<'a>) -> Renderer<'a> {
        Renderer {
            options: *options,
            look,
            out: Draft::default(),
            path: Path::default(),
            spent: 0,
            values: 0,
            start: Instant::now(),
            containers: 0,
            shared: Vec::new(),
        }
    }

    /// Returns the text, and the path of the first omission, if any.
    pub(super) fn text(mut self, value: &Value) -> (String, Option<String>) {
        let depth = self.options.max_depth;
        let (mut text, left_out) = match self.options.max_chars {
            None => {
                self.value(value, depth);
                (std::mem::take(&mut self.out).into_text(), None)
            }
            Some(budget) => self.fitted(value, depth, budget),
        };
        self.spent = text.len();
        if let Some(limit) = self.limit() {
            text.push_str(&format!(" <the rest is left out: {limit}>"));
        }
        (text, left_out)
    }

    fn fitted(&mut self, value: &Value, depth: usize, budget: usize) -> (String, Option<String>) {
        let whole = Later {
            value: value.clone(),
            depth,
            containers: 0,
            path: Path::default(),
        };
        let stub = self.stub(value);
        let max_string = self.options.max_string;
        let fitted = fit(whole, stub, budget, &mut |part, limit| {
            self.options.max_string = limit.map_or(max_string, |limit| limit.min(max_string));
            self.containers = part.containers;
            self.path = part.path.clone();
            self.value(&part.value, part.depth);
            std::mem::take(&mut self.out)
        });
        let left_out = fitted
            .left_out
            .map(|part| part.map_or_else(String::new, |p| p.path.text));
        (fitted.text, left_out)
    }

    /// Writes a part of the current value, or leaves it for later. `step` extends the expression of the value.
    fn part(&mut self, value: &Value, depth: usize, step: Option<&str>) {
        if self.options.max_chars.is_none() {
            return self.value(value, depth);
        }
        if self.containers > 0
            && !self.options.raw
            && let Some(Err(why)) = Container::of(value, &self.look)
        {
            return self.push(&unknown(why));
        }
        if self.is_plain(value) {
            let before = std::mem::take(&mut self.out);
            self.value(value, depth);
            let written = std::mem::replace(&mut self.out, before);
            let words = written.words().map(|words| words.chars().count());
            if words.is_some_and(|count| count <= MAX_AT_ONCE) {
                return self.out.append(written);
            }
        }
        let later = Later {
            value: value.clone(),
            depth,
            containers: self.containers,
            path: self.path.step(step),
        };
        let stub = self.stub(value);
        self.out.push_later(later, stub);
    }

    /// Returns whether a value has no parts.
    fn is_plain(&self, value: &Value) -> bool {
        let ty = value.ty.strip();
        let has_printer = !self.options.raw && printer_for(&ty).is_some();
        match ty.kind() {
            _ if has_printer => false,
            TypeKind::Struct | TypeKind::Class | TypeKind::Union | TypeKind::Array => false,
            TypeKind::Reference | TypeKind::RvalueReference => false,
            TypeKind::Pointer => !self.follows(&ty),
            _ => true,
        }
    }

    /// The placeholder for a value that is not written.
    fn stub(&self, value: &Value) -> String {
        let ty = value.ty.strip();
        match ty.kind() {
            TypeKind::Pointer => match value.as_address() {
                Ok(address) => format!("{address:#x}"),
                Err(_) => "...".to_owned(),
            },
            TypeKind::Struct | TypeKind::Class | TypeKind::Union | TypeKind::Array => {
                "{...}".to_owned()
            }
            _ => "...".to_owned(),
        }
    }

    /// An item of several begins, its separator included; it counts as `count`.
    fn item(&mut self, count: u64) {
        if self.options.max_chars.is_some() {
            self.out.begin_item(count);
        }
    }

    /// The items end, and all were counted.
    fn end_items(&mut self) {
        if self.options.max_chars.is_some() {
            self.out.end_items(Some(0));
        }
    }

    /// The limit on one text that was reached, if any.
    fn limit(&self) -> Option<String> {
        if self.out.len() + self.spent > MAX_TEXT {
            return Some(format!("its text has more than {MAX_TEXT} bytes"));
        }
        if self.values > MAX_VALUES {
            return Some(format!("it has more than {MAX_VALUES} values"));
        }
        let is_late = self.start.elapsed() > MAX_TIME;
        is_late.then(|| format!("to read it takes more than {} s", MAX_TIME.as_secs()))
    }

    fn push(&mut self, text: &str) {
        self.out.push(text);
    }

    fn is_full(&self) -> bool {
        self.limit().is_some()
    }

    /// Returns whether the text has a budget: nobody asked for all of the value.
    fn is_short(&self) -> bool {
        self.options.max_chars.is_some()
    }

    /// Returns whether the members of a value that its printer cannot read would only be noise: it is one of many damaged ones, it is
    /// not constructed yet, or none of them is known.
    fn is_folded(&self, value: &Value) -> bool {
        self.is_short() || self.options.folded || self.unknown_throughout(value).is_some()
    }

    fn value(&mut self, value: &Value, depth: usize) {
        self.values += 1;
        if self.is_full() {
            return self.push("...");
        }
        let ty = value.ty.strip();
        let is_shown_whole = value.is_apart() && printer_for(&ty).is_some();
        if (matches!(value.place, ValuePlace::Unknown(_)) || is_shown_whole)
            && let Some(absent) = absent(value)
        {
            return self.push(&absent);
        }
        if !self.options.raw
            && let Some(printer) = printer_for(&ty)
        {
            match self.line(printer, value, depth) {
                Some(Ok(line)) => return self.out.append(line),
                Some(Err(why)) if self.containers > 0 || self.is_folded(value) => {
                    return self.push(&unknown(why));
                }
                Some(Err(why)) => {
                    self.push(&format!("{} ", unknown(why)));
                    return self.members(value, &ty, depth);
                }
                None => {}
            }
            let limit = self.options.max_elements.max(self.options.max_string);
            match printer.present(value, &self.look, limit) {
                Ok(presented) => return self.presented(presented, depth),
                Err(why) if self.is_folded(value) => return self.push(&unknown(why)),
                Err(why) => self.push(&format!("{} ", unknown(why))),
            }
        }
        self.members(value, &ty, depth);
    }

    /// Text in a printer's own notation.
    fn line(
        &mut self,
        printer: &dyn Printer,
        value: &Value,
        depth: usize,
    ) -> Option<Result<Draft<Later>, Unknown>> {
        let (look, spent) = (self.look, self.spent);
        let limits = Limits {
            elements: self.options.max_elements,
            text: self.options.max_string,
            has_budget: self.options.max_chars.is_some(),
        };
        self.containers += 1;
        let line = printer.line(value, &look, &limits, &mut |inner, step| {
            let before = std::mem::take(&mut self.out);
            match depth {
                0 => self.push("..."),
                depth => self.part(inner, depth - 1, step),
            }
            let text = std::mem::replace(&mut self.out, before);
            self.spent += text.len();
            text
        });
        self.spent = spent;
        self.containers -= 1;
        line
    }

    /// The value as its type describes it.
    fn members(&mut self, value: &Value, ty: &Type, depth: usize) {
        let is_aggregate = matches!(
            ty.kind(),
            TypeKind::Struct | TypeKind::Class | TypeKind::Union | TypeKind::Array
        );
        // A reference is shown as its target, which may be known even if no pointer to it exists.
        let is_name = matches!(ty.kind(), TypeKind::Reference | TypeKind::RvalueReference)
            && matches!(value.place, ValuePlace::ImplicitPointer { .. });
        if is_name {
            return self.reference(value, depth);
        }
        // Some members of a value in pieces may be known although others are not.
        if !is_aggregate && let Some(absent) = absent(value) {
            return self.push(&absent);
        }
        if is_aggregate && value.is_optimized_out() {
            return self.push("<optimized out>");
        }
        if is_aggregate && let Some(why) = self.unknown_throughout(value) {
            return self.push(&unknown(why));
        }
        match ty.kind() {
            TypeKind::Array => self.array(value, ty, depth),
            TypeKind::Struct | TypeKind::Class | TypeKind::Union => {
                self.aggregate(value, ty, depth);
            }
            TypeKind::Reference | TypeKind::RvalueReference => self.reference(value, depth),
            TypeKind::Pointer => self.pointer(value, ty, depth),
            _ => self.scalar(value, ty),
        }
    }

    fn presented(&mut self, presented: Presented, depth: usize) {
        let Presented {
            summary,
            children,
            total,
            certainty: _,
        } = presented;
        let summary = summary.unwrap_or_default();
        self.push(&summary);
        let gap = if summary.is_empty() { "" } else { " " };
        if depth == 0 && !matches!(children, Children::None | Children::Text(_)) {
            return self.push(&format!("{gap}{{...}}"));
        }
        let depth = depth.saturating_sub(1);
        let cut = |given: usize| total.is_some_and(|total| total > given as u64);
        match children {
            Children::None => {}
            Children::Transparent(inner) => {
                self.push(gap);
                self.part(&inner, depth, SAME);
            }
            Children::Text(bytes) => {
                self.push(gap);
                let more = cut(bytes.len());
                self.quoted(&bytes, 1, more);
            }
            Children::Sequence(values) => {
                let more = cut(values.len());
                self.push(gap);
                self.push("{");
                let element = |at: u64| values.get(at as usize).cloned();
                self.elements(values.len() as u64, more, depth, element, |_| None);
                self.push("}");
            }
            Children::Map(pairs) => {
                let more = cut(pairs.len());
                self.push(&format!("{gap}{{"));
                for (at, (key, value)) in pairs.iter().enumerate() {
                    self.item(1);
                    self.push(if at > 0 { ", [" } else { "[" });
                    self.part(key, depth, None);
                    self.push("] = ");
                    self.part(value, depth, None);
                }
                match more {
                    true => self.out.push_cut(),
                    false => self.end_items(),
                }
                self.push("}");
            }
            Children::Fields(fields) => {
                self.push(&format!("{gap}{{"));
                for (at, (name, value)) in fields.iter().enumerate() {
                    self.item(1);
                    self.push(if at > 0 { ", " } else { "" });
                    self.push(&format!("{name} = "));
                    self.part(value, depth, None);
                }
                self.end_items();
                self.push("}");
            }
        }
    }

    fn reference(&mut self, value: &Value, depth: usize) {
        match value.deref(&self.look) {
            Ok(target) if depth > 0 => match (self.unknown_throughout(&target), target.address()) {
                (Some(why), Some(address)) => {
                    self.push(&format!("@{address:#x}: {}", unknown(why)));
                }
                _ => self.part(&target, depth - 1, SAME),
            },
            Ok(_) => self.push("..."),
            Err(why) => self.push(&unknown(why)),
        }
    }

    /// Returns whether a pointer is shown as what it points to.
    fn follows(&self, ty: &Type) -> bool {
        ty.language() == Language::Rust
            && ty.plain_name().is_some_and(|n| n.starts_with('&'))
            && self.options.format == Format::Natural
    }

    fn pointer(&mut self, value: &Value, ty: &Type, depth: usize) {
        let address = match value.as_address() {
            Ok(address) => address,
            Err(why) => return self.push(&unknown(why)),
        };
        if self.options.format != Format::Natural {
            return self.scalar(value, ty);
        }
        let named = ty.target();
        let prefix = named.as_ref().and_then(strings::literal_prefix);
        let target = named.map(|t| t.strip());
        let kind = target.as_ref().map(Type::kind);
        // In C, wide characters are names of integer types.
        let is_text = matches!(kind, Some(TypeKind::Char { .. }))
            || prefix.is_some() && ty.language() == Language::C;
        if self.follows(ty)
            && depth > 0
            && let Ok(target) = value.deref(&self.look)
        {
            self.push("&");
            return self.part(&target, depth - 1, None);
        }
        self.push(&format!("{address:#x}"));
        if let Some(target) = &target
            && is_text
            && address != 0
            && self.options.format == Format::Natural
        {
            let width = target.size().map_or(1, |s| s.clamp(1, 4) as usize);
            let text = strings::text_at(self.look.machine, address, width, self.options.max_string);
            if let Ok(text) = text {
                let prefix = prefix.filter(|_| width > 1).unwrap_or_default();
                self.push(&format!(" {prefix}"));
                self.quoted(&text.bytes, width, text.more);
            }
        } else if let Some(symbol) = symbol(&self.look, address) {
            self.push(&format!(" <{symbol}>"));
        }
    }

    fn scalar(&mut self, value: &Value, ty: &Type) {
        let text = scalar(value, ty, self.options.format, &self.look);
        self.push(&text.unwrap_or_else(|why| format!("<unknown: {why}>")));
    }
}

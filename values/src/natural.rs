//! The text of a value: numbers, pointers, texts, structures and what Rust makes of them.

use std::time::{Duration, Instant};

use crate::containers::{Container, Limits};
use crate::draft::Draft;
use crate::fit::fit;
use crate::printer::{Children, Presented, Printer, printer_for};
use crate::render::{
    Format, RenderOptions, absent, field_name, is_number, render_shortened, unknown,
};
use crate::scalar::{scalar, symbol};
use crate::strings;
use debuginfo::location::ValuePlace;
use debuginfo::types::{Language, Role, Type, TypeKind};
use debuginfo::value::{Look, Value, ValueError, ada, inside, number, variants};
use debuginfo::{Certainty, Unknown};

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
                // One of many damaged ones, or a short text, perhaps before construction: members would only be noise.
                Some(Err(why)) if self.containers > 0 || self.is_short() => {
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
                Err(why) if self.is_short() => return self.push(&unknown(why)),
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
            Ok(target) if depth > 0 => self.part(&target, depth - 1, SAME),
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
        let target = ty.target().map(|t| t.strip());
        let kind = target.as_ref().map(Type::kind);
        if self.follows(ty)
            && depth > 0
            && let Ok(target) = value.deref(&self.look)
        {
            self.push("&");
            return self.part(&target, depth - 1, None);
        }
        self.push(&format!("{address:#x}"));
        if let (Some(TypeKind::Char { .. }), Some(target)) = (kind, &target)
            && address != 0
            && self.options.format == Format::Natural
        {
            let width = target.size().map_or(1, |s| s.clamp(1, 4) as usize);
            let text = strings::text_at(self.look.machine, address, width, self.options.max_string);
            if let Ok(text) = text {
                self.push(" ");
                self.quoted(&text.bytes, width, text.more);
            }
        } else if let Some(symbol) = symbol(&self.look, address) {
            self.push(&format!(" <{symbol}>"));
        }
    }

    fn quoted(&mut self, bytes: &[u8], width: usize, more: bool) {
        let limit = self.options.max_string.saturating_mul(width);
        let mut end = bytes.len().min(limit);
        if width == 1 && end < bytes.len() {
            // Not in the middle of a character.
            let back = bytes[..end]
                .iter()
                .rev()
                .take(4)
                .position(|b| b & 0xc0 != 0x80);
            let start = back.map(|back| end - 1 - back);
            if let Some(start) = start.filter(|s| bytes[*s] >= 0xc0 && bytes[end] & 0xc0 == 0x80) {
                end = start;
            }
        }
        let text = strings::to_utf8(&bytes[..end], width);
        self.push(&strings::quoted(&text, '"'));
        if more || end < bytes.len() {
            self.out.push_cut();
        }
    }

    /// Writes characters of one byte. Runs of characters that are not printed are counted, as in gdb.
    fn folded(&mut self, bytes: &[u8]) {
        let (mut at, mut shown) = (0, 0);
        let end = bytes.len();
        let is_single = |at: usize| run_at(bytes, at) <= REPEATS as usize;
        while at < end && shown < self.options.max_string {
            self.push(if at > 0 { ", " } else { "" });
            let run = run_at(bytes, at);
            if run > REPEATS as usize {
                let unit = strings::quoted(&bytes[at..=at], '\'');
                self.push(&format!("{unit} <repeats {run} times>"));
                (at, shown) = (at + run, shown + REPEATS as usize);
                continue;
            }
            let most = end.min(at.saturating_add(self.options.max_string - shown));
            let mut next = at;
            while next < most && is_single(next) {
                next += run_at(&bytes[..most], next);
            }
            self.push(&strings::quoted(&bytes[at..next], '"'));
            (at, shown) = (next, shown + (next - at));
        }
        if at < end {
            self.out.push_cut();
        }
    }

    fn array(&mut self, value: &Value, ty: &Type, depth: usize) {
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
                _ => self.quoted(&bytes[..used], width, false),
            };
        }
        // In C, these are names of integer types.
        if let (Some(prefix), Format::Natural, Ok(bytes)) =
            (wide_prefix(&element), self.options.format, &value.bytes)
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

    fn elements(
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

    fn aggregate(&mut self, value: &Value, ty: &Type, depth: usize) {
        if ty.is_declaration() {
            return self.push("<incomplete type>");
        }
        if ty.language() == Language::Rust && ty.kind() != TypeKind::Union {
            return self.rust(value, ty, depth);
        }
        match ada::array(value, &self.look) {
            Some(Ok(array)) => return self.value(&array, depth),
            // A pointer to nothing is known.
            Some(Err(ValueError::Null)) => return self.push("0x0"),
            Some(Err(why)) => return self.push(&unknown(why)),
            None => {}
        }
        if depth == 0 {
            return self.push("{...}");
        }
        self.push("{");
        let mut first = true;
        let (live, why) = match variants::live_members(value, &self.look) {
            Ok(live) => (live, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        for member in ty.members().into_iter().chain(live) {
            if self.is_full() {
                self.push("...");
                break;
            }
            if member.name.is_none() && member.bits.is_some() {
                continue;
            }
            if member.role == Role::Base && is_nothing_of_std(&member.ty) {
                continue;
            }
            let look = match member.role {
                Role::Static => self.alone(),
                _ => self.look,
            };
            let inner = inside::member_value(value, &member, &look);
            if member.role == Role::VirtualBase
                && let Ok(Some(address)) = inner.as_ref().map(Value::address)
            {
                if self.shared.contains(&address) {
                    continue;
                }
                self.shared.push(address);
            }
            self.item(1);
            self.push(if first { "" } else { ", " });
            first = false;
            let named = member.name.as_ref().map(|name| format!(".{name}"));
            let step = match member.role {
                Role::Static => None,
                Role::Base | Role::VirtualBase => SAME,
                _ => named.as_deref().or(SAME),
            };
            match (&member.name, member.role) {
                (_, Role::Base | Role::VirtualBase) => {
                    self.push(&format!("<{}> = ", member.ty.name()));
                }
                (Some(name), Role::Static) => self.push(&format!("static {name} = ")),
                (Some(name), _) => self.push(&format!("{name} = ")),
                (None, _) => {}
            }
            match inner {
                // A static member may be of the class's own type.
                Ok(inner) if member.role == Role::Static => {
                    self.static_member(&inner, depth.min(2) - 1, step);
                }
                Ok(inner) => self.part(&inner, depth - 1, step),
                Err(why) => self.push(&unknown(why)),
            }
        }
        self.end_items();
        if let Some(why) = why {
            let gap = if first { "" } else { ", " };
            self.push(&format!("{gap}<unknown: which variant it is: {why}>"));
        }
        self.push("}");
    }

    /// A static member lies elsewhere: it has an age of its own, which is not the object's.
    fn static_member(&mut self, value: &Value, depth: usize, step: Option<&str>) {
        let options = RenderOptions {
            max_depth: depth,
            ..self.options
        };
        let look = self.alone();
        let alone = render_shortened(value, &options, &look);
        match alone.certainty {
            Certainty::Known => self.part(value, depth, step),
            Certainty::Stale { .. } => self.push(&alone.with_age(value, &look)),
        }
    }

    /// The machine without the note of how old its bytes are.
    fn alone(&self) -> Look<'a> {
        let machine = self.look.machine.behind().unwrap_or(self.look.machine);
        Look {
            machine,
            ..self.look
        }
    }

    fn rust(&mut self, value: &Value, ty: &Type, depth: usize) {
        let full = ty.plain_name().unwrap_or_default().to_owned();
        if ty.variants().is_some() {
            return match value.variant(&self.look) {
                Ok((name, data)) => {
                    // The parts of a variant have no name that is valid for all variants.
                    self.path = self.path.step(None);
                    self.fields(&data, &data.ty.strip(), &name, depth);
                }
                Err(why) => self.push(&unknown(why)),
            };
        }
        if (full.starts_with("&str") || full.starts_with("&mut str") || full.starts_with("&["))
            && self.slice(value, &full, depth).is_some()
        {
            return;
        }
        let name = match full.starts_with('(') {
            true => "",
            false => full.split('<').next().unwrap_or_default(),
        };
        self.fields(value, ty, name, depth);
    }

    /// `&str` and slices: a pointer and a length.
    fn slice(&mut self, value: &Value, name: &str, depth: usize) -> Option<()> {
        let data = value.member("data_ptr", &self.look).ok()?;
        let length = value.member("length", &self.look).ok()?;
        let (Ok(address), Ok(length)) = (data.as_address(), length.as_integer()) else {
            let why = absent(&data).or_else(|| absent(&length));
            self.push(&why.unwrap_or_else(|| "<unknown: it is no slice>".to_owned()));
            return Some(());
        };
        let count = u64::try_from(length).ok()?;
        let element = data.ty.strip().target()?;
        if name.ends_with("str") {
            let shown = count.min(self.options.max_string as u64);
            let text = Value::at(element.array(shown), address, self.look.machine);
            match text.bytes {
                Ok(bytes) => self.quoted(&bytes, 1, shown < count),
                Err(why) => self.push(&unknown(why)),
            }
            return Some(());
        }
        let all = element.array(count);
        let array = Value::at(all.clone(), address, self.look.machine);
        self.array(&array, &all, depth);
        Some(())
    }

    /// `Name { a: 1 }`, `Name(1, 2)`, `(1, 2)` or `Name`.
    fn fields(&mut self, value: &Value, ty: &Type, name: &str, depth: usize) {
        let members = ty.members();
        let plain = |m: &debuginfo::types::Member| m.name.clone().unwrap_or_default();
        let is_tuple = members
            .iter()
            .all(|m| plain(m).strip_prefix("__").is_some_and(is_number));
        self.push(name);
        if members.is_empty() {
            return self.push(if name.is_empty() { "()" } else { "" });
        }
        if depth == 0 {
            return self.push(if name.is_empty() { "{...}" } else { " {...}" });
        }
        self.push(match (is_tuple, name.is_empty()) {
            (true, _) => "(",
            (false, true) => "{ ",
            (false, false) => " { ",
        });
        for (at, member) in members.iter().enumerate() {
            self.item(1);
            self.push(if at > 0 { ", " } else { "" });
            let field = field_name(&plain(member), ty.language());
            if !is_tuple {
                self.push(&format!("{field}: "));
            }
            match inside::member_value(value, member, &self.look) {
                Ok(inner) => self.part(&inner, depth - 1, Some(&format!(".{field}"))),
                Err(why) => self.push(&unknown(why)),
            }
        }
        self.end_items();
        self.push(match (is_tuple, members.len()) {
            (true, 1) if name.is_empty() => ",)",
            (true, _) => ")",
            (false, _) => " }",
        });
    }

    fn scalar(&mut self, value: &Value, ty: &Type) {
        let text = scalar(value, ty, self.options.format, &self.look);
        self.push(&text.unwrap_or_else(|why| format!("<unknown: {why}>")));
    }
}

/// Returns how often the character at `at` is repeated, if it is one that is not printed, and 1 for others.
fn run_at(bytes: &[u8], at: usize) -> usize {
    let first = bytes[at];
    match first.is_ascii_graphic() || first == b' ' || first >= 0x80 {
        true => 1,
        false => bytes[at..]
            .iter()
            .take_while(|byte| **byte == first)
            .count(),
    }
}

/// Returns whether characters that are not printed are repeated so often that they are counted.
fn has_runs(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        let run = run_at(bytes, at);
        if run > REPEATS as usize {
            return true;
        }
        at += run;
    }
    false
}

/// Returns the prefix of literals of a character type that C only names.
fn wide_prefix(element: &Type) -> Option<&'static str> {
    let name = element.name();
    let mut words = name.split(' ');
    Some(
        match words.rfind(|word| !matches!(*word, "const" | "volatile"))? {
            "wchar_t" => "L",
            "char16_t" => "u",
            "char32_t" => "U",
            "char8_t" => "u8",
            _ => return None,
        },
    )
}

/// Returns whether a base class is an empty one of the standard library, which users do not know.
fn is_nothing_of_std(ty: &Type) -> bool {
    let ty = ty.strip();
    let is_std = |name: String| name.starts_with("std::") || name.starts_with("__gnu_cxx::");
    ty.members().is_empty() && !ty.is_declaration() && ty.own_name().is_some_and(is_std)
}

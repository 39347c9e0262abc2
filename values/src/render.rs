//! Values as text, and as trees of named values.

use std::cell::Cell;

use crate::natural::{MAX_TEXT, MAX_VALUES, Renderer};
use crate::printer::{Children, printer_for};
use debuginfo::location::ValuePlace;
use debuginfo::types::{Language, Role, TypeKind};
use debuginfo::value::{Look, Value, ada, inside, variants};
use debuginfo::{AddressSpace, Certainty, Machine, Register, Unknown};

/// How numbers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// As their type suggests.
    #[default]
    Natural,
    /// `0x2a`.
    Hex,
    /// `0x0000002a`: as many digits as their type has room for.
    Zeros,
    /// With a sign.
    Decimal,
    /// Without a sign.
    Unsigned,
    /// `052`.
    Octal,
    /// `0b101010`.
    Binary,
    /// As an address, with the symbol that it belongs to.
    Address,
    /// Their last byte as a number and a character.
    Char,
    /// Their bits as those of a floating-point number of the same size, if there is one.
    Float,
}

/// What to show of a value.
#[derive(Debug, Clone, Copy)]
pub struct RenderOptions {
    /// How numbers are shown.
    pub format: Format,
    /// Nested structures; deeper ones are shown as `{...}`.
    pub max_depth: usize,
    /// Elements of one array or container.
    pub max_elements: usize,
    /// Characters of one text.
    pub max_string: usize,
    /// Characters of the whole text: it never has more, except marks after it. Outer values are shown before inner ones;
    /// what does not fit becomes `{...}`, and omitted elements are counted. `None`: no such budget.
    pub max_chars: Option<usize>,
    /// Show the members even of values that a printer would present.
    pub raw: bool,
    /// Never show the members of a value that its printer cannot read, only why it cannot.
    pub folded: bool,
}

/// Characters of a value that is shown with others.
pub const CHARS_OF_MANY: usize = 400;
/// Characters of a requested value.
pub const CHARS_OF_ONE: usize = 2_000;
/// Elements of one array or container that are shown within such a budget.
pub const ELEMENTS: usize = 10;

impl RenderOptions {
    /// Returns how one of many values is shown: variables, arguments, changes.
    #[must_use]
    pub fn one_of_many() -> RenderOptions {
        RenderOptions {
            max_chars: Some(CHARS_OF_MANY),
            max_elements: ELEMENTS,
            ..RenderOptions::default()
        }
    }

    /// Returns how a value is shown in a column of a table.
    #[must_use]
    pub fn in_a_column() -> RenderOptions {
        RenderOptions {
            folded: true,
            ..RenderOptions::default()
        }
    }

    /// Returns how a requested value is shown.
    #[must_use]
    pub fn asked_for() -> RenderOptions {
        RenderOptions {
            max_chars: Some(CHARS_OF_ONE),
            ..RenderOptions::one_of_many()
        }
    }

    /// Returns how all of a value is shown, up to the limits of one text.
    #[must_use]
    pub fn full() -> RenderOptions {
        RenderOptions {
            max_elements: MAX_VALUES,
            max_string: MAX_TEXT,
            ..RenderOptions::default()
        }
    }
}

impl Default for RenderOptions {
    fn default() -> Self {
        RenderOptions {
            format: Format::Natural,
            max_depth: 20,
            max_elements: 200,
            max_string: 200,
            max_chars: None,
            raw: false,
            folded: false,
        }
    }
}

/// Returns the value as text on one line. Unknown parts are marked: `<optimized out>`, `<unknown: reason>`.
#[must_use]
pub fn render(
    value: &Value,
    options: &RenderOptions,
    machine: &dyn Machine,
    space: &AddressSpace,
) -> String {
    render_with(value, options, &Look { space, machine })
}

/// As [`render`].
#[must_use]
pub fn render_with(value: &Value, options: &RenderOptions, look: &Look<'_>) -> String {
    let rendered = render_shortened(value, options, look);
    rendered.with_age(value, look)
}

/// The text of a value, and what to know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The text, without its age.
    pub text: String,
    /// The age of the bytes and of all other memory that was read, such as the text at a pointer: that of the oldest part.
    pub certainty: Certainty,
    /// Set if the budget omitted something: what to append to the value's expression to see the first such part, or a
    /// part around it; empty for the value itself.
    pub left_out: Option<String>,
}

impl Rendered {
    /// Returns the text of `value`, and which event it is from if it may have changed since.
    #[must_use]
    pub fn with_age(&self, value: &Value, look: &Look<'_>) -> String {
        let is_shown = value.bytes.is_ok() || value.is_partly_known(look.machine);
        match (self.certainty, is_shown) {
            (Certainty::Stale { as_of }, true) => {
                format!("{} <stale: as of event {as_of}>", self.text)
            }
            _ => self.text.clone(),
        }
    }
}

/// Returns the value as text without its age, and the age: that of the oldest of its bytes and of all other memory that
/// was read, such as the text at a pointer.
#[must_use]
pub fn render_certain(
    value: &Value,
    options: &RenderOptions,
    look: &Look<'_>,
) -> (String, Certainty) {
    let rendered = render_shortened(value, options, look);
    (rendered.text, rendered.certainty)
}

/// As [`render_certain`], and returns whether [`RenderOptions::max_chars`] omitted something.
#[must_use]
pub fn render_shortened(value: &Value, options: &RenderOptions, look: &Look<'_>) -> Rendered {
    let noting = Noting {
        machine: look.machine,
        oldest: Cell::new(value.certainty),
        before: Cell::new(value.certainty),
    };
    let look = Look {
        space: look.space,
        machine: &noting,
    };
    let (text, left_out) = Renderer::new(options, look).text(value);
    Rendered {
        text,
        certainty: noting.oldest.get(),
        left_out,
    }
}

/// Returns the value as text if it is known. For a pointer to a text with unknown bytes, only the address.
#[must_use]
pub fn render_known(value: &Value, options: &RenderOptions, look: &Look<'_>) -> Option<String> {
    if value.certainty != Certainty::Known || !is_known(value, look, options.max_depth) {
        return None;
    }
    let (text, certainty) = render_certain(value, options, look);
    match (certainty, value.kind()) {
        (Certainty::Known, _) => Some(text),
        (_, TypeKind::Pointer) => Some(format!("{:#x}", value.as_address().ok()?)),
        _ => None,
    }
}

/// Returns whether all of a value can be read, except the padding between the members of a structure in pieces.
fn is_known(value: &Value, look: &Look<'_>, depth: usize) -> bool {
    if value.bytes.is_ok() || depth == 0 || !value.is_partly_known(look.machine) {
        return value.bytes.is_ok();
    }
    let ty = value.ty.strip();
    let inner = match ty.kind() {
        TypeKind::Struct | TypeKind::Class if ty.variants().is_none() => members(value, look),
        _ => return false,
    };
    let mut inner = inner.iter();
    inner.all(|(_, member)| is_known(member, look, depth - 1))
}

/// A machine that notes the age of the data that is read from it.
struct Noting<'m> {
    machine: &'m dyn Machine,
    oldest: Cell<Certainty>,
    /// The same without the last read.
    before: Cell<Certainty>,
}

impl Noting<'_> {
    fn note(&self, certainty: Certainty) -> Certainty {
        self.before.set(self.oldest.get());
        self.oldest.set(self.oldest.get().and(certainty));
        certainty
    }
}

impl Machine for Noting<'_> {
    fn behind(&self) -> Option<&dyn Machine> {
        Some(self.machine)
    }

    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        Ok(self.note(self.machine.memory(address, bytes)?))
    }

    fn shows_wholes(&self) -> bool {
        true
    }

    fn disregarded(&self) {
        self.oldest.set(self.before.get());
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        self.machine.register(register)
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.machine.vector(register)
    }

    fn vector_low(&self, register: Register) -> Result<([u8; 8], Certainty), Unknown> {
        self.machine.vector_low(register)
    }
}

/// Returns what is inside a value or what it points to, with names: members, elements as `[0]`, what a pointer points
/// to as `*`. At most [`RenderOptions::max_elements`].
#[must_use]
pub fn children(value: &Value, options: &RenderOptions, look: &Look<'_>) -> Vec<(String, Value)> {
    let ty = value.ty.strip();
    let limit = options.max_elements;
    if !options.raw
        && let Some(printer) = printer_for(&ty)
        && let Ok(presented) = printer.present(value, look, limit)
    {
        return presented_children(presented.children, options, look);
    }
    match ty.kind() {
        TypeKind::Struct | TypeKind::Class | TypeKind::Union => match ada::array(value, look) {
            Some(Ok(array)) => children(&array, options, look),
            Some(Err(_)) => Vec::new(),
            None => members(value, look),
        },
        TypeKind::Array => {
            let count = usize::try_from(ty.count().unwrap_or(0))
                .unwrap_or(usize::MAX)
                .min(limit);
            let element = |at: usize| {
                let element = value.nth(at as u64, look).ok()?;
                Some((format!("[{}]", ty.index_of(at as u64)), element))
            };
            (0..count).filter_map(element).collect()
        }
        TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {
            let target = ty.target().map(|t| t.strip().kind());
            match (target, value.deref(look)) {
                (Some(TypeKind::Void | TypeKind::Function), _) | (_, Err(_)) => Vec::new(),
                (_, Ok(target)) => vec![("*".to_owned(), target)],
            }
        }
        _ => Vec::new(),
    }
}

fn presented_children(
    inner: Children,
    options: &RenderOptions,
    look: &Look<'_>,
) -> Vec<(String, Value)> {
    match inner {
        Children::None | Children::Text(_) => Vec::new(),
        Children::Transparent(value) => children(&value, options, look),
        Children::Sequence(values) => {
            let numbered = values.into_iter().enumerate();
            numbered
                .map(|(at, value)| (format!("[{at}]"), value))
                .collect()
        }
        Children::Map(pairs) => {
            let name = |key: &Value| format!("[{}]", render_with(key, options, look));
            let named = pairs.into_iter().map(|(key, value)| (name(&key), value));
            named.collect()
        }
        Children::Fields(fields) => fields,
    }
}

fn members(value: &Value, look: &Look<'_>) -> Vec<(String, Value)> {
    let ty = value.ty.strip();
    if ty.variants().is_some() {
        return match value.variant(look) {
            Ok((name, data)) => vec![(name, data)],
            Err(_) => Vec::new(),
        };
    }
    let mut found = Vec::new();
    let live = variants::live_members(value, look).unwrap_or_default();
    for member in ty.members().into_iter().chain(live) {
        let Ok(inner) = inside::member_value(value, &member, look) else {
            continue;
        };
        let name = match (&member.name, member.role) {
            (_, Role::Base | Role::VirtualBase) => format!("<{}>", member.ty.name()),
            (Some(name), _) => field_name(name, ty.language()),
            (None, _) => "<unnamed>".to_owned(),
        };
        found.push((name, inner));
    }
    found
}

/// Fields of Rust's tuples are called `__0` in the debug information.
pub(super) fn field_name(name: &str, language: Language) -> String {
    match name.strip_prefix("__") {
        Some(digits) if language == Language::Rust && is_number(digits) => digits.to_owned(),
        _ => name.to_owned(),
    }
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// What replaces a value that has no bytes.
pub(super) fn absent(value: &Value) -> Option<String> {
    if value.is_optimized_out() {
        return Some("<optimized out>".to_owned());
    }
    if let ValuePlace::ImplicitPointer { .. } = value.place {
        return Some("<synthetic pointer>".to_owned());
    }
    let why = value.bytes.as_ref().err()?;
    Some(match why.reason.as_str() {
        "optimized out" | "not allocated" | "not associated" => format!("<{}>", why.reason),
        why => unknown(why),
    })
}

/// What replaces an unknown value. Some reasons already say that it is unknown.
pub(super) fn unknown(why: impl std::fmt::Display) -> String {
    let why = why.to_string();
    match why.starts_with("unknown: ") {
        true => format!("<{why}>"),
        false => format!("<unknown: {why}>"),
    }
}

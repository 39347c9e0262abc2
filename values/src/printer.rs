//! The interface for types that are not shown as their members: strings, vectors, maps.

use crate::containers;
use crate::draft::Draft;
use crate::natural::Later;
use debuginfo::types::Type;
use debuginfo::value::Look;
use debuginfo::value::Value;
use debuginfo::{Certainty, Unknown};

/// The meaning of a value of a library's type.
#[derive(Debug, Clone)]
pub struct Presented {
    /// A word in front of the contents, such as `Vec(3)` or `Some`; the text itself for a value without contents.
    pub summary: Option<String>,
    /// The contents.
    pub children: Children,
    /// The number of all children, which may exceed the limit; `None` if unknown.
    pub total: Option<u64>,
    /// The age of the data for the text or the number of children; values have their own age.
    pub certainty: Certainty,
}

/// The contents of a value.
#[derive(Debug, Clone)]
pub enum Children {
    /// It has none: the summary is complete.
    None,
    /// The value represents only this one (smart pointers, wrappers).
    Transparent(Box<Value>),
    /// A sequence: `{1, 2, 3}`.
    Sequence(Vec<Value>),
    /// Keys and values: `{[1] = "a", ...}`.
    Map(Vec<(Value, Value)>),
    /// Named parts: `{len = 3, ...}`.
    Fields(Vec<(String, Value)>),
    /// Text in the encoding that the bytes have (UTF-8 where it is), shown in quotes.
    Text(Vec<u8>),
}

/// Shows the values of some types.
pub trait Printer: Sync {
    /// Returns whether this printer shows values of `ty`, which is stripped of typedefs and qualifiers.
    fn matches(&self, ty: &Type) -> bool;

    /// Presents `value`, with at most `limit` children or, for text, bytes.
    ///
    /// # Errors The value is unknown or makes no sense, as before its construction; it is then shown as its members,
    /// after the reason.
    fn present(&self, value: &Value, look: &Look<'_>, limit: usize) -> Result<Presented, Unknown>;

    /// Writes `value` on one line in the printer's own notation; `show` writes the values inside. `None` if it has none:
    /// then the result of [`Printer::present`] is written.
    ///
    /// # Errors
    /// As for [`Printer::present`].
    fn line(
        &self,
        value: &Value,
        look: &Look<'_>,
        limits: &containers::Limits,
        show: containers::Show,
    ) -> Option<Result<Draft<Later>, Unknown>> {
        let _ = (value, look, limits, show);
        None
    }
}

/// The printer for `ty`, if any has one.
#[must_use]
pub fn printer_for(ty: &Type) -> Option<&'static dyn Printer> {
    let printers = containers::printers().iter();
    printers.copied().find(|printer| printer.matches(ty))
}

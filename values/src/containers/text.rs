//! Strings in containers: their bytes, and their form in each language.

use std::fmt::Write;

use crate::containers::typed_place::{Reach, TypedPlace};
use crate::draft::Draft;
use crate::strings::{quoted, to_utf8};
use debuginfo::Unknown;

/// The encoding of the bytes, which decides how they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Rust's `str`, and strings of the operating system: usually UTF-8.
    Rust,
    /// Rust's `CStr`: bytes.
    RustBytes,
    /// Characters of C++ in units of 1, 2 or 4 bytes, with the prefix of such a literal.
    Cpp { prefix: &'static str, unit: u64 },
}

/// A string that is not read yet.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub form: Form,
    pub start: TypedPlace,
    /// In units.
    pub len: u64,
}

/// Most bytes of a string that are read, even if the caller's limit is higher.
const MAX_BYTES: u64 = 1 << 16;

impl Text {
    fn unit(&self) -> u64 {
        match self.form {
            Form::Rust | Form::RustBytes => 1,
            Form::Cpp { unit, .. } => unit.clamp(1, 4),
        }
    }

    /// Checks that the length fits memory.
    pub(crate) fn checked(self, reach: &Reach) -> Result<Text, Unknown> {
        if let Ok(address) = self.start.address() {
            reach.fits(address, self.len, self.unit())?;
        }
        Ok(self)
    }

    /// Unit `index`, if there is one.
    pub(crate) fn unit_at(&self, index: u64) -> Option<TypedPlace> {
        let offset = index.checked_mul(self.unit())?;
        (index < self.len).then(|| self.start.inner(&self.start.ty, offset))
    }

    /// The first bytes, and whether these are all.
    pub(crate) fn read(&self, reach: &Reach, max_units: u64) -> Result<(Vec<u8>, bool), Unknown> {
        let units = self.len.min(max_units).min(MAX_BYTES / self.unit());
        let bytes = match units {
            0 => Vec::new(),
            _ => self.start.read(reach, units * self.unit())?,
        };
        Ok((bytes, units == self.len))
    }

    /// The first units as UTF-8; invalid units are replaced, single bytes are kept.
    pub(crate) fn utf8(&self, reach: &Reach, max_units: u64) -> Result<Vec<u8>, Unknown> {
        let (bytes, _) = self.read(reach, max_units)?;
        let width = usize::try_from(self.unit()).unwrap_or(1);
        Ok(to_utf8(&bytes, width))
    }

    /// The string as its language writes it, followed by `...` if it is longer than `max_units`.
    pub(crate) fn write<T>(&self, reach: &Reach, max_units: u64) -> Result<Draft<T>, Unknown> {
        let (mut bytes, whole) = self.read(reach, max_units)?;
        if !whole && self.unit() == 1 {
            drop_cut_character(&mut bytes);
        }
        let out = match self.form {
            Form::Rust => rust(&bytes),
            Form::RustBytes => format!("\"{}\"", bytes.escape_ascii()),
            Form::Cpp { prefix, unit: 1 } => format!("{prefix}{}", quoted(&bytes, '"')),
            Form::Cpp { prefix, unit } => {
                let text = to_utf8(&bytes, usize::try_from(unit).unwrap_or(1));
                format!("{prefix}{}", quoted(&text, '"'))
            }
        };
        let mut out = Draft::from(out);
        if !whole {
            out.push_cut();
        }
        Ok(out)
    }
}

/// Removes an incomplete character from the end.
fn drop_cut_character(bytes: &mut Vec<u8>) {
    let Err(error) = std::str::from_utf8(bytes) else {
        return;
    };
    if error.error_len().is_none() {
        bytes.truncate(error.valid_up_to());
    }
}

/// Formats a `str` as `{:?}` does, and invalid UTF-8 as `{:?}` does in an `OsStr`.
fn rust(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        let quoted = format!("{:?}", chunk.valid());
        out.push_str(&quoted[1..quoted.len() - 1]);
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02X}");
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::{drop_cut_character, rust};

    #[test]
    fn rust_strings_are_written_as_debug_does() {
        assert_eq!(
            rust("a\0\"\\'\u{7f}\u{e9}".as_bytes()),
            "\"a\\0\\\"\\\\'\\u{7f}\u{e9}\""
        );
        assert_eq!(rust(b"bad \xff\xc3 end"), r#""bad \xFF\xC3 end""#);
        assert_eq!(rust(b""), "\"\"");
    }

    #[test]
    fn half_a_character_at_the_cut_is_left_out() {
        let mut cut = b"a\xe2\x82".to_vec();
        drop_cut_character(&mut cut);
        assert_eq!(cut, b"a");
        let mut bad = b"a\xff".to_vec();
        drop_cut_character(&mut bad);
        assert_eq!(bad, b"a\xff");
    }
}

//! The formats of floating-point and fixed-point numbers, determined from the DIE of a base type.

use gimli::constants as dw;
use gimli::{AttributeValue, DwAt, DwTag};

use super::node::Shape;
use super::read::Reader;
use super::{Type, TypeKind};
use crate::dies::Die;

/// The GNU attributes of a fraction.
const DW_AT_GNU_NUMERATOR: DwAt = DwAt(0x2303);
const DW_AT_GNU_DENOMINATOR: DwAt = DwAt(0x2304);

/// How the bytes of a floating-point number are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatFormat {
    /// IEEE binary16.
    Half,
    /// The high half of a binary32.
    Brain,
    /// IEEE binary32.
    Single,
    /// IEEE binary64.
    Double,
    /// x87 extended precision, 80 bits.
    Extended,
    /// IEEE binary128.
    Quad,
    /// IEEE decimal32, decimal64 or decimal128, with a binary coefficient.
    Decimal,
}

/// The value of one step of a fixed-point number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Two to this power.
    PowerOfTwo(i64),
    /// Ten to this power.
    PowerOfTen(i64),
    /// A fraction.
    Fraction(f64, f64),
    /// Not stated.
    Unknown,
}

impl FloatFormat {
    /// Returns the format of a number of `bytes` bytes whose type's name states no other.
    fn of_size(bytes: u64) -> Option<FloatFormat> {
        Some(match bytes {
            2 => FloatFormat::Half,
            4 => FloatFormat::Single,
            8 => FloatFormat::Double,
            10 | 12 | 16 => FloatFormat::Extended,
            _ => return None,
        })
    }

    fn of(name: &str, bytes: u64, is_quad_by_default: bool) -> Option<FloatFormat> {
        let quad = ["128", "kind=16", "quad", "real*16", "complex*32"];
        let lower = name.to_ascii_lowercase();
        match bytes {
            2 if lower.contains("bf16") || lower.contains("bfloat") => Some(FloatFormat::Brain),
            16 if quad.iter().any(|word| lower.contains(word)) => Some(FloatFormat::Quad),
            16 if is_quad_by_default && lower.contains("long double") => Some(FloatFormat::Quad),
            _ => FloatFormat::of_size(bytes),
        }
    }
}

impl<'a> Reader<'_, '_, 'a> {
    /// Returns the shape of a non-integer base type. Returns `None` for other types and unknown formats.
    pub(super) fn number_type(&self, die: &Die<'a>) -> Option<Shape> {
        let encoding = self.encoding(die)?;
        let name = self.session.string(die, dw::DW_AT_name);
        let name = name.map(|n| n.to_string_lossy().into_owned());
        let name = name.as_deref().unwrap_or_default();
        let bytes = self.session.unsigned(die, dw::DW_AT_byte_size)?;
        let is_decimal = encoding == dw::DW_ATE_decimal_float
            // DWARF 2 has no encoding for decimal numbers.
            || encoding == dw::DW_ATE_lo_user && name.starts_with("_Decimal");
        match encoding {
            _ if is_decimal => matches!(bytes, 4 | 8 | 16).then_some(Shape::Float {
                format: FloatFormat::Decimal,
                complex: false,
            }),
            dw::DW_ATE_float => self.float(die, name, bytes, false),
            dw::DW_ATE_complex_float => self.float(die, name, bytes / 2, true),
            dw::DW_ATE_signed_fixed | dw::DW_ATE_unsigned_fixed => Some(Shape::Fixed {
                signed: encoding == dw::DW_ATE_signed_fixed,
                step: self.step(die),
            }),
            _ => None,
        }
    }

    /// Returns why the bytes of a number do not tell its value.
    pub(super) fn unread(&self, die: &Die<'a>, tag: DwTag) -> Option<&'static str> {
        if tag != dw::DW_TAG_base_type {
            return None;
        }
        let order = self.session.attr(die, dw::DW_AT_endianity);
        let is_swapped = matches!(order, Some(AttributeValue::Endianity(dw::DW_END_big)));
        if is_swapped && self.session.unsigned(die, dw::DW_AT_byte_size) != Some(1) {
            return Some("its bytes are in big-endian order, which is not supported");
        }
        let name = self.session.string(die, dw::DW_AT_name)?;
        let is_bit_int = matches!(name.slice(), b"_BitInt" | b"unsigned _BitInt");
        let has_width = || self.session.attr(die, dw::DW_AT_bit_size).is_some();
        // The bits beyond its width are arbitrary.
        (is_bit_int && !has_width()).then_some("its compiler does not state how many bits it has")
    }

    fn float(&self, die: &Die<'a>, name: &str, bytes: u64, complex: bool) -> Option<Shape> {
        let is_quad_by_default = || {
            let root = die.sibling(gimli::UnitOffset(die.unit.header.size_of_header()));
            let producer = self.session.string(&root, dw::DW_AT_producer);
            producer.is_some_and(|p| p.to_string_lossy().contains("-mlong-double-128"))
        };
        let format = FloatFormat::of(name, bytes, bytes == 16 && is_quad_by_default())?;
        Some(Shape::Float { format, complex })
    }

    fn step(&self, die: &Die<'a>) -> Step {
        let session = self.session;
        let power = |name| session.attr(die, name).and_then(|v| v.sdata_value());
        if let Some(power) = power(dw::DW_AT_binary_scale) {
            return Step::PowerOfTwo(power);
        }
        if let Some(power) = power(dw::DW_AT_decimal_scale) {
            return Step::PowerOfTen(power);
        }
        let Some(fraction) = session.follow(die, dw::DW_AT_small) else {
            return Step::Unknown;
        };
        let part = |name| session.unsigned(&fraction, name).map(|part| part as f64);
        match (part(DW_AT_GNU_NUMERATOR), part(DW_AT_GNU_DENOMINATOR)) {
            (Some(above), Some(below)) if below != 0.0 => Step::Fraction(above, below),
            _ => Step::Unknown,
        }
    }
}

impl Type {
    /// Returns the format of a floating-point number, or of both parts of a complex one.
    pub fn float_format(&self) -> Option<FloatFormat> {
        let ty = self.strip();
        match ty.node().shape {
            Shape::Float { format, .. } => Some(format),
            Shape::Base(TypeKind::Float) => {
                let name = ty.plain_name().unwrap_or_default();
                FloatFormat::of(name, ty.size()?, false)
            }
            Shape::Base(TypeKind::Complex) => FloatFormat::of_size(ty.size()? / 2),
            _ => None,
        }
    }

    /// Returns why the bytes of a value do not tell what it is.
    pub(crate) fn unread(&self) -> Option<&'static str> {
        self.node().unread
    }

    /// Returns the value of one step of a fixed-point number.
    pub fn step(&self) -> Option<Step> {
        match self.strip().node().shape {
            Shape::Fixed { step, .. } => Some(step),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats_of_one_size_apart() {
        for (name, bytes, expected) in [
            ("long double", 16, FloatFormat::Extended),
            ("long_long_float", 16, FloatFormat::Extended),
            ("real(kind=10)", 16, FloatFormat::Extended),
            ("f80", 16, FloatFormat::Extended),
            ("__float128", 16, FloatFormat::Quad),
            ("_Float128", 16, FloatFormat::Quad),
            ("complex _Float128", 16, FloatFormat::Quad),
            ("real(kind=16)", 16, FloatFormat::Quad),
            ("f128", 16, FloatFormat::Quad),
            ("_Float16", 2, FloatFormat::Half),
            ("__bf16", 2, FloatFormat::Brain),
            ("_Float64x", 16, FloatFormat::Extended),
            ("double", 8, FloatFormat::Double),
        ] {
            assert_eq!(
                FloatFormat::of(name, bytes, false),
                Some(expected),
                "{name}"
            );
        }
        assert_eq!(
            FloatFormat::of("long double", 16, true),
            Some(FloatFormat::Quad)
        );
        assert_eq!(FloatFormat::of("float24", 3, false), None);
    }
}

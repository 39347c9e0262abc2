//! Units of memory in a row, as `x/4xw` shows them. The letters mean what they mean in gdb.

use debuginfo::types::{Type, TypeKind};

/// What the letters after a slash ask for: how many units, in which format, of which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// How many, from 1 to 65,536.
    pub count: usize,
    /// Those before the address, not those from it on.
    pub is_backwards: bool,
    /// The format: one of `x z d u o t a c f s i`.
    pub letter: char,
    /// The bytes of a unit: 1, 2, 4 or 8.
    pub bytes: usize,
    /// The letters state the size.
    pub has_size: bool,
}

/// Most units at once.
const MAX_UNITS: usize = 65_536;

impl Units {
    /// Reads the count and the letters: `4xw`, `s`, `3i`, and `-4xw` for those before the address. Default: `1xw`.
    ///
    /// # Errors
    /// They mean nothing. The text says why.
    pub fn read(text: &str) -> Result<Units, String> {
        let (text, is_backwards) = match text.strip_prefix('-') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (count, letters) = text.split_at(digits);
        let count = match count {
            "" => 1,
            count => count.parse().unwrap_or(usize::MAX),
        };
        if count == 0 || count > MAX_UNITS {
            return Err(format!("ask for 1 to {MAX_UNITS} values"));
        }
        let (mut letter, mut bytes) = (None, None);
        for c in letters.chars() {
            match c {
                'x' | 'z' | 'd' | 'u' | 'o' | 't' | 'a' | 'c' | 'f' | 's' | 'i' => letter = Some(c),
                'b' => bytes = Some(1),
                'h' => bytes = Some(2),
                'w' => bytes = Some(4),
                'g' => bytes = Some(8),
                other => return Err(format!("\"{other}\" is neither a format nor a size")),
            }
        }
        let letter = letter.unwrap_or('x');
        let usual = match letter {
            'a' => 8,
            'c' => 1,
            _ => 4,
        };
        let has_size = bytes.is_some();
        let bytes = bytes.unwrap_or(usual);
        if letter == 's' && bytes != 4 && bytes != 1 {
            return Err("texts are shown of bytes only".to_owned());
        }
        if letter == 's' && is_backwards {
            return Err("texts are not shown backwards: where one begins is not known".to_owned());
        }
        if letter == 'f' && bytes < 4 {
            return Err("floating-point numbers have 4 or 8 bytes".to_owned());
        }
        Ok(Units {
            count,
            is_backwards,
            letter,
            bytes: if letter == 'a' { 8 } else { bytes },
            has_size,
        })
    }

    /// Returns the units that these letters mean at a place. Floating-point numbers without a stated size have that of the numbers
    /// there, to which a value of type `ty` leads, or else `last` bytes, if those are 4 or 8.
    #[must_use]
    pub fn at(self, ty: Option<&Type>, last: usize) -> Units {
        if self.letter != 'f' || self.has_size {
            return self;
        }
        let bytes = ty.and_then(float_size).unwrap_or(match last {
            4 => 4,
            _ => 8,
        });
        Units { bytes, ..self }
    }

    /// Writes the bytes of a unit, at most 8. `symbol` names an address.
    #[must_use]
    pub fn text(self, bytes: &[u8], symbol: &dyn Fn(u64) -> Option<String>) -> String {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        let shift = 64 - 8 * bytes.len() as u32;
        let signed = (bits as i64) << shift >> shift;
        let digits = 2 * bytes.len();
        match self.letter {
            'd' => signed.to_string(),
            'u' => bits.to_string(),
            'o' if bits == 0 => "0".to_owned(),
            'o' => format!("0{bits:o}"),
            't' => format!("{bits:0width$b}", width = 4 * digits),
            'a' => match symbol(bits) {
                Some(name) => format!("{bits:#x} <{name}>"),
                None => format!("{bits:#x}"),
            },
            'c' => character(bits as u8),
            'f' if bytes.len() == 4 => floating(f32::from_bits(bits as u32)),
            'f' => floating(f64::from_bits(bits)),
            _ => format!("{bits:#0width$x}", width = digits + 2),
        }
    }
}

/// The size of the floating-point numbers to which a pointer, an array or a reference leads.
fn float_size(ty: &Type) -> Option<usize> {
    const MOST_DIMENSIONS: usize = 8;
    let mut ty = ty.strip();
    let is_reference = |kind| matches!(kind, TypeKind::Reference | TypeKind::RvalueReference);
    if is_reference(ty.kind()) {
        ty = ty.target()?.strip();
    }
    if ty.kind() == TypeKind::Pointer {
        ty = ty.target()?.strip();
    }
    for _ in 0..MOST_DIMENSIONS {
        if ty.kind() != TypeKind::Array {
            break;
        }
        ty = ty.element()?.strip();
    }
    let size = ty.size().filter(|_| ty.kind() == TypeKind::Float)?;
    usize::try_from(size)
        .ok()
        .filter(|size| [4, 8].contains(size))
}

fn character(low: u8) -> String {
    let text = match low {
        b'\'' | b'\\' => format!("\\{}", char::from(low)),
        0x20..0x7f => char::from(low).to_string(),
        _ => format!("\\{low:03o}"),
    };
    format!("{} '{text}'", low as i8)
}

/// A number, with an exponent if it is very small or very large.
fn floating<T: Copy + Into<f64> + std::fmt::Display + std::fmt::LowerExp>(number: T) -> String {
    let size = number.into().abs();
    match size != 0.0 && size.is_finite() && !(1e-5..1e17).contains(&size) {
        true => format!("{number:e}"),
        false => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letters_are_those_of_gdb() {
        let asked = |text: &str| Units::read(text).map(|a| (a.count, a.letter, a.bytes));
        assert_eq!(asked("").unwrap(), (1, 'x', 4));
        assert_eq!(asked("4xw").unwrap(), (4, 'x', 4));
        assert_eq!(asked("8xb").unwrap(), (8, 'x', 1));
        assert_eq!(asked("2gx").unwrap(), (2, 'x', 8));
        assert_eq!(asked("a").unwrap(), (1, 'a', 8));
        assert_eq!(asked("3c").unwrap(), (3, 'c', 1));
        assert_eq!(asked("f").unwrap(), (1, 'f', 4));
        assert_eq!(asked("s").unwrap().1, 's');
        for wrong in ["4q", "0x", "xw4", "99999999999999999999x", "hf", "gs"] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn floating_point_numbers_have_the_size_of_their_type() {
        let builtin = |name: &str| debuginfo::types::builtin(name).expect("a type of C");
        let size = |letters: &str, ty: Option<&Type>, last: usize| {
            Units::read(letters).unwrap().at(ty, last).bytes
        };
        let (float, double) = (builtin("float").array(4), builtin("double").pointer());
        assert_eq!(size("4f", Some(&float), 8), 4);
        assert_eq!(size("4f", Some(&float.array(2).pointer()), 8), 4);
        assert_eq!(size("f", Some(&double), 4), 8);
        assert_eq!(size("fw", Some(&double), 8), 4);
        assert_eq!(size("f", Some(&float.pointer().pointer()), 8), 8);
        for (last, bytes) in [(4, 4), (8, 8), (1, 8)] {
            assert_eq!(size("f", Some(&builtin("int").pointer()), last), bytes);
            assert_eq!(size("f", None, last), bytes);
        }
        assert_eq!(size("x", Some(&double), 8), 4);
    }

    #[test]
    fn a_minus_asks_for_those_before() {
        let asked = |text: &str| Units::read(text).map(|a| (a.count, a.is_backwards, a.letter));
        assert_eq!(asked("-2xw").unwrap(), (2, true, 'x'));
        assert_eq!(asked("-d").unwrap(), (1, true, 'd'));
        assert_eq!(asked("-3i").unwrap(), (3, true, 'i'));
        assert_eq!(asked("2xw").unwrap(), (2, false, 'x'));
        for wrong in ["-2s", "-0x", "--2x", "2-x"] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn units_are_written_as_gdb_writes_them() {
        let text = |letters: &str, bytes: &[u8]| {
            Units::read(letters).unwrap().text(bytes, &|address| {
                (address == 16).then(|| "table".to_owned())
            })
        };
        assert_eq!(text("xw", &[1, 0, 0, 0]), "0x00000001");
        assert_eq!(text("dh", &[0xff, 0xff]), "-1");
        assert_eq!(text("ub", &[0xff]), "255");
        assert_eq!(text("tb", &[5]), "00000101");
        assert_eq!(text("c", b"A"), "65 'A'");
        assert_eq!(text("a", &[16, 0, 0, 0, 0, 0, 0, 0]), "0x10 <table>");
        assert_eq!(text("fw", &1.5f32.to_le_bytes()), "1.5");
    }
}

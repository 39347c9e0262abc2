//! The scalar functions that compute `ret` and `ret_f`: return registers, read as the function's return type says.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use store::control::{FunctionDef, RetPlace, ValueKind};

use crate::definitions::Definitions;

/// How the bits of a return register are read as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reading {
    /// The function returns no integer.
    Absent,
    /// The low `64 - shift` bits, sign-extended.
    Signed { shift: u8 },
    /// The low `64 - shift` bits, zero-extended. A number of 2^63 or more has no place in a signed column.
    Unsigned { shift: u8 },
    /// Zero or not, of the low byte.
    Bool,
    /// The low half of xmm0 as a double.
    Double,
    /// The low quarter of xmm0 as a float.
    Single,
}

impl Reading {
    /// How the result of a function is read: not at all unless one register holds it.
    fn of(function: &FunctionDef) -> Self {
        let reading = Self::by_kind(&function.ret);
        let is_there = match reading {
            // Recordings made before the place was recorded, and functions without a description.
            _ if function.ret_place.is_none() => true,
            Self::Double | Self::Single => function.ret_place == Some(RetPlace::Xmm0),
            _ => function.ret_place == Some(RetPlace::Rax),
        };
        if is_there { reading } else { Self::Absent }
    }

    fn by_kind(kind: &ValueKind) -> Self {
        let shift = |bytes: u8| 64 - 8 * bytes.clamp(1, 8);
        match kind {
            ValueKind::Void => Self::Absent,
            ValueKind::Bool => Self::Bool,
            ValueKind::Char => Self::Unsigned { shift: 56 },
            ValueKind::Unicode { bytes } => Self::Unsigned {
                shift: shift(*bytes),
            },
            // It exceeds a column of 64 bits, and takes two registers.
            ValueKind::Int { bytes: 9.., .. } => Self::Absent,
            ValueKind::Int { bytes, signed } | ValueKind::Enum { bytes, signed, .. } => {
                match signed {
                    true => Self::Signed {
                        shift: shift(*bytes),
                    },
                    false => Self::Unsigned {
                        shift: shift(*bytes),
                    },
                }
            }
            ValueKind::Float { bytes: 8 } => Self::Double,
            ValueKind::Float { bytes: 4 } => Self::Single,
            ValueKind::Float { .. } | ValueKind::Struct { .. } => Self::Absent,
            ValueKind::Pointer | ValueKind::Unknown => Self::Signed { shift: 0 },
        }
    }

    fn integer(self, bits: i64) -> Option<i64> {
        match self {
            Self::Signed { shift } => Some(bits << shift >> shift),
            Self::Unsigned { shift } => i64::try_from((bits as u64) << shift >> shift).ok(),
            Self::Bool => Some(i64::from(bits as u8 != 0)),
            Self::Absent | Self::Double | Self::Single => None,
        }
    }

    /// Returns [`Self::integer`] of many registers: without a branch per value, a few instructions handle several.
    fn integers(self, registers: &Int64Array) -> Int64Array {
        match self {
            Self::Signed { shift } => registers.unary(|bits| bits << shift >> shift),
            Self::Unsigned { shift: 0 } => registers.unary_opt(|bits| (bits >= 0).then_some(bits)),
            Self::Unsigned { shift } => {
                registers.unary(|bits| ((bits as u64) << shift >> shift) as i64)
            }
            Self::Bool => registers.unary(|bits| i64::from(bits as u8 != 0)),
            Self::Absent | Self::Double | Self::Single => Int64Array::new_null(registers.len()),
        }
    }

    fn float(self, bits: i64) -> Option<f64> {
        match self {
            Self::Double => Some(f64::from_bits(bits as u64)),
            Self::Single => Some(f64::from(f32::from_bits(bits as u32))),
            _ => None,
        }
    }
}

/// Returns whether a function may return a number that neither `ret` nor `ret_f` holds, as one of 2^63 or more: only the text tells it.
pub fn has_numbers_as_text(function: &FunctionDef) -> bool {
    let is_none = matches!(
        function.ret,
        ValueKind::Void | ValueKind::Struct { .. } | ValueKind::Pointer
    );
    let reading = Reading::of(function);
    !is_none && matches!(reading, Reading::Absent | Reading::Unsigned { shift: 0 })
}

/// Which of the two columns a [`Ret`] computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Column {
    Integer,
    Float,
}

/// How the results of all functions are read.
#[derive(Debug, Clone)]
pub struct Readings(Arc<[Reading]>);

impl Readings {
    /// Returns those of a recording's functions.
    pub fn of(definitions: &Definitions) -> Self {
        let reading = |id| match definitions.function(id) {
            Some(function) => Reading::of(function),
            None => Reading::Signed { shift: 0 },
        };
        Self((0..definitions.id_limit()).map(reading).collect())
    }

    fn get(&self, id: usize) -> Reading {
        let known = self.0.get(id).copied();
        known.unwrap_or(Reading::Signed { shift: 0 })
    }

    /// Returns what a function returned in rax, if it returns an integer.
    #[inline]
    pub fn integer(&self, id: u32, rax: i64) -> Option<i64> {
        self.get(id as usize).integer(rax)
    }
}

/// `ret(function_id, rax)` or `ret_f(function_id, xr0)`.
#[derive(Debug)]
struct Ret {
    column: Column,
    readings: Readings,
    signature: Signature,
}

/// Returns the functions that compute `ret` (of rax) and `ret_f` (of xmm0).
pub fn functions(definitions: &Definitions) -> (ScalarUDF, ScalarUDF) {
    let readings = Readings::of(definitions);
    let make = |column| {
        ScalarUDF::new_from_impl(Ret {
            column,
            readings: readings.clone(),
            signature: Signature::exact(
                vec![DataType::Int32, DataType::Int64],
                Volatility::Immutable,
            ),
        })
    };
    (make(Column::Integer), make(Column::Float))
}

impl PartialEq for Ret {
    fn eq(&self, other: &Self) -> bool {
        self.column == other.column && Arc::ptr_eq(&self.readings.0, &other.readings.0)
    }
}

impl Eq for Ret {}

impl Hash for Ret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
        self.readings.0.len().hash(state);
    }
}

impl Ret {
    fn values<'a, T>(
        &'a self,
        ids: &'a [i32],
        registers: &'a Int64Array,
        read: impl Fn(Reading, i64) -> Option<T> + 'a,
    ) -> impl Iterator<Item = Option<T>> + 'a {
        ids.iter().zip(registers).map(move |(&id, bits)| {
            let reading = self.reading(id);
            bits.and_then(|bits| read(reading, bits))
        })
    }

    fn reading(&self, id: i32) -> Reading {
        self.readings.get(id as usize)
    }
}

impl ScalarUDFImpl for Ret {
    fn name(&self) -> &str {
        match self.column {
            Column::Integer => "return_value",
            Column::Float => "return_value_f",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(match self.column {
            Column::Integer => DataType::Int64,
            Column::Float => DataType::Float64,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let registers = args.args[1].to_array(args.number_rows)?;
        let registers = registers.as_primitive::<Int64Type>();
        if let (Column::Integer, ColumnarValue::Scalar(ScalarValue::Int32(Some(id)))) =
            (self.column, &args.args[0])
        {
            let values = self.reading(*id).integers(registers);
            return Ok(ColumnarValue::Array(Arc::new(values)));
        }
        let ids = args.args[0].to_array(args.number_rows)?;
        let ids = ids.as_primitive::<Int32Type>().values();
        let values: ArrayRef = match self.column {
            Column::Integer => Arc::new(
                self.values(ids, registers, Reading::integer)
                    .collect::<Int64Array>(),
            ),
            Column::Float => Arc::new(
                self.values(ids, registers, Reading::float)
                    .collect::<Float64Array>(),
            ),
        };
        Ok(ColumnarValue::Array(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(bytes: u8, signed: bool) -> Reading {
        Reading::by_kind(&ValueKind::Int { bytes, signed })
    }

    #[test]
    fn integers_of_every_width_are_extended_as_their_type_says() {
        let bits = 0xfedc_ba98_8765_8381_u64 as i64;
        let signed = [1, 2, 4, 8].map(|bytes| int(bytes, true).integer(bits));
        let unsigned = [1, 2, 4, 8].map(|bytes| int(bytes, false).integer(bits));
        assert_eq!(
            signed,
            [Some(-0x7f), Some(-0x7c7f), Some(-0x789a_7c7f), Some(bits)]
        );
        assert_eq!(
            unsigned,
            [Some(0x81), Some(0x8381), Some(0x8765_8381), None]
        );
        // No comparison takes 2^64 - 1 for a negative number.
        assert_eq!(int(8, false).integer(-1), None);
        assert_eq!(int(8, false).integer(i64::MAX), Some(i64::MAX));
    }

    #[test]
    fn many_registers_are_read_as_each_of_them() {
        let bits = [Some(-1), Some(0x100), None, Some(i64::MIN), Some(0xff80)];
        let registers = Int64Array::from(bits.to_vec());
        let mut readings = vec![Reading::Bool, Reading::Absent, Reading::Double];
        readings.extend([1, 2, 4, 8].map(|bytes| int(bytes, true)));
        readings.extend([1, 2, 4, 8].map(|bytes| int(bytes, false)));
        for reading in readings {
            let one_by_one = bits.map(|bits| bits.and_then(|bits| reading.integer(bits)));
            let all: Vec<_> = reading.integers(&registers).iter().collect();
            assert_eq!(all, one_by_one, "{reading:?}");
        }
    }

    #[test]
    fn a_bool_is_its_low_byte() {
        let bool = Reading::by_kind(&ValueKind::Bool);
        assert_eq!(bool.integer(0x100), Some(0));
        assert_eq!(bool.integer(0x101), Some(1));
    }

    #[test]
    fn void_and_floats_have_no_integer() {
        for kind in [
            ValueKind::Void,
            ValueKind::Float { bytes: 4 },
            ValueKind::Float { bytes: 10 },
        ] {
            assert_eq!(Reading::by_kind(&kind).integer(7), None, "{kind:?}");
        }
    }

    #[test]
    fn only_what_one_register_holds_has_a_reading() {
        let int = ValueKind::Int {
            bytes: 4,
            signed: true,
        };
        let wide = ValueKind::Int {
            bytes: 16,
            signed: true,
        };
        let double = ValueKind::Float { bytes: 8 };
        let pair = ValueKind::Struct { bytes: 16 };
        let (rax, xmm0) = (RetPlace::Rax, RetPlace::Xmm0);
        let read = Reading::Signed { shift: 32 };
        for (kind, place, expected) in [
            (&int, Some(rax), read),
            (&int, None, read),
            (&int, Some(RetPlace::Unknown), Reading::Absent),
            (&double, Some(xmm0), Reading::Double),
            (&double, Some(RetPlace::X87), Reading::Absent),
            (&wide, Some(RetPlace::Registers), Reading::Absent),
            (&pair, Some(RetPlace::Registers), Reading::Absent),
            (&pair, Some(RetPlace::Memory), Reading::Absent),
            (&pair, Some(rax), Reading::Absent),
            (&ValueKind::Pointer, Some(RetPlace::Memory), Reading::Absent),
            (
                &ValueKind::Unknown,
                Some(RetPlace::Unknown),
                Reading::Absent,
            ),
            (&ValueKind::Unknown, None, Reading::Signed { shift: 0 }),
            (&ValueKind::Void, Some(RetPlace::Nowhere), Reading::Absent),
        ] {
            let function = function(kind, place);
            assert_eq!(Reading::of(&function), expected, "{kind:?} {place:?}");
        }
    }

    fn function(kind: &ValueKind, place: Option<RetPlace>) -> FunctionDef {
        FunctionDef {
            ret: kind.clone(),
            params_known: true,
            ret_place: place,
            ..FunctionDef::named("f".into(), "f".into())
        }
    }

    #[test]
    fn only_numbers_without_a_column_are_told_by_a_text() {
        let int = |bytes, signed| ValueKind::Int { bytes, signed };
        let rax = Some(RetPlace::Rax);
        for (kind, place, expected) in [
            (int(8, false), rax, true),
            (int(16, true), Some(RetPlace::Registers), true),
            (int(4, true), Some(RetPlace::Unknown), true),
            (ValueKind::Float { bytes: 16 }, Some(RetPlace::X87), true),
            (int(8, true), rax, false),
            (int(4, false), rax, false),
            (ValueKind::Float { bytes: 8 }, Some(RetPlace::Xmm0), false),
            (ValueKind::Void, Some(RetPlace::Nowhere), false),
            (ValueKind::Struct { bytes: 8 }, rax, false),
            (ValueKind::Pointer, Some(RetPlace::Memory), false),
        ] {
            let told = has_numbers_as_text(&function(&kind, place));
            assert_eq!(told, expected, "{kind:?} {place:?}");
        }
    }

    #[test]
    fn floats_are_read_from_their_own_width() {
        let double = Reading::by_kind(&ValueKind::Float { bytes: 8 });
        let single = Reading::by_kind(&ValueKind::Float { bytes: 4 });
        assert_eq!(double.float(2.5f64.to_bits() as i64), Some(2.5));
        let dirty = i64::from(2.5f32.to_bits()) | 0x7777 << 32;
        assert_eq!(single.float(dirty), Some(2.5));
    }
}

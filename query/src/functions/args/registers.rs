//! The columns of argument registers, read row by row.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray};
use arrow::datatypes::Int64Type;
use datafusion::logical_expr::ColumnarValue;

/// Registers that carry integer arguments, in order.
pub const INT_REGISTERS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];

/// Number of recorded registers for floating point arguments.
pub const SSE_REGISTERS: usize = 8;

/// A column, or one value for all rows.
pub enum Column<'a, T: ArrowPrimitiveType> {
    Rows(&'a PrimitiveArray<T>),
    Same(Option<T::Native>),
}

impl<'a, T: ArrowPrimitiveType> Column<'a, T> {
    pub fn of(value: &'a ColumnarValue) -> Self {
        match value {
            ColumnarValue::Array(array) => Self::Rows(array.as_primitive::<T>()),
            ColumnarValue::Scalar(scalar) => {
                let array = scalar
                    .to_array_of_size(1)
                    .expect("a number is an array of one");
                let array = array.as_primitive::<T>();
                Self::Same(array.is_valid(0).then(|| array.value(0)))
            }
        }
    }

    #[inline]
    pub fn at(&self, row: usize) -> Option<T::Native> {
        match self {
            Self::Rows(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Same(value) => *value,
        }
    }
}

/// The argument registers of one call.
pub struct Registers {
    pub int: [u64; INT_REGISTERS.len()],
    pub sse: [Option<u64>; SSE_REGISTERS],
}

/// The columns of registers that differ from row to row, and the registers of the row that was read last.
pub struct RegisterColumns<'a> {
    int: Vec<(usize, &'a Int64Array)>,
    sse: Vec<(usize, &'a Int64Array)>,
    row: Registers,
}

impl<'a> RegisterColumns<'a> {
    pub fn new(values: &'a [ColumnarValue]) -> Self {
        let mut columns = Self {
            int: Vec::new(),
            sse: Vec::new(),
            row: Registers {
                int: [0; INT_REGISTERS.len()],
                sse: [None; SSE_REGISTERS],
            },
        };
        for (at, value) in values.iter().enumerate() {
            let vector = at.checked_sub(INT_REGISTERS.len());
            match (Column::<Int64Type>::of(value), vector) {
                (Column::Rows(array), None) => columns.int.push((at, array)),
                (Column::Same(bits), None) => columns.row.int[at] = bits.unwrap_or(0) as u64,
                (Column::Rows(array), Some(at @ 0..SSE_REGISTERS)) => {
                    columns.sse.push((at, array));
                }
                (Column::Same(bits), Some(at @ 0..SSE_REGISTERS)) => {
                    columns.row.sse[at] = bits.map(|bits| bits as u64);
                }
                (_, Some(_)) => {}
            }
        }
        columns
    }

    #[inline]
    pub fn at(&mut self, row: usize) -> &Registers {
        for (at, array) in &self.int {
            self.row.int[*at] = array.value(row) as u64;
        }
        for (at, array) in &self.sse {
            self.row.sse[*at] = array.is_valid(row).then(|| array.value(row) as u64);
        }
        &self.row
    }
}

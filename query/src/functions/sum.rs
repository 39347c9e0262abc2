//! The aggregate function `sum`: a sum that does not fit in the bits of an integer or a duration, or in the digits of a decimal, is an
//! error. The engine's own wraps around.
//!
//! Sums are kept in a wider type, which no number of rows exceeds. So only the result must fit: neither the order of the rows nor the
//! number of threads decides whether there is one.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, FieldRef, Int64Type, UInt64Type, i256,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator,
    ReversedUDAF, SetMonotonicity, Signature,
};
use debuginfo::Diagnostic;

use crate::state::told;

/// What sums of 64-bit numbers are kept in.
const WIDE: DataType = DataType::Decimal128(38, 0);
/// Most digits of a decimal in 128 bits.
const DIGITS_OF_128_BITS: u8 = 38;
/// Most digits of a decimal in 256 bits.
const DIGITS_OF_256_BITS: u8 = 76;
/// Room for the sum of ten thousand million rows.
const DIGITS_OF_ROWS: u8 = 10;

/// Returns the function.
pub fn function() -> AggregateUDF {
    AggregateUDF::new_from_impl(CheckedSum(Sum::new()))
}

/// The engine's `sum`, which sums in a wider type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum(Sum);

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.return_type(arg_types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match Sums::of(&args)? {
            Some(sums) => Ok(Box::new(Checked {
                inner: self.0.accumulator(widened_args(args, &sums))?,
                sums,
            })),
            None => self.0.accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let Some(sums) = Sums::of(&args)? else {
            return self.0.create_sliding_accumulator(args);
        };
        let inner: Box<dyn Accumulator> = match args.is_distinct {
            true => Box::new(DistinctWindow::default()),
            false => (self.0).create_sliding_accumulator(widened_args(args, &sums))?,
        };
        Ok(Box::new(Checked { inner, sums }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let Some(wide) = wide(args.return_type()) else {
            return self.0.state_fields(args);
        };
        self.0.state_fields(StateFieldsArgs {
            return_field: widened_field(&args.return_field, wide),
            ..args
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match Sums::of(&args)? {
            Some(sums) => Ok(Box::new(CheckedGroups {
                inner: (self.0).create_groups_accumulator(widened_args(args, &sums))?,
                sums,
            })),
            None => self.0.create_groups_accumulator(args),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.0.set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}

/// Returns the type that sums of this type are kept in; `None` for those that the engine sums rightly.
fn wide(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Int64 | DataType::UInt64 | DataType::Duration(_) => Some(WIDE),
        DataType::Decimal128(_, scale) => Some(DataType::Decimal256(DIGITS_OF_256_BITS, *scale)),
        _ => None,
    }
}

fn widened_args<'a>(args: AccumulatorArgs<'a>, sums: &Sums) -> AccumulatorArgs<'a> {
    AccumulatorArgs {
        return_field: widened_field(&args.return_field, sums.wide.clone()),
        ..args
    }
}

fn widened_field(field: &FieldRef, wide: DataType) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(wide))
}

/// How the sums of one column are returned.
#[derive(Debug)]
struct Sums {
    /// The type of a result.
    kind: DataType,
    /// The type of a sum.
    wide: DataType,
    /// The column's name in the engine.
    name: String,
}

impl Sums {
    /// Returns them, or `None` for those that the engine sums rightly.
    ///
    /// # Errors
    /// No sum of such values can be checked.
    fn of(args: &AccumulatorArgs) -> Result<Option<Sums>> {
        let kind = args.return_type();
        let of = args.expr_fields.first().map(|field| field.data_type());
        match (kind, of) {
            (DataType::Interval(_), _) => Err(of_intervals()),
            (_, Some(DataType::Decimal256(digits, _)))
                if *digits > DIGITS_OF_256_BITS - DIGITS_OF_ROWS =>
            {
                Err(of_long_decimals())
            }
            _ => Ok(wide(kind).map(|wide| Sums {
                kind: kind.clone(),
                wide,
                name: args.name.to_owned(),
            })),
        }
    }

    /// Returns the only column as numbers of the wide type.
    fn widened(&self, values: &[ArrayRef]) -> Result<ArrayRef> {
        let [values] = values else {
            return internal_err!("sum of {} columns", values.len());
        };
        let of_64_bits = |wide: PrimitiveArray<Decimal128Type>| -> ArrayRef {
            Arc::new(wide.with_data_type(WIDE))
        };
        Ok(match values.data_type() {
            DataType::Int64 => of_64_bits(values.as_primitive::<Int64Type>().unary(i128::from)),
            DataType::UInt64 => of_64_bits(values.as_primitive::<UInt64Type>().unary(i128::from)),
            DataType::Duration(_) => {
                let whole = cast(values, &DataType::Int64)?;
                of_64_bits(whole.as_primitive::<Int64Type>().unary(i128::from))
            }
            DataType::Decimal128(..) => {
                let values = values.as_primitive::<Decimal128Type>();
                let wide: PrimitiveArray<Decimal256Type> = values.unary(i256::from_i128);
                Arc::new(wide.with_data_type(self.wide.clone()))
            }
            other => return internal_err!("sum of {other}"),
        })
    }

    fn fitting<Narrow: TryFrom<i128>>(&self, sum: i128) -> Result<Narrow> {
        Narrow::try_from(sum).map_err(|_| too_large(&self.name))
    }

    /// Returns a decimal of at most so many digits.
    fn decimal(&self, sum: i256, digits: u8) -> Result<i128> {
        let limit = 10u128.pow(u32::from(digits.min(DIGITS_OF_128_BITS)));
        let sum = sum.to_i128().filter(|sum| sum.unsigned_abs() < limit);
        sum.ok_or_else(|| too_long(&self.name, digits))
    }

    fn one(&self, sum: &ScalarValue) -> Result<ScalarValue> {
        // A moving window asks for each row, and an array takes long to make.
        match (sum, &self.kind) {
            (ScalarValue::Decimal128(sum, ..), DataType::Int64) => {
                let sum = sum.map(|sum| self.fitting(sum)).transpose()?;
                Ok(ScalarValue::Int64(sum))
            }
            (ScalarValue::Decimal128(sum, ..), DataType::UInt64) => {
                let sum = sum.map(|sum| self.fitting(sum)).transpose()?;
                Ok(ScalarValue::UInt64(sum))
            }
            _ => ScalarValue::try_from_array(&self.all(&sum.to_array()?)?, 0),
        }
    }

    fn all(&self, sums: &ArrayRef) -> Result<ArrayRef> {
        if let DataType::Decimal128(digits, _) = self.kind {
            let sums = sums.as_primitive::<Decimal256Type>();
            let sums: PrimitiveArray<Decimal128Type> =
                sums.try_unary(|sum| self.decimal(sum, digits))?;
            return Ok(Arc::new(sums.with_data_type(self.kind.clone())));
        }
        let sums = sums.as_primitive::<Decimal128Type>();
        if self.kind == DataType::UInt64 {
            let sums: PrimitiveArray<UInt64Type> = sums.try_unary(|sum| self.fitting(sum))?;
            return Ok(Arc::new(sums));
        }
        let sums: PrimitiveArray<Int64Type> = sums.try_unary(|sum| self.fitting(sum))?;
        Ok(cast(&sums, &self.kind)?)
    }
}

/// Returns how the user knows a column: the engine's rules have names of their own for some.
fn told_name(name: &str) -> &str {
    let is_the_users = name
        .chars()
        .all(|char| char.is_alphanumeric() || "_.()".contains(char))
        && !name.contains("__")
        && !name.contains("(alias");
    if is_the_users { name } else { "a sum" }
}

fn too_large(name: &str) -> DataFusionError {
    told(Diagnostic::new(format!("{} exceeds 64 bits", told_name(name))).with_hint(
        "write: sum(CAST(x AS DECIMAL(38,0))), or sum(CAST(x AS DOUBLE)) where rounding does not matter",
    ))
}

fn too_long(name: &str, digits: u8) -> DataFusionError {
    let what = format!("{} exceeds {digits} digits", told_name(name));
    told(Diagnostic::new(what).with_hint("write: sum(CAST(x AS DOUBLE)), which rounds"))
}

fn of_intervals() -> DataFusionError {
    let hint =
        "add numbers of nanoseconds, as dur_ns; a difference of two timestamps can be added too";
    told(Diagnostic::new("there is no sum of intervals").with_hint(hint))
}

fn of_long_decimals() -> DataFusionError {
    let most = DIGITS_OF_256_BITS - DIGITS_OF_ROWS;
    let what = format!("there is no sum of decimals of more than {most} digits");
    told(Diagnostic::new(what).with_hint("write: sum(CAST(x AS DECIMAL(38,0)))"))
}

/// One sum, whose state is wide.
#[derive(Debug)]
struct Checked {
    inner: Box<dyn Accumulator>,
    sums: Sums,
}

impl Accumulator for Checked {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&[self.sums.widened(values)?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.sums.one(&self.inner.evaluate()?)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.sums.name.capacity() + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&[self.sums.widened(values)?])
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// The sums of all groups, whose states are wide.
struct CheckedGroups {
    inner: Box<dyn GroupsAccumulator>,
    sums: Sums,
}

impl GroupsAccumulator for CheckedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let wide = self.sums.widened(values)?;
        self.inner
            .update_batch(&[wide], group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.sums.all(&self.inner.evaluate(emit_to)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.inner
            .merge_batch(values, group_indices, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let wide = self.sums.widened(values)?;
        self.inner.convert_to_state(&[wide], opt_filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

/// The sum of the different numbers in a moving window; the engine has this for signed 64-bit numbers only.
#[derive(Debug, Default)]
struct DistinctWindow {
    /// How often each number is in the window.
    counts: HashMap<i256, u64>,
    sum: i256,
    /// The type of the numbers; `None` before the first.
    kind: Option<DataType>,
}

/// Returns wide numbers in 256 bits.
fn numbers(values: &ArrayRef) -> Result<PrimitiveArray<Decimal256Type>> {
    match values.data_type() {
        DataType::Decimal128(..) => {
            let values = values.as_primitive::<Decimal128Type>();
            Ok(values.unary(i256::from_i128))
        }
        DataType::Decimal256(..) => Ok(values.as_primitive::<Decimal256Type>().clone()),
        other => internal_err!("a window of {other}"),
    }
}

impl Accumulator for DistinctWindow {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.kind = Some(values[0].data_type().clone());
        for value in numbers(&values[0])?.iter().flatten() {
            let count = self.counts.entry(value).or_default();
            *count += 1;
            if *count == 1 {
                self.sum = self.sum.wrapping_add(value);
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in numbers(&values[0])?.iter().flatten() {
            let Some(count) = self.counts.get_mut(&value) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&value);
                self.sum = self.sum.wrapping_sub(value);
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = (!self.counts.is_empty()).then_some(self.sum);
        Ok(match self.kind {
            Some(DataType::Decimal256(digits, scale)) => {
                ScalarValue::Decimal256(sum, digits, scale)
            }
            _ => ScalarValue::Decimal128(sum.map(i256::as_i128), DIGITS_OF_128_BITS, 0),
        })
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.capacity() * size_of::<(i256, u64)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window is summed in one piece")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        internal_err!("a window is summed in one piece")
    }
}

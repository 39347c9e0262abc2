//! The aggregate function `avg`: durations are added in 128 bits. The engine's own sum of them wraps around.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::average::Avg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF,
    Signature,
};

/// What sums of durations are kept in.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// Returns the function.
pub fn function() -> AggregateUDF {
    AggregateUDF::new_from_impl(CheckedAvg(Avg::new()))
}

/// The engine's `avg`, with another mean of durations.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedAvg(Avg);

impl AggregateUDFImpl for CheckedAvg {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.return_type(arg_types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match is_of_durations(args.return_type(), args.is_distinct) {
            true => Ok(Box::new(Mean::new(args.return_type()))),
            false => self.0.accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match is_of_durations(args.return_type(), args.is_distinct) {
            true => self.accumulator(args),
            false => self.0.create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if !is_of_durations(args.return_type(), args.is_distinct) {
            return self.0.state_fields(args);
        }
        let field = |what: &str, kind| Field::new(format!("{}[{what}]", args.name), kind, true);
        Ok(vec![
            Arc::new(field("count", DataType::UInt64)),
            Arc::new(field("sum", WIDE)),
        ])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !is_of_durations(args.return_type(), args.is_distinct)
            && self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.0.create_groups_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}

fn is_of_durations(kind: &DataType, is_distinct: bool) -> bool {
    matches!(kind, DataType::Duration(_)) && !is_distinct
}

/// The mean of some durations.
#[derive(Debug)]
struct Mean {
    count: u64,
    sum: i128,
    kind: DataType,
}

impl Mean {
    fn new(kind: &DataType) -> Mean {
        Mean {
            count: 0,
            sum: 0,
            kind: kind.clone(),
        }
    }

    /// Returns the sum of some durations.
    fn sum_of(values: &[ArrayRef]) -> Result<(u64, i128)> {
        let [values] = values else {
            return internal_err!("avg of {} columns", values.len());
        };
        let whole = cast(values, &DataType::Int64)?;
        let whole = whole.as_primitive::<Int64Type>();
        let count = (whole.len() - whole.null_count()) as u64;
        Ok((count, whole.iter().flatten().map(i128::from).sum()))
    }
}

impl Accumulator for Mean {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (count, sum) = Mean::sum_of(values)?;
        self.count += count;
        self.sum += sum;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (count, sum) = Mean::sum_of(values)?;
        self.count -= count;
        self.sum -= sum;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mean = self.sum.checked_div(i128::from(self.count));
        // A mean lies between the durations.
        let mean = mean.and_then(|mean| i64::try_from(mean).ok());
        ScalarValue::Int64(mean).cast_to(&self.kind)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::UInt64(Some(self.count)),
            ScalarValue::Decimal128(Some(self.sum), 38, 0),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [counts, sums] = states else {
            return internal_err!("avg of {} states", states.len());
        };
        let counts = counts.as_primitive::<UInt64Type>().iter().flatten();
        self.count += counts.sum::<u64>();
        let sums = sums.as_primitive::<Decimal128Type>().iter().flatten();
        self.sum += sums.sum::<i128>();
        Ok(())
    }
}

//! The functions of a program's state, with the run first: `value(run, seq, expression)`, `backtrace(run, seq)`. Each
//! calls the function of the recording that a row names.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, UInt32Array, new_null_array};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::DataType;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::prelude::SessionContext;

use super::set::{Opened, Set};
use crate::state::States;

/// Registers them.
pub fn register(set: &Arc<Set>, context: &SessionContext) {
    let none = States::of_none();
    for function in none.scalar_functions() {
        context.register_udf(ScalarUDF::new_from_impl(OfRow {
            function,
            set: Arc::clone(set),
            signature: Signature::user_defined(Volatility::Stable),
        }));
    }
    for (name, _) in none.table_functions() {
        let set = Arc::clone(set);
        context.register_udtf(name, Arc::new(OfTable { name, set }));
    }
}

/// Opens the recording that is called `name`.
fn opened(set: &Set, name: &str) -> Result<Option<Arc<Opened>>> {
    let Some(index) = set.index(name) else {
        return plan_err!("there is no run called \"{name}\"; the table runs lists them");
    };
    set.open(index)
        .map_err(|error| DataFusionError::External(Box::new(error)))
}

/// A function of a row.
#[derive(Debug)]
struct OfRow {
    /// The function without a recording: its name and its types.
    function: ScalarUDF,
    set: Arc<Set>,
    signature: Signature,
}

impl OfRow {
    /// Returns the types of the arguments after the run.
    fn types(&self) -> &[DataType] {
        match &self.function.signature().type_signature {
            TypeSignature::Exact(types) => types,
            // Events, not moments as text.
            TypeSignature::OneOf(ways) => match ways.first() {
                Some(TypeSignature::Exact(types)) => types,
                _ => &[],
            },
            _ => &[],
        }
    }

    /// Asks one recording about rows.
    fn ask(&self, name: &str, args: Vec<ArrayRef>, given: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let rows = args[0].len();
        let Some(opened) = opened(&self.set, name)? else {
            return Ok(new_null_array(given.return_type(), rows));
        };
        let functions = opened.states.scalar_functions();
        let mut functions = functions.into_iter();
        let function = functions
            .find(|function| function.name() == self.function.name())
            .expect("every recording has the same functions");
        let answer = function.invoke_with_args(ScalarFunctionArgs {
            args: args.into_iter().map(ColumnarValue::Array).collect(),
            arg_fields: given.arg_fields[1..].to_vec(),
            number_rows: rows,
            return_field: Arc::clone(&given.return_field),
            config_options: Arc::clone(&given.config_options),
        })?;
        answer.into_array(rows)
    }
}

impl ScalarUDFImpl for OfRow {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let mut wanted = vec![DataType::Utf8];
        wanted.extend_from_slice(self.types());
        let is_text = matches!(
            given.first(),
            Some(DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Null)
        );
        if given.len() != wanted.len() || !is_text {
            let name = self.name();
            return plan_err!(
                "with several recordings, {name} takes the run first: {name}(run, seq, ...)"
            );
        }
        Ok(wanted)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        self.function.return_type(self.types())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|arg| arg.to_array(rows));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let names: StringArray = cast(&arrays[0], &DataType::Utf8)?.as_string().clone();
        let mut by_run: BTreeMap<Option<&str>, Vec<u32>> = BTreeMap::new();
        for row in 0..rows {
            let name = names.is_valid(row).then(|| names.value(row));
            by_run.entry(name).or_default().push(row as u32);
        }
        let mut answers: Vec<ArrayRef> = Vec::new();
        let mut place = vec![0u32; rows];
        let mut before = 0;
        for (name, rows) in by_run {
            for (at, row) in rows.iter().enumerate() {
                place[*row as usize] = before + at as u32;
            }
            before += rows.len() as u32;
            let rows = UInt32Array::from(rows);
            answers.push(match name {
                Some(name) => {
                    let of_run = arrays[1..].iter().map(|array| take(array, &rows, None));
                    let of_run = of_run.collect::<std::result::Result<Vec<_>, _>>()?;
                    self.ask(name, of_run, &args)?
                }
                None => new_null_array(args.return_type(), rows.len()),
            });
        }
        if answers.is_empty() {
            return Ok(ColumnarValue::Array(new_null_array(args.return_type(), 0)));
        }
        let answers: Vec<&dyn Array> = answers.iter().map(AsRef::as_ref).collect();
        let all = concat(&answers)?;
        let in_order = take(&all, &UInt32Array::from(place), None)?;
        Ok(ColumnarValue::Array(in_order))
    }
}

/// Two are equal if they are the same function of the same recordings.
impl PartialEq for OfRow {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && Arc::ptr_eq(&self.set, &other.set)
    }
}

impl Eq for OfRow {}

impl Hash for OfRow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

/// A function that gives a table.
#[derive(Debug)]
struct OfTable {
    name: &'static str,
    set: Arc<Set>,
}

impl TableFunctionImpl for OfTable {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let name = self.name;
        let exprs = args.exprs();
        let run = exprs.first().filter(|_| exprs.len() > 1);
        let Some(run) = run.and_then(|run| run.as_literal()?.try_as_str()?) else {
            return plan_err!(
                "with several recordings, {name} takes the run first, as a text: {name}('RUN', ...)"
            );
        };
        let Some(opened) = opened(&self.set, run)? else {
            return plan_err!("the run \"{run}\" cannot be read");
        };
        let functions = opened.states.table_functions();
        let (_, function) = functions
            .into_iter()
            .find(|(known, _)| *known == name)
            .expect("every recording has the same functions");
        function.call_with_args(TableFunctionArgs::new(&exprs[1..], args.session()))
    }
}

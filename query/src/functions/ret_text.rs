//! The scalar function that computes the column `ret_text`: the result of a call as text: `-1`, `2.5`, `{quot = 3, rem
//! = 1}`.
//!
//! A number that one register holds is read from it; everything else comes from the state at the end of the call.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, AsArray, StringViewBuilder};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use store::columns::ReadCall;
use store::control::{FunctionDef, RetPlace, ValueKind};

use super::args::{write_int, write_sse};
use crate::definitions::Definitions;
use crate::state::{CallTexts, States};

/// `return_text(function_id, end_seq, rax, xr0)`.
#[derive(Debug)]
struct RetText {
    definitions: Arc<Definitions>,
    states: States,
    signature: Signature,
}

/// Returns the function that computes `ret_text`.
pub fn function(definitions: &Arc<Definitions>, states: &States) -> ScalarUDF {
    let int = || DataType::Int64;
    ScalarUDF::new_from_impl(RetText {
        definitions: Arc::clone(definitions),
        states: states.clone(),
        signature: Signature::exact(
            vec![DataType::Int32, int(), int(), int()],
            Volatility::Immutable,
        ),
    })
}

impl PartialEq for RetText {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.definitions, &other.definitions)
    }
}

impl Eq for RetText {}

impl Hash for RetText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definitions.id_limit().hash(state);
    }
}

/// How the result of a function is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// There is none.
    Nowhere,
    Rax,
    Xmm0,
    /// Not in one register alone.
    State,
}

fn way(function: &FunctionDef) -> Way {
    match (&function.ret, function.ret_place) {
        (ValueKind::Void, _) => Way::Nowhere,
        (ValueKind::Float { bytes: 4 | 8 }, Some(RetPlace::Xmm0) | None) => Way::Xmm0,
        (ValueKind::Float { .. } | ValueKind::Struct { .. }, _) => Way::State,
        // A pointer may have a text as its target.
        (ValueKind::Pointer, _) => Way::State,
        (ValueKind::Int { bytes: 9.., .. }, _) => Way::State,
        (_, Some(RetPlace::Rax) | None) => Way::Rax,
        _ => Way::State,
    }
}

/// Returns the result of one call, as the column shows it; `None` if there is none, or it is not known.
pub fn of_call(function: Option<&FunctionDef>, call: &ReadCall, states: &States) -> Option<String> {
    let (end, rax) = (call.end_seq?, call.rax?);
    let text = text(
        function,
        (rax, call.ret_xmm[0]),
        end,
        &mut CallTexts::new(states),
    );
    (!text.is_empty()).then_some(text)
}

/// The result that event `end` returned in rax or xmm0; empty if there is none, or it is not known.
fn text(
    function: Option<&FunctionDef>,
    (rax, xmm): (u64, Option<u64>),
    end: u64,
    states: &mut CallTexts<'_>,
) -> String {
    let (kind, way) = match function {
        Some(function) => (&function.ret, way(function)),
        None => (&ValueKind::Unknown, Way::Rax),
    };
    let mut text = String::new();
    match (way, xmm) {
        (Way::Nowhere, _) | (Way::Xmm0, None) => {}
        (Way::Rax, _) => write_int(&mut text, kind, &[rax]),
        (Way::Xmm0, Some(xmm)) => write_sse(&mut text, kind, Some(xmm)),
        (Way::State, _) => {
            text = states.result(end).unwrap_or_default();
            let in_rax = function.is_some_and(|f| {
                matches!(f.ret_place, Some(RetPlace::Rax) | None) && f.ret == ValueKind::Pointer
            });
            if text.is_empty() && in_rax {
                write_int(&mut text, kind, &[rax]);
            }
        }
    }
    text
}

impl ScalarUDFImpl for RetText {
    fn name(&self) -> &str {
        "return_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let ids = arrays[0].as_primitive::<Int32Type>();
        let [ends, rax, xmm] = [1, 2, 3].map(|at| arrays[at].as_primitive::<Int64Type>());
        let mut texts = StringViewBuilder::with_capacity(rows);
        let mut states = CallTexts::new(&self.states);
        let asks = |row: usize| {
            let is_there = ids.is_valid(row) && ends.is_valid(row) && rax.is_valid(row);
            let function = is_there.then(|| self.definitions.function(ids.value(row) as usize));
            let way = function.flatten().map(way);
            (way == Some(Way::State)).then(|| ends.value(row) as u64)
        };
        let turn = self.states.turn(rows, asks);
        for row in turn.rows(rows) {
            // An unfinished call returned nothing, and neither did an unwound one.
            if ids.is_null(row) || ends.is_null(row) || rax.is_null(row) {
                texts.append_null();
                continue;
            }
            let function = self.definitions.function(ids.value(row) as usize);
            let rax = rax.value(row) as u64;
            let xmm = xmm.is_valid(row).then(|| xmm.value(row) as u64);
            let text = text(function, (rax, xmm), ends.value(row) as u64, &mut states);
            match text.is_empty() {
                true => texts.append_null(),
                false => texts.append_value(&text),
            }
        }
        let texts = turn.restored(Arc::new(texts.finish()))?;
        Ok(ColumnarValue::Array(texts))
    }
}

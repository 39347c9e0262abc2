//! The scalar function that computes the column `args`: the arguments of a call as text, `n=5, s=0x55d0c0de1000`.
//!
//! Structures are shown by their members. Pointers are shown with the texts that were captured with them, if the state
//! at the start of the call knows them. Values in memory that was not captured read `?`. Without debug information the
//! raw registers are shown. Registers that no text needs are not read and are null.

mod registers;
mod scalar;
#[cfg(test)]
mod tests;
mod text;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::StringViewBuilder;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use debuginfo::prototypes::PointedText;
use store::control::{FunctionDef, Param, ValueKind};

use self::registers::{Column, RegisterColumns};
pub(super) use self::registers::{INT_REGISTERS, SSE_REGISTERS};
pub(super) use self::scalar::{append, octal, write_int, write_sse};
pub(super) use self::text::{Known, Parameter};
use self::text::{OfCall, write_args};
pub use self::text::{of_call, one_of_call};
use super::needed::Needed;
use crate::definitions::Definitions;
use crate::state::{CallTexts, Extent, States, Turn};

/// `arguments(function_id, a0..a5, x0..x7)`, and `start_seq` if states are used.
#[derive(Debug, Clone)]
struct Args {
    definitions: Arc<Definitions>,
    asked: Option<Asked>,
    signature: Signature,
}

/// What `args` needs from the states at the start of calls.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The recording's states.
    pub states: States,
    /// Memory was captured with calls, so targets of pointers may be known.
    pub has_captures: bool,
}

impl Asked {
    /// Returns whether the states may know more of a parameter than its register. `text`: it points to text, according to a
    /// header.
    fn is_about(&self, param: &Param, text: Option<PointedText>) -> bool {
        match param.kind {
            ValueKind::Pointer if text.is_some() => true,
            ValueKind::Struct { .. } => true,
            ValueKind::Pointer => self.has_captures,
            _ => false,
        }
    }

    /// Returns whether that holds for any parameter of the recording's functions.
    pub fn is_needed(&self, definitions: &Definitions) -> bool {
        let mut functions = definitions.functions();
        functions.any(|function| function.params_known && self.is_about_any(definitions, function))
    }

    fn is_about_any(&self, definitions: &Definitions, function: &FunctionDef) -> bool {
        let headers = definitions.headers();
        let mut params = function.params.iter().enumerate();
        headers.ellipsis(function.id).is_some()
            || params.any(|(index, param)| self.is_about(param, headers.text(function.id, index)))
    }

    /// Returns parameter `index` of the call that event `seq` entered as the states know it.
    fn parameter(
        &self,
        texts: &mut CallTexts<'_>,
        definitions: &Definitions,
        seq: u64,
        of: &Parameter<'_>,
    ) -> Option<String> {
        let (index, param) = (of.index, of.param);
        let text = definitions.headers().text(of.function.id, index);
        if !self.is_about(param, text) || param.name.is_empty() {
            return None;
        }
        match text {
            None => texts.parameter(seq, &param.name),
            Some(text) => {
                let at = of.register(index)?;
                let extent = match text {
                    PointedText::Data => Extent::Bytes(of.register(index + 1)?),
                    PointedText::Seldom | PointedText::Often => Extent::Terminated,
                };
                texts.text(seq, at, extent)
            }
        }
    }
}

/// Returns the function that computes `args`.
pub fn function(definitions: &Arc<Definitions>, asked: Option<Asked>) -> ScalarUDF {
    let mut types = vec![DataType::Int32];
    let seq = usize::from(asked.is_some());
    types.extend(vec![
        DataType::Int64;
        INT_REGISTERS.len() + SSE_REGISTERS + seq
    ]);
    ScalarUDF::new_from_impl(Args {
        definitions: Arc::clone(definitions),
        asked,
        signature: Signature::exact(types, Volatility::Immutable),
    })
}

impl PartialEq for Args {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.definitions, &other.definitions)
    }
}

impl Eq for Args {}

impl Hash for Args {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definitions.id_limit().hash(state);
    }
}

impl ScalarUDFImpl for Args {
    fn name(&self) -> &str {
        "arguments"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    /// If the function is known, only the registers that its text needs are read.
    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Some(Expr::Literal(ScalarValue::Int32(Some(id)), _)) = args.first() else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let function = self.definitions.function(*id as usize);
        let of_defined = |function| Needed::of_defined(&self.definitions, function);
        let needed = function.map_or_else(|| Needed::of(None), of_defined);
        let is_asked = |asked: &Asked| {
            function.is_some_and(|function| asked.is_about_any(&self.definitions, function))
        };
        let asks = self.asked.as_ref().is_some_and(is_asked);
        let registers = INT_REGISTERS.len() + SSE_REGISTERS;
        let is_needed = |at: usize| match at.checked_sub(1) {
            None => true,
            Some(register) if register < registers => needed.has(register),
            Some(_) => asks,
        };
        let is_over =
            |(at, arg): (usize, &Expr)| !matches!(arg, Expr::Literal(..)) && !is_needed(at);
        if !args.iter().enumerate().any(is_over) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let kept = args
            .into_iter()
            .enumerate()
            .map(|(at, arg)| match is_needed(at) {
                true => arg,
                false => lit(ScalarValue::Int64(None)),
            });
        let same = ScalarUDF::new_from_impl(self.clone());
        Ok(ExprSimplifyResult::Simplified(same.call(kept.collect())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let ids = Column::<Int32Type>::of(&args.args[0]);
        let mut columns = RegisterColumns::new(&args.args[1..]);
        let mut texts = StringViewBuilder::with_capacity(rows);
        let mut text = String::new();
        let mut states = self.asked.as_ref().map(|a| CallTexts::new(&a.states));
        let seqs = args.args.get(1 + INT_REGISTERS.len() + SSE_REGISTERS);
        let seqs = seqs.map(Column::<Int64Type>::of);
        let seq = |row| Some(seqs.as_ref()?.at(row)? as u64);
        let turn = match &self.asked {
            Some(asked) => asked.states.turn(rows, seq),
            None => Turn::default(),
        };
        for row in turn.rows(rows) {
            let Some(id) = ids.at(row) else {
                texts.append_null();
                continue;
            };
            text.clear();
            let registers = columns.at(row);
            let states = self.asked.as_ref().zip(states.as_mut()).zip(seq(row));
            let mut known = OfCall {
                definitions: &self.definitions,
                states: states.map(|((asked, texts), seq)| (asked, texts, seq)),
            };
            write_args(
                &mut text,
                self.definitions.function(id as usize),
                registers,
                &mut known,
            );
            texts.append_value(&text);
        }
        let texts = turn.restored(Arc::new(texts.finish()))?;
        Ok(ColumnarValue::Array(texts))
    }
}

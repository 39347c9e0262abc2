//! The scalar function that computes the column `args`: the arguments of a call as text, `n=5, s=0x55d0c0de1000`.
//!
//! Structures are shown by their members. Pointers are shown with the texts that were captured with them, if the state
//! at the start of the call knows them. Values in memory that was not captured read `?`. Without debug information the
//! raw registers are shown. Registers that no text needs are not read and are null.

use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray, StringViewBuilder,
};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use debuginfo::prototypes::{Ellipsis, PointedText, prototype};
use store::columns::ReadCall;
use store::control::{FunctionDef, Param, ParameterPlace, ValueKind};

use super::ellipsis;
use super::needed::Needed;
use crate::definitions::Definitions;
use crate::state::{CallTexts, Extent, States};

/// Registers that carry integer arguments, in order.
pub(super) const INT_REGISTERS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];

/// Number of recorded registers for floating point arguments.
pub(super) const SSE_REGISTERS: usize = 8;

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
        for row in 0..rows {
            let Some(id) = ids.at(row) else {
                texts.append_null();
                continue;
            };
            text.clear();
            let registers = columns.at(row);
            let seq = seqs.as_ref().and_then(|seqs| seqs.at(row));
            let states = self.asked.as_ref().zip(states.as_mut()).zip(seq);
            let mut known = OfCall {
                definitions: &self.definitions,
                states: states.map(|((asked, texts), seq)| (asked, texts, seq as u64)),
            };
            write_args(
                &mut text,
                self.definitions.function(id as usize),
                registers,
                &mut known,
            );
            texts.append_value(&text);
        }
        Ok(ColumnarValue::Array(Arc::new(texts.finish())))
    }
}

/// A column, or one value for all rows.
enum Column<'a, T: ArrowPrimitiveType> {
    Rows(&'a PrimitiveArray<T>),
    Same(Option<T::Native>),
}

impl<'a, T: ArrowPrimitiveType> Column<'a, T> {
    fn of(value: &'a ColumnarValue) -> Self {
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
    fn at(&self, row: usize) -> Option<T::Native> {
        match self {
            Self::Rows(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Same(value) => *value,
        }
    }
}

/// The argument registers of one call.
pub(super) struct Registers {
    pub int: [u64; INT_REGISTERS.len()],
    pub sse: [Option<u64>; SSE_REGISTERS],
}

/// The columns of registers that differ from row to row, and the registers of the row that was read last.
struct RegisterColumns<'a> {
    int: Vec<(usize, &'a Int64Array)>,
    sse: Vec<(usize, &'a Int64Array)>,
    row: Registers,
}

impl<'a> RegisterColumns<'a> {
    fn new(values: &'a [ColumnarValue]) -> Self {
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
    fn at(&mut self, row: usize) -> &Registers {
        for (at, array) in &self.int {
            self.row.int[*at] = array.value(row) as u64;
        }
        for (at, array) in &self.sse {
            self.row.sse[*at] = array.is_valid(row).then(|| array.value(row) as u64);
        }
        &self.row
    }
}

/// Returns the arguments of one call, as the column shows them.
pub fn of_call(definitions: &Definitions, call: &ReadCall, asked: &Asked) -> String {
    let function = definitions.function(call.function_id as usize);
    let registers = Registers {
        int: call.args,
        sse: call.xmm,
    };
    let mut texts = CallTexts::new(&asked.states);
    let mut known = OfCall {
        definitions,
        states: Some((asked, &mut texts, call.start_seq)),
    };
    let mut text = String::new();
    write_args(&mut text, function, &registers, &mut known);
    text
}

/// Returns the name of one argument of a call, and its value from the registers.
pub fn one_of_call(function: &FunctionDef, index: usize, call: &ReadCall) -> (String, String) {
    let registers = Registers {
        int: call.args,
        sse: call.xmm,
    };
    let mut text = String::new();
    if let Some(param) = function.params.get(index) {
        let of = Parameter {
            function,
            index,
            param,
            registers: &registers,
        };
        write_param(&mut text, &of, &mut Nothing);
    }
    let (name, value) = text.split_once('=').unwrap_or_default();
    (name.to_owned(), value.to_owned())
}

/// A parameter of a call.
pub(super) struct Parameter<'a> {
    pub function: &'a FunctionDef,
    pub index: usize,
    pub param: &'a Param,
    pub registers: &'a Registers,
}

impl Parameter<'_> {
    /// Returns the register of the function's parameter `index`, if it has one.
    pub fn register(&self, index: usize) -> Option<u64> {
        match self.function.params.get(index)?.place {
            ParameterPlace::Int(register) => self.registers.int.get(usize::from(register)).copied(),
            ParameterPlace::Sse(_) | ParameterPlace::Memory => None,
        }
    }
}

/// Supplies what the registers of a call do not hold.
pub(super) trait Known {
    /// Returns a parameter.
    fn parameter(&mut self, of: &Parameter<'_>) -> Option<String>;
    /// Returns the text at an address, in quotes.
    fn text(&mut self, at: u64, extent: Extent) -> Option<String>;
    /// Returns the bytes before a NUL at an address.
    fn bytes(&mut self, at: u64) -> Option<Vec<u8>>;
    /// Returns what the ellipsis of a function holds.
    fn ellipsis(&self, function: u32) -> Option<Ellipsis>;
}

/// What a recording knows of a call.
struct OfCall<'a, 's> {
    definitions: &'a Definitions,
    /// The states, and the event that entered the call.
    states: Option<(&'a Asked, &'a mut CallTexts<'s>, u64)>,
}

impl Known for OfCall<'_, '_> {
    fn parameter(&mut self, of: &Parameter<'_>) -> Option<String> {
        let (asked, texts, seq) = self.states.as_mut()?;
        asked.parameter(texts, self.definitions, *seq, of)
    }

    fn text(&mut self, at: u64, extent: Extent) -> Option<String> {
        let (_, texts, seq) = self.states.as_mut()?;
        texts.text(*seq, at, extent)
    }

    fn bytes(&mut self, at: u64) -> Option<Vec<u8>> {
        let (_, texts, seq) = self.states.as_mut()?;
        texts.bytes(*seq, at)
    }

    fn ellipsis(&self, function: u32) -> Option<Ellipsis> {
        self.definitions.headers().ellipsis(function)
    }
}

/// Nothing but the registers is known.
struct Nothing;

impl Known for Nothing {
    fn parameter(&mut self, _: &Parameter<'_>) -> Option<String> {
        None
    }

    fn text(&mut self, _: u64, _: Extent) -> Option<String> {
        None
    }

    fn bytes(&mut self, _: u64) -> Option<Vec<u8>> {
        None
    }

    fn ellipsis(&self, _: u32) -> Option<Ellipsis> {
        None
    }
}

/// Appends the arguments of one call to `text`; `known` supplies what the registers do not hold.
fn write_args(
    text: &mut String,
    function: Option<&FunctionDef>,
    registers: &Registers,
    known: &mut dyn Known,
) {
    match function {
        Some(function) if function.params_known => {
            let ellipsis = known.ellipsis(function.id);
            for (index, param) in function.params.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                let of = Parameter {
                    function,
                    index,
                    param,
                    registers,
                };
                let is_command = |ellipsis| ellipsis::write_command(text, ellipsis, &of);
                if !ellipsis.is_some_and(is_command) {
                    write_param(text, &of, known);
                }
                if let Some(ellipsis) = ellipsis.filter(|_| index + 1 == function.params.len()) {
                    ellipsis::write(text, ellipsis, &of, known);
                }
            }
        }
        _ => {
            for (index, name) in INT_REGISTERS.iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                text.push_str(comma);
                text.push_str(name);
                text.push('=');
                write_hex(text, registers.int[index]);
            }
        }
    }
}

fn write_param(text: &mut String, of: &Parameter<'_>, known: &mut dyn Known) {
    let Parameter {
        index,
        param,
        registers,
        ..
    } = *of;
    match param.name.as_str() {
        "" => append(text, format_args!("arg{index}=")),
        name => {
            text.push_str(name);
            text.push('=');
        }
    }
    if let Some(known) = known.parameter(of) {
        return text.push_str(&known);
    }
    match param.place {
        // Registers hold a part of it: a structure is shown as one.
        ParameterPlace::Int(first) if is_apart(param) => match param.kind {
            ValueKind::Struct { .. } if usize::from(first) < INT_REGISTERS.len() => {
                let bits = registers.int[usize::from(first)];
                append(text, format_args!("{{{bits:#x}, ..}}"));
            }
            _ => text.push('?'),
        },
        ParameterPlace::Int(first) if usize::from(first) < INT_REGISTERS.len() && is_mode(of) => {
            append(
                text,
                format_args!("{}", octal(registers.int[usize::from(first)] as u32)),
            );
        }
        ParameterPlace::Int(first) if usize::from(first) < INT_REGISTERS.len() => {
            write_int(text, &param.kind, &registers.int[usize::from(first)..]);
        }
        ParameterPlace::Sse(index) => {
            let bits = registers.sse.get(usize::from(index)).copied().flatten();
            write_sse(text, &param.kind, bits);
        }
        ParameterPlace::Int(_) | ParameterPlace::Memory => text.push('?'),
    }
}

/// Returns whether a parameter holds the permissions of a file: of a function of the C library, as its header has it.
fn is_mode(of: &Parameter<'_>) -> bool {
    let name = of.param.name.as_str();
    let is_unsigned = matches!(
        of.param.kind,
        ValueKind::Int {
            bytes: 4,
            signed: false
        }
    );
    if !is_unsigned || !matches!(name, "mode" | "mask") || of.function.file.is_some() {
        return false;
    }
    let function = of.function.name.as_str();
    let known = prototype(function.strip_suffix("@plt").unwrap_or(function));
    let param = known.as_ref().and_then(|known| known.params.get(of.index));
    param.is_some_and(|param| param.name == name)
}

/// Returns permissions as programs write them.
pub(super) fn octal(mode: u32) -> String {
    match mode {
        0 => "0".to_owned(),
        mode => format!("0{mode:o}"),
    }
}

/// Returns whether the rest of a parameter is not in the general register after the first one.
fn is_apart(param: &Param) -> bool {
    match (
        param.place,
        param.second.map(|second| second.place),
        &param.kind,
    ) {
        (_, None, _) => false,
        (ParameterPlace::Int(first), Some(ParameterPlace::Int(second)), ValueKind::Int { .. }) => {
            second != first + 1
        }
        _ => true,
    }
}

/// Appends a value whose first eight bytes are `registers[0]`.
pub(super) fn write_int(text: &mut String, kind: &ValueKind, registers: &[u64]) {
    let bits = registers[0];
    match kind {
        ValueKind::Void => {}
        ValueKind::Bool => append(text, format_args!("{}", bits as u8 != 0)),
        ValueKind::Char => write_char(text, bits as u8),
        ValueKind::Unicode { bytes } => write_unicode(text, bits, *bytes),
        ValueKind::Int { bytes: 16, signed } => match (registers.get(1), signed) {
            (Some(&high), true) => append(text, format_args!("{}", wide(bits, high) as i128)),
            (Some(&high), false) => append(text, format_args!("{}", wide(bits, high))),
            (None, _) => text.push('?'),
        },
        ValueKind::Int { bytes, signed } => write_number(text, bits, *bytes, *signed),
        ValueKind::Enum {
            bytes,
            signed,
            names,
        } => values::write_enumerators(text, narrow(bits, *bytes, *signed), names),
        ValueKind::Struct { bytes } if *bytes > 8 => {
            append(text, format_args!("{{{bits:#x}, ..}}"));
        }
        ValueKind::Struct { .. } => append(text, format_args!("{{{bits:#x}}}")),
        ValueKind::Pointer | ValueKind::Float { .. } | ValueKind::Unknown => {
            write_hex(text, bits);
        }
    }
}

/// Appends the low `bytes` of `bits` as a number.
fn write_number(text: &mut String, bits: u64, bytes: u8, signed: bool) {
    let shift = 64 - 8 * u32::from(bytes.clamp(1, 8));
    let mut digits = itoa::Buffer::new();
    text.push_str(match signed {
        true => digits.format((bits as i64) << shift >> shift),
        false => digits.format(bits << shift >> shift),
    });
}

/// Appends bits in hexadecimal, as `{:#x}` does.
fn write_hex(text: &mut String, bits: u64) {
    let len = (64 - bits.leading_zeros()).div_ceil(4).max(1);
    text.push_str("0x");
    for place in (0..len).rev() {
        let digit = (bits >> (4 * place)) as u32 & 0xf;
        text.extend(char::from_digit(digit, 16));
    }
}

/// Appends a value in the low half of an xmm register, if that was recorded.
pub(super) fn write_sse(text: &mut String, kind: &ValueKind, bits: Option<u64>) {
    let Some(bits) = bits else {
        text.push('?');
        return;
    };
    match kind {
        ValueKind::Float { bytes: 4 } => {
            append(text, format_args!("{:?}", f32::from_bits(bits as u32)));
        }
        ValueKind::Float { bytes: 8 } => append(text, format_args!("{:?}", f64::from_bits(bits))),
        ValueKind::Float { .. } => text.push('?'),
        ValueKind::Struct { bytes } if *bytes > 8 => {
            append(text, format_args!("{{{bits:#x}, ..}}"));
        }
        ValueKind::Struct { .. } => append(text, format_args!("{{{bits:#x}}}")),
        _ => append(text, format_args!("{bits:#x}")),
    }
}

fn write_char(text: &mut String, byte: u8) {
    append(text, format_args!("'{}'", byte.escape_ascii()));
}

/// Appends a character; what is none, or only a part of one, as a number.
fn write_unicode(text: &mut String, bits: u64, bytes: u8) {
    let code = narrow(bits, bytes, false);
    match u32::try_from(code).ok().and_then(char::from_u32) {
        Some(character) => append(text, format_args!("'{}'", character.escape_debug())),
        None => append(text, format_args!("{code}")),
    }
}

/// Returns the low `bytes` of `bits` as a number.
fn narrow(bits: u64, bytes: u8, signed: bool) -> i128 {
    let shift = 64 - 8 * u32::from(bytes.clamp(1, 8));
    match signed {
        true => i128::from((bits as i64) << shift >> shift),
        false => i128::from(bits << shift >> shift),
    }
}

fn wide(low: u64, high: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

pub(super) fn append(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what)
        .expect("a string takes whatever is written to it");
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use store::control::SecondPlace;

    use super::*;

    fn int(bytes: u8, signed: bool) -> ValueKind {
        ValueKind::Int { bytes, signed }
    }

    fn float(bytes: u8) -> ValueKind {
        ValueKind::Float { bytes }
    }

    fn param(name: &str, kind: ValueKind, place: ParameterPlace) -> Param {
        Param::in_one_place(name, kind, place)
    }

    fn function(params: Vec<Param>, params_known: bool) -> FunctionDef {
        FunctionDef {
            id: 0,
            module: 0,
            svma: 0,
            size: 0,
            name: "f".into(),
            linkage: "f".into(),
            file: None,
            line: None,
            params,
            ret: ValueKind::Void,
            params_known,
            ret_place: None,
        }
    }

    fn check(params: Vec<Param>, int: [u64; 6], sse: [Option<u64>; 8], expect: Expect) {
        let mut text = String::new();
        write_args(
            &mut text,
            Some(&function(params, true)),
            &Registers { int, sse },
            &mut Nothing,
        );
        expect.assert_eq(&text);
    }

    const NONE: [Option<u64>; 8] = [None; 8];

    #[test]
    fn a_part_is_not_shown_as_the_whole() {
        let in_two = |name: &str, kind, second| Param {
            second: Some(SecondPlace {
                from: 4,
                place: second,
            }),
            ..param(name, kind, ParameterPlace::Int(0))
        };
        check(
            vec![
                in_two("a", ValueKind::Struct { bytes: 8 }, ParameterPlace::Memory),
                in_two("b", ValueKind::Struct { bytes: 8 }, ParameterPlace::Sse(0)),
                in_two("c", int(16, true), ParameterPlace::Memory),
                in_two("d", int(16, true), ParameterPlace::Int(1)),
            ],
            [1, 0, 0, 0, 0, 0],
            [None; 8],
            expect!["a={0x1, ..}, b={0x1, ..}, c=?, d=1"],
        );
    }

    #[test]
    fn integers_of_every_width_and_sign() {
        let bits = 0xfedc_ba98_8765_8381;
        let widths = [(1, "b"), (2, "w"), (4, "d"), (8, "q")];
        let params = |signed: bool| {
            widths
                .map(|(bytes, name)| {
                    param(name, int(bytes, signed), ParameterPlace::Int(bytes / 3))
                })
                .to_vec()
        };
        check(
            params(true),
            [bits; 6],
            NONE,
            expect!["b=-127, w=-31871, d=-2023390335, q=-81985528930139263"],
        );
        check(
            params(false),
            [bits; 6],
            NONE,
            expect!["b=129, w=33665, d=2271576961, q=18364758544779412353"],
        );
        check(
            vec![
                param("s", int(16, true), ParameterPlace::Int(0)),
                param("u", int(16, false), ParameterPlace::Int(0)),
                param("torn", int(16, true), ParameterPlace::Int(5)),
            ],
            [5, u64::MAX, 0, 0, 0, 9],
            NONE,
            expect!["s=-18446744073709551611, u=340282366920938463444927863358058659845, torn=?"],
        );
    }

    #[test]
    fn bools_chars_pointers_and_structs() {
        check(
            vec![
                param("t", ValueKind::Bool, ParameterPlace::Int(0)),
                param("f", ValueKind::Bool, ParameterPlace::Int(1)),
                param("c", ValueKind::Char, ParameterPlace::Int(2)),
                param("nl", ValueKind::Char, ParameterPlace::Int(3)),
                param("p", ValueKind::Pointer, ParameterPlace::Int(4)),
                param("", ValueKind::Struct { bytes: 16 }, ParameterPlace::Int(4)),
                param("u", ValueKind::Unknown, ParameterPlace::Int(5)),
                param(
                    "big",
                    ValueKind::Struct { bytes: 40 },
                    ParameterPlace::Memory,
                ),
            ],
            [0x101, 0x100, 0x6161, 10, 0x5555_0000_1000, 7],
            NONE,
            expect![[
                r"t=true, f=false, c='a', nl='\n', p=0x555500001000, arg5={0x555500001000, ..}, u=0x7, big=?"
            ]],
        );
    }

    /// One parameter is known.
    struct Pair;

    impl Known for Pair {
        fn parameter(&mut self, of: &Parameter<'_>) -> Option<String> {
            (of.param.name == "pair").then(|| "{a = 1, b = 2}".to_owned())
        }

        fn text(&mut self, _: u64, _: Extent) -> Option<String> {
            None
        }

        fn bytes(&mut self, _: u64) -> Option<Vec<u8>> {
            None
        }

        fn ellipsis(&self, _: u32) -> Option<Ellipsis> {
            None
        }
    }

    #[test]
    fn what_the_state_knows_is_shown_in_place_of_registers() {
        let params = vec![
            param("n", int(4, true), ParameterPlace::Int(0)),
            param(
                "pair",
                ValueKind::Struct { bytes: 16 },
                ParameterPlace::Int(1),
            ),
        ];
        let mut text = String::new();
        write_args(
            &mut text,
            Some(&function(params, true)),
            &Registers {
                int: [7; 6],
                sse: NONE,
            },
            &mut Pair,
        );
        assert_eq!(text, "n=7, pair={a = 1, b = 2}");
    }

    #[test]
    fn permissions_are_octal() {
        let mode = || param("mode", int(4, false), ParameterPlace::Int(1));
        let params = || {
            vec![
                param("path", ValueKind::Pointer, ParameterPlace::Int(0)),
                mode(),
            ]
        };
        let text = |name: &str, mode: u64| {
            let function = FunctionDef {
                name: name.to_owned(),
                ..function(params(), true)
            };
            let registers = Registers {
                int: [0x10, mode, 0, 0, 0, 0],
                sse: [None; SSE_REGISTERS],
            };
            let mut text = String::new();
            write_args(&mut text, Some(&function), &registers, &mut Nothing);
            text
        };
        assert_eq!(text("mkdir@plt", 0o700), "path=0x10, mode=0700");
        assert_eq!(text("chmod", 0o4755), "path=0x10, mode=04755");
        assert_eq!(text("chmod", 0), "path=0x10, mode=0");
        assert_eq!(text("paint", 0o700), "path=0x10, mode=448");
    }

    #[test]
    fn enums_are_named_where_a_name_is_known() {
        let kind = |bytes, signed| ValueKind::Enum {
            bytes,
            signed,
            names: vec![(-1, "none".into()), (2, "two".into())],
        };
        check(
            vec![
                param("a", kind(4, true), ParameterPlace::Int(0)),
                param("b", kind(4, true), ParameterPlace::Int(1)),
                param("c", kind(4, true), ParameterPlace::Int(2)),
                param("d", kind(8, false), ParameterPlace::Int(3)),
            ],
            [0xffff_ffff, 2, 3, u64::MAX, 0, 0],
            NONE,
            expect!["a=none, b=two, c=3, d=none"],
        );
    }

    #[test]
    fn floats_come_from_the_sse_registers() {
        let mut sse = NONE;
        sse[0] = Some(2.5f64.to_bits());
        sse[1] = Some(u64::from(1.0f32.to_bits()) | 0xdead << 32);
        check(
            vec![
                param("d", float(8), ParameterPlace::Sse(0)),
                param("f", float(4), ParameterPlace::Sse(1)),
                param("lost", float(8), ParameterPlace::Sse(2)),
                param("ld", float(16), ParameterPlace::Memory),
            ],
            [0; 6],
            sse,
            expect!["d=2.5, f=1.0, lost=?, ld=?"],
        );
    }

    /// Bit patterns of every length, the same in every run.
    fn patterns() -> impl Iterator<Item = u64> {
        let mut seed = 7u64;
        let mixed = (0..2_000).map(move |at| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(at);
            seed >> (at % 64)
        });
        mixed.chain([0, 1, 9, 10, 0xff, 1 << 31, 1 << 63, u64::MAX])
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        for bits in patterns() {
            let mut text = String::new();
            write_hex(&mut text, bits);
            assert_eq!(text, format!("{bits:#x}"));
            for (bytes, signed) in [1, 2, 4, 8]
                .map(|bytes| [(bytes, true), (bytes, false)])
                .concat()
            {
                text.clear();
                write_number(&mut text, bits, bytes, signed);
                assert_eq!(text, narrow(bits, bytes, signed).to_string(), "{bits:#x}");
            }
        }
    }

    #[test]
    fn registers_that_are_not_needed_change_nothing() {
        let kinds = || {
            [
                int(4, true),
                int(16, false),
                float(8),
                ValueKind::Struct { bytes: 16 },
            ]
        };
        let places = [
            ParameterPlace::Int(0),
            ParameterPlace::Int(4),
            ParameterPlace::Int(5),
            ParameterPlace::Sse(0),
            ParameterPlace::Sse(7),
            ParameterPlace::Memory,
        ];
        let bits: Vec<u64> = patterns().collect();
        let mut bits = bits.iter().copied().cycle();
        let mut next = || bits.next().expect("a cycle has no end");
        for (kind, place) in kinds()
            .iter()
            .flat_map(|kind| places.map(|place| (kind, place)))
        {
            for second in [
                None,
                Some(ParameterPlace::Int(1)),
                Some(ParameterPlace::Sse(1)),
            ] {
                let param = Param {
                    second: second.map(|place| SecondPlace { from: 8, place }),
                    ..param("p", kind.clone(), place)
                };
                for params_known in [true, false] {
                    let function = function(vec![param.clone()], params_known);
                    let needed = Needed::of(Some(&function));
                    let all = Registers {
                        int: std::array::from_fn(|_| next()),
                        sse: std::array::from_fn(|_| Some(next())),
                    };
                    let some = Registers {
                        int: std::array::from_fn(|at| if needed.has(at) { all.int[at] } else { 0 }),
                        sse: std::array::from_fn(|at| all.sse[at].filter(|_| needed.has(6 + at))),
                    };
                    let text = |registers: &Registers| {
                        let mut text = String::new();
                        write_args(&mut text, Some(&function), registers, &mut Nothing);
                        text
                    };
                    assert_eq!(text(&all), text(&some), "{function:?}");
                }
            }
        }
    }

    #[test]
    fn without_debug_information_registers_are_shown_as_they_are() {
        let registers = Registers {
            int: [1, 2, 3, 4, 5, 0xff],
            sse: NONE,
        };
        let raw = expect!["rdi=0x1, rsi=0x2, rdx=0x3, rcx=0x4, r8=0x5, r9=0xff"];
        for function in [None, Some(function(vec![], false))] {
            let mut text = String::new();
            write_args(&mut text, function.as_ref(), &registers, &mut Nothing);
            raw.assert_eq(&text);
        }
    }
}

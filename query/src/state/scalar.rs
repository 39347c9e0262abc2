//! The scalar functions `reg`, `mem`, `value`, `explain_value` and `frame_value`. A batch is evaluated in the order of
//! its events, not of its rows, so that data read for one event serves the next.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, Int64Array, PrimitiveArray, StringArray,
    StringViewArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use debuginfo::{Diagnostic, Register};
use expr::Expr;
use replay::{Instant, Parameters, Places, Target, Timeline};
use rustc_hash::FxHashMap;

use super::{States, Turn, failed, moment, told};

/// Most bytes that `mem` returns for a row.
const MAX_LEN: i64 = 1 << 20;

/// Most rows that are examined to suggest an existing member for a misspelt one.
const MOST_HINTS: usize = 256;

/// Ends the message about a member of a value that is no structure.
const NO_MEMBERS: &str = " has no members";

/// The kind of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    /// `reg(seq, name)`.
    Register,
    /// `mem(seq, address, length)`.
    Memory,
    /// `value(seq, expression)`.
    Value,
    /// `explain_value(seq, expression)`.
    ExplainValue,
    /// `frame_value(seq, frame, expression)`.
    FrameValue,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Of {
    action: Action,
    states: States,
    signature: Signature,
}

/// Returns the functions.
pub fn functions(states: &States) -> Vec<ScalarUDF> {
    let text = || DataType::Utf8;
    let int = || DataType::Int64;
    let functions = [
        (Action::Register, vec![text()]),
        (Action::Memory, vec![int(), int()]),
        (Action::Value, vec![text()]),
        (Action::ExplainValue, vec![text()]),
        (Action::FrameValue, vec![int(), text()]),
    ];
    let make = |(action, types): (Action, Vec<DataType>)| {
        // An event, or a moment as goto takes it.
        let of = |moment| TypeSignature::Exact([vec![moment], types.clone()].concat());
        let either = vec![of(int()), of(text())];
        ScalarUDF::new_from_impl(Of {
            action,
            states: states.clone(),
            signature: Signature::one_of(either, Volatility::Stable),
        })
    };
    functions.into_iter().map(make).collect()
}

impl ScalarUDFImpl for Of {
    fn name(&self) -> &str {
        match self.action {
            Action::Register => "reg",
            Action::Memory => "mem",
            Action::Value => "value",
            Action::ExplainValue => "explain_value",
            Action::FrameValue => "frame_value",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.action {
            Action::Register => DataType::Int64,
            Action::Memory => DataType::Binary,
            Action::Value | Action::ExplainValue | Action::FrameValue => DataType::Utf8View,
        })
    }

    /// `reg` with a literal that names a register wider than an integer returns bytes.
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let name = args.scalar_arguments.last().copied().flatten();
        let name = name.and_then(|name| name.try_as_str().flatten());
        let is_wide = name.and_then(moment::Wide::by_name).is_some();
        let returned = match is_wide && self.action == Action::Register {
            true => DataType::Binary,
            false => self.return_type(&[])?,
        };
        Ok(Arc::new(Field::new(self.name(), returned, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let count = args.number_rows;
        let arrays = args.args.iter().map(|arg| arg.to_array(count));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let batch = Batch::new(&self.states, &arrays)?;
        let values = match self.action {
            Action::Register if *args.return_field.data_type() == DataType::Binary => {
                batch.wide_registers()
            }
            Action::Register => batch.registers(),
            Action::Memory => batch.memory(),
            Action::Value => batch.values(None),
            Action::ExplainValue => batch.explanations(),
            Action::FrameValue => batch.values(Some(&batch.number(1)?)),
        };
        Ok(ColumnarValue::Array(values?))
    }
}

/// The frame of the call that a thread has just returned from.
const LEFT_CALL: i64 = -1;

/// The arguments of a function for many rows; the first of them is an event.
struct Batch<'a> {
    states: &'a States,
    timeline: &'a Timeline,
    arrays: &'a [ArrayRef],
    /// The event of each row, if there is such an event.
    seqs: Vec<Option<u64>>,
    /// How many instructions later the moment of each row is.
    steps: Vec<u64>,
    /// The rows in the order of their events.
    order: Vec<usize>,
    /// No other batch asks meanwhile.
    _turn: Turn<'a>,
}

impl<'a> Batch<'a> {
    fn new(states: &'a States, arrays: &'a [ArrayRef]) -> Result<Batch<'a>> {
        let timeline = states.timeline()?;
        let (seqs, steps) = match arrays[0].data_type() {
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => {
                moments(timeline, &arrays[0])?
            }
            _ => {
                let seqs = cast(&arrays[0], &DataType::Int64)?;
                let seqs = seqs.as_primitive::<Int64Type>().iter();
                let seqs = seqs.map(|seq| u64::try_from(seq?).ok());
                let seqs: Vec<Option<u64>> = seqs
                    .map(|seq| seq.filter(|seq| *seq < timeline.events()))
                    .collect();
                let steps = vec![0; seqs.len()];
                (seqs, steps)
            }
        };
        let mut order: Vec<usize> = (0..seqs.len()).collect();
        order.sort_unstable_by_key(|row| (seqs[*row], steps[*row]));
        let turn = states.turn(seqs.len(), |row| seqs[row]);
        Ok(Batch {
            states,
            timeline,
            arrays,
            seqs,
            steps,
            order,
            _turn: turn,
        })
    }

    fn instant(&self, row: usize, seq: u64) -> Instant {
        Instant {
            seq,
            steps: self.steps[row],
        }
    }

    fn number(&self, at: usize) -> Result<PrimitiveArray<Int64Type>> {
        Ok(cast(&self.arrays[at], &DataType::Int64)?
            .as_primitive()
            .clone())
    }

    fn text(&self, at: usize) -> Result<StringArray> {
        Ok(cast(&self.arrays[at], &DataType::Utf8)?.as_string().clone())
    }

    /// Evaluates the rows in the order of their events and returns the answers in the order of the rows.
    fn ask<T: Clone>(
        &self,
        mut ask: impl FnMut(usize, u64) -> Result<Option<T>>,
    ) -> Result<Vec<Option<T>>> {
        let mut found = vec![None; self.order.len()];
        for row in &self.order {
            if let Some(seq) = self.seqs[*row] {
                found[*row] = ask(*row, seq)?;
            }
        }
        Ok(found)
    }

    fn registers(&self) -> Result<ArrayRef> {
        let names = self.text(1)?;
        let found = self.ask(|row, seq| match name(&names, row)? {
            Some(name) => {
                moment::register(self.timeline, self.instant(row, seq), name).map_err(failed)
            }
            None => Ok(None),
        })?;
        let values = found.into_iter().map(|value| value.map(|v| v as i64));
        Ok(Arc::new(values.collect::<Int64Array>()))
    }

    fn wide_registers(&self) -> Result<ArrayRef> {
        let names = self.text(1)?;
        let found = self.ask(|row, seq| match moment::Wide::by_name(names.value(row)) {
            Some(register) => {
                let instant = self.instant(row, seq);
                moment::wide_register(self.timeline, instant, register).map_err(failed)
            }
            None => Ok(None),
        })?;
        Ok(Arc::new(found.into_iter().collect::<BinaryArray>()))
    }

    fn memory(&self) -> Result<ArrayRef> {
        let (addresses, lens) = (self.number(1)?, self.number(2)?);
        let found = self.ask(|row, seq| {
            if addresses.is_null(row) || lens.is_null(row) {
                return Ok(None);
            }
            let len = lens.value(row);
            if !(0..=MAX_LEN).contains(&len) {
                return plan_err!("mem returns 0 to {MAX_LEN} bytes, not {len}");
            }
            let address = addresses.value(row) as u64;
            let instant = self.instant(row, seq);
            moment::memory(self.timeline, instant, address, len as u64).map_err(failed)
        })?;
        let mut values = BinaryBuilder::new();
        for value in found {
            values.append_option(value);
        }
        Ok(Arc::new(values.finish()))
    }

    /// Evaluates the last argument, in the innermost frame or in the frame that each row names.
    fn values(&self, frames: Option<&PrimitiveArray<Int64Type>>) -> Result<ArrayRef> {
        let texts = self.text(self.arrays.len() - 1)?;
        let mut parsed: FxHashMap<&str, Expr> = FxHashMap::default();
        let (mut parameters, mut places) = (Parameters::default(), Places::default());
        let kept = self.states.traces();
        let mut traces = kept.take(&self.seqs, &self.steps);
        let parse = |text| {
            parse(self.timeline, text, |expression, member| {
                self.hint(expression, member)
            })
        };
        let found = self.ask(|row, seq| {
            let frame = match frames {
                None => Some(0),
                Some(frames) if frames.is_valid(row) => {
                    let frame = frames.value(row);
                    Some(frame).filter(|frame| *frame >= LEFT_CALL)
                }
                Some(_) => None,
            };
            let (Some(frame), true) = (frame, texts.is_valid(row)) else {
                return Ok(None);
            };
            let text = texts.value(row);
            if !parsed.contains_key(text) {
                parsed.insert(text, parse(text)?);
            }
            let expression = &parsed[text];
            // With a frame number, the frame is looked up for each row.
            let instant = self.instant(row, seq);
            if frames.is_some() || instant.steps > 0 {
                let found = match usize::try_from(frame) {
                    Ok(frame) => {
                        moment::value(&mut traces, self.timeline, instant, frame, expression)
                    }
                    Err(_) => moment::left_value(&mut traces, self.timeline, instant, expression),
                };
                return found.map_err(failed);
            }
            let event = self.timeline.event(seq).map_err(failed)?;
            let at_entry = moment::at_entry(&mut parameters, self.timeline, &event, expression);
            if let Some(value) = at_entry.map_err(failed)? {
                return Ok(value);
            }
            let at = (seq, event);
            moment::innermost_value(&mut places, self.timeline, at, expression).map_err(failed)
        })?;
        kept.keep(traces);
        Ok(Arc::new(found.into_iter().collect::<StringViewArray>()))
    }

    /// Explains for each value why it is null, or that it is known.
    fn explanations(&self) -> Result<ArrayRef> {
        let values = self.values(None)?;
        let values = values.as_string_view();
        let texts = self.text(1)?;
        let seqs = match self.arrays[0].data_type() {
            // A nonexistent moment is an error.
            DataType::Int64 => self.number(0)?,
            _ => PrimitiveArray::new_null(self.seqs.len()),
        };
        let mut parsed: FxHashMap<&str, Expr> = FxHashMap::default();
        let mut found = self.ask(|row, seq| {
            if !texts.is_valid(row) {
                return Ok(None);
            }
            if values.is_valid(row) {
                return Ok(Some(moment::KNOWN.to_owned()));
            }
            let text = texts.value(row);
            if !parsed.contains_key(text) {
                parsed.insert(text, read(text)?);
            }
            let instant = self.instant(row, seq);
            let why = moment::why_unknown(self.timeline, instant, &parsed[text]);
            why.map(Some).map_err(failed)
        })?;
        for (row, found) in found.iter_mut().enumerate() {
            if seqs.is_valid(row) && texts.is_valid(row) && self.seqs[row].is_none() {
                *found = Some(self.why_no_event(seqs.value(row)));
            }
        }
        Ok(Arc::new(found.into_iter().collect::<StringViewArray>()))
    }

    fn why_no_event(&self, seq: i64) -> String {
        match self.timeline.events().checked_sub(1) {
            None => "unknown: the recording has no events".to_owned(),
            Some(_) if seq < 0 => "unknown: the recording begins at event 0".to_owned(),
            Some(last) => format!("unknown: the recording ends at event {last}"),
        }
    }

    /// Suggests existing members for a missing one, from the first rows in which the containing expression has a
    /// meaning.
    fn hint(&self, expression: &Expr, member: &str) -> Option<Diagnostic> {
        let rows = self.order.iter().filter_map(|row| self.seqs[*row]);
        let missing = format!("no member {member}");
        rows.take(MOST_HINTS).find_map(|seq| {
            let why = moment::why_meaningless(self.timeline, seq, expression).ok()??;
            let is_it = why.message.contains(&missing) || why.message.ends_with(NO_MEMBERS);
            is_it.then_some(why)
        })
    }
}

/// Events and instructions after them.
type Moments = (Vec<Option<u64>>, Vec<u64>);

/// Reads moments as `goto` takes them.
fn moments(timeline: &Timeline, texts: &ArrayRef) -> Result<Moments> {
    let texts: StringArray = cast(texts, &DataType::Utf8)?.as_string().clone();
    let (mut seqs, mut steps) = (Vec::new(), Vec::new());
    for text in texts.iter() {
        let instant = match text {
            None => None,
            Some(text) => {
                let target = Target::parse(text).map_err(failed)?;
                Some(timeline.find_instant(&target).map_err(failed)?)
            }
        };
        seqs.push(instant.map(|instant| instant.seq));
        steps.push(instant.map_or(0, |instant| instant.steps));
    }
    Ok((seqs, steps))
}

/// Returns the register's name in a row.
fn name(names: &StringArray, row: usize) -> Result<Option<&str>> {
    if names.is_null(row) {
        return Ok(None);
    }
    let name = names.value(row);
    match Register::by_name(name) {
        Some(register) if !(17..=32).contains(&register.0) => Ok(Some(name)),
        _ => plan_err!(
            "reg knows no register {name}: it has rax to r15, rip, rflags, fs_base and gs_base; and, written as a literal, \
             xmm0 to xmm15, ymm0 to ymm31, zmm0 to zmm31, k0 to k7, st0 to st7 and mxcsr"
        ),
    }
}

/// Parses an expression.
fn read(text: &str) -> Result<Expr> {
    expr::parse(text).map_err(|error| {
        told(Diagnostic {
            message: format!("the expression \"{text}\": {error}"),
            hint: error.hint,
        })
    })
}

/// Returns whether a qualified name begins with something that no module mentions and that is no module either.
fn has_unknown_scope(timeline: &Timeline, name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_';
    let Some((first, _)) = name.trim_start_matches("::").split_once("::") else {
        return false;
    };
    if !first.chars().all(is_plain) || first.is_empty() {
        return false;
    }
    let modules = timeline.modules().all_usable();
    let is_module = |own: &debuginfo::Mapped| {
        let name = own.module.path().file_name();
        name.is_some_and(|name| name.to_string_lossy().starts_with(first))
    };
    !timeline.modules().mention(first) && !modules.iter().any(is_module)
}

/// Parses an expression. A name that does not exist in the recording is always wrong, and so is a variable that the
/// function named with it does not have; for a member, `hint` suggests existing ones.
fn parse(
    timeline: &Timeline,
    text: &str,
    hint: impl Fn(&Expr, &str) -> Option<Diagnostic>,
) -> Result<Expr> {
    let parsed = read(text)?;
    let is_misspelt = |name: &str| {
        let last = name.rsplit("::").next().unwrap_or(name);
        let is_plain = last.chars().all(|c| c.is_alphanumeric() || c == '_');
        let is_last = is_plain && !expr::is_word(last) && !timeline.modules().mention(last);
        is_last || has_unknown_scope(timeline, name)
    };
    if let Some(name) = expr::names(&parsed).iter().find(|name| is_misspelt(name)) {
        return plan_err!(
            "the expression \"{text}\": nothing in the recording is called \"{name}\""
        );
    }
    for name in expr::names(&parsed) {
        if let Some(why) = moment::why_never(timeline, &name).map_err(failed)? {
            return Err(told(
                why.map(|why| format!("the expression \"{text}\": {why}")),
            ));
        }
    }
    let members = expr::members(&parsed);
    let Some(name) = members.iter().find(|name| is_misspelt(name)) else {
        // A variable that is named with its function has one type, at whichever event.
        let names = expr::names(&parsed);
        let is_qualified = !names.is_empty() && names.iter().all(|name| name.contains("::"));
        let mut wrong = members.iter().filter(|_| is_qualified);
        let why = wrong.find_map(|name| hint(&parsed, name));
        return match why {
            None => Ok(parsed),
            Some(why) => Err(told(
                why.map(|why| format!("the expression \"{text}\": {why}")),
            )),
        };
    };
    let why = hint(&parsed, name).unwrap_or_else(|| {
        Diagnostic::new(format!("nothing in the recording has a member \"{name}\""))
    });
    Err(told(
        why.map(|why| format!("the expression \"{text}\": {why}")),
    ))
}
